"""What holds for a fleet on a file and a folder holds with Redis as its store and ZooKeeper as its coordination."""
import pytest

from backings import OnZooKeeper, servers
from fleet import Fleet
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
        assert len(client.get_children(f"{root}/members")) == 1
