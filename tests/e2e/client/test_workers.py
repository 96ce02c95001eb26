"""Workers outside: they take tasks of a remote handler over HTTP, keep them by heartbeats, and finish them at any host."""
import base64
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile

import pytest

from hosts import wait_until
from worker_hosts import Connection, WorkerHost, free_port


@pytest.fixture
def make(quiver, root):
    """Hosts that share a file, in a folder with a short name: a socket's path is short."""
    made = []
    with tempfile.TemporaryDirectory(prefix="quiver-") as folder:

        def add(name):
            made.append(WorkerHost(quiver, root / "build" / "test-plugins", pathlib.Path(folder), name))
            return made[-1]

        yield add
        for host in made:
            host.close()


@pytest.fixture(scope="module")
def one(quiver, root):
    """A host that the tests of this file share."""
    with tempfile.TemporaryDirectory(prefix="quiver-") as folder:
        host = WorkerHost(quiver, root / "build" / "test-plugins", pathlib.Path(folder), "one")
        port = free_port()
        host.url = f"http://127.0.0.1:{port}"
        host.write(ttl="2s", change=lambda text: f'http = {{ listen = "127.0.0.1:{port}"; }};' + text).start()
        yield host
        host.close()


def pair(make, ttl):
    """Two hosts, each of which owns two of four shards."""
    hosts = [make(name).write(ttl=ttl).start() for name in ("a", "b")]
    wait_until(lambda: all(len(host.shards()) == 2 for host in hosts), "each has its share")
    return hosts


def test_a_worker_does_what_a_plugin_could(one):
    payload = base64.b64encode(bytes(range(256))).decode()
    one.submit([{"handler": "mail", "key": "w1", "payload_base64": payload, "headers": {"tenant": "7"}}])
    task = one.poll()
    assert (task["key"], task["payload_base64"], task["headers"]) == ("w1", payload, {"tenant": "7"})
    assert task["attempt"] == 1 and 0 < task["remaining_ms"] <= 1800 and task["ttl_ms"] == 2000
    status, said = one.heartbeat(task, progress=[3, 10], checkpoint="row 3")
    assert status == 200 and said["stop"] is False and 0 < said["remaining_ms"] <= 1800
    assert one.finish(task, "retry", error="no route", retry_after="0s") == (200, {"id": task["id"]})
    again = one.poll(worker="bob")
    assert (again["id"], again["attempt"], again["checkpoint"]) == (task["id"], 2, "row 3")
    history = one.task(task["id"])["history"][0]
    assert (history["kind"], history["text"], history["worker"], history["host"]) == ("attempt", "no route", "alice", "one")
    found = one.wait_task(again["id"], lambda t: one.heartbeat(again) and t.get("state") == "running", "it is shown as running")
    assert (found["worker"], found["host"]) == ("bob", "one") and found["until_ms"] > found["since_ms"]
    assert "on worker bob (via one)" in one.cli("task", task["id"])
    assert one.finish(again, result="sent", follow_ups=[{"handler": "next", "key": "n", "payload": {"to": 1}}])[0] == 200
    followed = one.poll(handler="next")
    assert (followed["key"], followed["payload"]) == ("n", '{"to":1}')
    assert one.finish(followed)[0] == 200
    assert b"sent" in [row["data"] for row in one.rows("result")]
    done = one.task(task["id"])
    assert (done["state"], done["worker"]) == ("done", "bob")


def test_keys_keep_their_order_and_run_one_at_a_time(one):
    one.submit([{"handler": "mail", "key": "w2", "payload": str(i)} for i in range(3)])
    for i in range(3):
        task = one.poll()
        assert task["payload"] == str(i)
        assert one.poll(worker="bob", wait="0s") is None
        assert one.finish(task)[0] == 200


