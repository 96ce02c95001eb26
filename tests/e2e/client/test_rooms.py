"""`quiver room` and the client library's followers: a log that is replayed and followed, through kills and restarts."""
import json
import os
import signal
import subprocess
import time

import pytest

from backings import durable_redis
from hosts import wait_until

CONFIG = """
app = "test"; shards = 4;
store = {{ {store} }};
coordination = {{ url = "local:{folder}/var"; session = "1s"; }};
state = "{folder}/var"; plugins = "{folder}"; handlers = {{ }};
"""


@pytest.fixture(scope="module")
def redis(tmp_path_factory):
    with durable_redis(tmp_path_factory.mktemp("redis")) as server:
        yield server


class Shop:
    """A store that a host has made, and commands on it."""

    def __init__(self, quiver, folder, store, server=None):
        self.quiver, self.folder, self.server = quiver, folder, server
        self.config = folder / "runtime.cfg"
        self.config.write_text(CONFIG.format(store=store, folder=folder))
        host = subprocess.Popen([quiver, "run", "-c", self.config], stderr=open(folder / "log", "wb"))
        try:
            wait_until(lambda: "event=running" in (folder / "log").read_text(), "the host runs")
            host.terminate()
            host.wait(60)
        finally:
            host.kill()
            host.wait()

    def popen(self, *words, **options):
        return subprocess.Popen([self.quiver, "room", "-c", self.config, *map(str, words)], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, **options)

    def room(self, *words, data=None, code=0):
        done = subprocess.run([self.quiver, "room", "-c", self.config, *map(str, words)], input=data,
                              capture_output=True, timeout=60)
        assert done.returncode == code, (done.stdout, done.stderr)
        self.said = done.stderr.decode()
        return done.stdout

    def commands(self):
        """Those that Redis has carried out, but for our own looking."""
        if not self.server:
            return None
        stats = self.server.do("INFO", "commandstats")
        return {name: one["calls"] for name, one in stats.items() if "info" not in name and "client" not in name}

    def json(self, *words):
        return [json.loads(line) for line in self.room(*words, "--json").splitlines()]


@pytest.fixture(params=["sqlite", "redis"])
def shop(request, quiver, tmp_path):
    if request.param == "sqlite":
        return Shop(quiver, tmp_path, f'url = "sqlite:{tmp_path}/q.db";')
    server = request.getfixturevalue("redis")
    server.do("FLUSHALL")
    return Shop(quiver, tmp_path, f'url = "{server.url}";', server)


def test_what_is_appended_is_read_byte_for_byte(shop):
    assert shop.room("log", "append", "one", "two words", "") == b"1\n2\n3\n"
    data = bytes(range(256)) * 3
    assert shop.room("log", "append", data=data) == b"4\n"
    assert shop.room("log", "append", "--lines", data=b"five\n\nseven") == b"5\n6\n7\n"
    assert shop.room("log", "read", "--raw", "--from", 4, "-n", 1) == data
    assert [e["number"] for e in shop.json("log", "read")] == [1, 2, 3, 4, 5, 6, 7]
    assert [e.get("entry") for e in shop.json("log", "read")] == ["one", "two words", "", None, "five", "", "seven"]
    shown = shop.room("log", "read", "-n", 2).decode().splitlines()
    assert shown[1].startswith("2  20") and shown[1].endswith("Z  two words")


def test_what_is_gone_is_said_and_retention_is_settable(shop):
    shop.room("log", "append", *range(1, 11))
    assert b"begins at 4" in shop.room("log", "truncate", 3)
    assert [e.get("number") for e in shop.json("log", "read", "--from", 2)] == [None, 4, 5, 6, 7, 8, 9, 10]
    shop.room("log", "read", "--from", 2)
    assert "entries 2 to 3 are gone" in shop.said
    shop.room("log", "set", "--entries", 5, "--age", "1h")
    shop.room("log", "append", "more")
    (room,) = shop.json("list")
    assert (room["name"], room["entries"], room["last"], room["max_entries"], room["max_age_ms"]) == (
        "log", 5, 11, 5, 3600000)
    assert "log" in shop.room("list").decode() and "5 entries" in shop.room().decode()
    shop.room("log", "truncate", "--all")
    assert shop.json("log", "read") == []
    shop.room("log", "delete")
    assert shop.json("list") == []
    shop.room("log", "truncate", 3, code=1)
    assert "log" in shop.said
    shop.room("log", "sing", code=2)
    shop.room("log", "follow", "--wait", "0s", code=1)


