#!/usr/bin/python3
"""Who gets the next seat:  tests/bench/seats.py [PART…]

Parts: seats, lanes; all of them by default.

seats: two hosts with one seat each, four jobs of 1.5 s without a key, which take 3.0 s if no seat is ever idle; with
`spread = false`, which is how it was before seats were lent, 3.0, 4.5 or 6.0, by where the jobs landed.  Every other round
comes after many short tasks: a host then hands several tasks to its runner at once, and must take them back.

lanes: on one host with one seat, in how many rounds tasks start by lane, whatever their shards."""
import contextlib
import json
import sys
import time

from processes import ROOT, Folder, wait_until
from table import Table, share

sys.path.append(str(ROOT / "tests" / "e2e" / "support"))
from backings import OnRedis, servers  # noqa: E402
from failover import Ground, on_local  # noqa: E402

JOBS = 4
JOB_US = 1_500_000
SHORT = 300
ROUNDS = 20
LANES = ("low", "normal", "high")
LOW_US = 200_000
CLAIM_NS = 50_000_000  # a task that was submitted is at its owner after this


@contextlib.contextmanager
def on_redis():
    with Folder() as folder, servers(OnRedis, folder) as pair:
        yield Ground("redis", lambda own: OnRedis(own, *pair))


# --- seats ------------------------------------------------------------------------------------------------------------


def rounds_of(ground, rounds, more):
    took = []
    with ground.fleet() as fleet:
        fleet.start("a", "b", more=f"processes = 1; {more}")
        fleet.wait_even()
        host = fleet.members["a"]

        def through(tasks):
            goal, began = fleet.backing.sum("done") + len(tasks), time.monotonic()
            host.submit(tasks)
            wait_until(lambda: fleet.backing.sum("done") >= goal, "the jobs are done", 60)
            return time.monotonic() - began

        for number in range(rounds):
            if number % 2:
                through([{"handler": "work", "key": f"k{i}", "payload": f"{i}"} for i in range(SHORT)])
            took.append(through([{"handler": "work", "payload": f"{i} us:{JOB_US}"} for i in range(JOBS)]))
    return took


def measure_seats(table, options):
    for made in (on_local, on_redis):
        with made() as ground:
            alone = rounds_of(ground, ROUNDS // 5, "spread = false;")
            lent = rounds_of(ground, ROUNDS, "")
        how = f"{JOBS} jobs of {JOB_US / 1e6} s, two hosts of one seat, {ground.name}"
        table.add("four jobs, each at its owner, the longest", max(alone), "s", how=f"{how}; {len(alone)} rounds")
        table.add("four jobs on free seats, p50", share(lent, .5), "s", how=f"{how}; {len(lent)} rounds")
        table.add("four jobs on free seats, the longest", max(lent), "s", bar="seats", how=f"{how}; {len(lent)} rounds")


# --- lanes ------------------------------------------------------------------------------------------------------------


def starts(host, since):
    """(when, number) of those behind the first `since` lines of the ledger."""
    return [(e.at_ns, e.number) for e in host.ledger()[since:] if e.what == "start"]


def six_are_in_order(fleet, host, number):
    """Two tasks without a key in each lane while the only seat is taken."""
    gate, since = fleet.folder / f"gate-{number}", len(host.ledger())
    host.submit([{"handler": "work", "payload": f"0 wait:{gate}"}])
    wait_until(lambda: starts(host, since), "the seat is taken")
    host.submit([{"handler": "work", "lane": lane, "payload": str(3 - LANES.index(lane))} for _ in (1, 2) for lane in LANES])
    wait_until(lambda: json.loads(host.cli("status", "--json"))["totals"]["in_flight"] == 7, "six wait at the host")
    gate.touch()
    wait_until(lambda: len(starts(host, since)) == 7, "all have started")
    return [number for _, number in starts(host, since)] == [0, 1, 1, 2, 2, 3, 3]


def is_next(host):
    """Nothing of a lower lane starts once a high task is there."""
    since = len(host.ledger())
    host.submit([{"handler": "work", "lane": "high", "payload": "1"}])
    there_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME) + CLAIM_NS
    wait_until(lambda: any(number == 1 for _, number in starts(host, since)), "it has started")
    began_ns = next(at for at, number in starts(host, since) if number == 1)
    return not [at for at, _ in starts(host, since) if there_ns < at < began_ns]


def measure_lanes(table, options):
    for made in (on_local, on_redis):
        with made() as ground, ground.fleet() as fleet:
            host, = fleet.start("a", more="processes = 1;")
            fleet.wait_even()
            right = sum(six_are_in_order(fleet, host, number) for number in range(ROUNDS))
            table.add(f"two tasks in each of three lanes, in order, of {ROUNDS}", right, "rounds", bar="lanes",
                      how=f"without keys, {fleet.shards} shards, one seat, {ground.name}")
        with made() as ground, ground.fleet(shards=64) as fleet:
            host, = fleet.start("a", more="processes = 1;")
            fleet.wait_even()
            host.submit([{"handler": "work", "lane": "low", "payload": f"9 us:{LOW_US}"} for _ in range(64 * 16)])
            wait_until(lambda: len(starts(host, 0)) > 2, "low tasks run")
            right = sum(is_next(host) for _ in range(ROUNDS))
            table.add(f"a high task is the next to start, of {ROUNDS}", right, "rounds", bar="lanes",
                      how=f"64 shards full of low tasks of {LOW_US / 1e6} s, one seat, {ground.name}")


PARTS = {"seats": measure_seats, "lanes": measure_lanes}

if __name__ == "__main__":
    for name in sys.argv[1:] or PARTS:
        PARTS[name](Table(f"fleet.{name}"), None)
