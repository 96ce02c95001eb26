"""What holds for a fleet on a file and a folder holds with Redis as its store and etcd as its coordination."""
import pytest

from backings import OnEtcd, servers
from etcds import decoded
from fleet import Fleet
from hosts import wait_until
from test_fleet import *  # the same tests, with this file's fleet
from test_fleet_zookeeper import test_a_server_more_in_the_list_is_the_same_coordination  # noqa: F401


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    with servers(OnEtcd, tmp_path_factory.mktemp("servers")) as made:
        yield made


@pytest.fixture
def fleet(quiver, root, tmp_path, pair):
    made = Fleet(quiver, root / "build" / "test-plugins", tmp_path, OnEtcd(tmp_path, *pair))
    yield made
    made.close()


def test_other_clients_can_read_who_is_there(fleet):
    fleet.start("a", "b")
    fleet.wait_even()
    prefix = f"/{fleet.backing.root}/test/node/2/members/"

    def members():
        return {decoded(kv).decode()[len(prefix):]: kv for kv in fleet.backing.authority.kvs(prefix)}

    assert sorted(members()) == sorted(f"{m.name}.{m.nonce}" for m in fleet.living())
    assert all(int(kv["lease"]) for kv in members().values())
    assign, = fleet.backing.authority.kvs(f"/{fleet.backing.root}/test/node/1/assign")
    assert "lease" not in assign
    assert fleet.members["b"].stop() == 0
    wait_until(lambda: len(members()) == 1, "the member that stopped is gone")
