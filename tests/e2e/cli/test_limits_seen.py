"""Tasks that wait for a limit: what is said about them, what they cost, and who goes past them."""
import json
import pathlib
import subprocess
import tempfile
import time

import pytest

from hosts import wait_until
from http_hosts import Server
from worker_hosts import WorkerHost

SLOTS = 'limits = { slots = { concurrency = 1; by = "header.tenant"; values = 3; }; };\n'
UNDER = 'threads = 4; limited_by = ( "slots" );'


@pytest.fixture(params=["host", "redis_host"])
def either(request):
    return request.getfixturevalue(request.param)


def limit_of(host):
    return json.loads(host.cli("limit", "show", "slots", "--json"))


def task(number, tenant, key=None, words=""):
    return {"handler": "mail", "key": key or f"k{number}", "payload": f"{number} {words}".strip(), "headers": {"tenant": tenant}}


def listed(host):
    return [json.loads(line) for line in host.cli("tasks", "--json").splitlines()]


def test_what_waits_for_a_limit_says_so_and_others_pass_it(host, tmp_path):
    gate = tmp_path / "gate"
    server = Server(host, change=lambda text: SLOTS + text, mail=UNDER)
    host.submit([task(1, "a", words=f"wait:{gate}")])
    host.wait_started(1)
    host.submit([task(n, "a", key="same") for n in range(2, 6)])
    host.submit([task(6, "b"), task(7, "b", key="same"), task(8, "b")])
    # 6 and 8 are of another tenant; 7 is, too, but stands behind others of its key.
    wait_until(lambda: set(host.starts()) == {1, 6, 8}, "the other tenant's run")
    head = next(t["id"] for t in listed(host) if t["key"] == "same")
    for told in (lambda: host.cli("task", head), lambda: host.cli("task", head, "--json"), lambda: host.cli("key", "same"),
                 lambda: json.dumps(server.get(f"/v1/tasks/{head}")), lambda: json.dumps(server.get("/v1/keys/same"))):
        wait_until(lambda told=told: "limit slots" in told(), "it says what it waits for")
    print(host.cli("task", head) + host.cli("key", "same") + host.cli("limit") + host.cli("limit", "show", "slots"))
    wait_until(lambda: limit_of(host)["in_use"] == 1 and limit_of(host)["waiting"] + limit_of(host)["waiting_tasks"] >= 1,
               "used, granted and waiting are shown")
    assert server.get("/v1/limits/slots")["concurrency"] == 1
    gate.touch()
    wait_until(lambda: set(host.starts()) == set(range(1, 9)), "all have started")
    assert host.starts("same") == [2, 3, 4, 5, 7] and {e.attempt for e in host.ledger()} == {1}


def test_limited_tasks_fill_no_window_and_cost_nothing(redis_host, tmp_path):
    """Far more wait in every shard than its window holds; others of the same shards pass them, and then nobody asks anything."""
    gate, host = tmp_path / "gate", redis_host
    host.configure(shards=2, change=lambda text: SLOTS + text, mail=UNDER, other="").start()
    host.submit([task(1, "a", words=f"wait:{gate}")])
    host.wait_started(1)
    host.submit([task(n, "a") for n in range(2, 4002)])
    host.submit([{"handler": "other", "key": f"o{n}", "payload": f"{10000 + n}"} for n in range(40)])
    wait_until(lambda: len(host.starts()) == 41, "all others pass them")

    client = host.redis.client()
    figures = []

    def is_quiet():
        """Renewals of two leases and of a share, and what the host says of itself: no script for each that waits."""
        before = client.info("commandstats")["cmdstat_evalsha"]["calls"]
        time.sleep(2)
        figures.append((client.info("commandstats")["cmdstat_evalsha"]["calls"] - before) / 2)
        return figures[-1] < 100

    wait_until(is_quiet, "4000 wait, and nobody asks for them")
    print(f"4000 tasks wait for a limit: {figures[-1]:.0f} scripts of Redis a second")
    wait_until(lambda: limit_of(host)["waiting"] + limit_of(host)["waiting_tasks"] >= 2000, "most wait in the store")
    assert limit_of(host)["estimated"] and "at least" in host.cli("limit", "show", "slots")  # of a shard 1000 keys are looked at
    assert set(host.starts()) == {1, *range(10000, 10040)}
    host.cli("fsck")
    gate.touch()
    wait_until(lambda: len(host.starts()) > 200, "they go on")
    client.close()


