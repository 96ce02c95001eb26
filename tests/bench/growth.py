"""What becomes of the rate as something grows: backlog, shards, hosts, payload, keys.  Each is a curve."""
import contextlib
import statistics
import subprocess
import time

from place import PAYLOAD, opened
from processes import running, wait_done
from rates import add_bare, best_rate

SHARDS = (16, 64, 256, 1024, 4096)
HOSTS = (1, 2, 4, 8)
PAYLOADS = (10, 100, 1 << 10, 10 << 10, 100 << 10, 1 << 20)
PAYLOAD_BYTES = 64 << 20  # of all tasks of a point
KEY_COUNTS = (1, 10, 100, 1000, 10000, 100000, 1000000)
FEW_KEYS = {1: 20, 10: 5}  # these take their turns, one task after the other: a part of the tasks is enough
RETRY_EVERY = (0, 1000, 100)
BACKLOGS, HUGE = (10000, 100000, 1000000), 5000000
CURVES = ("backlog", "shards", "hosts", "payload", "keys")


def measure_drain(table, options, kind):
    """Tasks that are there before the host is; its start is not counted."""
    with opened(kind) as place:
        place.make()
        add_bare(table, place, options.tasks)
        rates = []
        for _ in range(options.rounds):
            place.push(options.tasks)
            rates.append(options.tasks / place.drain(options.tasks))
            place.stop()
        table.add(f"drain: {options.tasks} queued", statistics.median(rates), "tasks/s",
                  how=f"{place.how()}; median of {options.rounds}")


def standing_rate(place, tasks):
    """For each task that is done another is submitted: the backlog stays as it is while the rate is measured.  Returns the
    rate, and how many were submitted."""
    with running(place.producer(2 ** 31, feed=1), stdin=subprocess.PIPE) as producer:
        before = fed = place.done()
        first = before + tasks // 5  # a host's start is not part of it
        began = at = None
        place.start()

        def feed():
            nonlocal fed, began, at
            done = place.done()
            if done > fed:
                producer.stdin.write(f"{done - fed}\n")
                producer.stdin.flush()
            if began is None and done >= first:
                began, at = time.monotonic(), done
            fed = done
            return done

        wait_done(feed, first + tasks, pause=0.002)
        rate = (fed - at) / (time.monotonic() - began)
        producer.stdin.close()
        producer.wait(60)
    place.stop()
    return rate, fed - before


def standing_round(table, place, queued, sent, tasks):
    """Fills the backlog up, of which so many were sent before.  Returns the rate, and how many were sent by now."""
    missing, before = queued - (sent - place.done()), place.stored_bytes()
    place.push(missing)
    if not sent:
        table.add("store memory beyond the payload", (place.stored_bytes() - before) / queued - PAYLOAD, "bytes",
                  at=(queued, "queued"), bar="memory" if queued > BACKLOGS[0] else None, how="per task")
    rate, fed = standing_rate(place, tasks)
    return rate, sent + missing + fed


def measure_backlog(table, options, kind):
    """All at once, so that their rounds take turns."""
    sizes = BACKLOGS + ((HUGE,) if options.long else ())
    rates, sent = {queued: [] for queued in sizes}, dict.fromkeys(sizes, 0)
    with contextlib.ExitStack() as stack:
        places = {queued: stack.enter_context(opened(kind)).make() for queued in sizes}
        add_bare(table, places[sizes[0]], options.tasks)
        for _ in range(options.rounds):
            for queued, place in places.items():
                rate, sent[queued] = standing_round(table, place, queued, sent[queued], options.tasks)
                rates[queued].append(rate)
        how = f"{places[sizes[0]].how()}, standing backlog; median of {options.rounds}"
    for queued in sizes:
        table.add("end to end", statistics.median(rates[queued]), "tasks/s", at=(queued, "queued"), how=how)
    # A short backlog may run dry between two looks at a busy machine: the better of the two is what there is to keep.
    few = list(map(max, rates[sizes[0]], rates[sizes[1]]))
    for many in sizes[2:]:
        table.add(f"end to end: {many} queued / few", statistics.median(a / b for a, b in zip(rates[many], few)), "",
                  bar="growth.backlog" if many == HUGE else None,
                  how=f"few: the better of {sizes[0]} and {sizes[1]}; median of the rounds' ratios")


