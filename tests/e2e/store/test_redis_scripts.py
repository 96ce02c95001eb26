"""Every script of the store on Redis against a shard in which one thing is not as it should be.

A script that fails must have changed nothing, and one that does not fail must not have lost a task: Redis keeps what a
script wrote before it failed.  What is wrong is every key in turn of another type, and every field, element and member in
turn replaced by something that nobody wrote.
"""
import json
import os
import re

import pytest

from servers import RedisServer

redis = pytest.importorskip("redis")

LONG = bool(os.environ.get("QUIVER_TEST_LONG"))

AT = "quiver:{t:0}:"
BESIDE = "quiver:{t:1}:"
LANE = 1 << 48
LOW = 2 * LANE + 1
LEASE = "held 5 aa"
KEYS = [AT + name for name in ("shard", "high", "normal", "low", "delayed", "control")]
APP = ["quiver:{t}:app", "quiver:{t}:desired"]
SHARES = ["quiver:{t:limit:smtp}:" + name for name in ("limit", "values", "rest")]
TOKENS = ["quiver:{t:limit:api}:" + name for name in ("limit", "values", "rest")]
STATUS = ["quiver:{t}:status", "quiver:{t}:statusends"]
MAIL = ["quiver:{t:aa}:mail", "quiver:{t:aa}:mailbox"]
ROOM = [AT + "room:chat"]
WANTING = ["quiver:{t}:wanting", "quiver:{t}:wantingends", "quiver:{t}:wantingset"]
COUNTERS = ["quiver:{t}:counters", "quiver:{t}:counted"]
LIMIT = 1 << 20
DIGEST = "ab" * 32
PARTS = 24  # of fsck


def scripts_of(root):
    folder = root / "runtime" / "store" / "redis" / "lua"
    return {path.stem: path for path in folder.glob("*/*.lua") if path.parent.name != "lib"}


def assemble(root, name):
    """A script as the build embeds it."""
    folder = root / "runtime" / "store" / "redis" / "lua"
    return re.sub(r"^--include (\w+)$", lambda m: (folder / "lib" / f"{m[1]}.lua").read_text(),
                  scripts_of(root)[name].read_text(), flags=re.M)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with RedisServer(tmp_path_factory.mktemp("scripts") / "redis", "--rdbcompression", "no") as made:
        yield made


@pytest.fixture(scope="module")
def client(server):
    with server.client() as made:
        yield made


def test_every_script_has_room_for_more_names(root, client):
    """Lua takes 200 local names in a script, its libraries included: one that is near that breaks with the next change."""
    for name in scripts_of(root):
        first, _, rest = assemble(root, name).partition("\n")
        more = "local " + ", ".join(f"spare_{n}" for n in range(10))
        client.script_load("\n".join([first, more, rest] if first.startswith("#!") else [more, first, rest]))


def envelope(key, marker, more=""):
    return f"qv1\nkey:{key}\nhandler:h\nid:{marker}-0\n{more}\n{marker} payload"


def seq(number):
    return LANE + number


def side(key, number):
    return f"{key}\0{seq(number):016x}"


def sum_of(text):
    """What the field `claimed` says of the last element that is done."""
    data = text.encode()
    return f"{len(data)}.{sum((i + 1) * 40503 % 65536 * byte for i, byte in enumerate(data[:512])) % 2 ** 31}"


# Three tasks that are claimed and stand in their list; the second is done.
LISTED = [envelope("l1", "listed-1"), envelope("l2", "over"), envelope("l3", "listed-3")]
CLAIMED = f"0 3:2:{sum_of(LISTED[1])} 0"


