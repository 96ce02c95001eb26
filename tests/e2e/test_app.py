"""What all hosts of an app agree on: features, max_members, the coordination."""
import json
import re
import shlex
import sqlite3
import subprocess

import pytest

from fleet import Backing, Fleet
from hosts import wait_until


@pytest.fixture
def fleet(quiver, root, tmp_path):
    made = Fleet(quiver, root / "build" / "test-plugins", tmp_path, Backing(tmp_path))
    yield made
    made.close()


@pytest.fixture
def lacking(root):
    """A build that does not know the feature `schedules` (tests/lacking)."""
    return root / "build" / "tests" / "quiver-lacking"


def features(member):
    return {f["name"]: f["on"] for f in json.loads(member.cli("app", "show", "--json"))["features"]}


def refused(member, *words):
    done = subprocess.run([member.quiver, *words, "-c", member.config], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stderr


def test_hosts_of_two_builds_run_side_by_side_until_a_feature_is_switched_on(fleet, lacking):
    old = fleet.add("old")
    old.quiver = lacking
    old.start()
    (new,) = fleet.start("new")
    fleet.wait_even()
    assert features(new)["schedules"] is False and features(new)["limits"] is True
    for words in (["schedules"], ["--all"], ["--all", "--dry-run"]):
        said = refused(new, "app", "upgrade", *words)
        assert "host old does not know schedules" in said and "host new" not in said
    assert features(new)["schedules"] is False
    assert old.stop() == 0
    assert "schedules would be switched on" in new.cli("app", "upgrade", "--all", "--dry-run")
    assert features(new)["schedules"] is False
    assert "schedules is on" in new.cli("app", "upgrade", "schedules")
    assert features(new)["schedules"] is True
    assert "nothing to do" in new.cli("app", "upgrade", "--all")
    old.start(is_ready=False)
    assert old.wait() != 0
    assert 'feature "schedules"' in old.log().replace("\\", "") and "run a newer one" in old.log()
    assert new.process.poll() is None


def test_a_feature_that_is_switched_on_behind_a_hosts_back_stops_it(fleet, lacking):
    old = fleet.add("old")
    old.quiver = lacking
    old.start()
    fleet.wait_even()
    with sqlite3.connect(fleet.folder / "q.db", timeout=30) as db:
        db.execute("UPDATE meta SET value = value || ' schedules' WHERE name = 'features'")
        db.execute("INSERT INTO meta VALUES('desired_version', 1) ON CONFLICT DO UPDATE SET value = value + 1")
    assert old.wait() != 0
    assert "event=feature-missing" in old.log() and not fleet.backing.owners()


def test_the_apps_max_members_decides_and_a_file_that_differs_is_told(fleet):
    def limited(number):
        return lambda text: text.replace("coordination = {", f"coordination = {{ max_members = {number};")

    first = fleet.add("first", change=limited(1)).start()
    second = fleet.add("second", change=limited(2)).start()
    wait_until(lambda: fleet.counts()["first"] == fleet.shards, "the first has all of it")
    assert "event=max-members" in second.log() and "file=2 app=1" in second.log()
    assert "event=max-members" not in first.log()
    assert json.loads(first.cli("app", "set", "max_members=2", "--json"))["max_members"] == 2
    fleet.wait_even()
    assert "0 (no limit) to 1000" in refused(first, "app", "set", "max_members=1001")
    assert "can be set" in refused(first, "app", "set", "shards=3")


def test_another_coordination_is_refused_with_the_command_that_moves_the_app_there(fleet):
    (here,) = fleet.start("here")
    fleet.wait_even()
    backing = fleet.backing
    elsewhere = fleet.add("elsewhere", change=lambda text: text.replace(backing.url, backing.elsewhere))
    elsewhere.start(is_ready=False)
    assert elsewhere.wait() != 0
    command = re.search(r"quiver (app set 'coordination=[^']+')", elsewhere.log()).group(1)
    words = shlex.split(command)
    assert "stop all hosts" in refused(here, *words)
    assert here.stop() == 0
    here.cli(*words)
    elsewhere.start()
    wait_until(lambda: fleet.counts()["elsewhere"] == fleet.shards, "it owns everything")
