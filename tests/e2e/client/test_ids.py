"""Unique ids: by the command, by processes and threads at once, by runners of two hosts; through kills and clocks that step."""
import json
import os
import signal
import subprocess

import pytest

from backings import durable_redis
from clocks import SteppedClock
from etcds import Etcd
from hosts import wait_until
from zookeepers import ZooKeeper

CONFIG = """
app = "test"; shards = 4;
store = {{ url = "sqlite:{folder}/q.db"; }};
coordination = {{ url = "{url}"; session = "1s"; }};
{more}
state = "{folder}/var"; plugins = "{root}/build/villains";
handlers = {{ served = {{ plugin = "services.so"; processes = 2; }}; }};
"""


@pytest.fixture(scope="module", params=["local", "redis", "zookeeper", "etcd"])
def coordination(request, tmp_path_factory):
    """The URL of a coordination for an app in a folder.  Only the server that is asked for is started."""
    if request.param == "local":
        yield lambda folder: f"local:{folder}/tree"
        return
    kind = {"redis": durable_redis, "zookeeper": ZooKeeper, "etcd": Etcd}[request.param]
    with kind(tmp_path_factory.mktemp(request.param)) as server:
        yield lambda folder: server.url if kind is durable_redis else \
            f"{request.param}://127.0.0.1:{server.port}/{folder.name}"


class Place:
    """An app on one coordination, and commands on it."""

    def __init__(self, quiver, root, folder, url, more=""):
        self.quiver, self.folder, self.children = quiver, folder, []
        self.config = folder / "runtime.cfg"
        self.config.write_text(CONFIG.format(folder=folder, url=url, more=more, root=root))

    def popen(self, *words, **options):
        child = subprocess.Popen([self.quiver, *words, "-c", self.config], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True, **options)
        self.children.append(child)
        return child

    def host(self, name):
        log = self.folder / f"{name}.log"
        with open(log, "wb") as output:
            child = subprocess.Popen([self.quiver, "run", "--name", name, "-c", self.config], stderr=output)
        self.children.append(child)
        return child, log

    def make(self):
        child, log = self.host("maker")
        wait_until(lambda: "event=running" in log.read_text(), "the host runs")
        child.terminate()
        child.wait(60)
        return self

    def run(self, *words, code=0):
        done = subprocess.run([self.quiver, *words, "-c", self.config], capture_output=True, text=True, timeout=120)
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 else done.stderr

    def ids(self, *words):
        return [int(line) for line in self.run("id", *words).splitlines()]

    def close(self):
        for child in self.children:
            if child.poll() is None:
                child.kill()
            child.wait()
            for stream in (child.stdout, child.stderr):
                if stream:
                    stream.close()


@pytest.fixture
def place(quiver, root, tmp_path, coordination):
    made = Place(quiver, root, tmp_path, coordination(tmp_path), 'ids = { horizon = "1s"; };').make()
    yield made
    made.close()


@pytest.fixture
def local(quiver, root, tmp_path):
    made = Place(quiver, root, tmp_path, f"local:{tmp_path}/tree").make()
    yield made
    made.close()


def slot_of(number):
    return number >> 12 & 1023


def test_many_ids_are_unique_and_increase_in_one_process_and_in_ten(place):
    """A million of one process (where the coordination is a server: fewer, for the sake of time); ten processes of a
    hundred thousand each, at once."""
    count = 1000000 if "local:" in place.config.read_text() else 200000
    ids = place.ids("-n", str(count))
    assert len(ids) == count and all(a < b for a, b in zip(ids, ids[1:]))
    children = [place.popen("id", "-n", "100000") for _ in range(10)]
    outputs = [child.communicate(timeout=120) for child in children]
    assert [child.returncode for child in children] == [0] * 10, outputs
    each = [[int(line) for line in out.splitlines()] for out, _ in outputs]
    assert all(a < b for some in each for a, b in zip(some, some[1:]))
    assert len({number for some in each for number in some} | set(ids)) == 1000000 + count


