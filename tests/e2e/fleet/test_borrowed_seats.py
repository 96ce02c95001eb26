"""A task without a key runs where a seat is free, and stays its owner's: id, cancel, reply, budgets and history are as ever."""
import json
import signal
import subprocess

import pytest

from backings import OnCluster, OnRedis, servers
from fleet import Backing, Fleet
from hosts import wait_until
from servers import RedisCluster

# Nearly all shards are a's, so that it has what waits; b has a seat.
WEIGHTS = {"host-a": 1000, "host-b": 1}
LIMITS = 'limits = { one = { concurrency = 1; }; };'
MORE = 'limited = { plugin = "ledger.so"; limited_by = ["one"]; config = { path = "%s/ledger"; }; };\n' \
       'own = { plugin = "ledger.so"; spread = false; config = { path = "%s/ledger"; }; };\n' \
       'many = { plugin = "ledger.so"; batch = { max = 8; wait = "1ms"; }; config = { path = "%s/ledger"; }; };\n' \
       'outside = { plugin = "remote"; };\n'


class Pair:
    """Two hosts with a seat each, of which one owns everything."""

    def __init__(self, quiver, root, folder, backing):
        self.folder = folder
        self.fleet = Fleet(quiver, root / "build" / "test-plugins", folder, backing)
        self.number = 0
        for name, weight in WEIGHTS.items():
            self.fleet.add(name, weight=weight, more="processes = 1;", change=self.configure)
        self.a, self.b = self.fleet.members.values()

    def configure(self, text):
        """On a busy machine a heartbeat may take a second: nobody is taken to be silent for that."""
        assert 'ttl = "1s"' in text
        text = text.replace('ttl = "1s"', 'ttl = "2s"')
        at = text.rindex("};")
        return text[:at] + MORE.replace("%s", str(self.folder)) + text[at:] + LIMITS

    def up(self):
        """Both run, and a owns every shard."""
        for member in (self.a, self.b):
            if not member.process or member.process.poll() is not None:
                member.start()
        wait_until(lambda: self.fleet.counts() == {"host-a": 20, "host-b": 0}, "host-a owns all")
        self.dead = self.fleet.backing.dead()
        return self

    def submit(self, payload, handler="work", *words):
        return self.a.cli("submit", handler, *words, payload).strip()

    def gate(self):
        self.number += 1
        return self.folder / f"gate-{self.number}"

    def open_gates(self):
        """Nothing that a test left behind runs on beside the next one."""
        for number in range(self.number):
            (self.folder / f"gate-{number + 1}").touch()

    def block(self, count, words="", handler="work"):
        """So many tasks that run until the gate that is returned with their ids is opened."""
        gate = self.gate()
        return gate, [self.submit(f"{self.number} wait:{gate} {words}", handler) for _ in range(count)]

    def starts(self, ids):
        """How often each has started."""
        path = self.folder / "ledger"
        lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
        return {task: sum(1 for line in lines if line[0] == "start" and line[3] == task) for task in ids}

    def attempts(self, ids):
        """As which attempt they started."""
        return {e.attempt for e in self.a.ledger() if e.id in ids}

    def wait_running(self, ids, count):
        wait_until(lambda: sum(self.starts(ids).values()) >= count, f"{count} of {ids} run")

    def show(self, task):
        return json.loads(self.fleet.living()[0].cli("task", task, "--json"))

    def totals(self):
        return json.loads(self.fleet.living()[0].cli("status", "--json"))["totals"]

    def wait_quiet(self):
        wait_until(lambda: not self.totals()["queued"] + self.totals()["in_flight"], "nothing is left to do")

    def wait_ended(self, ids):
        """By the ledger: a host that has not done them itself does not know of them when they are done."""
        wait_until(lambda: set(ids) <= {e.id for e in self.a.ledger() if e.what == "end" and not e.outcome}, f"{ids} end")

    def wait_done(self, ids):
        for task in ids:
            wait_until(lambda: self.show(task)["state"] == "done", f"{task} is done")

    def borrowed(self, member, ids, handler="work"):
        """Those that ran, or were about to, on another host's seat."""
        return [task for task in ids if f"event=borrowed handler={handler} task={task}" in member.log()]

    def two_running(self, words=""):
        """Two tasks of host-a that run, one at each host: (gate, the one at home, the borrowed one)."""
        gate, ids = self.block(2, words)
        self.wait_running(ids, 2)
        lent = wait_until(lambda: self.borrowed(self.b, ids), "b has one of them")
        assert len(lent) == 1
        return gate, next(task for task in ids if task not in lent), lent[0]


