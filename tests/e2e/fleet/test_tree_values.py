"""Others can write to the coordination tree.  Whatever they leave there, no host dies of it, and when it is gone the fleet
is as it was."""
import os
import struct
import zlib

import kazoo.exceptions
import pytest

from backings import OnEtcd, OnRedis, OnZooKeeper, servers
from etcds import decoded
from fleet import Backing, Fleet
from hosts import wait_until

TREE = "quiver:{test:coord}:"
NO_NUMBERS = ["nan", "-nan", "inf", "-inf", "-1", "1e300", "0x10", "1.5", "", "abc", "99999999999999999999"]
SPOILS = 300


class SpoiltFolder(Backing):
    """Bytes of the log, and records that are whole and wrong."""

    def logs(self):
        return sorted(self.folder.glob("coordination/**/log-*"))

    def spoil(self, chance):
        log = chance.choice(self.logs())
        data = log.read_bytes()
        mark, records = data[16:24], data[24:].split(data[16:24])[1:]
        payload = bytearray(chance.choice(records)[8:]) if records else bytearray(20)
        for _ in range(chance.randrange(1, 4)):
            payload[chance.randrange(len(payload))] = chance.choice([0, 1, 2, 5, 6, 7, 127, 255, chance.randrange(256)])
        whole = mark + struct.pack("=II", len(payload), zlib.crc32(payload)) + payload
        with open(log, "r+b") as file:
            if chance.randrange(8):
                file.seek(0, os.SEEK_END)
                file.write(whole)
            else:
                file.seek(chance.randrange(16, len(data)))
                file.write(bytes([chance.randrange(256)]))

    def mend(self):
        for log in self.logs():
            log.unlink()


class SpoiltRedis(OnRedis):
    def spoil(self, chance):
        client = self.client
        key = chance.choice(client.keys(TREE + "*") or [TREE + "node:election"])
        value = chance.choice(NO_NUMBERS)
        field = chance.choice(["data", "version", "created", "owner", "sequence", "nonce", "ttl"])
        words = chance.choice([["HSET", key, field, value]] * 8 + [
            ["SET", key, value], ["DEL", key], ["SADD", key, "x/y", ""], ["ZADD", key, "inf", "5"],
            ["HSET", key, "owner", "0"], ["HSET", key, "sequence", "9999999999"],
            ["HSET", TREE + "node:members/ghost", "created", "5", "version", "0", "owner", "0", "data", value],
            ["SADD", TREE + "children:members", "ghost"], ["SADD", TREE + "children:election", "x-0000000000"]])
        with client.pipeline(transaction=False) as pipe:
            pipe.execute_command(*words)
            pipe.execute(raise_on_error=False)  # of the wrong type, as often as not

    def mend(self):
        keys = self.client.keys(TREE + "*")
        if keys:
            self.client.delete(*keys)


class SpoiltZooKeeper(OnZooKeeper):
    """Nodes with any data and any name; numbers are the server's own."""

    def __init__(self, *words):
        super().__init__(*words)
        self.opened = self.authority.client()
        self.kazoo = self.opened.__enter__()
        self.made = []

    def nodes(self, path):
        found = [path]
        for name in self.kazoo.get_children(path):
            found += self.nodes(f"{path}/{name}")
        return found

    def spoil(self, chance):
        root = f"/{self.root}/test"
        documents = [b"", b"\0" * 100, bytes(chance.randrange(256) for _ in range(200)), b"quiver-assign 1\nslots\n",
                     b"quiver-assign 9\n", b"quiver-member 1\nname x\n", b"quiver-assign 1\ngeneration 9007199254740991\n"
                     b"shards 20\nslots\n0-19 - 9007199254740991 firm\n"]
        try:
            nodes = self.nodes(root)
            if chance.randrange(3):
                node = chance.choice(nodes[1:])
                data = bytearray(self.kazoo.get(node)[0])
                if data and chance.randrange(2):
                    data[chance.randrange(len(data))] = chance.randrange(256)
                    self.kazoo.set(node, bytes(data))
                else:
                    self.kazoo.set(node, chance.choice(documents))
            else:
                name = chance.choice(["election/x-0000000000", "election/garbage", "election/a b", "members/ghost",
                                      "members/ü", "members/" + "x" * 300, "election/x-00000000000000000000"])
                self.kazoo.create(f"{root}/{name}", chance.choice(documents), ephemeral=chance.randrange(2) == 0)
                self.made.append(f"{root}/{name}")
        except (kazoo.exceptions.NoNodeError, kazoo.exceptions.NodeExistsError):
            pass

    def mend(self):
        """Members are made anew by their hosts, who may be at it."""
        members = self.kazoo.get_children(f"/{self.root}/test/members")
        for node in self.made + [f"/{self.root}/test/assign"] + [f"/{self.root}/test/members/{name}" for name in members]:
            try:
                self.kazoo.delete(node)
            except kazoo.exceptions.NoNodeError:
                pass

    def close(self):
        self.opened.__exit__(None, None, None)
        super().close()


