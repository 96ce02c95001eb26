"""What stands in a store is input: a number that nobody gave crashes no host, costs no other task, and is found among the
dead with its bytes and the reason."""
import json
import sqlite3
import subprocess
import zlib

import pytest

from hosts import wait_until

redis = pytest.importorskip("redis")

AT = "quiver:{test:0}:"
ENVELOPE = "qv1\nkey:%s\nhandler:work\n\n%d"
LANE = 1 << 48
# Lane 9; no lane at all; never claimed; not a number; a number that is written otherwise; more than a double counts.
STRAYS = [str(9 * LANE + 1), str(3 * LANE), "5", str(LANE + 50), "0", "-1", "abc", "", "nan", "inf", "0x10",
          f"{LANE + 1}.0", f" {LANE + 1}", "1e15", "99999999999999999999"]


def side(key, seq):
    return f"{key}\0{seq:016x}"


def dead(host):
    return [json.loads(line) for line in host.cli("dead", "list", "--json").splitlines()]


def one_shard(redis_host):
    """A store of one shard in which five numbers of the lane `normal` were given."""
    host = redis_host.configure(shards=1, work="").start()
    host.submit([{"handler": "work", "key": "k", "payload": str(n)} for n in range(5)])
    host.wait_done(5)
    assert host.stop() == 0
    return host


def goes_on(host, done):
    """The host takes the shard and does what is submitted then."""
    host.start()
    host.submit([{"handler": "work", "key": "next", "payload": "77"}])

    def is_done():
        assert host.process.poll() is None, f"it ended with {host.process.poll()}:\n{host.log()[-2000:]}"
        return host.sum("done") == done + 1

    wait_until(is_done, "the next task is done")


@pytest.mark.parametrize("field", STRAYS)
def test_a_number_in_flight_that_nobody_gave_becomes_dead_and_the_shard_goes_on(redis_host, field):
    host = one_shard(redis_host)
    with host.redis.client() as client:
        client.hset(AT + "flight", field, ENVELOPE % ("k", 66))
        goes_on(host, 5)
        assert not client.hexists(AT + "flight", field)
        (number,) = client.hkeys(AT + "dead")
        assert b"k" in client.hget(AT + "dead", number) and b"malformed" in client.hget(AT + "dead", number)
    assert 66 not in host.starts()
    (row,) = dead(host)
    assert row["reason"] == "malformed" and json.dumps(field)[1:-1] in json.dumps(row)
    assert host.stop() == 0
    assert "sound" in host.cli("fsck")


def test_a_place_in_a_side_queue_that_nobody_gave_becomes_dead_and_the_key_goes_on(redis_host):
    host = one_shard(redis_host)
    host.cli("key", "hold", "k")
    host.submit([{"handler": "work", "key": "k", "payload": "6"}])
    with host.redis.client() as client:
        # lane 9 with its bytes; a number that was never claimed; a place without bytes
        for seq, number in (9 * LANE + 1, 66), (40, 67):
            client.zadd(AT + "side", {side("k", seq): 0})
            client.hset(AT + "parked", seq, ENVELOPE % ("k", number))
        client.zadd(AT + "side", {side("k", 3): 0})
        client.hset(AT + "keys", "k", "parked 1 3 1 by hand")
        client.zadd(AT + "due", {"k": 1})
        goes_on(host, 6)
        assert client.zcard(AT + "side") == 0 and client.hlen(AT + "parked") == 0
    assert sorted(host.starts())[-2:] == [6, 77]
    assert [row["reason"] for row in dead(host)] == ["malformed", "malformed"]
    assert host.stop() == 0
    assert "sound" in host.cli("fsck")


def test_a_shard_that_cannot_be_read_keeps_no_other_shard_from_being_held(redis_host):
    host = redis_host.configure(shards=2, work="").start()
    host.submit([{"handler": "work", "key": f"k{n}", "payload": str(n)} for n in range(20)])
    host.wait_done(20)
    with host.redis.client() as client:
        client.hset(AT + "shard", "normal", "nan")
        host.submit([{"handler": "work", "key": f"k{n}", "payload": str(n)} for n in range(20, 60)])
        host.wait_for_log("BADVALUE quiver:{test:0}:shard: normal is")
        queued = client.llen(AT + "normal")
        assert queued > 0
        host.wait_done(60 - queued)
        # several leases long
        for n in range(60, 63):
            key = next(f"x{i}" for i in range(99) if zlib.crc32(f"x{i}".encode()) % 2)
            host.submit([{"handler": "work", "key": key, "payload": str(n)}])
            host.wait_started(n)
        assert client.llen(AT + "normal") == queued
    host.kill()
    wait_until(lambda: subprocess.run([host.quiver, "fsck", "--repair", "-c", host.config]).returncode == 0, "it is mended")
    host.start()
    wait_until(lambda: len(set(host.starts())) == 63, "all are done")
    assert host.stop() == 0
    assert sorted(host.starts()) == list(range(63))


