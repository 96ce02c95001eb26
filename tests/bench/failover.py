#!/usr/bin/env python3
"""What it costs that hosts die, come and go, in one run:  tests/bench/failover.py [PART…]

Parts: killed, lost, moves, joins, outage; all of them by default.  The store is Redis, the coordination ZooKeeper."""
import collections
import contextlib
import os
import pathlib
import re
import signal
import sys
import tempfile
import threading
import time
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))

from backings import OnZooKeeper, servers  # noqa: E402
from fleet import Fleet  # noqa: E402
from hosts import wait_until  # noqa: E402

SHARDS = 20
TASK_US = 1000


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def share(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def verdict(value, bar):
    return "ok" if value <= bar else "MISSED"


def shard_of(key, shards=SHARDS):
    return zlib.crc32(key.encode()) % shards


def key_of_each_shard():
    """Two keys for each shard."""
    keys = collections.defaultdict(list)
    number = 0
    while len(keys) < SHARDS or min(map(len, keys.values())) < 2:
        key = f"k{number}"
        number += 1
        if len(keys[shard_of(key)]) < 2:
            keys[shard_of(key)].append(key)
    return [key for pair in keys.values() for key in pair]


class Load(threading.Thread):
    """Keeps every key supplied: one without tasks would seem to pause."""

    def __init__(self, fleet, waiting=2000):
        super().__init__()
        self.fleet, self.keys, self.waiting = fleet, key_of_each_shard(), waiting
        self.is_over, self.count = threading.Event(), 0
        fleet.loads.append(self)

    def run(self):
        while not self.is_over.is_set():
            batch = [{"handler": "work", "key": self.keys[n % len(self.keys)],
                      "payload": f"{self.count + n} us:{TASK_US}"} for n in range(self.waiting)]
            next(iter(self.fleet.members.values())).submit(batch)
            self.count += len(batch)
            wait_until(lambda: self.count - self.fleet.backing.sum("done") < self.waiting or self.is_over.is_set(),
                       "it keeps up")

    def finish(self):
        if self.is_alive():
            self.is_over.set()
            self.join()


@contextlib.contextmanager
def a_fleet(pair, shards=SHARDS):
    with tempfile.TemporaryDirectory(prefix="quiver-bench-") as folder:
        folder = pathlib.Path(folder)
        fleet = Fleet(ROOT / "build" / "quiver", ROOT / "build" / "test-plugins", folder, OnZooKeeper(folder, *pair))
        fleet.shards = shards
        try:
            yield fleet
        finally:
            fleet.close()


def settings(ttl, session="1500ms"):
    def change(text):
        return text.replace('ttl = "1s"', f'ttl = "{ttl}"').replace("1500ms", session).replace('"debug"', '"info"')

    return change


def wait_supplied(fleet, load):
    load.start()
    wait_until(lambda: fleet.backing.sum("done") > 1000, "it has begun")


def measure_takeover(pair, ttl_s, session, with_guard):
    """Seconds from a kill until tasks of all its shards have started elsewhere."""
    with a_fleet(pair) as fleet:
        for name in "abc":
            fleet.add(name, change=settings(f"{ttl_s}s", session)).start()
        fleet.wait_even()
        load = Load(fleet)
        wait_supplied(fleet, load)
        victim = fleet.members["b"]
        guard, epochs, lost = victim.guard(), fleet.backing.epochs(), set(victim.shards())
        if not with_guard:
            victim.signal(signal.SIGSTOP)
            os.kill(guard, signal.SIGKILL)
        at_ns = now_ns()
        victim.kill()

        def firsts():
            """The first start in each lost shard under a new epoch."""
            found = {}
            for e in fleet.members["a"].ledger():
                shard = shard_of(e.key)
                if e.what == "start" and shard in lost and e.epoch > epochs[shard] and e.at_ns > at_ns:
                    found.setdefault(shard, e.at_ns)
            return found if len(found) == len(lost) else None

        try:
            return (max(wait_until(firsts, f"shards {lost} run again").values()) - at_ns) / 1e9
        except AssertionError:
            print(fleet.members["a"].cli("members", "--moves"), fleet.members["a"].cli("status"), sep="\n")
            raise


def measure_killed(pair):
    took = [measure_takeover(pair, 10, "6s", True) for _ in range(5)]
    print(f"kill -9 of an owner, ttl 10 s: its shards run again after {share(took, .5):.2f} s, at worst "
          f"{max(took):.2f} s (bar: 1) {verdict(max(took), 1)}")


def measure_lost(pair):
    took = [measure_takeover(pair, 4, "2s", False) / 4 for _ in range(3)]
    print(f"kill -9 of owner and guard: after {share(took, .5):.2f} × ttl, at worst {max(took):.2f} × ttl "
          f"(bar: 1.5) {verdict(max(took), 1.5)}")


def pauses(entries):
    """Milliseconds between two tasks of a key: over a move, and without one."""
    last, moved, stayed = {}, [], []
    for e in entries:
        before = last.get(e.key)
        if e.what == "start" and before:
            (moved if before.epoch != e.epoch else stayed).append((e.at_ns - before.at_ns) / 1e6)
        elif e.what == "end":
            last[e.key] = e
    return moved, stayed


def measure_moves(pair):
    with a_fleet(pair) as fleet:
        for name in "ab":
            fleet.add(name, change=settings("10s", "6s"))
        fleet.start("a")
        fleet.wait_even()
        load = Load(fleet)
        wait_supplied(fleet, load)
        for _ in range(6):
            fleet.start("b")
            fleet.wait_even()
            fleet.members["b"].stop()
            fleet.wait_even()
        load.finish()
        wait_until(lambda: fleet.backing.sum("done") == load.count, "all are done", 120)
        entries = fleet.members["a"].ledger()
    moved, stayed = pauses(entries)
    starts = collections.Counter(e.number for e in entries if e.what == "start")
    print(f"pause of a key over a planned move, {len(moved)} times: p50 {share(moved, .5):.0f} ms, p99 "
          f"{share(moved, .99):.0f} ms (bar: 250) {verdict(share(moved, .99), 250)}; without a move: p50 "
          f"{share(stayed, .5):.0f} ms, p99 {share(stayed, .99):.0f} ms; "
          f"run twice: {sum(n > 1 for n in starts.values())}")


def measure_joins(pair):
    for shards in (64, 1024):
        figures = []
        with a_fleet(pair, shards) as fleet:
            for number in range(1, 9):
                fleet.add(f"h{number}", shards=shards, change=settings("10s", "6s"))
                before = fleet.backing.owners()
                began = time.monotonic()
                fleet.start(f"h{number}")
                fleet.wait_even(120)
                took = time.monotonic() - began
                after = fleet.backing.owners()
                moves = sum(before.get(shard, owner) != owner for shard, owner in after.items())
                if number in (2, 4, 8):
                    figures.append(f"{number}nd" if number == 2 else f"{number}th")
                    figures[-1] += f" {took:.2f} s ({moves} moves)"
        print(f"from a host's start to a stable assignment, {shards} shards: {', '.join(figures)}")


def session(member):
    """What it was last told about it."""
    return re.findall(r"event=coordination state=(\w+)", member.log())[-1]


def measure_outage(pair):
    count = 40000

    def rate(fleet):
        done = fleet.backing.sum("done")
        lines = "".join(f"k{n % 500}\t{n}\n" for n in range(count))
        began = time.monotonic()
        fleet.members["a"].cli("submit", "work", "--lines", text=lines)
        wait_until(lambda: fleet.backing.sum("done") >= done + count, "all are done", 120)
        return count / (time.monotonic() - began)

    def noop(text):
        return settings("10s", "2s")(text).replace("ledger.so", "noop.so").replace("config = {", "// config = {", 1)

    with a_fleet(pair) as fleet:
        for name in "ab":
            fleet.add(name, change=noop).start()
        fleet.wait_even()
        fleet.backing.client.config_set("appendfsync", "no")  # the disk is not what is measured
        rates = {"alive": [], "expired": []}
        for _ in range(3):
            for state, change in (("alive", fleet.backing.authority.kill9), ("expired", fleet.backing.authority.start)):
                wait_until(lambda: {session(m) for m in fleet.living()} == {state}, f"sessions are {state}")
                rates[state].append(rate(fleet))
                change()
    up, down = share(rates["alive"], .5), share(rates["expired"], .5)
    print(f"two hosts, tasks a second with ZooKeeper {up:.0f}, without {down:.0f}: {down / up:.2f} of it")


PARTS = {"killed": measure_killed, "lost": measure_lost, "moves": measure_moves, "joins": measure_joins,
         "outage": measure_outage}


def main():
    chosen = sys.argv[1:] or list(PARTS)
    with tempfile.TemporaryDirectory(prefix="quiver-bench-") as folder:
        with servers(OnZooKeeper, pathlib.Path(folder)) as pair:
            for name in chosen:
                PARTS[name](pair)


if __name__ == "__main__":
    main()
