#!/usr/bin/python3
"""How long tasks without a key take that landed on one host's shards while another host has a free seat:
tests/bench/seats.py [ROUNDS]

Two hosts with one seat each, four jobs of 1.5 s, which take 3.0 s if no seat is ever idle; with `spread = false`, which is
how it was before seats were lent, 3.0, 4.5 or 6.0, by where the jobs landed."""
import sys
import time

from processes import ROOT
from table import Table, share

sys.path.append(str(ROOT / "tests" / "e2e" / "support"))
from failover import on_local  # noqa: E402
from processes import wait_until  # noqa: E402

JOBS = 4
JOB_US = 1_500_000
ROUNDS = 20


def rounds_of(ground, rounds, more):
    took = []
    with ground.fleet() as fleet:
        fleet.start("a", "b", more=f"processes = 1; {more}")
        fleet.wait_even()
        host = fleet.members["a"]
        for _ in range(rounds):
            before, began = fleet.backing.sum("done"), time.monotonic()
            host.submit([{"handler": "work", "payload": f"{i} us:{JOB_US}"} for i in range(JOBS)])
            wait_until(lambda before=before: fleet.backing.sum("done") >= before + JOBS, "the jobs are done", 60)
            took.append(time.monotonic() - began)
    return took


def measure_seats(table, options):
    rounds = options if isinstance(options, int) else ROUNDS
    with on_local() as ground:
        alone = rounds_of(ground, max(rounds // 4, 1), "spread = false;")
        lent = rounds_of(ground, rounds, "")
    how = f"{JOBS} jobs of {JOB_US / 1e6} s, two hosts of one seat, {ground.name}"
    table.add("four jobs, each at its owner, the longest", max(alone), "s", how=f"{how}; {len(alone)} rounds")
    table.add("four jobs on free seats, p50", share(lent, .5), "s", how=f"{how}; {rounds} rounds")
    table.add("four jobs on free seats, the longest", max(lent), "s", bar="seats", how=f"{how}; {rounds} rounds")


PARTS = {"seats": measure_seats}

if __name__ == "__main__":
    measure_seats(Table("fleet.seats"), int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
