"""The description of the API (etc/openapi.json) says what the server does: routes, parameters, roles, answers, errors."""
import json
import re
import subprocess

import pytest

from hosts import Host, wait_until
from http_hosts import Server

jsonschema = pytest.importorskip("jsonschema")

ROUTE = re.compile(r'\{ VERB_(\w+),\s*"([^"]+)",\s*ROLE_(\w+),\s*"([^"]*)"')


@pytest.fixture(scope="module")
def document(root):
    return json.loads((root / "etc" / "openapi.json").read_text())


@pytest.fixture(scope="module")
def server(quiver, root, tmp_path_factory, request):
    host = Host(quiver, root / "build" / "test-plugins", tmp_path_factory.mktemp("described"))
    request.addfinalizer(host.close)  # also if this fails
    made = Server(host)
    text = host.config.read_text()
    host.config.write_text(text.replace("handlers = {", 'handlers = { pull = { plugin = "remote"; };', 1))
    host.cli("reload", "--wait")
    host.submit([{"handler": "mail", "key": f"d{i}", "payload": f"{i} reject"} for i in range(4)])
    wait_until(lambda: made.get("/v1/dead")["total"] == 4, "they are dead")
    host.cli("key", "hold", "held")
    host.submit([{"handler": "mail", "key": "held", "payload": "9"}])
    wait_until(lambda: made.get("/v1/keys")["keys"], "a key is held")
    return made


def operations(document):
    return {(verb.upper(), path): o for path, item in document["paths"].items() for verb, o in item.items()}


def test_routes_parameters_and_roles_are_those_of_the_server(root, document):
    source = (root / "runtime" / "http" / "route.c").read_text()
    routes = {(verb, re.sub(r":(\w+)", r"{\1}", path)): (role.lower(), parameters.split())
              for verb, path, role, parameters in ROUTE.findall(source)}
    described = {}
    for name, o in operations(document).items():
        assert o.get("security") == ([] if o["x-role"] == "none" else None), name
        described[name] = o["x-role"], [p["name"] for p in o.get("parameters", ()) if p["in"] == "query"]
        assert re.findall(r"{(\w+)}", name[1]) == [p["name"] for p in o.get("parameters", ()) if p["in"] == "path"]
    assert described == routes


def verbs_of(quiver, command):
    """Words of the usage that are typed as they stand, but for options and what follows them."""
    usage = subprocess.run([quiver, command, "--help"], capture_output=True, text=True, check=True).stdout.split("\n\n")[0]
    usage = re.sub(rf"usage: quiver {command}|quiver {command}|FENCE done.*|--? ?[A-Za-z-]*( (?!FENCE done)[A-Z…]+)?", " ", usage)
    return set(re.findall(r"(?<![\w.])[a-z]+(?![\w=])", usage)) - {"c", "n"}


def test_every_command_has_a_request_or_a_reason(quiver, root, document):
    table = re.search(r"### What each command is over HTTP\n(.*?)\n## ", (root / "etc" / "HTTP.md").read_text(), re.DOTALL)[1]
    requests, verbs = {}, {}
    for commands, words, said in re.findall(r"^\| (`.*?) \| (.*?) ?\| (.*) \|$", table, re.MULTILINE):
        for command in re.findall(r"`(\w+)`", commands):
            requests.setdefault(command, []).append(said)
            verbs.setdefault(command, set()).update(re.findall(r"\w+", words))
    helped = subprocess.run([quiver, "--help"], capture_output=True, text=True, check=True).stdout
    known = re.findall(r"^  (\w+) +\S", helped.split("commands:")[1].split("\n\n")[0], re.MULTILINE)
    assert sorted(requests) == sorted(known), "a command is missing in the table, or one is there that is none"
    for command, said in requests.items():
        for text in said:
            named = re.findall(r"`(GET|PUT|POST|DELETE) (/[^`?]*)[^`]*`", text)
            assert set(named) <= set(operations(document)), (command, text)
            assert named or "—" in text, f"{command}: neither a request nor a reason"
        if any("files of the machine" in text for text in said):
            continue
        assert verbs_of(quiver, command) == verbs[command], command


def test_the_server_serves_it(server, document):
    assert server.get("/v1/openapi.json") == document


def test_every_reference_leads_somewhere_and_everything_is_used(document):
    text = json.dumps(document)
    named = {(kind, name) for kind in ("schemas", "responses") for name in document["components"][kind]}
    assert set(re.findall(r'"#/components/(\w+)/(\w+)"', text)) == named
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


def response_of(document, verb, path, status):
    said = operations(document)[verb, path]["responses"].get(str(status))
    assert said, f"{verb} {path}: {status} is not described"
    return document["components"]["responses"][said["$ref"].rsplit("/", 1)[1]] if "$ref" in said else said


