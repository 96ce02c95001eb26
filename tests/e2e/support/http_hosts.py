"""A host with HTTP, and plain requests to it."""
import http.client
import json
import socket

TOKENS = "shop submit shop-shop-shop-shop\nwatcher read watcher-watcher-1\n"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A host with HTTP, and plain requests to it."""

    def __init__(self, host, more="", change=lambda text: text, **handlers):
        """more: settings of `http`; change: of all the text; handlers: as Host.configure() has them (default: mail)."""
        self.host, self.port = host, free_port()
        tokens = host.folder / "tokens"
        tokens.write_text(TOKENS)
        tokens.chmod(0o600)
        line = f'http = {{ listen = "127.0.0.1:{self.port}"; tokens_file = "{tokens}"; {more} }};\n'
        host.configure(change=lambda text: change(line + text), **(handlers or {"mail": ""}))
        host.start()
        self.token = (host.folder / "state" / "http.token").read_text().split()[2]

    def ask(self, verb, path, body=None, token=None, **fields):
        """Status, fields and body of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        if token:
            fields["Authorization"] = f"Bearer {token}"
        connection.request(verb, path, body, {name.replace("_", "-"): value for name, value in fields.items()})
        answer = connection.getresponse()
        found = answer.status, answer.headers, answer.read()
        connection.close()
        return found

    def get(self, path, status=200):
        """What the answer's JSON says."""
        answer = self.ask("GET", path, token=self.token)
        assert answer[0] == status, answer
        return json.loads(answer[2])

    def post(self, path, body=b"", **fields):
        return self.ask("POST", path, body, token=self.token, **fields)

    def raw(self, data, wait=True):
        """All that the server answers until it closes the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as s:
            s.sendall(data)
            answer = b""
            while wait and (piece := s.recv(65536)):
                answer += piece
            return answer


def detail(answer):
    assert answer[1]["Content-Type"] == "application/problem+json"
    return json.loads(answer[2])["detail"]
