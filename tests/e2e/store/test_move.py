"""quiver dump and load: from one store to another, of another kind and with other shards."""
import collections
import json
import subprocess

import pytest

from hosts import Host, check_ledger, wait_until

redis = pytest.importorskip("redis")


@pytest.fixture
def embedded(quiver, tmp_path):
    folder = tmp_path / "embedded"
    folder.mkdir()
    made = Host(quiver, quiver.parent / "test-plugins", folder)
    yield made
    made.close()


def totals(host):
    return json.loads(host.cli("status", "--json"))["totals"]


def fill(host):
    """Tasks in every state, and then no host.  Returns what each key still has to see, in order."""
    gate = host.folder / "gate"
    host.start()
    expected = collections.defaultdict(list)
    host.submit([{"handler": "work", "key": "bad", "payload": "900 reject"},
                 {"handler": "work", "key": "again", "payload": "901 later:3600000 retry:1"}])
    wait_until(lambda: totals(host)["dead"] == 1 and totals(host)["parked"] == 1, "one is dead, one parked")
    host.submit([{"handler": "work", "key": "later", "payload": "902", "delay": "1h"}])
    host.cli("key", "hold", "k3")
    tasks = []
    for number in range(200):
        key = f"k{number % 7}"
        tasks.append({"handler": "work", "key": key, "payload": f"{number} wait:{gate}"})
        expected[key].append(number)
    host.submit(tasks)
    wait_until(lambda: 0 in host.starts() or len(host.starts()) > 3, "some wait at the gate")
    host.kill()
    expected["again"].append(901)
    gate.touch()
    return expected


def dump(host):
    """When the killed host's leases are over."""
    words = [host.quiver, "dump", "-c", host.config]
    return wait_until(lambda: subprocess.run(words, capture_output=True, text=True, timeout=60).stdout, "it is idle")


@pytest.mark.parametrize("direction", ["to-redis", "to-sqlite"])
def test_all_tasks_move_in_order(embedded, redis_host, direction):
    embedded.configure(shards=8, work="threads = 4;")
    redis_host.configure(shards=5, work="threads = 4;")
    old, new = (embedded, redis_host) if direction == "to-redis" else (redis_host, embedded)
    new_shards = 5 if new is redis_host else 8
    expected = fill(old)
    new.start()
    wait_until(lambda: totals(new)["owned"] == new_shards, "it works on every shard")
    assert new.cli("dump", code=1) == ""
    assert new.stop() == 0

    dumped = dump(old)
    (new.folder / "ledger").unlink(missing_ok=True)
    assert new.cli("load", text=dumped).startswith("203 tasks")
    assert "sound" in new.cli("fsck")

    new.start()
    count = sum(len(numbers) for key, numbers in expected.items() if key != "k3")
    wait_until(lambda: ended(new) == count, "all but the held key's are done")
    assert not [e for e in new.ledger() if e.key == "k3"]
    new.cli("key", "unhold", "k3")
    wait_until(lambda: ended(new) == count + len(expected["k3"]), "the held key's too")
    dead = json.loads(new.cli("dead", "list", "--json").splitlines()[0])
    assert dead["reason"] == "rejected" and "900" in dead["payload"]
    assert new.stop() == 0
    assert totals(new)["delayed"] == 1
    check_ledger(new.ledger(), expected)


def ended(host):
    return sum(1 for e in host.ledger() if e.what == "end" and e.outcome == 0)