HUGE = "99999999999999999999"


def hold_with(host, client, envelope):
    """A key that is held, and a foreign task at its head."""
    host.cli("key", "hold", "h")
    client.rpush(AT + "normal", envelope)
    host.submit([{"handler": "work", "key": "next", "payload": "77"}])
    host.start()
    wait_until(lambda: client.hlen(AT + "parked") == 1, "it waits for its key")
    wait_until(lambda: 77 in host.starts(), "the next is done")


def test_a_number_without_range_on_a_held_key_is_skipped_whole(redis_host):
    host = one_shard(redis_host)
    with host.redis.client() as client:
        hold_with(host, client, f"qv1\nkey:h\nhandler:work\nid:zz-0\nreply:{HUGE}\n\n5")
        assert host.stop() == 0
        host.cli("key", "skip", "h")
        assert client.hlen(AT + "parked") == 0 and client.zcard(AT + "side") == 0
    (row,) = dead(host)
    assert row["id"] == "zz-0" and row["reason"] == "skipped"
    assert "sound" in host.cli("fsck")
    host.start()
    host.submit([{"handler": "work", "key": "h", "payload": "78"}])
    host.wait_started(78)
    assert host.stop() == 0


def test_a_number_without_range_on_a_held_key_is_skipped_by_its_owner(redis_host):
    host = one_shard(redis_host)
    with host.redis.client() as client:
        hold_with(host, client, f"qv1\nkey:h\nhandler:work\nid:zz-0\nreply:{HUGE}\nnot_before:{HUGE}\n\n5")
        host.cli("key", "skip", "h")
        wait_until(lambda: client.hlen(AT + "dead") == 1, "it is dead")
        host.submit([{"handler": "work", "key": "h", "payload": "78"}])
        host.wait_started(78)
    assert host.stop() == 0
    assert "sound" in host.cli("fsck")


@pytest.mark.parametrize("is_owned", [False, True])
def test_a_task_that_no_host_can_read_is_shown_and_cancelled_by_its_id(redis_host, is_owned):
    host = one_shard(redis_host)
    with host.redis.client() as client:
        hold_with(host, client, f"qv1\nkey:h\nhandler:work\nid:zz-0\nreply:{HUGE}\n\n5")
        if not is_owned:
            assert host.stop() == 0
        shown = json.loads(host.cli("task", "zz-0", "--json"))
        assert shown["id"] == "zz-0" and shown["key"] == "h" and shown["state"] == "held"
        host.cli("task", "cancel", "zz-0")
        wait_until(lambda: client.hlen(AT + "dead") == 1, "it is dead")
    if is_owned:
        assert host.stop() == 0
    (row,) = dead(host)
    assert row["id"] == "zz-0" and row["reason"] == "cancelled"
    assert "sound" in host.cli("fsck")


def test_an_id_that_no_command_takes_is_not_used(redis_host):
    """One that is too long, or names another shard, would be shown and then not be found."""
    host = one_shard(redis_host)
    with host.redis.client() as client:
        hold_with(host, client, "qv1\nkey:h\nhandler:work\nid:" + "x" * 300 + f"-0\nreply:{HUGE}\n\n5")
        head = json.loads(host.cli("key", "h", "--json"))["head"]
        assert head.startswith("normal.") and head.endswith("-0")
        host.cli("task", "cancel", head)
        wait_until(lambda: client.hlen(AT + "dead") == 1, "it is dead")
    assert host.stop() == 0


# --- the same on a file ---------------------------------------------------------------------------------------------------


def one_file(host, more=""):
    """A file of one shard in which five tasks were done."""
    host.configure(shards=1, work=more).start()
    host.submit([{"handler": "work", "key": "k", "payload": str(n)} for n in range(5)])
    host.wait_done(5)
    assert host.stop() == 0
    return host


def change(host, *statements):
    with sqlite3.connect(host.folder / "q.db", timeout=30) as db:
        for statement in statements:
            db.execute(*statement)


