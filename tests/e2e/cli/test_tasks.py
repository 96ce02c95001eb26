"""quiver tasks, task and key: where each task is and why it does not run."""
import json
import re
import subprocess

from hosts import wait_until


def task(key, payload, handler="work"):
    return {"handler": handler, "key": key, "payload": payload}


def tasks(host, *words):
    return [json.loads(line) for line in host.cli("tasks", "--json", *words).splitlines()]


def named(name):
    return lambda text: f'host = {{ name = "{name}"; }};\n' + text


def test_what_runs_says_where_since_when_and_how_far(host, tmp_path):
    host.configure(shards=4, change=named("a"), work="threads = 2;").start()
    host.submit([task("k", f"1 progress:3:8 wait:{tmp_path}/go"), task("k", "2"), task("j", f"3 wait:{tmp_path}/go")])
    wait_until(lambda: len(tasks(host, "--state", "running")) == 2, "both run for long enough to be told of")
    one = next(t for t in tasks(host, "--state", "running") if t["key"] == "k")
    runner = int(open(f"/proc/{one['pid']}/stat").read().split()[0])
    assert one["host"] == "a" and runner == one["pid"] != host.process.pid and one["generation"] == 1 and len(one["hash"]) == 16
    wait_until(lambda: any(t.get("progress") == [3, 8] for t in tasks(host, "--state", "running", "--key", "k")), "it says how far")
    said = host.cli("task", one["id"])
    assert "state        running\n" in said and f"on a, pid {one['pid']}, generation 1, for " in said and "progress 3 of 8 (38 %)" in said
    behind, = tasks(host, "--state", "waiting")
    assert behind["key"] == "k" and behind["behind"] == one["id"] and behind["claimed_by"] == "a"
    assert f"waits for    the task before it in its key, {one['id']}\n" in host.cli("task", behind["id"])
    said = host.cli("key", "k")
    assert "waits for    its first task, which runs\n" in said and f"first task   {one['id']}\n" in said
    assert "waiting      1 task\n" in said
    assert [t["key"] for t in tasks(host, "--host", "b")] == []
    assert len(tasks(host, "--host", "a")) == 3 and len(tasks(host, "--handler", "other")) == 0
    host.kill()
    wait_until(lambda: tasks(host, "--state", "running") == [], "nothing runs without a host")
    assert "waits for    a host: none owns shard " in host.cli("task", one["id"])


def test_what_waits_says_for_what(host, tmp_path):
    (tmp_path / "down").touch()
    host.configure(shards=2, change=lambda text: named("a")(text).replace('backoff = "20ms"; max = "100ms"', 'backoff = "1h"; max = "1h"'),
                   work="", other="", seated="").start()
    host.cli("pause", "other", "--reason", "moving")
    host.submit([task("p", "1", "other"), task("u", "2", "nobody"), task("d", f"3 down:{tmp_path}/down"), task("r", "4 retry:9", "seated"),
                 task("l", "5 delay", "seated")])
    host.cli("submit", "work", "--key", "later", "--delay", "1h", "x")
    host.cli("key", "hold", "h", "--reason", "look at it")
    host.submit([task("h", "6", "seated")])
    wait_until(lambda: {t["key"]: t["state"] for t in tasks(host)}.items() >= {
        "p": "waiting", "u": "waiting", "d": "waiting", "r": "parked", "h": "held", "later": "delayed"}.items(), "each has its state")

    def waits(key, words):
        return lambda: any(words in t.get("waits_for", "") for t in tasks(host, "--key", key))
    for key, words in (("p", "other is paused: moving (quiver resume other)"), ("u", "no host serves nobody"),
                       ("d", "work is unavailable on a"), ("r", "the retry of its key in "), ("h", "a person, who holds its key")):
        wait_until(waits(key, words), f"{key}: {words}")
    wait_until(lambda: "it is down" in host.cli("key", "d"), "what it said is shown")
    assert "other is paused: moving" in host.cli("key", "p") and "waiting      1 task\n" in host.cli("key", "p")
    assert [t["key"] for t in tasks(host, "--state", "held")] == ["h"] and [t["key"] for t in tasks(host, "--state", "parked")] == ["r"]
    assert {t["key"] for t in tasks(host, "--state", "waiting")} == {"p", "u", "d", "r", "h"}
    assert [t["key"] for t in tasks(host, "--error", "not yet")] == ["r"]
    assert tasks(host, "--older", "1h") == []


