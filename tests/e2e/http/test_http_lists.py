"""HTTP shows what the commands show with --json: lists, one of each, a page at a time; and the status as it changes."""
import http.client
import json
import socket
import subprocess

import pytest

from hosts import Host, wait_until
from http_hosts import Server, detail


@pytest.fixture(scope="module")
def shop(quiver, root, tmp_path_factory, request):
    """A host that has tasks in every state, and that nobody changes."""
    folder = tmp_path_factory.mktemp("lists")
    host = Host(quiver, root / "build" / "test-plugins", folder)
    request.addfinalizer(host.close)  # also if this fails
    server = Server(host)
    gate = folder / "gate"
    host.submit([{"handler": "mail", "key": f"dead-{i}", "payload": f"{i} reject"} for i in range(10, 15)])
    wait_until(lambda: host.sum("dead") == 5, "they are dead")
    host.submit([{"handler": "mail", "key": "busy", "payload": f"1 wait:{gate}"}])
    host.wait_started(1)
    host.cli("key", "hold", "held", "--reason", "being moved")
    host.submit([{"handler": "mail", "key": "held", "payload": f"{i}"} for i in range(20, 30)])
    wait_until(lambda: host.sum("parked") == 10, "they wait for a person")
    host.submit([{"handler": "mail", "key": "later", "payload": "30", "delay": "1h"},
                 {"handler": "nobody", "key": "unserved", "payload": "31"}])
    wait_until(lambda: json.loads(host.cli("task", find(host, "busy"), "--json"))["state"] == "running",
               "its host says that it runs")
    yield server
    gate.touch()


def find(host, key):
    return json.loads(host.cli("tasks", "--key", key, "--json").splitlines()[0])["id"]


VOLATILE = {"age_ms", "due_in_ms", "oldest_ms", "rates", "answered_ms", "lag_ms", "progress", "done_rate",
            "failed_rate", "run_p50_ms", "run_p99_ms"}


def steady(value):
    """Without what is another a moment later."""
    if isinstance(value, dict):
        return {name: steady(v) for name, v in value.items() if name not in VOLATILE}
    return [steady(v) for v in value] if isinstance(value, list) else value


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("query, words", [
    ("", []),
    ("?state=waiting", ["--state", "waiting"]),
    ("?state=running", ["--state", "running"]),
    ("?state=delayed", ["--state", "delayed"]),
    ("?state=held", ["--state", "held"]),
    ("?state=dead&handler=mail", ["--state", "dead", "--handler", "mail"]),
    ("?handler=nobody", ["--handler", "nobody"]),
    ("?key=held", ["--key", "held"]),
    ("?older=1h", ["--older", "1h"]),
    ("?state=dead&error=nothing%20like%20this", ["--state", "dead", "--error", "nothing like this"]),
])
def test_a_list_of_tasks_is_that_of_the_command(shop, query, words):
    told = shop.get("/v1/tasks" + query)
    assert steady(told["tasks"]) == steady(lines(shop.host.cli("tasks", "--json", *words)))
    assert not told["more"] and "cursor" not in told and told["time_ms"] > 0


@pytest.mark.parametrize("path, words", [
    ("/v1/status", ["status"]),
    ("/v1/members", ["members"]),
    ("/v1/app", ["app", "show"]),
    ("/v1/keys/held", ["key", "held"]),
    ("/v1/keys/busy", ["key", "busy"]),
    ("/v1/keys/never-heard-of", ["key", "never-heard-of"]),
])
def test_http_and_the_command_say_the_same(shop, path, words):
    assert steady(shop.get(path)) == steady(json.loads(shop.host.cli(*words, "--json")))


def test_one_task_is_told_with_where_it_is(shop):
    number = find(shop.host, "busy")
    told = shop.get(f"/v1/tasks/{number}")
    assert steady(told) == steady(json.loads(shop.host.cli("task", number, "--json")))
    assert told["state"] == "running" and told["pid"] > 0


def test_parts_of_the_status_are_the_same_parts(shop):
    status = json.loads(shop.host.cli("status", "--json"))
    assert steady(shop.get("/v1/shards")["shards"]) == steady(status["shards"])
    assert steady(shop.get("/v1/handlers")["handlers"]) == steady(status["handlers"])


def test_keys_and_dead_tasks_are_those_of_the_commands(shop):
    keys = shop.get("/v1/keys")
    assert steady(keys["keys"]) == steady(lines(shop.host.cli("key", "list", "--json")))
    assert [k["key"] for k in shop.get("/v1/keys?state=held")["keys"]] == ["held"]
    assert shop.get("/v1/keys?order=tasks&limit=1")["keys"][0]["tasks"] == 10
    dead = shop.get("/v1/dead?handler=mail")
    assert steady(dead["tasks"]) == steady(lines(shop.host.cli("dead", "list", "--json")))
    assert shop.get("/v1/dead")["groups"] == json.loads(shop.host.cli("status", "--json"))["dead"]
    assert shop.get("/v1/dead")["groups"] == lines(shop.host.cli("dead", "groups", "--json"))
    assert "5  mail     rejected" in shop.host.cli("dead", "groups")
    assert shop.get("/v1/dead?before=1")["tasks"] == [], "nothing was dead then"


