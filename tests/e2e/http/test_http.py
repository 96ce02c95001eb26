"""HTTP at a host: tasks come in, health is told, strangers and malformed requests are refused."""
import http.client
import json
import pathlib
import signal
import socket

import pytest

from hosts import wait_until
from http_hosts import Server, detail

@pytest.fixture
def server(host):
    return Server(host)


def test_a_task_comes_in_and_its_result_goes_out(server):
    status, fields, body = server.post("/v1/tasks/mail?key=k1", b"1 result")
    assert status == 202
    number = json.loads(body)["id"]
    assert fields["Location"] == f"/v1/tasks/{number}"
    status, fields, body = server.post("/v1/tasks/mail?key=k%2F1&wait=30s", b"2 result")
    assert (status, body) == (200, b"2 result")
    server.host.wait_done(2)
    keys = {entry.key for entry in server.host.ledger()}
    assert keys == {"k1", "k/1"}


def test_a_payload_is_any_bytes(server):
    payload = bytes(range(256)) * 40
    status, _, body = server.post("/v1/tasks/mail?wait=30s", b"3 result " + payload)
    assert (status, body) == (200, b"3 result " + payload)


def test_a_header_may_be_any_bytes(server):
    told = server.post("/v1/tasks/mail?wait=30s", b"7 header:digest", **{"Quiver-Header64-digest": "AAEK/w=="})
    assert (told[0], told[2]) == (200, b"\0\x01\n\xff")
    wrong = server.post("/v1/tasks/mail", b"8", **{"Quiver-Header64-digest": "AAEK/w"})
    assert wrong[0] == 400 and "header64.digest: is not base64 with its padding" in detail(wrong)
    line = json.dumps({"handler": "mail", "payload": "9 header:digest", "headers_base64": {"digest": "AAEK/w=="}})
    status, _, body = server.post("/v1/tasks", line.encode())
    assert status == 200 and json.loads(body)["status"] == 202, body


def test_a_dead_task_is_told_with_its_history(server):
    status, _, body = server.post("/v1/tasks/mail?wait=30s", b"4 reject")
    told = json.loads(body)
    assert status == 422 and told["reason"] == "rejected" and told["history"]


def test_a_wait_that_runs_out_is_no_error(server, tmp_path):
    gate = tmp_path / "gate"
    status, fields, body = server.post("/v1/tasks/mail?wait=100ms", f"5 wait:{gate}".encode())
    assert status == 202 and json.loads(body)["id"] in fields["Location"]
    gate.touch()
    server.host.wait_done(1)


def test_a_client_that_leaves_ends_its_wait_and_not_the_task(server, tmp_path):
    gate = tmp_path / "gate"
    body = f"6 wait:{gate}".encode()
    server.raw(b"POST /v1/tasks/mail?wait=60s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
               b"Content-Length: %d\r\n\r\n%s" % (server.token.encode(), len(body), body), wait=False)
    wait_until(lambda: [e for e in server.host.ledger() if e.what == "start"], "it started")
    gate.touch()
    server.host.wait_done(1)
    assert server.host.stop() == 0


def state_of(host):
    """As ps(1) shows it."""
    return pathlib.Path(f"/proc/{host.process.pid}/stat").read_text().rpartition(")")[2].split()[0]


def is_answered(server):
    try:
        return server.ask("GET", "/livez")[0] == 200
    except OSError:
        return False


@pytest.mark.parametrize("path", ["/v1/tasks/mail", "/v1/tasks"])
def test_a_client_that_leaves_within_its_body_leaves_its_place(host, path):
    server = Server(host, "connections = 4;")
    for _ in range(8):
        server.raw(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n"
                   "Content-Length: 100\r\n\r\nhalf of it".encode(), wait=False)
        wait_until(lambda: is_answered(server), "there is a place again")
    assert host.stop() == 0


def test_a_client_that_leaves_before_its_stream_begins_leaves_its_place(host):
    server = Server(host, "connections = 4;")
    path, = (host.folder / "state").glob("*.http")
    for _ in range(8):
        host.signal(signal.SIGSTOP)  # it reads the request when the client is gone
        try:
            wait_until(lambda: state_of(host) == "T", "it stands still")
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(str(path))
                s.sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        finally:
            host.signal(signal.SIGCONT)
        wait_until(lambda: is_answered(server), "there is a place again")
    assert host.stop() == 0


