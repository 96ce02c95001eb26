"""Real Redis servers for the end-to-end tests: one, a Sentinel group, a Cluster.

Each is a child of the test on a free loopback port, with a folder of its own; ended by its pid, and by the kernel if the
test dies.  Every start waits until the server answers.
"""
import contextlib
import ctypes
import pathlib
import random
import signal
import socket
import subprocess
import time

import redis

from hosts import wait_until

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


def is_free(port):
    with contextlib.closing(socket.socket()) as one:
        try:
            one.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def free_port():
    """A port that was free a moment ago, and the one 10000 above it, for a Cluster's servers among themselves.

    Below those that the kernel gives to clients: a server that is started again would find its own taken.
    """
    while True:
        port = random.randrange(10000, 22000)
        if is_free(port) and is_free(port + 10000):
            return port


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Server:
    """A redis-server or redis-sentinel, started again and again if need be on the same port and folder."""

    environment = None  # another than ours

    def __init__(self, folder, password=None):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.password = password
        self.process = None

    def command(self):
        raise NotImplementedError

    def start(self):
        assert self.process is None, "it runs already"
        with open(self.folder / "output", "ab") as output:
            self.process = subprocess.Popen(self.command(), stdout=output, stderr=output, cwd=self.folder,
                                            env=self.environment, preexec_fn=die_with_parent)
        wait_until(self.answers, f"{self.folder.name} answers on port {self.port}")
        return self

    def answers(self):
        assert self.process.poll() is None, f"it ended:\n{self.log()}"
        try:
            with self.client() as client:
                return client.execute_command("PING")
        except redis.exceptions.BusyLoadingError:
            return False
        except (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError):
            return False

    def log(self):
        return "".join(path.read_text(errors="replace") for path in (self.folder / "output", self.folder / "log")
                       if path.exists())

    def client(self, **options):
        """An independent client (python3-redis); closed by whoever asked."""
        return redis.Redis(host="127.0.0.1", port=self.port, password=self.password, socket_timeout=20, **options)

    def do(self, *words):
        with self.client() as client:
            return client.execute_command(*words)

    def info(self, name):
        return self.do("INFO").get(name)

    def end(self, number):
        if self.process is None:
            return
        self.process.send_signal(signal.SIGCONT)
        self.process.send_signal(number)
        self.process.wait(20)
        self.process = None

    def stop(self):
        """As `systemctl stop` does."""
        self.end(signal.SIGTERM)

    def kill9(self):
        self.end(signal.SIGKILL)

    def restart(self):
        self.stop()
        return self.start()

    def pause(self):
        """It hangs: connections stay, nothing is answered."""
        self.process.send_signal(signal.SIGSTOP)

    def cont(self):
        self.process.send_signal(signal.SIGCONT)

    def close(self):
        self.kill9()

    def __enter__(self):
        return self if self.process else self.start()

    def __exit__(self, *_):
        self.close()


class RedisServer(Server):
    """One server.  `options` are words of its command line: "--appendonly", "yes"."""

    def __init__(self, folder, *options, password=None):
        super().__init__(folder, password)
        self.options = [str(word) for word in options]
        self.socket = self.folder / "redis.sock"
        self.url = f"redis://127.0.0.1:{self.port}"
        self.unix_url = f"redis+unix:{self.socket}"

    def command(self):
        password = ["--requirepass", self.password, "--masterauth", self.password] if self.password else []
        return ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--unixsocket", str(self.socket),
                "--dir", str(self.folder), "--logfile", "log", "--save", "", "--enable-debug-command", "yes",
                "--repl-diskless-sync-delay", "0", *password, *self.options]

    def is_in_step(self):
        """As a replica: it has what its master has.  While it begins to follow it drops its clients: not yet."""
        try:
            return self.info("master_link_status") == "up"
        except redis.exceptions.ConnectionError:
            return False


class Sentinel(Server):
    def __init__(self, folder, name, master, password=None):
        super().__init__(folder, password)
        lines = [f"port {self.port}", f"dir {self.folder}", "logfile log", "bind 127.0.0.1",
                 f"sentinel monitor {name} 127.0.0.1 {master.port} 2",
                 f"sentinel down-after-milliseconds {name} 1000", f"sentinel failover-timeout {name} 1000"]
        if master.password:
            lines.append(f"sentinel auth-pass {name} {master.password}")
        if password:
            lines += [f"requirepass {password}", f"sentinel sentinel-pass {password}"]
        (self.folder / "sentinel.conf").write_text("\n".join(lines) + "\n")

    def command(self):
        return ["redis-sentinel", str(self.folder / "sentinel.conf")]


