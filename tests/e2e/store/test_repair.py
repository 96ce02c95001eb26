"""`quiver fsck --repair`: every kind of damage is found, mended where no task is lost by it, and named."""
import json
import sqlite3
import subprocess

import pytest

from hosts import wait_until

pytest.importorskip("redis")

AT = "quiver:{test:0}:"
ENVELOPE = "qv1\nkey:%s\nhandler:work\n\n%d"
FIRST = 1 << 48


def side(key, seq):
    return f"{key}\0{seq:016x}"


def pack(client, name, field, *values):
    """A record as the scripts write it; the server has the packer."""
    client.eval("redis.call('HSET', KEYS[1], ARGV[1], cmsgpack.pack(cjson.decode(ARGV[2])))", 1, AT + name, field,
                json.dumps(values))


def damaged(host):
    """A store of one shard, with every kind of damage that a repair knows."""
    host.configure(shards=1, work="").start()
    assert host.stop() == 0
    with host.redis.client() as client:
        client.hset(AT + "shard", "normal", 20)
        # parked in no queue; in a queue of a free key; in a queue without its bytes; in flight as well
        for number, key in (1, "a"), (2, "b"), (4, "d"):
            client.hset(AT + "parked", FIRST + number, ENVELOPE % (key, number))
        client.zadd(AT + "side", {side("b", FIRST + 2): 0, side("c", FIRST + 3): 0, side("d", FIRST + 4): 0})
        client.hset(AT + "flight", FIRST + 4, ENVELOPE % ("d", 4))
        # a wrong count, a record that says nothing, a key that is due and free
        client.hset(AT + "keys", mapping={"c": "parked 1 1 1 why", "e": "?", "f": "held 1 3 0 by hand"})
        client.zadd(AT + "due", {"c": 1, "g": 1})
        # a key that waits for a name and is not found by it; one that is found and does not wait for it
        client.hset(AT + "parked", FIRST + 10, ENVELOPE % ("n", 10))
        client.zadd(AT + "side", {side("n", FIRST + 10): 0})
        client.hset(AT + "keys", "n", "named 1 1 0 handler:work why")
        client.zadd(AT + "due", {"n": float("inf")})
        client.zadd(AT + "named", {f"handler:work\0{1:016x}c": 0})
        client.hset(AT + "notes", FIRST + 9, "qn1\nattempts:1\n\n")
        # parked and not counted in its lane, as by a Quiver that did not; counted and not there
        client.hset(AT + "shard", "low", 11)
        client.hset(AT + "parked", 2 * FIRST + 11, ENVELOPE % ("l", 11))
        client.zadd(AT + "side", {side("l", 2 * FIRST + 11): 0})
        client.hset(AT + "keys", "l", "parked 1 1 1 why")
        client.zadd(AT + "due", {"l": 1})
        client.zadd(AT + "parkedlanes", {str(2 * FIRST + 10): 2 * FIRST + 10})
        # delayed without its bytes; without its time
        client.zadd(AT + "delayed", {"00000000000000aa": 1})
        pack(client, "later", "00000000000000bb", 1, ENVELOPE % ("h", 5), "")
        pack(client, "dead", 7, "x-0", "work", 1, 1, "rejected", ENVELOPE % ("i", 6), "")
        client.zadd(AT + "deadnumbers", {"8": 8})
        client.zadd(AT + "deadids", {side("y-0", 8): 0})
        client.zadd(AT + "results", {"1": 1})
        client.zadd(AT + "leased", {"2": 1})
        client.hset(AT + "consumers", "2", "x")
        client.rpush(AT + "merged", "x-0 5 y-0", "?")
        # an idempotency key that says nothing; one that never ends; one that ends and is not there
        client.hset(AT + "idempotent", mapping={"one\nk": "?", "two\nk": f"5 {'ab' * 32} x-0"})
        client.zadd(AT + "idempotentends", {"one\nk": 5, "three\nk": 5})
    return host


