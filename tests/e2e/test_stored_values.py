"""What stands in a store is input: a number that nobody gave crashes no host, costs no other task, and is found among the
dead with its bytes and the reason."""
import json
import subprocess

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


def reasons(host):
    return {row["payload"] if "payload" in row else row["id"]: row for row in dead(host)}


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