class SentinelGroup:
    """A master, a replica, and three Sentinels that call a master dead after a second."""

    def __init__(self, folder, *options, password=None, sentinel_password=None, name="main"):
        folder = pathlib.Path(folder)
        self.name = name
        self.password, self.sentinel_password = password, sentinel_password
        first = RedisServer(folder / "a", *options, password=password)
        second = RedisServer(folder / "b", "--replicaof", "127.0.0.1", first.port, *options, password=password)
        self.data = [first, second]
        self.sentinels = [Sentinel(folder / f"sentinel-{i}", name, first, sentinel_password) for i in range(3)]
        hosts = ",".join(f"127.0.0.1:{sentinel.port}" for sentinel in self.sentinels)
        self.url = f"redis+sentinel://{hosts}/{name}"

    def start(self):
        self.data[0].start()
        self.data[1].start()
        wait_until(self.data[1].is_in_step, "the replica has what the master has")
        for sentinel in self.sentinels:
            sentinel.start()
        wait_until(self.is_ready, "every Sentinel knows the others and the replica")
        return self

    def is_ready(self):
        return all(self.sees_all(sentinel) for sentinel in self.sentinels)

    def sees_all(self, sentinel):
        words = sentinel.do("SENTINEL", "MASTER", self.name)
        seen = words if isinstance(words, dict) else dict(zip(words[::2], words[1::2]))
        seen = {text(key): text(value) for key, value in seen.items()}
        return (seen["num-slaves"], seen["num-other-sentinels"], seen["flags"]) == ("1", "2", "master")

    def master(self):
        """Who it is by the word of the first Sentinel that answers."""
        for sentinel in self.sentinels:
            if sentinel.process:
                _, port = sentinel.do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self.name)
                return next(server for server in self.data if server.port == int(port))
        raise AssertionError("no Sentinel runs")

    def failover(self):
        """With both alive.  Returns the new master once the first Sentinel names it."""
        before = self.master()

        def begins():
            try:
                return self.sentinels[0].do("SENTINEL", "FAILOVER", self.name)
            except redis.exceptions.ResponseError:
                return False  # one is under way, or the replica is not good yet

        wait_until(begins, "a failover begins")
        wait_until(lambda: self.master() is not before, "another master is named")
        return self.master()

    def close(self):
        for server in self.sentinels + self.data:
            server.close()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.close()


class RedisCluster:
    """`masters` with equal shares of the slots, and a replica for each."""

    SLOTS = 16384

    def __init__(self, folder, *options, masters=3, replicas=True):
        folder = pathlib.Path(folder)
        words = ["--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--cluster-require-full-coverage", "no",
                 "--cluster-allow-replica-migration", "no", *options]
        self.masters = [RedisServer(folder / f"master-{i}", *words) for i in range(masters)]
        self.replicas = [RedisServer(folder / f"replica-{i}", *words) for i in range(masters if replicas else 0)]
        self.nodes = self.masters + self.replicas
        self.url = "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)
        self.ids = {}

    def start(self):
        count = len(self.masters)
        bounds = [i * self.SLOTS // count for i in range(count + 1)]
        for i, node in enumerate(self.nodes):
            node.start()
            self.ids[node] = text(node.do("CLUSTER MYID"))
            node.do("CLUSTER SET-CONFIG-EPOCH", i + 1)
            if node in self.masters:
                node.do("CLUSTER ADDSLOTSRANGE", bounds[i], bounds[i + 1] - 1)
            if i:
                node.do("CLUSTER MEET", "127.0.0.1", self.nodes[0].port)
        wait_until(self.is_whole, "every server knows every other")
        for master, replica in zip(self.masters, self.replicas):
            wait_until(lambda m=master, r=replica: self.follows(r, m), "a replica follows its master")
        for replica in self.replicas:
            wait_until(replica.is_in_step, "a replica has what its master has")
        wait_until(self.has_one_epoch, "all know of the highest epoch")
        return self

    def has_one_epoch(self):
        """Else two servers could take the same epoch for different claims, and a slot that was moved goes back."""
        infos = [node.do("CLUSTER INFO") for node in self.nodes if node.process]
        current = {int(info["cluster_current_epoch"]) for info in infos}
        return len(current) == 1 and max(int(info["cluster_my_epoch"]) for info in infos) <= current.pop()

    def is_whole(self):
        infos = [node.do("CLUSTER INFO") for node in self.nodes if node.process]
        return all(info["cluster_state"] == "ok" and int(info["cluster_known_nodes"]) == len(self.nodes)
                   for info in infos)

    def follows(self, replica, master):
        try:
            return replica.do("CLUSTER REPLICATE", self.ids[master])
        except redis.exceptions.ResponseError:
            return False  # has not heard of it yet

    def client(self, **settings):
        """One that knows where each key is."""
        return redis.cluster.RedisCluster(host="127.0.0.1", port=self.masters[0].port, **settings)

    def slot(self, key):
        return int(self.nodes[-1].do("CLUSTER KEYSLOT", key))

    def owner(self, slot):
        """Who has it by the word of the first server that runs; None: nobody."""
        asked = next(node for node in self.nodes if node.process)
        for first, last, master, *_ in asked.do("CLUSTER SLOTS"):
            if first <= slot <= last:
                return next(node for node in self.nodes if node.port == master[1])
        return None

    def mark(self, slot, source, target):
        target.do("CLUSTER SETSLOT", slot, "IMPORTING", self.ids[source])
        source.do("CLUSTER SETSLOT", slot, "MIGRATING", self.ids[target])

    def move_keys(self, slot, source, target, most=100):
        keys = source.do("CLUSTER GETKEYSINSLOT", slot, most)
        for key in keys:
            source.do("MIGRATE", "127.0.0.1", target.port, key, 0, 5000)
        return len(keys)

    def hand_over(self, slot, target):
        for node in [target] + [node for node in self.masters if node is not target and node.process]:
            node.do("CLUSTER SETSLOT", slot, "NODE", self.ids[target])
        wait_until(self.has_one_epoch, "all know of the highest epoch")

    def move_slot(self, slot, source, target):
        """Live, key by key, as redis-cli --cluster reshard does."""
        self.mark(slot, source, target)
        while self.move_keys(slot, source, target):
            pass
        self.hand_over(slot, target)

    def failover(self, replica):
        """The replica becomes master, with both alive."""
        asked_at = float("-inf")

        def is_master():
            nonlocal asked_at
            if replica.info("role") == "master":
                return True
            # The others may withhold their votes for a while; then it gives up after five seconds.
            if time.monotonic() - asked_at > 6:
                asked_at = time.monotonic()
                replica.do("CLUSTER FAILOVER")
            return False

        wait_until(is_master, "the replica is master")

    def close(self):
        for node in self.nodes:
            node.close()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.close()


def text(value):
    return value.decode() if isinstance(value, bytes) else str(value)
