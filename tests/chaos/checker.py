"""Whether a history keeps what Quiver promises.  A pure function: check(history) -> Report.

Each rule is a function that yields violations; every one has a history in test_checker.py that breaks it.
"""
import collections
import dataclasses

from amounts import Violation, limits_hold, merges_add_up, times_fire_once
from excuses import ended_early, is_loss
from history import DONE, REJECT, RETRY, parent, scheduled


@dataclasses.dataclass
class Report:
    violations: list
    losses: list  # the same, but the store had failed over just then and lost what it had kept
    early: list  # starts under a lease that a step of the store's own clock had ended early
    repeats: int  # starts of a task beyond its first
    overlaps: int  # calls that a host without its lease had running while the task ran again elsewhere
    handovers: int
    done: int
    dead: int
    lost: int  # of the losses: acknowledged tasks that are gone


class Index:
    """The history by task and by key."""

    def __init__(self, h):
        self.asks = {ask.number: ask for ask in h.asks}
        self.starts, self.ends = collections.defaultdict(list), collections.defaultdict(list)
        self.lines_of_key = collections.defaultdict(list)
        for line in h.lines:
            (self.starts if line.what == "start" else self.ends)[line.number].append(line)
            self.lines_of_key[line.key].append(line)
        self.results = collections.defaultdict(set)  # number: {(shard, serial, fence)}
        self.taken = collections.defaultdict(list)
        for t in h.taken:
            self.results[t.number].add((t.shard, t.serial, t.fence))
            self.taken[t.number].append(t)
        self.commits = collections.defaultdict(list)  # of a result: (shard, serial)
        for c in h.commits:
            self.commits[c.shard, c.serial].append(c)
        self.dead = collections.defaultdict(list)
        for d in h.dead:
            self.dead[d.number].append(d)
        self.rest = collections.defaultdict(list)
        for r in h.rest:
            self.rest[r.number].append(r)

    def lane(self, number):
        return self.asks[number].lane if number in self.asks else "normal"

    def key(self, number):
        ask = self.asks.get(number)
        return ask.key if ask else next((s.key for s in self.starts[number]), "?")


def fence(line):
    return line.epoch, line.start


# --- the rules --------------------------------------------------------------------------------------------------------


def merged(h, ix):
    """Tasks that never started and may have been merged: one of the same key and lane that was submitted later, and may be
    merged too, was started or is somewhere.  What such a one was to do is what they were to do."""
    found, later = set(), set()
    for ask in reversed(h.asks):
        n, place = ask.number, (ask.key, ask.lane)
        if ask.is_merge and place in later and not ix.starts[n]:
            found.add(n)
        if ask.is_merge and (ix.starts[n] or ix.results[n] or ix.dead[n] or ix.rest[n]):
            later.add(place)
    return found


def kept(h, ix):
    """Every acknowledged task is done, dead, merged or still somewhere; in one place."""
    gone = merged(h, ix)
    for ask in h.asks:
        n, places = ask.number, len(ix.dead[ask.number]) + len(ix.rest[ask.number])
        if ask.status == "kept" and not ix.results[n] and not places and n not in gone:
            ended = any(e.outcome == DONE for e in ix.ends[n])
            what = "it ran to its end, and left no result" if ended else \
                "it was started, and is gone" if ix.starts[n] else "it was never started"
            yield Violation("lost", ask.key, n, f"acknowledged as {ask.id}, but neither done, dead nor there: {what}")
        if ix.results[n] and places:
            where = [d.reason for d in ix.dead[n]] + [r.state for r in ix.rest[n]]
            yield Violation("dead and done", ask.key, n, f"it has a result and is also {', '.join(where)}")
        if places > 1:
            yield Violation("dead and done", ask.key, n, f"it is in {places} places")


def asked_for(h, ix):
    """Nothing runs that nobody asked for, and what was refused does not run."""
    for n, starts in ix.starts.items():
        if not starts or parent(n) or scheduled(starts[0].id):
            continue
        ask = ix.asks.get(n)
        if not ask:
            yield Violation("not asked for", starts[0].key, n, "nobody submitted it")
        elif ask.status == "refused":
            yield Violation("refused", ask.key, n, "the producer was told no, and it ran")
        elif starts[0].key != ask.key:
            yield Violation("not asked for", ask.key, n, f"it ran under the key {starts[0].key}")


def first_starts(ix, lines):
    """The numbers of a key's tasks, in order of their first starts."""
    return list(dict.fromkeys(line.number for line in lines if line.what == "start"))


