"""quiver dump and load when something is wrong: a cut or changed dump, a load that dies, two at once."""
import base64
import collections
import contextlib
import json
import sqlite3
import subprocess

import pytest

from dumps import dead, dump_of, entry, head, lines_of, load, make_dump, name, queued, room, schedule, tasks_of
from hosts import Host, wait_until


@pytest.fixture(params=["sqlite", "redis"])
def store(request, quiver, tmp_path):
    """A configuration, and no store yet."""
    if request.param == "redis":
        made = request.getfixturevalue("redis_host")
    else:
        made = Host(quiver, quiver.parent / "test-plugins", tmp_path)
    made.configure(shards=5, work="threads = 4;")
    yield made
    made.close()


@pytest.fixture
def embedded(quiver, tmp_path):
    made = Host(quiver, quiver.parent / "test-plugins", tmp_path)
    made.configure(shards=5, work="threads = 4;")
    yield made
    made.close()


def totals(host):
    return json.loads(host.cli("status", "--json"))["totals"]


def some(count=12, keys=3):
    return [queued(i, key=f"k{i % keys}", shard=i % 8) for i in range(count)]


def by_key(items):
    found = collections.defaultdict(list)
    for item in items:
        start, _, payload = item["envelope"].partition("\n\n")
        found[start.split("\n")[1].removeprefix("key:")].append(payload)
    return dict(found)


def assert_refused(host, dump, *says):
    text = load(host, dump, code=1)
    assert "nothing was loaded" in text, text
    for word in says:
        assert word in text, text
    assert not (host.folder / "q.db").exists(), "a dump that is wrong does not even make the store"


def test_a_cut_dump_is_refused_wherever_it_is_cut(embedded):
    dump = make_dump(some(), chunk=4)
    lines = dump.splitlines(keepends=True)
    for count in range(1, len(lines)):
        assert_refused(embedded, b"".join(lines[:count]), f"cut off after line {count},")
        assert_refused(embedded, b"".join(lines[:count]) + lines[count][:7], f"cut off after line {count},")
    assert_refused(embedded, dump[:-1], "cut off")
    assert_refused(embedded, b"", "nothing to load")
    assert "Is a directory" in load(embedded, embedded.folder, code=1)
    assert "No such file" in load(embedded, embedded.folder / "nowhere", code=1)
    path = embedded.folder / "cut"
    path.write_bytes(dump[:-20])
    assert_refused(embedded, path, "cut off", "chunk 4")
    path.write_bytes(dump)
    assert load(embedded, path).startswith("12 tasks")


def test_a_flipped_bit_is_found_wherever_it_is(embedded, chance):
    dump = make_dump(some(6), chunk=3)
    places = set(chance.sample(range(len(dump)), 60)) | set(range(len(dump) - 60, len(dump)))
    for place in places:
        changed = bytearray(dump)
        changed[place] ^= 1 << chance.randrange(8)
        assert_refused(embedded, bytes(changed))
    assert load(embedded, dump).startswith("6 tasks")


def test_lines_in_another_order_missing_or_doubled_are_found(embedded):
    lines = make_dump(some(), chunk=4).splitlines(keepends=True)
    for i in range(len(lines) - 1):
        assert_refused(embedded, b"".join([*lines[:i], lines[i + 1], lines[i], *lines[i + 2:]]))
        assert_refused(embedded, b"".join([*lines[:i], *lines[i + 1:]]))
        assert_refused(embedded, b"".join([*lines[:i], lines[i], *lines[i:]]))
    chunks = [lines[:1], lines[1:6], lines[6:11], lines[11:]]
    assert_refused(embedded, b"".join(sum([chunks[0], chunks[2], chunks[1], chunks[3]], [])), "line 6")
    assert_refused(embedded, b"".join(lines) + b"\n", "follows the end mark")


