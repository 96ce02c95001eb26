"""What a service manager hears (sd_notify): the test is the manager."""
import os
import re
import signal
import socket
import subprocess
import time

import pytest

from hosts import wait_until
from sites import add, site, task  # noqa: F401 (site is a fixture)


class Manager:
    """Starts the site's host as systemd would, and keeps what it is told."""

    def __init__(self, site, address, watchdog_s=None):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address)
        self.socket.setblocking(False)
        self.heard = []
        name = address.decode().replace("\0", "@") if isinstance(address, bytes) else address
        os.environ["NOTIFY_SOCKET"] = name
        if watchdog_s:
            os.environ["WATCHDOG_USEC"] = str(int(watchdog_s * 1e6))
        try:
            site.start()
        finally:
            for variable in ("NOTIFY_SOCKET", "WATCHDOG_USEC"):
                os.environ.pop(variable, None)

    def listen(self):
        try:
            while True:
                self.heard.append(self.socket.recv(4096).decode())
        except BlockingIOError:
            return self.heard

    def wait_for(self, word, count=1):
        wait_until(lambda: sum(word in text for text in self.listen()) >= count, f"{word}, {count} times")

    def words(self):
        """The first line of each message, but for signs of life."""
        return [text.split("\n")[0] for text in self.listen() if not text.startswith("WATCHDOG")]


@pytest.fixture(params=["a file", "an abstract name"])
def address(request, tmp_path):
    return str(tmp_path / "notify") if request.param == "a file" else f"\0quiver-{os.getpid()}-{time.time_ns()}".encode()


def test_ready_reloading_and_stopping_are_told_in_order(site, address):
    site.configure(work="")
    manager = Manager(site, address)
    manager.wait_for("READY=1")
    site.install("ledger-two.so")
    before_us = time.monotonic_ns() // 1000
    site.hang_up()
    manager.wait_for("READY=1", 2)
    assert site.count("event=promoted handler=work generation=2") == 1  # a reload is over when the new one serves
    reloading = next(text for text in manager.heard if text.startswith("RELOADING"))
    told_us = int(re.search(r"MONOTONIC_USEC=(\d+)", reloading).group(1))
    assert before_us <= told_us <= time.monotonic_ns() // 1000
    assert site.stop() == 0
    assert manager.words() == ["READY=1", "RELOADING=1", "READY=1", "STOPPING=1"]


def test_a_refused_reload_is_over_too(site, tmp_path):
    site.configure(work="")
    manager = Manager(site, str(tmp_path / "notify"))
    site.configure(work="nonsense = 1;")
    site.hang_up()
    manager.wait_for("READY=1", 2)
    assert manager.words() == ["READY=1", "RELOADING=1", "READY=1"]


def test_the_watchdog_hears_from_a_loop_that_goes_round_and_not_from_a_stopped_one(site, tmp_path):
    site.configure(work="")
    manager = Manager(site, str(tmp_path / "notify"), watchdog_s=0.4)
    manager.wait_for("WATCHDOG=1", 5)
    site.signal(signal.SIGSTOP)
    wait_until(lambda: open(f"/proc/{site.process.pid}/stat").read().rsplit(")")[1].split()[0] == "T", "it is stopped")
    count = len(manager.listen())
    time.sleep(0.5)  # longer than the pace of the signs
    assert len(manager.listen()) == count
    site.signal(signal.SIGCONT)
    manager.wait_for("WATCHDOG=1", 8)


def test_without_a_manager_and_with_one_that_is_gone_a_host_runs(site):
    os.environ["NOTIFY_SOCKET"] = str(site.folder / "nobody")
    try:
        site.configure(work="").start()
    finally:
        del os.environ["NOTIFY_SOCKET"]
    site.submit([task("a", 1)])
    site.wait_done(1)
    assert site.stop() == 0


def test_runners_do_not_get_the_managers_socket(site, tmp_path):
    site.configure(work="")
    manager = Manager(site, str(tmp_path / "notify"), watchdog_s=60)
    site.submit([task("a", 1)])
    site.wait_done(1)
    manager.wait_for("READY=1")
    (runner,) = site.runners()["work"]
    environment = open(f"/proc/{runner}/environ").read()
    assert "NOTIFY_SOCKET" not in environment and "WATCHDOG" not in environment


def test_the_unit_file_is_one_that_systemd_understands(root, tmp_path):
    text = (root / "etc" / "quiver.service").read_text()
    # Debian 12's systemd, 252, does not know notify-reload.
    assert "Type=notify\n" in text and re.search(r"^ExecReload=\S+/quiver reload ", text, re.MULTILINE)
    try:
        unit = tmp_path / "quiver.service"
        unit.write_text(re.sub(r"(ExecStart|ExecReload)=\S+", r"\1=/bin/true", text))
        done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, timeout=60)
    except FileNotFoundError:
        pytest.skip("systemd is not installed here")
    complaints = [line for line in (done.stdout + done.stderr).splitlines() if "quiver.service" in line]
    assert not [line for line in complaints if "ignoring" in line], complaints
