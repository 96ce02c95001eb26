"""Where the tasks and the agreements of a run are, and who of those can be hurt."""
import os
import pathlib
import sqlite3
import subprocess

import redis

from book import now_ns
from hosts import wait_until
from history import Failover
from proxy import Proxy
from servers import RedisCluster, RedisServer, SentinelGroup
from zookeepers import Ensemble

SESSION = "1500ms"
MARGIN_NS = 500_000_000
DURABLE = ("--appendonly", "yes", "--appendfsync", "always")


class Backing:
    """What hosts are told, and what the store itself says.  `name` is as on the command line."""

    name = None
    servers = ()  # of the store
    ensemble = None  # ZooKeeper's
    proxies = {}  # of a host's name (None: of all outside): what stands between it and the store

    def __init__(self, folder, shards):
        self.folder, self.shards = pathlib.Path(folder), shards
        self.failovers = []
        self.masters = {}  # of a family: who it was, and when it was last seen
        self.claims = {}  # who said since then that it is

    def start(self):
        pass

    def settings(self, host):
        """The store and coordination groups of one host; None: of a producer or consumer."""
        raise NotImplementedError

    def epochs(self):
        """{shard: epoch} as an independent reader sees them; an exception if it cannot be asked."""
        raise NotImplementedError

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

    def settings(self, host):
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
    if not server.process:
        return None
    try:
        with redis.Redis(host="127.0.0.1", port=server.port, socket_timeout=0.1) as client:
            return client.execute_command("ROLE")[0].decode()
    except redis.exceptions.RedisError:
        return None


class OnRedis(Backing):
    """What one server, a Sentinel group and a Cluster have in common."""

    with_zookeeper = False

    def start(self):
        if self.with_zookeeper:
            self.ensemble = Ensemble(self.folder / "zookeeper").start()

    def url(self, host):
        raise NotImplementedError

    def settings(self, host):
        tree = self.ensemble.url if self.ensemble else "redis"
        return (f'url = "{self.url(host)}"; results = {{ max = 1000000; }};', f'url = "{tree}"; session = "{SESSION}";')

    def server_of(self, key):
        """Who answers for a key now."""
        raise NotImplementedError

    # Those of which one is master at a time, the others its replicas.
    families = ()

    def watch(self):
        """A failover is another master than before, be it for a moment.  From the last time at which there was one, and
        no other, until that is so again, the store may have lost what it acknowledged."""
        for family in self.families:
            masters = [server for server in family if role_of(server) == "master"]
            claims = self.claims.setdefault(family, set())
            claims.update(masters)
            if len(masters) != 1:
                continue
            at, before = now_ns(), self.masters.get(family)
            if before and claims != {before[0]}:
                self.failovers.append(Failover(before[1] - MARGIN_NS, at + MARGIN_NS))
            self.masters[family] = (masters[0], at)
            self.claims[family] = set()

    def epochs(self):
        found = {}
        for shard in range(self.shards):
            key = f"quiver:{{chaos:{shard}}}:shard"
            server = self.server_of(key)
            with redis.Redis(host="127.0.0.1", port=server.port, socket_timeout=0.3) as client:
                lease = client.hget(key, "lease")
            if lease:
                found[shard] = int(lease.split()[1])
        return found

    def heal(self):
        for proxy in self.proxies.values():
            proxy.heal()
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
        for proxy in self.proxies.values():
            proxy.close()
        for server in self.servers:
            server.close()
        if self.ensemble:
            self.ensemble.close()


class Single(OnRedis):
    """One server that keeps every write; a proxy between it and each host, and one for everybody outside."""

    name = "redis"

    def start(self):
        super().start()
        self.server = RedisServer(self.folder / "redis", *DURABLE).start()
        self.servers = [self.server]
        self.proxies = {}

    def url(self, host):
        if host not in self.proxies:
            self.proxies[host] = Proxy(self.server.port)
        return self.proxies[host].url

    def server_of(self, key):
        return self.server


class SingleWithZooKeeper(Single):
    name = "redis+zookeeper"
    with_zookeeper = True


class Sentinel(OnRedis):
    """A master and a replica: asynchronous, so a failover may lose what was acknowledged."""

    name = "sentinel"

    def start(self):
        super().start()
        self.group = SentinelGroup(self.folder / "redis", *DURABLE)
        self.servers = [*self.group.data, *self.group.sentinels]
        self.families = [tuple(self.group.data)]
        self.group.start()

    def url(self, host):
        return self.group.url

    def server_of(self, key):
        return next(server for server in self.group.data if role_of(server) == "master")


class Cluster(OnRedis):
    """Three masters, three replicas."""

    name = "cluster"

    def start(self):
        super().start()
        self.cluster = RedisCluster(self.folder / "redis", *DURABLE)
        self.servers = self.cluster.nodes
        self.families = list(zip(self.cluster.masters, self.cluster.replicas))
        self.cluster.start()

    def url(self, host):
        return self.cluster.url

    def server_of(self, key):
        """By the word of the first who answers."""
        asked = next(node for node in self.cluster.nodes if role_of(node))
        with redis.Redis(host="127.0.0.1", port=asked.port, socket_timeout=0.3) as client:
            slot = client.execute_command("CLUSTER KEYSLOT", key)
            for first, last, master, *_ in client.execute_command("CLUSTER SLOTS"):
                if first <= slot <= last:
                    return next(node for node in self.cluster.nodes if node.port == master[1])
        raise LookupError(key)

    def is_well(self):
        """All answer: then an operator may move slots."""
        return all(role_of(node) for node in self.cluster.nodes)


BACKINGS = {backing.name: backing for backing in (Sqlite, Single, SingleWithZooKeeper, Sentinel, Cluster)}
