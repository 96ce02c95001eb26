"""Quiver on one Redis server, next to the bare limit in the same run."""
import contextlib
import statistics
import subprocess
import time

from rig import (Folder, Host, KEYS, SHARDS, TOOLS, cpu_seconds, measure_hot, measure_idle, measure_memory, share, start, stop, tool,
                 wait_until)

WARM = 100
LARGE = 5000000


class Redis:
    """A server of our own on a unix socket.  Without persistence unless told otherwise: that is what the bars are for."""

    def __init__(self, folder, *more):
        self.socket = folder / "redis.sock"
        self.process = start(["redis-server", "--port", "0", "--unixsocket", self.socket, "--save", "", "--dir", folder,
                              *(more or ("--appendonly", "no"))], folder / "redis.log")
        wait_until(lambda: self.is_up(), "Redis answers")

    def is_up(self):
        return self.socket.exists() and self.cli("PING").strip() == "PONG"

    def cli(self, *words):
        return subprocess.run(["redis-cli", "-s", self.socket, *map(str, words)], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True).stdout

    def info(self, section, field):
        for line in self.cli("INFO", section).splitlines():
            if line.startswith(f"{field}:"):
                return line.split(":", 1)[1]
        return "0"

    def load(self, *words):
        return tool("redis_load", self.socket, *words)

    def begin(self, *words):
        """The same on the side: a process whose output is to be read."""
        return subprocess.Popen([TOOLS / "redis_load", self.socket, *map(str, words)], stdout=subprocess.PIPE, text=True)

    def seconds(self, *words):
        return float(self.load(*words))


@contextlib.contextmanager
def site(shards=SHARDS, redis=()):
    with Folder() as folder:
        server = Redis(folder, *redis)
        host = Host(folder, f'url = "redis+unix:{server.socket}";', shards)
        try:
            yield server, host
        finally:
            host.stop()
            stop(server.process)


def done_of(server, shards=SHARDS):
    import redis  # python3-redis
    client = redis.Redis(unix_socket_path=str(server.socket))

    def done():
        pipe = client.pipeline(transaction=False)
        for shard in range(shards):
            pipe.hget(f"quiver:{{bench:{shard}}}:shard", "done")
        return [int(value or 0) for value in pipe.execute()]
    return done


def rates(server, tasks, shards, rounds):
    """Bare and Quiver's in turns, so that both see the same weather.  Returns both lists."""
    bare, through = [], []
    for _ in range(rounds):
        bare.append(tasks / server.seconds("bare", "bare", tasks, KEYS, shards))
        through.append(tasks / server.seconds("through", "bench", tasks, KEYS, shards))
    return bare, through


def measure_through(table, options):
    tasks, how = options.tasks, f"appendonly no, {KEYS} keys uniform, {SHARDS} shards"
    with site() as (server, host):
        host.start()
        server.seconds("through", "bench", 20000, KEYS, SHARDS)
        cpus = [cpu_seconds(p) for p in (server.process.pid, host.process.pid, host.runner())]
        bare, through = rates(server, tasks, SHARDS, options.rounds)
        table.add("redis", "bare limit", max(bare), "tasks/s", how=f"appendonly no; best of {options.rounds}")
        table.add("redis", "end to end", max(through), "tasks/s", how=f"{how}; best of {options.rounds}")
        table.add("redis", "end to end / bare limit", max(through) / max(bare), "", bar=0.5, how="best / best")
        table.add("redis", "end to end / bare limit, round by round",
                  statistics.median(q / b for q, b in zip(through, bare)), "", bar=0.5, how="median of the rounds' ratios")
        before = cpu_seconds(server.process.pid)
        server.seconds("bare", "bare", tasks, KEYS, SHARDS)
        table.add("redis", "CPU of Redis, bare", (cpu_seconds(server.process.pid) - before) / tasks * 1e6, "us/task")
        server.cli("CONFIG", "RESETSTAT")
        cpus = [cpu_seconds(p) for p in (server.process.pid, host.process.pid, host.runner())]
        server.seconds("through", "bench", tasks, KEYS, SHARDS)
        after = [cpu_seconds(p) for p in (server.process.pid, host.process.pid, host.runner())]
        for name, a, b in zip(("Redis", "the host", "the runner"), cpus, after):
            table.add("redis", f"CPU of {name}, end to end", (b - a) / tasks * 1e6, "us/task", how=how)
        calls = server.info("commandstats", "cmdstat_evalsha").split(",")[0].split("=")[1]
        table.add("redis", "tasks per call of a script", tasks / int(calls), "")
        measure_memory(table, "redis", host, how)


