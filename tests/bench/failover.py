#!/usr/bin/python3
"""What it costs that hosts die, come and go, in one run:  tests/bench/failover.py [PART…]

Parts: killed, lost, moves, joins, outage; all of them by default.  On Redis with ZooKeeper, and on SQLite with local
coordination; an outage of ZooKeeper only where there is one."""
import argparse
import collections
import contextlib
import os
import re
import signal
import sys
import time

from place import shard_of
from processes import QUIVER, ROOT, Folder, wait_until
from supply import Supply
from table import Table, share

sys.path.append(str(ROOT / "tests" / "e2e" / "support"))
from backings import OnZooKeeper, servers  # noqa: E402
from fleet import Backing, Fleet  # noqa: E402

SHARDS = 20
TASK_US = 1000
WAITING = 2000
QUIET_S = 3


class Ground:
    """What a fleet stands on.  Each fleet gets a folder of its own."""

    def __init__(self, name, back):
        self.name, self.back = name, back

    @contextlib.contextmanager
    def fleet(self, shards=SHARDS):
        with Folder() as folder:
            fleet = Fleet(QUIVER, ROOT / "build" / "test-plugins", folder, self.back(folder))
            fleet.shards = shards
            try:
                yield fleet
            finally:
                close(fleet)


def close(fleet):
    """Guards outlive their hosts, to clean up after them: the folder goes when they are gone."""
    guards = [guard for guard in (member.guard() for member in fleet.living()) if guard]
    fleet.close()
    wait_until(lambda: not any(os.path.exists(f"/proc/{guard}") for guard in guards), "the guards are gone", 30)


@contextlib.contextmanager
def on_zookeeper():
    with Folder() as folder, servers(OnZooKeeper, folder) as pair:
        yield Ground("redis+zookeeper", lambda own: OnZooKeeper(own, *pair))


@contextlib.contextmanager
def on_local():
    yield Ground("sqlite+local", Backing)


GROUNDS = (on_zookeeper, on_local)


def on_each(measure):
    """A part that is measured on every ground."""
    def measure_all(table, options):
        for made in GROUNDS:
            with made() as ground:
                measure(table, options, ground)
    return measure_all


def keys_of_each_shard():
    """Two keys for each shard."""
    keys = collections.defaultdict(list)
    number = 0
    while len(keys) < SHARDS or min(map(len, keys.values())) < 2:
        key = f"k{number}"
        number += 1
        if len(keys[shard_of(key, SHARDS)]) < 2:
            keys[shard_of(key, SHARDS)].append(key)
    return [key for pair in keys.values() for key in pair]


def supplied(fleet):
    supply = Supply(lambda tasks: fleet.members["a"].submit(tasks), lambda: fleet.backing.sum("done"), keys_of_each_shard(),
                    TASK_US, WAITING)
    fleet.loads.append(supply)
    supply.begin()
    return supply


def settings(ttl, session):
    def change(text):
        text = text.replace('ttl = "1s"', f'ttl = "{ttl}"').replace('"debug"', '"info"')
        return re.sub(r'session = "\w+"', f'session = "{session}"', text)

    return change


def take_over(ground, ttl_s, session, with_guard):
    """Seconds from a kill until tasks of all its shards have started elsewhere."""
    with ground.fleet() as fleet:
        for name in "abc":
            fleet.add(name, change=settings(f"{ttl_s}s", session)).start()
        fleet.wait_even()
        supplied(fleet)
        victim = fleet.members["b"]
        guard, epochs, lost = victim.guard(), fleet.backing.epochs(), set(victim.shards())
        if not with_guard:
            victim.signal(signal.SIGSTOP)
            os.kill(guard, signal.SIGKILL)
        at_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        victim.kill()
        firsts = {}

        def run_again():
            """The first start in each lost shard under a new epoch."""
            for e in fleet.members["a"].ledger():
                shard = shard_of(e.key, SHARDS)
                if e.what == "start" and shard in lost and e.epoch > epochs[shard] and e.at_ns > at_ns:
                    firsts.setdefault(shard, e.at_ns)
            return len(firsts) == len(lost)

        wait_until(run_again, f"shards {lost} run again", pause=0.1)
        return (max(firsts.values()) - at_ns) / 1e9


def measure_killed(table, options, ground):
    took = [take_over(ground, 10, "6s", True) for _ in range(options.rounds)]
    how = f"TTL 10 s, {SHARDS} shards on 3 hosts; {options.rounds} times"
    table.add(f"kill -9 of an owner, {ground.name}, median", share(took, .5), "s", how=how)
    table.add(f"kill -9 of an owner, {ground.name}, at worst", max(took), "s", bar="killed", how=how)


def measure_lost(table, options, ground):
    took = [take_over(ground, 4, "2s", False) / 4 for _ in range(2)]
    table.add(f"kill -9 of owner and guard, {ground.name}, at worst", max(took), "x TTL", bar="lost",
              how="TTL 4 s, session 2 s; 2 times")