def test_lines_are_tasks_in_their_order(server):
    lines = [{"handler": "mail", "key": "k", "payload": f"{i}"} for i in range(2500)]
    lines[7] = {"handler": "mail", "lane": "middle"}
    body = "\n".join(map(json.dumps, lines)).encode() + b"\n\nnot json"
    status, fields, answer = server.post("/v1/tasks", body)
    told = [json.loads(line) for line in answer.splitlines()]
    assert status == 200 and fields["Content-Type"] == "application/x-ndjson"
    assert [t["line"] for t in told] == list(range(1, len(told) + 1))
    assert [t["line"] for t in told if t["status"] != 202] == [8, 2501, 2502]
    assert "lane: middle" in told[7]["error"]
    server.host.wait_done(2499)
    starts = [int(e.number) for e in server.host.ledger() if e.what == "start"]
    assert starts == sorted(starts)


def test_a_body_may_come_in_chunks(server):
    head = (b"POST /v1/tasks/mail?wait=30s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nConnection: close\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n" % server.token.encode())
    answer = server.raw(head + b"4\r\n8 re\r\n4\r\nsult\r\n0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 ") and answer.endswith(b"\r\n\r\n8 result")


def test_requests_of_one_connection_are_answered_in_order(server):
    one = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
    last = b"GET /nosuch HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    answer = server.raw(one * 50 + last)
    assert answer.count(b"HTTP/1.1 200 OK") == 50
    assert answer.count(b"HTTP/1.1 404 ") == 1


@pytest.mark.parametrize("path, size, status, text", [
    ("/v1/tasks/mail?kye=k", 0, 400, "no parameter kye"),
    ("/v1/tasks/mail?key=a&key=b", 0, 400, "key: is given twice"),
    ("/v1/tasks/mail?delay=5", 0, 400, "delay"),
    ("/v1/tasks/mail?lane=middle", 0, 400, "it is high, normal or low"),
    ("/v1/tasks/mail?attempts=0", 0, 400, "a number from 1 to 1000"),
    ("/v1/tasks/mail?wait=2h", 0, 400, "at most 60s"),
    ("/v1/tasks/mail?unique=1m", 0, 400, "unique: needs a key"),
    ("/v1/tasks/no%20handler", 0, 400, "handler"),
    ("/v1/tasks/mail?key=%zz", 0, 400, "key"),
    ("/v1/tasks/mail?key=%00", 0, 400, "key"),
    ("/v1/tasks/mail", 1024 * 1024 + 1, 413, "at most 1048576 bytes"),
    ("/nosuch", 0, 404, "there is no /nosuch"),
    ("/livez", 0, 405, "does not take this method"),
])
def test_what_is_wrong_is_named(server, path, size, status, text):
    answer = server.post(path, b"x" * size)
    assert answer[0] == status and text in detail(answer)
    assert server.host.sum("done") == 0


def test_unique_is_a_conflict_that_names_the_first(server):
    first = json.loads(server.post("/v1/tasks/mail?key=u&unique=1h", b"9")[2])["id"]
    answer = server.post("/v1/tasks/mail?key=u&unique=1h", b"9")
    assert answer[0] == 409 and first in detail(answer)


def test_a_repeat_with_an_idempotency_key_stores_nothing(server):
    first = server.post("/v1/tasks/mail?key=i", b"1", Idempotency_Key="order-17")
    again = server.post("/v1/tasks/mail?key=i", b"1", Idempotency_Key="order-17")
    assert (first[0], again[0]) == (202, 202)
    assert json.loads(again[2]) == {"id": json.loads(first[2])["id"], "duplicate": True}
    other = server.post("/v1/tasks/mail?key=i", b"2", Idempotency_Key="order-17")
    assert other[0] == 409 and json.loads(first[2])["id"] in detail(other)
    assert server.post("/v1/tasks/mail?key=j", b"1", Idempotency_Key="order-17")[0] == 202
    assert server.post("/v1/tasks/mail", b"1", Idempotency_Key="")[0] == 400
    server.host.wait_done(2)


def test_a_repeat_after_a_kill_stores_nothing(server):
    first = json.loads(server.post("/v1/tasks/mail", b"1", Idempotency_Key="order-18")[2])["id"]
    server.host.kill()
    server.host.start()
    line = json.dumps({"handler": "mail", "payload": "1", "idempotency_key": "order-18"}).encode()
    told = json.loads(server.post("/v1/tasks", line)[2])
    assert told["id"] == first
    server.host.wait_done(1)


