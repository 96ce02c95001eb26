"""The servers and the proxy that other tests are built on do what they say."""
import threading
import time

import pytest
import redis

from hosts import wait_until
from proxy import Proxy
from servers import RedisCluster, RedisServer, SentinelGroup

LOST = (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with RedisServer(tmp_path_factory.mktemp("redis"), "--appendonly", "yes", "--appendfsync", "always") as made:
        yield made


@pytest.fixture
def proxy(server):
    server.do("FLUSHALL")
    with Proxy(server.port) as made:
        yield made


def client_of(proxy, timeout_s=0.3):
    return redis.Redis(host="127.0.0.1", port=proxy.port, socket_timeout=timeout_s, single_connection_client=True)


def test_what_was_answered_survives_kill9(server):
    server.do("SET", "k", "v")
    server.kill9()
    server.start()
    assert server.do("GET", "k") == b"v"


def test_a_paused_server_is_silent_and_goes_on(server):
    server.pause()
    with pytest.raises(redis.exceptions.TimeoutError), server.client() as client:
        client.connection_pool.connection_kwargs["socket_timeout"] = 0.2
        client.ping()
    server.cont()
    assert server.do("PING")


def test_a_unix_socket_is_there(server):
    with redis.Redis(unix_socket_path=str(server.socket)) as client:
        assert client.ping()


def test_a_proxy_passes_everything(proxy, tmp_path, server):
    with client_of(proxy, 20) as client:
        big = b"x" * 3_000_000
        client.set("k", big)
        assert client.get("k") == big
    path = tmp_path / "proxy.sock"
    with Proxy(server.socket, path=path) as over_unix, redis.Redis(unix_socket_path=str(path)) as client:
        assert client.ping()
        assert over_unix.url == f"redis+unix:{path}"


def test_a_lost_reply_is_executed(proxy, server):
    with client_of(proxy) as client:
        client.ping()
        proxy.lose_reply_of("precious")
        with pytest.raises(LOST):
            client.execute_command("RPUSH", "list", "precious")
        assert proxy.lost_replies == 1
    assert server.do("LRANGE", "list", 0, -1) == [b"precious"]


def test_lost_replies_and_lost_requests_differ(proxy, server):
    for lose, expected in ((proxy.lose_replies, 1), (proxy.lose_requests, None)):
        server.do("DEL", "n")
        with client_of(proxy) as client:
            client.ping()
            lose()
            with pytest.raises(LOST):
                client.execute_command("INCR", "n")
        proxy.heal()
        value = server.do("GET", "n")
        assert (int(value) if value else None) == expected


def test_a_held_proxy_lets_go_of_everything(proxy, server):
    with client_of(proxy, 20) as client:
        client.ping()
        proxy.hold()
        seen, done = proxy.requests.seen_bytes, []
        thread = threading.Thread(target=lambda: done.append(client.incr("n")))
        thread.start()
        wait_until(lambda: proxy.requests.seen_bytes > seen, "the request has come as far as the proxy")
        assert server.do("GET", "n") is None and not done
        proxy.heal()
        thread.join(20)
        assert done == [1]


def test_delays_add_up(proxy):
    with client_of(proxy, 20) as client:
        client.ping()
        proxy.delay(requests=0.1, replies=0.1)
        started = time.monotonic()
        client.ping()
        assert time.monotonic() - started >= 0.2


def test_a_half_open_connection_is_silent(proxy):
    with client_of(proxy) as client:
        client.ping()
        proxy.half_open()
        with pytest.raises(redis.exceptions.TimeoutError):
            client.execute_command("PING")
    with client_of(proxy) as client:
        assert client.ping()


@pytest.mark.parametrize("reset", [False, True])
def test_a_cut_ends_connections_and_new_ones_come(proxy, reset):
    connection = redis.Connection(host="127.0.0.1", port=proxy.port, socket_timeout=5)
    connection.send_command("PING")
    assert connection.read_response() == b"PONG"
    proxy.cut(reset)
    with pytest.raises(redis.exceptions.ConnectionError):
        connection.send_command("PING")
        connection.read_response()
    with client_of(proxy) as client:
        assert client.ping()


def test_a_refused_connection_is_refused_until_healed(proxy):
    proxy.refuse()
    with pytest.raises(redis.exceptions.ConnectionError):
        client_of(proxy).ping()
    proxy.heal()
    with client_of(proxy) as client:
        assert client.ping()


def test_a_sentinel_group_fails_over(tmp_path):
    with SentinelGroup(tmp_path, password="secret", sentinel_password="watch") as group:
        first = group.master()
        assert group.failover() is not first


def test_a_cluster_moves_slots_and_fails_over(tmp_path):
    with RedisCluster(tmp_path) as cluster:
        slot = cluster.slot("{app:1}:log")
        source = cluster.owner(slot)
        target = next(node for node in cluster.masters if node is not source)
        source.do("SET", "{app:1}:log", "v")
        cluster.move_slot(slot, source, target)
        assert target.do("GET", "{app:1}:log") == b"v"
        wait_until(lambda: cluster.owner(slot) is target, "everybody knows")
        cluster.failover(cluster.replicas[0])
        wait_until(lambda: cluster.masters[0].info("role") == "slave", "the old master follows")
