"""Where the tasks and the agreements of a fleet are, when it is not a file and a folder: Redis, and ZooKeeper, etcd or Redis.

What the store holds is read with an independent client, by the schema in runtime/store/redis/README.md."""
import contextlib

from etcds import Etcd
from fleet import Backing
from servers import RedisServer
from zookeepers import ZooKeeper

SESSION = "1500ms"


def durable_redis(folder):
    """One that has everything again after it died."""
    return RedisServer(folder, "--appendonly", "yes", "--appendfsync", "always")


class RedisStore(Backing):
    """Tasks in one Redis."""

    def __init__(self, folder, redis):
        self.folder, self.redis = folder, redis
        self.client = redis.client(decode_responses=True)
        self.client.flushall()
        self.store = f'url = "{redis.url}";'

    def _each(self, ask):
        """What `ask(pipeline, prefix)` brings, of every shard in order."""
        with self.client.pipeline(transaction=False) as pipe:
            for shard in range(int(self.client.hget("quiver:{test}:app", "shards") or 0)):
                ask(pipe, f"quiver:{{test:{shard}}}:")
            return pipe.execute()

    def _field(self, name):
        return self._each(lambda pipe, prefix: pipe.hget(f"{prefix}shard", name))

    def _leases(self):
        """Per shard: held or free, epoch, nonce; those that nobody ever held are missing."""
        return {shard: lease.split() for shard, lease in enumerate(self._field("lease")) if lease}

    def owners(self):
        return {shard: nonce for shard, (state, _, nonce) in self._leases().items() if state == "held"}

    def epochs(self):
        return {shard: int(epoch) for shard, (_, epoch, _) in self._leases().items()}

    def sum(self, what):
        return sum(int(value or 0) for value in self._field(what))

    def dead(self):
        return sum(self._each(lambda pipe, prefix: pipe.hlen(f"{prefix}dead")))

    def close(self):
        self.client.close()


class OnAuthority(RedisStore):
    """The agreements are elsewhere than the tasks."""

    scheme = session = None

    def __init__(self, folder, redis, authority):
        super().__init__(folder, redis)
        self.authority = authority
        self.root = folder.name
        self.url = f"{self.scheme}://127.0.0.1:{authority.port}/{self.root}"
        self.elsewhere = f"{self.scheme}://127.0.0.1:{authority.port}/elsewhere"
        self.coordination = f'url = "{self.url}"; session = "{self.session}";'


class OnZooKeeper(OnAuthority):
    name = "redis+zookeeper"
    scheme, session = "zookeeper", SESSION


class OnEtcd(OnAuthority):
    name = "redis+etcd"
    scheme, session = "etcd", "2s"


class OnOtherRedis(RedisStore):
    """The agreements have a Redis of their own, so that it can fail alone."""

    name = "redis+redis"

    def __init__(self, folder, redis, authority):
        super().__init__(folder, redis)
        self.authority = authority
        authority.do("FLUSHALL")
        self.url = authority.url
        self.elsewhere = f"{authority.url}/1"
        self.coordination = f'url = "{self.url}"; session = "{SESSION}";'


class OnRedis(RedisStore):
    """One Redis for everything."""

    name = "redis+redis"

    def __init__(self, folder, redis, _):
        super().__init__(folder, redis)
        self.authority = redis
        self.url = "redis"
        self.elsewhere = f"{redis.url}/1"
        self.coordination = f'url = "redis"; session = "{SESSION}";'


class OnCluster(RedisStore):
    """Tasks in a Cluster, agreements in a folder."""

    name = "cluster+local"

    def __init__(self, folder, cluster):
        self.folder, self.cluster = folder, cluster
        self.client = cluster.client(decode_responses=True)
        self.store = f'url = "{cluster.url}";'
        self.coordination = f'url = "local:{folder}/coordination"; session = "1s";'


@contextlib.contextmanager
def servers(kind, folder):
    """A Redis for the tasks, and whom `kind` needs for the agreements; (None: the same)."""
    with durable_redis(folder / "redis") as redis:
        if kind is OnRedis:
            yield redis, None
        else:
            authorities = {"redis+zookeeper": ZooKeeper, "redis+etcd": Etcd}
            with authorities.get(kind.name, durable_redis)(folder / "authority") as authority:
                yield redis, authority