def test_a_history_says_where_each_start_was(host):
    host.configure(shards=2, change=named("a"), work="").start()
    host.submit([task("k", "1 retry:9")])
    wait_until(lambda: host.rows("dead"), "it is dead")
    dead, = tasks(host, "--state", "dead")
    assert [(e["kind"], e["text"], e["host"], e["generation"]) for e in dead["history"]] == [("attempt", "not yet", "a", 1)] * 4
    assert all(e["pid"] > 0 and len(e["hash"]) == 8 for e in dead["history"])
    assert json.loads(host.cli("status", "--json"))["dead"] == [
        {"handler": "work", "reason": "exhausted", "error": "not yet", "tasks": 1}]


def test_a_list_is_bounded_and_says_how_far_it_looked(host):
    host.configure(shards=2, work="").start()
    host.stop()
    host.submit([task(f"k{n}", str(n)) for n in range(300)])
    said = host.cli("tasks", "--limit", "7")
    assert len(said.splitlines()) == 9 and "… the first 7 are shown; 7 of 300 tasks were looked at. More: --limit" in said
    assert len(tasks(host, "--limit", "1000")) == 300
    assert "no such task; 300 were looked at" in host.cli("tasks", "--handler", "nobody")
    wrong = subprocess.run([host.quiver, "tasks", "-c", host.config, "--state", "sad"], capture_output=True, text=True, timeout=60)
    assert wrong.returncode == 2 and "waiting" in wrong.stderr


def test_what_became_of_a_done_task_is_known_elsewhere_and_later(host):
    host.configure(shards=2, change=named("a"), work="").start()
    ident = host.submit_one(task("k", "1 retry:1"))
    host.wait_done(1)

    def ask(*words):
        return subprocess.run([host.quiver, "task", *words, "-c", host.config], capture_output=True, text=True, timeout=120)

    def fails(*words):
        done = ask(*words)
        assert done.returncode == 1 and not done.stdout
        return done.stderr

    def known():
        return json.loads(host.cli("task", ident, "--json"))
    wait_until(lambda: ask(ident).returncode == 0, "the host has the answer to its advance")
    first = known()
    assert first["state"] == "done" and {row["host"] for row in host.rows("shard")} == {"a"}
    assert first["host"] == "a" and first["attempt"] == 2 and first["generation"] == 1 and first["handler"] == "work"
    assert first["pid"] != host.process.pid and len(first["hash"]) == 8 and "result_bytes" not in first
    said = host.cli("task", ident)
    assert "state        done " in said and f"on a, attempt 2, pid {first['pid']}, generation 1, plugin {first['hash']}, for " in said
    assert "was done" in fails("cancel", ident) and "its payload is gone" in fails(ident, "--payload")
    nobody = fails("x" + ident)
    assert "never was (a remembers the last 1000 that it did since 2" in nobody
    host.stop()
    here = known()  # from the store alone
    assert {**here, "at_ms": 0, "ago_ms": 0} == {**first, "at_ms": 0, "ago_ms": 0}
    host.start()
    later = host.submit_one(task("k", "2"))
    host.wait_done(2)
    host.stop()  # its document has taken the place of its predecessor's
    assert known()["pid"] == first["pid"] and json.loads(host.cli("task", later, "--json"))["attempt"] == 1


