"""What a host takes when there is nothing to do: CPU, memory."""
import time

from place import opened
from processes import QUIVER, cpu_seconds, output, rss_mb, wait_until

SETTLE_S = 5  # a host gives back what it does not need at its next renewal


def percent_of_a_core(pids, seconds):
    before, began = sum(map(cpu_seconds, pids)), time.monotonic()
    time.sleep(seconds)
    return (sum(map(cpu_seconds, pids)) - before) / (time.monotonic() - began) * 100


PAUSED_KEYS = 20000
MANY_SHARDS = 4096


def measure_paused(table, options, place, pids):
    """Keys that wait for a handler which a person has paused; then it goes on."""
    config, done = place.hosts[0].config, place.done()
    output([QUIVER, "pause", "noop", "-c", config], 60)
    place.push(PAUSED_KEYS, keys=PAUSED_KEYS)
    time.sleep(SETTLE_S)
    table.add(f"idle CPU, {PAUSED_KEYS} keys paused", percent_of_a_core(pids, options.idle_s), "% of one", bar="idle.cpu",
              how=f"over {options.idle_s} s, {place.shards} shards")
    output([QUIVER, "resume", "noop", "-c", config], 60)
    began = time.monotonic()
    wait_until(lambda: place.done() > done, "the first of them is done", 60, 0.001)
    table.add("resume: until the first is done", (time.monotonic() - began) * 1000, "ms", bar="resume",
              how="after the command has ended")


def measure_many_shards(table, kind):
    with opened(kind, shards=MANY_SHARDS) as place:
        place.start()
        time.sleep(SETTLE_S)
        table.add("memory of the host, idle", rss_mb(place.hosts[0].process.pid), "MB", at=(MANY_SHARDS, "shards"),
                  bar="idle.shards", how="RSS, before any task")


def measure_idle(table, options, kind):
    """Of a host that has run tasks before; its runner is still there."""
    with opened(kind) as place:
        how = f"over {options.idle_s} s, {place.shards} shards"
        for name, pid in place.servers().items():
            table.add(f"idle CPU of {name} alone, without a host", percent_of_a_core([pid], options.idle_s), "% of one", how=how)
        place.start().warm(options.tasks)
        time.sleep(SETTLE_S)
        host = place.hosts[0]
        pids = [host.process.pid, *place.servers().values()]
        table.add(f"idle CPU of {' and '.join(['the host', *place.servers()])}", percent_of_a_core(pids, options.idle_s),
                  "% of one", bar="idle.cpu", how=how)
        table.add("memory of the host, idle after load", rss_mb(host.process.pid), "MB", bar="idle.host", how="RSS")
        for pid in host.runners()[:1]:
            table.add("memory of a runner", rss_mb(pid), "MB", bar="idle.runner", how="RSS")
        measure_paused(table, options, place, pids)
    measure_many_shards(table, kind)
