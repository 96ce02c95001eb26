"""webhook under a real host: judged by what a receiver of the test got, which checks signatures with its own code."""
import base64
import hashlib
import hmac
import http.server
import json
import re
import signal
import socket
import ssl
import subprocess
import threading
import time

import pytest

from hosts import Host, wait_until

CONFIG = """
app = "test"; shards = 4; state = "{folder}/state"; plugins = "{plugins}";
store = {{ url = "sqlite:{folder}/q.db"; synchronous = "normal"; }};
lease = {{ ttl = "1s"; drain = "20s"; }}; log = {{ level = "debug"; }};
limits = {{ api = {{ rate = 1000; per = "1s"; burst = 1000; }}; }};
handlers = {{ hook = {{ plugin = "webhook.so"; threads = 4; timeout = "60s"; grace = "30s"; {more}
  retry = {{ attempts = 3; backoff = "20ms"; max = "100ms"; }}; later = {{ wait = "50ms"; }};
  config = {{ {config} }}; }}; }};
"""
KEY = "whsec_" + base64.b64encode(b"a key that only two know").decode()


class Receiver:
    """An HTTP server that writes down what it gets, and answers as `answer(number, handler)` says."""

    def __init__(self, answer=None, port=0, address="127.0.0.1", tls=None):
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                with receiver.lock:
                    receiver.got.append((self.path, dict(self.headers.items()), body))
                    number = len(receiver.got)
                status, headers, text = (receiver.answer or (lambda *_: (200, {}, b"ok")))(number, self)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, *_):
                pass  # the client went away: some tests want that

        self.answer, self.got, self.lock = answer, [], threading.Lock()
        self.server = Server((address, port), Handler)
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def url(self, path="/", scheme="http"):
        return f"{scheme}://127.0.0.1:{self.port}{path}"

    def bodies(self):
        with self.lock:
            return [body.decode() for _, _, body in self.got]

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def receivers():
    """Makes receivers, and closes them."""
    made = []

    def make(*words, **options):
        made.append(Receiver(*words, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


class HookHost(Host):
    def hook(self, url, config="", more="", allow='"127.0.0.1"'):
        self.config.write_text(CONFIG.format(folder=self.folder, plugins=self.plugins, more=more,
                                             config=f'url = "{url}"; allow = [ {allow} ]; {config}'))
        return self

    def errors(self):
        """Of what is dead, by key."""
        found = [json.loads(self.cli("task", row["task_id"], "--json")) for row in self.rows("dead")]
        return {task["key"]: json.dumps(task) for task in found}


@pytest.fixture
def host(quiver, root, tmp_path):
    made = HookHost(quiver, root / "plugins", tmp_path)
    yield made
    made.close()


def tasks(count, keys, **more):
    return [{"handler": "hook", "key": f"k{n % keys}", "payload": str(n), **more} for n in range(count)]


def in_order(bodies, keys):
    """The bodies of each key, repeats left out, came in the order of submission."""
    seen = {}
    for number in map(int, bodies):
        row = seen.setdefault(number % keys, [])
        if number not in row:
            row.append(number)
    assert all(row == sorted(row) for row in seen.values()), seen
    return sum(map(len, seen.values()))


def test_a_receiver_can_check_each_request_by_itself(host, receivers):
    """With Python's own hmac, as plugins/webhook/README.md says it."""
    receiver = receivers()
    (host.folder / "key").write_text(KEY + "\n")
    (host.folder / "key").chmod(0o600)
    host.hook(receiver.url("/{key}/{header.tenant}"), f'sign_keys = [ "{host.folder}/key" ];').start()
    host.submit(tasks(200, 10, headers={"tenant": "a/b ä", "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}))
    host.wait_done(200)
    assert in_order(receiver.bodies(), 10) == 200 and len(receiver.got) == 200
    for path, headers, body in receiver.got:
        assert path == f"/k{int(body) % 10}/a%2Fb%20%C3%A4"
        assert headers["traceparent"].startswith("00-0af7651916cd43dd8448eb211c80319c-")
        assert headers["Idempotency-Key"] == headers["webhook-id"]
        assert abs(time.time() - int(headers["webhook-timestamp"])) < 600
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        digest = hmac.new(base64.b64decode(KEY.removeprefix("whsec_")), signed, hashlib.sha256).digest()
        assert headers["webhook-signature"] == "v1," + base64.b64encode(digest).decode()
    assert len({headers["webhook-id"] for _, headers, _ in receiver.got}) == 200


def test_a_destination_that_is_gone_stops_no_other_and_loses_nothing(host, receivers):
    good, bad = receivers(), receivers()
    bad.close()
    host.hook("http://127.0.0.1:{header.port}/").start()
    host.submit([{**task, "key": "bad-" + task["key"], "headers": {"port": str(bad.port)}} for task in tasks(20, 4)])
    host.submit([{**task, "headers": {"port": str(good.port)}} for task in tasks(60, 10)])
    wait_until(lambda: len(set(good.bodies())) == 60, "the other destination gets all of its own")
    back = receivers(port=bad.port)
    host.wait_done(80)
    assert in_order(back.bodies(), 4) == 20 and host.sum("dead") == 0


def test_a_receiver_that_crashes_in_the_middle_gets_it_again_with_the_same_name(host, receivers):
    def crash(number, handler):
        body = receiver.got[number - 1][2].decode()
        if receiver.bodies().count(body) == 1 and int(body) % 3 == 0:
            handler.connection.shutdown(socket.SHUT_RDWR)  # the answer never arrives
        return 200, {}, b""

    receiver = receivers(crash)
    host.hook(receiver.url()).start()
    host.submit(tasks(30, 30))
    host.wait_done(30)
    names = {}
    for _, headers, body in receiver.got:
        names.setdefault(body, set()).add(headers["Idempotency-Key"])
    assert len(names) == 30 and all(len(one) == 1 for one in names.values()) and len(receiver.got) == 40


def test_a_host_that_is_killed_loses_nothing(host, receivers):
    receiver = receivers(lambda *_: (time.sleep(0.01), (200, {}, b""))[1])
    host.hook(receiver.url()).start()
    host.submit(tasks(300, 10))
    wait_until(lambda: len(receiver.got) > 50, "some were sent")
    host.kill()
    host.start()
    host.wait_done(300)
    assert in_order(receiver.bodies(), 10) == 300


@pytest.mark.parametrize("more", ["", 'limited_by = [ "api" ];'])
def test_too_many_costs_no_attempt_and_waits_as_told(host, receivers, more):
    receiver = receivers(lambda number, _: (429, {"Retry-After": "1"}, b"") if number <= 4 else (200, {}, b""))
    host.hook(receiver.url(), 'headers = [ "X-Attempt: {attempt}" ];', more=more).start()
    host.submit(tasks(10, 2))
    host.wait_done(10)
    assert {headers["X-Attempt"] for _, headers, _ in receiver.got} == {"1"}
    assert in_order(receiver.bodies(), 2) == 10


def test_a_redirect_to_an_address_that_is_not_allowed_is_not_followed(host, receivers):
    inside = receivers(address="127.0.0.2")
    receiver = receivers(lambda *_: (307, {"Location": f"http://127.0.0.2:{inside.port}/secret"}, b""))
    host.hook(receiver.url(), "redirects = 3;").start()
    host.submit(tasks(1, 1))
    wait_until(lambda: host.sum("dead") == 1, "it is dead")
    assert "127.0.0.2 is loopback" in host.errors()["k0"] and not inside.got


def test_answers_are_outcomes(host, receivers):
    def by_body(number, handler):
        return int(receiver.got[-1][0][1:]), {}, b"because"

    receiver = receivers(by_body)
    host.hook(receiver.url("/{header.status}"), more="processes = 1;").start()
    host.submit([{"handler": "hook", "key": status, "payload": "1", "headers": {"status": status}}
                 for status in ("404", "500")])
    wait_until(lambda: host.sum("dead") == 2, "both are dead")
    assert "answered 404: because" in host.errors()["404"] and "answered 500" in host.errors()["500"]
    sent = [path for path, _, _ in receiver.got]
    assert (sent.count("/404"), sent.count("/500")) == (1, 3)


def test_a_slow_receiver_is_given_up_and_a_cancelled_task_ends_at_once(host, receivers):
    stay = threading.Event()
    receiver = receivers(lambda *_: (stay.wait(60), (200, {}, b""))[1])
    host.hook(receiver.url(), 'timeout = "55s";').start()
    slow = host.cli("submit", "hook", "--key", "a", "1").strip()
    wait_until(lambda: receiver.got, "it was sent")
    host.cli("task", "cancel", slow)
    wait_until(lambda: host.sum("dead") == 1, "it was cancelled", 30)
    assert not stay.is_set()
    host.signal(signal.SIGTERM)
    assert host.wait() == 0
    stay.set()
    host.hook(receiver.url(), 'timeout = "200ms";').start()
    stay.clear()
    host.cli("submit", "hook", "--key", "b", "2")
    wait_until(lambda: host.sum("dead") == 2, "it was given up")
    assert "gave no whole answer" in host.errors()["b"]
    stay.set()


def test_the_answer_is_the_result(host, receivers):
    receiver = receivers(lambda *_: (201, {}, b"made \xff\0 it"))
    host.hook(receiver.url()).start()
    said = host.cli("submit", "hook", "--key", "a", "--wait", "x", "--json")
    assert base64.b64decode(json.loads(said)["result_base64"]) == b"made \xff\0 it"


def test_tls_is_verified(host, receivers):
    def openssl(*words):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *map(str, words)],
                       check=True, capture_output=True)

    openssl("-subj", "/CN=hooks", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", host.folder / "tls.key",
            "-out", host.folder / "tls.pem")
    receiver = receivers(tls=(host.folder / "tls.pem", host.folder / "tls.key"))
    host.hook(receiver.url(scheme="https")).start()
    host.submit(tasks(1, 1))
    host.wait_for_log("cannot be reached: SSL certificate problem")
    assert not receiver.got
    host.hook(receiver.url(scheme="https"), f'ca_file = "{host.folder}/tls.pem"; redirects = 1;')
    host.cli("reload")
    host.wait_done(1)
    plain = receivers()
    receiver.answer = lambda *_: (307, {"Location": plain.url()}, b"")
    host.submit(tasks(1, 1))
    wait_until(lambda: host.sum("dead") == 1, "it is dead")
    assert "it leads from https to http" in host.errors()["k0"] and not plain.got


def test_a_proxy_is_used_only_if_it_is_set(host, receivers, monkeypatch):
    proxy, receiver = receivers(), receivers()
    monkeypatch.setenv("http_proxy", proxy.url())
    host.hook(receiver.url(), more='environment = [ "http_proxy" ];').start()
    host.submit(tasks(1, 1))
    host.wait_done(1)
    assert len(receiver.got) == 1 and not proxy.got
    assert host.stop() == 0
    host.hook("http://hooks.example.invalid/{key}", f'proxy = "{proxy.url()}";', allow="").start()
    host.submit(tasks(1, 1))
    host.wait_done(2)
    assert proxy.got[0][0] == "http://hooks.example.invalid/k0"


def test_the_settings_of_the_page_are_the_settings_of_the_plugin(quiver, root, tmp_path):
    """Set them all: none of them is reported as unknown."""
    page = (root / "plugins/webhook/README.md").read_text()
    rows = page.split("| setting |", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    names = [name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert {"url", "method", "headers", "sign_keys", "allow", "proxy", "rules"} <= set(names)
    for name in ("secret", "tls"):
        (tmp_path / name).write_text("a text of some length")
        (tmp_path / name).chmod(0o600)
    values = {"url": "https://hooks.example.org/{secret.a}", "method": "PUT", "headers.0": "A: b", "secrets.a": tmp_path / "secret",
              "sign_keys.0": tmp_path / "secret", "rules.0": "404=done", "redirects": 1, "allow.0": "10.0.0.0/8", "result": "none",
              "max_result": "1KiB", "proxy": "http://127.0.0.1:9", "proxy_user_file": tmp_path / "secret", "ca_file": tmp_path / "tls",
              "cert_file": tmp_path / "tls", "key_file": tmp_path / "tls", "no_such_setting": 1,
              **{name: "1s" for name in ("timeout", "connect_timeout", "retry_after_max")}}
    assert {name.split(".")[0] for name in values} - {"no_such_setting"} == set(names)
    words = [word for name, value in values.items() for word in ("--set", f"{name}={value}")]
    done = subprocess.run([quiver, "try", root / "plugins/webhook.so", "--payload", "x", *words], capture_output=True, text=True, timeout=120)
    assert re.findall(r"never read .*: (.*)", done.stderr) == ["no_such_setting"], done.stderr


def test_the_receiver_of_the_page_accepts_what_is_sent_and_nothing_else(host, receivers, root):
    """The check that the page shows in Python, run as it stands there."""
    page = (root / "plugins/webhook/README.md").read_text()
    names = {}
    exec(page.split("```python\n", 1)[1].split("```", 1)[0], names)
    receiver = receivers()
    for name, text in (("new", KEY), ("old", "an older key of some length")):
        (host.folder / name).write_text(text)
        (host.folder / name).chmod(0o600)
    host.hook(receiver.url(), f'sign_keys = [ "{host.folder}/new", "{host.folder}/old" ];').start()
    host.submit(tasks(3, 3))
    host.wait_done(3)
    for _, headers, body in receiver.got:
        for key in (KEY, "an older key of some length"):
            assert names["is_genuine"](headers, body, key)
            assert not names["is_genuine"](headers, body + b"x", key)
            assert not names["is_genuine"]({**headers, "webhook-timestamp": "1"}, body, key)
        assert not names["is_genuine"](headers, body, "another key of some length")
