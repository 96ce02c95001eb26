"""Several hosts share an app: one owner a shard, few moves, nothing lost, whoever comes, goes, dies or sleeps."""
import collections
import json
import os
import random
import re
import signal
import statistics
import threading
import time
import zlib

import pytest

from fleet import Backing, Fleet
from hosts import check_ledger, wait_until

TTL = 1.0


@pytest.fixture
def fleet(quiver, root, tmp_path):
    made = Fleet(quiver, root / "build" / "test-plugins", tmp_path, Backing(tmp_path))
    yield made
    made.close()


@pytest.fixture
def chance():
    seed = int(os.environ.get("QUIVER_TEST_SEED", random.randrange(1 << 32)))
    print(f"QUIVER_TEST_SEED={seed}")
    return random.Random(seed)


class Load:
    """Submits tasks, a few at a time, until it is told to stop."""

    def __init__(self, fleet, chance, keys=60, us=2000):
        self.fleet, self.tasks, self.is_over = fleet, [], False
        self.draw = lambda: {"handler": "work", "key": f"k{chance.randrange(keys)}",
                             "payload": f"{len(self.tasks)} us:{chance.randrange(us)}"}
        self.thread = threading.Thread(target=self._run)
        fleet.loads.append(self)
        self.thread.start()

    def _run(self):
        while not self.is_over:
            batch = []
            for _ in range(20):
                batch.append(self.draw())
                self.tasks.append(batch[-1])
            next(iter(self.fleet.members.values())).submit(batch)

    def finish(self):
        self.is_over = True
        self.thread.join()
        return self.tasks


def by_key(tasks):
    expected = collections.defaultdict(list)
    for t in tasks:
        expected[t["key"]].append(int(t["payload"].split()[0]))
    return expected


def task(key, number, words=""):
    return {"handler": "work", "key": key, "payload": f"{number} {words}".strip()}


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait_done(fleet, count, seconds=60):
    wait_until(lambda: fleet.backing.sum("done") >= count, f"{count} tasks done", seconds)
    assert fleet.backing.sum("done") == count
    assert fleet.backing.dead() == 0


def ledger(fleet):
    return next(iter(fleet.members.values())).ledger()


# --- joins and leaves -------------------------------------------------------------------------------------------------


def test_twenty_shards_on_one_two_and_one_hosts(fleet):
    fleet.start("a")
    assert fleet.wait_even() == {"a": 20}
    fleet.start("b")
    assert fleet.wait_even() == {"a": 10, "b": 10}
    assert fleet.members["b"].stop() == 0
    assert fleet.wait_even() == {"a": 20}


def test_one_two_three_two_four_one(fleet):
    fleet.start("a")
    fleet.wait_even()
    moves = 0
    before = fleet.all_owners()
    for starts, stops in [("b", ""), ("c", ""), ("", "b"), ("de", ""), ("", "acd")]:
        for name in starts:
            fleet.add(name).start(is_ready=False)
        for name in stops:
            fleet.members[name].signal()
        for name in starts:
            fleet.members[name].wait_for_log("event=running")
        for name in stops:
            assert fleet.members[name].wait() == 0
        fleet.wait_even()
        owners = fleet.all_owners()
        moved = sum(owners[shard] != before[shard] for shard in owners)
        moves += moved
        before = owners
    # a 20; b takes 10; c takes 6 or 7; b's go; d and e take 10 together; three leave and e has all
    assert 10 + 6 + 6 + 10 + 15 <= moves <= 10 + 7 + 8 + 10 + 15, moves
    assert fleet.counts() == {"e": 20}


def test_weights_share_the_shards(fleet):
    fleet.add("a", weight=3).start()
    fleet.add("b", weight=1).start()
    fleet.add("c", weight=0).start()
    wait_until(lambda: fleet.counts() == {"a": 15, "b": 5, "c": 0}, "shares by weight")


def test_max_members_leaves_a_standby_that_steps_in(fleet):
    def two(text):
        return text.replace("coordination = {", "coordination = { max_members = 2;")

    for name in "abc":
        fleet.add(name, change=two).start()
    wait_until(lambda: sorted(fleet.counts().values()) == [0, 10, 10], "one stands by")
    next(m for m in fleet.living() if fleet.counts()[m.name]).kill()
    wait_until(lambda: sorted(fleet.counts().values()) == [10, 10], "it steps in")


