"""From submit to handle(): to a host that has nothing to do, and to one that is half as busy as it can be."""
from place import opened
from processes import wait_until
from rates import add_bare, best_rate
from table import share

WARM = 100
IDLE_RATE = 500  # a second: 2 ms apart
STAMP = 16  # one of so many is measured under load: writing the time down costs something, too


def add_shares(table, what, found, how, bars=(None, None), beyond=(0, 0)):
    for name, part, bar, less in (("p50", .5, bars[0], beyond[0]), ("p99", .99, bars[1], beyond[1])):
        table.add(f"{what}, {name}", share(found, part) - less, "ms", bar=bar, how=how)


def latencies(place, tasks, warm, **load):
    """Of tasks that carry their time, without those that came first; and how long it took to submit them."""
    before = len(place.latencies_ms())
    expected = before + -(-tasks // load["stamp"])
    seconds = place.push(tasks, **load)
    wait_until(lambda: len(place.latencies_ms()) >= expected, "all were handled", 60, 0.05)
    return place.latencies_ms()[before + warm:], seconds


def measure_latency(table, options, kind):
    for level in kind.levels if kind.name == "sqlite" else kind.levels[:1]:
        with opened(kind, level=level, with_latencies=True) as place:
            bare = place.bare_latencies(options.singles)
            place.start()
            found, _ = latencies(place, WARM + options.singles, WARM, step=1, rate=IDLE_RATE, stamp=1)
            how = f"{level}, {options.singles} single submits, {1000 // IDLE_RATE} ms apart"
            is_first = level == kind.levels[0]
            add_shares(table, f"idle latency, bare: {place.bare_latency_name}, {level}", bare, how)
            add_shares(table, f"idle latency: submit to handle(), {level}", found, how,
                       ("latency.p50", "latency.p99") if is_first else (None, None))
            if not is_first:
                add_shares(table, f"idle latency beyond a bare commit, {level}", found, how,
                           ("latency.full.p50", "latency.full.p99"), (share(bare, .5), share(bare, .99)))


def measure_half(table, options, kind):
    for level in kind.levels if kind.name == "sqlite" else kind.levels[:1]:
        with opened(kind, level=level, with_latencies=True) as place:
            place.start().warm(2000)
            add_bare(table, place, options.tasks // 4)
            most = best_rate(place, options.tasks // (1 if level == kind.levels[0] else 4), 2)
            half = int(most / 2)
            tasks = half * options.half_s
            found, seconds = latencies(place, tasks, half // STAMP, rate=half, stamp=STAMP)
            table.add(f"half load, {level}", tasks / seconds, "tasks/s", how=f"meant to be {half}, for {options.half_s} s")
            add_shares(table, f"latency at half load, {level}", found, f"{level}, without the first second")
