"""quiver run: one host from end to end, judged by the ledger that its handler writes and by the store's file."""
import base64
import collections
import contextlib
import json
import os
import signal
import sqlite3
import time

import pytest

from hosts import Host, check_ledger, wait_until


def task(key, number, words="", **more):
    return {"handler": "work", "key": key, "payload": f"{number} {words}".strip(), **more}


def by_key(tasks):
    expected = collections.defaultdict(list)
    for t in tasks:
        expected[t["key"]].append(int(t["payload"].split()[0]))
    return expected


def history(host, task_id):
    return json.loads(host.cli("task", task_id, "--json"))


# --- headers ----------------------------------------------------------------------------------------------------------


def test_a_header_of_any_bytes_arrives_as_it_was_given(host):
    """From the command line, a line of JSON and a handler."""
    host.configure(shards=4, work="threads = 2;").start()
    value = bytes(range(256))
    coded = base64.b64encode(value).decode()
    first = host.cli("submit", "work", "--key", "a", "--header64", f"digest={coded}", "--header", "t=x", "1 header:digest").strip()
    host.cli("submit", "--json-lines", text=json.dumps({"handler": "work", "key": "b", "payload": "2 pass:c:digest",
                                                        "headers_base64": {"digest": coded}}))
    host.wait_done(3)
    results = [json.loads(line) for line in host.cli("results", "--json").splitlines()]
    assert sorted(r["key"] for r in results) == ["a", "c"] and all(base64.b64decode(r["data_base64"]) == value for r in results)
    host.cli("pause", "work")
    host.cli("submit", "work", "--key", "a", "--header64", f"digest={coded}", "--header", "t=x", "3 header:digest")
    waits = wait_until(lambda: [json.loads(line) for line in host.cli("tasks", "--json").splitlines()], "it is listed")[0]
    shown = history(host, waits["id"])
    assert shown["headers"] == {"t": "x"} and shown["headers_base64"] == {"digest": coded} and first != waits["id"]
    assert "header       digest=\\x00\\x01" in host.cli("task", waits["id"])


# --- order ------------------------------------------------------------------------------------------------------------


def test_order_is_kept_under_sixteen_seats(host, chance):
    tasks = [task(f"k{chance.randrange(60)}", n, f"us:{chance.randrange(3000)}" + chance.choice([""] * 15 + [" retry:1"]))
             for n in range(3000)]
    host.configure(work="processes = 4; threads = 4;").start()
    host.submit(tasks)
    host.wait_done(len(tasks))
    check_ledger(host.ledger(), by_key(tasks))
    assert host.stop() == 0
    assert host.sum("in_flight") == 0 and host.rows("dead") == []
    host.cli("fsck")


def test_one_hot_key_beside_many(host, chance):
    tasks = [task("hot" if n % 3 else f"k{n}", n) for n in range(3000)]
    host.configure(shards=2, work="processes = 2; threads = 2;").start()
    host.submit(tasks)
    host.wait_done(len(tasks))
    check_ledger(host.ledger(), by_key(tasks))


def test_a_retry_is_not_overtaken(host):
    host.configure(shards=1, work="processes = 2; threads = 2;").start()
    host.submit([task("a", 1, "later:300 retry:2"), task("a", 2), task("a", 3), task("b", 4), task("b", 5)])
    host.wait_done(5)
    assert host.starts("a") == [1, 1, 1, 2, 3]
    assert host.starts("b") == [4, 5]
    # The other key did not wait for it.
    assert host.starts().index(5) < len(host.starts()) - 3


def test_higher_lanes_go_first(host):
    lanes = ["low", "normal", "high"]
    host.configure(shards=1, work="").start()
    assert host.stop() == 0
    host.submit([task(f"{lane}{i}", 10 * lanes.index(lane) + i, "result", lane=lane) for i in (1, 2) for lane in lanes])
    host.start()
    host.wait_done(6)
    assert host.starts() == [21, 22, 11, 12, 1, 2]
    assert host.sum("in_flight") == 0
    assert len(host.cli("results", "--json").splitlines()) == 6


def test_a_key_is_one_in_all_lanes(host, chance):
    host.configure(shards=1, work="processes = 4; threads = 2;").start()
    tasks = [task(f"k{n % 5}", n, f"us:{chance.randrange(2000)}", lane=chance.choice(["high", "normal", "low"]))
             for n in range(500)]
    host.submit(tasks)
    host.wait_done(len(tasks))
    lane_of = {int(t["payload"].split()[0]): t["lane"] for t in tasks}
    running, last = {}, {}
    for e in host.ledger():
        if e.what == "end":
            assert running.pop(e.key) == e.number
            continue
        assert e.key not in running
        lane = (e.key, lane_of[e.number])
        assert last.get(lane, -1) < e.number
        running[e.key] = last[lane] = e.number