@pytest.fixture(scope="module", params=["sqlite", "redis"])
def made(request, quiver, root, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pair")
    if request.param == "sqlite":
        pair = Pair(quiver, root, folder, Backing(folder))
        yield pair
        pair.fleet.close()
        return
    with servers(OnRedis, tmp_path_factory.mktemp("servers")) as redis:
        pair = Pair(quiver, root, folder, OnRedis(folder, *redis))
        yield pair
        pair.fleet.close()


@pytest.fixture
def pair(made):
    yield made.up()
    made.open_gates()


def test_a_cluster_lends_seats(quiver, root, tmp_path):
    """The mailboxes of two hosts, the records of who wants seats and the shards are on different servers."""
    with RedisCluster(tmp_path / "servers", replicas=False) as cluster:
        pair = Pair(quiver, root, tmp_path, OnCluster(tmp_path, cluster))
        try:
            pair.up()
            gate, home, lent = pair.two_running()
            cancelled = pair.submit("9", "work")
            pair.a.cli("task", "cancel", lent)
            wait_until(lambda: pair.show(lent)["state"] == "dead", "the lent one is cancelled")
            pair.wait_done([cancelled])  # on the seat that is free again
            assert pair.borrowed(pair.b, [cancelled])
            gate.touch()
            pair.wait_done([home])
        finally:
            pair.fleet.close()


def test_no_seat_is_idle_while_a_task_without_a_key_waits(pair):
    gate, ids = pair.block(4)
    pair.wait_running(ids, 2)
    assert len(wait_until(lambda: pair.borrowed(pair.b, ids), "b runs one")) == 1
    gate.touch()
    pair.wait_done(ids)
    assert set(pair.starts(ids).values()) == {1}
    lent = pair.borrowed(pair.b, ids)
    shown = pair.show(lent[0])
    assert shown["seat"] == "host-b" and shown["host"] == "host-a"
    assert "on host-b (borrowed seat)" in pair.a.cli("task", lent[0])


def commands_about_seats(redis, count):
    """Of the next `count` commands that hosts send, those about mailboxes and wanted seats."""
    client, seen = redis.client(decode_responses=True), []
    with client, client.monitor() as monitor:
        while len(seen) < count:
            command = monitor.next_command()
            seen += [command["command"]] if command["client_type"] != "lua" else []
    return [words for words in seen if ":mail" in words or ":wanting" in words]


@pytest.mark.parametrize("made", ["redis"], indirect=True)
def test_nothing_is_asked_while_all_are_idle_or_all_are_busy(pair):
    """Leases are renewed the while; who wants seats has said so once, and who joined has looked once."""
    redis, client = pair.fleet.backing.redis, pair.fleet.backing.client
    pair.wait_quiet()
    wait_until(lambda: not client.exists("quiver:{test}:wanting"), "nobody wants a seat")
    wait_until(lambda: commands_about_seats(redis, 200) == [], "nobody asks")
    gate, ids = pair.block(8)
    pair.wait_running(ids, 2)
    wait_until(lambda: client.hlen("quiver:{test}:wanting") == 1, "a wants a seat")
    wait_until(lambda: commands_about_seats(redis, 200) == [], "nobody asks")
    gate.touch()
    pair.wait_done(ids)


def test_a_task_with_a_key_runs_at_its_owner(pair):
    gate, ids = pair.block(1)
    pair.wait_running(ids, 1)
    keyed = pair.submit(f"1 wait:{gate}", "work", "--key", "k")
    free = [pair.submit(f"1 wait:{gate}")]
    pair.wait_running(free, 1)  # which came behind the keyed one
    assert pair.starts([keyed]) == {keyed: 0}
    gate.touch()
    pair.wait_done([*ids, keyed, *free])
    assert not pair.borrowed(pair.b, [keyed])


def test_a_handler_may_keep_its_tasks(pair):
    gate, ids = pair.block(2, handler="own")
    pair.wait_running(ids, 1)
    other, spread = pair.block(2)  # that one is lent after them shows that they could have been
    pair.wait_running(spread, 2)
    assert sum(pair.starts(ids).values()) == 1
    gate.touch()
    other.touch()
    pair.wait_done(ids + spread)


def test_a_higher_lane_is_lent_first(pair):
    """Also if it waits in the pool by then, behind the task that has the seat, and lower ones in the windows."""
    gates = [pair.gate(), pair.gate()]
    first = [pair.submit(f"1 wait:{gates[0]}")]
    pair.wait_running(first, 1)
    lent = [pair.submit(f"1 wait:{gates[1]}")]
    pair.wait_running(lent, 1)
    low = [pair.submit(f"1 wait:{gates[0]}", "work", "--lane", "low") for _ in range(4)]
    high = pair.submit(f"1 wait:{gates[0]}", "work", "--lane", "high")
    for task in [*low, high]:
        wait_until(lambda t=task: pair.show(t)["stored"] != "queued", "it is at its owner")
    gates[1].touch()
    pair.wait_running([high], 1)
    assert sum(pair.starts(low).values()) == 0
    gates[0].touch()
    pair.wait_done([*first, *lent, *low, high])


def test_what_stands_behind_a_longer_task_is_lent(pair):
    """Short tasks make a host hand many to its runner at once; then comes one that takes long."""
    pair.a.submit([{"handler": "work", "key": f"k{n}", "payload": f"{n}"} for n in range(300)])
    pair.wait_quiet()
    gate, ids = pair.block(2)
    pair.wait_running(ids, 2)
    gate.touch()
    pair.wait_done(ids)
    assert set(pair.starts(ids).values()) == {1}


def test_one_without_a_key_is_lent_from_behind_many_with_keys(pair):
    """On every shard there are a hundred before it."""
    gate, ids = pair.block(1)
    pair.wait_running(ids, 1)
    pair.a.submit([{"handler": "work", "key": f"k{n}", "payload": f"{n}"} for n in range(2400)])
    wait_until(lambda: pair.totals()["queued"] == 0, "they are at their owner")
    free = pair.submit(f"1 wait:{gate}")
    pair.wait_running([free], 1)
    gate.touch()
    pair.wait_quiet()
    assert pair.starts([*ids, free]) == {ids[0]: 1, free: 1}


def test_what_stands_behind_a_batch_is_lent(pair):
    gate, ids = pair.block(2, handler="many")
    pair.wait_running(ids, 2)
    assert len(pair.borrowed(pair.b, ids, "many")) == 1
    gate.touch()
    pair.wait_done(ids)


def test_a_lent_task_is_cancelled(pair):
    gate, home, lent = pair.two_running()
    pair.a.cli("task", "cancel", lent)
    wait_until(lambda: pair.show(lent)["state"] == "dead", "it is dead")
    assert pair.show(lent)["reason"] == "cancelled"
    gate.touch()
    pair.wait_done([home])
    assert pair.starts([lent]) == {lent: 1}


def test_a_lent_task_has_its_timeout_and_its_budget(pair):
    """It is ended at its timeout until its crashes are used up, and each of them says where it was."""
    gate, ids = pair.block(1)
    pair.wait_running(ids, 1)
    never = pair.folder / "never"
    late = pair.submit(f"1 deaf:{never}", "work", "--timeout", "300ms")
    wait_until(lambda: pair.show(late)["state"] == "dead", "it used up its crashes")
    shown = pair.show(late)
    assert shown["crashes"] == 3 and shown["reason"] == "timed-out"
    assert [(e["host"], e.get("borrowed")) for e in shown["history"] if e["kind"] == "crash"] == [("host-b", True)] * 3
    gate.touch()
    pair.wait_done(ids)


def test_what_a_lent_task_says_comes_back(pair):
    """Result, follow-up, retry with its place, checkpoint: as at home."""
    gate, ids = pair.block(1)
    pair.wait_running(ids, 1)
    said = pair.a.cli("submit", "work", "--wait-for", "30s", "7 save:half retry:1 submit:other result tell").strip()
    assert said.startswith("lane 0 attempt 2 of 4")
    again = pair.submit("8 retry:1")
    pair.wait_done([again])
    retried = pair.submit("9 retry:9")
    wait_until(lambda: pair.show(retried)["state"] == "dead", "its attempts are used up")
    assert [e.get("borrowed") for e in pair.show(retried)["history"] if e["kind"] == "attempt"] == [True] * 4
    gate.touch()
    pair.wait_done(ids)


def test_a_lent_task_holds_its_share_of_a_limit(pair):
    gate, ids = pair.block(2, handler="limited")
    pair.wait_running(ids, 1)
    other, spread = pair.block(2)
    pair.wait_running(spread, 2)
    assert sum(pair.starts(ids).values()) == 1
    gate.touch()
    other.touch()
    pair.wait_done(ids + spread)


def test_a_reload_of_the_borrower_interrupts_nothing(pair):
    gate, home, lent = pair.two_running()
    text = pair.b.config.read_text()
    pair.b.config.write_text(text.replace("processes = 1;", 'processes = 1; environment = ["RELOADED"];', 1))
    pair.b.signal(signal.SIGHUP)
    wait_until(lambda: "event=runner-ready handler=work generation=2" in pair.b.log(), "the new version is ready")
    gate.touch()
    pair.wait_done([home, lent])
    assert pair.starts([home, lent]) == {home: 1, lent: 1}
    pair.b.config.write_text(text)


def test_a_killed_borrower_costs_an_interruption(pair):
    gate, home, lent = pair.two_running()
    pair.b.kill()
    gate.touch()
    pair.wait_done([home, lent])
    assert pair.starts([home, lent]) == {home: 1, lent: 2}
    assert pair.a.log().count(f"event=seat-silent handler=work task={lent}") == 1


def test_a_paused_borrower_costs_an_interruption(pair):
    """Its runner goes on, as promise 3 allows; what it says when it wakes is refused."""
    gate, home, lent = pair.two_running()
    pair.b.signal(signal.SIGSTOP)
    try:
        wait_until(lambda: pair.a.log().count(f"event=seat-silent handler=work task={lent}") == 1, "it is silent")
        gate.touch()
        pair.wait_done([home, lent])
    finally:
        pair.b.signal(signal.SIGCONT)
    assert pair.starts([home, lent]) == {home: 1, lent: 2}
    pair.up()
    more, others = pair.block(2)  # it lends its seat again
    pair.wait_running(others, 2)
    more.touch()
    pair.wait_done(others)
    assert pair.starts([home, lent]) == {home: 1, lent: 2}


def test_a_paused_owner_costs_a_lent_task_an_interruption_at_most(pair):
    """Its shards move to the borrower; the one that wakes commits nothing."""
    gate, home, lent = pair.two_running()
    pair.a.signal(signal.SIGSTOP)
    try:
        wait_until(lambda: pair.b.log().count(f"event=adopted shard={lent.rpartition('-')[2]} task={lent}") == 1,
                   "b owns what it has borrowed")
        gate.touch()
        pair.wait_ended([home, lent])
    finally:
        pair.a.signal(signal.SIGCONT)
    pair.up()
    pair.wait_quiet()
    assert pair.fleet.backing.dead() == pair.dead
    assert pair.starts([lent])[lent] <= 2 and pair.attempts([home, lent]) == {1}


def test_a_borrower_that_stops_hands_back_what_it_runs(pair):
    gate, home, lent = pair.two_running()
    pair.b.signal()
    wait_until(lambda: "event=stopping" in pair.b.log(), "it stops")
    gate.touch()
    assert pair.b.wait() == 0
    pair.wait_done([home, lent])
    assert pair.starts([home, lent]) == {home: 1, lent: 1}


def test_a_killed_owner_costs_a_lent_task_nothing(pair):
    """b becomes the owner of what it has borrowed, and commits it."""
    gate, home, lent = pair.two_running()
    pair.a.kill()
    wait_until(lambda: f"task={lent}" in "".join(line for line in pair.b.log().splitlines() if "event=adopted" in line),
               "b waits for what it runs itself")
    gate.touch()
    pair.wait_done([home, lent])
    assert pair.starts([lent]) == {lent: 1}


def test_a_worker_that_waits_gets_tasks_of_any_host(pair):
    """It asks b before there is a task; then all of them are a's."""
    words = [pair.b.quiver, "take", "outside", "-n", "40", "--wait", "60s", "-c", pair.b.config, "--", "cat"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL) as worker:
        pair.a.submit([{"handler": "outside", "payload": str(n)} for n in range(40)])
        assert worker.wait(120) == 0
    pair.wait_quiet()


def test_a_worker_gets_tasks_of_any_host(pair):
    """All tasks are a's; the worker asks b."""
    ids = {pair.submit("hello", "outside"), pair.submit("hello", "outside", "--key", "k")}
    subprocess.run([pair.b.quiver, "take", "outside", "-n", "2", "--wait", "60s", "-c", pair.b.config, "--", "cat"],
                   check=True, capture_output=True, timeout=120)
    pair.wait_done(ids)
    assert all(f"event=borrowed handler=outside task={task}" in pair.b.log() for task in ids)
