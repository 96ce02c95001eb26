"""From submit to handle(): to a host that has nothing to do, and to one that is as busy as a part of the most it can do."""
from place import opened
from processes import wait_until
from rates import add_bare, best_rate
from table import share

WARM = 100
IDLE_RATES = (200, 500)  # a second: 5 and 2 ms apart; the bars are for the first
LOADS = ((8, ("load.eighth.p50", None)), (4, (None, None)), (2, ("load.half.p50", "load.half.p99")), (4 / 3, (None, None)))
STAMP = 16  # one of so many is measured under load: writing the time down costs something, too


def add_shares(table, what, found, how, bars=(None, None)):
    for name, part, bar in (("p50", .5, bars[0]), ("p99", .99, bars[1])):
        table.add(f"{what}, {name}", share(found, part), "ms", bar=bar, how=how)


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
            how = f"{level}, {options.singles} single submits, {1000 // IDLE_RATES[0]} ms apart"
            add_shares(table, f"idle latency, bare: {place.bare_latency_name}, {level}", bare, how)
            place.start()
            for rate in IDLE_RATES:
                found, _ = latencies(place, WARM + options.singles, WARM, step=1, rate=rate, stamp=1)
                apart, how = f"{1000 // rate} ms apart", f"{level}, {options.singles} single submits"
                add_shares(table, f"idle latency: submit to handle(), {level}, {apart}", found, how)
                for name, part in (("p50", .5), ("p99", .99)):
                    table.add(f"idle latency / bare, {level}, {apart}, {name}", share(found, part) / share(bare, part), "x", how=how,
                              bar=f"latency.{name}" if kind.name == "redis" and rate == IDLE_RATES[0] else None)


def measure_half(table, options, kind):
    for level in kind.levels if kind.name == "sqlite" else kind.levels[:1]:
        with opened(kind, level=level, with_latencies=True) as place:
            place.start().warm(2000)
            add_bare(table, place, options.tasks // 4)
            most = best_rate(place, options.tasks // (1 if level == kind.levels[0] else 4), 2)
            for parts, bars in LOADS:
                rate = int(most / parts)
                tasks = rate * options.half_s
                found, seconds = latencies(place, tasks, rate // STAMP, rate=rate, stamp=STAMP)
                at = (round(100 / parts, 1), "% of the most")
                table.add(f"load, {level}", tasks / seconds, "tasks/s", at=at, how=f"meant to be {rate}, for {options.half_s} s")
                has_bars = level == kind.levels[0]
                for name, part, bar in (("p50", .5, bars[0]), ("p99", .99, bars[1])):
                    table.add(f"latency under load, {level}, {name}", share(found, part), "ms", at=at,
                              bar=bar if has_bars else None, how="without the first second")
