"""What one shard's outbox has for another, by kind.  On SQLite there is no outbox: a transaction reaches every shard."""
import json
import zlib

import pytest

from hosts import wait_until
from test_redis_scripts import assemble

pytest.importorskip("redis")

SOURCE, TARGET = "quiver:{test:0}:", "quiver:{test:1}:"
KEYS = [TARGET + name for name in ("shard", "high", "normal", "low", "delayed", "control")]
KEY = next(f"key{n}" for n in range(100) if zlib.crc32(f"key{n}".encode()) % 2 == 1)  # of shard 1
ENVELOPE = "qv1\nkey:%s\nhandler:work\n\n%d"


def pack(client, value):
    return client.eval("return cmsgpack.pack(cjson.decode(ARGV[1]))", 0, json.dumps(value))


def entry(client, number, *, kind=None, marker=1):
    return pack(client, [1, number, 1, 0, ENVELOPE % ("k", marker), *([kind] if kind else [])])


@pytest.fixture
def client(redis_server):
    with redis_server.start().client() as made:
        yield made


def take(root, client, *entries):
    taken, is_full, kinds = client.eval(assemble(root, "take"), len(KEYS), *KEYS, "0.1", *entries)
    return taken, is_full, [kind.decode() for kind in kinds]


def numbers(client):
    return [int(task.split(b"\n\n")[1]) for task in client.lrange(TARGET + "normal", 0, -1)]


def test_an_entry_without_a_kind_is_a_task(root, client):
    assert take(root, client, entry(client, 5), entry(client, 6, kind="task", marker=2)) == (6, 0, [])
    assert numbers(client) == [1, 2]
    assert client.hget(TARGET + "sources", "outbox 0.1").split()[0] == b"6"
    assert take(root, client, entry(client, 5), entry(client, 6, kind="task", marker=2)) == (6, 0, []), "a repeat"
    assert numbers(client) == [1, 2]


def test_an_entry_of_an_unknown_kind_is_kept_once_and_the_rest_passes(root, client):
    some = [entry(client, 5), pack(client, [1, 6, "anything", {"a": 1}, "bytes", "outcome"]), entry(client, 7, marker=2)]
    assert take(root, client, *some) == (7, 0, ["outcome"])
    assert take(root, client, *some) == (7, 0, []), "a repeat"
    assert numbers(client) == [1, 2] and client.llen(TARGET + "kept") == 1
    assert some[1] in client.lindex(TARGET + "kept", 0)
    assert client.exists(TARGET + "dead") == 0


def test_what_was_kept_is_taken_by_the_first_that_knows_it_before_what_came_later(root, client):
    """As if this Quiver was the newer one: it finds entries that another had kept."""
    for number, kind in ((5, "task"), (6, "outcome"), (7, "task")):
        client.rpush(TARGET + "kept", client.eval("return cmsgpack.pack({ ARGV[1], ARGV[2] })", 0, "outbox 0.1",
                                                  entry(client, number, kind=kind, marker=number)))
    assert take(root, client, entry(client, 8, marker=8)) == (8, 0, [])
    assert numbers(client) == [5, 7, 8] and client.llen(TARGET + "kept") == 1


def test_so_many_are_kept_and_what_is_behind_them_waits(root, client):
    client.rpush(TARGET + "kept", *[b"?"] * 1024)
    some = [entry(client, 5), entry(client, 6, kind="outcome"), entry(client, 7, marker=2)]
    assert take(root, client, *some) == (5, 1, [])
    assert numbers(client) == [1] and client.llen(TARGET + "kept") == 1024
    client.delete(TARGET + "kept")
    assert take(root, client, *some) == (7, 0, ["outcome"])
    assert numbers(client) == [1, 2]


@pytest.mark.parametrize("bad", ["", "5", "5 x", "nan 1"])
def test_a_source_whose_number_cannot_be_read_is_named_and_takes_nothing(root, client, bad):
    """To begin again from 0 would do everything twice that is still in the outbox."""
    client.hset(TARGET + "sources", "outbox 0.1", bad)
    with pytest.raises(Exception, match="BADVALUE.*sources.*outbox 0.1"):
        take(root, client, entry(client, 5))
    assert numbers(client) == []


def test_a_host_names_what_it_keeps_and_goes_on(redis_host):
    host = redis_host.configure(shards=2, work="").start()
    host.submit([{"handler": "work", "key": "a", "payload": "1"}])
    host.wait_done(1)
    assert host.stop() == 0
    with host.redis.client() as client:
        client.rpush(SOURCE + "outbox", pack(client, [1, 5, 0, 0, "x", "outcome"]),
                     pack(client, [1, 6, 1, 0, ENVELOPE % (KEY, 7)]))
        client.hset(SOURCE + "sent", mapping={"1": 6, "born": 1})
        host.start()
        wait_until(lambda: 7 in host.starts(), "what is behind it is done")
        host.wait_for_log("event=kept-entry")
        assert "kind=outcome" in host.log()
        assert host.stop() == 0
        assert "an entry of kind outcome, from outbox 0.1, waits" in host.cli("fsck", "--json", code=1)
        assert client.llen(TARGET + "kept") == 1 and client.llen(SOURCE + "outbox") == 0