def test_what_a_dump_says_has_a_range(embedded):
    """The checksum is right: whoever wrote this can count, but means no good."""
    for item, says in [({**queued(1), "lane": "fast"}, "lane"), ({**queued(1), "shard": 8}, "shard"),
                       ({**queued(1), "shard": -1}, "shard"), ({**queued(1), "state": "parked"}, "state"),
                       ({**queued(1), "envelope": ""}, "envelope"), ({**queued(1), "note": "attempts:9"}, "note"),
                       ({**queued(1), "state": "delayed", "due_in_ms": 1 << 62}, "time"),
                       ({**queued(1), "state": "delayed", "due_in_ms": 1.5}, "time"),
                       ({**dead(1), "id": ""}, "id"), ({**dead(1), "at_ms": -5}, "time"), ({"held": "a\nb"}, "key"),
                       ({**dead(1), "handler": "h" * 65}, "handler"), ({"sing": 1}, '"sing" is neither'), ([1], "JSON"),
                       (schedule("a", version=0), "version"), (schedule("9"), "name"), (schedule("a" * 41), "name"),
                       (schedule("a", next_ms=1500), "seconds"), (schedule("a", next_ms=0), "seconds"),
                       (schedule("a", fired=-1), "range"), (schedule("a", is_paused=1), "is_paused"),
                       (schedule("a", definition="x" * 4097), "4096"), (schedule("a", definition=1), "definition"),
                       (room("a\nb"), "name"), (room("a", 0), "first"), (room("a", 1 << 53), "range"),
                       (room("a", age_ms=0), "keeps"), (room("a", entries_max=10 ** 8), "range"),
                       (entry("", 1), "name"), (entry("a", 0), "range"), (entry("a", 1, at_ms=-1), "range"),
                       (entry("a", 1, 7), "bytes"), (name(""), "key"), (name("a\nb"), "key"), (name("a", key="b\n"), "key"),
                       (name("a", shard=8), "range"), (name("a", left_ms=0), "time"), (name("a", left_ms=1 << 53), "range"),
                       (name("a", id="nothing"), "id"), (name("a", digest="0f"), "digest"), (name("a", digest="xy" * 32), "digest"),
                       (name("a", id=5), "id")]:
        assert_refused(embedded, make_dump([queued(0), item, queued(2)]), "line 3", says)
    assert_refused(embedded, make_dump(some(300), chunk=300), "more than 256 lines")
    assert_refused(embedded, make_dump([queued(i, payload="x" * 600000) for i in range(3)]), "line 4", "bytes")
    assert_refused(embedded, make_dump(some(), first=head(shards=0)), "shards")
    assert_refused(embedded, make_dump(some(), first=head(name="../../etc")), "name")


def test_another_format_is_called_by_its_number(embedded):
    assert_refused(embedded, make_dump(some(), first=head(version=1)), "dump format 1", "reads format 2")
    assert_refused(embedded, make_dump(some(), first=head(version=3)), "dump format 3", "newer")
    assert_refused(embedded, b'{"quiver":"dump","version":1,"app":"test","shards":8}\n', "dump format 1")


def test_a_dump_that_is_loaded_twice_is_loaded_once(store):
    items = some(700, keys=20)
    dump = make_dump(items)
    assert load(store, dump).startswith("700 tasks")
    assert load(store, dump).startswith("0 tasks; an earlier load had put in 700")
    assert json.loads(load(store, dump, "--json")) == {"name": json.loads(dump.splitlines()[0])["name"], "tasks": 700,
                                                       "loaded": 0, "were_there": 700, "idempotency_keys": 0, "schedules": 0, "rooms": 0,
                                                       "left_out": 0, "chunks": 3, "shards": 5}
    assert tasks_of(store) == by_key(items)
    assert "sound" in store.cli("fsck") and "share" not in store.cli("fsck")


def stored(host):
    """How many tasks, as an independent reader sees it."""
    if not hasattr(host, "redis"):
        return host.sum("submitted") if (host.folder / "q.db").exists() and host.rows("sqlite_schema") else 0
    with host.redis.client() as client:
        return sum(client.llen(f"quiver:{{test:{i}}}:normal") for i in range(5))


