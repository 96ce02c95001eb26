"""Where the tasks and the agreements of a run are, and who of those can be hurt."""
import os
import pathlib
import sqlite3
import subprocess

import redis
import redis.crc

from book import now_ns
from etcds import EtcdCluster
from hosts import wait_until
from history import Failover
from servers import RedisCluster, RedisServer, SentinelGroup
from zookeepers import Ensemble

SESSION = "1500ms"
HOME_NS = 2_000_000_000  # a shard whose home was not seen for so long may have another
BUS = 10000  # so much higher is the port on which servers of a Cluster talk to each other
DURABLE = ("--appendonly", "yes", "--appendfsync", "always")


class Backing:
    """What hosts are told, and what the store itself says.  `name` is as on the command line."""

    name = None
    servers = ()  # of the store
    data = ()  # … of these, those that hold tasks
    ensemble = None  # ZooKeeper's, or etcd's
    has_replicas = False  # of every server with tasks; a producer can wait for them

    def __init__(self, folder, shards, world):
        self.folder, self.shards, self.world = pathlib.Path(folder), shards, world
        self.failovers = []
        self.masters = {}  # of a family: who it was
        self.failing_over = set()  # families that have, or had, another one
        self.agreed_ns = {}  # when its replicas had surely all that its master had
        self.homes = {}  # of a shard: {family: when it was last seen there}

    def start(self):
        pass

    def settings(self):
        """The store and coordination groups of a configuration."""
        raise NotImplementedError

    def ports(self):
        """Of the servers that somebody connects to: {name: port}."""
        keepers = self.ensemble.servers if self.ensemble else ()
        return {server.folder.name: server.port for server in (*self.servers, *keepers)}

    def epochs(self):
        """{shard: epoch} as an independent reader sees them; an exception if it cannot be asked."""
        raise NotImplementedError

    def on_their_way(self):
        """Follow-ups that have not yet arrived in their shards."""
        return 0

    def heal(self):
        pass

    def pids(self):
        """Of its servers."""
        keepers = self.ensemble.servers if self.ensemble else ()
        return [server.process.pid for server in (*self.servers, *keepers) if server.process]

    def close(self):
        pass

    def watch(self):
        """Called again and again: notices failovers."""