class Shard:
    """A shard with something in every place, and its image to begin again from."""

    def __init__(self, client):
        self.client = client
        client.flushall()
        self.fill()
        self.image = self.dump()

    def pack(self, value):
        return self.client.eval("return cmsgpack.pack(cjson.decode(ARGV[1]))", 0, json.dumps(value))

    def fill(self):
        c = self.client
        c.hset(AT + "shard", mapping={
            "lease": LEASE, "until": 1, "ttl": 1000, "call": 8, "last": f"{seq(1)} 2", "high": 0, "normal": 13, "low": 1, "claimed": CLAIMED,
            "done": 3, "dropped": 1, "results_dropped": 0, "gone": "0 1 0", "returned": 1, "applied": 1, "last_delayed": 2,
            "last_dead": 2, "last_result": 2, "outbox_base": 0, "merged": 1, "want": "9 99999999999999 0 1000 bb"})
        c.rpush(AT + "high", envelope("k9", "high-1"))
        c.rpush(AT + "normal", *LISTED, envelope("k1", "queued-1"), "cancelled", envelope("k8", "queued-2"))
        c.rpush(AT + "low", envelope("k7", "low-1"))
        for n in (1, 2, 3, 4, 5):
            c.hset(AT + "flight", seq(n), envelope(f"f{n}", f"flight-{n}"))
        c.hset(AT + "notes", mapping={seq(1): "qn1\nattempts:1\nstarted:5\nholder:worker/5.1/w\nuntil:1\n\n", seq(6): "qn1\nattempts:2\n\n"})
        c.hset(AT + "keys", mapping={"k1": "parked 1 2 1 no", "k2": "held 1 2 0 me", "k3": "waiting 1 1 1 share",
                                     "k6": "named 1 1 0 handler:m paused"})
        c.zadd(AT + "named", {f"handler:m\0{1:016x}k6": 0})
        c.zadd(AT + "due", {"k1": 1, "k2": "inf", "k3": 1, "k6": "inf"})
        c.zadd(AT + "side", {side("k1", 6): 0, side("k1", 7): 0, side("k2", 8): 0, side("k3", 9): 0, side("k6", 10): 0})
        c.hset(AT + "parked", mapping={seq(6): envelope("k1", "parked-6"), seq(7): envelope("k1", "parked-7"),
                                       seq(8): envelope("k2", "parked-8"), seq(9): envelope("k3", "parked-9"),
                                       seq(10): envelope("k6", "parked-0"), LOW: envelope("k2", "parked-5")})
        c.zadd(AT + "side", {f"k2\0{LOW:016x}": 0})
        c.zadd(AT + "parkedlanes", {str(LOW): LOW})
        c.zadd(AT + "delayed", {f"{1:016x}": 1, f"{2:016x}": 99999999999999})
        c.hset(AT + "later", mapping={f"{1:016x}": self.pack([1, envelope("d1", "later-1"), ""]),
                                      f"{2:016x}": self.pack([1, envelope("d2", "later-2"), ""])})
        for n in (1, 2):
            c.hset(AT + "dead", n, self.pack([f"dead-{n}-0", "h", 1, 1, "rejected", envelope("e", f"dead-{n}"), ""]))
            c.zadd(AT + "deadnumbers", {n: n})
            c.zadd(AT + "deadids", {f"dead-{n}-0\0{n:016x}": 0})
            c.hincrby(AT + "deadgroups", "h\0rejected\0", 1)
            c.zadd(AT + "results", {n: n})
            c.hset(AT + "resultdata", n, self.pack([f"r{n}-0", "k", "h", 99999999999999, f"result-{n}"]))
        c.zadd(AT + "leased", {1: 99999999999999})
        c.hset(AT + "consumers", 1, "cc")
        c.rpush(AT + "control", self.pack([1, "k5", "me", "", 0]), self.pack([4, "k1", "me", "", 0]))
        c.rpush(AT + "outbox", self.pack([3, 7, 1, 0, envelope("o", "outbox-1")]))
        c.hset(AT + "sent", mapping={3: 7, "born": 1})
        c.rpush(AT + "kept", self.pack(["outbox 4.1", "\x01"]))
        c.hset(AT + "sources", mapping={"source": "4 1", "outbox 4.1": "5 1"})
        c.rpush(AT + "merged", "gone-1-0 1 flight-1-0")
        c.hset(AT + "idempotent", mapping={"old\nk": f"1 {DIGEST} old-1-0", "new\nk": f"99999999999999 {DIGEST} new-9-0"})
        c.zadd(AT + "idempotentends", {"old\nk": 1, "new\nk": 99999999999999})
        c.hset(APP[0], mapping={"schema": 2, "shards": 1, "coordination": "local:/x", "desired_version": 3,
                                 "features": "limits names", "max_members": 0, "id_layout": "41.10.12"})
        for name, state, next_ms in (("s1", 0, 5000), ("s2", 1, 5000), ("s3", 2, 0), ("s4", 0, 0)):
            c.hset(AT + "schedules", name, self.pack([state, 1, next_ms, 1000, seq(1), 3, 4, "cron"]))
        c.zadd(AT + "scheduled", {"s1": 5000})
        c.hset(APP[1], "pause.h", "x")
        c.hset(SHARES[0], mapping={"definition": "1 0 0 0 5 500 9", "refused": 2})
        c.hset(SHARES[1], mapping={"a": "aa" * 16 + ":3:99999999999999", "b": "bb" * 16 + ":1:1"})
        c.zadd(SHARES[2], {"a": 99999999999999, "b": 1})
        c.hset(TOKENS[0], mapping={"definition": "1 10 1000 5 0 0 1", "refused": 0})
        c.hset(TOKENS[1], mapping={"a": "4000 1"})
        c.zadd(TOKENS[2], {"a": 99999999999999})
        c.hset(STATUS[0], "aa", self.pack([1, "document"]))
        c.zadd(STATUS[1], {"aa": 99999999999999, "gone": 1})
        c.hset(COUNTERS[0], "h.done", 7)
        c.hset(COUNTERS[1], "bb", self.pack({"h.done": 2}))

        c.rpush(MAIL[0], "5 11", "old message", "6 11", "new message")
        c.hset(MAIL[1], mapping={"last": 6, "messages": 2, "bytes": 22})
        c.hset(WANTING[0], mapping={"h aa": "5 1", "g bb": "1 1"})
        c.zadd(WANTING[1], {"h aa": 99999999999999, "g bb": 1})
        c.set(WANTING[2], 3)
        c.xadd(ROOM[0], {"m": "entry-1"}, id="1-1")
        c.xadd(ROOM[0], {"m": "entry-2"}, id="2-99999999999999")
        c.hset(AT + "rooms", "chat", "2 2 14 10 1000 1000")
        c.hset(AT + "roomsources:chat", mapping={"relay": "5 2 1", "old": "1 1 1"})

    def dump(self):
        keys = sorted(self.client.keys())
        pipe = self.client.pipeline(transaction=False)
        for key in keys:
            pipe.dump(key)
        return dict(zip(keys, pipe.execute()))

    def restore(self):
        pipe = self.client.pipeline(transaction=False)
        pipe.flushall()
        for key, value in self.image.items():
            pipe.restore(key, 0, value)
        pipe.execute()