def test_two_hosts_that_start_at_once_give_different_ids(place):
    hosts = [place.host(name) for name in ("a", "b")]
    for _, log in hosts:
        wait_until(lambda log=log: "event=running" in log.read_text(), "it runs")
    pairs = []

    def both_have_given():
        tasks = [place.popen("submit", "served", "--key", str(k), "--wait-for", "60s", "many ids") for k in range(8)]
        pairs.extend(tuple(map(int, child.communicate(timeout=120)[0].split())) for child in tasks)
        return len({slot_of(first) for first, _ in pairs}) == 2

    wait_until(both_have_given, "both hosts own shards and have given ids")
    assert all(first < last for first, last in pairs)
    assert len({number for pair in pairs for number in pair}) == 2 * len(pairs)
    assert place.run("submit", "served", "--wait-for", "60s", "room") == "room_append 0 0 -22, next 1"
    assert [json.loads(line)["entry"] for line in place.run("room", "news", "read", "--json").splitlines()] == ["a\0b", ""]


def test_a_slot_of_ones_own_is_refused_while_another_has_it_and_waits_for_its_horizon(place):
    holder = place.popen("id", "-n", "4000000000", "--machine", "7")
    first = int(holder.stdout.readline())
    assert slot_of(first) == 7
    assert "slot 7 is another's" in place.run("id", "--machine", "7", code=1)
    last = first
    os.kill(holder.pid, signal.SIGKILL)
    for line in holder.stdout:
        last = int(line) if line.endswith("\n") and len(line) == 20 else last

    def again():
        child = place.popen("id", "--machine", "7")
        out, err = child.communicate(timeout=120)
        assert out or "another's" in err, err
        return int(out) if out else None

    found = []
    wait_until(lambda: found.append(again()) or found[-1], "the killed one's session is over, and its horizon has passed")
    assert found[-1] > last and slot_of(found[-1]) == 7


@pytest.fixture
def stepping(local, root, tmp_path):
    """Starts `quiver id` with a wall clock that the test steps."""
    clock = SteppedClock(tmp_path / "ahead", root)
    return local.popen("id", "-n", "4000000000", env={**os.environ, **clock.variables}), clock.step


def test_a_small_step_back_waits_and_a_large_one_is_an_error(stepping):
    child, step = stepping
    last = 0
    for i, line in enumerate(child.stdout):
        assert int(line) > last
        last = int(line)
        if i == 100000:
            step(-5)
        if i == 400000:
            step(-3600000)
    assert i > 400000
    assert child.wait(60) == 1
    said = child.stderr.read()
    assert "behind the last id; it was set back" in said


def test_an_id_is_decoded(local):
    shown = json.loads(local.run("id", "decode", "1427970479175499776", "--json"))
    assert (shown["base32"], shown["at_ms"], shown["slot"]) == ("b8wjm1zroyyyy", 1629289667301, 0)
    assert json.loads(local.run("id", "decode", "b8wjm1zroyyyy", "--json"))["id"] == "1427970479175499776"
    assert json.loads(local.run("id", "decode", "4jgmnx8Js8A", "--json"))["id"] == "1428076403798048768"
    assert "no id in base 32" in local.run("id", "decode", "lllllllllllll", code=1)
    one = local.run("id", "--layout", "sonyflake", "--base58").strip()
    assert "sonyflake" in local.run("id", "decode", one, "--layout", "sonyflake")
    assert "is no slot" in local.run("id", "--machine", "1024", code=1)


def test_the_first_hosts_layout_is_the_apps(quiver, root, tmp_path):
    more = 'ids = { layout = "sonyflake"; epoch = "2020-01-01T00:00:00Z"; };'
    made = Place(quiver, root, tmp_path, f"local:{tmp_path}/tree", more).make()
    try:
        assert json.loads(made.run("app", "show", "--json"))["id_layout"] == {
            "kind": "sonyflake", "time_bits": 39, "slot_bits": 16, "sequence_bits": 8, "epoch_ms": 1577836800000}
        ids = made.ids("-n", "2000")
        assert all(a < b for a, b in zip(ids, ids[1:])) and len({i & 65535 for i in ids}) == 1
        other = Place(quiver, root, tmp_path, f"local:{tmp_path}/tree", 'ids = { layout = "snowflake"; };')
        child, log = other.host("other")
        assert child.wait(60) != 0
        assert "sonyflake:39.16.8@1577836800000" in log.read_text() and "41.10.12" in log.read_text()
    finally:
        made.close()