def test_a_side_row_of_a_file_that_nobody_gave_becomes_dead_and_the_key_goes_on(host):
    host = one_file(host)
    host.cli("key", "hold", "h")
    host.submit([{"handler": "work", "key": "h", "payload": str(n)} for n in (21, 22, 23)])
    host.start()
    wait_until(lambda: len(host.rows("side")) == 3, "they wait")
    assert host.stop() == 0
    first, second, _ = sorted(row["seq"] for row in host.rows("side"))
    change(host, ("UPDATE side SET seq = ? WHERE seq = ?", (9 * LANE + 1, first)),
           ("UPDATE side SET task = ? WHERE seq = ?", (b"\xff\xff\xff", second)))
    host.cli("key", "unhold", "h")
    goes_on(host, 6)
    assert host.rows("side") == [] and sorted(host.starts())[-2:] == [23, 77]
    assert sorted(row["reason"] for row in host.rows("dead")) == ["malformed", "malformed"]
    assert host.stop() == 0
    assert "sound" in host.cli("fsck")


def test_a_row_of_the_log_that_nobody_gave_or_can_read_becomes_dead(host):
    host = one_file(host)
    envelope = (ENVELOPE % ("k", 66)).encode()
    # Of no lane, of a segment that is yet to come, and one that was claimed: runtime/store/sqlite/log.h.
    change(host, ("INSERT INTO log(id, task) VALUES(?, ?)", ((2 << 60) + 1, envelope)),
           ("INSERT INTO log(id, task) VALUES(?, ?)", ((1000 << 22) + 40, envelope)),
           ("INSERT INTO log(id, task) VALUES(?, ?)", ((1 << 22) + 3, b"\x80\xff\xff")),
           ("UPDATE shard SET in_flight = 1, submitted = submitted + 1", ()))
    goes_on(host, 5)
    assert 66 not in host.starts()
    assert [row["reason"] for row in host.rows("dead")] == ["malformed"] * 3
    assert host.stop() == 0
    assert "sound" in host.cli("fsck")


def test_lanes_that_there_are_none_of_cost_a_file_no_task(host):
    host = one_file(host)
    for n in (31, 32):
        host.cli("submit", "work", "--key", "d", "--delay", "1h", n)
    change(host, ("UPDATE delayed SET due = 1", ()),
           ("UPDATE delayed SET lane = 9 WHERE id = (SELECT min(id) FROM delayed)", ()))
    goes_on(host, 6)
    (row,) = host.rows("dead")
    assert row["reason"] == "malformed" and row["lane"] < 3
    change(host, ("UPDATE dead SET lane = -7", ()))
    host.cli("dead", "requeue", "--all")
    wait_until(lambda: sorted(host.starts())[5:] == [31, 32, 77], "it is done as well")
    assert host.stop() == 0
    assert "sound" in host.cli("fsck")


def test_counts_and_texts_of_a_file_that_are_too_large_crash_nobody(host):
    host = one_file(host)
    host.cli("submit", "work", "--key", "u", "--unique", "1h", "--delay", "1h", 41)
    change(host, ("UPDATE uniq SET id = ?", ("x" * 5000,)),
           ("UPDATE shard SET returned = 1000000, controls = 300, last = ?", (b"\xff" * 8192,)),
           *[("INSERT INTO control(id, verb, key, task_id, seq) VALUES(?, ?, ?, '', ?)", (n, n % 99, b"k", 9 * LANE))
             for n in range(1, 301)])
    host.cli("submit", "work", "--key", "u", "--unique", "1h", 42)
    goes_on(host, 5)
    assert host.stop() == 0


def test_a_row_that_is_out_of_range_is_named_and_keeps_no_other_shard_from_being_held(host):
    host.configure(shards=2, work="").start()
    host.submit([{"handler": "work", "key": f"k{n}", "payload": str(n)} for n in range(20)])
    host.wait_done(20)
    change(host, ("UPDATE shard SET normal_tail = ? WHERE shard = 0", (1 << 60,)))
    key = next(f"x{i}" for i in range(99) if zlib.crc32(f"x{i}".encode()) % 2)
    for n in range(60, 63):
        host.submit([{"handler": "work", "key": key, "payload": str(n)}])
        host.wait_started(n)
    host.wait_for_log("shard 0: its normal_tail is out of range")
    assert host.process.poll() is None
    host.kill()
