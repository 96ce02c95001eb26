#!/usr/bin/env python3
"""make bench: every figure in one table, build/bench/bench.tsv, and plots beside it.  README.md says how to read it.

    tests/bench/bench.py [--only WORDS] [--peers] [--long]

WORDS, with commas between: a group (redis, sqlite, peers, store, more) or one part of it (redis.hot)."""
import argparse
import os
import subprocess
import sys

import on_peers
import on_redis
import on_sqlite
import plots
from rig import ROOT, TOOLS, Table, machine

# Programs of their own that print a table of their own.
PROGRAMS = {"store": {"sqlite": [TOOLS / "bench_sqlite", "100000"], "assign": [TOOLS / "bench_assign"]},
            "more": {name: [sys.executable, ROOT / "tests" / "bench" / f"{name}.py"]
                     for name in ("languages", "sql", "reload", "failover")}}


def groups(with_peers):
    found = {"redis": on_redis.PARTS, "sqlite": on_sqlite.PARTS}
    if with_peers:
        found["peers"] = on_peers.PARTS
    for group, programs in PROGRAMS.items():
        found[group] = {name: lambda table, options, words=words: subprocess.run(words, check=True)
                        for name, words in programs.items()}
    return found


def options_of(words):
    parser = argparse.ArgumentParser(description="Measures Quiver.")
    parser.add_argument("--only", default=os.environ.get("ONLY", ""))
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--long", action="store_true", help="5 000 000 queued as well: minutes, and 2 GB of memory")
    parser.add_argument("--tasks", type=int, default=100000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--singles", type=int, default=2000)
    parser.add_argument("--idle-s", type=int, default=20)
    return parser.parse_args(words)


def main():
    options = options_of(sys.argv[1:])
    table = Table()
    wanted = [word for word in options.only.replace(",", " ").split()]
    print(machine())
    for group, parts in groups(options.peers).items():
        for name, measure in parts.items():
            if not wanted or group in wanted or f"{group}.{name}" in wanted:
                measure(table, options)
    if table.rows:
        table.save()
        plots.draw(table)


if __name__ == "__main__":
    main()