def pauses(entries, until_ns):
    """Milliseconds between two tasks of a key: over a move, without one, and without one before a moment."""
    last, moved, stayed, quiet = {}, [], [], []
    for e in entries:
        before = last.get(e.key)
        if e.what == "start" and before:
            of_it = moved if before.epoch != e.epoch else stayed if e.at_ns > until_ns else quiet
            of_it.append((e.at_ns - before.at_ns) / 1e6)
        elif e.what == "end":
            last[e.key] = e
    return moved, stayed, quiet


def measure_moves(table, options, ground):
    with ground.fleet() as fleet:
        for name in "ab":
            fleet.add(name, change=settings("10s", "6s"))
        fleet.start("a")
        fleet.wait_even()
        supply = supplied(fleet)
        time.sleep(QUIET_S)
        quiet_until_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        for _ in range(2 * options.rounds):
            fleet.start("b")
            fleet.wait_even()
            fleet.members["b"].stop()
            fleet.wait_even()
        supply.finish()
        wait_until(lambda: fleet.backing.sum("done") >= supply.count, "all are done", pause=0.1)
        entries = fleet.members["a"].ledger()
    moved, stayed, quiet = pauses(entries, quiet_until_ns)
    starts = collections.Counter(e.number for e in entries if e.what == "start")
    how = f"{len(moved)} pauses of a key; tasks of {TASK_US // 1000} ms"
    for part, bar in ((.5, None), (.99, "move.pause")):
        table.add(f"planned move, {ground.name}: pause, p{part * 100:.0f}", share(moved, part), "ms", bar=bar, how=how)
    table.add(f"planned move, {ground.name}: pause in quiet, p99", share(quiet, .99), "ms", how="one host, nothing moves")
    table.add(f"planned move, {ground.name}: unmoved beyond quiet", share(stayed, .99) - share(quiet, .99), "ms",
              bar="move.unmoved", how="p99 - p99")
    table.add(f"planned move, {ground.name}: run twice", sum(n > 1 for n in starts.values()), "", bar="move.twice",
              how=f"of {supply.count}")


def measure_joins(table, options, ground):
    for shards in (64, 1024) if options.long else (64,):
        with ground.fleet(shards) as fleet:
            for number in range(1, 9 if options.long else 5):
                fleet.add(f"h{number}", shards=shards, change=settings("10s", "6s"))
                before = fleet.backing.owners() if number > 1 else {}
                began = time.monotonic()
                fleet.start(f"h{number}")
                fleet.wait_even(120)
                took = time.monotonic() - began
                moves = sum(before.get(shard, owner) != owner for shard, owner in fleet.backing.owners().items())
                if number in (2, 4, 8):
                    table.add(f"a host's start to a stable assignment, {ground.name}, {shards} shards", took, "s",
                              at=(number, "hosts"), how=f"{moves} moves")


def session(member):
    """What it was last told about it."""
    return re.findall(r"event=coordination state=(\w+)", member.log())[-1]


def rate_of(fleet, count):
    done = fleet.backing.sum("done")
    lines = "".join(f"k{n % 500}\t{n}\n" for n in range(count))
    began = time.monotonic()
    fleet.members["a"].cli("submit", "work", "--lines", text=lines)
    wait_until(lambda: fleet.backing.sum("done") >= done + count, "all are done")
    return count / (time.monotonic() - began)


def noop(text):
    return settings("10s", "2s")(text).replace("ledger.so", "noop.so").replace("config = {", "// config = {", 1)


def measure_outage(table, options):
    """ZooKeeper dies and comes back: what the rate does meanwhile."""
    rates = {"alive": [], "expired": []}
    with on_zookeeper() as ground, ground.fleet() as fleet:
        for name in "ab":
            fleet.add(name, change=noop).start()
        fleet.wait_even()
        fleet.backing.client.config_set("appendfsync", "no")  # the disk is not what is measured
        for _ in range(options.rounds):
            for state, change in (("alive", fleet.backing.authority.kill9), ("expired", fleet.backing.authority.start)):
                wait_until(lambda: {session(m) for m in fleet.living()} == {state}, f"sessions are {state}")
                rates[state].append(rate_of(fleet, 40000))
                change()
    table.add("rate while ZooKeeper is down / while it is up", share(rates["expired"], .5) / share(rates["alive"], .5), "",
              how=f"two hosts, {share(rates['alive'], .5):.0f} tasks/s while it is up; median of {options.rounds}")


PARTS = {"killed": on_each(measure_killed), "lost": on_each(measure_lost), "moves": on_each(measure_moves),
         "joins": on_each(measure_joins), "outage": measure_outage}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", metavar="PART", nargs="*", help="the default is all of them")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--long", action="store_true", help="joins: up to 8 hosts, and 1024 shards as well")
    options = parser.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"{', '.join(sorted(unknown))}: the parts are {', '.join(PARTS)}")
    for name in options.parts or PARTS:
        PARTS[name](Table(f"fleet.{name}"), options)


if __name__ == "__main__":
    main()
