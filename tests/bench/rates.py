"""How many tasks a second: end to end next to the bare limit, at every level of durability, and submits alone."""
import statistics

from place import THREADS, opened
from processes import rss_mb


def add_bare(table, place, tasks, **load):
    """The limit of the same run, for parts that measure something else."""
    table.add(place.bare_name, tasks / place.bare(tasks, **load), "tasks/s", how=f"{place.level}, in this part; once")


def best_rate(place, tasks, rounds, **load):
    return max(tasks / place.through(tasks, **load) for _ in range(rounds))


CPU_BARS = {"Redis": "cpu.redis", "the host": "cpu.host", "the runner": "cpu.runner"}


def add_cpu(table, place, tasks, what, has_bars=False):
    """What the kernel charged to each while so many tasks went through."""
    before = place.cpu()
    place.through(tasks)
    for name, seconds in place.cpu().items():
        table.add(f"CPU of {name}, {what}", (seconds - before[name]) / tasks * 1e6, "us/task", how=place.level,
                  bar=CPU_BARS[name] if has_bars else None)


def measure_level(table, place, tasks, rounds, bar):
    """Bare and Quiver's in turns, so that both see the same weather."""
    bare, through, spread = [], [], []
    place.start().warm(min(20000, tasks))
    for _ in range(rounds):
        bare.append(tasks / place.bare(tasks))
        through.append(tasks / place.through(tasks))
        if place.spread_name:
            spread.append(tasks / place.bare_spread(tasks))
    how = f"best of {rounds}"
    table.add(f"{place.bare_name}, {place.level}", max(bare), "tasks/s", how=how)
    table.add(f"end to end, {place.level}", max(through), "tasks/s", how=f"{place.how()}; {how}")
    table.add(f"end to end / bare, {place.level}", max(through) / max(bare), "", bar=bar, how="best / best")
    table.add(f"end to end / bare, {place.level}, by round", statistics.median(q / b for q, b in zip(through, bare)), "",
              bar=bar, how="median of the rounds' ratios")
    if spread:
        table.add(f"{place.spread_name}, {place.level}", max(spread), "tasks/s", how=how)
        table.add(f"end to end / {place.spread_name}, {place.level}", max(through) / max(spread), "", how="best / best")
    add_cpu(table, place, tasks, place.level, bar == "rate.redis")


def measure_through(table, options, kind):
    with opened(kind) as place:
        measure_level(table, place, options.tasks, options.rounds, f"rate.{kind.name}")
        table.add("memory of the host right after load", rss_mb(place.hosts[0].process.pid), "MB", how="RSS")
        for what, value, unit in place.more_rows(options.tasks):
            table.add(what, value, unit)


def measure_durable(table, options, kind):
    for level in kind.levels[1:]:
        with opened(kind, level=level) as place:
            measure_level(table, place, options.tasks // 4, 2, None)


def measure_submit(table, options, kind):
    """Nobody works: what it costs to hand tasks over."""
    for level in kind.levels:
        is_first = level == kind.levels[0]
        few, many = (options.tasks // 10, options.tasks) if is_first else (options.tasks // 100, options.tasks // 4)
        with opened(kind, level=level) as place:
            place.make()
            add_bare(table, place, many)
            for what, seconds, count in place.more_submits(many):
                table.add(f"{what}, {level}", count / seconds, "tasks/s", how="no host")
            for what, step, count in (("one by one", 1, few), ("100 in one step", 100, many), ("1000 in one step", 1000, many)):
                table.add(f"submit: client, {what}, {level}", count / place.submit(count, step=step), "tasks/s",
                          how="client library, one process, no host")
            measure_threads(table, place, many if kind.name == "redis" else few)


def measure_threads(table, place, count):
    """Single submits, each acknowledged, of many threads that share a handle; in turns with what they are compared with."""
    what = f"submit: client, one by one, {THREADS} threads of one handle"
    rates, plain = [], {step: [] for step in place.pipelines}
    for _ in range(2):
        rates.append(count / place.submit(count, threads=THREADS))
        for step, found in plain.items():
            found.append(count / place.push(count, step=step))
    table.add(f"{what}, {place.level}", max(rates), "tasks/s", how="client library, no host; best of 2")
    for step, found in plain.items():
        table.add(f"{what} / RPUSH in pipelines of {step}, {place.level}", max(rates) / max(found), "", how="best / best, in turns",
                  bar="client.threads" if step == THREADS and place.level == place.levels[0] else None)
