"""What schedules, limits and merging cost the calls of shards that have none of them: Redis commands and CPU a task.

Tasks come one by one, so that each takes the same calls: one that claims it, and one that commits it.
"""
import statistics
import time

from on_redis import OnRedis
from place import opened, shard_of
from processes import QUIVER, cpu_seconds, output, wait_until

SHARDS = 8
HELD = 500  # tasks that wait for the limit
RATE = 250
MORE = 'limits = { day = { rate = 1; per = "1d"; burst = 2; }; };'
# A second handler, beside the one that stands there.
UNDER = '}; held = { plugin = "noop.so"; limited_by = ( "day" );'


def keys_of(shards, count, name="key"):
    found = [f"{name}-{n}" for n in range(40 * count) if shard_of(f"{name}-{n}", SHARDS) in shards]
    return found[:count]


def envelope(key, handler="noop", more=""):
    return f"qv1\nkey:{key}\nhandler:{handler}\n{more}\nx"


def push(place, key, text):
    place.client.rpush(f"quiver:{{bench:{shard_of(key, SHARDS)}}}:normal", text)


SCHEDULED, LIMITED, DEBOUNCED = [0], [1], [2]
NONE = range(4, SHARDS)


def fill(place):
    """Schedules in a shard, tasks that wait for a limit in another, debounced tasks in a third."""
    for i, key in enumerate(keys_of(SCHEDULED, 20)):
        output([QUIVER, "schedule", "set", f"later-{i}", "--every", "24h", "--start", "2090-01-01", "--handler", "noop", "--key", key,
                "-c", place.hosts[0].config], 60)
    for key in keys_of(LIMITED, HELD):
        push(place, key, envelope(key, "held"))
    for key in keys_of(DEBOUNCED, 20):
        for _ in range(3):
            push(place, key, envelope(key, more="merge:1\ndebounce:3600000\n"))


def spent(place):
    """Commands, scripts, CPU µs of the server."""
    stats = place.client.info("commandstats")
    commands = sum(one["calls"] for name, one in stats.items() if name not in ("cmdstat_info", "cmdstat_eval"))
    return commands, stats.get("cmdstat_evalsha", {"calls": 0})["calls"], cpu_seconds(place.server.process.pid) * 1e6


def round_of(place, shards, tasks):
    """The same, a task, without what the host does at rest."""
    before, began = spent(place), time.monotonic()
    time.sleep(2)
    rest = [(b - a) / (time.monotonic() - began) for a, b in zip(before, spent(place))]
    keys = keys_of(shards, 64, "quick")
    done, before, began = place.done(), spent(place), time.monotonic()
    for i in range(tasks):
        time.sleep(max(0, began + i / RATE - time.monotonic()))
        push(place, keys[i % len(keys)], envelope(keys[i % len(keys)]))
    wait_until(lambda: place.done() >= done + tasks, "all are done", 60, 0.01)
    seconds = time.monotonic() - began
    return [(b - a - r * seconds) / tasks for a, b, r in zip(before, spent(place), rest)]


def measure_advance(table, options):
    tasks, rounds = options.singles // 2, 3
    with opened(OnRedis, shards=SHARDS) as bare, opened(OnRedis, shards=SHARDS, more=MORE, handler=UNDER) as full:
        for place in (bare, full):
            place.start()
            place.done()  # opens its connection
        fill(full)
        time.sleep(5)
        cases = {"an app that has none": (bare, NONE), "shards that have none, beside others": (full, NONE),
                 "20 schedules in the shard": (full, SCHEDULED), f"{HELD} tasks of it wait for a limit": (full, LIMITED),
                 "20 keys of it are debounced": (full, DEBOUNCED)}
        found = {name: [] for name in cases}
        for _ in range(rounds):
            for name, (place, shards) in cases.items():
                found[name].append(round_of(place, shards, tasks))
    how = f"{tasks} single RPUSHes, {1000 // RATE} ms apart, median of {rounds} rounds; without what a host at rest does"
    medians = {name: [statistics.median(one[i] for one in of_it) for i in range(3)] for name, of_it in found.items()}
    for name, (commands, scripts, cpu) in medians.items():
        table.add(f"Redis commands a task, {name}", commands, "commands", how=how)
        table.add(f"scripts a task, {name}", scripts, "scripts", how=how)
        table.add(f"CPU of Redis a task, {name}", cpu, "us/task", how=how)
    none, beside, *_ = medians.values()
    table.add("Redis commands a task beside schedules, limits and merging, of those without", beside[0] / none[0], "x",
              bar="advance.commands", how=how)
    table.add("CPU of Redis a task beside schedules, limits and merging, of that without", beside[2] / none[2], "x", how=how)


PARTS = {"advance": measure_advance}
