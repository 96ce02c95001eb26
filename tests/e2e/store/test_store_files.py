"""What happens to the files of a SQLite store while it is in use, or before: nobody writes to files that nobody finds
again."""
import os
import shutil
import subprocess

import pytest

from hosts import wait_until
from http_hosts import Server, detail


def file_of(host, ending=""):
    return host.folder / ("q.db" + ending)


@pytest.mark.parametrize("ending, what", [("", "removed"), ("-wal", "removed"), ("-shm", "removed"), ("", "replaced")])
def test_a_host_whose_files_are_taken_away_acknowledges_nothing(host, ending, what):
    server = Server(host)
    assert server.post("/v1/tasks/mail", b"1")[0] == 202
    taken = file_of(host, ending)
    aside = taken.with_name("aside")
    taken.rename(aside)
    if what == "replaced":
        shutil.copy(aside, taken)
    answer = server.post("/v1/tasks/mail", b"2")
    assert answer[0] == 503 and f"{taken} was {what}" in detail(answer) and "nothing was done" in detail(answer)
    wait_until(lambda: f"{taken} was {what}" in host.log(), "the host says so")
    aside.replace(taken)
    assert server.post("/v1/tasks/mail", b"3")[0] == 202
    host.wait_done(2)
    assert host.stop() == 0


def test_a_store_behind_a_symbolic_link_is_used_and_a_link_in_place_of_its_lock_is_not(host, tmp_path):
    host.configure(work="").start()
    assert host.stop() == 0
    file_of(host).rename(tmp_path / "elsewhere.db")
    file_of(host).symlink_to(tmp_path / "elsewhere.db")
    host.start()
    host.submit([{"handler": "work", "key": "k", "payload": "1"}])
    host.wait_done(1)
    assert host.stop() == 0
    turn = file_of(host, "-turn")
    turn.unlink()
    turn.symlink_to(tmp_path / "somebody.else")
    refused = subprocess.run([host.quiver, "run", "-c", host.config], capture_output=True, text=True, timeout=60)
    assert refused.returncode and "symbolic link" in refused.stdout + refused.stderr
    assert not os.path.exists(tmp_path / "somebody.else")


def test_an_empty_file_does_not_become_a_store_in_silence(host):
    host.configure(work="")
    file_of(host).parent.mkdir(exist_ok=True)
    file_of(host).touch()
    host.start()
    assert "event=store-made" in host.log() and "restore it from a backup" in host.log()
    assert host.stop() == 0
