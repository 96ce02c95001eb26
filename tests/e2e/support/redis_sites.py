"""A host on a Redis that is several servers, who submits to it whatever happens, and what the ledger must then say."""
import collections
import json
import subprocess
import threading
import time

from hosts import Host, wait_until
from servers import RedisCluster, SentinelGroup

SHARDS = 8


class Site:
    servers = ()  # that hold data

    def replica_of(self, master):
        return next(server for server in self.servers
                    if server.process and server.info("role") == "slave" and server.info("master_port") == master.port)

    def crash(self, master, meanwhile):
        """Its replica has missed what `meanwhile` did, and takes its place."""
        replica = self.replica_of(master)
        replica.pause()
        try:
            master.do("CLIENT", "KILL", "TYPE", "replica")
            meanwhile()
        finally:
            master.kill9()
            replica.cont()
        wait_until(lambda: self.has_master_besides(master), "another master")
        master.start()
        self.make_follow(master)
        wait_until(master.is_in_step, "the old master follows the new one")

    def make_follow(self, master):
        """Its servers see to that themselves."""


class SentinelSite(Site):
    def __init__(self, folder):
        self.group = SentinelGroup(folder)
        self.url, self.servers = self.group.url, self.group.data

    def server_of(self, _shard):
        return self.group.master()

    def victim(self):
        return self.group.master()

    def has_master_besides(self, server):
        return self.group.master() is not server and self.group.master().info("role") == "master"

    def make_follow(self, master):
        """As an operator would: Sentinels take minutes to do it at times, and that is not what is tested here."""
        master.do("REPLICAOF", "127.0.0.1", self.group.master().port)

    def __enter__(self):
        self.group.start()
        return self

    def __exit__(self, *_):
        self.group.close()


class ClusterSite(Site):
    def __init__(self, folder):
        self.cluster = RedisCluster(folder)
        self.url, self.servers = self.cluster.url, self.cluster.nodes

    def slot(self, shard):
        return self.slots[shard]

    def server_of(self, shard):
        return self.cluster.owner(self.slot(shard))

    def victim(self):
        """Who has the first shard."""
        return self.server_of(0)

    def has_master_besides(self, server):
        owner = self.server_of(0)
        return owner not in (None, server) and self.cluster.is_whole()

    def __enter__(self):
        self.cluster.start()
        self.slots = [self.cluster.slot(f"quiver:{{test:{shard}}}:shard") for shard in range(SHARDS)]
        return self

    def __exit__(self, *_):
        self.cluster.close()


class SiteHost(Host):
    """A host on a store of any URL, and how much is left there as an independent client sees it."""

    def configure(self, url, more="threads = 2;"):
        def on_redis(text):
            text = text.replace(f'url = "sqlite:{self.folder}/q.db"; synchronous = "normal";', f'url = "{url}";')
            assert url in text
            return text + f'coordination = {{ url = "local:{self.folder}/state"; }};\n'

        return super().configure(shards=SHARDS, change=on_redis, work=more)

    def ends(self):
        return sum(e.what == "end" for e in self.ledger())

    def wait_progress(self, count=50):
        before = self.ends()
        wait_until(lambda: self.ends() >= before + count, f"{count} more tasks end")

    def wait_empty(self):
        """Until every task that is there is done."""
        def is_empty():
            totals = json.loads(self.cli("status", "--json"))["totals"]
            return not any(totals[state] for state in ("queued", "delayed", "in_flight", "parked"))

        wait_until(is_empty, "nothing is left")


class Producer:
    """Submits a few tasks at a time until it is told to stop.  What is not acknowledged is unknown, never repeated.

    `prefix` sets its keys apart from another's.  An order is only asked for within a key, which has one producer."""

    def __init__(self, host, config, prefix="k", keys=10, words="us:500"):
        self.host, self.config, self.prefix, self.keys, self.words = host, config, prefix, keys, words
        self.sent = collections.defaultdict(list)  # of a key: numbers in order
        self.acknowledged = {}  # number: (key, when)
        self.said = []  # what a submit said that failed
        self.is_over = False
        self.number = 0
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while not self.is_over:
            batch = [(self.number + i, f"{self.prefix}{(self.number + i) % self.keys}") for i in range(20)]
            self.number += len(batch)
            for number, key in batch:
                self.sent[key].append(number)
            text = "".join(json.dumps({"handler": "work", "key": key, "payload": f"{number} {self.words}"}) + "\n"
                           for number, key in batch)
            done = subprocess.run([self.host.quiver, "submit", "--json-lines", "-c", self.config], input=text,
                                  capture_output=True, text=True, timeout=120)
            if done.returncode == 0:
                now = time.monotonic()
                self.acknowledged.update((number, (key, now)) for number, key in batch)
            else:
                self.said.append(done.stderr)

    def wait_acknowledged(self, count=40):
        before = len(self.acknowledged)
        wait_until(lambda: len(self.acknowledged) >= before + count, f"{count} more are acknowledged")

    def finish(self):
        self.is_over = True
        self.thread.join()
        return self


def check_history(entries, producer, rollbacks=0):
    """No two of a key at once, fences only grow, order is that of the submits.  A store that went back to an earlier
    state `rollbacks` times gives a key's last tasks once more.  Returns what was acknowledged and never done."""
    running, done = {}, set()
    fences, last, went_back = collections.defaultdict(lambda: (0, 0)), {}, collections.Counter()
    for e in entries:
        if not e.key.startswith(producer.prefix):
            continue
        if e.what == "end":
            assert running.pop(e.key, None) == e.number, f"an end without its start: {e}"
            done.add(e.number)
            continue
        assert e.key not in running, f"two at once, {running[e.key]} and {e}"
        assert e.number in producer.sent[e.key], f"nobody sent that: {e}"
        assert (e.epoch, e.start) > fences[e.key], f"a fence went back: {e}"
        if e.number <= last.get(e.key, -1):
            went_back[e.key] += 1
            assert went_back[e.key] <= rollbacks, f"after {last[e.key]}: {e}"
        fences[e.key], last[e.key], running[e.key] = (e.epoch, e.start), e.number, e.number
    assert not running
    return sorted(set(producer.acknowledged) - done)
