"""Tasks that are merged while they wait: the last payload runs, once, in its place; who waits gets the outcome."""
import concurrent.futures
import json

import pytest

from hosts import wait_until
from http_hosts import Server


def task(number, words="", **more):
    return {"handler": "work", "key": "k", "payload": f"{number} {words}".strip(), "merge": True, **more}


@pytest.fixture(params=["host", "redis_host"])
def either(request):
    return request.getfixturevalue(request.param)


def submit(host, *tasks):
    host.submit(tasks)


def submit_one(host, payload):
    return host.cli("submit", "work", "--key", "k", "--merge", payload).strip()


def total(host, name):
    return json.loads(host.cli("status", "--json"))["totals"][name]


def merged_of(host, handler):
    handlers = json.loads(host.cli("status", "--json"))["handlers"]
    return sum(h["merged"] for h in handlers if h["name"] == handler)


def shown(host, number):
    return json.loads(host.cli("task", number, "--json"))


def test_while_one_runs_the_rest_becomes_one_and_who_waits_gets_its_outcome(either, tmp_path):
    host, gate = either.configure(shards=2, work="").start(), tmp_path / "gate"
    submit(host, task(1, f"wait:{gate}"))
    host.wait_started(1)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        words = ("submit", "work", "--key", "k", "--merge", "--wait-for", "60s", "2 result")
        waits = pool.submit(host.cli, *words)
        wait_until(lambda: total(host, "submitted") == 2, "somebody waits for the second")
        middle = submit_one(host, "3")
        submit(host, *[task(n) for n in range(4, 300)])
        last = submit_one(host, "300 result")
        wait_until(lambda: total(host, "merged") == 298, "all that wait are one")
        assert total(host, "in_flight") == 2
        gone = shown(host, last)
        assert gone["state"] == "merged" and shown(host, middle)["into"] == gone["into"]
        assert "merged into " + gone["into"] in host.cli("task", last)
        into = shown(host, gone["into"])
        assert into["merged"] == 298 and into["payload"] == "300 result"
        assert "298 merged into it, the last at " in host.cli("task", gone["into"])
        gate.touch()
        assert waits.result() == "300 result"
    assert host.starts() == [1, 300]
    wait_until(lambda: total(host, "done") == 2, "both are done")
    assert "298 were merged into others that waited" in host.cli("status")
    wait_until(lambda: merged_of(host, "work") == 298, "the host has said how many of that handler's")
    assert "event=merged into=" in host.log()
    host.cli("fsck")


def test_order_stays_with_those_that_are_not_merged(either, tmp_path):
    host, gate = either.configure(shards=2, work="").start(), tmp_path / "gate"
    submit(host, task(1, f"wait:{gate}"))
    host.wait_started(1)
    submit(host, task(2), task(3), task(4, merge=False), task(5), task(6))
    wait_until(lambda: total(host, "merged") == 2, "two pairs of neighbours")
    gate.touch()
    wait_until(lambda: total(host, "done") == 4, "what is left is done")
    assert host.starts() == [1, 3, 4, 6]


def test_a_killed_owner_loses_no_merge(either, tmp_path):
    host, gate = either.configure(shards=1, work="").start(), tmp_path / "gate"
    submit(host, task(1, f"deaf:{gate}"))
    host.wait_started(1)
    submit(host, *[task(n) for n in range(2, 60)])
    wait_until(lambda: total(host, "merged") == 57, "all that wait are one")
    host.kill()
    submit(host, task(60))
    gate.touch()
    host.start()
    wait_until(lambda: total(host, "waiting") == 0 and total(host, "running") == 0 and total(host, "done") >= 2, "all is done")
    starts = host.starts()
    assert starts[-1] == 60 and set(starts) <= {1, 59, 60}
    assert total(host, "done") + total(host, "merged") == total(host, "submitted") == 60
    host.cli("fsck")


def test_a_debounced_task_runs_once_for_all_that_come_meanwhile(either):
    host = either.configure(shards=2, work="").start()
    submit(host, task(1, debounce="1s", merge=False))
    wait_until(lambda: "debounced" in host.cli("key", "k"), "its key waits for others")
    submit(host, *[task(n, debounce="1s") for n in range(2, 100)])
    wait_until(lambda: total(host, "done") >= 1 and total(host, "done") + total(host, "merged") == 99, "all is done")
    assert host.starts()[-1] == 99 and len(host.starts()) < 5
    host.cli("fsck")


def test_http_takes_merge_and_leads_on_who_waits(host, tmp_path):
    server, gate = Server(host), tmp_path / "gate"
    assert server.post("/v1/tasks/mail?key=k&merge=1", f"1 wait:{gate}".encode())[0] == 202
    host.wait_started(1)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        waits = [pool.submit(server.post, "/v1/tasks/mail?key=k&merge=1&wait=60s", b"%d result" % n) for n in (2, 3)]
        wait_until(lambda: total(host, "merged") == 1, "one of them is merged into the other")
        lines = server.post("/v1/tasks", b'{"handler":"mail","key":"k","payload":"4 result","merge":true}\n')
        number = json.loads(lines[2])["id"]
        wait_until(lambda: total(host, "merged") == 2, "so is the last")
        told = json.loads(server.ask("GET", f"/v1/tasks/{number}", token=server.token)[2])
        assert told["state"] == "merged" and told["into"]
        gate.touch()
        assert [w.result()[::2] for w in waits] == [(200, b"4 result")] * 2
    assert server.post("/v1/tasks/mail?merge=1", b"5")[0] == 400
    assert server.post("/v1/tasks/mail?key=k&merge=maybe", b"5")[0] == 400
    assert server.post("/v1/tasks/mail?key=k&debounce=25h", b"5")[0] == 400