def test_a_page_goes_on_where_the_last_one_ended(shop):
    whole = [t["id"] for t in shop.get("/v1/tasks")["tasks"]]
    for limit in (1, 3, 5):
        seen, cursor = [], ""
        while True:
            told = shop.get(f"/v1/tasks?limit={limit}{cursor}")
            assert len(told["tasks"]) <= limit and told["looked"] <= told["total"]
            seen += [t["id"] for t in told["tasks"]]
            if not told["more"]:
                break
            cursor = f"&cursor={told['cursor']}"
        assert seen == whole and len(set(seen)) == 13


def test_what_there_is_none_of_is_an_empty_list(shop):
    assert shop.get("/v1/schedules") == {"schedules": [], "unreadable": 0, "more": False}
    assert shop.get("/v1/locks") == {"locks": [], "total": 0}
    assert shop.ask("GET", "/v1/limits/api", token=shop.token)[0] in (404, 409)


def test_a_lock_says_who_holds_it_and_who_waits(shop):
    words = [shop.host.quiver, "lock", "nightly", "-c", shop.host.config, "--", "sleep", "1000"]
    holders = [subprocess.Popen(words, stderr=subprocess.DEVNULL) for _ in range(2)]
    try:
        def both():
            found = shop.get("/v1/locks")["locks"]
            return found and found[0]["waiting"] == 1 and found[0]
        lock = wait_until(both, "one holds it, one waits")
        assert lock["name"] == "nightly" and lock["kind"] == "lock" and len(lock["queue"]) == 1
        assert lock["holder"]["command"] == "sleep" and lock["holder"]["pid"] > 0
        assert lock["holder"]["token"] < lock["queue"][0]["token"]
    finally:
        for holder in holders:
            holder.terminate()
            holder.wait(60)


def test_a_payload_comes_as_bytes_that_no_browser_runs(shop):
    number = find(shop.host, "later")
    status, fields, body = shop.ask("GET", f"/v1/tasks/{number}/payload", token=shop.token)
    assert (status, body, fields["Content-Type"]) == (200, b"30", "application/octet-stream")
    assert "sandbox" in fields["Content-Security-Policy"] and "attachment" in fields["Content-Disposition"]
    assert fields["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("path, text", [
    ("/v1/tasks?state=asleep", "state: asleep"),
    ("/v1/tasks?limit=0", "limit: 0"),
    ("/v1/tasks?limit=1001", "from 1 to 1000"),
    ("/v1/tasks?cursor=1.2", "cursor: 1.2"),
    ("/v1/tasks?cursor=0.0.-1.0.0", "cursor: 0.0.-1.0.0"),
    ("/v1/tasks?older=soon", "older"),
    ("/v1/tasks?before=yesterday", "before: yesterday"),
    ("/v1/keys?state=free", "state: free"),
    ("/v1/keys?order=name", "order: name"),
    ("/v1/dead?host=a", "no parameter host"),
])
def test_what_cannot_be_asked_is_named(shop, path, text):
    answer = shop.ask("GET", path, token=shop.token)
    assert answer[0] == 400 and text in detail(answer)


@pytest.mark.parametrize("cursor", ["99.0.0.0.0", "7.77.0.0.0", "7.4.9007199254740991.9007199254740991.4294967295"])
def test_a_cursor_beyond_the_end_shows_nothing(shop, cursor):
    assert shop.get(f"/v1/tasks?cursor={cursor}")["tasks"] == []


def test_lists_need_the_role(shop):
    for path in ("/v1/tasks", "/v1/dead", "/v1/events", "/v1/locks", "/v1/app"):
        assert shop.ask("GET", path)[0] == 401
        assert shop.ask("GET", path, token="shop-shop-shop-shop")[0] == 403
    assert shop.ask("GET", "/v1/tasks", token="watcher-watcher-1")[0] == 200


# --- events ---


class Stream:
    def __init__(self, server):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        self.connection.request("GET", "/v1/events", headers={"Authorization": f"Bearer {server.token}"})
        self.answer = self.connection.getresponse()

    def event(self):
        """The next event: its name and what it says; None at the end."""
        name = None
        while line := self.answer.readline():
            if line.startswith(b"event: "):
                name = line[7:].strip().decode()
            elif line.startswith(b"data: "):
                return name, json.loads(line[6:])
        return None

    def close(self):
        self.connection.close()


def test_the_status_is_told_as_it_changes(host):
    server = Server(host)
    stream = Stream(server)
    assert stream.answer.status == 200 and stream.answer.headers["Content-Type"] == "text/event-stream"
    name, told = stream.event()
    assert name == "status" and told.keys() == server.get("/v1/status").keys()
    host.cli("pause", "mail", "--reason", "a test")
    wait_until(lambda: "mail" in stream.event()[1]["totals"]["paused"], "the stream tells that it is paused")
    # Many streams share a look; one more than the most is refused.
    streams = [Stream(server) for _ in range(31)]
    assert all(s.event()[0] == "status" for s in streams)
    refused = Stream(server)
    assert refused.answer.status == 503 and refused.answer.headers["Retry-After"]
    streams.pop().close()
    wait_until(lambda: Stream(server).answer.status == 200, "there is room again")
    # A host that stops ends them all.
    host.signal()
    while stream.event():
        pass
    assert host.wait() == 0
    for s in [stream, *streams]:
        s.close()


def test_a_client_that_reads_nothing_costs_nobody_anything(host):
    server = Server(host)
    with socket.create_connection(("127.0.0.1", server.port)) as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        deaf.sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n"
                     % server.token.encode())
        stream = Stream(server)
        assert stream.event() and stream.event()
        stream.close()
        assert host.stop() == 0