# --- what goes wrong --------------------------------------------------------------------------------------------------


def test_a_crash_costs_nobody_else(host):
    host.configure(work="processes = 2; threads = 4; crashes = 2;").start()
    good = [task(f"k{n % 20}", n, "us:2000") for n in range(400)]
    host.submit(good[:200])
    bad = host.submit_one(task("bad", 1000, "crash"))
    host.submit([task("bad", 1001), *good[200:]])
    host.wait_done(401)
    assert host.starts("bad") == [1000, 1000, 1001]
    (dead,) = host.rows("dead")
    assert (dead["task_id"], dead["reason"]) == (bad, "crashed")
    assert all(e.attempt == 1 for e in host.ledger())
    assert "SIGSEGV" in json.dumps(history(host, bad))


def test_a_runner_that_died_idle_is_not_woken_for_the_next_task(host):
    """An idle host wakes the runner of the last task before the store has answered: its memory may be gone by then."""
    host.configure(shards=1, work="").start()
    for number in range(1, 7):
        host.submit([task("k", number)])
        host.wait_done(number)
        if number % 2 == 0:
            (runner,) = host.runners()
            os.kill(runner, signal.SIGKILL)
            wait_until(lambda: not os.path.exists(f"/proc/{runner}"), "the host has seen that its runner is gone")
    assert host.stop() == 0
    assert host.starts("k") == [1, 2, 3, 4, 5, 6] and all(e.attempt == 1 for e in host.ledger())


def test_attempts_run_out(host):
    host.configure(work="").start()
    bad = host.submit_one(task("k", 1, "retry:99"))
    host.submit([task("k", 2)])
    host.wait_done(1)
    assert host.starts() == [1, 1, 1, 1, 2]
    assert [e.attempt for e in host.ledger() if e.what == "start"] == [1, 2, 3, 4, 1]
    found = history(host, bad)
    assert found["state"] == "dead" and json.dumps(found).count("not yet") >= 4


def test_an_exhausted_key_waits_for_a_person(host):
    host.configure(work='on_exhausted = "hold";').start()
    host.submit([task("k", 1, "retry:4 "), task("k", 2), task("j", 3)])
    wait_until(lambda: "held" in host.cli("key", "list"), "the key is held")
    wait_until(lambda: host.sum("done") == 1, "the other key is done")
    assert host.starts("k") == [1, 1, 1, 1]
    host.cli("key", "retry", "k")
    host.wait_done(3)
    assert host.starts("k") == [1, 1, 1, 1, 1, 2]


def test_a_rejected_task_is_dead_at_once(host):
    host.configure(work="").start()
    host.submit([task("k", 1, "reject"), task("k", 2)])
    host.wait_done(1)
    assert host.starts() == [1, 2]
    assert [row["reason"] for row in host.rows("dead")] == ["rejected"]


def test_a_hanging_task_is_ended(host):
    host.configure(work='threads = 2; timeout = "200ms"; crashes = 1;').start()
    host.submit([task("k", 1, "deaf:/nowhere"), task("k", 2), task("j", 3)])
    host.wait_done(2)
    assert [row["reason"] for row in host.rows("dead")] == ["timed-out"]
    assert host.starts("k") == [1, 2]


def test_unavailable_costs_nothing(host, tmp_path):
    down = tmp_path / "down"
    down.touch()
    host.configure(work="", other="").start()
    host.submit([task("k", 1, f"down:{down}"), task("k", 2), {**task("j", 3), "handler": "other"}])
    host.wait_done(1)  # the other handler's
    wait_until(lambda: host.starts("k").count(1) >= 3, "it is tried again")
    down.unlink()
    host.wait_done(3)
    assert all(e.attempt == 1 for e in host.ledger())


