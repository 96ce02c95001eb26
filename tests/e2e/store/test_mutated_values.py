"""A store in which somebody has written anything anywhere: no host crashes of it, and no other task is lost.

A populated app is mutated at random, a host works on it, it is repaired as far as that goes, and a host works on it
again.  Whatever task stood there in its own bytes after the mutation is then done, or its bytes still stand in the store.
The seed is printed; QUIVER_TEST_SEED repeats it."""
import os
import re
import sqlite3
import subprocess
import time

import pytest

from hosts import wait_until

redis = pytest.importorskip("redis")

IS_LONG = "QUIVER_TEST_LONG" in os.environ
ROUNDS = int(os.environ.get("QUIVER_TEST_ROUNDS", 40 if IS_LONG else 4))
LANE = 1 << 48
MARK = re.compile(rb"\b(\d+) mark")
NUMBERS = ["0", "1", "-1", "2", "255", "nan", "inf", "-inf", "1e308", "1.5", "0x10", " 7", "9" * 20, "9007199254740993",
           str(9 * LANE + 1), str(3 * LANE), str(LANE), str(LANE + 77), str(2 * LANE + 1), "18446744073709551615"]
TEXTS = ["", "abc", "?", "\0\xff", "x" * 5000, "qv1\n", "qv1\nkey:k1\nhandler:work\n\n", "qn1\nattempts:nan\n\n",
         "qn1\nevents:5\nevent:x\n", "held 5 zz", "free 0 ", "held nan ", "1 2 3", "0 -1 x", "parked", "parked 1 1 1 why",
         "held 99999999999999999999 1 1 x", "waiting 1 0 1 ", "281474976710657 99999999", "k1\0ffffffffffffffff", "k1\0zz",
         "k1\x000001000000000009"]


def tasks(first):
    """Every state gets some: done, retried, dead, delayed, with results, with follow-ups, in flight for long."""
    words = ["", "us:2000", "retry:2 later:50", "reject", "result", "submit:k3", "retry:9 later:60000", "wait:never"]
    for n in range(first, first + 64):
        task = {"handler": "work", "key": f"k{n % 9}", "payload": f"{n} {words[n % 8]} {n} mark"}
        if n % 8 == 5:
            task["delay"] = "1h"
        yield task


def populate(host):
    host.start()
    host.submit(tasks(1000))
    wait_until(lambda: len(host.ledger()) > 30, "some have begun")
    host.cli("key", "hold", "k2")
    host.submit(tasks(2000))
    host.kill()


def check_alive(host):
    assert host.process.poll() is None, f"it ended with {host.process.poll()}:\n{host.log()[-4000:]}"


def work(host):
    """A host works until nothing more happens."""
    host.start()
    quiet, seen = 0, -1
    while quiet < 8:
        check_alive(host)
        now = (len(host.ledger()), host.log().count("event=acquired"))
        quiet, seen = (quiet + 1, seen) if now == seen else (0, now)
        time.sleep(0.1)
    for words in ("status",), ("dead", "list", "--limit", "500"), ("key", "k1"):
        done = subprocess.run([host.quiver, *words, "-c", host.config], capture_output=True, timeout=60)
        assert done.returncode >= 0, done
    check_alive(host)
    host.kill()


def repair(host):
    """As far as it goes; what takes a person is said."""
    def is_tried():
        done = subprocess.run([host.quiver, "fsck", "--repair", "-c", host.config], capture_output=True, text=True)
        assert done.returncode >= 0, done
        return "stop all hosts" not in done.stderr

    wait_until(is_tried, "the host is gone")


def check_kept(host, there, still_there):
    """What stood there and nobody has changed is done or stands there still.  Of dead ones, too."""
    ended = {e.number for e in host.ledger() if e.what == "end" and e.outcome == 0}
    lost = there - ended - still_there()
    assert not lost, f"lost: {sorted(lost)}"


# --- on Redis -------------------------------------------------------------------------------------------------------------


def values(client, key):
    kind = client.type(key)
    if kind == b"hash":
        return [part for pair in client.hgetall(key).items() for part in pair]
    if kind == b"list":
        return client.lrange(key, 0, -1)
    if kind == b"zset":
        return client.zrange(key, 0, -1)
    return [client.get(key)] if kind == b"string" else []


def marks(client):
    found = set()
    for key in client.keys("quiver:*"):
        for value in values(client, key):
            found.update(int(number) for number in MARK.findall(value))
    return found


def mutate_hash(client, key, chance):
    field = chance.choice(sorted(client.hkeys(key)))
    value = chance.choice(NUMBERS + TEXTS)
    what = chance.randrange(4)
    if what == 0:  # the same under another name
        value = client.hget(key, field)
    if what <= 1 or key.endswith((b":flight", b":parked")):  # tasks stay; all else may be anything
        field = chance.choice(NUMBERS + TEXTS)
    elif field in (b"high", b"normal", b"low"):  # a lower number that is one cannot be told from the right one
        value = chance.choice([n for n in NUMBERS if not n.isdigit() or int(n) > 255] + TEXTS)
    client.hset(key, field, value)
    return field, value


