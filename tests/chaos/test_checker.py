"""The history checker finds every kind of violation, and finds none where there is none."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from checker import Index, RULES, check, story  # noqa: E402
from history import Dead, Failover, REJECT, RETRY, Rest, Sample, read_consumer  # noqa: E402
from made import MS, Made  # noqa: E402

@pytest.fixture
def made():
    return Made()


# --- what is right ----------------------------------------------------------------------------------------------------


def test_a_merged_task_is_not_lost_if_a_later_one_is_there():
    made = Made()
    made.ask("1", is_merge=True).ask("2", is_merge=True).ask("3", is_merge=True)
    made.run("3")
    assert not made.rules()
    made.ask("4", is_merge=True)  # nobody came after it
    assert made.rules() == {"lost"}


def test_what_may_not_be_merged_is_lost():
    for more in {"is_merge": False}, {"lane": "high", "is_merge": True}, {"key": "other", "is_merge": True}:
        made = Made()
        made.ask("1", **more).ask("2", is_merge=True)
        made.run("2")
        assert made.rules() == {"lost"}


def test_a_quiet_history_is_right(made):
    for n in "123":
        made.ask(n)
    for n in "123":
        made.run(n)
    report = check(made.h)
    assert not report.violations and not report.losses
    assert (report.done, report.repeats, report.overlaps) == (3, 0, 0)


def test_a_call_of_a_host_without_its_lease_may_overlap_with_its_repetition(made):
    made.ask("1").ask("2")
    stale = made.start("1", epoch=7)
    made.run("1", epoch=8)
    made.run("2", epoch=8)
    made.end(stale)
    report = check(made.h)
    assert not report.violations
    assert (report.repeats, report.overlaps) == (1, 2)


def test_a_task_whose_last_runner_hung_is_dead_of_that(made):
    made.ask("1")
    for _ in range(3):
        made.start("1")
    made.h.dead.append(Dead("id1", "1", "timed-out"))
    assert not made.rules()


def test_a_task_without_a_key_may_start_on_a_borrowed_seat_after_its_owner_was_replaced(made):
    made.ask("1").ask("2").ask("3", key="free-3")
    made.h.free = {"free-3": made.h.shard("k")}
    made.run("1", epoch=7, host="a")
    made.run("2", epoch=8, host="b")
    made.run("3", key="free-3", epoch=7, host="a")
    assert made.rules() == {"stale start"}  # its owner lent it to nobody
    made.h.lines = [line._replace(host="c") if line.number == "3" else line for line in made.h.lines]
    assert not made.rules()


def test_a_killed_call_comes_again(made):
    made.ask("1")
    made.start("1")
    made.run("1")
    assert not made.rules()
    assert check(made.h).overlaps == 0


def test_a_task_that_nobody_answered_for_may_run_or_not_and_at_any_time(made):
    made.ask("1", status="unknown").ask("2").ask("3", status="unknown")
    made.run("2")
    made.run("1")
    assert not made.rules()


def test_lanes_have_an_order_each_and_delayed_tasks_none(made):
    made.ask("1").ask("2", lane="high").ask("3", is_delayed=True).ask("4")
    for n in ("2", "1", "4", "3"):
        made.run(n)
    assert not made.rules()


def test_a_higher_lane_may_go_first_where_a_call_was_cut(made):
    made.ask("1").ask("2", lane="high")
    stale = made.start("1", epoch=7)
    made.run("2", epoch=8)
    made.run("1", epoch=8)
    made.end(stale)
    assert not made.rules()


def test_follow_ups_come_once_and_in_order(made):
    for n in "12":
        made.ask(n, follow_up="f")
    parents = [made.run(n) for n in "12"]
    for p in parents:
        made.run(f"{p.number}>", key="f", id=f"child{p.number}", parent_fence=(p.epoch, p.start))
    assert not made.rules()


def test_the_dead_may_be_dead(made):
    made.ask("1").ask("2").ask("3")
    made.end(made.start("1"), REJECT)
    for _ in range(3):
        made.start("2")
    for _ in range(4):
        made.end(made.start("3"), RETRY)
    made.h.dead += [Dead("id1", "1", "rejected"), Dead("id2", "2", "crashed"), Dead("id3", "3", "exhausted")]
    assert not made.rules()


def test_a_result_that_comes_again_before_its_commit_is_right(made):
    made.ask("1")
    made.run("1")
    first = made.h.taken[-1]
    made.h.taken.insert(0, first._replace(consumer="d", at_ns=first.at_ns - 1))
    assert not made.rules()


def test_a_consumer_that_slept_reads_late_what_it_was_given_before(made):
    made.ask("1")
    made.run("1")
    made.h.taken.append(made.h.taken[-1]._replace(consumer="d", at_ns=made.tick() + MS))
    assert not made.rules()


# --- what is wrong: each rule -----------------------------------------------------------------------------------------


def lost(made):
    made.ask("1")


def lost_after_its_end(made):
    made.ask("1")
    made.end(made.start("1"))


def in_two_places(made):
    made.ask("1")
    made.run("1")
    made.h.rest.append(Rest("id1", "1", "queued"))


def not_asked_for(made):
    made.run("1")


def under_another_key(made):
    made.ask("1", key="other")
    made.run("1")


def refused_and_run(made):
    made.ask("1", status="refused")
    made.run("1")


def out_of_order(made):
    made.ask("1").ask("2")
    made.run("2")
    made.run("1")


def follow_ups_out_of_order(made):
    made.ask("1", follow_up="f").ask("2", follow_up="f")
    first, second = made.run("1"), made.run("2")
    made.run("2>", key="f", parent_fence=(second.epoch, second.start))
    made.run("1>", key="f", parent_fence=(first.epoch, first.start))


def retry_overtaken(made):
    made.ask("1").ask("2")
    made.end(made.start("1"), RETRY)
    made.run("2")
    made.run("1")


def two_at_once_under_one_lease(made):
    made.ask("1").ask("2")
    first = made.start("1")
    made.run("2")
    made.end(first)
    made.result(first)


def the_same_twice_at_once_under_one_lease(made):
    made.ask("1")
    first = made.start("1")
    made.run("1")
    made.end(first)


def another_beside_a_stale_call(made):
    """The next task runs elsewhere although this one was never repeated."""
    made.ask("1").ask("2")
    first = made.start("1", epoch=7)
    made.run("2", epoch=8)
    made.end(first)
    made.result(first)


def fence_twice(made):
    made.ask("1").ask("2")
    made.run("1", epoch=7, start=5)
    made.run("2", epoch=7, start=5)


def fence_backwards(made):
    made.ask("1").ask("2")
    made.run("1", epoch=7, start=5)
    made.run("2", epoch=7, start=4)


def start_under_an_old_epoch(made):
    made.ask("1").ask("2")
    made.run("1", epoch=8)
    made.run("2", epoch=7)


def done_twice(made):
    made.ask("1")
    made.run("1")
    made.run("1")


def counted_twice(made):
    made.ask("1")
    made.run("1")
    made.h.done_count = 2


def result_of_a_stale_call(made):
    made.ask("1")
    first = made.start("1", epoch=7)
    second = made.start("1", epoch=8)
    made.end(second)
    made.end(first)
    made.result(first)


def result_of_a_call_that_failed(made):
    made.ask("1")
    line = made.start("1")
    made.end(line, RETRY)
    made.result(line)


def result_committed_twice(made):
    made.ask("1")
    made.run("1")
    made.h.commits.append(made.h.commits[-1]._replace(consumer="d"))


def result_after_its_commit(made):
    made.ask("1")
    made.run("1")
    made.h.taken.append(made.h.taken[-1]._replace(consumer="d", at_ns=made.tick() + MS, asked_ns=made.now))


def result_vanished(made):
    made.ask("1")
    made.run("1")
    made.h.commits.clear()


def follow_up_missing(made):
    made.ask("1", follow_up="f")
    made.run("1")


def follow_up_twice(made):
    made.ask("1", follow_up="f")
    p = made.run("1")
    made.run("1>", key="f", id="a", parent_fence=(p.epoch, p.start))
    made.start("1>", key="f", id="b", parent_fence=(p.epoch, p.start))


def follow_up_of_a_stale_call(made):
    made.ask("1", follow_up="f")
    stale = made.start("1", epoch=7)
    made.run("1", epoch=8)
    made.run("1>", key="f", parent_fence=(stale.epoch, stale.start))


def follow_up_of_an_unfinished_task(made):
    made.ask("1", follow_up="f")
    p = made.start("1")
    made.h.rest.append(Rest("id1", "1", "in flight"))
    made.run("1>", key="f", parent_fence=(p.epoch, p.start))


def dead_by_others_crashes(made):
    made.ask("1")
    made.start("1")
    made.h.dead.append(Dead("id1", "1", "crashed"))


def dead_without_a_no(made):
    made.ask("1")
    made.end(made.start("1"), RETRY)
    made.h.dead.append(Dead("id1", "1", "exhausted"))


def epoch_backwards(made):
    made.h.samples += [Sample(1, {0: 7, 1: 9}), Sample(2, {0: 8, 1: 8})]


def never_finished(made):
    made.ask("1")
    made.h.rest.append(Rest("id1", "1", "queued"))
    made.h.finished_ns = 0


def unsound_store(made):
    made.h.store_faults.append("shard 3: counts 4 queued, has 3")


PLANTED = {
    lost: "lost", lost_after_its_end: "lost", in_two_places: "dead and done", not_asked_for: "not asked for",
    under_another_key: "not asked for", refused_and_run: "refused", out_of_order: "order",
    follow_ups_out_of_order: "order", retry_overtaken: "overtaken", two_at_once_under_one_lease: "two at once",
    the_same_twice_at_once_under_one_lease: "two at once", another_beside_a_stale_call: "two at once",
    fence_twice: "fence repeated", fence_backwards: "fence repeated", start_under_an_old_epoch: "stale start",
    done_twice: "done twice", counted_twice: "count", result_of_a_stale_call: "stale effect",
    result_of_a_call_that_failed: "stale effect", result_committed_twice: "result twice",
    result_after_its_commit: "result twice", result_vanished: "result lost", follow_up_missing: "follow-up missing",
    follow_up_twice: "follow-up twice", follow_up_of_a_stale_call: "follow-up of nothing",
    follow_up_of_an_unfinished_task: "follow-up of nothing", dead_by_others_crashes: "wrongly dead",
    dead_without_a_no: "wrongly dead", epoch_backwards: "epoch went back", never_finished: "not finished",
    unsound_store: "store check",
}


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_violation_is_found(made, plant):
    plant(made)
    assert PLANTED[plant] in made.rules()


def test_every_rule_finds_something_that_no_other_does(made):
    """A rule that could be taken away without any test noticing is no rule.  test_amounts.py has those about how many."""
    for rule in RULES:
        if rule.__module__ == "amounts":
            continue
        found = set()
        for plant in PLANTED:
            one = Made()
            plant(one)
            others = [r for r in RULES if r is not rule]
            left = {v.rule for r in others for v in r(one.h, Index(one.h))}
            if PLANTED[plant] not in left:
                found.add(plant)
        assert found, rule.__name__


# --- what the store lost ----------------------------------------------------------------------------------------------


def test_what_a_failover_lost_is_counted_and_not_held_against_us(made):
    made.ask("1").ask("2").ask("3")
    made.run("3")
    failed_at = made.h.asks[1].asked_ns
    made.h.failovers.append(Failover(failed_at, failed_at + 1))
    report = check(made.h)
    assert [v.number for v in report.losses] == ["2"] and report.lost == 1
    assert [v.number for v in report.violations] == ["1"]  # it was kept long before


def test_a_failover_excuses_nothing_that_happened_at_another_time(made):
    two_at_once_under_one_lease(made)
    made.h.failovers.append(Failover(made.now + MS, made.now + 2 * MS))
    assert "two at once" in made.rules()


def test_two_masters_give_a_lease_twice_and_that_is_counted(made):
    two_at_once_under_one_lease(made)
    made.h.failovers.append(Failover(0, made.now))
    assert not made.rules()
    assert "two at once" in {v.rule for v in check(made.h).losses}


def test_a_failover_excuses_no_task_that_was_acknowledged_before(made):
    """Whatever happens to it during the failover: a store that goes back to an earlier state has it."""
    made.ask("1")
    began = made.now + 1
    made.start("1")
    made.h.failovers.append(Failover(began + 1, made.now + MS))
    assert "lost" in made.rules()


def test_a_failover_of_other_servers_excuses_nothing(made):
    made.ask("1")
    made.h.failovers.append(Failover(0, made.now + MS, {made.h.shard("k") + 1}))
    assert "lost" in made.rules()
    made.h.failovers.append(Failover(0, made.now + MS, {made.h.shard("k")}))
    assert not made.rules()


def test_a_shard_that_had_just_come_to_a_server_is_lost_with_it(made):
    made.ask("1")
    made.tick()
    made.h.failovers.append(Failover(made.now, made.now + MS))
    assert "lost" in made.rules()
    made.h.moves.append((made.h.shard("k"), made.now))
    assert not made.rules()


def test_a_commit_that_a_failover_took_back_is_made_again(made):
    made.ask("1")
    made.run("1")
    first = made.h.commits[0].at_ns
    made.h.taken.append(made.h.taken[0]._replace(asked_ns=made.tick(), at_ns=made.tick()))
    made.h.commits.append(made.h.commits[0]._replace(at_ns=made.tick()))
    assert "result twice" in made.rules()
    made.h.failovers.append(Failover(first, first + 1))
    assert not made.rules()


def test_a_commit_lasts_from_its_question_to_its_answer(tmp_path):
    book = tmp_path / "consumer"
    lines = [(1, "unknown"), (5, "accepted"), (7, "unknown"), (9, "unknown")]
    book.write_text("".join(f'{{"what": "commit", "at_ns": {at}, "shard": 0, "serial": 1, "status": "{status}"}}\n'
                            for at, status in lines))
    _, commits = read_consumer(book)
    assert [(c.asked_ns, c.at_ns, c.status) for c in commits] == [
        (1, 5, "accepted"), (7, 7, "unknown"), (9, 9, "unknown")]


def test_no_failover_loses_what_a_replica_had_when_it_was_acknowledged(made):
    made.ask("1", is_safe=True)
    made.h.failovers.append(Failover(0, made.now + MS))
    assert "lost" in made.rules()


def test_a_follow_up_is_lost_where_it_goes(made):
    made.ask("1", follow_up="f")
    made.run("1")
    made.h.failovers.append(Failover(made.now + MS, made.now + 2 * MS, {made.h.shard("f") + 1}))
    assert "follow-up missing" in made.rules()
    made.h.failovers.append(Failover(made.now + MS, made.now + 2 * MS, {made.h.shard("f")}))
    assert not made.rules()


def test_a_failover_excuses_no_unsound_store(made):
    unsound_store(made)
    made.h.failovers.append(Failover(0, made.now))
    assert "store check" in made.rules()


def test_a_step_of_the_stores_clock_ends_leases_early(made):
    start_under_an_old_epoch(made)
    at = made.h.lines[-1].at_ns
    made.h.steps.append(at + 1)
    assert "stale start" in made.rules()
    made.h.steps.append(at - MS)
    report = check(made.h)
    assert not report.violations and len(report.early) == 1


def test_no_failover_excuses_a_task_that_nobody_asked_for(made):
    not_asked_for(made)
    made.h.failovers.append(Failover(0, made.now))
    assert "not asked for" in made.rules()


def test_the_story_of_a_key_is_readable(made):
    retry_overtaken(made)
    text = "\n".join(story(made.h, "k"))
    assert "key k, shard" in text and "start under 7.1" in text and "RETRY" in text and "taken by c" in text
