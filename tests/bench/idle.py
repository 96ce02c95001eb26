"""What a host takes when there is nothing to do: CPU, memory."""
import time

from place import opened
from processes import cpu_seconds, rss_mb

SETTLE_S = 5  # a host gives back what it does not need at its next renewal


def percent_of_a_core(pids, seconds):
    before, began = sum(map(cpu_seconds, pids)), time.monotonic()
    time.sleep(seconds)
    return (sum(map(cpu_seconds, pids)) - before) / (time.monotonic() - began) * 100


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
