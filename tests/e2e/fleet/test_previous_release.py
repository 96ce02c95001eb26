"""The release before this one and this one in one fleet: host by host there and back, with tasks running."""
import collections
import json
import re
import subprocess
import threading

import pytest

from backings import OnRedis, servers
from fleet import Backing, Fleet
from hosts import check_ledger, wait_until
from previous import previous_release


@pytest.fixture(scope="module")
def old():
    return previous_release()


class Pair:
    """A fleet whose hosts may be of either release.  All of them load the handler as the older release built it; the
    older hosts another build of it, so that the ledger tells who ran a task."""

    def __init__(self, quiver, old, folder, backing):
        self.new_quiver, self.old = quiver, old
        self.fleet = Fleet(quiver, old.plugins, folder, backing)

    def put(self, name, release):
        """The host of that name is of that release from its next start on."""
        plugin = "ledger-two.so" if release == "old" else "ledger.so"
        # Settings that only the newer one knows are for later: the file is the same for both.
        member = self.fleet.add(name, change=lambda text: text.replace("even_load = false; ", "").replace("ledger.so", plugin))
        member.quiver = self.old.quiver if release == "old" else self.new_quiver
        return member

    def start(self, **releases):
        for name, release in releases.items():
            self.put(name, release).start()
        return [self.fleet.members[name] for name in releases]

    def replace(self, name, release):
        """As an upgrade does it: ended, then started again from another binary."""
        assert self.fleet.members[name].stop() == 0
        self.start(**{name: release})


@pytest.fixture(params=["sqlite", "redis"])
def pair(request, quiver, old, tmp_path):
    if request.param == "sqlite":
        made = Pair(quiver, old, tmp_path, Backing(tmp_path))
        yield made
        made.fleet.close()
    else:
        with servers(OnRedis, tmp_path / "servers") as there:
            made = Pair(quiver, old, tmp_path, OnRedis(tmp_path, *there))
            yield made
            made.fleet.close()


class Producer:
    """Submits tasks of a few keys, in turns with the older release's command and with this one's."""

    KEYS = 30

    def __init__(self, pair):
        self.pair, self.expected, self.count, self.is_over = pair, collections.defaultdict(list), 0, False
        self.config = pair.fleet.folder / "producer.cfg"
        self.config.write_text(pair.fleet.any().config.read_text())
        self.thread = threading.Thread(target=self.run)

    def submit(self, quiver, count):
        tasks = []
        for _ in range(count):
            key = f"k{self.count % self.KEYS}"
            self.expected[key].append(self.count)
            tasks.append(json.dumps({"handler": "work", "key": key, "payload": str(self.count)}) + "\n")
            self.count += 1
        subprocess.run([quiver, "submit", "--json-lines", "-c", self.config], input="".join(tasks), text=True, check=True,
                       capture_output=True, timeout=120)

    def run(self):
        while not self.is_over:
            for quiver in (self.pair.old.quiver, self.pair.new_quiver):
                self.submit(quiver, 30)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over = True
        self.thread.join()

    def wait_for_more(self):
        """Until tasks that were submitted from now on are done."""
        wanted = self.pair.fleet.backing.sum("done") + 200
        wait_until(lambda: self.pair.fleet.backing.sum("done") >= wanted, "200 tasks more are done")


def check_all_done(pair, producer):
    fleet = pair.fleet
    wait_until(lambda: fleet.backing.sum("done") >= producer.count, f"{producer.count} tasks are done", 120)
    assert fleet.backing.sum("done") == producer.count and fleet.backing.dead() == 0
    entries = fleet.any().ledger()
    check_ledger(entries, producer.expected)
    return {e.build for e in entries}


def test_tasks_go_through_both_in_order(pair):
    pair.start(a="old", b="new")
    pair.fleet.wait_even()
    producer = Producer(pair)
    for quiver in (pair.old.quiver, pair.new_quiver) * 3:
        producer.submit(quiver, 100)
    assert len(check_all_done(pair, producer)) == 2, "hosts of both releases ran some"


def test_host_by_host_to_this_release_and_back_under_load(pair):
    pair.start(a="old", b="old")
    pair.fleet.wait_even()
    with Producer(pair) as producer:
        producer.wait_for_more()
        for name, release in (("a", "new"), ("b", "new"), ("b", "old"), ("a", "old"), ("a", "new")):
            pair.replace(name, release)
            pair.fleet.wait_even()
            producer.wait_for_more()
    assert len(check_all_done(pair, producer)) == 2


