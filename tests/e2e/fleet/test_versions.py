"""Hosts of different versions share an app: whoever finds what only a newer one understands stands by, and says so."""
import pytest
from kazoo.client import KazooClient

from backings import OnZooKeeper, servers
from fleet import Fleet
from hosts import wait_until


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    with servers(OnZooKeeper, tmp_path_factory.mktemp("servers")) as made:
        yield made


@pytest.fixture
def fleet(quiver, root, tmp_path, pair):
    made = Fleet(quiver, root / "build" / "test-plugins", tmp_path, OnZooKeeper(tmp_path, *pair))
    yield made
    made.close()


@pytest.fixture
def tree(fleet):
    """The app's part of the tree, as another client sees it."""
    server = fleet.backing.authority
    with server.client() as maker:
        maker.ensure_path(f"/{fleet.backing.root}/test/members")
    client = KazooClient(f"127.0.0.1:{server.port}/{fleet.backing.root}/test")
    client.start(10)
    yield client
    client.stop()


def test_an_assignment_of_a_newer_version_makes_hosts_stand_by(fleet, tree):
    (a,) = fleet.start("a")
    fleet.wait_even()
    tree.set("/assign", b"quiver-assign 99\nsomething new\n")
    a.wait_for_log("event=standing-by")
    wait_until(lambda: not fleet.backing.owners(), "it gives up its shards")
    assert "99" in a.log()
    # The newer one is gone again.
    tree.delete("/assign")
    fleet.wait_even()
    assert a.process.poll() is None


def test_a_member_of_a_newer_version_is_left_alone(fleet, tree):
    tree.create("/members/new.00", b"quiver-member 99\nshape round\n", ephemeral=True)
    (a,) = fleet.start("a")
    assert fleet.wait_even() == {"a": 20}
    a.wait_for_log("new.00")
    shown = a.cli("members")
    assert "foreign" in shown and "99" in shown


def test_what_is_no_assignment_is_replaced(fleet, tree):
    fleet.start("a")
    fleet.wait_even()
    before = fleet.backing.epochs()
    tree.set("/assign", b"\x00\xff rubbish")
    wait_until(lambda: tree.get("/assign")[0].startswith(b"quiver-assign 1\n"), "a new document")
    fleet.start("b")
    fleet.wait_even()
    assert all(fleet.backing.epochs()[shard] >= epoch for shard, epoch in before.items())