def test_a_task_is_found_cancelled_and_requeued(server, tmp_path):
    gate = tmp_path / "gate"
    blocking = json.loads(server.post("/v1/tasks/mail?key=c", f"1 wait:{gate}".encode())[2])["id"]
    waiting = json.loads(server.post("/v1/tasks/mail?key=c", b"2")[2])["id"]
    wait_until(lambda: server.host.ledger(), "the first started")
    told = json.loads(server.ask("GET", f"/v1/tasks/{waiting}", token=server.token)[2])
    assert told["id"] == waiting and told["key"] == "c"
    assert server.post(f"/v1/tasks/{waiting}/cancel")[0] in (200, 202)
    gate.touch()

    def is_dead():
        told = json.loads(server.ask("GET", f"/v1/tasks/{waiting}", token=server.token)[2])
        return told.get("state") == "dead"

    wait_until(is_dead, "the second is dead")
    assert server.post(f"/v1/tasks/{waiting}/cancel")[0] == 409
    assert server.post(f"/v1/tasks/{waiting}/requeue")[0] == 200
    assert server.post(f"/v1/tasks/{waiting}/requeue")[0] == 404
    server.host.wait_done(2)

    def done():
        status, _, body = server.ask("GET", f"/v1/tasks/{blocking}", token=server.token)
        return status == 200 and json.loads(body)
    wait_until(done, "the host has the answer to its advance")
    assert done()["state"] == "done" and done()["handler"] == "mail" and done()["attempt"] == 1
    status, _, body = server.ask("GET", f"/v1/tasks/x{blocking}", token=server.token)
    assert status == 404 and " remembers the last " in json.loads(body)["detail"]
    assert server.ask("GET", "/v1/tasks/nonsense", token=server.token)[0] == 404
    assert "event=action by=admin action=cancel" in server.host.log()


def test_a_key_is_held_and_let_go(server):
    assert server.post("/v1/keys/k%2F1/hold?reason=look")[0] in (200, 202)
    server.post("/v1/tasks/mail?key=k%2F1", b"1")

    def state():
        return json.loads(server.ask("GET", "/v1/keys/k%2F1", token=server.token)[2])["state"]

    wait_until(lambda: state() == "held", "the key is held")
    assert server.host.sum("done") == 0
    assert server.post("/v1/keys/k%2F1/unhold")[0] in (200, 202)
    server.host.wait_done(1)
    assert state() == "free"
    assert server.post("/v1/keys/k%2F1/shake")[0] == 404


def test_a_paused_handler_starts_nothing_until_it_is_resumed(server):
    assert server.post("/v1/handlers/mail/pause?reason=provider%20is%20down")[0] == 200
    told = json.loads(server.ask("GET", "/v1/status", token=server.token)[2])
    assert told["totals"]["paused"] == {"mail": "provider is down"}
    assert server.post("/v1/handlers/mail/resume")[0] == 200
    server.post("/v1/tasks/mail", b"1")
    server.host.wait_done(1)
    assert server.post("/v1/members/nosuch/drain")[0] == 200
    assert server.post("/v1/members/nosuch/activate")[0] == 200


def test_each_role_may_what_it_is_for(server):
    shop, watcher = "shop-shop-shop-shop", "watcher-watcher-1"
    assert server.ask("GET", "/livez")[0] == 200
    assert server.ask("GET", "/readyz")[0] == 200
    assert server.ask("GET", "/v1/status")[0] == 401
    assert server.ask("GET", "/v1/status", token="nobody-has-this-one")[0] == 401
    assert server.ask("GET", "/v1/status", token=shop)[0] == 403
    assert server.ask("GET", "/v1/status", token=watcher)[0] == 200
    assert server.ask("POST", "/v1/tasks/mail", b"1", token=watcher)[0] == 403
    assert server.ask("POST", "/v1/tasks/mail", b"1", token=shop)[0] == 202

    def counted():
        member, = json.loads(server.host.cli("status", "--json"))["members"]
        return member.get("http_counts", {})
    wait_until(lambda: counted().get("forbidden", 0) >= 4, "what was forbidden is told without anybody asking the host")
    assert counted()["requests"] >= 8 and counted()["accepted"] >= 1 and counted()["malformed"] == 0
    assert " requests, 4 forbidden\n" in server.host.cli("status")