def test_one_dead_destination_of_nine_stops_none_of_the_others(host, tmp_path):
    away = tmp_path / "away"
    away.touch()
    host.configure(shards=2, work='threads = 2; later = { wait = "50ms"; };').start()
    keys = [f"k{k}" for k in range(9)]
    tasks = [task(key, 100 * k + n, f"away:{away}" if (k, n) == (0, 0) else "") for n in range(5) for k, key in enumerate(keys)]
    first = host.submit_one(tasks[0])
    host.submit(tasks[1:])
    host.wait_done(40)
    wait_until(lambda: host.starts("k0").count(0) >= 3, "it is tried again")
    wait_until(lambda: "the handler said later: it is away" in host.cli("key", "k0"), "the key says why it waits")
    wait_until(lambda: "the handler said later: it is away" in history(host, first).get("waits_for", ""), "so does the task")
    before = history(host, first)
    assert before["attempts"] == 0 and [e["kind"] for e in before["history"]] == ["later"]
    assert "event=later handler=work" in host.log()
    host.kill()
    host.start()
    wait_until(lambda: history(host, first)["laters"] > before["laters"], "it counts on after a takeover")
    away.unlink()
    host.wait_done(45)
    assert all(e.attempt == 1 for e in host.ledger())
    check_ledger(host.ledger(), by_key(tasks))


def test_later_is_a_retry_beyond_its_maximum(host, tmp_path):
    host.configure(shards=1, work='later = { max = 2; wait = "10ms"; };').start()
    (tmp_path / "away").touch()
    host.submit([task("k", 1, f"away:{tmp_path}/away"), task("k", 2)])
    host.wait_done(1)
    assert host.starts("k") == [1] * 6 + [2]
    dead = json.loads(host.cli("dead", "list", "--json").splitlines()[0])
    assert (dead["attempts"], dead["laters"], dead["reason"]) == (4, 2, "exhausted")
    assert dead["history"][-1]["text"] == "LATER counts as RETRY beyond later.max, which is 2: it is away"
    wait_until(lambda: json.loads(host.cli("status", "--json"))["handlers"][0]["later"] == 6, "all of them are counted")


def test_a_handler_that_is_down_stops_nobody_else(host, tmp_path):
    """More of its tasks wait than a shard's window holds."""
    down = tmp_path / "down"
    down.touch()
    host.configure(shards=1, work="", other="").start()
    waiting = [task(f"k{n}", n, f"down:{down}") for n in range(3000)]
    host.submit([*waiting, *({**task(f"o{n}", 5000 + n), "handler": "other"} for n in range(100))])
    host.wait_done(100)
    down.unlink()
    host.wait_done(3100)
    assert all(e.attempt == 1 for e in host.ledger())


def test_an_unknown_handlers_tasks_wait_and_stop_nobody(host):
    host.configure(shards=1, work="processes = 2;").start()
    unknown = [{**task(f"u{n}", n), "handler": "nobody"} for n in range(1500)]
    first = host.submit_one(unknown[0])
    host.submit([*unknown[1:], task("u0", 2000), task("k", 2001), task("k", 2002)])
    host.wait_done(2)
    assert host.starts() == [2001, 2002]
    assert host.rows("dead") == []
    assert history(host, first)["stored"] == "parked"


# --- what people ask for ----------------------------------------------------------------------------------------------


def test_a_running_task_can_be_cancelled(host):
    host.configure(work="threads = 2;").start()
    running, waiting, _ = (host.submit_one(task("k", *t)) for t in ((1, "wait:/nowhere"), (2,), (3,)))
    host.wait_started(1)
    host.cli("task", "cancel", waiting)
    host.cli("task", "cancel", running)
    host.wait_done(1)
    assert host.starts() == [1, 3]
    assert {row["task_id"]: row["reason"] for row in host.rows("dead")} == {running: "cancelled", waiting: "cancelled"}


def test_a_key_can_be_held(host, tmp_path):
    host.configure(work="threads = 2;").start()
    host.submit([task("k", 1, f"wait:{tmp_path}/go"), task("k", 2), task("k", 3)])
    host.wait_started(1)
    host.cli("key", "hold", "k")
    (tmp_path / "go").touch()
    host.wait_done(1)
    host.submit([task("j", 4)])
    host.wait_done(2)
    assert host.starts("k") == [1]
    host.cli("key", "unhold", "k")
    host.wait_done(4)
    assert host.starts("k") == [1, 2, 3]


def test_a_handler_knows_its_tasks_lane_and_history(host, tmp_path):
    host.configure(work="").start()
    told = host.cli("submit", "work", "--lane", "high", "--attempts", 7, "--wait", "1 retry:1 tell")
    assert told == "lane 1 attempt 2 of 7 crashes 0"
    told = host.cli("submit", "work", "--lane", "low", "--wait", f"1 crash-once:{tmp_path}/crashed tell")
    assert told == "lane -1 attempt 1 of 4 crashes 1"