def markers(image):
    """Tasks and results that stand anywhere."""
    return set(re.findall(rb"((?:high|low|queued|listed|flight|parked|later|dead|outbox|new)-\d) payload|(result-\d)",
                          b"\n".join(image.values())))


def outcome(kind, number, key, *, cost=1, delay=1000, refill=2, reply=0, result=0, waits="", follow_ups=()):
    return [kind, seq(number), f"flight-{number}-0", key, "h", reply, cost, delay, refill, 0, result, "rejected", "no",
            "data", "", waits, "aa", 1000, list(follow_ups)]


def merge(number, *merged):
    """Those that are merged: the first keeps its place, the last one's payload stays."""
    return [*outcome(MERGE, number, f"f{number}"), [[seq(n), f"flight-{n}-0", 5] for n in merged], 0]


DONE, RETRY, HOLD, DEAD, DIVERT, START, INTERRUPTED, CHECKPOINT, MERGE, MOVE = range(10)


def advance_lists(view="-", done=0, *lanes):
    """What advance is told of the lists; of each lane: trimmed, kept, what `claimed` says of these, read, known to be small,
    bytes of one, the last that was claimed."""
    lanes = lanes or ((0, 0, "", 0, 0, 1000, ""),)
    return [view, done, 96, 14 + 7 * len(lanes), *(value for lane in lanes for value in lane)]


def advance_many(name, may_end=(), view=CLAIMED, done=0, lane=(0, 3, CLAIMED[3:-2], 64, 0, 1000, LISTED[2])):
    """The same call as one of many; a shard besides it has nothing, and must not be the worse for it."""
    empty = [LEASE, 9, "", 0, 0, 0, "", 64, 0, 1000, ""]
    return (name, "advance_many", [AT + "shard", AT + "normal", BESIDE + "shard", BESIDE + "normal"],
            [1000, 96, LEASE, 9, view, done, *lane, *empty], may_end)


