"""Schedules: each time once, whoever dies."""
import json
import os
import re
import signal
import sqlite3
import subprocess
import time

import pytest

from clocks import SteppedClock
from hosts import Host, wait_until

LONG = bool(os.environ.get("QUIVER_TEST_LONG"))

# --- firing -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def clock_host(quiver, root, tmp_path):
    made = Host(quiver, root / "build" / "test-plugins", tmp_path)
    made.configure(work="")
    yield made
    made.close()


def fired(host, name="tick"):
    """The seconds whose tasks were started.  After a kill one may be started again: submitted() tells of doubles."""
    matches = (re.fullmatch(rf"{name}\.(\d+)-\d+", entry.id) for entry in host.ledger())
    return {int(match.group(1)) for match in matches if match}


def set_tick(host, *options, name="tick"):
    host.cli("schedule", "set", name, "--every", "1s", "--handler", "work", "--overlap", "queue-all", *options, "1")


def settle(host):
    wait_until(lambda: host.sum("done") == host.sum("submitted"), "all are done")
    seconds = fired(host)
    assert host.sum("submitted") == len(seconds), "a time was submitted twice"
    return seconds


def assert_each_once(seconds):
    assert set(range(min(seconds), max(seconds) + 1)) == seconds


def test_each_time_fires_once_while_its_owner_is_killed_again_and_again(clock_host, chance):
    clock_host.start()
    set_tick(clock_host, "--catchup", "all")
    wait_until(lambda: len(fired(clock_host)) >= 2, "it fires")
    kills = 200 if LONG else 4
    for _ in range(kills):
        # As near to the next second as the machine allows.
        now = time.time()
        time.sleep(max(0, 1 - now % 1 + chance.uniform(-.005, .005)))
        clock_host.kill()
        clock_host.start()
        seen = len(fired(clock_host))
        wait_until(lambda: len(fired(clock_host)) > seen, "it fires again")
    clock_host.cli("schedule", "pause", "tick")
    seconds = settle(clock_host)
    print(f"{kills} kills, {max(seconds) - min(seconds) + 1} times were due, {len(seconds)} were fired, "
          f"{clock_host.sum('submitted'):.0f} tasks")
    assert_each_once(seconds)


def test_times_that_were_missed_are_caught_up_as_asked(clock_host):
    clock_host.start()
    for catchup in ("all", "last", "none"):
        set_tick(clock_host, "--catchup", catchup, name=catchup)
    wait_until(lambda: len(fired(clock_host, "none")) >= 2, "they fire")
    clock_host.stop()
    last = max(fired(clock_host, "none"))
    wait_until(lambda: time.time() > last + 5, "some times pass")
    clock_host.start()
    for catchup in ("all", "last", "none"):
        wait_until(lambda name=catchup: max(fired(clock_host, name)) > last + 5, "it goes on")
        clock_host.cli("schedule", "pause", catchup)
    seconds = {catchup: fired(clock_host, catchup) for catchup in ("all", "last", "none")}
    assert_each_once(seconds["all"])
    for catchup in ("last", "none"):
        assert last + 2 not in seconds[catchup]
        assert json.loads(clock_host.cli("schedule", "show", catchup, "--json"))["skipped"] >= 2


def test_a_paused_schedule_fires_nothing_and_goes_on_without_what_was_missed(clock_host):
    clock_host.start()
    set_tick(clock_host)
    wait_until(lambda: fired(clock_host), "it fires")
    clock_host.cli("schedule", "pause", "tick")
    before = settle(clock_host)
    paused = time.time()
    wait_until(lambda: time.time() > paused + 3, "some times pass")
    assert fired(clock_host) == before
    clock_host.cli("schedule", "resume", "tick")
    resumed = int(time.time())
    wait_until(lambda: len(fired(clock_host)) > len(before), "it goes on")
    assert all(t in before or t >= resumed for t in fired(clock_host))


