"""A host on Redis: order, retries, crashes of either, and every bad state a server can be in."""
import collections
import json
import pathlib
import signal
import socket
import subprocess
import tempfile
import threading
import time

import pytest

from hosts import check_ledger, wait_until

redis = pytest.importorskip("redis")


def make_tasks(count, keys, words=""):
    """Tasks for handler `work`, and what each key then has to have seen."""
    tasks, expected = [], collections.defaultdict(list)
    for number in range(count):
        key = f"k{number % keys}"
        tasks.append({"handler": "work", "key": key, "payload": f"{number} {words}"})
        expected[key].append(number)
    return tasks, expected


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def durable(server):
    server.words = ("--appendonly", "yes", "--appendfsync", "always")
    return server


def test_a_keys_tasks_run_in_order(redis_host):
    host = redis_host.configure(work="threads = 4;").start()
    tasks, expected = make_tasks(400, 20)
    host.submit(tasks)
    host.wait_done(400)
    assert host.stop() == 0
    check_ledger(host.ledger(), expected)
    assert "sound" in host.cli("fsck")


def test_a_retry_keeps_its_place(redis_host):
    host = redis_host.configure(work="").start()
    tasks, expected = make_tasks(60, 6, "retry:2")
    host.submit(tasks)
    host.wait_done(60)
    assert host.stop() == 0
    check_ledger(host.ledger(), expected)


def test_follow_ups_arrive_once_in_other_shards(redis_host):
    host = redis_host.configure(work="").start()
    tasks = [{"handler": "work", "key": f"k{n % 5}", "payload": f"{n} submit:other{n % 7}"} for n in range(100)]
    host.submit(tasks)
    host.wait_done(200)
    assert host.stop() == 0
    seen = [e.number for e in host.ledger() if e.what == "start" and e.key.startswith("other")]
    assert sorted(seen) == list(range(100))


def lose_what(host, name, by):
    """As after a failover, all shards: the numbers in such a hash go back."""
    with host.redis.client() as client:
        for shard in range(host.shards):
            key = f"quiver:{{test:{shard}}}:{name}"
            for field, value in client.hgetall(key).items():
                if field != b"born":
                    number, *when = value.split()
                    client.hset(key, field, b" ".join([b"%d" % max(int(number) - by, 0), *when]))


@pytest.mark.parametrize("name", ("sources", "sent"))
def test_follow_ups_arrive_also_if_a_shard_has_forgotten_some(redis_host, name):
    """The server of a target, or of a source, failed over and lost what it had acknowledged; the other one did not."""
    host = redis_host.configure(work="").start()
    for first in (0, 60):
        host.submit([{"handler": "work", "key": f"k{n % 5}", "payload": f"{n} submit:other{n % 7}"}
                     for n in range(first, first + 60)])
        host.wait_done(2 * first + 120)
        lose_what(host, name, by=3)
    assert host.stop() == 0
    seen = [e.number for e in host.ledger() if e.what == "start" and e.key.startswith("other")]
    assert sorted(seen) == list(range(120))


def test_a_killed_hosts_tasks_run_again_in_order(redis_host):
    host = redis_host.configure(work="threads = 2;").start()
    tasks, expected = make_tasks(300, 10, "us:3000")
    host.submit(tasks)
    for _ in range(3):
        before = host.sum("done")
        wait_until(lambda: host.sum("done") > before + 20, "it goes on")
        host.kill()
        host.start()
    host.wait_done(300)
    assert host.stop() == 0
    check_ledger(host.ledger(), expected, may_repeat=True)
    assert "sound" in host.cli("fsck")


def test_a_killed_redis_that_syncs_always_loses_nothing(quiver, tmp_path, redis_server):
    from redis_hosts import RedisHost

    server = durable(redis_server).start()
    host = RedisHost(quiver, quiver.parent / "test-plugins", tmp_path, server).configure(work="threads = 2;").start()
    try:
        assert "loses nothing" in host.log()
        tasks, expected = make_tasks(300, 10, "us:2000")
        host.submit(tasks)
        for _ in range(3):
            before = host.sum("done")
            wait_until(lambda: host.sum("done") > before + 20, "it goes on")
            server.kill()
            server.start()
        wait_until(lambda: host.sum("done") == 300, "all done")
        assert host.stop() == 0
        check_ledger(host.ledger(), expected, may_repeat=True)
        assert "sound" in host.cli("fsck")
    finally:
        host.close()


