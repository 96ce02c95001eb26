"""The HTTP server while things change: settings and tokens, generations, a restart under a service manager, a proxy."""
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import threading

import pytest

from hosts import wait_until
from http_hosts import Server, free_port


def test_tokens_and_limits_change_with_the_settings(host):
    server = Server(host)
    assert server.ask("GET", "/v1/app", token="new-new-new-new-1")[0] == 401
    (host.folder / "tokens").write_text("new read new-new-new-new-1\n")
    host.config.write_text(host.config.read_text().replace("http = {", 'http = { hosts = ["quiver.example"];'))
    assert server.ask("GET", "/readyz", Host="quiver.example")[0] == 421
    host.signal(signal.SIGHUP)
    wait_until(lambda: server.ask("GET", "/v1/app", token="new-new-new-new-1")[0] == 200, "the new token is known")
    assert server.ask("GET", "/v1/app", token="watcher-watcher-1")[0] == 401, "the old one is not"
    assert server.ask("GET", "/readyz", Host="quiver.example")[0] == 200
    # What cannot be read changes nothing.
    (host.folder / "tokens").write_text("new read short\n")
    host.signal(signal.SIGHUP)
    host.wait_for_log("event=http-tokens")
    assert server.ask("GET", "/v1/app", token="new-new-new-new-1")[0] == 200


def test_the_port_stays_open_while_generations_change(host):
    server = Server(host)
    answers, is_over = [], threading.Event()

    def ask():
        kept = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        while not is_over.is_set():
            kept.request("POST", "/v1/tasks/mail", b"1", {"Authorization": f"Bearer {server.token}"})
            answer = kept.getresponse()
            answers.append((answer.status, answer.read()))
            answers.append((server.ask("GET", "/livez")[0], b""))
        kept.close()

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        for plugin in ("ledger-two.so", "ledger.so", "ledger-two.so"):
            text = host.config.read_text()
            before = "ledger-two.so" if "ledger-two.so" in text else "ledger.so"
            host.config.write_text(text.replace(before, plugin))
            told = json.loads(server.post("/v1/reload")[2])
            assert "handlers" in told, told
            count = len(answers)
            wait_until(lambda: len(answers) > count + 4, "requests are answered meanwhile")
    finally:
        is_over.set()
        thread.join(60)
    assert {status for status, _ in answers} == {200, 202}


class Manager:
    """Keeps the listening socket and hands it to each host that it starts, as systemd does with quiver.socket."""

    def __init__(self, host):
        self.host = host
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]

    def start(self, is_ready=True):
        self.host.logs.append(self.host.folder / f"log-{len(self.host.logs)}")
        words = f'LISTEN_FDS=1 LISTEN_PID=$$ exec "{self.host.quiver}" run -c "{self.host.config}"'
        fd = self.socket.fileno()
        with open(self.host.logs[-1], "wb") as log:
            self.host.process = subprocess.Popen(["sh", "-c", words], stderr=log, stdout=log, close_fds=False,
                                                 preexec_fn=lambda: os.dup2(fd, 3, inheritable=True))
        if is_ready:
            self.host.wait_for_log("event=running")


def test_a_restart_turns_nobody_away(host):
    host.configure(mail="")
    manager = Manager(host)
    manager.start()
    server = Server.__new__(Server)
    server.host, server.port = host, manager.port
    server.token = (host.folder / "state" / "http.token").read_text().split()[2]
    assert json.loads(server.post("/v1/tasks/mail", b"1")[2])["id"]
    assert host.stop() == 0
    # Nobody is there, and nobody is refused: the request waits for the next host.
    answers = []
    thread = threading.Thread(target=lambda: answers.append(server.post("/v1/tasks/mail?wait=30s", b"2 result")))
    thread.start()
    manager.start()
    thread.join(60)
    assert answers[0][0] == 200 and answers[0][2] == b"2 result"
    assert host.stop() == 0
    manager.socket.close()


def test_what_is_handed_over_must_be_a_socket_that_listens(host):
    host.configure(mail="")
    manager = Manager(host)
    manager.socket.close()
    manager.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    manager.start(is_ready=False)
    assert host.wait() != 0 and "is no TCP socket that listens" in host.log()


# --- behind nginx ---


def nginx_config(root, folder, port, upstream):
    """The shipped example, with this test's ports and paths."""
    site = (root / "etc" / "nginx.conf").read_text()
    for old, new in (("server 127.0.0.1:7070;", f"server 127.0.0.1:{upstream};"),
                     ("listen 443 ssl http2;", f"listen 127.0.0.1:{port} ssl http2;"),
                     ("/etc/ssl/quiver/cert.pem", f"{folder}/cert.pem"), ("/etc/ssl/quiver/key.pem", f"{folder}/key.pem")):
        assert old in site
        site = site.replace(old, new)
    paths = "".join(f"{what}_temp_path {folder}/{what};\n" for what in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    path = folder / "nginx.conf"
    path.write_text(f"daemon off; pid {folder}/pid; error_log {folder}/error.log;\nevents {{}}\n"
                    f"http {{ access_log off;\n{paths}{site} }}\n")
    return path


@pytest.mark.skipif(not shutil.which("nginx"), reason="nginx is not installed")
def test_nginx_with_tls_stands_in_front(host, root, tmp_path):
    server, port = Server(host, 'hosts = ["quiver.example.com"];'), free_port()
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=quiver.example.com",
                    "-addext", "subjectAltName=DNS:quiver.example.com", "-keyout", tmp_path / "key.pem",
                    "-out", tmp_path / "cert.pem"], check=True, capture_output=True)
    proxy = subprocess.Popen(["nginx", "-c", nginx_config(root, tmp_path, port, server.port), "-p", tmp_path],
                             stderr=subprocess.DEVNULL)
    context = ssl.create_default_context(cafile=tmp_path / "cert.pem")

    def ask(verb, path, body=None, token=server.token):
        raw = socket.create_connection(("127.0.0.1", port), timeout=60)
        connection = http.client.HTTPSConnection("quiver.example.com", timeout=60)
        connection.sock = context.wrap_socket(raw, server_hostname="quiver.example.com")
        connection.request(verb, path, body, {"Authorization": f"Bearer {token}"} if token else {})
        return connection.getresponse()

    try:
        def is_up():
            try:
                return ask("GET", "/v1/app").status == 200
            except OSError:
                return False
        wait_until(is_up, "nginx answers")
        answer = ask("POST", "/v1/tasks/mail?wait=30s", b"1 result")
        assert (answer.status, answer.read()) == (200, b"1 result")
        assert ask("GET", "/v1/app", token=None).status == 401
        assert ask("GET", "/livez").status == 403
        lines = ask("POST", "/v1/tasks", b'{"handler": "mail", "payload": "2"}\n' * 3000).read().splitlines()
        assert len(lines) == 3000 and all(json.loads(line)["status"] == 202 for line in lines)
        assert b"event: status" in b"".join(iter_some(ask("GET", "/v1/events")))
    finally:
        proxy.terminate()
        proxy.wait(60)


def iter_some(answer):
    """The lines of the first event: they come at once, not when a buffer is full."""
    while line := answer.readline():
        yield line
        if line.startswith(b"data:"):
            return