def test_a_delayed_task_has_a_time_that_a_person_can_change(host):
    host.configure(shards=4, work="").start()
    ids = {name: host.cli("submit", "work", "--key", name, *words, "1").strip() for name, words in {
        "far": ["--at", "2099-01-01T00:00:00Z"], "next": ["--delay", "1h"], "later": ["--delay", "2h"],
        "zone": ["--at", "2098-01-01 00:00:00+02:00"]}.items()}
    listed = tasks(host, "--state", "delayed", "--order", "due")
    assert [t["key"] for t in listed] == ["next", "later", "zone", "far"]
    assert [t["key"] for t in tasks(host, "--state", "delayed", "--order", "due", "--limit", "2")] == ["next", "later"]
    lines = host.cli("tasks", "--state", "delayed", "--order", "due", "--limit", "3").splitlines()
    assert lines[0].split() == ["due", "at", "in", "task", "handler", "key"] and lines[3].startswith("2097-12-31 22:00:00")
    assert "the first 3 are shown" in lines[-1]
    assert listed[3]["not_before_ms"] == 4070908800000
    said = host.cli("task", "reschedule", ids["later"], "--at", "2090-05-01T00:00:00Z")
    assert said == f"{ids['later']} is due at 2090-05-01 00:00:00.000Z\n"
    assert " rescheduled  to 2090-05-01 00:00:00.000Z\n" in host.cli("task", ids["later"])
    host.cli("task", "reschedule", ids["far"], "--delay", "0s")  # its owner is rung
    host.wait_done(1)
    assert host.starts("far") == [1]
    for words, why in (([ids["far"], "--delay", "1s"], "there is no task"), ([ids["next"]], "--at or --delay"),
                       ([ids["next"], "--at", "tomorrow"], "is not a time")):
        done = subprocess.run([host.quiver, "task", "reschedule", *words, "-c", host.config], capture_output=True, text=True, timeout=60)
        assert done.returncode in (1, 2) and why in done.stderr
    assert "--state delayed" in subprocess.run([host.quiver, "tasks", "--order", "due", "-c", host.config], capture_output=True,
                                               text=True, timeout=60).stderr


def test_a_waiting_task_changes_its_lane(host):
    """Behind one that occupies the only seat: what is claimed goes through its owner."""
    host.configure(shards=1, work="processes = 1; threads = 1;").start()
    gate = host.folder / "gate"
    host.submit_one(task("first", f"0 wait:{gate}"))
    host.wait_started(0)
    ids = [host.cli("submit", "work", str(n)).strip() for n in (1, 2, 3)]
    keyed = host.submit_one(task("k", "4"))
    late = host.cli("submit", "work", "--delay", "1h", "5").strip()
    said = json.loads(host.cli("task", "move", ids[2], "--lane", "high", "--json"))
    assert said["id"] == ids[2] and said["lane"] == "high"
    assert host.cli("task", "move", late, "--lane", "low") == f"{late} is in low\n"
    for words, why in (([keyed, "--lane", "low"], "--force"), ([late, "--lane", "low"], "in that lane already"),
                       ([late], "--lane"), ([late, "--lane", "top"], "is no lane"), (["x-0", "--lane", "low"], "there is no task")):
        done = subprocess.run([host.quiver, "task", "move", *words, "-c", host.config], capture_output=True, text=True, timeout=60)
        assert done.returncode in (1, 2) and why in done.stderr, done.stderr
    host.cli("task", "move", keyed, "--lane", "low", "--force")
    for ident, lane in ((ids[2], "high"), (keyed, "low"), (late, "low")):
        wait_until(lambda i=ident, to=lane: re.search(rf" moved +{to}\n", host.cli("task", i)), f"{ident} moved to {lane}")
        assert json.loads(host.cli("task", ident, "--json"))["lane"] == lane
    host.cli("fsck")
    gate.touch()
    host.wait_done(5)
    assert host.starts() == [0, 3, 1, 2, 4]
    host.cli("fsck")
