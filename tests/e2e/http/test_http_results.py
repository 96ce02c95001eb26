"""Results over HTTP: taken with receipts, committed by these; and features that are switched on."""
import contextlib
import json

import pytest

from fleet import Backing, Fleet
from hosts import Host, wait_until
from http_hosts import TOKENS, Server, detail
from worker_hosts import Connection

CONSUMER = "ledger-ledger-ledger"


@pytest.fixture(scope="module")
def server(quiver, root, tmp_path_factory, request):
    host = Host(quiver, root / "build" / "test-plugins", tmp_path_factory.mktemp("results"))
    request.addfinalizer(host.close)  # also if this fails
    made = Server(host)
    (host.folder / "tokens").write_text(TOKENS + f"ledger consume {CONSUMER}\nworker work worker-worker-worker\n")
    host.cli("reload", "--wait")
    return made


def make(server, count):
    """So many results; those of earlier tests are gone."""
    server.host.submit([{"handler": "mail", "key": f"r{i}", "payload": f"{i} result"} for i in range(count)])
    wait_until(lambda: server.get("/v1/status")["totals"]["results"] == count, "they are done")


def ask(server, path, body=b"", token=CONSUMER):
    answer = server.ask("POST", path, body, token=token)
    return answer[0], json.loads(answer[2])


def commit(server, results):
    return ask(server, "/v1/results/commit", json.dumps({"receipts": [r["receipt"] for r in results]}).encode())


def test_results_that_are_not_committed_come_back(server):
    make(server, 5)
    status, first = ask(server, "/v1/results/take?max=2&lease=1s")
    assert (status, len(first["results"]), first["more"], first["lease_ms"]) == (200, 2, True, 1000)
    status, rest = ask(server, "/v1/results/take?lease=1h")
    assert (status, len(rest["results"]), rest["more"]) == (200, 3, False)
    assert commit(server, rest["results"]) == (200, {"committed": 3, "refused": []})
    again = wait_until(lambda: ask(server, "/v1/results/take?lease=1h")[1]["results"], "the lease is over")
    while len(again) < 2:
        again += ask(server, "/v1/results/take?lease=1h")[1]["results"]
    assert sorted(r["id"] for r in again) == sorted(r["id"] for r in first["results"])
    # Another has them now: the first consumer is too late.
    assert commit(server, first["results"]) == (200, {"committed": 0, "refused": [r["receipt"] for r in first["results"]]})
    assert commit(server, again)[1]["committed"] == 2
    assert commit(server, again) == (200, {"committed": 0, "refused": [r["receipt"] for r in again]}), "a repeat is harmless"
    assert server.get("/v1/status")["totals"]["results"] == 0


def test_a_result_is_what_the_command_prints(server):
    make(server, 1)
    printed = json.loads(server.host.cli("results", "--json", "--lease", "1ms"))
    taken = wait_until(lambda: ask(server, "/v1/results/take")[1]["results"], "the command's lease is over")
    assert commit(server, taken)[1]["committed"] == 1
    assert taken[0].pop("receipt") and taken[0] == printed


@pytest.mark.parametrize("token", ["shop-shop-shop-shop", "watcher-watcher-1", "worker-worker-worker"])
def test_results_are_for_consumers(server, token):
    for path in ("/v1/results/take", "/v1/results/commit"):
        answer = server.ask("POST", path, b"{}", token=token)
        assert answer[0] == 403 and "role consume" in detail(answer)
    assert ask(server, "/v1/pause", token=CONSUMER)[0] == 403


def test_a_feature_waits_for_the_last_host_that_does_not_know_it(quiver, root, tmp_path):
    fleet = Fleet(quiver, root / "build" / "test-plugins", tmp_path, Backing(tmp_path))
    try:
        old = fleet.add("old")
        old.quiver = tmp_path / "quiver-without-schedules"
        old.quiver.write_text(f"#!/bin/sh\nQUIVER_LACKS=schedules exec '{root / 'build' / 'tests' / 'quiver-lacking'}' \"$@\"\n")
        old.quiver.chmod(0o755)
        old.start()
        (new,) = fleet.start("new")
        def asked(query):
            with contextlib.closing(Connection(tmp_path / "state-new" / "new.http")) as connection:
                connection.request("POST", "/v1/app/upgrade" + query)
                answer = connection.getresponse()
                return answer.status, json.loads(answer.read())

        status, told = asked("?all=1")
        assert (status, told["detail"]) == (409, "not switched on; upgrade or stop these hosts first: host old does not know schedules")
        assert old.stop() == 0
        assert wait_until(lambda: (found := asked("?all=1&dry_run=1"))[0] == 200 and found[1], "it has left") == \
            {"features": ["schedules"], "dry_run": True}
        assert asked("?features=schedules") == (200, {"features": ["schedules"], "dry_run": False})
        assert asked("?features=schedules,limits") == (200, {"features": [], "dry_run": False}), "a repeat has nothing to do"
        new.wait_for_log("action=app-upgrade on=schedules")
        assert new.log().count("action=app-upgrade") == 1
    finally:
        fleet.close()