def test_a_time_that_comes_while_the_last_task_runs_is_skipped(clock_host, tmp_path):
    clock_host.start()
    gate = tmp_path / "gate"
    clock_host.cli("schedule", "set", "tick", "--every", "1s", "--handler", "work", f"1 wait:{gate}")
    wait_until(lambda: clock_host.starts(), "it fires")
    wait_until(lambda: json.loads(clock_host.cli("schedule", "show", "tick", "--json"))["skipped"] >= 2, "times pass")
    assert len(clock_host.starts()) == 1
    gate.write_text("")
    wait_until(lambda: len(clock_host.starts()) > 1, "the next one")


def test_times_may_overlap_where_that_is_asked_for(clock_host, tmp_path):
    clock_host.configure(work="processes = 3;").start()
    gate = tmp_path / "gate"
    clock_host.cli("schedule", "set", "tick", "--every", "1s", "--handler", "work", "--overlap", "allow", f"1 wait:{gate}")
    wait_until(lambda: len(clock_host.starts()) >= 2, "two run side by side")
    gate.write_text("")
    clock_host.cli("schedule", "pause", "tick")
    settle(clock_host)


def test_a_schedule_that_stands_in_a_wrong_shard_stops_nobody_else(clock_host):
    clock_host.start()
    set_tick(clock_host)
    wait_until(lambda: fired(clock_host), "it fires")
    with sqlite3.connect(clock_host.folder / "q.db", timeout=30) as db:
        shard, = db.execute("SELECT shard FROM schedule").fetchone()
        db.execute("UPDATE schedule SET shard = ?", ((shard + 1) % 8,))
    clock_host.kill()
    clock_host.start()
    clock_host.wait_for_log("event=schedule-unreadable")
    clock_host.submit([{"handler": "work", "key": f"k{i}", "payload": f"{i} result"} for i in range(40)])
    wait_until(lambda: clock_host.sum("done") == clock_host.sum("submitted"), "all are done")


def test_what_was_set_is_replaced_and_what_was_deleted_is_gone(clock_host):
    clock_host.start()
    clock_host.cli("schedule", "set", "night", "--cron", "0 3 * * *", "--handler", "work", "--zone", "Europe/Berlin")
    first = json.loads(clock_host.cli("schedule", "show", "night", "--json"))
    clock_host.cli("schedule", "set", "night", "--cron", "0 4 * * *", "--handler", "work", "--key", "another")
    second, = [json.loads(line) for line in clock_host.cli("schedule", "list", "--json").splitlines()]
    assert second["version"] > first["version"] and second["definition"]["cron"] == "0 4 * * *"
    clock_host.cli("schedule", "delete", "night")
    assert "there is no schedule" in clock_host.cli("schedule", "list")
    clock_host.cli("schedule", "show", "night", code=1)


def test_a_backfill_that_is_repeated_submits_each_time_once(clock_host):
    clock_host.start()
    clock_host.cli("schedule", "set", "night", "--cron", "0 3 * * *", "--handler", "work", "1")
    for _ in range(2):
        assert "7 tasks submitted" in clock_host.cli("schedule", "backfill", "night", "--from", "2026-11-01", "--to", "2026-11-08")
    assert clock_host.sum("submitted") == 7


@pytest.mark.parametrize("step_s", [3600, -3600])
def test_a_clock_that_is_set_neither_doubles_nor_loses_a_time(clock_host, root, tmp_path, monkeypatch, step_s):
    clock = SteppedClock(tmp_path / "ahead", root)
    with monkeypatch.context() as patch:
        for name, value in clock.variables.items():
            patch.setenv(name, value)
        clock_host.start()
    set_tick(clock_host, "--catchup", "all", "--catchup-for", "1d")
    wait_until(lambda: len(fired(clock_host)) >= 2, "it fires")
    clock.step(step_s * 1000)
    if step_s > 0:
        wait_until(lambda: len(fired(clock_host)) >= 3600, "what the clock has passed is caught up")
    else:
        before = max(fired(clock_host))
        stood = time.time()
        wait_until(lambda: time.time() > stood + 3, "some seconds pass")
        assert max(fired(clock_host)) <= before + 2, "a time fired before it came"
    clock_host.cli("schedule", "pause", "tick")
    assert_each_once(settle(clock_host))


# --- schedules of the configuration -----------------------------------------------------------------------------------