def calls(shard):
    """Name, script, keys, arguments, and the tasks that the call may end."""
    def advance(name, outcomes=None, seqs=(), may_end=(), want=256, call=9, view="-", done=0, lanes=((0, 0, "", 0, 0, 1000, ""),)):
        packed = shard.pack([100, 1000, outcomes]) if outcomes else ""
        return (name, "advance", KEYS, [LEASE, call, 1000, want, want, want, LIMIT, LIMIT, packed,
                                         *advance_lists(view, done, *lanes), *map(seq, seqs)], may_end)

    follow_ups = [[0, 1, 0, 0, envelope("n", "new-1")], [4, 1, 0, 0, envelope("n", "new-2")],
                  [0, 1, 0, 5000, envelope("n", "new-3")]]
    return [
        advance("advance claims"),
        advance_many("advance among many"),
        advance("advance again", call=8),
        advance("advance merges", [merge(1, 2, 3)], may_end=("flight-1", "flight-2")),
        advance("advance merges and debounces", [merge(2, 3), [*outcome(DIVERT, 4, "f4"), [], 1]], may_end=("flight-2",)),
        advance("advance plainly done", seqs=(1, 2), may_end=("flight-1", "flight-2")),
        advance("advance listed done", seqs=(1,), may_end=("flight-1", "listed-1"), view=CLAIMED, done=1,
                lanes=((2, 1, "", 64, 0, 1000, LISTED[2]),)),
        advance("advance listed done behind others", may_end=("listed-3",), view=CLAIMED, done=1,
                lanes=((0, 3, f":6:{sum_of(LISTED[2])}", 64, 0, 1000, LISTED[2]),)),
        advance("advance with another view", view="0 2 0", lanes=((0, 2, "", 64, 0, 1000, LISTED[1]),)),
        advance("advance done", [outcome(DONE, 1, "k3"), outcome(DONE, 2, "k3", result=1),
                                 outcome(DONE, 3, "f3", reply=1000, follow_ups=follow_ups)],
                may_end=("flight-1", "flight-2", "flight-3", "new-1", "new-2", "new-3")),
        advance("advance all kinds", [outcome(RETRY, 1, "k1"), outcome(HOLD, 2, "k2"), outcome(DEAD, 3, "k3"),
                                      outcome(DIVERT, 4, "k1", cost=0), outcome(START, 5, "f5", cost=0),
                                      outcome(INTERRUPTED, 5, "f5", cost=3), outcome(CHECKPOINT, 5, "f5", cost=0)]),
        advance("advance diverts for a name", [outcome(DIVERT, 1, "f1", cost=0, waits="handler:m"),
                                               outcome(DIVERT, 2, "k6", cost=0, waits="handler:n"),
                                               outcome(DIVERT, 3, "k3", cost=0, waits="handler:m")]),
        ("wake", "wake", KEYS, [LEASE, 9, "handler:m", 10], ()),
        ("wake again", "wake", KEYS, [LEASE, 8, "handler:m", 10], ()),
        ("names", "names", KEYS, [LEASE, "", 64], ()),
        ("acquire", "acquire", KEYS, [9, "bb", 1000, 0, 1000, 256, "host-b"], ()),
        ("acquire firmly", "acquire", KEYS, [9, "bb", 1000, 1, 1000, 256, ""], ()),
        ("acquire again", "acquire", KEYS, [5, "aa", 1000, 0, 1000, 256, ""], ()),
        ("app_set", "app_set", APP[:1], [2, 64, 3, "local:/z", "rooms"], ()),
        ("aside", "aside", KEYS, [LEASE, shard.pack([[seq(1), 0, "malformed", "no"], [seq(2), 99999999999999, "", ""],
                                                    [seq(13), 0, "malformed", "no"]]), LIMIT, 0, "", 13, LISTED[2], 0, ""], ()),
        ("cancel queued", "cancel", KEYS, [0, seq(16), "queued-2-0", "k8"], ()),
        ("reschedule", "reschedule", KEYS, [1, "later-1-0", 5000, 0], ()),
        ("move queued", "move", KEYS, [0, seq(16), "queued-2-0", "k8", 0], ()),
        ("move delayed", "move", KEYS, [1, 1, "later-1-0", "d1", 2], ()),
        ("move in flight", "move", KEYS, [2, seq(1), "flight-1-0", "f1", 2], ()),
        ("move in flight in its list", "move", KEYS, [2, seq(13), "listed-3-0", "l3", 0], ()),
        ("move parked", "move", KEYS, [3, seq(6), "parked-6-0", "k1", 0], ()),
        advance("advance moves", [outcome(MOVE, 1, "k1", cost=0, delay=0), outcome(MOVE, 4, "k1", cost=0, delay=2)]),
        ("cancel delayed", "cancel", KEYS, [1, 1, "later-1-0", "d1"], ()),
        ("cancel in flight", "cancel", KEYS, [2, seq(1), "flight-1-0", "f1"], ()),
        ("cancel in flight in its list", "cancel", KEYS, [2, seq(13), "listed-3-0", "l3"], ()),
        ("cancel parked", "cancel", KEYS, [3, seq(6), "parked-6-0", "k1"], ()),
        ("commit", "commit", KEYS, ["cc", 1], ("result-1",)),
        ("consume", "consume", KEYS, ["dd", 1000, 10, 100, 1000], ()),
        ("dead requeue", "dead", KEYS, [0, 0, 1, 2], ()),
        ("dead requeue ids", "dead", KEYS, [0, 2, "dead-1-0", "dead-2-0"], ()),
        ("dead drop", "dead", KEYS, [1, 0, 1, 2], ("dead-1", "dead-2")),
        ("desired set", "desired", APP, [1, "pause.g", "x", 10], ()),
        ("desired remove", "desired", APP, [0, "pause.h", "", 10], ()),
        ("forget", "forget", KEYS, [LEASE, 0, 1], ("outbox-1",)),
        ("import", "import", KEYS, ["source", 5, 0, 2, "new\nk", 5000, DIGEST, "new-9-0", "fresh\nk", 5000, DIGEST, "new-8-0", 0, 1, envelope("i", "new-1"), "", 0, "new-1-0", "h", "",
                                    1, 1, envelope("i", "new-2"), "", 5000, "new-2-0", "h", "",
                                    4, 1, envelope("i", "new-3"), "", 1, "new-3-0", "h", "no"], ()),
        ("in_flight", "in_flight", KEYS, [LEASE, 0, 256], ()),
        *((f"key_act {verb} {key}", "key_act", KEYS, [verb, key, "me"], ()) for verb in (1, 2, 3, 4) for key in ("k1", "k2", "k6")),
        ("post", "post", MAIL, ["hello", 1000, 10, 1000], ()),
        ("mail_take", "mail_take", MAIL, [5, 10, 1000], ()),
        ("room_set", "room_set", ROOM, [5, 100, 1000, 10, 100], ()),
        ("room_append", "room_append", ROOM, ["relay", 6, 5, 100, 1000, 10, 2, 0, 1, "entry-3", "entry-4"], ()),
        ("room_append of another source", "room_append", ROOM, ["new", 1, 5, 100, 1000, 10, 2, 0, 1, "entry-3"], ()),
        ("room_append of a load", "room_append", ROOM, ["dump", 4, 5, 100, 1000, 10, 2, 3, 2, "entry-3", 5000], ()),
        ("room_truncate", "room_truncate", ROOM, [1, 10], ()),
        ("room_delete", "room_delete", ROOM, [], ()),
        ("wanting_set", "wanting_set", WANTING, ["h", "aa", 7, 1000, 10], ()),
        ("wanting_set none", "wanting_set", WANTING, ["h", "aa", 0, 1000, 10], ()),
        ("limit_take", "limit_take", SHARES, ["1 0 0 0 5 500 9", "cc" * 16, 1000, 1, "a", 2, 0, 0, "b", 0, 0, 0, "c", 9, 0, 0], ()),
        ("limit_take tokens", "limit_take", TOKENS, ["2 10 1000 5 0 0 1", "cc" * 16, 1000, 1, "a", 2, 0, 0, "b", 1, 0, 0], ()),
        *((f"schedule_set {verb} {name}", "schedule_set", KEYS, [verb, name, 2, "cron", 6000, 5, 1, 5000, 7, 2], ())
          for verb in range(5) for name in ("s1", "s2", "s3", "s9")),
        ("schedule_set full", "schedule_set", KEYS, [0, "s9", 2, "cron", 6000, 4], ()),
        ("fires", "fires", KEYS, [LEASE, 9, "s1", 1, 5000, 6000, 1, 0, 1, envelope("s", "new-1"),
                                  "s2", 1, 5000, 6000, 1, 0, 1, envelope("s", "new-2")], ()),
        ("fires unless alive", "fires", KEYS, [LEASE, 9, "s1", 1, 5000, 6000, 1, 1, 1, envelope("s", "new-1")], ()),
        ("fires again", "fires", KEYS, [LEASE, 8, "s1", 1, 5000, 6000, 1, 0, 1, envelope("s", "new-1")], ()),
        ("record", "record", APP[:1], [2, 1, "local:/y", "local:/x", "limits", 3, "41.10.12"], ()),
        ("report", "report", KEYS, [7, "flight-1-0", seq(1), "worker/5.1/", "{}", 0, 1024], ()),
        ("report of a heartbeat", "report", KEYS, [6, "flight-1-0", seq(1), "worker/5.1/w", "{}", 9, 1024], ()),
        ("report of another start", "report", KEYS, [7, "flight-1-0", seq(1), "worker/5.2/", "{}", 0, 1024], ()),
        ("release", "release", KEYS, ["5 aa", 9, "free"], ()),
        ("renew", "renew", KEYS, [LEASE, 1000], ()),
        ("status_put", "status_put", STATUS + COUNTERS, ["bb", "document", 1000, 100, "h.done", 0, 5, "new.done", 0, 1], ()),
        ("submit", "submit", KEYS, [100, "name", "1.1", 10, 1, 0, 0, 0, "", "new-1-0", envelope("s", "new-1"), "", 0, "",
                                    1, 0, 5000, 0, "", "new-2-0", envelope("s", "new-2"), "a\nk", 1000, DIGEST,
                                    1, 0, 0, 1000, "h:s", "new-3-0", envelope("s", "new-3"), "", 0, ""], ()),
        ("submit again", "submit", KEYS, [100, "", "", 10, 1, 0, 0, 0, "", "new-1-0", envelope("s", "new-1"), "new\nk", 1000,
                                          DIGEST], ()),
        ("take", "take", KEYS, ["4.1", shard.pack([0, 6, 1, 0, envelope("t", "new-1")]),
                                shard.pack([0, 7, 1, 99999999999999, envelope("t", "new-2")])], ()),
    ]