def test_wait_returns_the_result_or_the_failure(host):
    host.configure(work="").start()
    assert host.cli("submit", "work", "--key", "k", "--wait", "7 result") == "7 result"
    assert host.cli("submit", "work", "--key", "k", "--wait", "7 reject", code=1) == ""


def test_follow_ups_come_with_the_outcome(host):
    host.configure(work="processes = 2;").start()
    host.submit([task("k", 1, "submit:a submit:b retry:1"), task("k", 2)])
    host.wait_done(4)
    assert host.starts("a") == host.starts("b") == [1]
    assert host.starts("k") == [1, 1, 2]


def test_a_checkpoint_survives_a_crash(host):
    host.configure(work="crashes = 2;").start()
    host.submit([task("k", 1, "save:half-way crash"), task("k", 2)])
    host.wait_done(1)
    assert [e.checkpoint for e in host.ledger() if e.number == 1] == ["-", "half-way"]


# --- start and end ----------------------------------------------------------------------------------------------------


def test_it_says_what_it_runs_and_where(host):
    host.configure(shards=4, work="").start()
    log = host.log()
    assert f"file={host.config}" in log and f"sqlite:{host.folder}/q.db" in log
    assert "shards=4" in log and "driver=sqlite" in log and "durability=" in log
    assert host.stop() == 0
    assert "event=stopping signal=TERM" in host.log() and "event=stopped" in host.log()


def test_sigint_stops_it_too(host):
    host.configure(work="").start()
    host.signal(signal.SIGINT)
    assert host.wait() == 0


def test_sigterm_right_after_the_start(host, chance):
    host.configure(shards=64, work="")
    for _ in range(10):
        host.start(is_ready=False)
        wait_until(lambda: "event=config" in host.log(), "it has begun")
        time.sleep(chance.random() * 0.05)
        assert host.stop() in (0, -signal.SIGTERM)  # before it listens for signals it just ends


def test_sigterm_lets_running_tasks_end(host, tmp_path):
    host.configure(work="threads = 2;").start()
    host.submit([task("k", 1, f"wait:{tmp_path}/go"), task("k", 2)])
    host.wait_started(1)
    host.signal()
    host.wait_for_log("event=stopping")
    # Stop is not raised: it may take its time.
    assert host.process.poll() is None
    (tmp_path / "go").touch()
    assert host.wait() == 0
    assert [e.outcome for e in host.ledger() if e.what == "end"] == [0]
    assert (host.sum("done"), host.starts()) == (1, [1])
    host.start()
    host.wait_done(2)
    assert host.starts() == [1, 2]


def test_a_second_sigterm_cuts_short_at_no_cost(host, tmp_path):
    host.configure(work="threads = 2;").start()
    host.submit([task("k", 1, f"deaf:{tmp_path}/go"), task("k", 2)])
    host.wait_started(1)
    host.signal()
    host.wait_for_log("event=stopping")
    host.signal()
    assert host.wait() == 0
    (tmp_path / "go").touch()
    host.start()
    host.wait_done(2)
    assert host.starts() == [1, 1, 2]
    assert all(e.attempt == 1 for e in host.ledger())
    assert host.rows("dead") == []


def test_drain_ends(host, tmp_path):
    host.configure(change=lambda text: text.replace('"20s"', '"200ms"'), work="").start()
    host.submit([task("k", 1, f"deaf:{tmp_path}/go")])
    host.wait_started(1)
    assert host.stop() == 0
    assert host.sum("done") == 0


@pytest.mark.parametrize("signals", [1, 3])
def test_a_store_that_does_not_answer_cannot_keep_it_from_stopping(host, tmp_path, signals):
    drain = '"200ms"' if signals == 1 else '"1h"'
    host.configure(shards=4, change=lambda text: text.replace('"20s"', drain), work="threads = 2;").start()
    host.submit([task("k", 1, f"wait:{tmp_path}/go"), task("j", 2, f"wait:{tmp_path}/go")])
    host.wait_started(2)
    with contextlib.closing(sqlite3.connect(host.folder / "q.db", isolation_level=None, timeout=30)) as other:
        other.execute("BEGIN IMMEDIATE")
        (tmp_path / "go").touch()
        wait_until(lambda: [e.what for e in host.ledger()].count("end") == 2, "they have ended")
        for n in range(signals):
            host.signal()
            host.wait_for_log(["event=stopping", "event=cut-short", "event=gave-up"][n])
        assert host.wait() == 1
        other.execute("ROLLBACK")
    assert "shards were not released" in host.log() and "2 outcomes were not recorded" in host.log()
    host.start()
    host.wait_done(2)
    assert all(e.attempt == 1 for e in host.ledger()) and host.rows("dead") == []