def test_cut_connections_cost_nothing(redis_host):
    host = redis_host.configure(work="threads = 2;").start()
    tasks, expected = make_tasks(400, 10, "us:1000")
    host.submit(tasks)
    with host.redis.client() as client:
        while host.sum("done") < 400:
            for kind in ("normal", "pubsub"):
                client.execute_command("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")
            time.sleep(0.05)
    assert host.stop() == 0
    check_ledger(host.ledger(), expected)


def test_forgotten_scripts_are_loaded_again(redis_host):
    host = redis_host.configure(work="").start()
    stop = threading.Event()

    def forget():
        with host.redis.client() as client:
            while not stop.is_set():
                client.script_flush()
                time.sleep(0.002)

    thread = threading.Thread(target=forget)
    thread.start()
    try:
        tasks, expected = make_tasks(300, 10)
        host.submit(tasks)
        host.wait_done(300)
    finally:
        stop.set()
        thread.join()
    assert host.stop() == 0
    check_ledger(host.ledger(), expected)


def test_an_emptied_server_is_noticed_and_goes_on(redis_host):
    host = redis_host.configure(work="").start()
    tasks, _ = make_tasks(20, 4)
    host.submit(tasks)
    host.wait_done(20)
    with host.redis.client() as client:
        client.flushall()
    host.wait_for_log("event=store-emptied")
    more = [{"handler": "work", "key": f"new{n % 3}", "payload": str(1000 + n)} for n in range(20)]
    wait_until(lambda: "shards" in json.loads(host.cli("status", "--json")), "the store is there again")
    host.submit(more)
    host.wait_done(20)
    assert host.stop() == 0
    assert sorted(e.number for e in host.ledger() if e.what == "end" and e.number >= 1000) == list(range(1000, 1020))


def test_a_full_server_refuses_submits_and_drains(redis_host, tmp_path):
    gate = tmp_path / "gate"
    host = redis_host.configure(work="").start()
    tasks, expected = make_tasks(200, 5, f"wait:{gate}")
    host.submit(tasks)
    wait_until(host.starts, "the first one waits at the gate")
    with host.redis.client() as client:
        client.config_set("maxmemory", client.info("memory")["used_memory"] - 1)
        said = host.cli("submit", "work", "--key", "x", "9999", code=1)
        assert said == ""
        gate.touch()
        host.wait_done(200)
        client.config_set("maxmemory", 0)
    host.submit([{"handler": "work", "key": "after", "payload": "7"}])
    host.wait_done(201)
    assert host.stop() == 0
    expected["after"] = [7]
    check_ledger(host.ledger(), expected)


@pytest.mark.parametrize("policy", ["allkeys-lru"])
def test_a_server_that_throws_tasks_away_is_refused(redis_host, policy):
    with redis_host.redis.client() as client:
        client.config_set("maxmemory-policy", policy)
    host = redis_host.configure(work="").start(is_ready=False)
    assert host.wait() != 0
    assert "noeviction" in host.log()


def test_a_key_of_another_type_is_named_and_nothing_is_half_done(redis_host):
    host = redis_host.configure(shards=1, work="").start()
    host.submit(make_tasks(5, 1)[0])
    host.wait_done(5)
    with redis_host.redis.client() as client:
        client.rename("quiver:{test:0}:shard", "saved")
        client.set("quiver:{test:0}:shard", "mine")
        client.rpush("quiver:{test:0}:normal", "qv1\nkey:k0\nhandler:work\n\n5")
        host.wait_for_log("WRONGTYPE")
        assert client.llen("quiver:{test:0}:normal") == 1
        client.rename("saved", "quiver:{test:0}:shard")
    host.wait_done(6)
    assert host.stop() == 0


@pytest.mark.parametrize("name, lane", [("flight", "high"), ("low", "high")])
def test_what_was_taken_for_a_key_of_another_type_goes_back(redis_host, name, lane):
    host = redis_host.configure(shards=1, work="").start()
    host.submit(make_tasks(5, 1)[0])
    host.wait_done(5)
    tasks = [b"qv1\nkey:k0\nhandler:work\n\n%d" % number for number in (5, 6, 7)]
    with redis_host.redis.client() as client:
        before = client.hgetall("quiver:{test:0}:shard")
        both = client.pipeline(transaction=True)
        both.set("quiver:{test:0}:" + name, "mine")
        both.rpush("quiver:{test:0}:" + lane, *tasks)
        both.execute()
        host.wait_for_log("WRONGTYPE")
        assert client.lrange("quiver:{test:0}:" + lane, 0, -1) in (tasks, [task.decode() for task in tasks])
        assert client.hget("quiver:{test:0}:shard", lane) == before.get(lane, before.get(lane.encode()))
        client.delete("quiver:{test:0}:" + name)
    host.wait_done(8)
    assert host.stop() == 0