GARBAGE = (b"", b"parked", b"\x93\x01\xa1", b"99999999999999999999", b"007")


def corruptions(shard):
    """What may be wrong: a name, and what makes it so."""
    c = shard.client

    def wrong_type(key):
        was = c.type(key)
        c.delete(key)
        if was == b"string":
            c.rpush(key, "of another type")
        else:
            c.set(key, "of another type")

    def list_set(key, index, value):
        c.lset(key, index, value)

    def renamed(key, member, other):
        score = c.zscore(key, member)
        c.zrem(key, member)
        c.zadd(key, {other: score})

    yield "nothing", lambda: None
    yield "unique", lambda: c.rpush(AT + "unique:h:s", "of another type")
    yield "waits", lambda: c.rpush(AT + "wait.name", "of another type")
    for key in sorted(shard.image):
        yield f"{key} of another type", lambda key=key: wrong_type(key)
        kind = c.type(key)
        if kind == b"hash":
            for field in c.hkeys(key):
                for value in GARBAGE:
                    yield f"{key} {field} is {value}", lambda key=key, field=field, value=value: c.hset(key, field, value)
                yield f"{key} {field} is gone", lambda key=key, field=field: c.hdel(key, field)
        elif kind == b"list":
            for index in range(c.llen(key)):
                for value in GARBAGE:
                    yield f"{key} {index} is {value}", lambda key=key, i=index, value=value: list_set(key, i, value)
        elif kind == b"string":
            for value in GARBAGE:
                yield f"{key} is {value}", lambda key=key, value=value: c.set(key, value)
        elif kind == b"zset":
            for member in c.zrange(key, 0, -1):
                yield f"{key} {member} is gone", lambda key=key, member=member: c.zrem(key, member)
                for other in (b"garbage", b"", member[:-4] + b"zzzz"):
                    yield f"{key} {member} is {other}", lambda key=key, m=member, o=other: renamed(key, m, o)


    # A stream is not changed in place: it is another.
    yield "stray entry in {t:0}:room", lambda: c.xadd(ROOM[0], {"m": "stray"}, id="7-1")
    yield "fewer entries in {t:0}:room", lambda: c.xtrim(ROOM[0], maxlen=1, approximate=False)
    yield "an entry in {t:0}:room of another shape", lambda: (c.delete(ROOM[0]), c.xadd(ROOM[0], {"a": 1, "b": 2}, id="1-1"),
                                                              c.xadd(ROOM[0], {"m": "entry-2"}, id="2-1"))


