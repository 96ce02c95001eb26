"""Real etcd servers for the end-to-end tests: one, or a cluster of three.

Each is a process of its own on free loopback ports, with its data in a folder of its own.  What they hold is read and
written by their JSON gateway, without any of Quiver's code.
"""
import base64
import json
import shutil
import urllib.error
import urllib.request

import pytest

from ensembles import Member, Members
from servers import free_port


def coded(text):
    return base64.b64encode(text if isinstance(text, bytes) else text.encode()).decode()


def decoded(kv, name="key"):
    return base64.b64decode(kv.get(name, ""))


def after(prefix):
    """The end of the range of all keys that begin so."""
    raw = prefix.encode()
    return raw[:-1] + bytes([raw[-1] + 1])


class Etcd(Member):
    """With these times the shortest lease is one second."""

    scheme = "etcd"
    data = "data"

    def __init__(self, folder, number=1):
        if not shutil.which("etcd"):
            pytest.skip("etcd is not installed (apt-get install etcd-server)")
        super().__init__(folder, number, (free_port(),))
        self.configure([self])

    def configure(self, servers):
        self.cluster = ",".join(f"e{s.number}=http://127.0.0.1:{s.peer_ports[0]}" for s in servers)

    def command(self):
        own, peers = f"http://127.0.0.1:{self.port}", f"http://127.0.0.1:{self.peer_ports[0]}"
        return ["etcd", "--data-dir", str(self.folder / self.data), "--name", f"e{self.number}", "--listen-client-urls", own,
                "--advertise-client-urls", own, "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers,
                "--initial-cluster", self.cluster, "--heartbeat-interval", "100", "--election-timeout", "500"]

    def ask(self, path, timeout_s=2, **body):
        """A question to the gateway; its answer."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/v3/{path}", json.dumps(body).encode())
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=timeout_s) as answer:
            return json.load(answer)

    def answers(self):
        assert self.process.poll() is None, f"it ended:\n{self.log()}"
        try:
            self.ask("kv/range", key=coded("x"))
            return True
        except (OSError, ValueError):
            return False

    def kvs(self, prefix, **more):
        """All keys that begin so, with everything that is known of them."""
        return self.ask("kv/range", key=coded(prefix), range_end=coded(after(prefix)), **more).get("kvs", [])

    def put(self, key, value, **more):
        return self.ask("kv/put", key=coded(key), value=coded(value), **more)

    def delete(self, key, **more):
        return self.ask("kv/deleterange", key=coded(key), **more)

    def end_session(self, session):
        """Somebody else's, as if its owner had not been heard of."""
        self.ask("lease/revoke", ID=str(session))


class EtcdCluster(Members):
    kind = Etcd