class Sqlite(Backing):
    """One file, one folder; if we may mount, the file is on a small disk of its own that can be full."""

    name = "sqlite"
    DISK_BYTES = 48 << 20

    def start(self):
        self.disk = self.folder / "disk"
        self.disk.mkdir()
        self.ballast = self.disk / "ballast"
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={self.DISK_BYTES}", "none", self.disk],
                                 stderr=subprocess.DEVNULL) if os.environ.get("QUIVER_CHAOS_MAY_MOUNT") else None
        self.has_disk = mounted is not None and mounted.returncode == 0

    def settings(self):
        return (f'url = "sqlite:{self.disk}/q.db"; synchronous = "normal"; results = {{ max = 1000000; }};',
                f'url = "local:{self.folder}/coordination"; session = "1s";')

    def query(self, words):
        with sqlite3.connect(f"file:{self.disk}/q.db?mode=ro", uri=True, timeout=1) as db:
            return db.execute(words).fetchall()

    def epochs(self):
        return dict(self.query("SELECT shard, epoch FROM shard"))

    def fill_disk(self):
        with open(self.ballast, "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(1 << 16))
            except OSError:
                pass

    def free_disk(self):
        self.ballast.unlink(missing_ok=True)

    def lock(self):
        """Another process holds the file's write lock, as a careless backup would."""
        db = sqlite3.connect(f"{self.disk}/q.db", timeout=5, isolation_level=None, check_same_thread=False)
        try:
            db.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            db.close()
            raise OSError(error) from error
        return db

    def heal(self):
        self.free_disk()

    def close(self):
        if getattr(self, "has_disk", False):
            # What was on it is kept for whoever looks into a failed run.
            kept = self.folder / "disk-kept"
            kept.mkdir()
            self.free_disk()
            subprocess.run(["cp", "-a", f"{self.disk}/.", kept])
            subprocess.run(["umount", "-l", self.disk])


def role_of(server):
    state = state_of(server)
    return state and state[0]


def state_of(server):
    """Its role, and how much it has of all that was ever written; None: it does not answer."""
    if not server.process:
        return None
    try:
        with redis.Redis(host="127.0.0.1", port=server.port, socket_timeout=0.1) as client:
            role, *words = client.execute_command("ROLE")
    except redis.exceptions.RedisError:
        return None
    return role.decode(), words[0] if role == b"master" else words[3] if words[2] == b"connected" else -1


class OnRedis(Backing):
    """What one server, a Sentinel group and a Cluster have in common."""

    session = SESSION
    keepers = None  # who else the hosts need: Ensemble, EtcdCluster

    def start(self):
        if self.keepers:
            self.ensemble = self.keepers(self.folder / "keepers")
            self.introduce({server: server.peer_ports for server in self.ensemble.servers})
            self.ensemble.start()

    @property
    def url(self):
        raise NotImplementedError

    def introduce(self, servers):
        """To the world, before they start: {server: its ports that the others use}.  Their clocks can step, and the links
        between them break."""
        self.world.connect_peers({server.folder.name: ports for server, ports in servers.items()})
        for server in servers:
            server.environment = self.world.environment(server.folder.name)

    def settings(self):
        tree = self.ensemble.url if self.ensemble else "redis"
        return (f'url = "{self.url}"; results = {{ max = 1000000; }};', f'url = "{tree}"; session = "{self.session}";')

    def servers_of(self, keys):
        """Who answers for each of the keys now."""
        raise NotImplementedError

    # Those of which one is master at a time, the others its replicas.
    families = ()

    def watch(self):
        """A failover is another master than before, be it for a moment.  What was acknowledged since the replicas had
        surely everything may be lost, until one says that it is master and all others that they are not: whoever was
        stopped meanwhile still takes it for granted when it wakes, and answers what has piled up."""
        for family in self.families:
            at, states = now_ns(), {}
            # Replicas last: what they have then was there when the master was asked, and before.
            for server in sorted(family, key=lambda s: s is not self.masters.get(family)):
                states[server] = state_of(server)
            masters = [server for server, state in states.items() if state and state[0] == "master"]
            self.agreed_ns.setdefault(family, at)
            if masters and self.masters.setdefault(family, masters[0]) is not masters[-1] or len(masters) > 1:
                self.failing_over.add(family)
            if len(masters) != 1:
                continue
            self.masters[family] = masters[0]
            if family in self.failing_over and all(states.values()):
                self.failing_over.discard(family)
                self.failovers.append(Failover(self.agreed_ns[family], now_ns(), self.shards_of(family)))
            elif family not in self.failing_over and all(
                    state and state[1] >= states[masters[0]][1] for state in states.values()):
                self.agreed_ns[family] = at

    def shards_of(self, family):
        """Those that it has, or had when its servers last agreed; None: all."""
        if len(self.families) == 1:
            return None
        return {shard for shard, homes in self.homes.items() if homes.get(family, 0) >= self.agreed_ns[family] - HOME_NS}

    def epochs(self):
        found = {}
        keys = {shard: f"quiver:{{chaos:{shard}}}:shard" for shard in range(self.shards)}
        servers = self.servers_of(list(keys.values()))
        for server in set(servers.values()):
            family = next((f for f in self.families if server in f), None)
            with redis.Redis(host="127.0.0.1", port=server.port, socket_timeout=0.3) as client:
                for shard, key in keys.items():
                    if servers[key] is not server:
                        continue
                    self.homes.setdefault(shard, {})[family] = now_ns()
                    lease = client.hget(key, "lease")
                    if lease:
                        found[shard] = int(lease.split()[1])
        return found

    def on_their_way(self):
        outboxes = {shard: f"quiver:{{chaos:{shard}}}:outbox" for shard in range(self.shards)}
        return sum(server.do("LLEN", key) for key, server in self.servers_of(list(outboxes.values())).items())

    def heal(self):
        for server in self.servers:
            if server.process:
                server.cont()
            else:
                server.start()
        if self.ensemble:
            for server in self.ensemble.servers:
                if server.process:
                    server.cont()
                else:
                    server.launch()
            self.ensemble.wait()
        wait_until(self.is_whole, "the store is whole again")

    def is_whole(self):
        """Each family has one master, and the others follow it."""
        self.watch()
        return all(sorted(map(str, map(role_of, family))) == ["master", *["slave"] * (len(family) - 1)]
                   for family in self.families)

    def close(self):
        for server in self.servers:
            server.close()
        if self.ensemble:
            self.ensemble.close()


class Single(OnRedis):
    """One server that keeps every write."""

    name = "redis"

    def start(self):
        super().start()
        self.server = RedisServer(self.folder / "redis", *DURABLE)
        self.servers = self.data = [self.server]
        self.introduce({self.server: []})
        self.server.start()

    @property
    def url(self):
        return self.server.url

    def servers_of(self, keys):
        return dict.fromkeys(keys, self.server)


class SingleWithZooKeeper(Single):
    name = "redis+zookeeper"
    keepers = Ensemble


class SingleWithEtcd(Single):
    name = "redis+etcd"
    keepers = EtcdCluster
    session = "2s"


class Sentinel(OnRedis):
    """A master and a replica: asynchronous, so a failover may lose what was acknowledged."""

    name = "sentinel"
    has_replicas = True

    def start(self):
        super().start()
        self.group = SentinelGroup(self.folder / "redis", *DURABLE)
        self.servers = [*self.group.data, *self.group.sentinels]
        self.data = self.group.data
        self.families = [tuple(self.group.data)]
        self.introduce({server: [server.port] for server in self.servers})
        self.group.start()

    @property
    def url(self):
        return self.group.url

    def servers_of(self, keys):
        return dict.fromkeys(keys, next(server for server in self.group.data if role_of(server) == "master"))


class Cluster(OnRedis):
    """Three masters, three replicas."""

    name = "cluster"
    has_replicas = True

    def start(self):
        super().start()
        self.cluster = RedisCluster(self.folder / "redis", *DURABLE)
        self.servers = self.data = self.cluster.nodes
        self.families = list(zip(self.cluster.masters, self.cluster.replicas))
        self.introduce({node: [node.port, node.port + BUS] for node in self.servers})
        self.cluster.start()

    @property
    def url(self):
        return self.cluster.url

    def servers_of(self, keys):
        """By the word of the first who answers."""
        asked = next(node for node in self.cluster.nodes if role_of(node))
        with redis.Redis(host="127.0.0.1", port=asked.port, socket_timeout=0.3) as client:
            ranges = client.execute_command("CLUSTER SLOTS")
        nodes = {node.port: node for node in self.cluster.nodes}
        slots = {key: redis.crc.key_slot(key.encode()) for key in keys}
        return {key: nodes[master[1]] for key, slot in slots.items()
                for first, last, master, *_ in ranges if first <= slot <= last}

    def is_well(self):
        """All answer: then an operator may move slots."""
        return all(role_of(node) for node in self.cluster.nodes)

    def masters_now(self):
        return [node for node in self.cluster.nodes if role_of(node) == "master"]

    def move_slot(self, slot, source, target):
        """As an operator does it; what comes in between may stop it half way."""
        self.cluster.mark(slot, source, target)
        while self.cluster.move_keys(slot, source, target):
            pass
        for node in sorted(self.masters_now(), key=lambda node: (node is not target, node is not source)):
            node.do("CLUSTER SETSLOT", slot, "NODE", self.cluster.ids[target])

    def end_moves(self):
        """Those that were stopped half way, as an operator does it."""
        subprocess.run(["redis-cli", "--cluster", "fix", f"127.0.0.1:{self.masters_now()[0].port}", "--cluster-yes"],
                       capture_output=True, timeout=120)

    def heal(self):
        super().heal()
        self.end_moves()


BACKINGS = {backing.name: backing for backing in (Sqlite, Single, SingleWithZooKeeper, SingleWithEtcd, Sentinel, Cluster)}
