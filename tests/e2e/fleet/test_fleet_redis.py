"""What holds for a fleet on a file and a folder holds with one Redis as both."""
import pytest

from backings import OnRedis, servers
from fleet import Fleet
from proxy import Proxy
from test_fleet import *  # the same tests, with this file's fleet


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    with servers(OnRedis, tmp_path_factory.mktemp("servers")) as made:
        yield made


@pytest.fixture
def fleet(quiver, root, tmp_path, pair):
    made = Fleet(quiver, root / "build" / "test-plugins", tmp_path, OnRedis(tmp_path, *pair))
    yield made
    made.close()


def test_other_clients_can_read_who_is_there(fleet):
    fleet.start("a", "b")
    fleet.wait_even()
    client, prefix = fleet.backing.client, "quiver:{test:coord}:"
    members = client.smembers(f"{prefix}children:members")
    assert members == {f"{m.name}.{m.nonce}" for m in fleet.living()}
    sessions = client.zrange(f"{prefix}sessions", 0, -1)
    assert {client.hget(f"{prefix}node:members/{member}", "owner") for member in members} == set(sessions)
    assert fleet.members["b"].stop() == 0
    assert len(client.smembers(f"{prefix}children:members")) == 1


def test_the_leader_reads_the_assignment_once(fleet):
    """What it was assigned itself and what it decides upon come from one read."""
    fleet.start("a")
    fleet.wait_even()
    node = "quiver:{test:coord}:node:assign"
    reads = 0
    with fleet.backing.client.monitor() as monitor:
        fleet.backing.client.hset(node, "data", "of nobody")
        for command in (seen["command"] for seen in monitor.listen()):
            if command.startswith("EVALSHA") and "quiver-assign" in command:
                break  # the leader replaces it
            reads += command.startswith("EVALSHA") and node in command
    assert reads == 1


class WithFolder(OnRedis):
    """The agreements are in a folder: they do not mind what happens between a host and Redis."""

    def __init__(self, folder, redis):
        super().__init__(folder, redis, None)
        self.url = f"local:{folder}/coordination"
        self.coordination = f'url = "{self.url}"; session = "20s";'


def test_a_lease_that_was_granted_unheard_is_given_back(quiver, root, tmp_path, pair):
    """Killed between asking for a shard and hearing that it has it: its guard knows what was asked for."""
    redis, _ = pair
    fleet = Fleet(quiver, root / "build" / "test-plugins", tmp_path, WithFolder(tmp_path, redis))
    long = lambda text: text.replace('ttl = "1s"', 'ttl = "5m"')
    with Proxy(redis.port) as proxy:
        try:
            a = fleet.add("a", change=long).start()
            fleet.wait_even()
            b = fleet.add("b", weight=0, change=lambda text: long(text).replace(redis.url, proxy.url)).start()
            b.signal(signal.SIGSTOP)
            a.kill()
            wait_until(lambda: "event=guard " in a.log(), "all are free, so that b's first question is enough")
            proxy.lose_replies()
            b.signal(signal.SIGCONT)
            wait_until(lambda: len(b.shards()) == 20, "the store has granted them")
            assert "event=acquired" not in b.log()
            b.kill()  # its guard does not hear anything either, at first
            proxy.heal()
            a.start()
            wait_until(lambda: fleet.counts() == {"a": 20}, "they are given back, long before their time is over")
        finally:
            fleet.close()


def test_a_guard_that_gets_no_answer_asks_again(quiver, root, tmp_path, pair):
    redis, _ = pair
    fleet = Fleet(quiver, root / "build" / "test-plugins", tmp_path, WithFolder(tmp_path, redis))
    with Proxy(redis.port) as proxy:
        try:
            a = fleet.add("a", change=lambda text: text.replace('ttl = "1s"', 'ttl = "5m"').replace(redis.url, proxy.url))
            a.start()
            fleet.wait_even()
            proxy.lose_reply_of(a.nonce.encode())
            a.kill()
            wait_until(lambda: "released=20 " in a.log(), "all are given back, long before their time is over")
            assert proxy.lost_replies == 1
        finally:
            fleet.close()