def measure_drain(table, options):
    """A backlog that is there before the host is.  One of 10 000 is over before one can look: the small one is larger."""
    found = {}
    for queued in (options.tasks, LARGE) if options.long else (options.tasks,):
        with site() as (server, host):
            host.start().stop()
            memory = int(server.info("memory", "used_memory"))
            server.seconds("push", "bench", queued, KEYS, SHARDS)
            each = (int(server.info("memory", "used_memory")) - memory) / queued - 100
            with server.begin("drain", "bench", queued, SHARDS) as drain:
                host.start()
                found[queued] = queued / float(drain.stdout.read())
        table.add("redis", f"drain: {queued} queued", found[queued], "tasks/s", how=f"{KEYS} keys uniform, {SHARDS} shards")
        table.add("redis", f"memory per queued task beyond its payload, {queued}", each, "bytes", bar=100, at_least=False,
                  how="used_memory")
    if options.long:
        table.add("redis", f"drain: {LARGE} queued / {options.tasks} queued", found[LARGE] / found[options.tasks], "", bar=0.8)


def measure_shards(table, options):
    found = {}
    for shards in (64, 1024):
        with site(shards) as (server, host):
            host.start()
            server.seconds("through", "bench", 20000, KEYS, shards)
            found[shards] = max(options.tasks / server.seconds("through", "bench", options.tasks, KEYS, shards)
                                for _ in range(options.rounds))
            table.add("redis", f"end to end: {shards} shards", found[shards], "tasks/s", how=f"best of {options.rounds}")
    table.add("redis", "end to end: 1024 shards / 64 shards", found[1024] / found[64], "", bar=0.4)


def measure_hot_key(table, options):
    with site() as (server, host):
        host.start()
        measure_hot(table, "redis", host,
                    lambda n: server.seconds("push", "bench", n, 1, SHARDS),
                    lambda n: server.seconds("push", "bench", n, KEYS, SHARDS, "hot"),
                    done_of(server), "appendonly no", options.tasks)


def measure_latency(table, options):
    with site() as (server, host):
        bare = [float(line) for line in server.load("echo", options.singles).split()]
        host.start(with_latencies=True)
        server.seconds("singles", "bench", WARM + options.singles, SHARDS)
        wait_until(lambda: len(host.latencies_ms(0)) >= WARM + options.singles, "all were handled")
        found = host.latencies_ms(WARM)
        how = f"{options.singles} single submits, 2 ms apart"
        table.add("redis", "idle latency, bare: RPUSH to BLPOP, p50", share(bare, .5), "ms", how=how)
        table.add("redis", "idle latency, bare: RPUSH to BLPOP, p99", share(bare, .99), "ms", how=how)
        table.add("redis", "idle latency: RPUSH to handle(), p50", share(found, .5), "ms", bar=.3, at_least=False, how=how)
        table.add("redis", "idle latency: RPUSH to handle(), p99", share(found, .99), "ms", bar=1, at_least=False, how=how)


def measure_quiet(table, options):
    with site() as (server, host):
        alone = measure_idle([server.process.pid], options.idle_s)
        host.start()
        server.seconds("through", "bench", 1000, KEYS, SHARDS)
        both = measure_idle([server.process.pid, host.process.pid], options.idle_s)
        how = f"over {options.idle_s} s, {SHARDS} shards"
        table.add("redis", "idle CPU of Redis alone, without a host", alone, "% of one", how=how)
        table.add("redis", "idle CPU of host and Redis", both, "% of one", bar=.5, at_least=False, how=how)


def measure_durable(table, options):
    for name, settings in (("everysec", ("--appendonly", "yes")),
                           ("always", ("--appendonly", "yes", "--appendfsync", "always"))):
        with site(redis=settings) as (server, host):
            host.start()
            tasks = options.tasks if name == "everysec" else options.tasks // 4
            bare, through = rates(server, tasks, SHARDS, 2)
            table.add("redis", f"end to end, appendfsync {name}", max(through), "tasks/s", how="best of 2")
            table.add("redis", f"… / bare limit, appendfsync {name}", max(through) / max(bare), "")


PARTS = {"through": measure_through, "drain": measure_drain, "shards": measure_shards, "hot": measure_hot_key,
         "latency": measure_latency, "idle": measure_quiet, "durable": measure_durable}
