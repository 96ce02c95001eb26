"""Quiver on one Redis server of its own, over a unix socket, and the bare limit of that server."""
import redis  # python3-redis

from place import THREADS, Place, words
from processes import TOOLS, Stuck, output, running, start, stop, wait_until

LEVELS = {"appendonly no": ("--appendonly", "no"),
          "appendfsync everysec": ("--appendonly", "yes"),
          "appendfsync always": ("--appendonly", "yes", "--appendfsync", "always")}


# One script, since there is one server: a hundred commands would cost a reader in Python more than the server.
DONE_OF_ALL = """local done = {}
for i = 1, ARGV[1] do done[i] = tonumber(redis.call('HGET', 'quiver:{bench:' .. (i - 1) .. '}:shard', 'done') or 0) end
return done"""


class Redis:
    """A server.  Without persistence unless told otherwise: that is what the bars are for."""

    def __init__(self, folder, *more):
        self.socket, self.log = folder / "redis.sock", folder / "redis.log"
        self.process = start(["redis-server", "--port", "0", "--unixsocket", self.socket, "--save", "", "--dir", folder,
                              *(more or LEVELS["appendonly no"])], self.log)

    def wait(self):
        wait_until(lambda: self.is_up() or self.process.poll() is not None, "Redis answers")
        if self.process.poll() is not None:
            raise Stuck(f"redis-server ended:\n{self.log.read_text()[-1000:]}")
        return self

    def is_up(self):
        return self.socket.exists() and self.cli("PING").strip() == "PONG"

    def cli(self, *what):
        try:
            return output(["redis-cli", "-s", self.socket, *what], 60)
        except Stuck:
            return ""

    def info(self, section, field):
        for line in self.cli("INFO", section).splitlines():
            if line.startswith(f"{field}:"):
                return line.split(":", 1)[1]
        return "0"


class OnRedis(Place):
    name, levels = "redis", tuple(LEVELS)
    bare_name = "bare limit"
    spread_name = "bare with envelopes over all lists"
    pipelines = (THREADS, 100)
    bare_latency_name = "RPUSH to BLPOP"
    client = server = None

    def open(self):
        self.server = Redis(self.folder, *LEVELS[self.level])
        self.server.wait()

    def close(self):
        super().close()
        if self.client:
            self.client.close()
        if self.server:
            stop(self.server.process)

    def url(self):
        return f'url = "redis+unix:{self.server.socket}";'

    def servers(self):
        return {"Redis": self.server.process.pid}

    def redis_load(self, what, tasks, **load):
        return [TOOLS / "redis_load", self.server.socket, what, *words({"tasks": tasks, "shards": self.shards, **load})]

    def load(self, what, tasks, **load):
        return output(self.redis_load(what, tasks, **load))

    def bare(self, tasks, **load):
        """Payloads without an envelope, in one list."""
        return float(self.load("bare", tasks, **load))

    def bare_spread(self, tasks):
        """What Quiver's producer sends, in as many lists."""
        return float(self.load("spread", tasks, app="bare"))

    def bare_latencies(self, count):
        """One RPUSH to one BLPOP."""
        return [float(line) for line in self.load("echo", count, rate=200).split()]

    def through(self, tasks, **load):
        return float(self.load("through", tasks, **load))

    def producer(self, tasks, **load):
        """Pipelines of RPUSH."""
        return self.redis_load("push", tasks, **load)

    def drain(self, tasks):
        with running(self.redis_load("drain", tasks)) as waiting:
            if waiting.stdout.readline().strip() == "ready":
                self.start()
            said = waiting.stdout.read()
            if not said:
                raise Stuck(waiting.stderr.read().strip())
            return float(said)

    def done_of(self):
        self.client = self.client or redis.Redis(unix_socket_path=str(self.server.socket))
        return self.client.eval(DONE_OF_ALL, 0, self.shards)

    def stored_bytes(self):
        return int(self.server.info("memory", "used_memory"))

    def more_submits(self, tasks):
        """What any language can do with a stock client."""
        return (("submit: RPUSH, one by one", self.push(tasks // 10, step=1), tasks // 10),
                ("submit: RPUSH, pipelines of 100", self.push(tasks), tasks))

    def more_rows(self, tasks):
        self.server.cli("CONFIG", "RESETSTAT")
        self.through(tasks)
        calls = self.server.info("commandstats", "cmdstat_evalsha").split(",")[0].split("=")[1]
        return (("tasks per call of a script", tasks / int(calls), ""),)

