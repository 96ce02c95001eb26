"""etc/cluster.cfg as it is, names and ports of servers aside: Sentinel and an ensemble, with passwords."""
import contextlib
import json
import re

import pytest

from hosts import Host, wait_until
from servers import SentinelGroup
from zookeepers import Ensemble

PASSWORDS = {"redis": "one-secret", "zookeeper": "another-secret"}


class Machine(Host):
    """A folder as it would be on one machine: etc/, plugins/, var/."""

    def __init__(self, quiver, root, folder, text):
        super().__init__(quiver, root / "plugins", folder)
        (folder / "etc").mkdir(parents=True)
        (folder / "plugins").symlink_to(root / "plugins")
        self.config = folder / "etc" / "cluster.cfg"
        self.config.write_text(text)
        for name, word in PASSWORDS.items():
            (folder / "etc" / f"{name}.password").write_text(word + "\n")
            (folder / "etc" / f"{name}.password").chmod(0o600)

    def shards(self):
        return next((m["shards"] for m in self.members() if m["name"] == self.folder.name), 0)

    def members(self):
        return json.loads(self.cli("members", "--json"))["members"]


def put_ports(text, group, ensemble):
    for i, sentinel in enumerate(group.sentinels, 1):
        text = text.replace(f"redis-{i}:26379", f"127.0.0.1:{sentinel.port}")
    for i, server in enumerate(ensemble.servers, 1):
        text = text.replace(f"zk-{i}:2181", f"127.0.0.1:{server.port}")
    return text


@pytest.fixture
def machines(quiver, root, tmp_path):
    with contextlib.ExitStack() as stack:
        group = stack.enter_context(SentinelGroup(tmp_path / "redis", password=PASSWORDS["redis"], name="quiver"))
        ensemble = stack.enter_context(Ensemble(tmp_path / "zookeeper"))
        text = put_ports((root / "etc" / "cluster.cfg").read_text(), group, ensemble)
        assert not re.search(r'^ +url += "[^"]*(redis-|zk-)\d', text, re.M)
        # Two machines in one: the name of each is all that differs.
        made = [Machine(quiver, root, tmp_path / name, text + f'host = {{ name = "{name}"; }};\n') for name in "ab"]
        for machine in made:
            stack.callback(machine.close)
        yield made, group


def test_the_production_example_works_and_survives_a_failover(machines):
    (a, b), group = machines
    a.start()
    b.start()
    wait_until(lambda: (a.shards(), b.shards()) == (128, 128), "they share the shards")
    assert a.cli("submit", "echo", "--key", "alice", "--wait-for", "60s", "world") == "hello, world"

    master = group.master()
    master.kill9()
    wait_until(lambda: group.master() is not master, "another master is named")
    # It has no replica left: submits that wait for one are refused, as asked for, until there is.
    master.options += ["--replicaof", "127.0.0.1", str(group.master().port)]
    master.start()
    wait_until(master.is_in_step, "the old master follows")
    wait_until(lambda: is_greeted(a), "it goes on")

    shown = json.loads(a.cli("status", "--json"))
    assert shown["app"] == "shop" and PASSWORDS["redis"] not in json.dumps(shown)
    assert [m["sees_store"] for m in a.members()] == [True, True]
    assert (a.stop(), b.stop()) == (0, 0)


def is_greeted(machine):
    try:
        return machine.cli("submit", "echo", "--key", "bob", "--wait-for", "20s", "again") == "hello, again"
    except AssertionError:
        return False