@pytest.mark.whatever_coordination
def test_a_rolling_restart_is_not_noticed(fleet, chance):
    names = "abcd"
    fleet.start(*names)
    fleet.wait_even()
    load = Load(fleet, chance)
    for name in names:
        assert fleet.members[name].stop() == 0
        fleet.members[name].start()
        fleet.wait_even()
    tasks = load.finish()
    wait_done(fleet, len(tasks))
    entries = ledger(fleet)
    check_ledger(entries, by_key(tasks))  # each exactly once
    print_pauses(entries)


def print_pauses(entries):
    """Between two tasks of a key under different epochs: what a move costs those who wait."""
    last, pauses = {}, []
    for e in entries:
        if e.what == "start" and e.key in last and last[e.key].epoch != e.epoch:
            pauses.append((e.at_ns - last[e.key].at_ns) / 1e6)
        if e.what == "end":
            last[e.key] = e
    if len(pauses) > 1:
        cuts = statistics.quantiles(pauses, n=100)
        print(f"pause of a key over a move, ms: p50 {cuts[49]:.0f}, p99 {cuts[98]:.0f}, of {len(pauses)}")


@pytest.mark.whatever_coordination
def test_a_join_cuts_no_long_call(fleet):
    release = fleet.folder / "release"
    fleet.start("a", drain="500ms", more="processes = 2; threads = 4; timeout = \"0s\";")
    fleet.wait_even()
    a = fleet.members["a"]
    a.submit([task(f"long{n}", n, f"wait:{release}") for n in range(4)])
    for n in range(4):
        a.wait_started(n)
    fleet.start("b", drain="500ms")
    wait_until(lambda: fleet.counts()["b"] >= 6, "the free shards move")
    a.submit([task(f"short{n}", 100 + n) for n in range(40)])
    wait_until(lambda: fleet.backing.sum("done") >= 40, "the others are served meanwhile")
    time.sleep(5)  # ten times the drain time: what is asserted is that nothing happens
    assert [e for e in a.ledger() if e.what == "end" and e.number < 4] == []
    wait_until(lambda: "move pending, until the calls that run there end: shard" in a.cli("status"), "status says so")
    members = json.loads(a.cli("status", "--json"))["members"]
    assert [m["name"] for m in members if m.get("move_pending")] == ["a"]
    release.touch()
    wait_done(fleet, 44)
    fleet.wait_even()
    wait_until(lambda: "move pending" not in a.cli("status"), "none is pending any more")
    assert sorted(n for n in a.starts() if n < 4) == [0, 1, 2, 3]


@pytest.mark.whatever_coordination
def test_short_tasks_go_on_while_a_move_waits_for_long_ones(fleet):
    """Both are the same handler's, whose recent calls were short but for a few."""
    gate = fleet.folder / "gate"
    fleet.shards = 2
    settings = {"drain": "120s", "more": "threads = 16;"}
    a, = fleet.start("a", **settings)
    fleet.wait_even()
    tasks = [task(f"k{n}", n) for n in range(60)]
    a.submit(tasks)
    wait_done(fleet, 60)
    held = [task(f"held{n}", 100 + n, f"deaf:{gate}") for n in range(12)]
    a.submit(held)
    wait_until(lambda: len(a.starts()) == 72, "long calls run on both shards")
    b, = fleet.start("b", **settings)
    pending = lambda: [m.get("move_pending") for m in json.loads(a.cli("status", "--json"))["members"]]
    wait_until(lambda: any(pending()), "a shard is to be b's")
    more = [task(f"k{n}", 200 + n) for n in range(60)]
    a.submit(more)
    wait_until(lambda: fleet.backing.sum("done") == 120, "keys without a long call go on")
    assert fleet.counts() == {"a": 2, "b": 0}
    gate.touch()
    assert fleet.wait_even() == {"a": 1, "b": 1}
    wait_done(fleet, 132)
    check_ledger(ledger(fleet), by_key(tasks + held + more))


def test_a_drained_host_gives_its_shards_away_and_gets_them_back(fleet):
    fleet.start("a", "b")
    fleet.wait_even()
    a = fleet.members["a"]
    a.cli("members", "drain", "b")
    wait_until(lambda: fleet.counts() == {"a": 20, "b": 0}, "b is drained")
    a.cli("members", "activate", "b")
    fleet.wait_even()