def check(document, verb, path, answer):
    """The answer has a status, a type and a form that the description names."""
    status, fields, body = answer
    said = response_of(document, verb, path, status)
    for name in said.get("headers", ()):
        assert fields[name], f"{verb} {path}: {status} without {name}"
    kind = fields["Content-Type"].split(";")[0]
    if "content" not in said:
        assert not body
        return
    schema = said["content"][kind]["schema"]
    texts = body.decode().splitlines() if kind == "application/x-ndjson" else [body]
    for text in texts if kind.endswith("json") else ():
        jsonschema.Draft202012Validator({**schema, "components": document["components"]}).validate(json.loads(text))


def work_requests(server):
    """A worker that takes a task, keeps it and ends it; what it is told is in the answers before."""
    work, last = "/v1/work/{handler}", {}

    def said(*more):
        return json.dumps({"fence": last["fence"], **dict(more)}).encode()

    server.post("/v1/tasks/pull?key=k", b"hello")
    yield "POST", work, "/v1/work/pull?worker=w&wait=30s", b"", 200, last
    yield "POST", work, "/v1/work/pull?worker=w", b"", 204
    one = f"/v1/work/pull/{last['id']}"
    yield "POST", work + "/{id}/heartbeat", one + "/heartbeat", said(("progress", [1, 2]), ("checkpoint", "c")), 200
    yield "POST", work + "/{id}/heartbeat", one + "/heartbeat", said(("progress", "much")), 400
    yield "POST", work + "/{id}/outcome", one + "/outcome", said(("outcome", "retry"), ("error", "e"), ("retry_after", "1ms")), 200
    yield "POST", work, "/v1/work/pull?worker=w&wait=30s", b"", 200, last
    assert last["attempt"] == 2 and last["checkpoint"] == "c", last
    follow = {"handler": "mail", "key": "f", "payload": "31"}
    yield "POST", work + "/{id}/outcome", one + "/outcome", said(("outcome", "done"), ("result", "r"), ("follow_ups", [follow])), 200
    yield "POST", work + "/{id}/outcome", one + "/outcome", said(("outcome", "done")), 409


def schedule_requests():
    one, daily = "/v1/schedules/{name}", b'{"cron": "0 3 * * *", "zone": "Europe/Berlin", "handler": "mail", "payload": "20"}'
    yield "PUT", one, "/v1/schedules/daily", daily, 200
    yield "PUT", one, "/v1/schedules/daily?dry_run=1&times=3", b'{"cron": "* 0 * * *", "handler": "mail"}', 200
    yield "PUT", one, "/v1/schedules/daily", b'{"cron": "61 * * * *", "handler": "mail"}', 400
    yield "PUT", one, "/v1/schedules/daily", b'{"cron": "1 * * * *", "handler": "mail", "when": 1}', 400
    yield "PUT", one, "/v1/schedules/9", daily, 400
    yield "GET", "/v1/schedules", "/v1/schedules", None, 200
    yield "GET", one, "/v1/schedules/daily?times=3", None, 200
    yield "GET", one, "/v1/schedules/daily?times=0", None, 400
    yield "GET", one, "/v1/schedules/nobody", None, 404
    for verb in ("pause", "resume"):
        yield "POST", f"{one}/{verb}", f"/v1/schedules/daily/{verb}", b"", 200
        yield "POST", f"{one}/{verb}", f"/v1/schedules/nobody/{verb}", b"", 404
    yield "POST", one + "/run", "/v1/schedules/daily/run", b"", 202
    yield "POST", one + "/backfill", "/v1/schedules/daily/backfill?from=2026-11-01&to=2026-11-08&limit=3", b"", 200
    yield "POST", one + "/backfill", "/v1/schedules/daily/backfill?from=2026-11-01", b"", 400
    yield "POST", one + "/backfill", "/v1/schedules/daily/backfill?from=yesterday&to=2026-11-08", b"", 400
    yield "DELETE", one, "/v1/schedules/daily", None, 200
    yield "DELETE", one, "/v1/schedules/daily", None, 404


def result_requests(server):
    take, commit, taken = "/v1/results/take", "/v1/results/commit", {}
    yield "POST", take, take + "?lease=1ms", b"", 200, taken
    assert taken["results"], "there are results"
    receipts = json.dumps({"receipts": [r["receipt"] for r in taken["results"]]}).encode()
    yield "POST", commit, commit, receipts, 200
    yield "POST", commit, commit, receipts, 200
    yield "POST", commit, commit, b'{"receipts": "all"}', 400
    yield "POST", take, take + "?lease=0", b"", 400
    yield "POST", take, take + "?max=1001", b"", 400


