"""A process that was stopped inside a write transaction holds SQLite's write lock: everybody says who it is, and what
only reads goes on."""
import json
import signal
import subprocess
import sys

import pytest

from hosts import wait_until

HOLDER = """
import os, signal, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN IMMEDIATE")
print("held", flush=True)
os.kill(os.getpid(), signal.SIGSTOP)
db.execute("COMMIT")
"""


@pytest.fixture
def hold():
    """Starts processes that stop inside a write transaction on that file."""
    started = []

    def start(path):
        holder = subprocess.Popen([sys.executable, "-c", HOLDER, path], stdout=subprocess.PIPE, text=True)
        started.append(holder)
        assert holder.stdout.readline() == "held\n"
        wait_until(lambda: open(f"/proc/{holder.pid}/stat").read().rpartition(")")[2].split()[0] == "T", "it is stopped")
        return holder

    yield start
    for holder in started:
        if holder.poll() is None:
            holder.send_signal(signal.SIGCONT)
            holder.kill()
        holder.wait(20)
        holder.stdout.close()


def test_what_only_reads_goes_on(host, hold):
    host.configure(work="").start()
    assert host.stop() == 0
    task = host.submit_one({"handler": "work", "key": "k", "payload": "1"})
    hold(host.folder / "q.db")
    assert json.loads(host.cli("status", "--json"))["app"] == "test"
    assert "k" in host.cli("key", "k")
    host.cli("key", "list")
    host.cli("dead", "list")
    assert task in host.cli("task", task)
    assert "sound" in host.cli("fsck")


def refused_submit(host):
    """What a submit says that gives up waiting for the write lock."""
    done = subprocess.run([host.quiver, "submit", "work", "1", "-c", host.config], capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 3
    return done.stderr


def test_who_holds_it_is_said_by_a_submit_and_once_by_an_idle_host(host, hold):
    host.configure(work="").start()
    holder = hold(host.folder / "q.db")
    advice = f"kill -CONT {holder.pid}"
    host.wait_for_log("event=store-held")
    line = next(line for line in host.log().splitlines() if "event=store-held" in line)
    assert f"pid={holder.pid}" in line and advice in line
    # Twice as long as the host waits: it has given up and begun again meanwhile.
    for _ in range(2):
        assert advice in refused_submit(host)
    holder.send_signal(signal.SIGCONT)
    host.wait_for_log("event=store-free")
    assert host.log().count("event=store-held") == 1
    host.submit([{"handler": "work", "key": "k", "payload": "1"}])
    host.wait_done(1)