def test_a_newer_schema_and_other_numbers_are_refused(redis_host):
    host = redis_host.configure(work="").start()
    assert host.stop() == 0
    host.configure(shards=9, work="")
    assert host.start(is_ready=False).wait() != 0
    assert "8 shards" in host.log() and "9 were asked for" in host.log()
    with host.redis.client() as client:
        client.hset("quiver:{test}:app", "schema", 99)
    host.configure(work="")
    assert host.start(is_ready=False).wait() != 0
    assert "schema 99" in host.log() and "upgrade this one" in host.log()
    with host.redis.client() as client:
        client.hset("quiver:{test}:app", "schema", 1)
    assert host.start(is_ready=False).wait() != 0
    assert "schema 1" in host.log() and "quiver dump" in host.log() and "quiver load" in host.log()


def test_only_a_host_makes_a_store(redis_host):
    host = redis_host.configure(work="")
    host.cli("submit", "work", "--key", "k", "1", code=3)
    with host.redis.client() as client:
        assert client.dbsize() == 0


def test_a_submit_waits_for_its_replicas(redis_host, tmp_path):
    from redis_hosts import RedisServer

    with redis_host.redis.client() as client, tempfile.TemporaryDirectory(prefix="quiver-") as folder:
        client.config_set("repl-diskless-sync-delay", 0)
        client.execute_command("CONFIG", "SET", "port", free_port())
        port = client.config_get("port")["port"]
        replica = RedisServer(pathlib.Path(folder), "--replicaof", "127.0.0.1", port).start()
        try:
            wait_until(lambda: client.info("replication")["connected_slaves"] == 1, "the replica is there")
            host = redis_host.configure(work="").start()
            wait = 'store = { wait_replicas = 1; url'
            redis_host.config.write_text(redis_host.config.read_text().replace("store = { url", wait))
            host.cli("submit", "work", "--key", "k", "1")
            with replica.client() as other:
                wait_until(lambda: other.exists("quiver:{test}:app"), "it is there, too")
            replica.process.send_signal(signal.SIGSTOP)
            host.cli("submit", "work", "--key", "k", "2", code=3)
            replica.process.send_signal(signal.SIGCONT)
            host.wait_done(2)
            assert host.stop() == 0
        finally:
            replica.process.send_signal(signal.SIGCONT)
            replica.close()


RULES = ("~quiver:* &__redis__:invalidate +@read +@write +@scripting +@connection -@dangerous +subscribe +info +role +time "
         "+wait")


def as_user(host, rules):
    """Configures a host that logs in as a user with these rules."""
    with host.redis.client() as client:
        client.execute_command("ACL", "SETUSER", "quiver", "on", ">secret", *rules.split())
    secret = host.folder / "secret"
    secret.write_text("secret\n")
    secret.chmod(0o600)
    who = f'store = {{ user = "quiver"; password_file = "{secret}"; url'
    return host.configure(work="", change=lambda text: text.replace("store = { url", who))


def test_a_user_with_wider_rules_is_enough(redis_host):
    host = as_user(redis_host, RULES).start()
    assert "no doorbell" not in host.log()
    tasks, expected = make_tasks(50, 5)
    host.submit(tasks)
    host.wait_done(50)
    assert "sound" in host.cli("fsck")
    host.cli("submit", "work", "--key", "a", "--delay", "1h", "1")
    (host.folder / "secret").write_text("wrong\n")
    host.cli("status", code=3)
    assert host.stop() == 0
    check_ledger(host.ledger(), expected)


def test_every_task_of_a_foreign_client_rings(redis_host, tmp_path):
    host = redis_host.configure(shards=1, change=lambda text: text.replace('ttl = "1s"', 'ttl = "10m"'), work="threads = 8;")
    host.start()
    with redis_host.redis.client() as client:
        for number, lane in enumerate(["normal", "normal", "high", "normal", "low", "normal"], 1):
            # None ends: whatever starts was claimed because it rang.
            client.rpush("quiver:{test:0}:" + lane, f"qv1\nkey:k{number}\nhandler:work\n\n{number} wait:{tmp_path}/go")
            # Without a ring a shard is looked at by and by, too.
            wait_until(lambda: number in host.starts(), f"task {number} has started", 20)
    (tmp_path / "go").touch()
    host.wait_done(6)
    assert host.stop() == 0