def test_a_browser_is_let_in_under_our_name_and_for_our_page(server):
    assert server.ask("GET", "/livez", Host="evil.example")[0] == 421
    assert server.post("/v1/tasks/mail", b"1", Origin="http://evil.example")[0] == 403
    assert server.post("/v1/tasks/mail", b"1", Sec_Fetch_Site="cross-site")[0] == 403
    assert server.post("/v1/tasks/mail", b"1", Origin=f"http://127.0.0.1:{server.port}")[0] == 202


SMUGGLED = {
    "two lengths": b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
    "length and chunks": b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two hosts": b"Host: localhost\r\n\r\n",
    "a NUL": b"X: a\0b\r\n\r\n",
    "a bare line feed": b"X: a\nY: b\r\n\r\n",
    "a folded line": b"X: a\r\n b\r\n\r\n",
    "a space before the colon": b"X : a\r\n\r\n",
    "a negative length": b"Content-Length: -1\r\n\r\n",
    "an unknown coding": b"Transfer-Encoding: gzip, chunked\r\n\r\n",
}


@pytest.mark.parametrize("case", SMUGGLED)
def test_a_request_that_can_be_read_in_two_ways_ends_the_connection(server, case):
    second = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
    answer = server.raw(b"POST /v1/tasks/mail HTTP/1.1\r\nHost: localhost\r\n" + SMUGGLED[case] + second)
    assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 501 ")) and answer.count(b"HTTP/1.1 ") == 1


def test_connections_that_say_nothing_cost_nobody_anything(host):
    server = Server(host, "connections = 250;")
    idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(200)]
    for s in idle:
        s.sendall(b"POST /v1/tasks/mail HTTP/1.1\r\nHost: lo")
    for i in range(20):
        assert server.post("/v1/tasks/mail?wait=30s", f"{i} result".encode())[0] == 200
    more = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(60)]
    wait_until(lambda: any(is_closed(s) for s in more), "one beyond the limit is closed")
    for s in idle + more:
        s.close()
    assert server.host.stop() == 0


def is_closed(s):
    s.setblocking(False)
    try:
        return s.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def test_the_unix_socket_knows_its_peer(server):
    paths = list((server.host.folder / "state").glob("*.http"))
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(paths[0]))
        s.sendall(b"GET /v1/status HTTP/1.1\r\nHost: any\r\nConnection: close\r\n\r\n")
        answer = b""
        while piece := s.recv(65536):
            answer += piece
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert server.host.stop() == 0
    assert not paths[0].exists()


def test_a_busy_port_is_a_warning(host):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        host.configure(change=lambda text: f'http = {{ listen = "127.0.0.1:{port}"; }};\n' + text, mail="")
        host.start()
    host.wait_for_log("event=http-port")
    assert host.stop() == 0


def test_beyond_loopback_it_takes_tokens(host):
    host.configure(change=lambda text: 'http = { listen = "0.0.0.0:0"; };\n' + text, mail="")
    host.start(is_ready=False)
    assert host.wait() == 1
    assert "http.tokens_file" in host.log()


def test_tokens_change_on_reload(server):
    tokens = server.host.folder / "tokens"
    tokens.write_text("shop submit another-token-of-shop\n")
    server.host.cli("reload", "--wait")
    assert server.ask("POST", "/v1/tasks/mail", b"1", token="shop-shop-shop-shop")[0] == 401
    assert server.ask("POST", "/v1/tasks/mail", b"1", token="another-token-of-shop")[0] == 202
    assert server.post("/v1/tasks/mail", b"1")[0] == 202


def test_a_host_that_stops_answers_what_it_has_begun(server, tmp_path):
    gate = tmp_path / "gate"
    body = f"7 wait:{gate} result".encode()
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as s:
        s.sendall(b"POST /v1/tasks/mail?wait=60s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
                  b"Content-Length: %d\r\n\r\n%s" % (server.token.encode(), len(body), body))
        wait_until(lambda: [e for e in server.host.ledger() if e.what == "start"], "it started")
        server.host.signal()
        server.host.wait_for_log("event=stopping")
        gate.touch()
        answer = s.recv(65536)
        while b"\r\n\r\n" not in answer:
            answer += s.recv(65536)
    assert answer.startswith(b"HTTP/1.1 20")
    assert server.host.wait() == 0
