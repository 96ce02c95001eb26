"""Every bad state of a Redis: what a user is told, that the host waits or refuses, and that nothing is half done."""
import contextlib
import json
import subprocess
import threading

import pytest

from hosts import check_ledger, wait_until
from redis_sites import SiteHost
from servers import RedisServer, free_port

redis = pytest.importorskip("redis")

TASKS, KEYS = 200, 10


@pytest.fixture
def server(tmp_path):
    with RedisServer(tmp_path / "redis") as made:
        yield made


@pytest.fixture
def site_host(quiver, root, tmp_path, server):
    made = SiteHost(quiver, root / "build" / "test-plugins", tmp_path).configure(server.url)
    yield made
    made.close()


def refused(host, *words):
    """What a command says that fails for the store's sake."""
    done = subprocess.run([host.quiver, *words, "-c", host.config], capture_output=True, text=True, timeout=60)
    assert done.returncode == 3 and done.stdout == "", done
    return done.stderr


def submit_in_background(host):
    return subprocess.Popen([host.quiver, "submit", "work", "--key", "late", "7", "-c", host.config],
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


@contextlib.contextmanager
def under_load(host):
    """Tasks are done before, after and, as far as the server lets them, in between; each once and in order."""
    host.start()
    expected = {f"k{k}": list(range(k, TASKS, KEYS)) for k in range(KEYS)}
    host.submit([{"handler": "work", "key": f"k{n % KEYS}", "payload": f"{n} us:2000"} for n in range(TASKS)])
    host.wait_progress(20)
    yield expected
    host.wait_empty()
    assert "sound" in host.cli("fsck")
    assert host.stop() == 0
    check_ledger(host.ledger(), expected)


def test_a_server_that_cannot_save_takes_nothing_until_it_can(site_host, server):
    with under_load(site_host):
        (server.folder / "dump.rdb").mkdir()
        server.do("CONFIG", "SET", "save", "3600 1")
        server.do("BGSAVE")
        wait_until(lambda: server.info("rdb_last_bgsave_status") == "err", "it cannot save")
        assert "MISCONF" in refused(site_host, "submit", "work", "--key", "x", "9")
        site_host.wait_for_log("MISCONF")
        server.do("CONFIG", "SET", "stop-writes-on-bgsave-error", "no")
    assert not any(e.key == "x" for e in site_host.ledger())


def fill(site_host):
    """Tasks that nobody works on yet, so that there is something to look at and to work off."""
    site_host.start()
    site_host.stop()
    site_host.submit([{"handler": "work", "key": f"k{n % KEYS}", "payload": f"{n}"} for n in range(TASKS)])
    return {f"k{k}": list(range(k, TASKS, KEYS)) for k in range(KEYS)}


LOOKS = (["status"], ["dead", "list"], ["fsck"], ["key", "list"], ["results"], ["dump"])


def test_a_full_server_refuses_submits_and_is_looked_at_and_worked_off(site_host, server):
    expected = fill(site_host)
    server.do("CONFIG", "SET", "maxmemory", "1000000")
    for words in LOOKS:
        site_host.cli(*words)
    assert "Redis is full (maxmemory 1000000): submits are refused, hosts go on; raise maxmemory" in site_host.cli("status")
    assert "Redis is full" in json.loads(site_host.cli("status", "--json"))["totals"]["refuses"]
    for words in (["submit", "work", "--key", "x", "9"], ["submit", "work", "--key", "x", "--delay", "1h", "9"]):
        done = subprocess.run([site_host.quiver, *words, "-c", site_host.config], capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and "Redis is full (maxmemory 1000000): submits are refused" in done.stderr, done
    site_host.start()
    site_host.wait_for_log("event=store-refuses")
    site_host.wait_empty()
    assert "sound" in site_host.cli("fsck")
    site_host.cli("pause", "work")
    site_host.cli("resume", "work")
    server.do("CONFIG", "SET", "maxmemory", "0")
    site_host.wait_for_log("event=store-writable")
    assert "Redis is full" not in site_host.cli("status")
    site_host.submit_one({"handler": "work", "key": "late", "payload": "7"})
    site_host.wait_empty()
    assert site_host.stop() == 0
    check_ledger(site_host.ledger(), {**expected, "late": [7]})


def test_a_server_without_its_replicas_is_looked_at_and_says_what_to_do(site_host, server):
    expected = fill(site_host)
    server.do("CONFIG", "SET", "min-replicas-to-write", "1")
    for words in LOOKS:
        site_host.cli(*words)
    assert "lower min-replicas-to-write" in site_host.cli("status")
    said = refused(site_host, "submit", "work", "--key", "x", "9")
    assert "NOREPLICAS" in said and "lower min-replicas-to-write" in said
    site_host.start(is_ready=False)
    site_host.wait_for_log("NOREPLICAS")
    server.do("CONFIG", "SET", "min-replicas-to-write", "0")
    site_host.wait_empty()
    assert site_host.stop() == 0
    check_ledger(site_host.ledger(), expected)


def answers(server, word):
    with contextlib.suppress(redis.exceptions.RedisError):
        try:
            server.do("GET", "x")
        except (redis.exceptions.ResponseError, redis.exceptions.BusyLoadingError) as error:
            return word in str(error) or word in type(error).__name__.upper()
    return False


def test_somebody_elses_endless_script_is_waited_for(site_host, server):
    def run_endlessly():
        with contextlib.suppress(redis.exceptions.RedisError), server.client() as client:
            client.eval("while true do end", 0)

    with under_load(site_host) as expected:
        server.do("CONFIG", "SET", "busy-reply-threshold", "50")
        thread = threading.Thread(target=run_endlessly)
        thread.start()
        wait_until(lambda: answers(server, "BUSY"), "it is busy")
        late = submit_in_background(site_host)
        assert late.poll() is None
        server.do("SCRIPT", "KILL")
        thread.join()
        assert late.wait(60) == 0, late.stderr.read()
        expected["late"] = [7]


def test_a_server_that_loads_is_waited_for(site_host, server):
    with server.client() as client:
        client.eval("for i = 1, 4000 do redis.call('SET', 'filler' .. i, string.rep('x', 100)) end", 0)
    with under_load(site_host) as expected:
        server.do("CONFIG", "SET", "loading-process-events-interval-bytes", "1024")
        server.do("CONFIG", "SET", "key-load-delay", "300")
        thread = threading.Thread(target=lambda: server.do("DEBUG", "RELOAD"))
        thread.start()
        wait_until(lambda: answers(server, "LOADING"), "it loads")
        late = submit_in_background(site_host)
        assert late.wait(60) == 0, late.stderr.read()
        thread.join()
        expected["late"] = [7]


def test_a_master_that_became_a_replica_is_left_until_it_is_one_again(site_host, server):
    with under_load(site_host):
        server.do("REPLICAOF", "127.0.0.1", free_port())
        said = refused(site_host, "submit", "work", "--key", "x", "9")
        assert "is a replica, not the master" in said
        site_host.wait_for_log("replica")
        server.do("REPLICAOF", "NO", "ONE")
    assert not any(e.key == "x" for e in site_host.ledger())


def with_password(host, text):
    path = host.folder / "password"
    path.write_text(text)
    path.chmod(0o600)
    with_file = f'store = {{ password_file = "{path}"; url'
    host.config.write_text(host.config.read_text().replace("store = { url", with_file))


def set_password(server, word):
    server.do("CONFIG", "SET", "requirepass", word)
    server.password = word


def test_a_missing_and_a_wrong_password_are_told_apart(site_host, server):
    set_password(server, "right")
    assert site_host.start(is_ready=False).wait() != 0
    assert "NOAUTH" in site_host.log()
    with_password(site_host, "not-it")
    assert site_host.start(is_ready=False).wait() != 0
    assert "WRONGPASS" in site_host.log() and "not-it" not in site_host.log()
    (site_host.folder / "password").write_text("right\n")
    site_host.start()
    assert site_host.stop() == 0


def test_a_password_that_changes_under_a_host_stops_nothing_for_good(site_host, server):
    set_password(server, "first")
    with_password(site_host, "first")
    with under_load(site_host):
        set_password(server, "second")
        server.do("CLIENT", "KILL", "TYPE", "normal")
        site_host.wait_for_log("WRONGPASS")
        set_password(server, "first")


def test_what_is_not_quivers_under_its_name_is_refused_and_left(site_host, server):
    server.do("SET", "quiver:{test}:app", "mine")
    assert site_host.start(is_ready=False).wait() != 0
    assert "WRONGTYPE" in site_host.log() and "quiver:{test}:app" in site_host.log()
    assert server.do("GET", "quiver:{test}:app") == b"mine"
    server.do("DEL", "quiver:{test}:app")
    server.do("HSET", "quiver:{test}:app", "colour", "blue")
    assert site_host.start(is_ready=False).wait() != 0
    assert "quiver:{test}:app" in site_host.log()
    assert server.do("HGETALL", "quiver:{test}:app") in ({b"colour": b"blue"}, [b"colour", b"blue"])


def test_other_apps_and_programs_in_the_same_database_are_left_alone(site_host, server):
    foreign = {"mine": "1", "quiver": "2", "quiver:{other:0}:normal": "3", "quiver:{testing:0}:shard": "4"}
    for key, value in foreign.items():
        server.do("SET", key, value)
    with under_load(site_host):
        pass
    assert {key: server.do("GET", key).decode() for key in foreign} == foreign


def test_a_host_that_finds_a_cluster_down_ends_as_one_that_may_be_started_again(quiver, root, tmp_path):
    """Nothing is wrong with its settings: the code says so to whoever supervises it."""
    with RedisServer(tmp_path / "redis", "--cluster-enabled", "yes") as node:
        node.do("CLUSTER", "ADDSLOTSRANGE", 0, 16382)  # one is missing
        host = SiteHost(quiver, root / "build" / "test-plugins", tmp_path).configure(
            f"redis+cluster://127.0.0.1:{node.port}")
        host.start(is_ready=False)
        assert host.wait() == 3
        assert "CLUSTERDOWN" in host.log()