class SpoiltEtcd(OnEtcd):
    """Keys with any value and any name, with a lease, somebody else's or none; numbers are the server's own."""

    def kvs(self):
        return self.authority.kvs(f"/{self.root}/test/")

    def spoil(self, chance):
        root = f"/{self.root}/test"
        values = [b"", b"\0" * 100, bytes(chance.randrange(256) for _ in range(200)), b"quiver-assign 1\nslots\n", b"quiver-assign 9\n",
                  b"quiver-member 1\nname x\n", *(text.encode() for text in NO_NUMBERS), b"9999999999", b"0"]
        kvs = self.kvs()
        what = chance.randrange(6)
        if what < 3 and kvs:
            kv = chance.choice(kvs)
            value = bytearray(decoded(kv, "value"))
            if value and chance.randrange(2):
                value[chance.randrange(len(value))] = chance.randrange(256)
            else:
                value = bytearray(chance.choice(values))
            keeps = {"lease": kv["lease"]} if "lease" in kv and chance.randrange(2) else {}
            try:
                self.authority.put(decoded(kv), bytes(value), **keeps)
            except OSError:  # its lease is over
                pass
        elif what == 3 and kvs:
            self.authority.delete(decoded(chance.choice(kvs)))
        else:
            name = chance.choice(["node/2/election/x-0000000000", "node/2/election/garbage", "node/2/election/a b",
                                  "node/2/members/ghost", "node/2/members/ü", "node/2/members/" + "x" * 300,
                                  "node/2/election/x-00000000000000000000", "node/1/members/deeper", "node/99/x",
                                  "node//", "sequence/election", "session/0000000000000001", "odd"])
            self.authority.put(f"{root}/{name}", chance.choice(values))

    def mend(self):
        for kv in self.kvs():
            self.authority.delete(decoded(kv))


@pytest.fixture(scope="module")
def on_etcd(tmp_path_factory):
    with servers(OnEtcd, tmp_path_factory.mktemp("servers")) as made:
        yield made


@pytest.fixture(scope="module")
def on_redis(tmp_path_factory):
    with servers(OnRedis, tmp_path_factory.mktemp("servers")) as made:
        yield made


@pytest.fixture(scope="module")
def on_zookeeper(tmp_path_factory):
    with servers(OnZooKeeper, tmp_path_factory.mktemp("servers")) as made:
        yield made


@pytest.fixture
def fleet_on(quiver, root, tmp_path, request):
    fleets = []

    def make(kind):
        pair = request.getfixturevalue({SpoiltRedis: "on_redis", SpoiltZooKeeper: "on_zookeeper", SpoiltEtcd: "on_etcd"}[kind]) \
            if kind is not SpoiltFolder else ()
        fleets.append(Fleet(quiver, root / "build" / "test-plugins", tmp_path, kind(tmp_path, *pair)))
        return fleets[-1]

    yield make
    for fleet in fleets:
        fleet.close()


def assert_alive(fleet):
    for member in fleet.members.values():
        assert member.process.poll() is None, f"{member.name} ended with {member.process.returncode}:\n{member.log()[-4000:]}"


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_a_second_host_joins_whatever_number_the_election_is_at(fleet_on, value):
    fleet = fleet_on(SpoiltRedis)
    fleet.start("a")
    fleet.wait_even()
    fleet.backing.client.hset(TREE + "node:election", "sequence", value)
    fleet.start("b")
    fleet.wait_even()
    assert_alive(fleet)
    assert sum(m.leads() for m in fleet.living()) == 1
    fleet.leader().kill()
    wait_until(lambda: list(fleet.counts().values()) == [20], "the other leads and has all")
    if value:
        assert "coordination-value" in fleet.members["b"].log() and "sequence" in fleet.members["b"].log()


@pytest.mark.parametrize("kind", [SpoiltFolder, SpoiltRedis, SpoiltZooKeeper, SpoiltEtcd],
                         ids=["local", "redis", "zookeeper", "etcd"])
def test_hosts_outlive_whatever_is_written_to_the_tree(fleet_on, chance, kind):
    fleet = fleet_on(kind)
    fleet.start("a", "b")
    fleet.wait_even()
    for step in range(SPOILS):
        fleet.backing.spoil(chance)
        if step % 100 == 50:
            fleet.add(f"late{step}").start(is_ready=False)
        assert_alive(fleet)
    for name in list(fleet.members):
        if name.startswith("late"):
            fleet.members[name].kill()
            del fleet.members[name]
    fleet.backing.mend()
    fleet.wait_even(120)
    assert_alive(fleet)