def test_a_host_of_either_release_takes_over_from_a_killed_one(pair):
    pair.start(a="old", b="new")
    pair.fleet.wait_even()
    producer = Producer(pair)
    for killed, release in (("a", "old"), ("b", "new")):
        producer.submit(pair.new_quiver, 60)
        wait_until(lambda: pair.fleet.backing.sum("done") == producer.count, "these are done")
        pair.fleet.members[killed].kill()
        wait_until(lambda: len(pair.fleet.backing.owners()) == pair.fleet.shards and
                   pair.fleet.counts() == {m.name: pair.fleet.shards for m in pair.fleet.living()}, "the other one has all shards")
        producer.submit(pair.old.quiver, 60)
        wait_until(lambda: pair.fleet.backing.sum("done") == producer.count, "these are done")
        pair.start(**{killed: release})
        pair.fleet.wait_even()
    check_all_done(pair, producer)


def features(member):
    return {f["name"]: f["on"] for f in json.loads(member.cli("app", "show", "--json"))["features"]}


def test_a_feature_that_the_older_one_lacks_is_refused_while_it_is_there(pair):
    a, b = pair.start(a="old", b="new")
    pair.fleet.wait_even()
    missing = [name for name, is_on in features(b).items() if not is_on]
    assert "move" in missing, "the older release made the app"
    said = subprocess.run([b.quiver, "app", "upgrade", "--all", "-c", b.config], capture_output=True, text=True, timeout=60)
    assert said.returncode == 1
    assert sorted(re.findall(r"^host a does not know (\S+)$", said.stderr, re.MULTILINE)) == sorted(missing), said.stderr
    # Until then the owner of a shard, whoever it is, is not asked for it: here for a claimed task behind one that runs.
    gate = pair.fleet.folder / "gate"
    b.submit_one({"handler": "work", "key": "k", "payload": f"1 wait:{gate}"})
    b.wait_started(1)
    behind = b.submit_one({"handler": "work", "key": "k", "payload": "2"})
    wait_until(lambda: "claimed" in b.cli("task", behind), "it is claimed")
    moved = subprocess.run([b.quiver, "task", "move", behind, "--lane", "high", "--force", "-c", b.config], capture_output=True, text=True,
                           timeout=60)
    assert moved.returncode == 1 and "app upgrade move" in moved.stderr, moved.stdout + moved.stderr
    gate.touch()
    wait_until(lambda: pair.fleet.backing.sum("done") == 2, "both are done")

    assert a.stop() == 0
    assert all(f"{name} is on" in b.cli("app", "upgrade", name) for name in missing)
    a.start(is_ready=False)
    assert a.wait() != 0
    log = a.log().replace("\\", "")
    assert any(f'feature "{name}"' in log for name in missing) and "run a newer one" in log, log


READING = (["status"], ["status", "--json"], ["members"], ["tasks"], ["dead", "list"], ["app", "show"], ["key", "list"], ["limit", "list"],
           ["schedule", "list"], ["room", "list"])


def test_commands_of_either_release_talk_to_hosts_of_the_other(pair):
    a, b = pair.start(a="old", b="new")
    pair.fleet.wait_even()
    programs = (pair.old.quiver, pair.new_quiver)
    for host in (a, b):
        for quiver in programs:
            for words in READING:
                done = subprocess.run([quiver, *words, "-c", host.config], capture_output=True, text=True, timeout=60)
                assert done.returncode == 0, f"{quiver} {words}: {done.stdout}{done.stderr}"
            done = subprocess.run([quiver, "submit", "work", "--wait", "--key", "k", "7", "-c", host.config], capture_output=True, text=True,
                                  timeout=60)
            assert done.returncode == 0, done.stderr
    for quiver in programs:
        shown = json.loads(subprocess.run([quiver, "status", "--json", "-c", b.config], capture_output=True, text=True, timeout=60).stdout)
        assert {m["name"]: m["version"] for m in shown["members"]} == {
            "a": pair.old.version, "b": subprocess.run([pair.new_quiver, "--version"], capture_output=True, text=True).stdout.split()[1]}
        uneven = subprocess.run([quiver, "status", "--fail-if", "versions=1", "-c", b.config], capture_output=True, text=True, timeout=60)
        assert uneven.returncode == 1 and "version" in uneven.stdout + uneven.stderr
        for name in ("a", "b"):
            for verb in ("drain", "activate"):
                done = subprocess.run([quiver, "members", verb, name, "-c", b.config], capture_output=True, text=True, timeout=60)
                assert done.returncode == 0, done.stderr
        pair.fleet.wait_even()
