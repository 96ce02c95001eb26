"""quiver dump and load of what waits for a time or for a limit: schedules, delayed, debounced, merged and limited tasks."""
import json

import pytest

from dumps import dump_of, lines_of, load
from hosts import Host, wait_until

LIMITS = 'limits = { slots = { concurrency = 1; }; };\n'
HANDLERS = {"work": "threads = 2;", "few": 'threads = 2; limited_by = ( "slots" );'}


def configured(host, shards):
    return host.configure(shards=shards, change=lambda text: LIMITS + text, **HANDLERS)


@pytest.fixture
def embedded(quiver, tmp_path):
    (tmp_path / "embedded").mkdir()
    made = Host(quiver, quiver.parent / "test-plugins", tmp_path / "embedded")
    yield made
    made.close()


@pytest.fixture(params=["to Redis", "to SQLite"])
def stores(request, embedded, redis_host):
    """From one driver to another, with another number of shards."""
    pair = (embedded, redis_host) if request.param == "to Redis" else (redis_host, embedded)
    return configured(pair[0], 5), configured(pair[1], 11)


def totals(host):
    return json.loads(host.cli("status", "--json"))["totals"]


def fill(host, gate):
    """One runs and never ends; behind it waits something of every kind."""
    host.start()
    host.submit([{"handler": "few", "key": "first", "payload": f"1 wait:{gate}"}])
    host.wait_started(1)
    host.submit([{"handler": "few", "key": f"f{n % 50}", "payload": str(n)} for n in range(100, 200)])
    host.submit([{"handler": "work", "key": "bounce", "payload": str(n), "merge": True, "debounce": "1h"} for n in range(2, 7)])
    host.cli("submit", "work", "--key", "late", "--delay", "1h", "7")
    host.cli("schedule", "set", "yearly", "--cron", "0 3 1 1 *", "--zone", "Europe/Berlin", "--handler", "work", "8")
    host.cli("schedule", "set", "paused", "--every", "90s", "--handler", "work", "9")
    host.cli("schedule", "pause", "paused")
    host.cli("schedule", "run", "yearly")
    wait_until(lambda: 8 in host.starts(), "the schedule was run by hand")
    wait_until(lambda: totals(host)["merged"] == 4 or totals(host)["parked"] >= 5, "the debounced ones wait")
    wait_until(lambda: "limit slots" in host.cli("key", "f7"), "the others wait for the limit")
    host.stop()


def payloads(dump):
    return sorted(item["envelope"].partition("\n\n")[2] for item in lines_of(dump, "state"))


def test_what_waits_for_a_time_or_a_limit_goes_from_one_store_to_another(stores, tmp_path):
    (source, target), gate = stores, tmp_path / "gate"
    fill(source, gate)
    assert "sound" in source.cli("fsck")
    there = dump_of(source)
    said = load(target, there)
    assert "2 schedules" in said, said
    assert "sound" in target.cli("fsck")
    back = dump_of(target)
    assert payloads(back) == payloads(there) and lines_of(back, "schedule") == lines_of(there, "schedule")
    states = {s["schedule"]: s["is_paused"] for s in lines_of(back, "schedule")}
    assert states == {"paused": True, "yearly": False}
    assert "schedules" not in load(target, there)  # the same again changes nothing
    gate.touch()
    target.start()
    expected = set(range(100, 200)) | {1}
    wait_until(lambda: expected <= set(target.starts()), "all that waited for the limit has run", 120)
    for key in range(50):
        assert target.starts(f"f{key}") == [n for n in range(100, 200) if n % 50 == key]
    calls = [e for e in target.ledger() if e.number >= 100]
    running = most = 0
    for e in sorted(calls, key=lambda e: e.at_ns):
        running += 1 if e.what == "start" else -1
        most = max(most, running)
    assert most == 1, "the limit holds there, too"
    wait_until(lambda: "debounced" in target.cli("key", "bounce"), "the debounced one waits on")
    assert not set(target.starts()) & {2, 3, 4, 5, 6, 7, 9}
    assert "sound" in target.cli("fsck")