def run(client, sha, keys, args):
    """The reply, or the error."""
    try:
        return client.evalsha(sha, len(keys), *keys, *args)
    except redis.exceptions.ResponseError as error:
        return error


# Keys that only some scripts have to do with; what else there is, any may touch.
ALONE = {"room": "room_", "idempotent": "submit"}


def may_meet(name, keys, what):
    """Whether the call can notice what is wrong: not if that has another hash tag, or is a record of others."""
    tag = re.search(r"\{[^}]*\}:?(\w*)", what)
    if not tag:
        return True
    alone = next((script for key, script in ALONE.items() if tag[1].startswith(key)), None)
    is_room = name.startswith("room_")
    return tag[0].split("}")[0] + "}" in keys[0] and name.startswith(alone or "") and (not is_room or alone == "room_")


def losses(root, shard, all_calls, chance):
    """Runs every call against every corruption; returns what went wrong.  The short run draws a quarter of these."""
    client, bad = shard.client, []
    wrong = list(corruptions(shard))
    made = [(name, client.script_load(assemble(root, script)), keys, args, {m.encode() for m in may_end})
            for name, script, keys, args, may_end in all_calls]
    for what, corrupt in wrong:
        for name, sha, keys, args, may_end in made:
            if not may_meet(name, keys, what) or (what != "nothing" and not LONG and chance.random() > .1):
                continue
            shard.restore()
            corrupt()
            before = shard.dump()
            answer = run(client, sha, keys, args)
            after = shard.dump()
            if isinstance(answer, Exception):
                if what == "nothing":
                    bad.append(f"{name}: {answer}")
                if after != before:
                    changed = sorted(k for k in {*before, *after} if before.get(k) != after.get(k))
                    bad.append(f"{what}: {name} failed and had changed {changed}: {answer}")
            else:
                lost = {a or b for a, b in markers(before) - markers(after)} - may_end
                if lost:
                    bad.append(f"{what}: {name} lost {lost}")
    return bad


def test_a_script_that_fails_has_changed_nothing_and_one_that_does_not_loses_no_task(root, client, chance):
    shard = Shard(client)
    writers = {name for name, path in scripts_of(root).items() if "flags=no-writes" not in path.read_text().splitlines()[0]}
    assert writers - {script for _, script, *_ in calls(shard)} == {"repair", "writable"}, "a script that is not run here"
    bad = losses(root, shard, calls(shard), chance)
    assert not bad, f"{len(bad)}:\n" + "\n".join(bad[:40])


class CommonShard(Shard):
    """One with nothing that is uncommon: two lanes, claimed tasks in one of the lists, and two in the in-flight hash."""

    def fill(self):
        c = self.client
        c.hset(AT + "shard", mapping={"lease": LEASE, "until": 1, "ttl": 1000, "call": 8, "last": "", "high": 4, "normal": 13,
                                      "low": 0, "done": 3, "claimed": CLAIMED})
        c.rpush(AT + "normal", *LISTED, envelope("k1", "queued-1"), envelope("k8", "queued-2"))
        for n in (1, 2):
            c.hset(AT + "flight", seq(n), envelope(f"f{n}", f"flight-{n}"))


