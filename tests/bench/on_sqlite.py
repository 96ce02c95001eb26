"""Quiver on SQLite, next to the bare batch rate on the same file system in the same run."""
import contextlib
import sqlite3
import statistics
import subprocess
import time

from rig import (Folder, Host, KEYS, SHARDS, TOOLS, cpu_seconds, measure_hot, measure_idle, measure_memory, share, tool, wait_until)

WARM = 100


class Site:
    def __init__(self, folder, level):
        self.folder, self.level = folder, level
        self.host = Host(folder, f'url = "sqlite:{folder}/q.db"; synchronous = "{level}";')

    def done_of(self):
        """The counter of each shard, as an independent reader sees it."""
        with contextlib.closing(sqlite3.connect(f"file:{self.folder}/q.db?mode=ro", uri=True, timeout=30)) as db:
            found = dict(db.execute("SELECT shard, done FROM shard"))
        return [found.get(shard, 0) for shard in range(SHARDS)]

    def done(self):
        return sum(self.done_of())

    def push(self, *words):
        return float(tool("client_load", self.host.config, *words))

    def through(self, tasks):
        """Seconds from the first submit until all are done."""
        first, began = self.done(), time.monotonic()
        producer = subprocess.Popen([TOOLS / "client_load", self.host.config, "push", str(tasks), str(KEYS)],
                                    stdout=subprocess.DEVNULL)
        wait_until(lambda: self.done() >= first + tasks, "all are done", 300, 0.01)
        producer.wait()
        return time.monotonic() - began


@contextlib.contextmanager
def site(level):
    with Folder() as folder:
        one = Site(folder, level)
        try:
            yield one
        finally:
            one.host.stop()


def bare(level, tasks):
    return tasks / float(tool("bench_sqlite", "bare", level, tasks))


def measure_through(table, options):
    for level, tasks, bar in (("normal", options.tasks, .3), ("full", options.tasks // 4, None)):
        how = f"{level.upper()}, {KEYS} keys uniform, {SHARDS} shards"
        with site(level) as one:
            one.host.start()
            one.through(tasks // 10)
            bares, rates = [], []
            for _ in range(options.rounds):
                bares.append(bare(level, tasks))
                rates.append(tasks / one.through(tasks))
            table.add("sqlite", f"bare batch rate, {level.upper()}", max(bares), "tasks/s",
                      how=f"insert, then read + delete, batches of 100; best of {options.rounds}")
            table.add("sqlite", f"end to end, {level.upper()}", max(rates), "tasks/s", how=f"{how}; best of {options.rounds}")
            table.add("sqlite", f"end to end / bare, {level.upper()}", max(rates) / max(bares), "", bar=bar, how="best / best")
            table.add("sqlite", f"end to end / bare, {level.upper()}, round by round",
                      statistics.median(r / b for r, b in zip(rates, bares)), "", bar=bar, how="median of the rounds' ratios")
            before = cpu_seconds(one.host.process.pid), cpu_seconds(one.host.runner())
            one.through(tasks)
            after = cpu_seconds(one.host.process.pid), cpu_seconds(one.host.runner())
            table.add("sqlite", f"CPU of the host, {level.upper()}", (after[0] - before[0]) / tasks * 1e6, "us/task")
            table.add("sqlite", f"CPU of the runner, {level.upper()}", (after[1] - before[1]) / tasks * 1e6, "us/task")
            if level == "normal":
                measure_memory(table, "sqlite", one.host, how)


def measure_drain(table, options):
    tasks = options.tasks
    with site("normal") as one:
        one.host.start().stop()
        one.push("push", tasks, KEYS)
        size = (one.folder / "q.db").stat().st_size
        table.add("sqlite", "memory per queued task beyond its payload", size / tasks - 100, "bytes", bar=100, at_least=False,
                  how=f"{tasks} queued, size of the file")
        one.host.start()
        wait_until(lambda: one.done() > 0, "it has begun")
        first, began = one.done(), time.monotonic()
        wait_until(lambda: one.done() >= tasks, "all are done")
        table.add("sqlite", f"drain: {tasks} queued, NORMAL", (tasks - first) / (time.monotonic() - began), "tasks/s",
                  how=f"{KEYS} keys uniform")


def measure_hot_key(table, options):
    with site("normal") as one:
        one.host.start()
        measure_hot(table, "sqlite", one.host, lambda n: one.push("hot", "hot", n),
                    lambda n: one.push("push", n, KEYS, "hot"), one.done_of, "NORMAL", options.tasks)


def measure_latency(table, options):
    for level in ("normal", "full"):
        with site(level) as one:
            one.host.start(with_latencies=True)
            one.push("singles", WARM + options.singles)
            wait_until(lambda: len(one.host.latencies_ms(0)) >= WARM + options.singles, "all were handled")
            found = one.host.latencies_ms(WARM)
            is_normal = level == "normal"
            how = f"{options.singles} single submits, 2 ms apart, {level.upper()}"
            table.add("sqlite", f"idle latency: submit to handle(), {level.upper()}, p50", share(found, .5), "ms",
                      bar=.3 if is_normal else None, at_least=False, how=how)
            table.add("sqlite", f"idle latency: submit to handle(), {level.upper()}, p99", share(found, .99), "ms",
                      bar=1 if is_normal else None, at_least=False, how=how)


def measure_quiet(table, options):
    with site("normal") as one:
        one.host.start()
        one.through(1000)
        table.add("sqlite", "idle CPU of the host", measure_idle([one.host.process.pid], options.idle_s), "% of one", bar=.5,
                  at_least=False, how=f"over {options.idle_s} s, {SHARDS} shards")


PARTS = {"through": measure_through, "drain": measure_drain, "hot": measure_hot_key, "latency": measure_latency,
         "idle": measure_quiet}