# --- deaths -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("whom", ["leader", "other"])
@pytest.mark.parametrize("with_guard", [True, False], ids=["guard lives", "guard too"])
def test_a_killed_owner_is_taken_over(fleet, chance, whom, with_guard):
    fleet.start("a", "b", "c")
    fleet.wait_even()
    load = Load(fleet, chance)
    leader = fleet.leader()
    victim = leader if whom == "leader" else next(m for m in fleet.living() if m is not leader)
    wait_until(lambda: fleet.backing.sum("done") > 200, "work is done")
    guard = victim.guard()
    if not with_guard:
        victim.signal(signal.SIGSTOP)
        os.kill(guard, signal.SIGKILL)
    victim.kill()
    began = time.monotonic()
    wait_until(lambda: victim.nonce not in fleet.backing.owners().values() and len(fleet.backing.owners()) == 20,
               "its shards have owners")
    print(f"taken over after {time.monotonic() - began:.2f} s (ttl {TTL} s)")
    fleet.wait_even()
    tasks = load.finish()
    wait_done(fleet, len(tasks))
    check_ledger(ledger(fleet), by_key(tasks), may_repeat=True)
    if with_guard:
        assert "event=guard " in victim.log()


@pytest.mark.whatever_coordination
def test_a_pending_move_stays_patient_when_its_target_dies(fleet):
    """Its calls run past the drain time, so they keep their shards, whoever is to have these, and are not interrupted."""
    release = fleet.folder / "release"
    fleet.shards = 4
    settings = {"drain": "500ms", "more": "threads = 16;"}
    a, = fleet.start("a", weight=0, **settings)
    tasks = [task(f"k{n}", n, f"deaf:{release}") for n in range(16)]
    a.submit(tasks)
    wait_until(lambda: len(a.starts()) == 16, "all run")
    time.sleep(1)  # longer than the drain time
    b, = fleet.start("b", **settings)
    moved = lambda name: sum(m.log().count(f" to={name} ") for m in (a, b))
    wait_until(lambda: moved("b") == 4, "all are to be b's")
    c, = fleet.start("c", **settings)
    wait_until(lambda: moved("c") == 2, "half of them are to be c's")
    b.kill()
    wait_until(lambda: moved("c") == 4, "all are to be c's")
    time.sleep(2 * TTL + 1)  # a firm want would end the leases now
    assert fleet.counts() == {"a": 4, "c": 0}
    release.touch()
    wait_done(fleet, 16)
    wait_until(lambda: fleet.counts() == {"a": 0, "c": 4}, "they have moved")
    check_ledger(ledger(fleet), by_key(tasks))


def test_a_guard_that_dies_is_replaced(fleet, chance):
    fleet.start("a", "b")
    fleet.wait_even()
    a = fleet.members["a"]
    a.submit([task(f"k{n}", n) for n in range(40)])
    wait_done(fleet, 40)
    first = a.guard()
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: a.guard() not in (None, first), "a new guard")
    runners = a.runners()
    assert runners
    a.kill()
    wait_until(lambda: fleet.counts() == {"b": 20}, "the new guard has given everything back")
    wait_until(lambda: "event=guard " in a.log(), "the guard says what it did")
    assert not any(is_alive(pid) for pid in runners)


def long(text):
    """Leases and sessions are as long as they can be: what is taken over before they end was given back."""
    return re.sub(r'(ttl|session) = "[^"]*"', r'\1 = "5m"', text)


def test_a_host_killed_with_its_guard_has_its_shards_again_at_once(fleet):
    """Nobody is left to give anything back: the host that is started next does."""
    a = fleet.add("a", change=long).start()
    fleet.wait_even()
    a.submit([task(f"k{n}", n, "us:200000") for n in range(10)])
    wait_until(a.starts, "tasks run")
    a.kill_all()
    a.start()
    wait_until(lambda: fleet.counts() == {"a": 20}, "all is its own, long before the leases end", 60)
    wait_done(fleet, 10)
    check_ledger(ledger(fleet), by_key([task(f"k{n}", n) for n in range(10)]), may_repeat=True)


def test_a_replaced_guard_ends_the_session_too(fleet):
    a = fleet.add("a", change=long).start()
    fleet.add("b", change=long).start()
    fleet.wait_even()
    first = a.guard()
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: a.guard() not in (None, first), "a new guard")
    a.kill()
    wait_until(lambda: fleet.counts() == {"b": 20}, "all is taken over, long before the session ends", 120)


