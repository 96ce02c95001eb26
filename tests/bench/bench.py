#!/usr/bin/python3
"""make bench: every figure in one table, build/bench/bench.tsv, and plots beside it.  README.md says how to read it.

    tests/bench/bench.py [--only WORDS] [--peers] [--long]

Ends with the bars and which of them are met, build/bench/bars.tsv.  A part that fails or hangs is named, and the others go
on; the exit code is then 1.  A bar that is missed is no failure: figures depend on the machine."""
import argparse
import functools
import os
import signal
import sys
import time
import traceback

import advance
import failover
import growth
import handlers
import hot
import idle
import languages
import latency
import on_peers
import over_http
import plots
import programs
import rates
import reload
import seats
import sql
from on_redis import OnRedis
from on_sqlite import OnSqlite
from processes import Stuck
from table import Table, machine

PART_S = 600  # a part that takes longer hangs; with --long it may take more
LONG_PART_S = 3600

ON_A_STORE = {
    "through": rates.measure_through, "durable": rates.measure_durable, "submit": rates.measure_submit,
    "latency": latency.measure_latency, "half": latency.measure_half, "hot": hot.measure_hot, "ordered": hot.measure_ordered,
    "handlers": handlers.measure_handlers, "batch": handlers.measure_batch, "idle": idle.measure_idle,
    "drain": growth.measure_drain, "backlog": growth.measure_backlog, "shards": growth.measure_shards,
    "hosts": growth.measure_hosts, "http": over_http.measure_http, "payload": growth.measure_payload, "keys": growth.measure_keys,
    "retries": growth.measure_retries}


def parts_of(with_peers):
    """Everything there is: {group.part: measure(table, options)}."""
    found = {f"{kind.name}.{name}": functools.partial(measure, kind=kind)
             for kind in (OnRedis, OnSqlite) for name, measure in ON_A_STORE.items()}
    for group, parts in (("redis", advance.PARTS), ("fleet", failover.PARTS), ("fleet", seats.PARTS), ("reload", reload.PARTS), ("more", programs.PARTS),
                         ("more", languages.PARTS), ("more", sql.PARTS), ("peers", on_peers.PARTS if with_peers else {})):
        found.update({f"{group}.{name}": measure for name, measure in parts.items()})
    return found


def chosen(parts, words):
    """Those that a word names: a group, a part, or both with a dot between.  All if there is no word."""
    def names(part):
        return {part, *part.split(".")}

    unknown = [word for word in words if not any(word in names(part) for part in parts)]
    if unknown:
        groups = {part.split(".")[0]: [] for part in parts}
        for part in parts:
            groups[part.split(".")[0]].append(part.split(".")[1])
        lines = "\n".join(f"  {group:8} {' '.join(names)}" for group, names in groups.items())
        sys.exit(f"bench: {', '.join(unknown)}: no such part.  A group, a part of it (redis.hot), or a part of every group (hot):"
                 f"\n{lines}" + ("" if "peers" in groups else "\n  peers    with PEERS=1 or --peers"))
    return {part: measure for part, measure in parts.items() if not words or names(part) & set(words)}


def options_of(words):
    parser = argparse.ArgumentParser(description=__doc__, usage=argparse.SUPPRESS,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="WORDS", default=os.environ.get("ONLY", ""),
                        help="groups and parts, with commas between: redis, redis.hot, hot; a wrong one lists them all")
    parser.add_argument("--peers", action="store_true",
                        help="the same work on beanstalkd, Gearman, Sidekiq, BullMQ, Celery, RQ and graphile-worker")
    parser.add_argument("--long", action="store_true",
                        help="5 000 000 queued, and a million keys: many minutes, and 2 GB of memory")
    parser.add_argument("--tasks", type=int, default=400000, help="of a round: about a second's (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="of what has a bar (%(default)s)")
    parser.add_argument("--singles", type=int, default=2000, help="submits for the idle latency (%(default)s)")
    parser.add_argument("--half-s", type=int, default=4, help="seconds of each part of the load (%(default)s)")
    parser.add_argument("--handler-s", type=int, default=2, help="seconds of tasks for handlers that take time (%(default)s)")
    parser.add_argument("--idle-s", type=int, default=15, help="seconds of doing nothing (%(default)s)")
    return parser.parse_args(words)


def on_alarm(*_):
    raise Stuck("it took too long: it hangs, or this machine is too slow for it")


def on_stop(*_):
    """^C or SIGTERM: whatever runs is stopped on the way out, and a second one does not disturb that."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def run(table, part, measure, options):
    table.part = part
    signal.alarm(LONG_PART_S if options.long else PART_S)
    try:
        measure(table, options)
    except (Stuck, AssertionError) as error:
        table.fail(str(error))
    except Exception as error:  # the other parts are worth having
        traceback.print_exc()
        table.fail(f"{type(error).__name__}: {error}")
    finally:
        signal.alarm(0)


def main():
    options = options_of(sys.argv[1:])
    parts = chosen(parts_of(options.peers), options.only.replace(",", " ").split())
    signal.signal(signal.SIGALRM, on_alarm)
    signal.signal(signal.SIGINT, on_stop)
    signal.signal(signal.SIGTERM, on_stop)
    table, began = Table(is_kept=True), time.monotonic()
    print(machine(), flush=True)
    try:
        for part, measure in parts.items():
            run(table, part, measure, options)
    except KeyboardInterrupt:
        table.fail("interrupted: the rest was not measured")
    table.summarize(not options.only)
    plots.draw(table)
    print(f"{len(table.rows)} figures in {time.monotonic() - began:.0f} s")
    for part, why in table.failures:
        print(f"{part} failed: {why}")
    sys.exit(bool(table.failures))


if __name__ == "__main__":
    main()
