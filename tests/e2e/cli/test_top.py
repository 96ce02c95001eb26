"""quiver top on a terminal: what is on the screen, what keys do, and that the terminal is as it was afterwards."""
import contextlib
import ctypes
import fcntl
import json
import os
import pathlib
import pty
import select
import signal
import struct
import subprocess
import termios

import pytest

from hosts import Host, wait_until

pyte = pytest.importorskip("pyte")

HOSTILE = "evil\x9b31mkey"  # U+009B begins a sequence, too, and is the only one that a key may have
SHOWN = r"evil\xc2\x9b31mkey"
REASON = "why\x1b]0;owned\x07\x1b[2J"


def task(key, payload):
    return {"handler": "work", "key": key, "payload": payload}


def status(host):
    return json.loads(host.cli("status", "--json"))


@pytest.fixture(scope="module")
def host(quiver, root, tmp_path_factory):
    """A dead task, a held key with a hostile name, and a handler that serves."""
    made = Host(quiver, root / "build" / "test-plugins", tmp_path_factory.mktemp("top"))
    try:
        made.configure(shards=4, work="").start()
        made.submit([task("k", "1 reject"), task("ok", "2")])
        made.cli("key", "hold", HOSTILE, "--reason", REASON)
        made.submit([task(HOSTILE, "3")])
        wait_until(lambda: status(made)["totals"]["dead"] == 1, "a task is dead")
        wait_until(lambda: status(made)["totals"]["held_keys"] == 1, "a key is held")
        wait_until(lambda: status(made)["handlers"], "the host has said so")
        yield made
    finally:
        made.close()


class Top:
    """The command on a pseudo terminal, and the screen as a terminal shows it."""

    def __init__(self, host, *words, command=None, **environment):
        self.master, self.slave = pty.openpty()
        self.screen = pyte.Screen(80, 24)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.resize(80, 24)
        self.before = termios.tcgetattr(self.slave)
        variables = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS", "LINES")}
        self.process = subprocess.Popen(
            command or [host.quiver, "top", "--interval", "200ms", "-c", host.config, *words], stdin=self.slave, stdout=self.slave,
            stderr=self.slave, env={**variables, "TERM": "xterm-256color", **environment}, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))

    def resize(self, columns, lines):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.screen.resize(lines, columns)

    def press(self, keys):
        os.write(self.master, keys.encode())

    def text(self):
        while select.select([self.master], [], [], 0)[0]:
            data = os.read(self.master, 65536)
            self.raw += data
            self.stream.feed(data)
        return "\n".join(self.screen.display)

    def wait_for(self, *parts):
        try:
            wait_until(lambda: all(part in self.text() for part in parts), f"{parts} on the screen", 30)
        except AssertionError:
            print(self.text())
            raise
        return self.text()

    def wait_left(self, says=""):
        """The other screen is left, the cursor is seen, the settings are those of before; `says` what comes then."""
        def is_left():
            self.text()
            after = self.raw.rpartition(b"\x1b[?1049h")[2].partition(b"\x1b[?7h\x1b[?25h\x1b[?1049l")
            return (after[1] and says.encode() in after[2] and b"\x1b" not in after[2]
                    and termios.tcgetattr(self.slave) == self.before)

        wait_until(is_left, "the terminal is as it was", 30)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(30)
        os.close(self.master)
        os.close(self.slave)


@contextlib.contextmanager
def top(host, *words, **more):
    made = Top(host, *words, **more)
    try:
        yield made
    finally:
        made.close()


def test_the_screen_shows_handlers_and_the_dead_at_every_size(host):
    with top(host) as t:
        t.wait_for("quiver top  test", "[1 overview", "live", "work", "open", "q quit")
        assert len(t.screen.display) == 24 and "q quit" in t.screen.display[23], "the last line is the last"
        t.press("5")
        t.wait_for("1 task is dead, by 1 cause.", "rejected", "> ")
        t.resize(120, 40)
        wait_until(lambda: "q quit" in t.text() and "q quit" in t.screen.display[39], "it uses the larger screen", 30)
        t.press("3")
        t.wait_for("All 4 shards have an owner.")
        t.press("4")
        t.wait_for("1 host is running.")
        t.press("q")
        assert t.process.wait(30) == 0
        t.wait_left()


def test_a_pause_shows_its_command_and_waits_for_a_yes(host):
    with top(host) as t:
        t.wait_for("work", "q quit")
        t.press("Gp")
        t.wait_for("y/n? quiver pause --reason 'asked for in quiver top' work")
        t.press("n")
        t.wait_for("Nothing was done.")
        assert status(host)["totals"]["paused"] == {}
        t.press("Gp")
        t.wait_for("y/n? quiver pause")
        t.press("y")
        t.wait_for("Done: quiver pause", "work is paused: asked for in quiver top.")
        assert status(host)["totals"]["paused"] == {"work": "asked for in quiver top"}
        t.press("Gp")
        t.wait_for("y/n? quiver resume work")
        t.press("y")
        t.wait_for("Done: quiver resume work")
        assert status(host)["totals"]["paused"] == {}


