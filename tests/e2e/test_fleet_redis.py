"""What holds for a fleet on a file and a folder holds with one Redis as both."""
import pytest

from backings import OnRedis, servers
from fleet import Fleet
from test_fleet import *  # the same tests, with this file's fleet


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    with servers(OnRedis, tmp_path_factory.mktemp("servers")) as made:
        yield made


@pytest.fixture
def fleet(quiver, root, tmp_path, pair):
    made = Fleet(quiver, root / "build" / "test-plugins", tmp_path, OnRedis(tmp_path, *pair))
    yield made
    made.close()


def test_other_clients_can_read_who_is_there(fleet):
    fleet.start("a", "b")
    fleet.wait_even()
    client, prefix = fleet.backing.client, "quiver:{test:coord}:"
    members = client.smembers(f"{prefix}children:members")
    assert members == {f"{m.name}.{m.nonce}" for m in fleet.living()}
    sessions = client.zrange(f"{prefix}sessions", 0, -1)
    assert {client.hget(f"{prefix}node:members/{member}", "owner") for member in members} == set(sessions)
    assert fleet.members["b"].stop() == 0
    assert len(client.smembers(f"{prefix}children:members")) == 1