def test_a_load_that_was_killed_is_repeated_without_loss_or_double(store, chance):
    items = some(30000, keys=100)
    path = store.folder / "dump"
    path.write_bytes(make_dump(items, chunk=20))
    was_killed = 0
    for _ in range(4):
        before = stored(store)
        process = subprocess.Popen([store.quiver, "load", "-c", store.config, path], stdout=subprocess.PIPE)
        more = chance.randrange(1, 3000)
        wait_until(lambda: process.poll() is not None or stored(store) > before + more, "it has loaded some")
        process.kill()
        process.communicate()
        was_killed += 0 < stored(store) < len(items)
    assert was_killed
    load(store, path)
    assert tasks_of(store) == by_key(items)
    assert "sound" in store.cli("fsck")


def test_a_load_into_a_full_redis_goes_on_when_there_is_room(redis_host):
    redis_host.configure(shards=5, work="")
    items = [queued(i, key=f"k{i % 50}", payload=f"{i} {'x' * 300}") for i in range(20000)]
    path = redis_host.folder / "dump"
    path.write_bytes(make_dump(items))
    with redis_host.redis.client() as client:
        client.config_set("maxmemory", client.info("memory")["used_memory"] + (3 << 20))
        done = subprocess.run([redis_host.quiver, "load", "-c", redis_host.config, path], capture_output=True, timeout=120)
        assert done.returncode in (1, 3) and b"run the same load again to go on" in done.stderr, done.stderr
        assert 0 < stored(redis_host) < len(items)
        client.config_set("maxmemory", 0)
    before = stored(redis_host)
    assert f"{len(items) - before} tasks; an earlier load had put in {before} of" in load(redis_host, path)
    assert tasks_of(redis_host) == by_key(items)