def ordered(h, ix):
    """Per key and lane, first starts are in the order in which the producer was told 'kept'; follow-ups of one key to
    another come in the order of those they follow from."""
    place = {ask.number: i for i, ask in enumerate(h.asks)}

    def is_ordered(n):
        ask = ix.asks.get(n)
        return ask and ask.status == "kept" and not ask.is_delayed

    for key, lines in ix.lines_of_key.items():
        last = {}
        for n in first_starts(ix, lines):
            if not is_ordered(parent(n) or n):
                continue
            lane = (parent(n) is not None, ix.asks[parent(n) or n].lane if not parent(n) else None)
            if parent(n) and ix.asks[parent(n)].lane != "normal":
                continue  # those it follows from were in two orders
            if place[parent(n) or n] < place[last.get(lane, parent(n) or n)]:
                yield Violation("order", key, n, f"first started after {last[lane]}, which was submitted later")
            last[lane] = parent(n) or n


def waits_its_turn(h, ix):
    """Once another task of its key and lane has started, a task is over: it starts no more."""
    for key, lines in ix.lines_of_key.items():
        current, closed = {}, {}  # closed: {number: the fence under which the next one started}
        for line in lines:
            lane = ix.lane(line.number)
            if line.what != "start" or line.number == current.get(lane):
                continue
            if line.number not in closed:
                closed[current.get(lane)] = fence(line)
                current[lane] = line.number
            elif fence(line) > closed[line.number]:
                yield Violation("overtaken", key, line.number, f"started again under {fence(line)}, after another of "
                                                               f"its key under {closed[line.number]}")


def one_at_a_time(h, ix):
    """Never two calls of a key at once, but for one that a host without its lease still has running, or a borrowed seat past
    its time, which its owner has started anew."""
    for key, lines in ix.lines_of_key.items():
        ends = {(e.number, fence(e)) for e in lines if e.what == "end"}
        running = []
        for line in lines:
            if line.what == "end":
                running = [r for r in running if fence(r) != fence(line)]
                continue
            for r in running:
                if r.epoch == line.epoch and key in h.free and r.start < line.start:
                    continue
                if r.epoch == line.epoch:
                    yield Violation("two at once", key, line.number,
                                    f"started while {r.number} ran under the same lease {fence(r)}", r.number)
                elif r.epoch > line.epoch:
                    yield Violation("two at once", key, line.number,
                                    f"started under {fence(line)} while {r.number} ran under the newer {fence(r)}",
                                    r.number, line.at_ns)
                elif r.number != line.number and ix.lane(r.number) == ix.lane(line.number) \
                        and not is_over(lines, r, line):
                    yield Violation("two at once", key, line.number,
                                    f"started while {r.number} ran, which was never run again to its end", r.number)
            if (line.number, fence(line)) in ends:  # else it was killed, nobody knows when
                running.append(line)


def is_over(lines, stale, new):
    """Whether the task of a stale call was ended by a newer call before `new` started."""
    until = lines.index(new)
    return any(e.what == "end" and e.number == stale.number and fence(e) > fence(stale) for e in lines[:until])


def overlaps(ix):
    """How many calls of hosts without their lease were running beside a newer one."""
    count = 0
    for lines in ix.lines_of_key.values():
        ends = {(e.number, fence(e)) for e in lines if e.what == "end"}
        running = []
        for line in lines:
            if line.what == "end":
                running = [r for r in running if fence(r) != fence(line)]
            else:
                count += len(running)
                running += [line] if (line.number, fence(line)) in ends else []
    return count


def fences_grow(h, ix):
    """In a shard no fence is used twice, and nothing starts under an epoch older than one already at work; but a task without a
    key that was lent to a seat of another host starts there as it was lent, and the next owner adopts it."""
    seen, newest, latest, first = {}, collections.defaultdict(int), {}, {}
    owners = {(h.shard(line.key), line.epoch): line.host for line in h.lines if line.key not in h.free}
    for line in h.lines:
        if line.what != "start":
            continue
        shard = h.shard(line.key)
        name = (shard, fence(line))
        if name in seen:
            yield Violation("fence repeated", line.key, line.number,
                            f"the fence {fence(line)} of shard {shard} was {seen[name].number}'s", seen[name].number)
        seen[name] = line
        if line.epoch < newest[shard] and line.key in h.free and owners.get((shard, line.epoch)) != line.host:
            continue
        if line.epoch < newest[shard]:
            yield Violation("stale start", line.key, line.number,
                            f"started under epoch {line.epoch} of shard {shard}, where {newest[shard]} was at work",
                            first[shard].number, line.at_ns)
        if line.epoch != newest[shard]:  # also back: after a store's loss that is where it goes on
            newest[shard], first[shard] = line.epoch, line
        if line.key in latest and latest[line.key].epoch == line.epoch and fence(line) < fence(latest[line.key]):
            yield Violation("fence repeated", line.key, line.number,
                            f"the fence went back from {fence(latest[line.key])} to {fence(line)}",
                            latest[line.key].number)
        latest[line.key] = line