@contextlib.contextmanager
def opened_all(kind, name, values):
    """A place for each value, all at once: their rounds take turns and see the same weather."""
    with contextlib.ExitStack() as stack:
        yield {value: stack.enter_context(opened(kind, **{name: value})).start().warm() for value in values}


def measure_side_by_side(table, options, kind, name, values):
    """The rates of each round, by value."""
    rates = {value: [] for value in values}
    cpu = dict.fromkeys(values, 0)
    with opened_all(kind, name, values) as places:
        for _ in range(options.rounds):
            for value, place in places.items():
                before = sum(place.cpu().values())
                rates[value].append(options.tasks / place.through(options.tasks))
                cpu[value] += sum(place.cpu().values()) - before
        for value, place in places.items():
            at, how = (value, name), f"{place.how()}; best of {options.rounds}"
            if name == "shards" or value == values[0]:
                table.add(place.bare_name, options.tasks / place.bare(options.tasks), "tasks/s", at=at, how="once")
            table.add("end to end", max(rates[value]), "tasks/s", at=at, how=how)
            table.add("CPU of all but producers", cpu[value] / options.rounds / options.tasks * 1e6, "us/task", at=at)
    return rates


def measure_shards(table, options, kind):
    rates = measure_side_by_side(table, options, kind, "shards", SHARDS)
    table.add("end to end: 1024 shards / 64 shards", statistics.median(a / b for a, b in zip(rates[1024], rates[64])), "",
              bar=f"growth.shards.{kind.name}", how="median of the rounds' ratios")


def measure_hosts(table, options, kind):
    """All on this machine: what it costs that they are several, not what more machines would bring."""
    measure_side_by_side(table, options, kind, "hosts", HOSTS)


def measure_payload(table, options, kind):
    with opened(kind) as place:
        place.start().warm()
        for size in PAYLOADS:
            tasks = min(options.tasks, PAYLOAD_BYTES * (4 if options.long else 1) // size)
            at, how = (size, "bytes"), f"{place.how()}, {tasks} tasks; best of 2"
            bare = max(tasks / place.bare(tasks, payload=size) for _ in range(2))
            rate = best_rate(place, tasks, 2, payload=size)
            table.add(place.bare_name, bare, "tasks/s", at=at, how=f"{tasks} tasks; best of 2")
            table.add("end to end", rate, "tasks/s", at=at, how=how)
            table.add("payload end to end", rate * size / 1e6, "MB/s", at=at, how=how)


def measure_keys(table, options, kind):
    with opened(kind) as place:
        place.start().warm()
        add_bare(table, place, options.tasks)
        best = {}
        for keys in KEY_COUNTS:
            tasks = options.tasks // FEW_KEYS.get(keys, 1)
            if keys > tasks > options.tasks // 2:
                tasks = keys if options.long else 2 * options.tasks
            best[keys] = best_rate(place, tasks, 2, keys=keys)
            table.add("end to end", best[keys], "tasks/s", at=(keys, "keys"),
                      how=f"{place.level}, {tasks} tasks, {place.shards} shards; best of 2")
        table.add("end to end: 1000 keys / 10000 keys", best[1000] / best[10000], "", bar="growth.keys", how="best / best")


def measure_retries(table, options, kind):
    """Some tasks fail once, and their keys wait for the retry.  The last retry's delay is part of the time."""
    retry = 'retry = { backoff = "100ms"; jitter = 0.0; };'
    rates = {}
    with contextlib.ExitStack() as stack:
        places = {every: stack.enter_context(opened(kind, handler=retry, settings=f"retry_every = {every};")).start().warm()
                  for every in RETRY_EVERY}
        for _ in range(options.rounds):
            for every, place in places.items():
                rates.setdefault(every, []).append(options.tasks / place.through(options.tasks))
        how = f"{place.how()}, backoff 100 ms; best of {options.rounds}"
    for every, found in rates.items():
        name = f"one task in {every} fails once" if every else "no task fails"
        table.add(f"end to end, {name}", max(found), "tasks/s", how=how)
        if every:
            table.add(f"end to end, {name} / none does", max(found) / max(rates[0]), "", how="best / best, in turns")
