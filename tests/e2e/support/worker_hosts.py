"""Hosts with a remote handler, and workers that talk to them over their Unix sockets."""
import contextlib
import http.client
import json
import re
import socket
import subprocess
import zlib

from hosts import Host, wait_until

CONFIG = """
app = "test";
shards = 4;
state = "{folder}/state-{name}";
host = {{ name = "{name}"; }};
plugins = "{plugins}";
store = {{ url = "sqlite:{folder}/q.db"; synchronous = "normal"; }};
coordination = {{ url = "local:{folder}/coordination"; session = "1s"; }};
lease = {{ ttl = "1s"; drain = "20s"; }};
log = {{ level = "debug"; }};
handlers = {{
  mail = {{ plugin = "remote"; remote = {{ ttl = "{ttl}"; }}; timeout = "60s"; retry = {{ backoff = "20ms"; max = "100ms"; }}; }};
  next = {{ plugin = "remote"; }};
}};
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Connection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(str(self.path))


class WorkerHost(Host):
    """A host of a fleet on one file, whose handlers workers serve."""

    def __init__(self, quiver, plugins, folder, name):
        super().__init__(quiver, plugins, folder)
        self.name = name
        self.config = folder / f"{name}.cfg"
        self.socket = folder / f"state-{name}" / f"{name}.http"

    def write(self, ttl="1s", change=lambda text: text):
        self.config.write_text(change(CONFIG.format(folder=self.folder, name=self.name, plugins=self.plugins, ttl=ttl)))
        return self

    def start(self, *options, is_ready=True):
        self.logs.append(self.folder / f"log-{self.name}-{len(self.logs)}")
        with open(self.logs[-1], "wb") as log:
            self.process = subprocess.Popen([self.quiver, "run", *options, "-c", self.config], stderr=log, stdout=log)
        if is_ready:
            self.wait_for_log("event=running")
        return self

    def shards(self):
        """Those that it owns, as the store has it."""
        nonce = re.search(r"event=running .*nonce=([0-9a-f]{32})", self.log()).group(1)
        return [row["shard"] for row in self.rows("shard") if row["held"] and row["holder"].hex() == nonce]

    def own_key(self, prefix="k"):
        """A key of one of its shards."""
        return next(key for key in (f"{prefix}{i}" for i in range(100)) if zlib.crc32(key.encode()) % 4 in self.shards())

    def ask(self, verb, path, body=None):
        with contextlib.closing(Connection(self.socket)) as connection:
            connection.request(verb, path, json.dumps(body) if body is not None else None)
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text else None

    def poll(self, worker="alice", wait="10s", handler="mail"):
        """The task, or None."""
        status, task = self.ask("POST", f"/v1/work/{handler}?worker={worker}&wait={wait}")
        assert status in (200, 204), task
        return task

    def say(self, task, what, **members):
        return self.ask("POST", f"/v1/work/{task['handler']}/{task['id']}/{what}", {"fence": task["fence"], **members})

    def heartbeat(self, task, **members):
        return self.say(task, "heartbeat", **members)

    def finish(self, task, outcome="done", **members):
        return self.say(task, "outcome", outcome=outcome, **members)

    def until(self):
        """The store time up to which the one task that a worker has is its own."""
        lines = [line for row in self.rows("log") for line in bytes(row["note"] or b"").splitlines()]
        (until,) = [int(line.partition(b":")[2]) for line in lines if line.startswith(b"until:")]
        return until

    def task(self, number, code=0):
        return json.loads(self.cli("task", number, "--json", code=code))

    def wait_task(self, number, condition, what):
        return wait_until(lambda: condition(found := self.task(number)) and found, what)
