"""What is not Quiver's fault: a store that lost what it had acknowledged, and a store whose own clock was stepped.

A failover of an asynchronous store takes back the last of what it had acknowledged; nobody can keep that.  It takes back
nothing else.  So a violation is counted as the store's loss only if the store had acknowledged something that
belongs to it between the last moment at which the replica surely had everything and the one at which there
was one master again; and only by a failover of the servers that held its shard.
"""
from history import parent

# Two hosts can only have got hold of one shard if the agreements were lost, too; these are elsewhere than the shard.
OF_AGREEMENTS = {"two at once", "stale start", "fence repeated", "epoch went back"}
ARRIVES_NS = 10_000_000_000
OF_TASKS = {"lost", "done twice", "follow-up twice", "follow-up missing", "follow-up of nothing", "stale effect",
            "result lost", "result twice", "dead and done", "order", "overtaken"}


def is_loss(h, ix, violation):
    """Whether the store's own loss explains it."""
    if not h.failovers:
        return False
    if violation.rule == "count":
        return is_count_explained(h, ix)
    if violation.at_ns and violation.rule in OF_AGREEMENTS:
        return any(f.from_ns <= violation.at_ns <= f.until_ns for f in h.failovers) or \
            is_touched(h, ix, violation, anywhere=True)
    if violation.rule in OF_AGREEMENTS:
        return is_touched(h, ix, violation, anywhere=True)
    if violation.rule == "follow-up missing":
        return is_touched(h, ix, violation, anywhere=False) or is_lost_there(h, ix, ix.asks[violation.number])
    return violation.rule in OF_TASKS and is_touched(h, ix, violation, anywhere=False)


def is_count_explained(h, ix):
    """No more ends are missing in the count, or too many, than could have been taken back."""
    done = [n for n, names in ix.results.items() if names]
    spans = {n: moments(ix, n) for n in done}
    touched = [n for n in done if any(begin <= f.until_ns and end >= f.from_ns
                                      for f in h.failovers for begin, end in spans[n])]
    return abs(h.done_count - len(done)) <= len(touched)


def is_lost_there(h, ix, ask):
    """A follow-up goes to another shard soon after its call has ended, or when that shard's servers can be reached; then
    they have it, and may lose it."""
    ended = [e.at_ns for e in ix.ends[ask.number]]
    return any(f.from_ns <= at + ARRIVES_NS and f.until_ns >= at for f in h.failovers for at in ended
               if f.shards is None or h.shard(ask.follow_up) in f.shards)


def is_touched(h, ix, violation, anywhere):
    for number in filter(None, (violation.number, violation.also)):
        shards = {h.shard(ix.key(n)) for n in (number, parent(number) or number, number + ">") if ix.key(n) != "?"}
        spans = asked(ix, number) if violation.rule == "lost" else moments(ix, number)
        spans += [(at, at) for shard, at in h.moves if shard in shards]  # all of it was written anew
        for f in h.failovers:
            is_its = anywhere or f.shards is None or shards & f.shards
            if is_its and any(begin <= f.until_ns and end >= f.from_ns for begin, end in spans):
                return True
    return False


def asked(ix, number):
    """When it was acknowledged: only then could it be lost as a whole, unless a replica had it."""
    ask = ix.asks.get(parent(number) or number)
    return [] if ask and ask.is_safe else [(ask.asked_ns, ask.answered_ns or ask.asked_ns)] if ask else []


def moments(ix, number):
    """All at which the store was told something about it."""
    found = asked(ix, number)
    for n in {number, parent(number) or number, number + ">"}:
        found += [(line.at_ns, line.at_ns) for line in ix.starts[n] + ix.ends[n]]
    for t in ix.taken[number]:
        found.append((t.asked_ns, t.at_ns))
        found += [(c.asked_ns or c.at_ns, c.at_ns) for c in ix.commits[t.shard, t.serial]]
    return found


def ended_early(h, violation):
    """A store's clock that steps forwards ends every lease at once, and its holder cannot know before its next call, which
    is within a TTL: what it starts until then changes nothing, but starts beside the next owner's."""
    return violation.rule in ("stale start", "two at once") and \
        any(step <= violation.at_ns <= step + h.ttl_s * 1e9 for step in h.steps)
