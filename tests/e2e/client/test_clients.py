"""Clients in other languages: each sends and understands what sdk/clients/cases.jsonl says, and works with a live host."""
import base64
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import threading

import pytest

from client_harness import HARNESSES, LANGUAGES, ROOT, WAYS, Harness, b64, blocks_of
from http_hosts import Server, free_port
from hosts import wait_until

CASES = [json.loads(line) for line in (ROOT / "sdk" / "clients" / "cases.jsonl").read_text().splitlines()]


@pytest.fixture(params=HARNESSES)
def harness(request):
    made = Harness(request.param)
    yield made
    made.close()


def test_the_cases_are_those_that_their_script_writes():
    written = subprocess.run(["/usr/bin/python3", ROOT / "tests/clients/cases.py"], capture_output=True, text=True, check=True).stdout
    assert (ROOT / "sdk" / "clients" / "cases.jsonl").read_text() == written


def test_envelopes_of_the_cases_are_what_the_runtime_reads(quiver):
    """Quiver's own reader finds in each what the task says."""
    for case in CASES:
        if "envelope_base64" not in case:
            continue
        done = subprocess.run([quiver, "envelope", "--json", "--shards", "64", "-"], input=base64.b64decode(case["envelope_base64"]),
                              capture_output=True)
        assert done.returncode == 0, (case["name"], done.stderr)
        read, task = json.loads(done.stdout), case["submit"]
        assert read["handler"] == task["handler"] and (read.get("key") or "") == task.get("key", ""), case["name"]
        assert "key" not in task or read["shard"] == case["shard"], case["name"]
        assert read["id"] == case["as"]["id"] and read["lane"] == task.get("lane", "normal"), case["name"]
        found = {**read.get("headers", {}), **{n: base64.b64decode(v) for n, v in read.get("headers_base64", {}).items()}}
        sent = {n.lower() for n in (*task.get("headers", {}), *task.get("headers_base64", {}))}
        assert set(found) - {"traceparent"} == sent, case["name"]
        payload = base64.b64decode(read["payload_base64"]) if "payload_base64" in read else read["payload"].encode()
        assert payload == base64.b64decode(task.get("payload_base64", "")), case["name"]


def test_every_task_is_sent_as_the_cases_say(harness):
    for case in CASES:
        if "request" in case:
            asked = {name: case[name] for name in ("submit", "as", "shard") if name in case}
            told = harness.ask("encode", **asked)
            written = ("request", "line") if harness.language == "go" else ("request", "line", "envelope_base64", "shard")
            expected = {name: case[name] for name in written if name in case}
            assert told == expected, case["name"]


def test_what_no_host_would_take_is_refused_before_it_is_sent(harness):
    for case in CASES:
        # In Go what is zero is not set.
        is_unset = harness.language == "go" and any(value in ("", 0) for name, value in case.get("submit", {}).items() if name != "handler")
        if "refused" in case and not is_unset:
            told = harness.ask("encode", submit=case["submit"])
            assert case["refused"] in told.get("refused", ""), (case["name"], told)


def test_answers_mean_what_the_cases_say(harness):
    for case in CASES:
        if "answer" in case:
            told = harness.ask("answer", answer=case["answer"], to=case["to"])
            for name, value in case["means"].items():
                assert (value in told[name]) if name == "text" else told.get(name) == value, (case["name"], told)


@pytest.fixture(scope="module")
def shared(quiver, tmp_path_factory):
    """A host on Redis with the ledger's handler and HTTP, for all clients."""
    pytest.importorskip("redis")
    from redis_hosts import RedisHost, RedisServer

    with tempfile.TemporaryDirectory(prefix="quiver-") as folder:
        redis = RedisServer(pathlib.Path(folder))
        host = RedisHost(quiver, quiver.parent / "test-plugins", tmp_path_factory.mktemp("clients"), redis.start())
        yield Server(host)
        host.close()
        redis.close()