def write_schedules(host, schedules, config=None, written=None):
    """As text; `written`: when the file was, if not now."""
    text = host.config.read_text().split("\nschedules = ")[0]
    path = config or host.config
    path.write_text(f"{text}\nschedules = {{ {schedules} }};\n")
    if written:
        os.utime(path, (written, written))
    return path


def listed(host):
    """Per name: how many seconds, and whether a file or a command has set it."""
    found = (json.loads(line) for line in host.cli("schedule", "list", "--json").splitlines())
    return {s["name"]: (s["definition"]["every_ms"] // 1000, s["definition"]["from"]) for s in found}


def problems(host):
    return [p["text"] for p in json.loads(host.cli("status", "--json"))["problems"]]


@pytest.fixture
def filed(clock_host):
    write_schedules(clock_host, 'one = { every = "1h"; handler = "work"; }; two = { every = "2h"; handler = "work"; };')
    clock_host.start()
    wait_until(lambda: listed(clock_host) == {"one": (3600, "file"), "two": (7200, "file")}, "they stand in the store")
    return clock_host


def test_what_leaves_the_file_leaves_the_store_and_what_a_command_set_stays(filed):
    filed.cli("schedule", "set", "mine", "--every", "5s", "--handler", "work", "--start", "2090-01-01")
    write_schedules(filed, 'one = { every = "3h"; handler = "work"; };')
    filed.signal(signal.SIGHUP)
    wait_until(lambda: listed(filed) == {"mine": (5, "command"), "one": (10800, "file")}, "the file is taken up")
    before = json.loads(filed.cli("schedule", "show", "one", "--json"))["version"]
    filed.kill()
    filed.start()
    assert listed(filed) == {"mine": (5, "command"), "one": (10800, "file")}
    assert json.loads(filed.cli("schedule", "show", "one", "--json"))["version"] == before
    for words in (["set", "one", "--every", "1h", "--handler", "work"], ["delete", "one"]):
        done = subprocess.run([filed.quiver, "schedule", *words, "-c", filed.config], capture_output=True, text=True)
        assert done.returncode == 1 and "stands in a host's configuration" in done.stderr
    filed.cli("schedule", "pause", "one")
    assert "file" in filed.cli("schedule", "list") and "in force: the configuration of host" in filed.cli("schedule", "list")


def test_a_name_that_file_and_command_set_is_a_conflict_until_one_of_them_leaves(filed):
    filed.cli("schedule", "set", "mine", "--every", "5s", "--handler", "work", "--start", "2090-01-01")
    write_schedules(filed, 'mine = { every = "3h"; handler = "work"; };')
    filed.cli("reload", "--wait")
    filed.wait_for_log("event=schedule-conflict schedule=mine")
    assert listed(filed) == {"mine": (5, "command")}
    wait_until(lambda: any("mine stands in the configuration" in text for text in problems(filed)), "the status says so")
    filed.cli("schedule", "delete", "mine")
    filed.cli("reload", "--wait")
    wait_until(lambda: listed(filed) == {"mine": (10800, "file")}, "the file's is taken")
    wait_until(lambda: not any("mine stands in the configuration" in text for text in problems(filed)), "it is over")


def test_of_two_hosts_the_newest_configuration_is_in_force(filed, tmp_path):
    (tmp_path / "b").mkdir()
    other = Host(filed.quiver, filed.plugins, tmp_path / "b")
    other.config = tmp_path / "b.cfg"
    try:
        write_schedules(filed, 'three = { every = "3h"; handler = "work"; };', other.config, written=time.time() - 3600)
        other.start("--name", "b")
        other.wait_for_log("event=schedules-older")
        assert listed(filed) == {"one": (3600, "file"), "two": (7200, "file")}
        wait_until(lambda: any("b has an older configuration" in text for text in problems(filed)), "the status says so")
        write_schedules(filed, 'three = { every = "4h"; handler = "work"; };', other.config)
        other.signal(signal.SIGHUP)
        wait_until(lambda: listed(filed) == {"three": (14400, "file")}, "the newer one is in force")
        filed.wait_for_log("event=schedules-older")
        filed.kill()
        filed.start()
        filed.wait_for_log("event=schedules-older")
        assert listed(filed) == {"three": (14400, "file")}
    finally:
        other.close()
