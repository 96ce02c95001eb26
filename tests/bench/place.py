"""A place to measure: a store, the hosts on it, and producers.  on_redis.py and on_sqlite.py make it one of theirs."""
import contextlib
import json
import zlib

from processes import BUILD, QUIVER, TOOLS, Folder, Stuck, children, cpu_seconds, output, start, stop, wait_until

SHARDS = 64
KEYS = 10000
PAYLOAD = 100
THREADS = 16  # of a program that submits one by one from many threads

CONFIG = """
app = "bench"; shards = {shards}; state = "{folder}/{name}"; plugins = "{plugins}";
host = {{ name = "{name}"; }};
store = {{ {store} }};
coordination = {{ url = "local:{folder}/coordination"; }};
{more}
handlers = {{ noop = {{ plugin = "noop.so"; {handler} config = {{ {settings} }}; }}; }};
"""


def words(load):
    """Options of the producers, load/load.h, from names and values."""
    return [str(word) for name, value in load.items() for word in (f"--{name}", value)]


def shard_of(key, shards=SHARDS):
    return zlib.crc32(key.encode()) % shards


class Host:
    """`quiver run` with a no-op handler and all else as it is by default."""

    def __init__(self, folder, name, **settings):
        self.config, self.log = folder / f"{name}.cfg", folder / f"{name}.log"
        self.config.write_text(CONFIG.format(folder=folder, name=name, plugins=BUILD / "test-plugins", **settings))
        self.process = None

    def starts(self):
        return self.log.read_text().count("event=running") if self.log.exists() else 0

    def start(self):
        before = self.starts()
        self.process = start([QUIVER, "run", "-c", self.config], self.log)
        wait_until(lambda: self.starts() > before or self.process.poll() is not None, f"the host of {self.config} runs")
        if self.process.poll() is not None:
            raise Stuck(f"the host ended:\n{self.log.read_text()[-2000:]}")

    def runners(self):
        return [pid for pid, line in children(self.process.pid).items() if " runner " in line]


class Place:
    """What stores have in common.  `level` is how durable: the first of `levels` is what the bars are for.

    `handler` has settings of the handler, `settings` those of the plugin, `more` others of the host, as text."""

    name, levels, bare_name, bare_latency_name = "", (), "", ""
    spread_name = ""  # of a limit with what Quiver's producer sends; "": there is none
    pipelines = ()  # what single submits are compared with: so many at once, in the plainest way that the store has

    def __init__(self, folder, level=None, shards=SHARDS, hosts=1, handler="", settings="", more="", with_latencies=False):
        self.folder, self.level, self.shards = folder, level or self.levels[0], shards
        if with_latencies:
            settings += f'latencies = "{folder}/latencies";'
        self.wanted = [(f"host-{i}", {"shards": shards, "handler": handler, "settings": settings, "more": more}) for i in range(hosts)]
        self.hosts = []

    # What each store does in its own way.

    def open(self):
        """Starts what the store needs."""
        raise NotImplementedError

    def url(self):
        """The store's settings, as text."""
        raise NotImplementedError

    def servers(self):
        """{name: pid}"""
        return {}

    def bare(self, tasks, **load):
        """Seconds of the bare limit."""
        raise NotImplementedError

    def bare_latencies(self, count):
        """What stands for a latency without Quiver, in ms."""
        raise NotImplementedError

    def done_of(self):
        """The counter of each shard, as an independent reader sees it."""
        raise NotImplementedError

    def through(self, tasks, **load):
        """Seconds from the first submit until all are done."""
        raise NotImplementedError

    def producer(self, tasks, **load):
        """The words of a program that submits in the quickest way that the store has, and prints how many seconds it took."""
        raise NotImplementedError

    def drain(self, tasks):
        """Starts the hosts, which find so many tasks.  Seconds from the first one done on."""
        raise NotImplementedError

    def stored_bytes(self):
        """What the store takes, now."""
        raise NotImplementedError

    def more_submits(self, tasks):
        """Ways to submit that only this store has: (what, seconds, tasks) each."""
        return ()

    def more_rows(self, tasks):
        """What else there is to say after so many tasks: (what, value, unit) each."""
        return ()

    # What is the same for all.

    def start(self):
        if not self.hosts:
            self.hosts = [Host(self.folder, name, store=self.url(), **more) for name, more in self.wanted]
        for host in self.hosts:
            host.start()
        if len(self.hosts) > 1:
            wait_until(self.is_even, "the hosts share the shards evenly", 60, 0.1)
        return self

    def is_even(self):
        said = json.loads(output([QUIVER, "members", "--json", "-c", self.hosts[0].config], 60))
        counts = [member.get("shards", 0) for member in said["members"]]
        return len(counts) == len(self.hosts) and sum(counts) == self.shards and max(counts) - min(counts) <= 1

    def stop(self):
        for host in self.hosts:
            stop(host.process)

    def close(self):
        self.stop()

    def make(self):
        """The store, and nobody at work."""
        self.start().stop()
        return self

    def warm(self, tasks=20000):
        self.through(tasks)
        return self

    def done(self):
        return sum(self.done_of())

    def push(self, tasks, **load):
        """Seconds to submit."""
        return float(output(self.producer(tasks, **load)))

    def client_load(self, tasks, **load):
        return [TOOLS / "client_load", self.hosts[0].config, "push", *words({"tasks": tasks, **load})]

    def submit(self, tasks, **load):
        """Seconds to submit with the client library."""
        return float(output(self.client_load(tasks, **load)))

    def cpu(self):
        """CPU seconds so far of those who take part."""
        pids = {**{name: [pid] for name, pid in self.servers().items()}, "the host": [h.process.pid for h in self.hosts],
                "the runner": [pid for host in self.hosts for pid in host.runners()]}
        return {name: sum(map(cpu_seconds, of_it)) for name, of_it in pids.items()}

    def latencies_ms(self):
        path = self.folder / "latencies"
        return [int(line) / 1e6 for line in path.read_text().split()] if path.exists() else []

    def how(self, more=""):
        return f"{self.level}, {KEYS} keys, {self.shards} shards{more}"


@contextlib.contextmanager
def opened(kind, **settings):
    with Folder() as folder:
        place = kind(folder, **settings)
        try:
            place.open()
            yield place
        finally:
            place.close()