def test_a_wrong_setting_starts_nothing(host):
    host.configure(change=lambda text: text.replace("drain", "drian"), work="").start(is_ready=False)
    assert host.wait() == 1
    assert "runtime.cfg:" in host.log() and "drain" in host.log()
    assert not (host.folder / "q.db").exists()


def test_another_number_of_shards_is_refused(host):
    host.configure(shards=8, work="").start()
    assert host.stop() == 0
    host.configure(shards=16, work="").start(is_ready=False)
    assert host.wait() == 1
    assert "8" in host.log() and "16" in host.log()


# --- death ------------------------------------------------------------------------------------------------------------


KILLS = 50 if os.environ.get("QUIVER_TEST_LONG") else 20


def test_kill_nine_again_and_again(host, chance):
    """Every task is done once in the store, per key in order, never two at once; none is dead."""
    tasks = [task(f"k{chance.randrange(200)}", n, f"us:{chance.randrange(16000)}") for n in range(400 * KILLS)]
    host.configure(shards=8, work="processes = 4; threads = 4;").start()
    host.submit(tasks)
    kills = 0
    while kills < KILLS and host.sum("done") < len(tasks):
        # Somebody else has to let go first: its guard, or its lease.
        wait_until(lambda: host.log().count("event=acquired") == 8, "it owns every shard")
        time.sleep(chance.random() * 0.25)
        host.kill()
        kills += 1
        host.start()
    host.wait_done(len(tasks), 120)
    assert kills == KILLS
    assert host.stop() == 0
    check_ledger(host.ledger(), by_key(tasks), may_repeat=True)
    assert host.rows("dead") == [] and host.rows("log") == [] and host.rows("side") == []
    host.cli("fsck")


def test_what_a_dead_host_staged_is_swept(quiver, host):
    """A living host's folder is left alone."""
    host.configure(change=lambda text: 'host = { name = "a"; };' + text, work="").start()
    second = Host(quiver, host.plugins, host.folder)
    second.config, second.logs = host.folder / "second.cfg", [host.logs[0], host.logs[0]]
    second.config.write_text(host.config.read_text().replace('name = "a"', 'name = "b"'))
    staged = lambda: sorted((host.folder / "state").glob("staging-*"))
    try:
        (first,) = staged()
        second.start()
        assert len(staged()) == 2 and first in staged()
        host.kill()
        second.kill()
        assert len(staged()) == 2 and all(any(folder.iterdir()) for folder in staged())
        host.start()
        (last,) = staged()
        assert last != first
        host.stop()
        assert staged() == []
    finally:
        second.close()


def test_a_hosts_death_is_not_charged_to_its_tasks(host, tmp_path):
    host.configure(shards=1, work="crashes = 1;").start()
    running = host.submit_one(task("k", 1, f"deaf:{tmp_path}/go"))
    host.submit([task("k", 2), task("j", 3)])
    host.wait_started(1)
    host.kill()
    host.start()
    wait_until(lambda: host.starts("k") == [1, 1], "it runs again")
    assert history(host, running)["interruptions"] == 1
    (tmp_path / "go").touch()
    host.wait_done(3)
    assert host.starts("k") == [1, 1, 2]
    assert host.rows("dead") == [] and all(e.attempt == 1 for e in host.ledger())


def test_a_checkpoint_survives_host_and_runner(host, tmp_path):
    """It is committed while the task runs, at its own pace."""
    host.configure(shards=1, work="threads = 2;").start()
    host.submit([task("k", 1, f"save:one save:half-way deaf:{tmp_path}/go"), task("j", 2)])
    wait_until(lambda: any(b"half-way" in (row["note"] or b"") for row in host.rows("log")), "the store has it")
    assert host.sum("done") <= 1 and host.process.poll() is None
    host.kill()
    (tmp_path / "go").touch()
    host.start()
    host.wait_done(2)
    assert [e.checkpoint for e in host.ledger() if e.what == "start" and e.number == 1] == ["-", "half-way"]
    assert all(e.attempt == 1 for e in host.ledger())