def common_calls(high):
    def advance(name, may_end=(), seqs=(), view=CLAIMED, done=0, lane=(0, 3, CLAIMED[3:-2], 64, 0, 1000, LISTED[2])):
        lanes = (lane, (0, 0, "", 64, 0, 1000, ""), (0, 0, "", 64, 0, 1000, "")) if high else (lane,)
        return (name, "advance", KEYS, [LEASE, 9, 1000, 256, 256, 256, LIMIT, LIMIT, "", *advance_lists(view, done, *lanes),
                                        *map(seq, seqs)], may_end)

    return [
        advance("claims"),
        advance("claims none", lane=(0, 3, CLAIMED[3:-2], 0, 0, 1000, LISTED[2])),
        advance("claims what is known to be small", lane=(0, 3, CLAIMED[3:-2], 64, 64, 1000, LISTED[2])),
        advance("does not know", view="-", lane=(13, 0, "", 0, 0, 1000, LISTED[2]), seqs=(13,), may_end=("listed-3",)),
        advance("trims", ("flight-1", "listed-1"), (1,), done=1, lane=(2, 1, "", 64, 0, 1000, LISTED[2])),
        advance("trims all", ("flight-1", "listed-1", "listed-3"), (1,), done=2, lane=(3, 0, "", 64, 0, 1000, LISTED[2])),
        advance("marks", ("listed-3",), done=1, lane=(0, 3, f":6:{sum_of(LISTED[2])}", 64, 0, 1000, LISTED[2])),
        advance_many("many claim"),
        advance_many("many claim what is known to be small", lane=(0, 3, CLAIMED[3:-2], 64, 64, 1000, LISTED[2])),
        advance_many("many with another view", view="0 2 0", lane=(0, 2, "", 64, 0, 1000, LISTED[1])),
        advance_many("many trim", ("listed-1",), done=1, lane=(2, 1, "", 64, 0, 1000, LISTED[2])),
        advance_many("many trim all", ("listed-1", "listed-3"), done=2, lane=(3, 0, "", 64, 0, 1000, LISTED[2])),
        advance_many("many mark", ("listed-3",), done=1, lane=(0, 3, f":6:{sum_of(LISTED[2])}", 64, 0, 1000, LISTED[2])),
    ]


@pytest.mark.parametrize("high", [False, True])
def test_the_common_case_loses_no_task_whatever_is_stored(root, client, chance, high):
    shard = CommonShard(client)
    if high:
        client.rpush(AT + "high", envelope("k9", "high-1"))
        shard.image = shard.dump()
    bad = losses(root, shard, common_calls(high), chance)
    assert not bad, f"{len(bad)}:\n" + "\n".join(bad[:40])


def test_many_shards_advance_as_each_would_alone(root, client):
    """The second shard is fenced, and the third has a task in another lane: nothing changes there."""
    CommonShard(client)
    for shard in (1, 2, 3):
        client.hset(f"quiver:{{t:{shard}}}:shard", mapping={"lease": LEASE if shard != 1 else "held 6 bb", "call": 8, "done": 0, "normal": 0})
        client.rpush(f"quiver:{{t:{shard}}}:normal", envelope("k", f"queued-{shard}"))
    client.rpush("quiver:{t:2}:high", envelope("k", "high-1"))
    _, _, keys, args, _ = advance_many("", done=1, lane=(2, 1, "", 64, 0, 1000, LISTED[2]))
    keys = keys[:2] + [f"quiver:{{t:{shard}}}:{name}" for shard in (1, 2, 3) for name in ("shard", "normal")]
    before = {key: client.dump(key) for key in client.keys("quiver:{t:[12]}*")}
    reply = client.eval(assemble(root, "advance_many"), len(keys), *keys, *args, *args[13:], *args[13:])
    assert reply[1:] == [[0, 0, 13, 2], 0, 0, [0, 0, 0, 1]]
    assert client.hmget(AT + "shard", "claimed", "normal", "done", "call") == [b"0 3 0", b"15", b"4", b"9"]
    assert {key: client.dump(key) for key in client.keys("quiver:{t:[12]}*")} == before
    assert client.hmget("quiver:{t:3}:shard", "claimed", "normal", "last") == [b"0 1 0", b"1", f"{seq(1)} 1 ".encode()]


def advance(client, root, *lists, call=9):
    return client.eval(assemble(root, "advance"), len(KEYS), *KEYS, LEASE, call, 1000, 256, 256, 256, LIMIT, LIMIT, "", *lists)


def test_the_common_case_leaves_claimed_tasks_in_their_list(root, client):
    shard = CommonShard(client)
    before = client.lrange(AT + "normal", 0, -1)
    reply = advance(client, root, *advance_lists(CLAIMED, 1, (2, 1, "", 64, 0, 1000, LISTED[2])), seq(1))
    assert reply[0] & 512 and reply[10:] == [seq(14), 2, b""]
    assert client.lrange(AT + "normal", 0, -1) == before[2:]
    fields = client.hgetall(AT + "shard")
    assert fields[b"claimed"] == b"0 3 0" and fields[b"normal"] == b"15" and fields[b"done"] == b"5"
    assert client.hkeys(AT + "flight") == [str(seq(2)).encode()]
    # Its answer was lost: the same tasks come again, and what is claimed leaves the list; nothing else changes.
    again = advance(client, root, *advance_lists("-"), seq(13))
    assert again[10:12] == [seq(14), before[3:]]
    assert not client.exists(AT + "normal") and not client.hexists(AT + "shard", "claimed")
    assert client.hvals(AT + "flight") == [envelope("f2", "flight-2").encode(), *before[2:]]
    image = shard.dump()
    assert advance(client, root, *advance_lists("-"), seq(13))[10:] == again[10:]
    assert shard.dump() == image