def both_at_once(store, paths):
    words = [[store.quiver, "load", "--merge", "-c", store.config, path] for path in paths]
    processes = [subprocess.Popen(w, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for w in words]
    for process in processes:
        said = process.communicate(timeout=120)
        assert process.returncode == 0, said


def test_two_dumps_are_loaded_at_once(store):
    paths, expected = [], {}
    for name in "ab":
        items = [queued(f"{name}{i}", key=f"{name}{i % 50}", shard=i % 8) for i in range(3000)]
        paths.append(store.folder / name)
        paths[-1].write_bytes(make_dump(items, chunk=50))
        expected |= by_key(items)
    both_at_once(store, paths)
    assert tasks_of(store) == expected


def test_one_dump_is_loaded_by_two_at_once(store):
    items = some(6000, keys=50)
    path = store.folder / "dump"
    path.write_bytes(make_dump(items, chunk=50))
    both_at_once(store, [path, path, path])
    assert tasks_of(store) == by_key(items)


def test_a_store_that_is_not_empty_wants_to_be_asked(store):
    load(store, make_dump([queued(i, key="old") for i in range(3)]))
    more = make_dump([queued(i, key="new") for i in range(2)])
    text = load(store, more, code=1)
    assert "not empty: 3 tasks" in text and "--merge" in text
    assert tasks_of(store) == {"old": ["0", "1", "2"]}
    assert load(store, more, "--merge").startswith("2 tasks")
    assert tasks_of(store) == {"old": ["0", "1", "2"], "new": ["0", "1"]}


def test_the_store_that_load_makes_is_one_that_hosts_run(store):
    items = some(50)
    load(store, make_dump(items))
    store.start()
    wait_until(lambda: totals(store)["done"] == 50, "all are done")
    for key, payloads in by_key(items).items():
        assert store.starts(key) == list(map(int, payloads))
    assert store.stop() == 0


def test_hosts_run_while_a_dump_is_loaded(store):
    """A key that is held there is held here before its tasks come."""
    items = [item for i in range(100) for item in ({"held": f"held{i}", "reason": "by hand"},
                                                   queued(2 * i, key=f"held{i}"), queued(2 * i + 1, key=f"free{i % 9}"))]
    store.start()
    wait_until(lambda: totals(store)["owned"] == 5, "it works on every shard")
    assert load(store, make_dump(items)).startswith("200 tasks")
    wait_until(lambda: totals(store)["done"] == 100, "all but those of held keys are done")
    assert not [e for e in store.ledger() if e.key.startswith("held")]
    store.cli("key", "unhold", "held7")
    wait_until(lambda: store.starts("held7") == [14], "the held one comes when it is let go")
    assert store.stop() == 0
    assert "sound" in store.cli("fsck")


def test_a_repeated_load_holds_no_key_again(store):
    dump = make_dump([{"desired": "pause.work", "value": "asked"}, {"held": "k", "reason": "x"}, queued(1, key="k")])
    load(store, dump)
    store.cli("key", "unhold", "k")
    store.cli("resume", "work")
    load(store, dump)
    done = subprocess.run([store.quiver, "dump", "-c", store.config], capture_output=True, check=True, timeout=60)
    assert b'"held"' not in done.stdout and b'"desired"' not in done.stdout


SCHEDULES = [schedule("nightly", "k1", is_paused=True, last_ms=1763256000000, fired=7, skipped=2),
             {key: value for key, value in schedule("once", fired=1).items() if key != "next_ms"},
             schedule("strange", definition="no JSON"), schedule("weekly", "k2", version=1 << 40)]


@pytest.fixture
def other(quiver, tmp_path):
    """Another store of another number of shards, always SQLite."""
    (tmp_path / "other").mkdir()
    return Host(quiver, quiver.parent / "test-plugins", tmp_path / "other").configure(shards=300, work="")


def test_schedules_survive_and_none_is_loaded_twice(store, other):
    first = make_dump([queued(1), *SCHEDULES])
    assert load(store, first).startswith("1 tasks, 4 schedules, dump")
    there = dump_of(store)
    assert lines_of(there, "schedule") == SCHEDULES
    assert "4 schedules" in load(other, there)
    back = dump_of(other)
    assert lines_of(back, "schedule") == SCHEDULES
    assert "sound" in store.cli("fsck") and "sound" in other.cli("fsck")
    # Each stands where the commands and its owner look for it, and says what was written.
    said = json.loads(other.cli("schedule", "show", "nightly", "--json"))
    assert said["state"] == "paused" and said["fired"] == 7, said
    other.cli("schedule", "resume", "nightly")
    other.cli("schedule", "delete", "weekly")
    changed = lines_of(dump_of(other), "schedule")
    assert [line["schedule"] for line in changed] == ["nightly", "once", "strange"] and not changed[0]["is_paused"]
    # The same dump again, or the same schedules under another dump's name: what is there stays as it is.
    assert "schedules" not in load(other, there)
    assert "weekly: a newer version is there or was deleted" in load(other, first, "--merge")
    assert lines_of(dump_of(other), "schedule") == changed
    assert json.loads(load(store, back, "--merge", "--json"))["schedules"] == 0
    assert lines_of(dump_of(store), "schedule") == SCHEDULES
    # One name never stands in two shards.
    assert "another key" in load(other, make_dump([schedule("nightly", "k7", version=1 << 41)]), "--merge")
    assert lines_of(dump_of(other), "schedule") == changed


def rooms_of(dump):
    """The lines of each room, in order."""
    found = collections.defaultdict(list)
    for line in map(json.loads, dump.splitlines()):
        if "room" in line or "entry" in line:
            found[line.get("room", line.get("entry"))].append(line)
    return dict(found)


def forget_loads(host):
    """As after 64 other dumps: no shard knows this one."""
    if hasattr(host, "redis"):
        with host.redis.client() as client:
            client.delete(*(f"quiver:{{test:{i}}}:sources" for i in range(5)))
    else:
        with contextlib.closing(sqlite3.connect(host.folder / "q.db")) as db, db:
            db.execute("DELETE FROM import")


def test_rooms_keep_their_numbers_and_no_entry_is_loaded_twice(store, other):
    long = [entry("long", i, "x" * 5000 if i % 100 else "y" * 300000) for i in range(7, 707)]
    items = [room("chat", 40), entry("chat", 40, "a"), entry("chat", 41, "bytes_base64"), room("empty", 9),
             room("k\u00e4se: {x}", age_ms=10 ** 11), entry("k\u00e4se: {x}", 1), room("long", 7), *long]
    items[2]["bytes_base64"] = base64.b64encode(b"\xff\0").decode()
    del items[2]["bytes"]
    first = make_dump(items, chunk=100)
    expected = rooms_of(first)
    assert load(store, first).startswith("0 tasks, 4 rooms, dump")
    there = dump_of(store)
    assert rooms_of(there) == expected
    assert "4 rooms" in load(other, there)
    back = dump_of(other)
    assert rooms_of(back) == expected
    assert "sound" in store.cli("fsck") and "sound" in other.cli("fsck")
    assert "rooms" not in load(store, first)
    forget_loads(store)
    assert "left as it is" not in load(store, first)  # the rooms themselves know what they have of it
    assert rooms_of(dump_of(store)) == expected
    # Other entries under the same names are not mixed in.
    for start in (7, 42):
        text = load(other, make_dump([room("chat", start), entry("chat", start), room("new", 3)]), "--merge")
        assert text.count("room chat: it is there already, with other entries; it is left as it is") == 1, text
    assert rooms_of(dump_of(other)) == {**expected, "new": [room("new", 3)]}
    assert "sound" in other.cli("fsck")


def test_a_submit_of_before_the_dump_is_a_repeat_after_the_load(store, other):
    """Between drivers and numbers of shards; also of a task without a key, whose id and name may be of different shards."""
    made = {}
    load(store, make_dump([]))
    for i in range(12):
        words = ("work", "--idempotency-key", f"order {i}", *(() if i % 3 == 0 else ("--key", f"k{i % 2}")), str(i))
        made[words] = store.cli("submit", *words).strip()
    first = dump_of(store)
    assert len(lines_of(first, "idempotency")) == 12
    assert load(other, first).startswith("12 tasks, 12 idempotency keys, dump")
    assert "sound" in other.cli("fsck")
    again = {words: other.cli("submit", *words).strip() for words in made}
    assert {id.rpartition("-")[0] for id in again.values()} == {id.rpartition("-")[0] for id in made.values()}
    assert totals(other)["queued"] == 12
    for words, id in again.items():
        assert f'"id":"{id}"' in other.cli("task", id, "--json").replace(" ", ""), (words, "the id that a repeat gets is its task's")
    # And back: with what was left, and no more.
    back = dump_of(other)
    left = [{line["idempotency"]: line["left_ms"] for line in lines_of(dump, "idempotency")} for dump in (first, back)]
    assert left[0].keys() == left[1].keys() and all(0 < left[1][name] <= left[0][name] for name in left[0])
    # Loaded once more, also by shards that do not know the dump any more, they are what they were.
    assert "idempotency" not in load(other, first)
    others = [line for line in lines_of(first, "idempotency")]
    others[0]["id"] = "somebody-else-0"
    text = load(other, make_dump(others, first=head(shards=json.loads(first.splitlines()[0])["shards"])), "--merge")
    assert "1 idempotency key names other tasks here; it is left as it is" in text, text
    assert {words: other.cli("submit", *words).strip() for words in made} == again
    assert "sound" in other.cli("fsck")


BYTES = [b"\0", b"a\0b\nc\r\n\n\n", bytes(range(256)), "käse\u2028".encode(), b"\xff\xfe", b"{\"end\":true}\n", b"",
         b"x" * 70000]


def test_every_byte_of_a_payload_survives(store, quiver, tmp_path):
    items = []
    for i, payload in enumerate(BYTES):
        envelope = f"qv1\nkey:k\nhandler:work\nid:b{i}-0\n\n".encode() + payload
        items.append({"state": "queued", "shard": 0, "lane": "high", "note": "qn1\nattempts:2\n\n\x01\x02",
                      "envelope_base64": base64.b64encode(envelope).decode()})
    load(store, make_dump(items, first=head(shards=1)))
    (tmp_path / "other").mkdir()
    other = Host(quiver, quiver.parent / "test-plugins", tmp_path / "other").configure(shards=3, work="")
    for where in (store, other):
        done = subprocess.run([quiver, "dump", "-c", where.config], capture_output=True, check=True, timeout=60)
        found = []
        for line in map(json.loads, done.stdout.splitlines()):
            if "state" in line:
                coded = line.get("envelope_base64")
                whole = base64.b64decode(coded) if coded else line["envelope"].encode()
                found.append(whole.partition(b"\n\n")[2])
                assert line["note"] == "qn1\nattempts:2\n\n\x01\x02" and line["lane"] == "high"
        assert found == BYTES
        if where is store:
            load(other, done.stdout)


def test_a_dump_says_what_it_holds(store):
    load(store, make_dump(some(600) + [dead(i, key=f"d{i}") for i in range(5)]))
    done = subprocess.run([store.quiver, "dump", "--json", "-c", store.config], capture_output=True, timeout=60)
    said = json.loads(done.stderr)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert said == {"name": lines[0]["name"], "tasks": 605, "idempotency_keys": 0, "schedules": 0, "rooms": 0, "chunks": 3,
                    "shards": 5, "left_out": 0}
    assert lines[-1]["tasks"] == 605 and lines[-1]["chunks"] == 3
    again = subprocess.run([store.quiver, "dump", "-c", store.config], capture_output=True, timeout=60).stdout
    assert json.loads(again.splitlines()[0])["name"] != lines[0]["name"]
    # What it wrote is what this file's own writer would have written.
    items = [line for line in lines if "state" in line]
    texts = [json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in items]
    assert all(text.encode() + b"\n" in done.stdout for text in texts)


def test_equal_ids_are_mentioned(store):
    """Two dumps of the same tasks have two names: nothing can know that they are the same."""
    items = some(30, keys=7)
    load(store, make_dump(items))
    assert store.cli("fsck").strip().endswith("30 tasks: sound")
    load(store, make_dump(items[:20]), "--merge")
    text = store.cli("fsck")
    assert "50 tasks: sound" in text and "20 tasks have the id of another" in text
    assert json.loads(store.cli("fsck", "--json"))["equal_ids"] == 20


def test_tasks_without_an_id_get_one_of_their_own(store):
    """Their names are made of their places, and many shards have the same places."""
    items = [{"state": "queued", "shard": i % 8, "lane": "normal",
              "envelope": f"qv1\nkey:\nhandler:work\nid:normal.{1 + i // 8}-{i % 8}\n\n{i}"} for i in range(80)]
    load(store, make_dump(items))
    assert store.cli("fsck").strip().endswith("80 tasks: sound")


def test_whatever_a_store_holds_its_dump_can_be_loaded(redis_host, quiver, tmp_path):
    """Pushed by anybody: neither a host nor a dump may choke on it."""
    redis_host.configure(shards=1, work="")
    load(redis_host, make_dump([queued(1)]))
    pushed = [b"garbage\0\xff", b"qv1\nkey:k\nhandler:work\nid:" + b"x" * 5000 + b"\n\n1", b"qv1\nkey:k\nid:\x01-0\n\n",
              b"qv1\nkey:\nhandler:work\nid:" + b"y" * 62 + b"-0\n\n2", b"qv1\nkey:\nhandler:nobody\n\n3", b"\xff" * 100000]
    with redis_host.redis.client() as client:
        client.rpush("quiver:{test:0}:normal", *pushed)
        redis_host.start()
        wait_until(lambda: [totals(redis_host)[state] for state in ("dead", "done")] == [4, 2],
                   "what cannot be run is dead, what can be is done")
        assert redis_host.stop() == 0
        client.rpush("quiver:{test:0}:normal", *pushed, b"")
        redis_host.cli("key", "hold", "fine")
        client.hset("quiver:{test:0}:keys", b"a\x01b", client.hget("quiver:{test:0}:keys", "fine"))
        client.zadd("quiver:{test:0}:due", {b"a\x01b": float("inf")})
        client.zadd("quiver:{test:0}:delayed", {"00000000000000ff": 1e300})
        client.eval("redis.call('HSET', KEYS[1], '00000000000000ff', cmsgpack.pack({ 1, ARGV[1], '' }))", 1,
                    "quiver:{test:0}:later", "qv1\nkey:k\nhandler:work\n\nlate")
    done = subprocess.run([quiver, "dump", "--json", "-c", redis_host.config], capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert b"is empty" in done.stderr and b"no key" in done.stderr
    (tmp_path / "other").mkdir()
    other = Host(quiver, quiver.parent / "test-plugins", tmp_path / "other").configure(shards=300, work="")
    count = json.loads(done.stderr.splitlines()[-1])["tasks"]
    assert load(other, done.stdout).startswith(f"{count} tasks")
    found = totals(other)
    assert count == 12 == found["queued"] + found["delayed"] + found["dead"]


def test_a_dump_that_cannot_be_written_whole_says_so(store):
    load(store, make_dump(some(2000)))
    with open("/dev/full", "wb") as full:
        done = subprocess.run([store.quiver, "dump", "-c", store.config], stdout=full, stderr=subprocess.PIPE,
                              timeout=60)
    assert done.returncode == 1 and b"could not be written whole" in done.stderr


def test_a_dump_that_a_host_disturbed_has_no_end(store):
    """It waits for whoever reads it; meanwhile a host comes, works, and goes."""
    load(store, make_dump(some(3000, keys=50)))
    process = subprocess.Popen([store.quiver, "dump", "-c", store.config], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, bufsize=0)
    first = process.stdout.readline()
    assert b'"dump"' in first
    store.start()
    wait_until(lambda: store.sum("done") > 0, "it works")
    assert store.stop() == 0
    rest, said = process.communicate(timeout=60)
    assert process.returncode == 1 and b"meanwhile" in said and b'"end"' not in rest
    assert "cut off" in load(store, first + rest, code=1)


def test_a_record_that_is_not_ours_is_named_and_nothing_is_written(redis_host):
    redis_host.configure(shards=1, work="")
    load(redis_host, make_dump([queued(1)]))
    with redis_host.redis.client() as client:
        name = client.hkeys("quiver:{test:0}:sources")[0]
        for key, field, value in [("sources", name, "nan 1"), ("sources", name, "1e400 2"), ("sources", name, "7"),
                                  ("shard", "normal", "nan"), ("shard", "last_dead", "x")]:
            before = client.hget(f"quiver:{{test:0}}:{key}", field)
            client.hset(f"quiver:{{test:0}}:{key}", field, value)
            dump = make_dump([queued(2), dead(3)], first=head(name=name.decode() if key == "sources" else None))
            assert f"quiver:{{test:0}}:{key}" in load(redis_host, dump, "--merge", code=3)
            assert client.llen("quiver:{test:0}:normal") == 1 and not client.exists("quiver:{test:0}:dead")
            if before is None:
                client.hdel(f"quiver:{{test:0}}:{key}", field)
            else:
                client.hset(f"quiver:{{test:0}}:{key}", field, before)
    assert load(redis_host, make_dump([queued(2)]), "--merge").startswith("1 tasks")
