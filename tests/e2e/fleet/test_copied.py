"""A local: folder serves one machine: a host that finds a copy of it in use does not start."""
import os
import shutil
import signal
import subprocess

import pytest

from hosts import wait_until
from redis_sites import SiteHost
from servers import RedisServer

pytest.importorskip("redis")


@pytest.fixture
def site(quiver, root, tmp_path):
    with RedisServer(tmp_path / "redis") as redis:
        host = SiteHost(quiver, root / "build" / "test-plugins", tmp_path)
        yield host.configure(redis.url)
        host.close()


def run_in(site, folder, name):
    """A host whose state and coordination are in that folder."""
    return subprocess.Popen([site.quiver, "run", "-c", site.config, "--name", name, "--set", f"state={folder}", "--set",
                             f"coordination.url=local:{folder}"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                            text=True)


def owned(site):
    return "8 owned" in site.cli("status")


def test_a_host_refuses_a_copy_of_a_folder_that_is_in_use(site):
    site.start()
    wait_until(lambda: owned(site), "it owns its shards")
    shutil.copytree(site.folder / "state", site.folder / "copy", ignore=shutil.ignore_patterns("*.sock", "*.http", "bell-*"))
    os.chmod(site.folder / "copy", 0o700)
    second = run_in(site, site.folder / "copy", "second")
    _, said = second.communicate(timeout=60)
    assert second.returncode == 1
    assert "another machine uses a copy of the folder" in said and "quiver app set coordination=" in said
    assert owned(site)


def test_a_host_beside_one_that_was_killed_with_its_guard_starts(site):
    """It holds leases and is no member, but it does not renew them."""
    site.start()
    wait_until(lambda: owned(site), "it owns its shards")
    children = open(f"/proc/{site.process.pid}/task/{site.process.pid}/children").read().split()
    for pid in [site.process.pid, *map(int, children)]:
        os.kill(pid, signal.SIGKILL)
    site.wait()
    second = run_in(site, site.folder / "state", "second")
    try:
        wait_until(lambda: second.poll() is not None or "second, running, 8 shards" in site.cli("status"),
                   "the second one owns the shards")
        assert second.poll() is None, second.stderr.read()
        second.send_signal(signal.SIGTERM)
        assert second.wait(60) == 0
    finally:
        second.kill()
        second.wait(60)
        second.stderr.close()