def test_nine_tasks_and_two_pulling_consumers(one):
    """Six passes each: nine tasks, none twice, and three passes find nothing."""
    one.submit([{"handler": "mail", "payload": str(i)} for i in range(9)])

    def consume(name):
        found = []
        for _ in range(6):
            task = one.poll(worker=name, wait="1s")
            found.append(task and task["payload"])
            assert not task or one.finish(task, result=task["payload"])[0] == 200
        return found

    with concurrent.futures.ThreadPoolExecutor() as pool:
        passes = sum(pool.map(consume, ["first", "second"]), [])
    assert sorted(filter(None, passes)) == [str(i) for i in range(9)]
    assert passes.count(None) == 3


def test_requests_that_are_wrong_are_refused_by_name(one):
    def refused(path, body=None):
        status, said = one.ask("POST", path, body)
        return status, said["detail"]

    assert refused("/v1/work/mail")[0] == 400
    assert refused("/v1/work/mail?worker=a%20b")[0] == 400
    assert refused("/v1/work/mail?worker=a&wait=2m") == (400, "wait: 2m; at most 60s")
    assert refused("/v1/work/nobody?worker=a")[0] == 404
    assert refused("/v1/work/mail/nonsense/outcome", {})[0] == 404
    assert "fence" in refused("/v1/work/mail/x-1/outcome", {"outcome": "done"})[1]
    assert "did you mean result" in refused("/v1/work/mail/x-1/outcome", {"fence": "1.1.1", "outcome": "done", "resullt": 1})[1]
    assert refused("/v1/work/mail/x-1/outcome", {"fence": "1.1.1", "outcome": "done"})[0] == 409


def test_no_task_goes_to_a_worker_that_has_left(one):
    for _ in range(3):
        gone = Connection(one.socket)
        gone.request("POST", "/v1/work/mail?worker=gone&wait=60s")
        gone.close()
    number = one.submit_one({"handler": "mail", "key": "w3", "payload": "x"})
    task = one.poll()
    assert (task["id"], task["attempt"]) == (number, 1)
    assert one.task(number)["interruptions"] == 0
    assert one.finish(task)[0] == 200


def test_a_cancelled_task_is_told_to_stop(one):
    number = one.submit_one({"handler": "mail", "key": "w4", "payload": "x"})
    task = one.poll()
    one.cli("task", "cancel", number)
    wait_until(lambda: one.heartbeat(task)[1].get("stop"), "its heartbeat says so")
    assert one.finish(task, "retry", error="stopped")[0] == 200
    found = one.wait_task(number, lambda t: t["state"] == "dead", "it is dead")
    assert found["reason"] == "cancelled"


def test_later_parks_the_key_at_no_cost(one):
    number = one.submit_one({"handler": "mail", "key": "w5", "payload": "x"})
    assert one.finish(one.poll(), "later", retry_after="1ms", error="not yet")[0] == 200
    task = one.poll()
    assert (task["id"], task["attempt"]) == (number, 1)
    assert one.finish(task)[0] == 200


def test_the_fourth_silence_in_a_row_is_a_crash(make):
    host = make("host").write(ttl="200ms").start()
    number = host.submit_one({"handler": "mail", "key": "k", "payload": "x"})
    for i in range(4):
        task = host.poll(wait="30s")
        assert (task["id"], task["attempt"]) == (number, 1)
    found = host.wait_task(number, lambda t: t["crashes"] == 1, "a crash")
    assert found["interruptions"] == 3
    assert [event["kind"] for event in found["history"]] == ["interruption"] * 3 + ["crash"]
    assert host.finish(task)[0] == 409
    for crashes in (2, 3):
        host.poll(wait="30s")
        host.wait_task(number, lambda t: t["crashes"] == crashes, "each one after it is one, too")
    assert host.wait_task(number, lambda t: t["state"] == "dead", "it has used up its crashes")["reason"] == "crashed"