def done_once(h, ix):
    """A task is done at most once: it has one result, and the store counted as many as there are."""
    for n, names in ix.results.items():
        if len({name[:2] for name in names}) > 1:
            yield Violation("done twice", ix.key(n), n,
                            f"results {', '.join(f'{s}/{c} of the call {f}' for s, c, f in sorted(names))}")
    done = sum(1 for names in ix.results.values() if names)
    if h.done_count is not None and h.done_count != done:
        yield Violation("count", "", "", f"the store counted {h.done_count} done, and {done} tasks have results")


def effects_are_current(h, ix):
    """What a task left comes from the last call of it, never from one that had lost its lease; and that call ended."""
    for n, names in ix.results.items():
        last = max((fence(s) for s in ix.starts[n]), default=None)
        done = {fence(e) for e in ix.ends[n] if e.outcome == DONE}
        for _, _, f in names:
            if f not in done:
                yield Violation("stale effect", ix.key(n), n, f"a result of the call {f}, which did not end with DONE")
            elif last and f < last:
                yield Violation("stale effect", ix.key(n), n, f"a result of the call {f}, but it was started at {last}")


def results_arrive(h, ix):
    """A result is committed once, never comes after that, and is committed in the end."""
    accepted, settled = collections.defaultdict(list), set()
    for c in h.commits:
        if c.status != "refused":
            settled.add((c.shard, c.serial))
        if c.status == "accepted":
            accepted[c.shard, c.serial].append(c)
    number, last = {}, {}  # of a result: the first task that had it, and the last
    for t in sorted(h.taken, key=lambda t: t.at_ns):
        number.setdefault((t.shard, t.serial), t.number)
        last[t.shard, t.serial] = t.number
    for name, commits in accepted.items():
        if len(commits) > 1:
            yield Violation("result twice", ix.key(number.get(name, "?")), number.get(name, "?"),
                            f"result {name[0]}/{name[1]} was committed {len(commits)} times", last.get(name, ""))
    for t in h.taken:
        before = [c for c in accepted[t.shard, t.serial] if c.at_ns < t.asked_ns]
        if before:
            yield Violation("result twice", ix.key(t.number), t.number,
                            f"result {t.shard}/{t.serial} came to {t.consumer} after it was committed",
                            number[t.shard, t.serial])
    for name in set(number) - settled:
        yield Violation("result lost", ix.key(number[name]), number[name],
                        f"result {name[0]}/{name[1]} was taken, never committed, and did not come back")


def follow_ups_match(h, ix):
    """Each done task that has a follow-up has it once, from the call that counted; nothing follows from the undone."""
    children = collections.defaultdict(set)
    for n, starts in ix.starts.items():
        if parent(n) and starts:
            children[parent(n)] |= {(s.id, s.parent_fence) for s in starts}
    for ask in h.asks:
        found = children.pop(ask.number, set())
        fences = {f for _, _, f in ix.results[ask.number]}
        if len({child for child, _ in found}) > 1:
            yield Violation("follow-up twice", ask.key, ask.number, f"follow-ups: {sorted(found)}")
        if ask.follow_up and fences and not found and not ix.rest[ask.number + ">"]:
            yield Violation("follow-up missing", ask.key, ask.number, "it is done, its follow-up was never started")
        for child, f in found:
            if f not in fences:
                yield Violation("follow-up of nothing", ask.key, ask.number,
                                f"{child} follows from the call {f}; done was {sorted(fences) or 'none'}")
    for n in children:
        yield Violation("follow-up of nothing", ix.key(n), n, "nobody submitted what it follows from")


def dead_for_a_reason(h, ix):
    """Dead are those that asked for it or used up their budget by calls of their own."""
    for n, dead in ix.dead.items():
        for d in dead:
            ends = collections.Counter(e.outcome for e in ix.ends[n])
            unended = len(ix.starts[n]) - sum(ends.values())
            has_crashed = len(ix.starts[n]) >= h.crashes and unended > 0
            is_right = {"rejected": ends[REJECT] > 0, "crashed": has_crashed,
                        "timed-out": has_crashed,  # the last time its runner hung, or was stopped by us
                        "exhausted": ends[RETRY] + unended >= h.attempts}.get(d.reason, False)
            if not is_right:
                yield Violation("wrongly dead", ix.key(n), n,
                                f"dead as {d.reason} after {len(ix.starts[n])} starts, ends {dict(ends)}")


