"""A host that was killed with its guard and its runners, as service managers do it, and is started again."""
import fcntl
import json
import os
import pathlib
import re
import signal
import struct

import pytest

LEFT_LEASES = "ends by itself, within lease.ttl"


def kill_with_guard(host):
    """Leaves nobody who could give its leases back."""
    everybody = [host.process.pid, *map(int, pathlib.Path(
        f"/proc/{host.process.pid}/task/{host.process.pid}/children").read_text().split())]
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in everybody:
            os.kill(pid, number)
    host.wait()


def named_a(text):
    return 'host = { name = "a"; };' + text


@pytest.mark.parametrize("what", ["cut off", "garbage", "another boot", "another store", "another folder", "a folder"])
def test_what_the_last_host_wrote_is_used_only_as_it_was_written(host, what):
    """It is input.  What is not in order is ignored, with a line in the log: then the leases end in their own time."""
    host.configure(change=named_a, work="").start()
    host.submit([{"handler": "work", "key": "k", "payload": "1"}])
    host.wait_done(1)
    kill_with_guard(host)
    path = host.folder / "state" / "a.last"
    assert path.stat().st_mode & 0o777 == 0o600
    text = path.read_text()
    said = json.loads(text)
    said.update({"another boot": {"boot": "another"}, "another store": {"store": "sqlite:/elsewhere"},
                 "another folder": {"alive": "1:1"}}.get(what, {}))
    if what == "a folder":
        path.unlink()
        path.mkdir()
    else:
        path.write_bytes({"cut off": text[:len(text) // 2].encode(), "garbage": bytes(range(256))}.get(
            what, json.dumps(said).encode()))
    host.start()
    assert LEFT_LEASES in host.log()
    host.submit([{"handler": "work", "key": "k", "payload": "2"}])
    host.wait_done(2)
    assert host.stop() == 0


def test_a_process_that_a_plugin_left_delays_the_next_host_by_no_more_than_the_lease(host):
    """It holds the lock of those who live, and never lets go: the next host waits a moment for it, and then for the TTL."""
    host.configure(change=named_a, work="").start()
    host.submit([{"handler": "work", "key": "k", "payload": "1"}])
    host.wait_done(1)
    kill_with_guard(host)
    with open(host.folder / "state" / "a.alive", "rb") as alive:
        fcntl.fcntl(alive, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 0, 0, 0))
        host.start()
        assert "is still there" in host.log() and LEFT_LEASES in host.log()
        host.submit([{"handler": "work", "key": "k", "payload": "2"}])
        host.wait_done(2)
        assert host.stop() == 0


def test_a_host_that_stopped_leaves_nothing_to_end(host):
    host.configure(change=named_a, work="").start()
    path = host.folder / "state" / "a.last"
    assert path.exists()
    assert host.stop() == 0
    assert not path.exists()
    host.start()
    assert "event=predecessor" not in host.log()


def test_children_that_a_plugin_starts_do_not_hold_the_locks(host):
    """A runner has one descriptor more, of which a program that it starts knows nothing."""
    host.configure(change=named_a, work="").start()
    host.submit([{"handler": "work", "key": "k", "payload": "1"}])
    host.wait_done(1)
    alive = str(host.folder / "state" / "a.alive")
    mine = pathlib.Path(f"/proc/{host.process.pid}/task/{host.process.pid}/children").read_text().split()
    assert len(mine) == 2  # a guard and a runner
    for pid in mine:
        held = [fd for fd in os.listdir(f"/proc/{pid}/fd") if os.readlink(f"/proc/{pid}/fd/{fd}") == alive]
        assert len(held) == 1
        flags = int(re.search(r"flags:\s+(\d+)", pathlib.Path(f"/proc/{pid}/fdinfo/{held[0]}").read_text()).group(1), 8)
        assert flags & os.O_CLOEXEC and flags & os.O_ACCMODE == os.O_RDONLY
        assert "OFDLCK" in pathlib.Path(f"/proc/{pid}/fdinfo/{held[0]}").read_text()
