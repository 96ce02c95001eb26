"""Clients on the store's own Redis: several servers, servers that die, and answers that are lost."""
import base64
import os
import pathlib
import socket
import tempfile
import threading

import pytest

from client_harness import ON_REDIS, Harness, b64
from hosts import wait_until
from http_hosts import Server
from redis_sites import ClusterSite, SentinelSite, SiteHost


@pytest.mark.parametrize("language, way", ON_REDIS)
def test_a_redis_that_is_not_there(redis_host, language, way):
    Server(redis_host)
    made = Harness(language)
    assert made.ask("open", url=f"unix://{redis_host.redis.socket}", app="test", is_async=way == "redis-async") == {}
    assert "id" in made.ask("submit", task={"handler": "mail", "payload_base64": b64(b"8")})
    redis_host.redis.kill()
    assert made.ask("submit", task={"handler": "mail", "payload_base64": b64(b"8")})["error"] in ("retry", "unknown")
    made.close()


@pytest.fixture(scope="module", params=[SentinelSite, ClusterSite], ids=["sentinel", "cluster"])
def several(request, quiver, tmp_path_factory):
    """A host on a Redis that is several servers, for all clients."""
    with tempfile.TemporaryDirectory(prefix="quiver-") as folder, request.param(pathlib.Path(folder)) as site:
        host = SiteHost(quiver, quiver.parent / "test-plugins", tmp_path_factory.mktemp("several"))
        host.site = site
        host.configure(site.url).start()
        yield host
        host.close()


@pytest.mark.parametrize("language, way", ON_REDIS)
def test_sentinel_and_cluster(several, language, way):
    """Tasks run wherever their shard is.  In the long form a server dies then: when another has its place, the same client goes on."""
    host, site, made = several, several.site, Harness(language)
    assert made.ask("open", url=site.url, app="test", is_async=way == "redis-async") == {}
    before = host.ends()
    tasks = [{"handler": "work", "key": f"{language}-{way}-{n % 20}", "payload_base64": b64(f"{n} result".encode())} for n in range(200)]
    told = made.ask("submit_many", tasks=tasks)
    assert all("id" in one for one in told), told
    wait_until(lambda: host.ends() == before + 200, "all are done")
    done = made.ask("call", task=tasks[7], wait_ms=60000)
    assert base64.b64decode(done["result_base64"]) == b"7 result", done
    if "QUIVER_TEST_LONG" in os.environ:
        site.crash(site.victim(), lambda: None)
        stored = []
        for n in range(20):
            task = {"handler": "work", "key": f"after-{n}", "payload_base64": b64(str(n).encode())}
            wait_until(lambda: stored.append(made.ask("submit", task=task)) or "id" in stored[-1], "it is stored")
        assert {one.get("error") for one in stored} <= {None, "retry", "unknown"}, stored
        done = made.ask("call", task=tasks[8], wait_ms=60000)
        assert done.get("outcome") == "done", done
    made.close()


@pytest.mark.parametrize("language, way", ON_REDIS)
@pytest.mark.parametrize("kind", ["single", "cluster"])
def test_a_command_whose_answer_was_lost_is_unknown_and_not_sent_again(language, way, kind):
    """A server that takes every command and hangs up: the libraries' own clients would say it again."""
    with Mute() as server:
        made = Harness(language)
        url = f"redis+cluster://127.0.0.1:{server.port}" if kind == "cluster" else f"redis://127.0.0.1:{server.port}"
        assert made.ask("open", url=url, app="test", is_async=way == "redis-async") == {}
        told = made.ask("submit", task={"handler": "mail", "key": "k", "payload_base64": b64(b"1")})
        assert told["error"] == "unknown" and server.pushed == 1, (told, server.pushed)
        told = made.ask("submit_many", tasks=[{"handler": "mail", "key": f"k{n}", "payload_base64": b64(b"1")} for n in range(2500)])
        assert server.pushed == 2, server.pushed
        errors = [one["error"] for one in told]
        assert len(told) == 2500 and set(errors) == {"unknown", "retry"} and errors.count("unknown") < 1000
        assert errors.index("unknown") == 0, "the first command had the first task"
        made.close()


class Mute:
    """Redis as far as a client asks who it is and how many shards there are; a server of a Cluster that has all slots."""

    def __enter__(self):
        self.pushed = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.close()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        stream = connection.makefile("rb")
        with connection, stream:
            while line := stream.readline():
                words = []
                for _ in range(int(line[1:])):
                    words.append(stream.read(int(stream.readline()[1:])))
                    stream.read(2)
                answer = self.answer([word.upper() if at < 2 else word for at, word in enumerate(words)])
                if answer is None:
                    return
                connection.sendall(answer)

    def answer(self, words):
        me = b"*3\r\n$9\r\n127.0.0.1\r\n:%d\r\n$40\r\n%s\r\n" % (self.port, b"a" * 40)
        info = b"a" * 40 + b" 127.0.0.1:%d@1 myself,master - 0 0 1 connected 0-16383\n" % self.port
        if words[0] == b"RPUSH":
            self.pushed += 1
            return None
        if words[0] == b"HGET":
            return b"$1\r\n8\r\n"
        if words[:2] == [b"CLUSTER", b"SLOTS"]:
            return b"*1\r\n*3\r\n:0\r\n:16383\r\n" + me
        if words[:2] == [b"CLUSTER", b"NODES"]:
            return b"$%d\r\n%s\r\n" % (len(info), info)
        if words[0] == b"INFO":
            text = b"redis_version:7.0.15\r\ncluster_enabled:1\r\n"
            return b"$%d\r\n%s\r\n" % (len(text), text)
        if words[0] == b"COMMAND":
            return command("hget", 3, ["readonly"]) if words[1:2] != [b"COUNT"] else b":1\r\n"
        return b"+OK\r\n"


def command(name, arity, flags):
    """Of COMMAND: enough that a client finds the key of the commands that are sent here."""
    def one(text, size, first):
        return f"*6\r\n${len(text)}\r\n{text}\r\n:{size}\r\n*1\r\n+{flags[0]}\r\n:{first}\r\n:{first}\r\n:{first}\r\n"

    return ("*4\r\n" + one(name, arity, 1) + one("rpush", -3, 1) + one("get", 2, 1) + one("time", 1, 0)).encode()