def refused(host):
    done = subprocess.run([host.quiver, "fsck", "--repair", "-c", host.config], capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 1 and done.stdout == "", done
    return done.stderr


def test_damage_is_mended_and_named_and_no_task_is_lost(redis_host):
    host = damaged(redis_host)
    before = host.cli("fsck", code=1)
    assert "problems" in before and "mended" not in before
    said = host.cli("fsck", "--repair", "--json")
    for line in ("task 281474976710657 is parked, but in no queue; mended",
                 "b: tasks wait for it, but it is free; mended",
                 "task 281474976710659 waits, but is not there; mended", "both in flight and parked; mended",
                 "key e: its record cannot be read; mended", "key f: tasks: 3 and 0 differ; mended",
                 "key g: is due, but free; mended", "key n: waits for handler:work, but is not found there; mended",
                 "key c: does not wait for handler:work; mended", "a note for task", "delayed 00000000000000aa is not there; mended",
                 "delayed 00000000000000bb waits for no time; mended", "dead x-0 is not found by its id; mended",
                 "dead x-0 is not listed; mended", "dead number 8 is not there; mended",
                 "dead y-0 is not there; mended",
                 "task 562949953421323 is parked, but not counted in its lane; mended",
                 "task 562949953421322 is counted as parked in its lane, but is not; mended",
                 "merged task 2: what is remembered of it cannot be read; mended",
                 "what is remembered cannot be read; mended", "ends at 5, queued for false; mended",
                 "ends, but is not there; mended",
                 "result 1 is not there; mended", "result 2 is held, but not there; mended"):
        assert line in said, line
    assert "sound" in host.cli("fsck")
    assert "sound" in host.cli("fsck", "--repair")
    assert json.loads(host.cli("status", "--json"))["totals"]["parked_lanes"] == {"high": 0, "normal": 3, "low": 1}
    host.start()
    host.wait_done(6)  # a, b, d, h, n, l
    assert host.stop() == 0
    assert sorted(host.starts()) == [1, 2, 4, 5, 10, 11]
    assert "x-0" in host.cli("dead", "list")
    assert "sound" in host.cli("fsck")


def test_what_takes_a_person_is_said_and_left(redis_host):
    host = redis_host.configure(shards=1, work="").start()
    assert host.stop() == 0
    with host.redis.client() as client:
        client.hset(AT + "dead", 7, "no record")
        client.zadd(AT + "deadnumbers", {"7": 7})
        client.zadd(AT + "deadids", {side("x-0", 7): 0})
        client.hset(AT + "deadgroups", "", 1)
        assert "1 problem, 0 mended" in host.cli("fsck", "--repair", code=1)
        assert client.hexists(AT + "dead", 7)


def test_numbers_that_nobody_gave_are_mended_and_their_tasks_are_dead(redis_host):
    host = redis_host.configure(shards=1, work="").start()
    host.submit([{"handler": "work", "key": "k", "payload": str(n)} for n in range(3)])
    host.wait_done(3)
    assert host.stop() == 0
    with host.redis.client() as client:
        for field in (str(9 * FIRST + 1), str(FIRST + 50), "nan"):
            client.hset(AT + "flight", field, ENVELOPE % ("k", 11))
        client.hset(AT + "parked", "abc", ENVELOPE % ("k", 12))
        client.hset(AT + "parked", 9 * FIRST, ENVELOPE % ("k", 13))
        client.zadd(AT + "side", {side("k", 9 * FIRST): 0, "k": 0})
        client.hset(AT + "keys", "k", "held 1 1 0 by hand")
        client.zadd(AT + "due", {"k": float("inf")})
        before = host.cli("fsck", code=1)
        assert "problems" in before
        said = host.cli("fsck", "--repair", "--json")
        for line in (f"in flight: {9 * FIRST + 1} was never claimed; mended", "in flight: nan was never claimed; mended",
                     "a task waits under 0009000000000000, which was never given; mended",
                     "parked: abc was never given; mended"):
            assert line in said, line
        assert "sound" in host.cli("fsck")
        assert client.hlen(AT + "dead") == 5
        assert all(b"never given" in record and b"qv1" in record for record in client.hvals(AT + "dead"))


def test_what_a_shard_says_of_itself_is_counted_anew(redis_host):
    host = redis_host.configure(shards=1, work="").start()
    host.submit([{"handler": "work", "key": "k", "payload": str(n)} for n in range(3)])
    host.wait_done(3)
    assert host.stop() == 0
    with host.redis.client() as client:
        client.hset(AT + "flight", FIRST + 3, ENVELOPE % ("k", 3))
        client.hset(AT + "shard", mapping={"normal": "nan", "call": "x", "done": "1e400", "last_dead": "", "lease": "??",
                                           "gone": "1 2"})
        said = host.cli("fsck", "--repair", "--json")
        for name in "normal", "call", "done", "last_dead", "lease", "gone":
            assert f"{name}: " in said, name
        assert "sound" in host.cli("fsck")
        assert client.hget(AT + "shard", "normal") == b"3"
    host.start()
    host.wait_done(1)
    assert host.stop() == 0
    assert host.starts()[-1] == 3


def test_a_corrupt_record_costs_no_task_and_stops_no_other(redis_host):
    """Tasks that wait for a key whose record is damaged under a host: they stay until it is mended, and others run."""
    host = redis_host.configure(shards=1, work="").start()
    host.submit([{"handler": "work", "key": "other", "payload": "1"}])
    host.wait_done(1)
    assert host.stop() == 0
    with host.redis.client() as client:
        client.hset(AT + "keys", "k", "parked 1 3 1 why")
        first = int(client.hget(AT + "shard", "normal"))
        client.hset(AT + "shard", "normal", first + 3)
        for number in range(first + 1, first + 4):
            client.hset(AT + "parked", FIRST + number, ENVELOPE % ("k", 10 + number))
            client.zadd(AT + "side", {side("k", FIRST + number): 0})
        client.hset(AT + "keys", "k", "parked")
        client.zadd(AT + "due", {"k": 1})
        pack(client, "later", "0000000000000001", 1, ENVELOPE % ("h", 5))  # it lacks a value
        client.zadd(AT + "delayed", {"0000000000000001": 1})
        client.hset(AT + "shard", "last_delayed", 1)
        host.start()
        host.submit([{"handler": "work", "key": "other", "payload": "2"}])
        host.wait_done(2)
        host.wait_for_log("key k: its record cannot be read")
        host.wait_for_log("delayed 0000000000000001: its record cannot be read")
        said = host.cli("fsck", "--json", code=1)
        assert "key k: its record cannot be read" in said and "delayed 0000000000000001: its record" in said
        assert "cannot be read" in host.cli("key", "list")
        assert client.hlen(AT + "parked") == 3 and client.hget(AT + "keys", "k") == b"parked"
        assert client.hexists(AT + "later", "0000000000000001")
        assert host.stop() == 0
        assert "key k: its record cannot be read; mended" in host.cli("fsck", "--repair", "--json", code=1)
    host.start()
    host.wait_done(5)
    assert host.stop() == 0
    assert host.starts("k") == [10 + first + n for n in (1, 2, 3)]


def test_a_repair_is_refused_while_a_host_runs(redis_host):
    host = redis_host.configure(shards=1, work="").start()
    host.wait_for_log("event=acquired")
    with host.redis.client() as client:
        client.hset(AT + "notes", FIRST + 9, "qn1\nattempts:1\n\n")
        assert "stop all hosts" in refused(host)
        assert client.hexists(AT + "notes", FIRST + 9)
    assert host.stop() == 0


def change(host, *statements):
    with sqlite3.connect(host.folder / "q.db", timeout=30) as db:
        for statement in statements:
            db.execute(*statement)


def test_a_file_is_counted_anew_and_no_task_is_lost(host):
    host.configure(shards=1, work="").start()
    host.submit([{"handler": "work", "key": "a", "payload": str(n)} for n in range(3)])
    host.wait_done(3)
    host.cli("key", "hold", "h")
    host.submit([{"handler": "work", "key": "h", "payload": str(n)} for n in (10, 11)])
    wait_until(lambda: len(host.rows("side")) == 2, "they wait")
    assert host.stop() == 0
    host.submit([{"handler": "work", "key": "q", "payload": "20"}])
    host.cli("submit", "work", "--key", "d", "--delay", "1h", "30")
    stray = (ENVELOPE % ("k", 40)).encode()
    change(host, ("UPDATE shard SET normal_tail = ?, normal_taken = -5, normal_queued = -1, in_flight = 9, delayed = 0, "
                  "parked = 77, last_dead = ?, last_key = -1, call = -1, dead = 5, submitted = 1", (1 << 60, 1 << 61)),
           ("UPDATE key SET tasks = 99, state = 8, name = 'handler:work'", ()),
           ("INSERT INTO log(id, task) VALUES(?, ?)", ((2 << 60) + 1, stray)))  # of no lane
    assert "its normal_tail is out of range" in subprocess.run(
        [host.quiver, "fsck", "-c", host.config], capture_output=True, text=True).stderr
    host.cli("fsck", "--repair")
    assert "sound" in host.cli("fsck")
    assert [row["task"] for row in host.rows("dead")] == [stray]
    host.start()
    wait_until(lambda: sorted(host.starts())[3:] == [10, 11, 20], "all but the delayed one and the dead one are done")
    assert host.stop() == 0
    assert "sound" in host.cli("fsck")


def test_a_file_is_not_repaired_while_a_host_runs(host):
    host.configure(shards=1, work="").start()
    host.submit([{"handler": "work", "key": "a", "payload": "1"}])
    host.wait_done(1)
    change(host, ("UPDATE shard SET dead = 5", ()))
    assert "stop all hosts" in refused(host)
    assert host.stop() == 0


@pytest.mark.parametrize("kind", ["host", "redis_host"])
def test_an_idempotency_key_that_says_nothing_refuses_its_own_submit_until_it_is_mended(request, kind):
    """Nobody knows whether the task was taken: neither a second one nor a wrong id is the answer."""
    host = request.getfixturevalue(kind).configure(shards=1, work="").start()
    words = ["submit", "work", "--key", "k", "--idempotency-key"]
    first = host.cli(*words, "one", "1").strip()
    assert host.cli(*words, "one", "1").strip() == first
    host.wait_done(1)
    assert host.stop() == 0
    if hasattr(host, "redis"):
        with host.redis.client() as client:
            client.hset(AT + "idempotent", "one\nk", "no record")
    else:
        change(host, ("UPDATE idempotency SET digest = ?", (b"short",)), ("UPDATE idempotency_count SET count = 7", ()))
    refusal = subprocess.run([host.quiver, *words, "one", "1", "-c", host.config], capture_output=True, text=True, timeout=60)
    assert refusal.returncode == 1 and "fsck --repair" in refusal.stderr, refusal
    assert host.cli(*words, "two", "2").strip() != first
    assert "idempotency" in host.cli("fsck", "--json", code=1)
    host.cli("fsck", "--repair")
    assert "sound" in host.cli("fsck")
    assert host.cli(*words, "one", "1").strip() != first


def test_what_is_remembered_of_merged_tasks_is_mended(host):
    host.configure(shards=2, work="").start()
    assert host.stop() == 0
    change(host, ("UPDATE shard SET merged = 2, submitted = submitted + 2 WHERE shard = 1", ()),
           *(("INSERT INTO merged VALUES(?, 'x-1', ?, ?)", ((1 << 50) + number, into, at))
             for number, into, at in ((1, "y-1", 5), (2, "y-0", 5), (3, "y-1", 5))))
    said = host.cli("fsck", "--json", code=1)
    assert "1 records of merged tasks say nothing" in said and "1 records of merged tasks beyond the last" in said
    host.cli("fsck", "--repair")
    assert "sound" in host.cli("fsck")
    assert [row["into_id"] for row in host.rows("merged")] == ["y-1"]
    change(host, ("UPDATE shard SET merged = -7 WHERE shard = 1", ()))
    assert "merged is out of range" in host.cli("fsck", "--json", code=1)
    host.cli("fsck", "--repair")
    assert "sound" in host.cli("fsck")


def test_mailboxes_of_a_file_are_counted_anew(host):
    host.configure(shards=2, work="").start()
    assert host.stop() == 0
    mine, other = b"m" * 16, b"o" * 16
    change(host, ("INSERT INTO mailbox VALUES(?, 7, 5, 1, 99999999999999)", (mine,)),
           *(("INSERT INTO mail(nonce, number, bytes) VALUES(?, ?, ?)", (nonce, number, b"hello"))
             for nonce, number in ((mine, 8), (mine, 9), (other, 1))))
    said = host.cli("fsck", "--json", code=1)
    assert "mailboxes count their messages wrongly" in said and "messages in no mailbox" in said
    host.cli("fsck", "--repair")
    assert "sound" in host.cli("fsck")
    assert [(row["last"], row["messages"], row["bytes"]) for row in host.rows("mailbox")] == [(9, 2, 10)]


def test_rooms_of_a_file_are_counted_anew(host):
    host.configure(shards=1, work="").start()
    assert host.stop() == 0
    change(host, ("INSERT INTO room VALUES(1, 0, 'a', 2, 7, 1, -5, 0, 0)", ()),
           ("INSERT INTO room VALUES(2, 0, 'b', 9, 0, 0, 10, 10, 10)", ()),
           *(("INSERT INTO room_entry VALUES(?, ?, 1, ?)", (room, number, b"hello"))
             for room, number in ((1, 4), (1, 5), (3, 1))))
    said = host.cli("fsck", "--json", code=1)
    assert "1 rooms count their entries wrongly" in said and "1 entries in no room" in said
    host.cli("fsck", "--repair")
    assert "sound" in host.cli("fsck")
    assert [(row["last"], row["entries"], row["bytes"], row["entries_max"]) for row in host.rows("room")] == \
        [(5, 2, 10, 10000), (9, 0, 0, 10)]


def test_rooms_on_redis_are_counted_anew(redis_host):
    host = redis_host.configure(shards=1, work="").start()
    assert host.stop() == 0
    with host.redis.client() as client:
        for room in "a", "b", "c":
            client.xadd(AT + "room:" + room, {"m": "hello"}, id="4-1")
            client.xadd(AT + "room:" + room, {"m": "hello"}, id="5-1")
        client.hset(AT + "rooms", mapping={"a": "no record", "b": "9 7 1 10 10 10", "c": "5 2 10 10 10 10"})
        said = host.cli("fsck", "--json", code=1)
        assert 'room a: its record is' in said and "room b: its record is" in said and "room c" not in said
        host.cli("fsck", "--repair")
        assert "sound" in host.cli("fsck")
        assert client.hgetall(AT + "rooms") == {b"a": b"5 2 10 10000 67108864 604800000", b"b": b"9 2 10 10 10 10",
                                                b"c": b"5 2 10 10 10 10"}