def test_a_host_that_dies_is_no_tasks_crash(host):
    """Four deaths make it a suspect, alone; from then on it waits ever longer.  Neither it nor anyone else is charged."""
    host.configure(shards=2, work="threads = 4; crashes = 1;").start()
    killer = host.submit_one(task("killer", 1, "regicide"))
    host.submit([task(f"k{n}", 10 + n, "us:3000") for n in range(100)])
    for _ in range(5):
        wait_until(lambda: host.process.poll() is not None, "the host dies")
        host.start()
    host.wait_for_log("event=host-died-alone")
    host.wait_done(100)
    assert host.rows("dead") == [] and all(e.attempt == 1 for e in host.ledger())
    found = history(host, killer)
    assert (found["crashes"], found["attempts"], found["interruptions"]) == (0, 0, 5)
    assert "its host died while it ran alone" in json.dumps(found)
    host.cli("task", "cancel", killer)
    wait_until(lambda: [row["reason"] for row in host.rows("dead")] == ["cancelled"], "it is taken away")


# --- what people want -------------------------------------------------------------------------------------------------


def test_a_paused_handler_starts_nothing_and_holds_up_nobody(host):
    tasks = [task(f"k{n}", n) for n in range(50)]
    host.configure(work="", other="").start()
    host.cli("pause", "work", "--reason", "the database is down")
    host.wait_for_log("event=paused handler=work")
    host.submit(tasks)
    others = [{"handler": "other", "key": f"o{n}", "payload": str(n)} for n in range(50)]
    host.submit(others)
    host.wait_done(len(others))
    assert not host.starts("k0")
    assert "its handler is paused" in host.cli("key", "k0")
    host.cli("resume", "work")
    host.wait_done(len(tasks) + len(others))
    check_ledger([e for e in host.ledger() if e.key.startswith("k")], by_key(tasks))


def test_a_host_that_starts_later_finds_the_pause(host):
    host.configure(work="").start()
    host.cli("pause")
    host.stop()
    host.start()
    host.wait_for_log("event=paused handler=work")
    host.submit([task("k", 1)])
    wait_until(lambda: "its handler is paused" in host.cli("key", "k"), "the key waits")
    host.cli("resume")
    host.wait_done(1)


def test_a_folder_that_is_moved_is_taken_along(quiver, root, tmp_path):
    """Store and agreements stand in it; its path is not what they are recognised by."""
    first = tmp_path / "first"
    first.mkdir()
    host = Host(quiver, root / "build" / "test-plugins", first)
    host.configure(work="").start()
    assert host.stop() == 0
    moved = tmp_path / "moved"
    first.rename(moved)
    again = Host(quiver, root / "build" / "test-plugins", moved)
    try:
        again.configure(work="").start()
        again.submit([task("k", "1")])
        wait_until(lambda: again.sum("done") == 1, "it runs on")
    finally:
        again.close()


@pytest.mark.parametrize("number", (signal.SIGUSR1, signal.SIGHUP))
def test_a_renamed_log_file_is_opened_anew(host, number):
    path = host.folder / "host.log"
    host.configure(work="", change=lambda text: text.replace('level = "debug";', f'level = "debug"; file = "{path}";'))
    host.start(is_ready=False)
    wait_until(lambda: path.exists() and "event=running" in path.read_text(), "it runs, and says so in its file")
    assert path.stat().st_mode & 0o777 == 0o600
    path.rename(host.folder / "host.log.1")
    host.signal(number)
    wait_until(lambda: path.exists() and "opened anew" in path.read_text(), "it goes on in a new file")
    host.submit([{"handler": "work", "key": "k", "payload": "1"}])
    host.wait_done(1)
    assert host.stop() == 0
    assert "event=stopped" in path.read_text() and "event=stopped" not in (host.folder / "host.log.1").read_text()
    assert host.log() == ""


def test_what_the_guard_says_is_in_the_new_log_file_too(host):
    path = host.folder / "host.log"
    host.configure(work="", change=lambda text: text.replace('level = "debug";', f'level = "debug"; file = "{path}";'))
    host.start(is_ready=False)
    wait_until(lambda: path.exists() and "event=running" in path.read_text(), "it runs, and says so in its file")
    path.rename(host.folder / "host.log.1")
    host.signal(signal.SIGUSR1)
    wait_until(lambda: path.exists() and "opened anew" in path.read_text(), "it goes on in a new file")
    host.kill()
    wait_until(lambda: "event=guard" in path.read_text(), "the guard says what it did")
    assert "event=guard" not in (host.folder / "host.log.1").read_text()


def test_usr1_does_not_end_a_host_that_logs_to_standard_error(host):
    host.configure(work="").start()
    host.signal(signal.SIGUSR1)
    host.wait_for_log("log.file names a file")
    assert host.stop() == 0