def test_values_beyond_what_may_be_in_use_wait_and_are_counted(either, tmp_path):
    host, gates = either, [tmp_path / f"gate-{n}" for n in range(4)]
    host.configure(change=lambda text: SLOTS + text, mail='threads = 8; limited_by = ( "slots" );').start()
    host.submit([task(n, f"tenant-{n}", words=f"wait:{gates[n]}") for n in range(3)])
    wait_until(lambda: set(host.starts()) == {0, 1, 2}, "as many values as there may be")
    host.submit([task(3, "tenant-3")])
    wait_until(lambda: limit_of(host)["refused"] >= 1, "it waits, and is counted")
    assert set(host.starts()) == {0, 1, 2}
    gates[1].touch()
    wait_until(lambda: set(host.starts()) == {0, 1, 2, 3}, "when one is at rest, it is forgotten, and the next has its place")
    for gate in gates:
        gate.touch()
    wait_until(lambda: not listed(host), "all is done")
    host.cli("fsck")


def test_what_is_set_for_a_while_ends_by_itself(either):
    host = either.configure(change=lambda text: "limits = { api = { rate = 50; burst = 10; }; };\n" + text,
                            mail='limited_by = ( "api" );').start()
    shown = lambda: json.loads(host.cli("limit", "show", "api", "--json"))
    wait_until(lambda: json.loads(host.cli("limit", "--json"))["limits"], "the host says what it has")
    host.cli("limit", "set", "api", "--rate", "5", "--burst", "2", "--for", "3s")
    wait_until(lambda: shown()["rate"] == 5, "it is in force")
    wait_until(lambda: shown()["rate"] == 50 and shown()["burst"] == 10, "its time is over")
    host.submit([{"handler": "mail", "key": f"k{n}", "payload": str(n)} for n in range(100)])
    wait_until(lambda: len(host.starts()) == 100, "they run")
    times = sorted(e.at_ns for e in host.ledger() if e.what == "start")
    assert times[-1] - times[0] < 15e9  # 100 at 5 a second would take 20 s


def test_a_worker_closes_a_limit_and_holds_a_share_while_it_works(quiver, root):
    with tempfile.TemporaryDirectory(prefix="quiver-") as folder:
        host = WorkerHost(quiver, root / "build" / "test-plugins", pathlib.Path(folder), "one")
        limited = 'limits = { slots = { concurrency = 1; by = "header.tenant"; }; };\n'
        host.write(ttl="5s", change=lambda text: limited + text.replace('mail = {', 'mail = { limited_by = ( "slots" );')).start()
        take = lambda *words: subprocess.run([quiver, "take", *words, "-c", host.config], capture_output=True, text=True, timeout=120)
        try:
            host.submit([task(1, "a"), task(2, "a"), task(3, "b")])
            first = {t["payload"]: t for t in (json.loads(take("mail", "--wait", "30s", "--json").stdout) for _ in range(2))}
            assert set(first) == {"1", "3"}, "the second of a tenant waits, another tenant's passes it"
            assert take("mail", "--wait", "300ms", "--json").stdout == ""
            done = take("finish", "mail", first["3"]["id"], "--fence", first["3"]["fence"], "done")
            assert done.returncode == 0, done.stderr
            said = take("finish", "mail", first["1"]["id"], "--fence", first["1"]["fence"], "limited", "429", "--retry-after", "3s")
            assert said.returncode == 0, said.stderr
            wait_until(lambda: json.loads(host.cli("limit", "show", "slots", "--json"))["closed"] == 1, "the tenant's share is closed")
            host.submit([task(4, "b")])
            other = json.loads(take("mail", "--wait", "30s", "--json").stdout)
            assert other["payload"] == "4", "only that tenant's is closed"
            again = json.loads(take("mail", "--wait", "60s", "--json").stdout)
            assert again["payload"] in ("1", "2") and again["attempt"] == 1, "it was no attempt"
        finally:
            host.close()
