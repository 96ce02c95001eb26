"""What happened in a run: the records that producers, handlers, consumers and the store left.

Nothing here knows how Quiver works.  Times are CLOCK_BOOTTIME in nanoseconds, of one machine.  A task is known by the
number that its producer gave it, in its payload; what follows from task 17 is known as "17>".
"""
import collections
import dataclasses
import json
import re
import zlib

# A producer asked for a task.  status: "kept" (the store said so), "unknown" (no answer: it may be there or may yet
# come), "refused" (the store said no).  is_safe: it was kept when a replica had it, too.  is_merge: it may end
# in a later one of its key and lane.
Ask = collections.namedtuple("Ask", "number key lane status asked_ns answered_ns id is_delayed follow_up is_safe is_merge "
                                    "handler", defaults=("", False, None, False, False, "work"))

# A line of the ledger, in the order of the file: a handler has begun ("start") or is about to return ("end").
Line = collections.namedtuple("Line", "what at_ns key id number attempt epoch start outcome parent_fence host",
                              defaults=(0, None, ""))

# A consumer was given a result / asked for its removal.  shard and serial name the result; fence is that of the call
# which returned it; a consumer that slept reads at at_ns what it was given soon after asked_ns.
# status: "accepted", "refused", "unknown".
Taken = collections.namedtuple("Taken", "consumer at_ns shard serial id number fence asked_ns")
Commit = collections.namedtuple("Commit", "consumer at_ns shard serial status asked_ns", defaults=(0,))

Dead = collections.namedtuple("Dead", "id number reason")
Rest = collections.namedtuple("Rest", "id number state")  # neither done nor dead when the run was over
Sample = collections.namedtuple("Sample", "at_ns epochs")  # {shard: epoch}, as the store had them
# In between, servers may have lost what they acknowledged; of which shards (None: of all).
Failover = collections.namedtuple("Failover", "from_ns until_ns shards", defaults=(None,))

# What the whole app may do of one handler's tasks: `concurrency` at once, or `rate` a second and `burst` besides.  seats:
# of all hosts, for that handler.  back_s: so long after its last word the home gives a lost host's share to another.
Limit = collections.namedtuple("Limit", "name handler concurrency rate burst seats back_s", defaults=(0, 0, 0, 0, 0.0))
Stop = collections.namedtuple("Stop", "host from_ns until_ns")  # it stood still
# A schedule as the store had it when it was set (first_s: the first time that was due) and in the end.  may_pass: times
# pass while the last one's task is not over, or when they were missed.
Schedule = collections.namedtuple("Schedule", "name every_s first_s next_s fired skipped may_pass")

DONE, RETRY, REJECT, UNAVAILABLE = range(4)
SCHEDULED = re.compile(r"(tick-\w+\.\d+)-\d+")  # the ids of what schedules submit, and the numbers of these tasks


@dataclasses.dataclass
class History:
    shards: int = 1
    ttl_s: float = 1.0
    attempts: int = 4
    crashes: int = 3
    asks: list = dataclasses.field(default_factory=list)
    lines: list = dataclasses.field(default_factory=list)
    taken: list = dataclasses.field(default_factory=list)
    commits: list = dataclasses.field(default_factory=list)
    dead: list = dataclasses.field(default_factory=list)
    rest: list = dataclasses.field(default_factory=list)
    samples: list = dataclasses.field(default_factory=list)
    failovers: list = dataclasses.field(default_factory=list)
    steps: list = dataclasses.field(default_factory=list)  # when the store's own clock was moved
    done_count: int = None  # what the store counted; None: it was not asked
    store_faults: list = dataclasses.field(default_factory=list)  # what the store's own check complained about
    healed_ns: int = 0
    moves: list = dataclasses.field(default_factory=list)  # (shard, when): it went from one server to another
    finished_ns: int = 0  # nothing was left to do; 0: there was, until patience ended
    stall_s: float = 0.0  # … because nothing had moved for so long
    free: dict = dataclasses.field(default_factory=dict)  # the shards of tasks without a key, by their name
    limits: list = dataclasses.field(default_factory=list)
    stops: list = dataclasses.field(default_factory=list)
    schedules: list = dataclasses.field(default_factory=list)
    host_steps: int = 0  # how often the clock of a host was set
    merged_count: int = None  # what the store counted; None: it was not asked

    def shard(self, key):
        """A task without a key goes by another name in the books: free-NUMBER; its id says the shard."""
        if key in self.free:
            return self.free[key]
        return zlib.crc32(key.encode()) % self.shards


def parent(number):
    """The task that this one follows from; None: a producer's own."""
    return number.partition(">")[0] if ">" in number else None


def scheduled(task_id):
    """The number of a task that a schedule submitted, NAME.UNIX; None: it is another's."""
    match = SCHEDULED.fullmatch(task_id)
    return match and match[1]


def read_lines(path):
    """The handlers' ledger.  A follow-up's number is "17>EPOCH.START": with the fence of the call that submitted it."""
    lines = []
    if not path.exists():
        return lines
    for text in path.read_text().splitlines():
        what, at, key, task_id, name, attempt, epoch, start, outcome, *_, host = text.split(" ")
        number, arrow, fence = name.partition(">")
        key = f"free-{number}" if key == task_id else key
        lines.append(Line(what, int(at), key, task_id, scheduled(task_id) or number + arrow, int(attempt), int(epoch),
                          int(start), int(outcome), read_fence(fence) if arrow else None, host))
    return lines


def read_fence(text):
    epoch, _, start = text.partition(".")
    return int(epoch), int(start)


def read_asks(path):
    """A producer's book: a line before it asks, a line for each answer.  What was asked and not answered is unknown."""
    asked, order = {}, []
    for record in read_records(path):
        if record["what"] == "ask":
            ask = Ask(record["number"], record["key"], record["lane"], "unknown", record["at_ns"], 0, "",
                      record["is_delayed"], record["follow_up"], record["is_safe"], record.get("is_merge", False),
                      record.get("handler", "work"))
            asked[ask.number] = ask
            order.append(ask.number)
        else:
            asked[record["number"]] = asked[record["number"]]._replace(
                status=record["status"], answered_ns=record["at_ns"], id=record["id"])
    return [asked[number] for number in order]


def read_consumer(path):
    """Returns what it took and what it committed.  "unknown" stands before each commit, and holds if no answer came."""
    taken, commits = [], {}
    for r in read_records(path):
        if r["what"] == "taken":
            number, fence = r["data"].split(" ")
            number, arrow, _ = number.partition(">")
            taken.append(Taken(path.name, r["at_ns"], r["shard"], r["serial"], r["id"],
                               scheduled(r["id"]) or number + arrow, read_fence(fence), r["asked_ns"]))
        else:
            commits.setdefault((r["shard"], r["serial"]), []).append(
                Commit(path.name, r["at_ns"], r["shard"], r["serial"], r["status"]))
    return taken, [commit for several in commits.values() for commit in answered(several)]


def answered(commits):
    """Of one result's, in order, those that no answer came after; an answer knows when it was asked for."""
    kept = []
    for before, c, after in zip([None] + commits, commits, commits[1:] + [None]):
        if c.status != "unknown":
            kept.append(c._replace(asked_ns=before.at_ns if before and before.status == "unknown" else c.at_ns))
        elif after is None or after.status == "unknown":
            kept.append(c._replace(asked_ns=c.at_ns))
    return kept


def read_records(path):
    """JSON, one a line; the last may be half a line if its writer was killed."""
    for line in path.read_text(errors="replace").split("\n"):
        try:
            yield json.loads(line)
        except ValueError:
            continue
