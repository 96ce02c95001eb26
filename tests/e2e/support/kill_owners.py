#!/usr/bin/python3
"""Kills owners over and over, and looks how long their shards stand still.

    tests/e2e/support/kill_owners.py [sqlite+local | redis+redis | redis+zookeeper] [KILLS] [host | guard-first | all]

A fleet of three works without a pause.  Each time one of them, the leader as often as not, gets SIGKILL (its guard lives;
`guard-first`: its guard was killed and replaced before), its shards must run elsewhere, it comes back, and all is shared
out evenly again before the next.  `all`: a single host is killed with its guard and its runners, as a service manager does,
and started again at once: the time until it owns all shards again counts from that start.  Ends with the times; at
the first shards that stand still for longer than LIMIT_S it stops, and leaves the folder with every host's log.  Takes
about three seconds a kill, so it is no part of `make test`.  KEEP=1 leaves the folder in any case, SEED=N repeats a choice."""
import collections
import contextlib
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "e2e" / "support"))

from backings import OnRedis, OnZooKeeper, servers  # noqa: E402
from fleet import Backing, Fleet  # noqa: E402
from hosts import wait_until  # noqa: E402

SHARDS = 20
TTL, SESSION = "10s", "6s"  # far above what a kill may cost: whoever waits for time to pass shows
LIMIT_S = 60
KINDS = {"sqlite+local": Backing, "redis+redis": OnRedis, "redis+zookeeper": OnZooKeeper}


def shard_of(key):
    return zlib.crc32(key.encode()) % SHARDS


def keys_of_all_shards(each=4):
    keys, number = collections.defaultdict(list), 0
    while len(keys) < SHARDS or min(map(len, keys.values())) < each:
        if len(keys[shard_of(f"k{number}")]) < each:
            keys[shard_of(f"k{number}")].append(f"k{number}")
        number += 1
    return [key for some in keys.values() for key in some]


class Load(threading.Thread):
    """Keeps tasks waiting in every shard."""

    WAITING = 4000

    def __init__(self, fleet):
        super().__init__(daemon=True)
        self.fleet, self.keys, self.count = fleet, keys_of_all_shards(), 0
        self.is_over = threading.Event()
        self.failure = None

    def run(self):
        try:
            while not self.is_over.is_set():
                if self.count - self.fleet.backing.sum("done") < self.WAITING:
                    self.fleet.members["a"].submit([
                        {"handler": "work", "key": self.keys[n % len(self.keys)], "payload": f"{self.count + n} us:1000"}
                        for n in range(self.WAITING)])
                    self.count += self.WAITING
                self.is_over.wait(0.05)
        except Exception as failure:  # told by whoever waits for work
            self.failure = failure

    def finish(self):
        self.is_over.set()
        if self.is_alive():
            self.join()


@contextlib.contextmanager
def backing_of(kind, folder):
    if kind is Backing:
        made = Backing(folder)
        yield made
        return
    with servers(kind, folder) as pair:
        made = kind(folder, *pair)
        yield made


def started_since(path, offset, lost, epochs):
    """The shards of `lost` in which a task was started under a newer epoch."""
    found = set()
    with open(path) as ledger:
        ledger.seek(offset)
        for line in ledger:
            words = line.split()
            if line.endswith("\n") and words[0] == "start" and shard_of(words[2]) in lost:
                if int(words[6]) > epochs[shard_of(words[2])]:
                    found.add(shard_of(words[2]))
    return found


def replace_guard(victim):
    first = victim.guard()
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: victim.guard() not in (None, first), "a new guard")


def restart_all(fleet):
    """Returns how long it took, in seconds, from the start until it owns every shard again."""
    a = fleet.members["a"]
    a.kill_all()
    began = time.monotonic()
    a.start()
    wait_until(lambda: fleet.counts() == {"a": SHARDS}, "all shards are its own again", LIMIT_S)
    return time.monotonic() - began


def kill_one(fleet, load, dice, how):
    """Returns how long it took, in seconds, until every shard of the killed one has started a task."""
    leader = fleet.leader()
    victim = leader if dice.random() < 0.5 else dice.choice([m for m in fleet.living() if m is not leader])
    if how == "guard-first":
        replace_guard(victim)
    path = fleet.folder / "ledger"
    epochs, lost = fleet.backing.epochs(), set(victim.shards())
    assert len(lost) >= SHARDS // 3
    offset, began = path.stat().st_size, time.monotonic()
    victim.kill()

    def is_over():
        assert not load.failure, load.failure
        return started_since(path, offset, lost, epochs) == lost

    wait_until(is_over, f"shards {sorted(lost)} of {victim.name} run again", LIMIT_S)
    took = time.monotonic() - began
    victim.start()
    fleet.wait_even()
    return took


def configure(fleet, name):
    change = lambda text: (text.replace('ttl = "1s"', f'ttl = "{TTL}"').replace('session = "1s"', f'session = "{SESSION}"')
                           .replace('session = "1500ms"', f'session = "{SESSION}"'))
    fleet.add(name, more="threads = 2;", change=change).start()


def run(name, kills, how, folder):
    seed = int(os.environ.get("SEED", time.time_ns() % 1000000))
    dice = random.Random(seed)
    with backing_of(KINDS[name], folder) as backing:
        fleet = Fleet(ROOT / "build" / "quiver", ROOT / "build" / "test-plugins", folder, backing)
        fleet.shards = SHARDS
        load = Load(fleet)
        fleet.loads.append(load)
        try:
            for host in "a" if how == "all" else "abc":
                configure(fleet, host)
            fleet.wait_even()
            load.start()
            wait_until(lambda: backing.sum("done") > 1000, "work is done")
            took = []
            for kill in range(kills):
                took.append(restart_all(fleet) if how == "all" else kill_one(fleet, load, dice, how))
                assert backing.dead() == 0
                if (kill + 1) % 20 == 0:
                    print(f"{name}: {kill + 1} kills, at worst {max(took):.2f} s", flush=True)
        finally:
            fleet.close()
    took.sort()
    print(f"{name}, SEED={seed}: {kills} kills ({how}), shards run again after {took[len(took) // 2]:.2f} s (median), "
          f"{took[int(len(took) * .99)]:.2f} s (99 of 100), {took[-1]:.2f} s (worst)")


def main():
    name = sys.argv[1] if len(sys.argv) > 1 else "sqlite+local"
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    how = sys.argv[3] if len(sys.argv) > 3 else "host"
    folder = pathlib.Path(tempfile.mkdtemp(prefix="quiver-kills-"))
    try:
        run(name, kills, how, folder)
    except BaseException:
        print(f"{name}: see {folder}", file=sys.stderr)
        raise
    if not os.environ.get("KEEP"):
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
