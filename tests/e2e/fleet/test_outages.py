"""What fails, and what happens then: each row of the table in the day-2 guide, on a fleet with Redis as its store.

The coordination is ZooKeeper, a Redis of its own, or the store's.  Outages are as short as they can be and still do
harm; with QUIVER_TEST_LONG they last a minute."""
import concurrent.futures
import contextlib
import os
import re
import socket
import subprocess
import time

import pytest

from backings import OnOtherRedis, OnRedis, OnZooKeeper, servers
from fleet import Fleet
from hosts import check_ledger, wait_until
from servers import free_port
from test_fleet import TTL, Load, by_key, ledger, task, wait_done
from zookeepers import Ensemble

OUTAGE_S = 60 if os.environ.get("QUIVER_TEST_LONG") else 0
APART = [OnZooKeeper, OnOtherRedis]  # the coordination can fail while the store stays


def name_of(kind):
    return {OnZooKeeper: "zookeeper", OnOtherRedis: "another redis", OnRedis: "one redis"}[kind]


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Servers by kind of backing, started when first needed, kept for the next test."""
    with contextlib.ExitStack() as stack:
        made = {}

        def get(kind):
            if kind not in made:
                made[kind] = stack.enter_context(servers(kind, tmp_path_factory.mktemp("servers")))
            return made[kind]

        yield get


@pytest.fixture
def make_fleet(quiver, root, tmp_path, pairs):
    """A fleet by its kind of backing."""
    with contextlib.ExitStack() as stack:
        def make(kind):
            made = Fleet(quiver, root / "build" / "test-plugins", tmp_path, kind(tmp_path, *pairs(kind)))
            stack.callback(made.close)
            return made

        yield make


def every(kinds):
    return pytest.mark.parametrize("kind", kinds, ids=name_of)


def states(member):
    """What it was told about its session, in order."""
    return re.findall(r"event=coordination state=(\w+)", member.log())


def wait_new_sessions(fleet, before=0):
    for member in fleet.living():
        wait_until(lambda m=member: "expired" in states(m)[before:] and states(m)[-1] == "alive", "a new session")


def rounds(fleet):
    """How often anybody wrote an assignment, and how many moves there were in it."""
    found = [re.findall(r"event=assign generation=\d+ moves=(\d+)", m.log()) for m in fleet.members.values()]
    return sum(map(len, found)), sum(int(n) for moves in found for n in moves)


def check(fleet, load, *more, may_repeat=False):
    tasks = load.finish() + list(more)
    wait_done(fleet, len(tasks))
    check_ledger(ledger(fleet), by_key(tasks), may_repeat=may_repeat)


def generation(fleet):
    """Of the assignment, as an independent client reads it."""
    backing = fleet.backing
    if isinstance(backing, OnZooKeeper):
        with backing.authority.client() as client:
            data = client.get(f"/{backing.root}/test/assign")[0]
    else:
        data = backing.authority.do("HGET", "quiver:{test:coord}:node:assign", "data")
    return int(re.search(rb"^generation (\d+)$", data, re.M).group(1))


# --- coordination away ------------------------------------------------------------------------------------------------


@every(APART)
@pytest.mark.parametrize("how", ["hangs", "dies"])
def test_work_goes_on_while_coordination_is_away(make_fleet, chance, kind, how):
    fleet = make_fleet(kind)
    authority = fleet.backing.authority
    fleet.start("a", "b")
    fleet.wait_even()
    load = Load(fleet, chance)
    owners, epochs = fleet.backing.owners(), fleet.backing.epochs()
    written = rounds(fleet)
    authority.pause() if how == "hangs" else authority.kill9()
    began = time.monotonic()
    for member in fleet.living():
        wait_until(lambda m=member: "expired" in states(m), "the session is over")
    done = fleet.backing.sum("done")
    wait_until(lambda: fleet.backing.sum("done") > done + 200, "tasks are done meanwhile")
    asked = task("asks", 1000000, "result")
    said = fleet.any().cli("submit", "work", "--key", asked["key"], "--wait-for", "30s", asked["payload"])
    assert said.startswith("1000000"), "results come meanwhile"
    wait_until(lambda: time.monotonic() > began + OUTAGE_S, "the outage lasts", OUTAGE_S + 10)
    assert fleet.backing.owners() == owners
    authority.cont() if how == "hangs" else authority.start()
    wait_new_sessions(fleet)
    fleet.leader()
    check(fleet, load, asked)
    fleet.wait_even()
    assert fleet.backing.owners() == owners and fleet.backing.epochs() == epochs, "something moved"
    assert rounds(fleet)[1] == written[1], "a move was planned"


@every(APART)
def test_a_host_that_starts_without_coordination_waits_for_it(make_fleet, kind):
    fleet = make_fleet(kind)
    authority = fleet.backing.authority
    fleet.start("a")
    fleet.wait_even()
    authority.kill9()
    late = fleet.add("b").start(is_ready=False)
    wait_until(lambda: "no shard is taken before it answers" in late.log() or "unreachable" in late.log(), "it waits")
    fleet.members["a"].submit([task(f"k{n}", n) for n in range(20)])
    wait_done(fleet, 20)
    authority.start()
    late.wait_for_log("event=running")
    fleet.wait_even()


class Only:
    """Some of a fleet."""

    def __init__(self, fleet, *names):
        self.living = lambda: [fleet.members[name] for name in names]


def test_an_ensemble_loses_its_leader_then_its_quorum_and_heals(quiver, root, tmp_path, pairs, chance):
    redis, _ = pairs(OnRedis)
    with Ensemble(tmp_path / "ensemble") as ensemble, contextlib.ExitStack() as stack:
        backing = OnZooKeeper(tmp_path, redis, ensemble.servers[0])
        # The servers elect a new leader within a session, also on a busy machine.
        backing.coordination = backing.coordination.replace(backing.url, ensemble.url).replace(backing.session, "5s")
        fleet = Fleet(quiver, root / "build" / "test-plugins", tmp_path, backing)
        stack.callback(fleet.close)
        fleet.start("a", "b")
        fleet.wait_even()
        load = Load(fleet, chance)
        owners, epochs = backing.owners(), backing.epochs()

        first = ensemble.leader()
        first.kill9()
        ensemble.wait()
        ensemble.leader()
        for member in fleet.living():
            wait_until(lambda m=member: states(m)[-1] == "alive", "it has found another server")
        assert backing.owners() == owners and backing.epochs() == epochs

        second = ensemble.leader()
        second.kill9()
        for member in fleet.living():
            wait_until(lambda m=member: states(m)[-1] == "expired", "without a quorum there is no session")
        done = backing.sum("done")
        wait_until(lambda: backing.sum("done") > done + 200, "tasks are done meanwhile")

        for server in (first, second):
            server.launch()
        ensemble.wait()
        for member in fleet.living():
            wait_until(lambda m=member: states(m)[-1] == "alive", "it has a session again")
        done = backing.sum("done")
        wait_until(lambda: backing.sum("done") > done + 200, "tasks are done")
        assert backing.owners() == owners and backing.epochs() == epochs, "something moved"

        fleet.start("c")
        fleet.wait_even()
        check(fleet, load)


# --- sessions ---------------------------------------------------------------------------------------------------------


def end_session(fleet, member):
    """As if the servers had not heard of the host for too long."""
    session = re.findall(r"event=coordination state=alive \S+ session=([0-9a-f]+)", member.log())[-1]
    if isinstance(fleet.backing, OnZooKeeper):
        fleet.backing.authority.end_session(int(session, 16))
    else:
        fleet.backing.authority.do("ZADD", "quiver:{test:coord}:sessions", "XX", 0, int(session, 16))


@every([OnZooKeeper, OnRedis])
@pytest.mark.parametrize("whom", ["leader", "other"])
def test_one_hosts_session_expires(make_fleet, chance, kind, whom):
    """Its shards are given to others and drained; it is back at once, and gets its share again."""
    fleet = make_fleet(kind)
    fleet.start("a", "b", "c")
    fleet.wait_even()
    load = Load(fleet, chance)
    leader = fleet.leader()
    victim = leader if whom == "leader" else next(m for m in fleet.living() if m is not leader)
    wait_until(lambda: fleet.backing.sum("done") > 200, "work is done")
    end_session(fleet, victim)
    wait_new_sessions(Only(fleet, victim.name))
    fleet.wait_even()
    check(fleet, load)
    assert len(fleet.living()) == 3


@every([OnZooKeeper, OnRedis])
def test_all_sessions_expire_at_once_and_nobody_stampedes(make_fleet, chance, kind):
    fleet = make_fleet(kind)
    fleet.start("a", "b", "c", "d")
    fleet.wait_even()
    load = Load(fleet, chance)
    wait_until(lambda: fleet.backing.sum("done") > 200, "work is done")
    owners, epochs, written = fleet.backing.owners(), fleet.backing.epochs(), rounds(fleet)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda member: end_session(fleet, member), fleet.living()))
    wait_new_sessions(fleet)
    fleet.leader()
    done = fleet.backing.sum("done")
    wait_until(lambda: fleet.backing.sum("done") > done + 200, "work is done")
    check(fleet, load)
    fleet.wait_even()
    more = rounds(fleet)[0] - written[0]
    # A leader whose own session was the last to go may have seen the others off, one or several at a time; then they
    # come back.
    assert more <= 4, "a round for each"
    if not more:
        assert fleet.backing.owners() == owners and fleet.backing.epochs() == epochs, "something moved"


# --- who to ask -------------------------------------------------------------------------------------------------------


@pytest.fixture
def hung_port():
    """Takes connections, and never says a word."""
    with contextlib.closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        one.listen(64)
        yield one.getsockname()[1]


def test_servers_that_are_dead_hang_or_have_no_address_are_passed_over(make_fleet, hung_port):
    fleet = make_fleet(OnZooKeeper)
    port = fleet.backing.authority.port
    others = f"127.0.0.1:{free_port()},127.0.0.1:{hung_port},no-such-host.invalid:2181"

    def more(text):
        return text.replace(f"//127.0.0.1:{port}/", f"//{others},127.0.0.1:{port}/")

    for name in "ab":
        fleet.add(name, change=more).start()
    fleet.wait_even()
    fleet.any().submit([task(f"k{n}", n) for n in range(50)])
    wait_done(fleet, 50)
    assert '"leader"' in fleet.any().cli("members", "--json")


def test_a_wrong_password_is_said_so(make_fleet, tmp_path):
    fleet = make_fleet(OnZooKeeper)

    def with_password(name, word):
        (tmp_path / f"password-{name}").write_text(word)
        (tmp_path / f"password-{name}").chmod(0o600)
        return lambda text: text.replace('session = "1500ms";',
                                         f'session = "1500ms"; password_file = "{tmp_path}/password-{name}";')

    fleet.add("a", change=with_password("a", "right")).start()
    fleet.wait_even()
    wrong = fleet.add("b", change=with_password("b", "wrong")).start(is_ready=False)
    wait_until(lambda: "look at user and password" in wrong.log(), "it says what is wrong")
    assert "level=error event=" in wrong.log() and "wrong" not in re.sub(r"/\S+", "", wrong.log())
    assert fleet.backing.owners() and set(fleet.backing.owners().values()) == {fleet.members["a"].nonce}
    assert "look at user and password" in fails(wrong, "members")
    fleet.members["a"].submit([task("k", 1)])
    wait_done(fleet, 1)


def fails(member, *words):
    """What a command says that cannot reach the coordination."""
    done = subprocess.run([member.quiver, *words, "-c", member.config], capture_output=True, text=True, timeout=60)
    assert done.returncode == 3, done
    return done.stderr


# --- wiped ------------------------------------------------------------------------------------------------------------


@every(APART)
def test_a_wiped_coordination_heals_and_epochs_do_not_go_back(make_fleet, chance, kind):
    fleet = make_fleet(kind)
    fleet.start("a", "b")
    fleet.wait_even()
    load = Load(fleet, chance)
    epochs = fleet.backing.epochs()
    wipe_coordination(fleet)
    wait_new_sessions(fleet)
    fleet.start("c")
    fleet.wait_even()
    check(fleet, load)
    later = fleet.backing.epochs()
    assert all(later[shard] >= epoch for shard, epoch in epochs.items())
    assert generation(fleet) >= max(later.values())


def wipe_coordination(fleet):
    if isinstance(fleet.backing, OnZooKeeper):
        fleet.backing.authority.wipe()
    else:
        fleet.backing.authority.do("FLUSHALL")


@pytest.mark.parametrize("kind, what", [(OnZooKeeper, "store"), (OnZooKeeper, "both"), (OnRedis, "both")],
                         ids=lambda value: value if isinstance(value, str) else name_of(value))
def test_a_wiped_store_is_made_anew_and_work_goes_on(make_fleet, kind, what):
    """What was in it is gone; what comes after is done, under fences that are above all there were."""
    fleet = make_fleet(kind)
    fleet.start("a", "b")
    fleet.wait_even()
    old = [task(f"k{n % 7}", n) for n in range(100)]
    fleet.any().submit(old)
    wait_done(fleet, 100)
    before = generation(fleet)
    if what == "both" and kind is OnZooKeeper:
        fleet.backing.authority.wipe()
    fleet.backing.redis.do("FLUSHALL")
    wait_until(lambda: any("event=store-emptied" in m.log() for m in fleet.living()), "somebody notices")
    fleet.wait_even()
    fresh = [task(f"k{n % 7}", 100 + n) for n in range(100)]
    fleet.any().submit(fresh)
    wait_done(fleet, 100)
    check_ledger(ledger(fleet), by_key(old + fresh))  # whose fences have not gone back either
    fleet.start("c")
    fleet.wait_even()
    assert generation(fleet) > before


# --- the store away ---------------------------------------------------------------------------------------------------


@every([OnZooKeeper, OnRedis])
@pytest.mark.parametrize("how", ["hangs", "dies"])
def test_a_store_that_is_away_beyond_the_lease_costs_nothing_but_time(make_fleet, kind, how):
    """Nothing starts past the local deadline, what ended meanwhile is kept and told, nothing runs twice or is lost."""
    fleet = make_fleet(kind)
    gate = fleet.folder / "gate"
    fleet.start("a", "b", more="threads = 2;")
    fleet.wait_even()
    tasks = [task(f"gate{n}", n, f"wait:{gate}") for n in range(2)]
    tasks += [task(f"k{n % 40}", n, "us:3000") for n in range(2, 3000)]
    fleet.any().submit(tasks)
    fleet.any().wait_started(0)
    wait_until(lambda: fleet.backing.sum("done") > 300, "work is done")
    owners = fleet.backing.owners()

    fleet.backing.redis.pause() if how == "hangs" else fleet.backing.redis.kill9()
    gone_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    seconds = max(OUTAGE_S, 3 * TTL)
    wait_until(lambda: time.clock_gettime_ns(time.CLOCK_BOOTTIME) > gone_ns + int(seconds * 1e9), "the outage lasts",
               seconds + 10)
    gate.touch()
    wait_until(lambda: {0, 1} <= {e.number for e in fleet.any().ledger() if e.what == "end"}, "they end meanwhile")
    back_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    fleet.backing.redis.cont() if how == "hangs" else fleet.backing.redis.start()

    wait_done(fleet, len(tasks))
    entries = ledger(fleet)
    late = [e for e in entries if e.what == "start" and gone_ns + TTL * 1e9 < e.at_ns < back_ns]
    assert late == []
    check_ledger(entries, by_key(tasks))
    fleet.wait_even()
    after = fleet.backing.owners()
    # Where the coordination was away with it, all sessions are over: whoever is back last may get others than before.
    assert after == owners if kind is OnZooKeeper else set(after.values()) == set(owners.values())
    assert all(m.process.poll() is None for m in fleet.members.values())
