"""A schedule whose time comes while the task of the last one is not over; and when a schedule begins and ends."""
import json
import time

import pytest

from hosts import wait_until


def shown(host, name="tick"):
    return json.loads(host.cli("schedule", "show", name, "--json"))


def totals(host):
    return json.loads(host.cli("status", "--json"))["totals"]


@pytest.fixture(params=["host", "redis_host"])
def either(request):
    return request.getfixturevalue(request.param).configure(work="processes = 2;").start()


def test_one_waits_behind_the_one_that_runs_and_no_more(either, tmp_path):
    gate = tmp_path / "gate"
    either.cli("schedule", "set", "tick", "--every", "1s", "--handler", "work", "--overlap", "queue-one", f"1 wait:{gate}")
    wait_until(lambda: shown(either)["skipped"] >= 2, "times pass")
    assert len(either.starts()) == 1 and shown(either)["fired"] == 2 and totals(either)["submitted"] == 2
    gate.touch()
    wait_until(lambda: len(either.starts()) > 2, "it goes on")


def test_the_one_that_runs_is_stopped_for_the_next(either, tmp_path):
    """What was stopped is over: it does not start again, and costs nobody anything."""
    gate = tmp_path / "gate"
    either.cli("schedule", "set", "tick", "--every", "2s", "--handler", "work", "--overlap", "replace", f"1 wait:{gate}")
    wait_until(lambda: len(either.starts()) >= 3, "each time stops the last one's task")
    either.cli("schedule", "pause", "tick")
    gate.touch()
    wait_until(lambda: totals(either)["in_flight"] == 0 and totals(either)["queued"] == 0, "the last one ends")
    starts = [e.id for e in either.ledger() if e.what == "start"]
    assert len(starts) == len(set(starts)), "one that was stopped has started again"
    assert starts == sorted(starts)


def test_a_schedule_begins_ends_and_has_so_many_runs(either):
    now = int(time.time())
    moment = lambda second: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second))
    either.cli("schedule", "set", "between", "--every", "1s", "--handler", "work", "--overlap", "queue-all", "--catchup", "all",
               "--start", moment(now + 2), "--end", moment(now + 5), "1")
    either.cli("schedule", "set", "twice", "--every", "1s", "--handler", "work", "--overlap", "queue-all", "--runs", "2", "2")
    either.cli("schedule", "set", "once", "--at", moment(now + 3), "--handler", "work", "3")
    wait_until(lambda: time.time() > now + 8 and len(either.starts()) >= 6, "they have come")
    assert sorted(either.starts()) == [1, 1, 1, 2, 2, 3]
    seconds = [int(e.id.rpartition("-")[0].rpartition(".")[2]) for e in either.ledger() if e.what == "start" and e.number == 1]
    assert sorted(seconds) == [now + 2, now + 3, now + 4]
    assert "next_ms" not in shown(either, "between") and "next_ms" not in shown(either, "once")


def test_the_next_ten_times_are_shown_by_the_zones_clock_and_in_utc(host):
    host.configure(work="").start()
    text = host.cli("schedule", "set", "nightly", "--cron", "30 2 * * *", "--zone", "Europe/Berlin", "--handler", "work",
                    "--start", "2026-03-25")
    lines = [line for line in host.cli("schedule", "next", "--cron", "30 2 * * *", "--zone", "Europe/Berlin", "--handler", "work",
                                       "--from", "2026-03-27T12:00:00Z").splitlines() if "2026-" in line]
    assert len(lines) == 10
    print("\n".join(lines[:4]))
    # On 29 March the clocks go from 02:00 to 03:00.
    for line, local, utc in zip(lines, ("03-28 02:30", "03-29 03:00", "03-30 02:30"), ("03-28 01:30", "03-29 01:00", "03-30 00:30")):
        assert local in line and utc in line, line
    assert sum("2026-" in line or "2027-" in line for line in text.splitlines()) >= 10
