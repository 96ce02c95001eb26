"""A network between host and Redis that does everything a network may do: nothing is lost, order is kept.

Host and producer both go through it.  A submit without an answer is unknown: it may have happened, once."""
import os
import subprocess
import time

import pytest

from hosts import wait_until
from proxy import Proxy
from redis_sites import SHARDS, Producer, SiteHost, check_history
from servers import RedisServer

pytest.importorskip("redis")

ROUNDS = 10 if os.environ.get("QUIVER_TEST_LONG") else 1
TTL_S = 1.0


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with RedisServer(tmp_path_factory.mktemp("redis")) as made:
        yield made


@pytest.fixture
def proxied(quiver, root, tmp_path, server):
    """A host and its proxy."""
    server.do("FLUSHALL")
    with Proxy(server.port) as proxy:
        made = SiteHost(quiver, root / "build" / "test-plugins", tmp_path)
        yield made.configure(proxy.url).start(), proxy
        made.close()


def lasts(seconds):
    """A fault has its time, whatever else happens; nothing is waited for by it."""
    end = time.monotonic() + seconds
    wait_until(lambda: time.monotonic() > end, "the fault lasts")


def lost_answers(proxy):
    """One by one: the script is executed, its answer is lost, the connection is cut."""
    for _ in range(5):
        before = proxy.lost_replies
        proxy.lose_reply_of("EVALSHA")
        wait_until(lambda b=before: proxy.lost_replies > b, "an answer is lost")


def through(fault, seconds):
    def apply(proxy):
        fault(proxy)
        lasts(seconds)

    return apply


def again_and_again(fault):
    def apply(proxy):
        for _ in range(10):
            fault(proxy)
            lasts(0.05)

    return apply


FAULTS = {
    "drops answers": through(Proxy.lose_replies, 0.5),
    "drops requests": through(Proxy.lose_requests, 0.5),
    "drops answers beyond the lease": through(Proxy.lose_replies, 1.5 * TTL_S),
    "delays": through(lambda proxy: proxy.delay(0.05, 0.05), 1),
    "stalls": through(Proxy.hold, 1.5 * TTL_S),
    "cuts": again_and_again(Proxy.cut),
    "resets": again_and_again(lambda proxy: proxy.cut(reset=True)),
    "half-opens": through(Proxy.half_open, 0.5),
    "refuses": through(Proxy.refuse, 0.5),
    "loses single answers": lost_answers,
}


def test_a_bad_network_loses_and_doubles_nothing(proxied, chance):
    host, proxy = proxied
    producer = Producer(host, host.config)
    for _ in range(ROUNDS):
        for name, fault in chance.sample(sorted(FAULTS.items()), len(FAULTS)):
            print(name)
            host.wait_progress()
            fault(proxy)
            proxy.heal()
    host.wait_progress()
    producer.finish()
    host.wait_empty()
    assert "sound" in host.cli("fsck")
    assert host.stop() == 0
    assert check_history(host.ledger(), producer) == []
    assert len(producer.acknowledged) > 100 * ROUNDS


class Switch(Proxy):
    """Its first connection leads to one server, all others to another: an address moves in a failover."""

    def connect(self, client):
        super().connect(client)
        self.target = self.other


def test_no_replica_of_another_server_vouches_for_a_submit(quiver, root, tmp_path, server):
    """The tasks went to a master that has lost its place: those who follow the new one never get them."""
    server.do("FLUSHALL")
    other = RedisServer(tmp_path / "other")
    replica = RedisServer(tmp_path / "replica", "--replicaof", "127.0.0.1", other.port)
    made = SiteHost(quiver, root / "build" / "test-plugins", tmp_path)
    with other, replica, Switch(server.port) as switch:
        switch.other = other.port
        wait_until(replica.is_in_step, "the replica has what its master has")
        assert made.configure(server.url).start().stop() == 0
        made.config.write_text(made.config.read_text().replace(server.url, switch.url).replace(
            "store = { url", "store = { wait_replicas = 1; url"))
        done = subprocess.run([quiver, "submit", "work", "--key", "k", "1", "-c", made.config], capture_output=True,
                              text=True, timeout=60)
        assert done.returncode == 3 and switch.accepted > 1
        # Not as if nothing had happened: it has.
        assert "stored, but whether replicas have it is not known" in done.stderr
        assert sum(server.do("LLEN", f"quiver:{{test:{shard}}}:normal") for shard in range(SHARDS)) == 1
