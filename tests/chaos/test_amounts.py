"""The checker's rules about limits, schedules and merged tasks find what breaks them, and nothing else."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from amounts import most_of  # noqa: E402
from checker import Index, RULES  # noqa: E402
from history import Failover, Limit, Rest, Schedule, Stop, read_consumer, read_lines  # noqa: E402
from made import MS, Made  # noqa: E402


@pytest.fixture
def made():
    return Made()


# --- what is right ----------------------------------------------------------------------------------------------------

SLOTS = Limit("slots", "few", concurrency=2, seats=4, back_s=5.0)
PACE = Limit("pace", "paced", rate=10, burst=3, seats=2, back_s=5.0)


def ask_few(made, *numbers, limit=SLOTS):
    made.h.limits.append(limit)
    for n in numbers:
        made.ask(n, key=f"k{n}", handler=limit.handler)
    return made


def run_side_by_side(made, *numbers, host="a"):
    lines = [made.start(n, key=f"k{n}", host=host) for n in numbers]
    for line in lines:
        made.end(line)
        made.result(line)
    return lines


def run_at(made, moments_ms):
    """A start at each of these moments."""
    for i, ms in enumerate(moments_ms):
        made.now = 1000 * MS + ms * MS
        made.run(str(i), key=f"k{i}")


def test_as_many_run_at_once_as_a_limit_allows(made):
    ask_few(made, "1", "2", "3")
    run_side_by_side(made, "1", "2")
    run_side_by_side(made, "3")
    assert not made.rules()


def test_others_are_not_under_a_limit(made):
    ask_few(made, "1", "2").ask("3", key="k3")
    run_side_by_side(made, "1", "2", "3")
    assert not made.rules()


def test_a_call_that_was_killed_does_not_count(made):
    ask_few(made, "1", "2", "3")
    made.start("3", key="k3")
    run_side_by_side(made, "1", "2")
    run_side_by_side(made, "3")
    assert not made.rules()


def test_a_call_of_a_host_that_stands_still_for_longer_than_a_lease_counts_until_then(made):
    ask_few(made, "1", "2", "3")
    began = made.now
    lines = run_side_by_side(made, "1", "2", "3", host="a")
    stopped = lines[0].at_ns + 1
    for host, ms in ("b", 2000), ("a", 900):
        made.h.stops.append(Stop(host, stopped, stopped + ms * MS))
        assert "limit" in made.rules()
    made.h.stops.append(Stop("a", stopped, stopped + 2000 * MS))
    assert began < stopped and not made.rules()


@pytest.mark.parametrize("excuse", ["step", "failover"])
def test_a_home_that_was_made_to_forget_grants_too_much_for_a_moment(made, excuse):
    ask_few(made, "1", "2", "3")
    run_side_by_side(made, "1", "2", "3")
    at = made.h.lines[2].at_ns
    for from_ns in at - 6000 * MS, at + 2 * MS, at - 4000 * MS:
        assert "limit" in made.rules()
        if excuse == "step":
            made.h.steps.append(from_ns)
        else:
            made.h.failovers.append(Failover(from_ns, from_ns + MS))
    assert "limit" not in made.rules()


def test_a_rate_has_its_burst_and_what_seats_may_start_late(made):
    ask_few(made, *map(str, range(9)), limit=PACE)
    run_at(made, [0] * 7 + [101, 202])
    assert not made.rules()


def set_schedule(made, name="tick-each", **more):
    found = {"every_s": 10, "first_s": 100, "next_s": 130, "fired": 3, "skipped": 0, "may_pass": False, **more}
    made.h.schedules.append(Schedule(name, **found))
    return made


def fire(made, *times, name="tick-each"):
    for at in times:
        made.run(f"{name}.{at}", key=name, id=f"{name}.{at}-2")


def test_each_time_of_a_schedule_has_its_task(made):
    fire(set_schedule(made), 100, 110, 120)
    assert not made.rules()


def test_times_pass_where_they_may_and_where_a_clock_was_set(made):
    fire(set_schedule(made, fired=2, skipped=1), 100, 120)
    assert made.rules() == {"schedule"}
    made.h.host_steps = 1
    assert not made.rules()
    made.h.host_steps = 0
    made.h.schedules[0] = made.h.schedules[0]._replace(may_pass=True)
    assert not made.rules()


def test_no_more_than_so_many_that_pass_at_once_are_counted(made):
    fire(set_schedule(made, fired=1, skipped=10_000, next_s=1_000_000), 100)
    assert made.rules() == {"schedule"}
    made.h.host_steps = 1
    assert not made.rules()
    made.h.schedules[0] = made.h.schedules[0]._replace(skipped=9_999)
    assert made.rules() == {"schedule"}
    made.h.schedules[0] = made.h.schedules[0]._replace(skipped=100_000)
    assert made.rules() == {"schedule"}


def test_a_failover_takes_back_no_more_times_than_it_lasted(made):
    fire(set_schedule(made, fired=4, next_s=140), 100, 110, 120)
    shard = made.h.shard("tick-each")
    for failover in Failover(0, 10 * MS, {shard + 1}), Failover(0, 10 * MS, {shard}):
        assert "schedule" in made.rules()
        made.h.failovers.append(failover)
    assert "schedule" not in made.rules()
    made.h.schedules[0] = made.h.schedules[0]._replace(fired=6, next_s=160)
    assert "schedule" in made.rules()


def test_a_failover_may_have_a_time_fire_again(made):
    fire(set_schedule(made), 100, 110, 120, 120)
    for failover in Failover(made.now + MS, made.now + 2 * MS), Failover(0, made.now):
        made.h.failovers.append(failover)
        assert made.rules() == ({"done twice", "count", "stale effect"} if failover.from_ns else set())


def test_what_waits_is_not_merged_and_what_is_merged_does_not_wait(made):
    made.ask("1", is_merge=True).ask("2", is_merge=True)
    made.run("2")
    made.h.merged_count = 1
    for state, is_right in ("merged", True), ("parked", False):
        made.h.rest[:] = [Rest("id1", "1", state)]
        assert ("merges" not in made.rules()) == is_right


def test_what_nobody_was_answered_for_may_have_been_merged(made):
    for status in "kept", "unknown", "kept":
        made.ask(str(len(made.h.asks)), status=status, is_merge=True)
    made.run("2")
    for count, is_right in (0, False), (1, True), (2, True), (3, False):
        made.h.merged_count = count
        assert ("merges" not in made.rules()) == is_right


def test_tasks_of_schedules_go_by_their_time(tmp_path):
    ledger, book = tmp_path / "ledger", tmp_path / "consumer"
    ledger.write_text("start 5 tick-each tick-each.100-3 tick 1 7 1 0 - one h2\nstart 6 k 01a-3 1.1 1 7 2 0 - one h1\n")
    assert [(line.number, line.host) for line in read_lines(ledger)] == [("tick-each.100", "h2"), ("1.1", "h1")]
    book.write_text('{"what": "taken", "at_ns": 1, "shard": 3, "serial": 1, "id": "tick-each.100-3", "data": "tick 7.1", "asked_ns": 1}\n')
    assert [t.number for t in read_consumer(book)[0]] == ["tick-each.100"]


def test_the_most_that_was_seen_is_told(made):
    ask_few(made, "1", "2", "3")
    run_side_by_side(made, "1", "2")
    run_side_by_side(made, "3")
    assert most_of(made.h, Index(made.h), SLOTS) == "2 at once of 2"
    made = ask_few(Made(), *map(str, range(4)), limit=PACE)
    run_at(made, [0, 500, 900, 1700])
    assert most_of(made.h, Index(made.h), PACE) == "3 within 1 s of 13"


# --- what is wrong ----------------------------------------------------------------------------------------------------


def too_many_at_once(made):
    ask_few(made, "1", "2", "3")
    run_side_by_side(made, "1", "2", "3")


def too_many_in_a_moment(made):
    ask_few(made, *map(str, range(9)), limit=PACE)
    run_at(made, [0] * 8)


def too_many_over_a_longer_time(made):
    ask_few(made, *map(str, range(30)), limit=PACE)
    run_at(made, [i * 75 for i in range(30)])


def a_time_twice(made):
    fire(set_schedule(made), 100, 110, 120, 120)


def a_time_without_a_task(made):
    fire(set_schedule(made), 100, 120)


def a_time_that_is_counted_nowhere(made):
    fire(set_schedule(made, fired=2), 100, 120)


def a_time_that_was_not_due(made):
    fire(set_schedule(made), 100, 110, 115)


def a_time_too_soon(made):
    fire(set_schedule(made), 100, 110, 130)


def a_time_whose_task_is_gone(made):
    fire(set_schedule(made), 100, 110)
    made.end(made.start("tick-each.120", key="tick-each", id="tick-each.120-2"))


def times_out_of_order(made):
    fire(set_schedule(made), 100, 120, 110)


def merged_and_not_counted(made):
    made.ask("1", is_merge=True).ask("2", is_merge=True)
    made.run("2")
    made.h.merged_count = 0


PLANTED = {
    too_many_at_once: "limit", too_many_in_a_moment: "limit", too_many_over_a_longer_time: "limit", a_time_twice: "done twice",
    a_time_without_a_task: "schedule", a_time_that_is_counted_nowhere: "schedule", a_time_that_was_not_due: "schedule",
    a_time_too_soon: "schedule", a_time_whose_task_is_gone: "schedule", times_out_of_order: "schedule",
    merged_and_not_counted: "merges",
}


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_violation_is_found_by_one_rule_alone(made, plant):
    plant(made)
    found = [rule.__name__ for rule in RULES if any(v.rule == PLANTED[plant] for v in rule(made.h, Index(made.h)))]
    assert len(found) == 1, found
