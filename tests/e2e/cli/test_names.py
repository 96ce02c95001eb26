"""Keys that wait for a name: what is paused, or not served, costs nothing while it waits and starts when that ends."""
import json

import pytest

from hosts import wait_until


def task(key, number, handler="work", words=""):
    return {"handler": handler, "key": key, "payload": f"{number} {words}".strip()}


@pytest.fixture(params=["host", "redis_host"])
def either(request):
    return request.getfixturevalue(request.param)


def waits_for(host, key):
    return json.loads(host.cli("key", "show", key, "--json")).get("waits_for")


def held_in(host, name, column):
    """How many tasks one of the store's tables holds, as an independent reader sees it."""
    if not hasattr(host, "redis"):
        return host.sum(column)
    with host.redis.client() as client:
        return sum(client.hlen(f"quiver:{{test:{i}}}:{name}") for i in range(host.shards))


def parked(host):
    return held_in(host, "parked", "parked")


def calls(client):
    """How often Redis has executed each command."""
    return {name: stat["calls"] for name, stat in client.info("commandstats").items()}


def test_what_is_paused_costs_the_store_nothing_beyond_renewal(redis_host):
    host = redis_host.configure(shards=4, work="threads = 4;").start()
    host.cli("pause", "work")
    host.wait_for_log("event=paused handler=work")
    host.submit([task(f"k{n}", n) for n in range(4000)])
    wait_until(lambda: parked(host) == 4000, "all keys wait")
    with host.redis.client() as client:
        renewed = calls(client)["cmdstat_hmget"] + 8
        wait_until(lambda: calls(client)["cmdstat_hmget"] >= renewed, "what was under way is over")
        before = calls(client)
        # A renewal of a shard reads its lease with one HMGET.
        wait_until(lambda: calls(client)["cmdstat_hmget"] >= before["cmdstat_hmget"] + 80, "twenty renewals of each shard")
        after = calls(client)
        # What claims, gives back or looks into a key's queue uses these; renewals and status documents do not.
        used = {name: after[name] - before.get(name, 0) for name in after if name in (
            "cmdstat_zrangebylex", "cmdstat_hdel", "cmdstat_lpop", "cmdstat_lrange", "cmdstat_ltrim")}
        assert not any(used.values()), used
    host.cli("resume", "work")
    host.wait_done(4000)


def test_a_resume_starts_each_key_in_order(either):
    host = either.configure(shards=4, work="threads = 4;").start()
    host.cli("pause", "work")
    host.wait_for_log("event=paused handler=work")
    host.submit([task(f"k{n % 300}", n) for n in range(1500)])
    wait_until(lambda: parked(host) == 1500, "all tasks wait")
    assert waits_for(host, "k7") == "handler:work"
    host.submit([task("k7", 1507)])
    host.cli("resume", "work")
    host.wait_done(1501)
    starts = host.starts()
    for key in range(300):
        assert [n for n in starts if n % 300 == key] == sorted(n for n in starts if n % 300 == key)


def test_a_reload_that_adds_the_handler_wakes_its_keys(either):
    host = either.configure(shards=2, work="").start()
    host.submit([task(f"k{n}", n, handler="more") for n in range(50)])
    wait_until(lambda: waits_for(host, "k0") == "handler:more", "its key waits for the handler")
    host.configure(shards=2, work="", more="")
    host.cli("reload", "--wait")
    host.wait_done(50)


def test_who_owns_the_shard_next_wakes_what_opened_meanwhile(either):
    host = either.configure(shards=2, work="").start()
    host.cli("pause", "work")
    host.wait_for_log("event=paused handler=work")
    host.submit([task(f"k{n}", n) for n in range(50)])
    wait_until(lambda: parked(host) == 50, "all tasks wait")
    host.kill()
    host.cli("resume", "work")
    host.start()
    host.wait_done(50)


def test_people_act_on_a_key_that_waits_for_a_name(either):
    host = either.configure(shards=1, work="").start()
    host.cli("pause", "work")
    host.wait_for_log("event=paused handler=work")
    host.submit([task("k", n) for n in (1, 2, 3)])
    wait_until(lambda: parked(host) == 3, "all tasks wait")
    assert waits_for(host, "k") == "handler:work" and "paused" in host.cli("key", "k")
    assert "handler:work" in host.cli("key", "list")
    host.cli("key", "skip", "k")
    wait_until(lambda: held_in(host, "dead", "dead") == 1 and waits_for(host, "k") == "handler:work", "the first one is given up")
    host.cli("key", "hold", "k")
    wait_until(lambda: json.loads(host.cli("key", "show", "k", "--json"))["state"] == "held", "it is held")
    host.cli("resume", "work")
    host.wait_for_log("event=resumed handler=work")
    host.cli("key", "unhold", "k")
    host.wait_done(2)
    assert host.starts() == [2, 3]


def test_a_handler_that_is_down_tries_with_a_task_that_waits_in_the_store(either, tmp_path):
    """More of its tasks wait than a window keeps, and all of them have gone back to the store."""
    down = tmp_path / "down"
    down.touch()
    host = either.configure(shards=1, change=lambda text: text + "window = { tasks = 48; };\n", work="", other="").start()
    host.submit([task(f"k{n}", n, words=f"down:{down}") for n in range(200)])
    wait_until(lambda: parked(host) >= 100, "most have gone back")
    host.submit([task(f"o{n}", 1000 + n, handler="other") for n in range(100)])
    host.wait_done(100)
    down.unlink()
    host.wait_done(300)