# (verb, path as described, the request, body, the status that must come[, what gets the answer's JSON])
def requests(server):
    time = server.get("/v1/dead")["time_ms"] + 1
    dead = [t["id"] for t in server.get("/v1/dead?handler=mail")["tasks"]]
    held = server.get("/v1/tasks?key=held")["tasks"][0]["id"]
    task, key = "/v1/tasks/{id}", "/v1/keys/{key}"
    yield from (("GET", path, path, None, 200) for path in
                ("/livez", "/readyz", "/", "/v1/me", "/metrics", "/v1/tasks", "/v1/dead", "/v1/keys", "/v1/history", "/v1/status", "/v1/shards", "/v1/handlers",
                 "/v1/members", "/v1/locks", "/v1/app", "/v1/schedules", "/v1/openapi.json"))
    yield "GET", "/page/{file}", "/page/main.js", None, 200
    yield "GET", "/page/{file}", "/page/none.js", None, 404
    yield "GET", "/v1/tasks", "/v1/tasks?state=dead&limit=1", None, 200
    yield "GET", "/v1/tasks", "/v1/tasks?limit=x", None, 400
    yield "GET", "/v1/dead", "/v1/dead?handler=mail&limit=2", None, 200
    yield "GET", "/v1/keys", "/v1/keys?state=x", None, 400
    yield "GET", task, f"/v1/tasks/{held}", None, 200
    yield "GET", task, "/v1/tasks/nonsense", None, 404
    yield "GET", task + "/payload", f"/v1/tasks/{held}/payload", None, 200
    yield "GET", key, "/v1/keys/held", None, 200
    yield "GET", key, "/v1/keys/%0a", None, 400
    yield from schedule_requests()
    yield from work_requests(server)
    yield "GET", "/v1/limits", "/v1/limits", None, 200
    yield "GET", "/v1/limits/{name}", "/v1/limits/nobody", None, 404
    yield "PUT", "/v1/limits/{name}", "/v1/limits/nobody", b'{"rate": 1}', 404
    yield "PUT", "/v1/limits/{name}", "/v1/limits/nobody", b'{"rate": 0}', 400
    yield "DELETE", "/v1/limits/{name}", "/v1/limits/nobody", None, 404
    yield "POST", "/v1/tasks/{handler}", "/v1/tasks/mail", b"1", 202
    yield "POST", "/v1/tasks/{handler}", "/v1/tasks/mail?wait=30s", b"2 result", 200
    yield "POST", "/v1/tasks/{handler}", "/v1/tasks/mail?wait=30s", b"3", 204
    yield "POST", "/v1/tasks/{handler}", "/v1/tasks/mail?wait=30s", b"4 reject", 422
    yield "POST", "/v1/tasks/{handler}", "/v1/tasks/mail?lane=x", b"5", 400
    yield "POST", "/v1/tasks/{handler}", "/v1/tasks/mail?key=held&unique=1h", b"6", 202
    yield "POST", "/v1/tasks/{handler}", "/v1/tasks/mail?key=held&unique=1h", b"6", 409
    yield "POST", "/v1/tasks/{handler}", "/v1/tasks/mail", b"7" * (1 << 21), 413
    yield "POST", "/v1/tasks", "/v1/tasks", b'{"handler": "mail", "payload": "8"}\nnot json\n', 200
    yield "POST", task + "/requeue", f"/v1/tasks/{dead[0]}/requeue", b"", 200
    yield "POST", task + "/requeue", f"/v1/tasks/{dead[1]}/requeue", b"11", 200
    yield "POST", task + "/requeue", f"/v1/tasks/{held}/requeue", b"", 404
    yield "POST", task + "/requeue", f"/v1/tasks/{held}/requeue", b"12", 409
    late = json.loads(server.post("/v1/tasks/mail?key=late&delay=1h", b"40")[2])["id"]
    later = json.loads(server.post("/v1/tasks/mail?key=later&delay=2h", b"41")[2])["id"]
    yield "POST", task + "/move", f"/v1/tasks/{late}/move?lane=low", b"", 200
    yield "POST", task + "/move", f"/v1/tasks/{late}/move?lane=low", b"", 409
    yield "POST", task + "/move", f"/v1/tasks/{late}/move", b"", 400
    yield "POST", task + "/move", f"/v1/tasks/{late}/move?lane=high&force=yes", b"", 400
    yield "POST", task + "/move", f"/v1/tasks/{held}/move?lane=high", b"", 409
    yield "POST", task + "/reschedule", f"/v1/tasks/{late}/reschedule?delay=3h", b"", 200
    yield "POST", task + "/reschedule", f"/v1/tasks/{late}/reschedule?at=2090-01-01T00:00:00Z", b"", 200
    yield "POST", task + "/reschedule", f"/v1/tasks/{late}/reschedule", b"", 400
    yield "POST", task + "/reschedule", f"/v1/tasks/{late}/reschedule?delay=soon", b"", 400
    yield "POST", task + "/reschedule", f"/v1/tasks/{held}/reschedule?delay=1s", b"", 409
    yield "GET", "/v1/tasks", "/v1/tasks?state=delayed&order=due", None, 200
    yield "GET", "/v1/tasks", "/v1/tasks?order=due", None, 400
    assert [t["id"] for t in server.get("/v1/tasks?state=delayed&order=due")["tasks"]] == [later, late]
    assert [t["id"] for t in server.get("/v1/tasks?state=delayed&order=due&limit=1")["tasks"]] == [later]
    yield "POST", "/v1/app", "/v1/app?max_members=7", b"", 200
    yield "POST", "/v1/app", "/v1/app?max_members=many", b"", 400
    assert server.get("/v1/app")["max_members"] == 7
    yield "POST", "/v1/app/upgrade", "/v1/app/upgrade?all=1", b"", 200
    yield "POST", "/v1/app/upgrade", "/v1/app/upgrade?features=,", b"", 400
    yield from result_requests(server)
    yield "POST", task + "/drop", f"/v1/tasks/{dead[2]}/drop", b"", 200
    work, start = "/v1/work/{handler}", b'{"fence": "1.1.1"}'
    yield "POST", work, "/v1/work/mail?worker=w", b"", 404
    yield "POST", work, "/v1/work/mail", b"", 400
    yield "POST", work + "/{id}/heartbeat", f"/v1/work/mail/{held}/heartbeat", start, 409
    yield "POST", work + "/{id}/outcome", f"/v1/work/mail/{held}/outcome", start, 400
    yield "POST", work + "/{id}/outcome", f"/v1/work/mail/{held}/outcome", start[:-1] + b', "outcome": "done"}', 409
    yield "POST", task + "/cancel", f"/v1/tasks/{held}/cancel", b"", (200, 202)
    yield "POST", task + "/cancel", f"/v1/tasks/{dead[3]}/cancel", b"", 409
    yield "POST", "/v1/dead/requeue", f"/v1/dead/requeue?handler=mail&before={time}&limit=1", b"", 200
    yield "POST", "/v1/dead/drop", f"/v1/dead/drop?all=1&before={time}", b"", 200
    yield "POST", "/v1/dead/drop", "/v1/dead/drop?all=1", b"", 400
    yield "POST", "/v1/cancel", f"/v1/cancel?handler=none&before={time}", b"", 200
    yield "POST", key + "/{verb}", "/v1/keys/other/hold", b"", (200, 202)
    wait_until(lambda: server.get("/v1/keys/other")["state"] == "held", "its owner has heard of it")
    yield "POST", key + "/{verb}", "/v1/keys/other/unhold", b"", (200, 202)
    yield "POST", key + "/{verb}", "/v1/keys/free/retry", b"", 404
    yield "POST", key + "/{verb}", "/v1/keys/free/forget", b"", 404
    for verb in ("pause", "resume"):
        yield "POST", f"/v1/{verb}", f"/v1/{verb}", b"", 200
        yield "POST", f"/v1/handlers/{{handler}}/{verb}", f"/v1/handlers/mail/{verb}", b"", 200
    for verb in ("drain", "activate"):
        yield "POST", f"/v1/members/{{member}}/{verb}", f"/v1/members/nobody/{verb}", b"", 200
    yield "POST", "/v1/reload", "/v1/reload?dry_run=1", b"", 200


def test_answers_are_as_described(server, document):
    asked = set()
    for verb, path, request, body, status, *keep in requests(server):
        answer = server.ask(verb, request, body, token=server.token)
        assert answer[0] in (status if isinstance(status, tuple) else (status,)), (verb, request, answer)
        check(document, verb, path, answer)
        for kept in keep:
            kept.clear()
            kept.update(json.loads(answer[2]))
        asked.add((verb, path))
    assert asked == set(operations(document)) - {("GET", "/v1/events")}, "each operation is asked for"


def test_nobody_without_the_role_is_answered(server, document):
    for (verb, path), o in operations(document).items():
        request = re.sub(r"{\w+}", "x", path)
        if o["x-role"] == "none":
            continue
        for token, status in ((None, 401), ("no-such-token", 401),
                              ("watcher-watcher-1" if o["x-role"] != "read" else "shop-shop-shop-shop", 403)):
            answer = server.ask(verb, request, b"" if verb == "POST" else None, token=token)
            assert answer[0] == status, (verb, path, token)
            check(document, verb, path, answer)
        answer = server.ask(verb, request, b"" if verb == "POST" else None, token=server.token, Host="evil.example")
        assert answer[0] == 421
        check(document, verb, path, answer)
