#!/usr/bin/python3
"""What a reload costs, in one run:  tests/bench/reload.py [RELOADS]

The pause that a key sees: from the end of its last task before a promotion to the start of its next one, beside the same
from moments at which nothing was reloaded.  And what a reload of one handler in fifty does to the other forty-nine."""
import bisect
import collections
import contextlib
import re
import shutil
import signal
import sys
import time

from processes import QUIVER, ROOT, Folder
from supply import Supply
from table import Table, share

sys.path.append(str(ROOT / "tests" / "e2e" / "support"))
from hosts import wait_until  # noqa: E402
from redis_hosts import RedisHost, RedisServer  # noqa: E402
from sites import Site, add, task  # noqa: E402

RELOADS = 20
BUILT = ROOT / "build" / "test-plugins"
BUILDS = ("ledger-two.so", "ledger.so")
KEYS = [f"k{i}" for i in range(50)]
WAITING = 20 * len(KEYS)
TASK_US = 2000


class RedisSite(RedisHost, Site):
    """The same with its tasks in Redis."""


@contextlib.contextmanager
def on_sqlite():
    with Folder() as folder:
        site = Site(QUIVER, BUILT, folder)
        try:
            yield site
        finally:
            site.close()


@contextlib.contextmanager
def on_redis():
    with Folder() as folder:
        server = RedisServer(folder)
        try:
            site = RedisSite(QUIVER, BUILT, folder, server.start())
            try:
                yield site
            finally:
                site.close()
        finally:
            server.close()


def gaps_at(entries, moments):
    """The gaps, between two tasks of one key, in which one of the moments lies; in milliseconds."""
    starts, ends = collections.defaultdict(list), collections.defaultdict(list)
    for e in entries:
        (starts if e.what == "start" else ends)[e.key].append(e.at_ns)
    gaps = []
    for moment in moments:
        for key in starts:
            after = bisect.bisect_right(starts[key], moment)
            before = bisect.bisect_right(ends[key], moment)
            # One that ran across the moment: the gap is the one behind it.
            if after > before and before < len(ends[key]) and after < len(starts[key]):
                gaps.append((starts[key][after] - ends[key][before]) / 1e6)
            elif after == before and 0 < before and after < len(starts[key]):
                gaps.append((starts[key][after] - ends[key][before - 1]) / 1e6)
    return gaps


def settings(text):
    return add("window = { per_key = 64; };\n")(text).replace('"debug"', '"info"')


def reload_under_load(site, reloads):
    """The moments of promotions, moments at which nothing happened, what was submitted, and what the handler wrote down."""
    quiet = []
    site.configure(work="processes = 2; threads = 4;", change=settings).start()
    supply = Supply(site.submit, lambda: site.sum("done"), KEYS, TASK_US, WAITING)
    try:
        supply.begin()
        for i in range(reloads):
            quiet.append(time.clock_gettime_ns(time.CLOCK_BOOTTIME))
            time.sleep(0.25)
            site.install(BUILDS[i % 2])
            site.signal(signal.SIGHUP)
            site.wait_count("event=promoted", i + 1)
            time.sleep(0.25)
    finally:
        supply.finish()
    wait_until(lambda: site.sum("done") + site.sum("dead") >= supply.count, "all are done", 120)
    promoted = [int(at) for at in re.findall(r"event=promoted .* at_ns=(\d+)", site.log())]
    return promoted, quiet, supply.count, site.ledger()


def harm(entries, count):
    """Tasks that are missing, that failed, and that ran twice."""
    starts = collections.Counter(e.number for e in entries if e.what == "start")
    done = {e.number for e in entries if e.what == "end" and e.outcome == 0}
    return count - len(done) + sum(n > 1 for n in starts.values())


def measure_pause(table, reloads):
    for name, opened in (("redis", on_redis), ("sqlite", on_sqlite)):
        with opened() as site:
            promoted, quiet, count, entries = reload_under_load(site, reloads)
            site.stop()
        with_reload, without = gaps_at(entries, promoted), gaps_at(entries, quiet)
        for what, gaps in (("without a reload", without), (f"in {len(promoted)} reloads", with_reload)):
            how = f"longest {max(gaps):.0f} ms; {len(KEYS)} keys, tasks of {TASK_US // 1000} ms"
            table.add(f"reload, {name}: pause of a key {what}, p50", share(gaps, .5), "ms", how=how)
            table.add(f"reload, {name}: pause of a key {what}, p99", share(gaps, .99), "ms", how=how)
        table.add(f"reload, {name}: p99 beyond what it is anyway", share(with_reload, .99) - share(without, .99), "ms",
                  bar="reload.pause", how="SIGHUP under load")
        table.add(f"reload, {name}: lost, failed or doubled", harm(entries, count), "tasks", bar="reload.harm",
                  how=f"of {count}")


def own_files(text):
    return re.sub(r'(h\d+) = \{ plugin = "ledger.so"', r'\1 = { plugin = "\1.so"', text)


def measure_many(table):
    with on_sqlite() as site:
        for i in range(50):
            shutil.copy(BUILT / "ledger.so", site.plugins / f"h{i}.so")
        site.configure(change=own_files, **{f"h{i}": "" for i in range(50)}).start()
        site.submit([task("a", i, handler=f"h{i}") for i in range(50)])
        site.wait_done(50)
        before = site.runners()
        site.install("ledger-two.so", "h7.so")
        started = time.monotonic()
        site.reload()
        answered = time.monotonic()
        site.wait_count("event=promoted", 1)
        took = time.monotonic()
        wait_until(lambda: not site.runners()["h7"] & before["h7"], "the old runner is gone")
        after = site.runners()
        site.stop()
    how = f"{sum(after[name] == before[name] for name in before)} runners untouched"
    table.add("reload of 1 of 50 handlers: planned", (answered - started) * 1e3, "ms", how=how)
    table.add("reload of 1 of 50 handlers: serving", (took - started) * 1e3, "ms", how=how)


PARTS = {"pause": lambda table, options: measure_pause(table, RELOADS), "many": lambda table, options: measure_many(table)}


def main():
    measure_pause(Table("reload.pause"), int(sys.argv[1]) if len(sys.argv) > 1 else RELOADS)
    measure_many(Table("reload.many"))


if __name__ == "__main__":
    main()
