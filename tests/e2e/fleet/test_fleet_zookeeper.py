"""What holds for a fleet on a file and a folder holds with Redis as its store and ZooKeeper as its coordination."""
import pytest

from backings import OnZooKeeper, servers
from fleet import Fleet
from hosts import wait_until
from test_fleet import *  # the same tests, with this file's fleet


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    with servers(OnZooKeeper, tmp_path_factory.mktemp("servers")) as made:
        yield made


@pytest.fixture
def fleet(quiver, root, tmp_path, pair):
    made = Fleet(quiver, root / "build" / "test-plugins", tmp_path, OnZooKeeper(tmp_path, *pair))
    yield made
    made.close()


def test_other_clients_can_read_who_is_there(fleet):
    fleet.start("a", "b")
    fleet.wait_even()
    root = f"/{fleet.backing.root}/test"
    with fleet.backing.authority.client() as client:
        members = client.get_children(f"{root}/members")
        assert sorted(members) == sorted(f"{m.name}.{m.nonce}" for m in fleet.living())
        assert all(client.exists(f"{root}/members/{member}").ephemeralOwner for member in members)
        assert client.exists(f"{root}/assign").ephemeralOwner == 0
        assert fleet.members["b"].stop() == 0
        # The server takes the end of a session as a write of its own: a reader may be before it.
        wait_until(lambda: len(client.get_children(f"{root}/members")) == 1, "the member that stopped is gone")


def test_a_server_more_in_the_list_is_the_same_coordination(fleet):
    """Host by host: whoever has the new list and whoever has the old one work together, and either may be restarted."""
    here = fleet.backing.url
    longer = here.replace("://", "://127.0.0.1:1,")
    a, = fleet.start("a")
    b = fleet.add("b", change=lambda text: text.replace(f'"{here}"', f'"{longer}"')).start()
    fleet.wait_even()
    assert a.stop() == 0
    fleet.start("a")
    assert fleet.wait_even() == {"a": 10, "b": 10}
    a.config.write_text(a.config.read_text().replace(f'"{here}"', f'"{here.partition(":")[0]}://127.0.0.1:1/elsewhere"'))
    assert a.stop() == 0
    assert a.start(is_ready=False).wait() != 0
    assert "change the setting" in a.log() and here in a.log()
    assert b.process.poll() is None