def test_without_a_doorbell_new_work_is_found_all_the_same(redis_host):
    host = as_user(redis_host, RULES.replace("+subscribe ", "")).start()
    host.wait_for_log("no doorbell")
    for number in range(3):
        host.submit([{"handler": "work", "key": "k", "payload": str(number)}])
        host.wait_done(number + 1)
    assert host.log().count("no doorbell") == 1
    assert host.stop() == 0


def test_a_host_that_finds_nobody_exits_with_3(redis_host):
    """A supervisor tells it from wrong settings, which no second try will mend."""
    redis_host.configure(work="")
    redis_host.redis.kill()
    assert redis_host.start(is_ready=False).wait() == 3


def test_what_was_claimed_and_not_judged_is_judged_by_the_next_owner(redis_host):
    """A host may die after its claim and before it has sent away what nobody can run."""
    host = redis_host.configure(shards=1, work="").start()
    host.submit(make_tasks(3, 1)[0])
    host.wait_done(3)
    assert host.stop() == 0
    with host.redis.client() as client:
        seq = (1 << 48) + client.hincrby("quiver:{test:0}:shard", "normal", 2)
        later = f"qv1\nkey:k9\nhandler:work\nnot_before:{int(time.time() * 1000) + 3600000}\n\n1"
        client.hset("quiver:{test:0}:flight", mapping={str(seq - 1): "garbage", str(seq): later})
    host.start()

    def is_judged():
        totals = json.loads(host.cli("status", "--json"))["totals"]
        return totals["dead"] == 1 and totals["delayed"] == 1 and totals["in_flight"] == 0

    wait_until(is_judged, "one is dead, one delayed")
    assert "malformed" in host.cli("dead", "list")
    assert "sound" in host.cli("fsck")
    assert host.stop() == 0


def test_what_is_too_long_is_moved_once_and_never_read_again(redis_host):
    """A script that read it would stop the server for milliseconds per MiB, and all that read it again, for ever."""
    host = redis_host.configure(shards=1, work="").start()
    host.submit(make_tasks(3, 1)[0])
    host.wait_done(3)
    assert host.stop() == 0
    lane, count, size = "quiver:{test:0}:normal", 20, 2 << 20
    with host.redis.client() as client:
        for n in range(100):
            client.rpush(lane, f"qv1\nkey:short{n % 7}\nhandler:work\n\n{n}")
        for n in range(count):
            client.rpush(lane, f"qv1\nkey:long{n}\nhandler:work\n\n".encode() + b"x" * size)
        for n in range(100, 200):
            client.rpush(lane, f"qv1\nkey:short{n % 7}\nhandler:work\n\n{n}")
        client.config_resetstat()
        host.start()
        host.wait_done(203)
        wait_until(lambda: client.hlen("quiver:{test:0}:dead") == count, "the long ones are dead")
        spent = client.info("commandstats")
        assert spent["cmdstat_lmove"]["calls"] == count
        assert "cmdstat_lpush" not in spent, "it was read, and put back"
        assert client.memory_usage("quiver:{test:0}:dead", samples=0) < size / 4, "their bytes are elsewhere"
        longs = client.keys("quiver:{test:0}:long.*")
        assert len(longs) == count and all(client.memory_usage(key) > size for key in longs)
        listed = host.cli("dead", "list")
        assert listed.count("too long") == count and "long7" in listed and "2097180 bytes" in listed
        assert "too long" in host.log() and "event=bad-record" in host.log()
        assert len(host.cli("dead", "list", "--json")) < 4096 * count
        assert "sound" in host.cli("fsck")
        done = subprocess.run([host.quiver, "dead", "requeue", "--all", "-c", host.config], capture_output=True, text=True)
        assert done.returncode == 1 and "too long to be requeued" in done.stderr, done
        assert client.hlen("quiver:{test:0}:dead") == count
        assert host.stop() == 0
        assert len(host.cli("dump")) < 100000
        assert f"{count} dropped" in host.cli("dead", "drop", "--all")
        assert client.keys("quiver:{test:0}:long.*") == []
        assert "sound" in host.cli("fsck")


def test_a_server_that_stalls_beyond_the_lease_doubles_nothing(redis_host):
    host = redis_host.configure(work="threads = 2;").start()
    tasks, expected = make_tasks(200, 10, "us:2000")
    host.submit(tasks)
    for _ in range(2):
        before = host.sum("done")
        wait_until(lambda: host.sum("done") > before + 20, "it goes on")
        host.redis.process.send_signal(signal.SIGSTOP)
        time.sleep(1.5)  # longer than the lease
        host.redis.process.send_signal(signal.SIGCONT)
    host.wait_done(200)
    assert host.stop() == 0
    check_ledger(host.ledger(), expected)