@pytest.fixture(params=WAYS, ids="-".join)
def live(request, shared):
    """A client that was opened to that host, one way or the other."""
    language, way = request.param
    host, server = shared.host, shared
    made = Harness(language)
    where = {"http": {"url": f"http://127.0.0.1:{server.port}", "token": server.token},
             "unix": {"url": f"http+unix:{next((host.folder / 'state').glob('*.http'))}"},
             "async": {"url": f"http://127.0.0.1:{server.port}", "token": server.token, "is_async": True},
             "redis": {"url": f"unix://{host.redis.socket}", "app": "test"},
             "redis-async": {"url": f"unix://{host.redis.socket}", "app": "test", "is_async": True}}[way]
    assert made.ask("open", **where) == {}
    made.way, made.host, made.server, made.name = way, host, server, f"{language}-{way}"
    made.is_redis = way.startswith("redis")
    yield made
    made.close()


def test_a_task_runs_and_its_result_comes_back(live):
    for case in CASES:
        task = case.get("submit", {})
        if not case["name"].startswith(("key", "payload", "header of bytes")) or "request" not in case:
            continue
        payload = b"1 result \0" + base64.b64decode(task.get("payload_base64", ""))
        told = live.ask("call", task={**task, "payload_base64": b64(payload)}, wait_ms=30000)
        assert (told.get("outcome"), told.get("result_base64")) == ("done", b64(payload)), (case["name"], told)


def test_headers_arrive_byte_for_byte(live):
    for case in CASES:
        task = case.get("submit", {})
        if "request" not in case or not case["name"].startswith("header"):
            continue
        (name, value), = [*task.get("headers", {}).items(), *task.get("headers_base64", {}).items()]
        value = base64.b64decode(value) if "headers_base64" in task else value.encode()
        told = live.ask("call", task={**task, "payload_base64": b64(f"2 header:{name.lower()}".encode())}, wait_ms=30000)
        assert (told["outcome"], told.get("result_base64") or "") == ("done", b64(value)), (case["name"], told)


def test_a_key_keeps_the_order_of_many(live):
    tasks = [{"handler": "mail", "key": f"{live.name}-{n % 3}", "payload_base64": b64(str(n).encode())} for n in range(300)]
    tasks[150] = {"handler": "9bad"}
    told = live.ask("submit_many", tasks=tasks)
    assert len(told) == 300 and told[150]["error"] == "refused" and all("id" in one for at, one in enumerate(told) if at != 150), told[150]

    def ended():
        seen = {}  # keys of other tests have blanks in them
        for key, number in re.findall(rf"^end \d+ ({live.name}-\d) \S+ (\d+) ", (live.host.folder / "ledger").read_text(), re.MULTILINE):
            seen.setdefault(key, []).append(int(number))
        return seen

    wait_until(lambda: sum(map(len, ended().values())) == 299, "all are done")
    assert all(numbers == sorted(numbers) for numbers in ended().values())


def test_what_died_is_told_with_its_reason(live):
    told = live.ask("call", task={"handler": "mail", "key": "d", "payload_base64": b64(b"3 reject")}, wait_ms=30000)
    assert (told["outcome"], told["reason"]) == ("dead", "rejected")


def test_names_that_make_a_repeat_harmless(live):
    task = {"handler": "mail", "key": "i", "payload_base64": b64(b"4"), "idempotency_key": f"req-{live.name}"}
    first = live.ask("submit", task=task)
    if live.is_redis:
        assert first["error"] == "refused" and "idempotency_key" in first["text"] and "HTTP" in first["text"]
        return
    again = live.ask("submit", task=task)
    assert (first["duplicate"], again["duplicate"]) == (False, True) and first["id"] == again["id"]
    other = live.ask("submit", task={**task, "payload_base64": b64(b"5")})
    assert other["error"] == "refused"