def test_a_host_that_stops_leaves_its_workers_alone(make):
    """The task is the worker's over a restart: nobody else gets it, and its outcome is taken."""
    host = make("host").write(ttl="30s").start()
    first = host.submit_one({"handler": "mail", "key": "k", "payload": "1"})
    task = host.poll()
    assert host.stop() == 0
    assert "event=cut-short" not in host.log()  # nobody waits for what a worker has
    host.start()
    second = host.submit_one({"handler": "mail", "key": "k", "payload": "2"})
    host.wait_for_log("event=adopted")
    assert host.poll(worker="bob", wait="0s") is None
    assert host.heartbeat(task)[0] == 200
    assert host.finish(task)[0] == 200
    after = host.poll(worker="bob")
    assert (task["id"], after["id"]) == (first, second)
    assert after["fence"].split(".")[0] > task["fence"].split(".")[0]
    assert host.finish(after)[0] == 200


def test_any_host_takes_what_a_worker_says_and_only_once(make):
    hosts = pair(make, ttl="30s")
    keys = [host.own_key() for host in hosts]
    for i, (owner, other) in enumerate((hosts, hosts[::-1])):
        number = owner.submit_one({"handler": "mail", "key": keys[i], "payload": "x"})
        task = owner.poll()
        assert task["id"] == number
        status, said = other.heartbeat(task, checkpoint="half")
        assert status == 200 and said["remaining_ms"] > 0
        owner.wait_task(number, lambda t: t.get("checkpoint") == "half", "its owner has heard of it")
        assert other.finish(task, result="through the other")[0] == 202
        wait_until(lambda: owner.sum("done") == i + 1, "its owner has applied it")
        assert other.finish(task)[0] == 409
        assert owner.finish(task)[0] == 409
        retried = owner.submit_one({"handler": "mail", "key": keys[i], "payload": "x"})
        task = owner.poll()
        assert other.finish(task, "reject", error="no")[0] == 202
        assert owner.wait_task(retried, lambda t: t["state"] == "dead", "dead")["reason"] == "rejected"


def test_the_owner_dies_between_start_and_outcome(make):
    """kill -9: the new owner finds the mark; nobody starts the key before its time, and the outcome is taken."""
    owner, other = pair(make, ttl="4s")
    keys = [owner.own_key("k"), owner.own_key("l")]
    numbers = [owner.submit_one({"handler": "mail", "key": key, "payload": "x"}) for key in keys]
    tasks = {task["id"]: task for task in (owner.poll(), owner.poll())}
    assert set(tasks) == set(numbers)
    owner.kill()
    wait_until(lambda: other.log().count("event=adopted") == 2, "the new owner has found both")
    assert other.finish(tasks[numbers[0]])[0] == 200
    until = other.until()
    again = other.poll(worker="bob", wait="30s")
    assert again["id"] == numbers[1]
    assert other.until() - 4000 >= until  # it was started when the time that was recorded was over
    assert other.finish(tasks[numbers[1]])[0] == 409
    assert other.finish(again)[0] == 200
    assert other.sum("done") == 2


def test_reload_changes_a_handler_while_workers_have_its_tasks(make):
    host = make("host").write(ttl="30s").start()
    number = host.submit_one({"handler": "mail", "key": "k", "payload": "x"})
    task = host.poll()
    host.write(ttl="5s")
    host.cli("reload", "--wait")
    assert host.poll(handler="next", wait="0s") is None
    host.write(change=lambda text: text.replace("  mail = {", "  post = {"))
    host.cli("reload", "--wait")
    assert host.ask("POST", "/v1/work/mail?worker=a")[0] == 404
    assert host.finish(task)[0] == 200  # it was handed out before
    assert host.task(number)["state"] == "done"


def test_the_example_is_a_worker_with_the_standard_library_alone(one, root):
    """Over TCP, with a token."""
    example = root / "sdk" / "examples" / "worker.py"
    token = (one.folder / "state-one" / "http.token").read_text().split()[2]
    worker = subprocess.Popen([sys.executable, example, "mail", one.url], env={**os.environ, "QUIVER_TOKEN": token})
    try:
        assert one.cli("submit", "mail", "--key", "w6", "--wait-for", "30s", "hello").strip() == "HELLO"
    finally:
        worker.kill()
        worker.wait()