def test_a_cause_is_requeued_as_often_as_was_said(host):
    host.submit([task("again", "7 reject"), task("more", "8 reject")])
    wait_until(lambda: status(host)["totals"]["dead"] == 3, "three are dead")
    with top(host, "--page", "dead") as t:
        t.wait_for("3 tasks are dead")
        t.press("r")
        t.wait_for("y/n? requeue 3 tasks: quiver dead requeue --handler work --reason rejected")
        t.press("y")
        t.wait_for("3 of 3 requeued.")
    wait_until(lambda: status(host)["handlers"][0]["rejected"] == 6, "all three were tried once more")
    wait_until(lambda: status(host)["totals"]["dead"] == 3, "they are dead again")
    host.cli("dead", "drop", "--key", "again")
    host.cli("dead", "drop", "--key", "more")


def test_nothing_of_a_hostile_key_reaches_the_terminal(host):
    with top(host, "--read-only") as t:
        t.wait_for("read-only", "[1 overview")
        t.press("2")
        t.wait_for(SHOWN, r"why\x1b]0;owned\x07\x1b[2J", "held")
        t.press("\r")
        t.wait_for("waits for    a person", f"quiver key unhold $'{SHOWN}'")
        t.press("u")
        t.wait_for("This view is read-only")
        assert not [bad for bad in (b"\x1b]0;", b"\x07", b"why\x1b", HOSTILE.encode()) if bad in t.raw]
    assert status(host)["totals"]["held_keys"] == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGSEGV, signal.SIGABRT])
def test_the_terminal_is_restored_however_it_ends(host, number):
    with top(host) as t:
        t.wait_for("q quit")
        assert termios.tcgetattr(t.slave) != t.before
        t.process.send_signal(number)
        assert t.process.wait(30) == -number
        t.wait_left()


def threads_of(pid):
    """Its threads but for the first, and whether each takes the signal of its own fault."""
    found = {}
    for thread in pathlib.Path(f"/proc/{pid}/task").iterdir():
        said = dict(line.split(":\t", 1) for line in (thread / "status").read_text().splitlines() if ":\t" in line)
        found[int(thread.name)] = not int(said["SigBlk"], 16) & 1 << (signal.SIGSEGV - 1)
    del found[pid]
    return found


def test_a_crash_of_any_thread_restores_the_terminal(host):
    with top(host) as t:
        t.wait_for("q quit")
        threads = threads_of(t.process.pid)
        assert len(threads) >= 2, "the client's, and that of the store's file"
    for place in range(len(threads)):
        with top(host) as t:
            t.wait_for("q quit")
            threads = threads_of(t.process.pid)
            assert all(threads.values()), f"a fault there would end it at once: {threads}"
            assert ctypes.CDLL(None).tgkill(t.process.pid, sorted(threads)[place], signal.SIGSEGV) == 0
            assert t.process.wait(30) == -signal.SIGSEGV
            t.wait_left()


def test_a_stopped_one_leaves_the_terminal_and_takes_it_again(host):
    """In a shell with job control, as people do it."""
    with top(host, command=["sh", "-i"], PS1="ready> ") as t:
        t.wait_for("ready>")
        t.press(f"{host.quiver} top --interval 200ms -c {host.config}\n")
        t.wait_for("q quit")
        during = termios.tcgetattr(t.slave)
        assert during != t.before
        t.press("\x1a")
        t.wait_left("Stopped")
        t.screen.reset()
        t.press("fg\n")
        t.wait_for("q quit")
        assert termios.tcgetattr(t.slave) == during
        t.press("4")
        t.wait_for("1 host is running.")
        t.press("q")
        t.wait_left("ready>")


def test_without_colours_there_are_none(host):
    with top(host, NO_COLOR="1") as t:
        t.wait_for("q quit")
        t.press("5")
        t.wait_for("rejected", "> ")
        assert not [part for part in t.raw.split(b"\x1b[")[1:] if part.lstrip(b"0123456789;")[:1] == b"m"]
    with top(host) as t:
        t.wait_for("q quit")
        assert b"\x1b[2m" in t.raw


def test_once_prints_one_page_into_a_pipe(host):
    printed = host.cli("top", "--once")
    assert "test" in printed and "work" in printed and "\x1b" not in printed and "q quit" not in printed
    assert "rejected" in host.cli("top", "--once", "--page", "dead")
    assert SHOWN in host.cli("top", "--once", "--page", "keys")
    done = subprocess.run([host.quiver, "top", "-c", host.config], capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL)
    assert done.returncode == 2 and "it needs a terminal; without one: quiver top --once" in done.stderr
