"""The bars: what Quiver has to reach, each in one place.  The table compares with them, and the summary lists them."""
import collections

Bar = collections.namedtuple("Bar", "what limit at_least unit needs")


def at_least(what, limit, unit="", needs=""):
    return Bar(what, limit, True, unit, needs)


def at_most(what, limit, unit="", needs=""):
    return Bar(what, limit, False, unit, needs)


# Ratios are of figures of the same run: machines differ.
BARS = {
    "rate.redis": at_least("end to end on Redis, of the bare limit (one list, no envelopes)", .7),
    "cpu.redis": at_most("CPU per task end to end: Redis", 3, "us/task"),
    "cpu.host": at_most("CPU per task end to end: the host", 2, "us/task"),
    "cpu.runner": at_most("CPU per task end to end: the runner", .6, "us/task"),
    "peers": at_least("Quiver, of every peer", 4, "x", "PEERS=1"),
    "rate.sqlite": at_least("end to end on SQLite NORMAL, of the bare batch rate", .6),
    "latency.p50": at_most("idle latency on Redis, submit to handle(), of bare, p50", 1.75, "x"),
    "latency.p99": at_most("idle latency on Redis, submit to handle(), of bare, p99", 2.25, "x"),
    "load.eighth.p50": at_most("latency at 1/8 of the most, p50", .8, "ms"),
    "load.half.p50": at_most("latency at 1/2 of the most, p50", 2, "ms"),
    "load.half.p99": at_most("latency at 1/2 of the most, p99", 8, "ms"),
    "handlers": at_least("64 seats, handlers that sleep 1 ms, of 64 threads on one mutex queue", .7),
    "client.threads": at_least("client library, single submits of 16 threads, of RPUSH in pipelines of 16", .8),
    "http.single": at_least("HTTP, one task a request, 16 connections", 20000, "tasks/s"),
    "http.lines": at_least("HTTP, lines of JSON, of the client library's bulk rate", .5),
    "http.wait": at_most("HTTP, request to outcome when idle, of the idle latency's p50", 3, "x"),
    "http.slow": at_least("HTTP, one task a request beside 200 slow clients, of that without", .9),
    "http.slow.wait": at_most("HTTP, request to outcome beside 200 slow clients, of that without", 1.1, "x"),
    "advance.commands": at_most("Redis commands a task in shards without schedules, limits and merging, of those in an app without", 1.02, "x"),
    "idle.cpu": at_most("idle CPU of host and store, 64 shards, also with 20 000 keys paused", .5, "% of one"),
    "idle.host": at_most("memory of an idle host", 15, "MB"),
    "idle.runner": at_most("memory of a runner", 6, "MB"),
    "idle.shards": at_most("memory of an idle host with 4096 shards", 40, "MB"),
    "resume": at_most("a handler is resumed: its first start after", 100, "ms"),
    "memory": at_most("store memory per queued task beyond its payload", 65, "bytes"),
    "growth.backlog": at_least("end to end with 5 000 000 queued, of that with 10 000", .85, "", "LONG=1"),
    "growth.shards.redis": at_least("end to end on Redis with 1024 shards, of that with 64", .5),
    "growth.shards.sqlite": at_least("end to end on SQLite with 1024 shards, of that with 64", .8),
    "growth.keys": at_least("end to end with 1000 keys (16 a shard), of that with 10 000", .35),
    "hot.alone": at_least("hot key on Redis alone: its tasks in the time of a bare round trip", .333),
    "hot.beside": at_least("hot key: its rate beside others, of that alone", .2),
    "hot.others": at_least("hot key: others' rate beside it, of that without it", .85),
    "hot.ordered": at_least("hot key with ordered batches", 60000, "tasks/s"),
    "killed": at_most("kill -9 of an owner: all its shards run again after", .5, "s"),
    "lost": at_most("kill -9 of owner and guard: after", 1.3, "x TTL"),
    "move.pause": at_most("planned move: pause of a moved shard, p99", 200, "ms"),
    "move.unmoved": at_most("planned move: p99 of unmoved shards beyond that in quiet", 10, "ms"),
    "move.twice": at_most("planned move: tasks run twice", 0),
    "seats": at_most("four jobs of 1.5 s without keys on two hosts of one seat, the longest of 20", 3.5, "s"),
    "lanes": at_least("lanes over shards: rounds in which tasks start by lane, of 20", 20, "rounds"),
    "reload.pause": at_most("SIGHUP under load: p99 of a key's pause beyond that without", 50, "ms"),
    "reload.harm": at_most("SIGHUP under load: tasks lost, failed or doubled", 0),
    "assign": at_most("assignment of 4096 shards to 200 members: its document, in a znode", 1048575, "bytes"),
}


def met(bar, value):
    return value >= bar.limit if bar.at_least else value <= bar.limit


def said(bar):
    return f"{'>=' if bar.at_least else '<='} {bar.limit:.7g}"


def worst(bar, rows):
    return (min if bar.at_least else max)(rows, key=lambda row: row.value)


def summary(rows):
    """A line per bar: what, bar, the worst figure, its unit, the verdict, where that was."""
    lines = []
    for name, bar in BARS.items():
        of_it = [row for row in rows if row.bar == name]
        if of_it:
            row = worst(bar, of_it)
            where = f"{row.part}: {row.name()}" + (f", the worst of {len(of_it)}" if len(of_it) > 1 else "")
            lines.append((bar.what, said(bar), f"{row.value:.4g}", bar.unit, row.verdict(), where))
        else:
            lines.append((bar.what, said(bar), "-", bar.unit, "not measured", bar.needs and f"it takes {bar.needs}"))
    return lines