def test_what_was_claimed_meanwhile_is_not_cancelled_as_if_it_was_queued(root, client):
    shard = CommonShard(client)
    before = shard.dump()
    assert client.eval(assemble(root, "cancel"), len(KEYS), *KEYS, 0, seq(13), "listed-3-0", "l3") == -1
    assert shard.dump() == before


def test_a_list_that_others_have_changed_costs_no_task_that_was_claimed(root, client):
    """Something was put before what is claimed, or some of it was taken away: nothing is trimmed by places that are not so."""
    for change in (lambda: client.lpush(AT + "normal", "before all"), lambda: client.ltrim(AT + "normal", -1, -1),
                   lambda: client.delete(AT + "normal")):
        shard = CommonShard(client)
        change()
        client.rpush(AT + "control", shard.pack([1, "k5", "me", "", 0]))
        before = shard.dump()
        assert advance(client, root, *advance_lists(CLAIMED, 1, (0, 3, f":6:{sum_of(LISTED[2])}", 64, 0, 1000, LISTED[2]))) == b"OTHER"
        assert shard.dump() == before
        assert any("lane normal" in line for line in fsck(shard, root))
        client.eval(assemble(root, "acquire"), len(KEYS), *KEYS, 6, "aa", 1000, 0, 1000, 256, "host-a")
        assert markers(shard.dump()) == markers(before)
        assert not client.hexists(AT + "shard", "claimed") and not fsck(shard, root)


def reads(shard):
    """Scripts that only look; a person has nothing else to find out with what is wrong."""
    yield from (("find", KEYS, ["queued-2-0", stage, 0, 100]) for stage in range(1, 6))
    yield from (("list", KEYS, [state, 0, 100]) for state in range(5))
    yield from (("fsck", KEYS, [part, 0]) for part in range(1, PARTS + 1))
    yield from (("keys", KEYS, ["", 0, 100, 0]), ("keys", KEYS, ["k1", 0, 1, 0]), ("status_list", STATUS, [10, ""]),
                ("wanting_list", WANTING, ["", 10]), ("room_list", [AT + "rooms"], ["", 10]), ("count", KEYS, []),
                ("dead_groups", KEYS, []), ("limit_look", SHARES, [0, 10]), ("limit_look", TOKENS, [0, 10]), ("schedule_list", KEYS, ["", 10, 0]), ("remembered_list", KEYS, ["", 10]), ("remembered_list", KEYS, ["old\nk", 10]))


RECORDS = ("schedules", "idempotent", "keys", "later", "dead", "resultdata", "status", "deadnumbers", "deadgroups", "counted", "due", "delayed", "control", "notes")


def test_a_record_that_cannot_be_read_hides_no_other(root, client):
    shard = Shard(client)
    scripts = {name: client.script_load(assemble(root, name)) for name, *_ in reads(shard)}
    bad = []
    for what, corrupt in corruptions(shard):
        if "of another type" in what or not what.startswith(tuple(f"b'{AT}{r}'" for r in RECORDS) + (f"b'{STATUS[0]}'",)):
            continue
        for name, keys, args in reads(shard):
            shard.restore()
            corrupt()
            answer = run(client, scripts[name], keys, args)
            if isinstance(answer, Exception):
                bad.append(f"{what}: {name} {args}: {answer}")
    assert not bad, f"{len(bad)}:\n" + "\n".join(bad[:40])


def fsck(shard, root):
    sha = shard.client.script_load(assemble(root, "fsck"))
    lines = []
    for part in range(1, PARTS + 1):
        cursor = b"0"
        while cursor:
            cursor, _, problems, *_ = shard.client.evalsha(sha, len(KEYS), *KEYS, part, cursor)
            lines += [line.decode() for line in problems]
    return lines


def test_a_key_whose_record_is_corrupt_is_named_and_keeps_its_tasks(root, client):
    """Of three tasks that waited for it none is gone, and others go on."""
    shard = Shard(client)
    client.hset(AT + "keys", "k1", "parked")
    client.hdel(AT + "shard", "want")
    client.delete(AT + "control")
    before = client.hgetall(AT + "parked")
    reply = client.eval(assemble(root, "advance"), len(KEYS), *KEYS, LEASE, 9, 1000, 256, 256, 256, LIMIT, LIMIT, "", *advance_lists())
    assert client.hget(AT + "keys", "k1") == b"parked"
    assert {f: v for f, v in client.hgetall(AT + "parked").items() if b"key:k1" in v}.items() >= {
        f: v for f, v in before.items() if b"key:k1" in v}.items()
    assert any(b"key k1: its record cannot be read" in line for line in reply[6][1])
    assert any("key k1: its record cannot be read" in line for line in fsck(shard, root))
    assert b"parked-9" in b"".join(client.hgetall(AT + "flight").values()), "another key's task was not taken"
    assert client.zscore(AT + "due", "k1") == float("inf"), "it would be met again at once, for ever"