def test_a_guard_releases_nothing_while_a_runner_lives(fleet, chance):
    """A stopped runner is killed all the same; its guard waits until it is really gone."""
    release = fleet.folder / "release"
    fleet.start("a", "b")
    fleet.wait_even()
    a = fleet.members["a"]
    a.submit([task(f"k{n}", n, f"deaf:{release}") for n in range(40)])
    wait_until(lambda: len(a.runners()) >= 1 and a.starts(), "tasks run")
    runners = a.runners()
    for pid in runners:
        os.kill(pid, signal.SIGSTOP)
    a.kill()
    release.touch()
    wait_done(fleet, 40)
    check_ledger(ledger(fleet), by_key([task(f"k{n}", n) for n in range(40)]), may_repeat=True)


@pytest.mark.whatever_coordination
@pytest.mark.parametrize("what", ["host", "host and runners"])
def test_a_host_that_slept_through_its_lease_changes_nothing(fleet, chance, what):
    fleet.start("a", "b", "c")
    fleet.wait_even()
    load = Load(fleet, chance)
    victim = fleet.members["b"]
    wait_until(lambda: fleet.backing.sum("done") > 200, "work is done")
    stopped = [victim.process.pid] + (victim.runners() if what == "host and runners" else [])
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    nonce = victim.nonce
    wait_until(lambda: nonce not in fleet.backing.owners().values() and len(fleet.backing.owners()) == 20,
               "its shards have owners")
    time.sleep(TTL)  # let the others work there
    for pid in reversed(stopped):
        os.kill(pid, signal.SIGCONT)
    victim.wait_for_log("event=fenced")
    fleet.wait_even()
    tasks = load.finish()
    wait_done(fleet, len(tasks))
    check_overlaps(ledger(fleet), by_key(tasks))


def check_overlaps(entries, expected):
    """As check_ledger, but a call that was running when its host lost the lease may overlap with its repetition: the
    first starts are in order, and what runs under the newest fence never overlaps."""
    first, running = collections.defaultdict(list), {}
    for e in entries:
        if e.what == "start":
            if e.number not in first[e.key]:
                first[e.key].append(e.number)
            before = running.get(e.key)
            assert before is None or before.number == e.number or before.epoch < e.epoch, (before, e)
            running[e.key] = e
        elif running.get(e.key) and (running[e.key].epoch, running[e.key].start) == (e.epoch, e.start):
            del running[e.key]
    assert dict(first) == dict(expected)


# --- what does not fit together ---------------------------------------------------------------------------------------


def test_two_hosts_of_one_name_both_work(fleet, chance):
    fleet.add("one", host="same").start()
    fleet.add("two", host="same").start()
    fleet.wait_even()
    tasks = [task(f"k{n % 50}", n) for n in range(500)]
    fleet.members["one"].submit(tasks)
    wait_done(fleet, 500)
    check_ledger(ledger(fleet), by_key(tasks))


def test_busy_shards_of_one_host_are_spread_and_the_reason_is_shown(fleet):
    """Three of its ten shards have all the work: one goes to the other host, and a quiet one comes for it."""
    a, _ = fleet.start("a", "b", more="threads = 4;", change=lambda text: text.replace("even_load = false", "even_load = true"))
    fleet.wait_even()
    busy = a.shards()[:3]
    keys = [next(f"k{n}" for n in range(1000) if zlib.crc32(f"k{n}".encode()) % fleet.shards == shard) for shard in busy]
    a.submit([task(key, n, "us:100000") for n in range(600) for key in keys])  # a minute of work, four at a time
    wait_until(lambda: 0 < len(set(busy) & set(a.shards())) < 3, "one of the busy shards is at the other host")
    fleet.wait_even()
    told = json.loads(a.cli("members", "--json"))
    reasons = {move["shard"]: move["reason"] for move in told["moves"]}
    moved = next(shard for shard in busy if reasons[shard] == "load")
    assert collections.Counter(reasons.values())["load"] == 2  # and nothing more moves for it
    assert any(one["shard"] in busy and one["load"] > 300 for m in told["members"] for one in m["busy"])
    assert f"event=move shard={moved} " in fleet.leader().log()
    assert [m["shards"] for m in told["members"]] == [10, 10]


def test_another_number_of_shards_is_refused(fleet):
    fleet.start("a")
    other = fleet.add("b", shards=24).start(is_ready=False)
    assert other.wait() != 0
    assert "20" in other.log() and "24" in other.log()


def test_another_coordination_is_refused(fleet):
    fleet.start("a")
    here, elsewhere = fleet.backing.url, fleet.backing.elsewhere
    other = fleet.add("b", change=lambda text: text.replace(f'"{here}"', f'"{elsewhere}"')).start(is_ready=False)
    assert other.wait() != 0
    assert f'{here}\\"' in other.log() or here in other.log()
    assert elsewhere in other.log()