def test_wait_tells_how_a_task_ended(live):
    if live.is_redis:
        pytest.skip("there only call() leaves a reply")
    ids = [live.ask("submit", task={"handler": "mail", "key": "w", "payload_base64": b64(text)})["id"] for text in (b"20", b"21 reject")]
    assert live.ask("wait", id=ids[0], wait_ms=60000)["outcome"] == "done"
    dead = live.ask("wait", id=ids[1], wait_ms=60000)
    assert (dead["outcome"], dead["reason"]) == ("dead", "rejected")
    later = live.ask("submit", task={"handler": "mail", "key": "w", "delay_ms": 3_600_000})["id"]
    assert live.ask("wait", id=later, wait_ms=50)["outcome"] == "waiting"
    assert live.ask("wait", id="nothing-1", wait_ms=50)["error"] == "refused"


def test_cancel_and_results(live):
    if live.is_redis:
        pytest.skip("a host does these, over HTTP")
    later = live.ask("submit", task={"handler": "mail", "key": "c", "delay_ms": 3_600_000, "payload_base64": b64(b"6")})
    assert live.ask("task", id=later["id"])["state"] == "delayed"
    live.ask("cancel", id=later["id"])
    wait_until(lambda: live.ask("task", id=later["id"]).get("state") == "dead", "it was cancelled")
    assert live.ask("cancel", id="nothing-1")["error"] == "refused"
    sent = live.ask("submit", task={"handler": "mail", "key": "r", "payload_base64": b64(b"7 result")})
    taken = []
    wait_until(lambda: taken.extend(live.ask("results", max=10)) or any(one["id"] == sent["id"] for one in taken), "the result is there")
    ours, = [one for one in taken if one["id"] == sent["id"]]
    assert base64.b64decode(ours["data_base64"]) == b"7 result"
    assert live.ask("commit", receipts=[one["receipt"] for one in taken])["committed"] == len(taken)


def test_who_is_not_there_and_who_says_no(live):
    if live.is_redis:
        pytest.skip("test_clients_redis.py has it")
    nobody = {"http": f"http://127.0.0.1:{free_port()}", "async": f"http://127.0.0.1:{free_port()}", "unix": "http+unix:/nonexistent/socket"}[live.way]
    live.ask("open", url=nobody, is_async=live.way == "async")
    assert live.ask("submit", task={"handler": "mail"})["error"] == "retry"
    live.ask("open", url=f"http://127.0.0.1:{live.server.port}", token="wrong", is_async=live.way == "async")
    told = live.ask("submit", task={"handler": "mail"})
    assert told["error"] == "refused", told


def test_an_answer_that_does_not_come_is_unknown_and_nothing_is_sent_twice(live):
    if live.is_redis or live.way == "unix":
        pytest.skip("the same code as over TCP")
    server = socket.create_server(("127.0.0.1", 0))
    seen = []

    def serve():
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            seen.append(connection.recv(65536))
            connection.close()

    threading.Thread(target=serve, daemon=True).start()
    live.ask("open", url=f"http://127.0.0.1:{server.getsockname()[1]}", is_async=live.way == "async")
    assert live.ask("submit", task={"handler": "mail"})["error"] == "unknown"
    assert len(seen) == 1
    assert live.ask("submit", task={"handler": "mail", "idempotency_key": "again"})["error"] == "unknown"
    assert len(seen) > 2, "with an idempotency key it is sent again"
    server.close()


@pytest.mark.parametrize("language, way", LANGUAGES)
def test_the_readme_works_as_typed(shared, tmp_path, language, way):
    if not shutil.which(language.replace("python", "python3")):
        pytest.skip(f"{language} is not installed")
    server = shared
    blocks = blocks_of(language, False)
    assert blocks
    for at, text in enumerate(blocks):
        folder = tmp_path / f"readme-{at}"
        folder.mkdir()
        words, more = way(text, folder)
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120, env={
            **os.environ, "QUIVER_URL": f"http://127.0.0.1:{server.port}", "QUIVER_TOKEN": server.token, **more})
        assert done.returncode == 0, done.stderr
        assert re.search(r"^[0-9a-z]{20}-\d+$", done.stdout, re.MULTILINE), done.stdout
        assert at or re.search(r"done\s+(b')?2 result", done.stdout), done.stdout
