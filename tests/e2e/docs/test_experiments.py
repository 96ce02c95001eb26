"""What others tried out with their queues, and what came of it: the same must come of it here."""
import json
import zlib

import pytest

from hosts import Host, wait_until


def task(key, payload, **more):
    return {"handler": "work", "key": key, "payload": payload, **more}


def status(host):
    return json.loads(host.cli("status", "--json"))


def results(host, most):
    return [json.loads(line)["id"] for line in host.cli("results", "--max", most, "--commit", "--json").splitlines()]


def test_two_tasks_in_each_of_three_lanes(host, tmp_path):
    """high, high, normal, normal, low, low, then nothing; six in flight, then none; six results."""
    host.configure(shards=1, work="").start()
    host.stop()
    lanes = ["low", "normal", "high"]
    host.submit([task(f"{lane}{i}", f"{10 * lanes.index(lane) + i} result wait:{tmp_path}/go", lane=lane)
                 for i in (1, 2) for lane in lanes])
    assert status(host)["totals"]["queued"] == 6
    host.start()
    wait_until(lambda: status(host)["totals"]["in_flight"] == 6, "six are in flight")
    (tmp_path / "go").touch()
    host.wait_done(6)
    assert host.starts() == [21, 22, 11, 12, 1, 2]
    totals = status(host)["totals"]
    assert (totals["queued"], totals["in_flight"], totals["results"]) == (0, 0, 6)
    assert len(set(results(host, 6))) == 6


@pytest.mark.parametrize("kind", ["host", "redis_host"])
def test_a_higher_lane_starts_first_on_whatever_shard(kind, request, tmp_path):
    """Two tasks without a key in each of three lanes, on 20 shards, while the only seat is taken."""
    host = request.getfixturevalue(kind)
    host.configure(shards=20, work="").start()
    host.submit([task("first", f"1 wait:{tmp_path}/go")])
    host.wait_started(1)
    lanes = ["low", "normal", "high"]
    for i in (1, 2):
        for lane in lanes:
            host.cli("submit", "work", "--lane", lane, f"{10 * (3 - lanes.index(lane)) + i}")
    wait_until(lambda: status(host)["totals"]["in_flight"] == 7, "six wait at the host")
    (tmp_path / "go").touch()
    host.wait_done(7)
    assert [start // 10 for start in host.starts()] == [0, 1, 1, 2, 2, 3, 3]


def test_a_high_task_is_the_next_to_start_behind_shards_full_of_low_ones(host, tmp_path):
    host.configure(shards=64, work="").start()
    host.submit([task("first", f"1 wait:{tmp_path}/go")])
    host.wait_started(1)
    host.submit([{**task(f"k{i}", f"{1000 + i}"), "lane": "low"} for i in range(2000)])
    wait_until(lambda: status(host)["totals"]["in_flight"] > 64 * 8, "windows fill")
    high = host.cli("submit", "work", "--lane", "high", "2").strip()
    wait_until(lambda: json.loads(host.cli("task", high, "--json"))["stored"] != "queued", "it is at the host")
    (tmp_path / "go").touch()
    host.wait_done(2002)
    assert host.starts()[:2] == [1, 2]


def spread(host, nonces, shares):
    """As many keys for each of the hosts: a key's shard is known, and so is the shard's owner."""
    owners = [shard["owner"] for shard in status(host)["shards"]]
    keys = []
    for nonce, share in zip(nonces, shares):
        mine = (f"key-{n}" for n in range(10000) if owners[zlib.crc32(f"key-{n}".encode()) % len(owners)] == nonce)
        keys += [next(mine) for _ in range(share)]
    return keys


def test_nine_tasks_for_two_hosts_with_six_seats_each(quiver, host, tmp_path):
    """Nine distinct tasks run at once, and three seats stay empty."""
    host.configure(shards=8, change=lambda text: 'host = { name = "a"; };' + text, work="threads = 6;").start()
    second = Host(quiver, host.plugins, tmp_path / "second")
    second.folder.mkdir()
    second.config.write_text(host.config.read_text().replace('name = "a"', 'name = "b"'))
    try:
        second.start()
        wait_until(lambda: sorted(m["shards"] for m in status(host)["members"]) == [4, 4], "each has half of the shards")
        nonces = [m["nonce"] for m in status(host)["members"]]
        host.submit([task(key, f"{n} wait:{tmp_path}/go") for n, key in enumerate(spread(host, nonces, [5, 4]))])
        wait_until(lambda: len(host.starts()) == 9, "nine run")
        running = lambda: sorted(json.loads(host.cli("status", "--host", name))["handlers"][0]["running"] for name in "ab")
        wait_until(lambda: running() == [4, 5], "three seats are empty")
        (tmp_path / "go").touch()
        host.wait_done(9)
        assert sorted(host.starts()) == list(range(9))
    finally:
        second.close()


def test_seven_results_for_two_consumers_of_three(host):
    """Six distinct ones, and one is left; a third commit does no harm."""
    host.configure(shards=4, work="").start()
    host.submit([task(f"k{n}", f"{n} result") for n in range(7)])
    host.wait_done(7)
    first, second = results(host, 3), results(host, 3)
    assert len(first) == len(second) == 3 and len(set(first + second)) == 6
    assert status(host)["totals"]["results"] == 1
    third = results(host, 3)
    assert len(third) == 1 and third[0] not in first + second
    assert results(host, 3) == [] and status(host)["totals"]["results"] == 0