def epochs_grow(h, ix):
    newest = {}
    for sample in h.samples:
        for shard, epoch in sample.epochs.items():
            if epoch < newest.get(shard, 0):
                yield Violation("epoch went back", "", "", f"shard {shard}: from {newest[shard]} to {epoch}",
                                at_ns=sample.at_ns)
            newest[shard] = epoch


def finished(h, ix):
    """With everything healed, work goes on until all of it is done.  How long that takes is the machine's business; but
    that nothing at all moves, for longer than any lease and any wait that a task is given, is ours."""
    if h.finished_ns:
        return
    for n in sorted(ix.rest):
        for r in ix.rest[n]:
            yield Violation("not finished", ix.key(n), n, f"still {r.state}, and nothing had moved for {h.stall_s:.0f} s")
    if not any(ix.rest.values()):
        yield Violation("not finished", "", "", f"the store was not empty, and nothing had moved for {h.stall_s:.0f} s")


def store_is_sound(h, ix):
    for text in h.store_faults:
        yield Violation("store check", "", "", text)


RULES = (kept, asked_for, ordered, waits_its_turn, one_at_a_time, fences_grow, done_once, effects_are_current,
         results_arrive, follow_ups_match, dead_for_a_reason, epochs_grow, finished, store_is_sound, limits_hold,
         times_fire_once, merges_add_up)


# --- the verdict ------------------------------------------------------------------------------------------------------


def check(h):
    ix = Index(h)
    violations, losses, early = [], [], []
    for rule in RULES:
        for violation in rule(h, ix):
            found = losses if is_loss(h, ix, violation) else early if ended_early(h, violation) else violations
            found.append(violation)
    epochs = collections.defaultdict(set)
    for sample in h.samples:
        for shard, epoch in sample.epochs.items():
            epochs[shard].add(epoch)
    for line in h.lines:
        epochs[h.shard(line.key)].add(line.epoch)
    return Report(violations=violations, losses=losses, early=early,
                  repeats=sum(max(len(s) - 1, 0) for s in ix.starts.values()), overlaps=overlaps(ix),
                  handovers=sum(len(e - {0}) - 1 for e in epochs.values() if e - {0}),
                  done=sum(1 for names in ix.results.values() if names), dead=len(h.dead),
                  lost=len({v.number for v in losses if v.rule == "lost"}))


def story(h, key, number=None, most=36):
    """All that happened to a key, readable, in order; the times in seconds since the run began."""
    began = min([a.asked_ns for a in h.asks] + [line.at_ns for line in h.lines] + [h.healed_ns or 1 << 62])
    events = []
    for a in h.asks:
        if a.key == key:
            events.append((a.asked_ns, f"{a.number:>7}  submitted, lane {a.lane}: {a.status} {a.id}"))
    lines = [line for line in h.lines if line.key == key]
    for line in lines:
        outcome = "" if line.what == "start" else \
            f" {dict(enumerate(('DONE', 'RETRY', 'REJECT', 'UNAVAILABLE', 'PENDING', 'LATER'))).get(line.outcome, line.outcome)}"
        events.append((line.at_ns, f"{line.number:>7}  {line.what:<5} under {line.epoch}.{line.start}, "
                                   f"attempt {line.attempt}{outcome}"))
    numbers = {a.number for a in h.asks if a.key == key} | {line.number for line in lines}
    for t in h.taken:
        if t.number in numbers:
            events.append((t.at_ns, f"{t.number:>7}  result {t.shard}/{t.serial} of the call {t.fence[0]}.{t.fence[1]} "
                                    f"taken by {t.consumer}"))
    for d in h.dead:
        if d.number in numbers:
            events.append((h.healed_ns, f"{d.number:>7}  in the end: dead, {d.reason}"))
    for r in h.rest:
        if r.number in numbers:
            events.append((h.healed_ns, f"{r.number:>7}  in the end: {r.state}"))
    events.sort(key=lambda event: event[0])
    if number and len(events) > most:  # what is around the one that matters
        places = [i for i, (_, text) in enumerate(events) if text.split()[0] == number] or [0]
        first = max(places[0] - 6, 0)
        events = events[first:min(max(places[-1] + 4, first + most), first + 2 * most)]
    return [f"key {key}, shard {h.shard(key)}:"] + [
        f"{'*' if text.split()[0] == number else ' '}{(at - began) / 1e9:9.3f} s {text}" for at, text in events]