def mutate_zset(client, key, chance):
    score = chance.choice([0, 1, -1, 1.5, float("inf"), float("-inf"), 1e300, 2 ** 53, time.time() * 1000])
    members = client.zrange(key, 0, -1)
    member = chance.choice([chance.choice(members), chance.choice(NUMBERS), chance.choice(TEXTS)])
    client.zadd(key, {member: score})
    return member, score


def mutate_list(client, key, chance):
    push = chance.choice([client.rpush, client.lpush])
    value = chance.choice(NUMBERS + TEXTS)
    push(key, value)
    return push.__name__, value


def mutate(client, chance):
    """Returns what was done, for whoever reads a failure."""
    key = chance.choice([k for k in sorted(client.keys("quiver:{test:[0-9]*")) if b"coord" not in k])
    kind = client.type(key)
    if kind == b"string" or (kind == b"zset" and chance.randrange(20) == 0):
        value = chance.choice(NUMBERS + TEXTS)
        client.set(key, value)
        return key, value
    return key, *{b"hash": mutate_hash, b"zset": mutate_zset, b"list": mutate_list}[kind](client, key, chance)


def test_no_value_in_redis_crashes_a_host_or_loses_another_task(redis_host, chance):
    host = redis_host.configure(shards=2, work="threads = 4;")
    with host.redis.client() as client:
        for number in range(ROUNDS):
            client.flushall()
            (host.folder / "ledger").unlink(missing_ok=True)
            populate(host)
            mutated = [mutate(client, chance) for _ in range(chance.choice([1, 2, 8, 30]))]
            print(f"round {number}:", *mutated, sep="\n  ")
            there = marks(client)
            work(host)
            check_kept(host, there, lambda: marks(client))
            repair(host)
            check_kept(host, there, lambda: marks(client))
            work(host)
            check_kept(host, there, lambda: marks(client))


# --- in a file ------------------------------------------------------------------------------------------------------------


# A lane's numbers may be too large; a lower one that is one cannot be told from the right one.
TABLES = {"log": ("note",), "side": ("seq", "note", "key"), "delayed": ("due", "lane", "note"),
          "dead": ("lane", "at", "reason", "note", "task_id"), "key": ("state", "due", "since", "tasks", "reason"),
          "result": ("at", "until", "consumer", "note"), "uniq": ("until", "id"), "control": ("verb", "key", "seq", "call"),
          "shard": ("held", "epoch", "until", "ttl", "call", "last", "returned", "controls", "keys", "delayed", "parked",
                    "normal_queued", "in_flight", "last_dead", "last_key", "holder", "want_firm", "want_epoch",
                    "normal_tail")}


def file_marks(host):
    found = set()
    with sqlite3.connect(host.folder / "q.db", timeout=30) as db:
        for table in ("log", "side", "delayed", "dead", "result"):
            column = "data" if table == "result" else "task"
            for (task,) in db.execute(f"SELECT {column} FROM {table}"):
                found.update(int(number) for number in MARK.findall(task if isinstance(task, bytes) else str(task).encode()))
    return found


def mutate_file(db, chance):
    table = chance.choice([t for t in TABLES if db.execute(f"SELECT count(*) FROM {t}").fetchone()[0]])
    column = chance.choice(TABLES[table])
    value = chance.choice([0, 1, -1, 3, 99, 1 << 48, 9 << 48 | 1, 1 << 52, (1 << 63) - 1, -(1 << 63), "abc", b"\xff\0", "x" * 5000,
                           b"\xff" * 8192])
    if column == "normal_tail":
        value = chance.choice([1 << 48, 1 << 60, -1, "abc"])
    key = "key, seq" if table == "side" else "shard, scope" if table == "uniq" else "rowid"
    row = chance.choice(db.execute(f"SELECT {key} FROM {table}").fetchall())
    where = " AND ".join(f"{name.strip()} = ?" for name in key.split(","))
    db.execute(f"UPDATE OR IGNORE {table} SET {column} = ? WHERE {where}", (value, *row))
    return f"{table}.{column}"


def test_no_row_of_a_file_crashes_a_host_or_loses_another_task(host, chance):
    host.configure(shards=2, work="threads = 4;")
    for number in range(ROUNDS):
        for file in host.folder.glob("q.db*"):
            if file.is_file():
                file.unlink()
        (host.folder / "ledger").unlink(missing_ok=True)
        populate(host)
        with sqlite3.connect(host.folder / "q.db", timeout=30) as db:
            mutated = [mutate_file(db, chance) for _ in range(chance.choice([1, 2, 8, 30]))]
        print(f"round {number}: {' '.join(mutated)}")
        there = file_marks(host)
        work(host)
        check_kept(host, there, lambda: file_marks(host))
        repair(host)
        check_kept(host, there, lambda: file_marks(host))
        work(host)
        check_kept(host, there, lambda: file_marks(host))
