"""Failovers and moving slots while tasks are claimed: what survives is fenced and in order, what is lost is counted."""
import json
import os
import subprocess
import time
import zlib

import pytest

from hosts import wait_until
from redis_sites import SHARDS, ClusterSite, Producer, SentinelSite, SiteHost, check_history
from servers import SentinelGroup

pytest.importorskip("redis")

ROUNDS = 5 if os.environ.get("QUIVER_TEST_LONG") else 1
# Replicas hear of a write within milliseconds; what was acknowledged earlier than this before a crash must be there.
LAG_S = 5


@pytest.fixture
def site_host(quiver, root, tmp_path):
    made = SiteHost(quiver, root / "build" / "test-plugins", tmp_path)
    yield made
    made.close()


def config_that_waits(host):
    """For a producer whose submit returns when a replica has it, too."""
    path = host.folder / "waits.cfg"
    path.write_text(host.config.read_text().replace("store = { url", "store = { wait_replicas = 1; url"))
    assert "wait_replicas" in path.read_text()
    return path


@pytest.mark.parametrize("kind", [SentinelSite, ClusterSite], ids=["sentinel", "cluster"])
def test_a_failover_loses_only_what_no_replica_had(site_host, tmp_path, kind):
    with kind(tmp_path / "redis") as site:
        host = site_host.configure(site.url).start()
        assert "a failover may lose the last moments" in host.log()
        careless = Producer(host, host.config, "careless")
        careful = Producer(host, config_that_waits(host), "careful")
        crashes = []
        for _ in range(ROUNDS):
            host.wait_progress()
            careful.wait_acknowledged()
            began = time.monotonic()
            site.crash(site.victim(), careless.wait_acknowledged)
            crashes.append((began, time.monotonic()))
            careless.wait_acknowledged()
            careful.wait_acknowledged()
            host.wait_progress()
        for producer in (careless, careful):
            producer.finish()
        host.wait_empty()
        assert "sound" in host.cli("fsck")
        assert host.stop() == 0

        lost = check_history(host.ledger(), careless, rollbacks=ROUNDS)
        print(f"lost by {ROUNDS} failovers: {len(lost)} of {len(careless.acknowledged)} acknowledged, "
              f"{len(careless.said) * 20} unknown")
        for number in lost:
            at = careless.acknowledged[number][1]
            assert any(began - LAG_S < at < ended for began, ended in crashes), f"{number} was lost without a cause"
        assert check_history(host.ledger(), careful, rollbacks=ROUNDS) == []


def refusals(*servers):
    """How often they said TRYAGAIN."""
    said = [str(server.do("INFO", "errorstats").get("errorstat_TRYAGAIN", "count=0")) for server in servers]
    return sum(int(one.rpartition("=")[2]) for one in said)


def test_slots_move_under_load_and_nobody_notices(site_host, tmp_path):
    with ClusterSite(tmp_path / "redis") as site:
        cluster = site.cluster
        host = site_host.configure(site.url).start()
        producer = Producer(host, host.config)
        for _ in range(ROUNDS):
            for shard in range(SHARDS):
                source = site.server_of(shard)
                target = cluster.masters[(cluster.masters.index(source) + 1) % len(cluster.masters)]
                cluster.mark(site.slot(shard), source, target)
                cluster.move_keys(site.slot(shard), source, target, 2)
                # Some keys are here, some there: whoever wants several of them is told to come again.
                before = refusals(source, target)
                wait_until(lambda s=source, t=target, b=before: refusals(s, t) > b, "somebody is sent away")
                while cluster.move_keys(site.slot(shard), source, target):
                    pass
                cluster.hand_over(site.slot(shard), target)
                assert site.server_of(shard) is target
        host.wait_progress()
        producer.finish()
        host.wait_empty()
        assert "sound" in host.cli("fsck")
        assert host.stop() == 0
        assert producer.said == []
        assert check_history(host.ledger(), producer) == []
        assert "level=error event=" not in host.log()


def test_a_script_does_not_begin_while_its_slot_moves(site_host, tmp_path):
    """Else it would stop in the middle, at a key that is not there: this submit with one of its two tasks stored."""
    with ClusterSite(tmp_path / "redis") as site:
        host = site_host.configure(site.url).start()
        assert host.stop() == 0
        shard = zlib.crc32(b"k") % SHARDS
        source, prefix = site.server_of(shard), f"quiver:{{test:{shard}}}:"
        target = next(master for master in site.cluster.masters if master is not source)
        host.cli("submit", "work", "--key", "k", "--delay", "1h", "0")
        for name in ("high", "normal", "low", "control"):
            source.do("RPUSH", prefix + name, "qv1\nkey:k\nhandler:work\n\n0")
        site.cluster.mark(site.slot(shard), source, target)
        before = refusals(source)
        lines = [{"handler": "work", "key": "k", "payload": "1"},
                 {"handler": "work", "key": "k", "payload": "2", "unique": "1h"}]
        submit = subprocess.Popen([host.quiver, "submit", "--json-lines", "-c", host.config], text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        submit.stdin.write("".join(json.dumps(line) + "\n" for line in lines))
        submit.stdin.close()
        wait_until(lambda: refusals(source) > before or submit.poll() is not None, "it is sent away")
        assert source.do("LLEN", prefix + "normal") == 1
        while site.cluster.move_keys(site.slot(shard), source, target):
            pass
        site.cluster.hand_over(site.slot(shard), target)
        assert submit.wait(60) == 0, submit.stderr.read()
        assert target.do("LLEN", prefix + "normal") == 3


def test_sentinels_that_have_a_password_of_their_own(site_host, tmp_path):
    """Store, coordination, commands and the guard all ask Sentinels who the master is."""
    group = SentinelGroup(tmp_path / "redis", password="data", sentinel_password="watch").start()
    try:
        for name in ("data", "watch"):
            (tmp_path / name).write_text(f"{name}\n")
            (tmp_path / name).chmod(0o600)
        secrets = 'password_file = "data"; sentinel = { password_file = "watch"; };'
        host = site_host.configure(group.url)
        text = host.config.read_text().replace(f'url = "{group.url}";', f'url = "{group.url}"; {secrets}', 1)
        text = text.replace(f'url = "local:{tmp_path}/state";', 'url = "redis";')
        host.config.write_text(text)
        host.start()
        assert host.cli("submit", "work", "--key", "k", "1").strip()
        wait_until(lambda: host.ends() == 1, "it is done")
        assert "leads" in host.cli("members")
        group.failover()
        host.cli("submit", "work", "--key", "k", "2")
        wait_until(lambda: host.ends() == 2, "it goes on after a failover")
        host.kill()
        wait_until(lambda: f"released={SHARDS} " in host.log(), "the guard has found the master, too")
        assert "watch" not in host.log().replace(str(tmp_path), "")
        host.config.write_text(text.replace('sentinel = { password_file = "watch"; }', 'sentinel = { password_file = "data"; }'))
        assert host.start(is_ready=False).wait() != 0
        assert "WRONGPASS" in host.log() or "AUTH" in host.log()
    finally:
        group.close()


def test_a_sentinel_password_without_sentinels_is_a_mistake(site_host, tmp_path):
    host = site_host.configure("redis://127.0.0.1:1")
    text = host.config.read_text()
    host.config.write_text(text.replace('url = "redis://127.0.0.1:1";', 'url = "redis://127.0.0.1:1"; sentinel = { user = "x"; };'))
    checked = subprocess.run([host.quiver, "check", "-c", host.config], capture_output=True, text=True)
    assert checked.returncode == 1
    assert "store.sentinel: store.url names no Sentinels" in checked.stdout + checked.stderr