def test_a_follower_is_woken_and_quiet_otherwise(shop):
    """A quiet follower asks nothing: of Redis by its count of commands, of a file by the system calls it makes."""
    shop.room("log", "append", "old")
    follower = shop.popen("log", "follow", "--json")
    try:
        assert json.loads(follower.stdout.readline())["entry"] == "old"
        for text in "a", "b", "c":
            shop.room("log", "append", text)
            assert json.loads(follower.stdout.readline())["entry"] == text
        commands, woken = shop.commands(), switches(follower.pid)
        time.sleep(2)  # what is measured is that nothing happens
        assert shop.commands() == commands
        assert switches(follower.pid) - woken <= 2
    finally:
        follower.kill()
        follower.communicate()


def switches(pid):
    """How often the threads of a process have given up the processor: each poll is one."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/status", encoding="utf-8") as status:
            total += sum(int(line.split()[1]) for line in status if line.startswith("voluntary_ctxt"))
    return total


CLIENTS, BEFORE, AFTER = 10, 20, 5
CHANNELS = ENTRIES = BEFORE + AFTER


def test_ten_clients_follow_25_channels_of_25_entries(shop, root):
    """Twenty channels of twenty entries are there before, five of each come later; one follower is killed and goes on,
    and Redis is killed and started again."""
    program = root / "build" / "tests" / "e2e" / "support" / "follower"
    subprocess.run(["make", "-s", "-C", root, "build/tests/e2e/support/follower"], check=True, stdout=subprocess.DEVNULL,
                   env={k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))})
    files = [shop.folder / f"seen-{i}" for i in range(CLIENTS)]

    def start(i):
        child = subprocess.Popen([program, shop.config, "room", files[i], str(CHANNELS), str(ENTRIES)],
                                 stdout=subprocess.PIPE, text=True)
        assert child.stdout.readline() == "follows\n"
        return child

    def write(channels, first, last):
        for channel in channels:
            entries = "".join(f"{n}\n" for n in range(first, last))
            shop.room(f"room/{channel:02}", "append", "--lines", data=entries.encode())

    def announce(channels):
        shop.room("room", "append", "--lines", data="".join(f"room/{c:02}\n" for c in channels).encode())

    begun = time.monotonic()
    write(range(BEFORE), 0, BEFORE)
    announce(range(BEFORE))
    children = [start(i) for i in range(CLIENTS)]
    try:
        wait_until(lambda: all(f.read_text().count("\n") >= BEFORE * BEFORE + BEFORE for f in files), "all is replayed")
        os.kill(children[3].pid, signal.SIGKILL)
        children[3].wait()
        write(range(BEFORE), BEFORE, ENTRIES)
        if shop.server:
            shop.server.kill9()
            shop.server.start()
        children[3].stdout.close()
        children[3] = start(3)
        write(range(BEFORE, CHANNELS), 0, ENTRIES)
        announce(range(BEFORE, CHANNELS))
        for child in children:
            assert child.wait(120) == 0
    finally:
        for child in children:
            child.kill()
            child.wait()
            child.stdout.close()
    print(f"10 x 25 x 25 in {time.monotonic() - begun:.2f} s")
    for file in files:
        seen = [line.split() for line in file.read_text().splitlines()]
        for channel in range(CHANNELS):
            assert [int(e) for name, _, e in seen if name == f"room/{channel:02}"] == list(range(ENTRIES))
    shop.room("room/07", "truncate", "--all")
    assert shop.json("room/07", "read") == []
