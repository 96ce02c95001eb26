"""Rules about how many: calls under a limit, times of a schedule, merged tasks; and the most that was seen."""
import collections

from history import scheduled

# `also`: another task that has a part in it.  `at_ns`: the moment, where it is one.
Violation = collections.namedtuple("Violation", "rule key number text also at_ns", defaults=("", 0))


PASSED_MAX = 10_000  # of times that pass at once no more are counted


def is_trusted(h, limit, at_ns):
    """Whether the home of a limit knew then what it had granted: not while a failover may have lost it, nor just after a step
    of its clock, which ends shares and fills buckets, until its holders have said again what they use."""
    back_ns = limit.back_s * 1e9
    return not any(step <= at_ns <= step + back_ns for step in h.steps) and \
        not any(f.from_ns <= at_ns <= f.until_ns + back_ns for f in h.failovers)


def starts_of(h, ix, limit):
    handlers = {ask.number: ask.handler for ask in h.asks}
    return sorted((line for line in h.lines if line.what == "start" and handlers.get(line.number) == limit.handler),
                  key=lambda line: line.at_ns)


def calls_of(h, ix, limit):
    """(start, from when, until when) of each call.  One without an end was killed, nobody knows when.  One on a host that
    stood still for longer than a lease counts until then: nobody could stop it."""
    ends = {(e.number, e.epoch, e.start): e.at_ns for lines in ix.ends.values() for e in lines}
    for line in starts_of(h, ix, limit):
        end = ends.get((line.number, line.epoch, line.start), line.at_ns)
        stood = [s.from_ns for s in h.stops if s.host == line.host and s.until_ns - s.from_ns > h.ttl_s * 1e9
                 and line.at_ns <= s.until_ns and s.from_ns < end]
        yield line, line.at_ns, max(line.at_ns, min([end, *stood]))


def at_once(h, ix, limit):
    """Of each call: its start, and how many ran just then, itself among them."""
    running = []
    for line, begin, end in calls_of(h, ix, limit):
        running = [other for other in running if other > begin] + [end]
        yield line, len(running)


def in_its_time(h, ix, limit):
    """Of each start under a rate: the line, and how much of what there may be was left after it, as of tokens in a bucket: so no
    time at all has more than rate × t + burst.  What was dispatched may start late, but a seat has no more than one such,
    in the version of its plugin that is being loaded and the one that ends."""
    full = limit.burst + 2 * limit.seats
    level, last_ns = full, 0
    for line in starts_of(h, ix, limit):
        level = min(full, level + (line.at_ns - last_ns) / 1e9 * limit.rate) - 1
        if not is_trusted(h, limit, line.at_ns):
            level = full
        yield line, level
        level, last_ns = max(level, 0), line.at_ns


def limits_hold(h, ix):
    """Never more at once than a concurrency, but for a call of a host that stood still; never more starts than a rate."""
    for limit in h.limits:
        for line, count in at_once(h, ix, limit) if limit.concurrency else ():
            if count > limit.concurrency and is_trusted(h, limit, line.at_ns):
                yield Violation("limit", line.key, line.number,
                                f"{count} run at once on its start, and {limit.name} allows {limit.concurrency}", "", line.at_ns)
        for line, level in in_its_time(h, ix, limit) if limit.rate else ():
            if level < 0:
                yield Violation("limit", line.key, line.number,
                                f"it starts too soon for {limit.rate} a second and {limit.burst} at once", "", line.at_ns)


def most_of(h, ix, limit):
    """What was seen of a limit at most, as text: at once, or within a second."""
    if limit.concurrency:
        return f"{max((count for _, count in at_once(h, ix, limit)), default=0)} at once of {limit.concurrency}"
    times = [line.at_ns for line in starts_of(h, ix, limit)]
    first = most = 0
    for last, at in enumerate(times):
        while at - times[first] > 1e9:
            first += 1
        most = max(most, last - first + 1)
    return f"{most} within 1 s of {limit.rate + limit.burst}"


def lost_seconds(h, shard):
    """In how many seconds at most a failover may have taken back what the store had of that shard."""
    return sum((f.until_ns - f.from_ns) / 1e9 + 1 for f in h.failovers if f.shards is None or shard in f.shards)


def times_fire_once(h, ix):
    """Each time of a schedule has its task once or is counted as passed; none fires before it is due, or that was not."""
    for s in h.schedules:
        numbers = {n for table in (ix.starts, ix.results, ix.dead, ix.rest) for n, found in table.items()
                   if found and n.startswith(f"{s.name}.")}
        times = {int(n.rpartition(".")[2]) for n in numbers}
        lost = lost_seconds(h, h.shard(s.name))
        for at in sorted(times):
            if (at - s.first_s) % s.every_s or not s.first_s <= at < s.next_s + lost * s.every_s:
                yield Violation("schedule", s.name, f"{s.name}.{at}", f"{at} was not due: it goes from {s.first_s} to {s.next_s}")
        if abs(len(times) - s.fired) > lost:
            yield Violation("schedule", s.name, "", f"the store counted {s.fired} times fired, and {len(times)} have tasks")
        due, counted = (s.next_s - s.first_s) // s.every_s, s.fired + s.skipped
        # A clock that is set far ahead passes more at once than are counted.
        if counted != due and not (h.host_steps and s.skipped >= PASSED_MAX and counted < due):
            yield Violation("schedule", s.name, "", f"of {due} times {s.fired} fired and {s.skipped} passed")
        if s.skipped and not s.may_pass and not h.host_steps:
            yield Violation("schedule", s.name, "", f"{s.skipped} times passed, and nobody's clock was set")
        for n in sorted(numbers):
            if not ix.results[n] and not ix.dead[n] and not ix.rest[n] and not lost:
                yield Violation("schedule", s.name, n, "it fired, and its task is neither done, dead nor there")
        first = list(dict.fromkeys(x.number for x in ix.lines_of_key[s.name] if x.what == "start" and scheduled(x.id)))
        for before, after in zip(first, first[1:]):
            if int(before.rpartition(".")[2]) > int(after.rpartition(".")[2]) and not lost:
                yield Violation("schedule", s.name, after, f"first started after {before}, which was due later")


def merges_add_up(h, ix):
    """As many tasks ended in a later one as the store counted; those that nobody was answered for may be among them."""
    if h.merged_count is None or h.failovers:
        return
    left = [a for a in h.asks if a.is_merge and a.status != "refused" and
            not any(table[a.number] for table in (ix.starts, ix.results, ix.dead)) and
            all(r.state == "merged" for r in ix.rest[a.number])]
    kept = sum(a.status == "kept" for a in left)
    if not kept <= h.merged_count <= len(left):
        yield Violation("merges", "", "", f"the store counted {h.merged_count} merged; {kept} that it kept never ran, and "
                                          f"{len(left) - kept} that nobody was answered for")
