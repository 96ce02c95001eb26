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
def build_without(root, tmp_path):
    """Makes the program of a build that does not know a feature, or "all" of them (tests/lacking)."""
    def make(name):
        program = tmp_path / f"quiver-without-{name}"
        binary = root / "build" / "tests" / "quiver-lacking"
        program.write_text(f"#!/bin/sh\nQUIVER_LACKS={name} exec '{binary}' \"$@\"\n")
        program.chmod(0o755)
        return program

    return make


@pytest.fixture
def two_builds(fleet, build_without):
    """A host of this build, and for each feature one that knows all but that; the app has none of them on."""
    new = fleet.add("new")
    new.quiver = build_without("all")
    new.start()
    assert features(new) == {}
    assert new.stop() == 0
    new.quiver = fleet.quiver
    new.start()
    old = {name: fleet.add(f"no-{name}") for name in features(new)}
    for name, member in old.items():
        member.quiver = build_without(name)
        member.start(is_ready=False)
    for member in old.values():
        member.wait_for_log("event=running")
    fleet.wait_even()
    assert set(features(new).values()) == {False}
    return new, old


def features(member):
    return {f["name"]: f["on"] for f in json.loads(member.cli("app", "show", "--json"))["features"]}


def refused(member, *words):
    done = subprocess.run([member.quiver, *words, "-c", member.config], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stderr


def test_hosts_of_two_builds_run_side_by_side_until_a_feature_is_switched_on(fleet, two_builds):
    new, old = two_builds
    new.submit([{"handler": "work", "key": f"k{i}", "payload": str(i)} for i in range(40)])
    new.wait_done(40)
    everybody = "".join(f"host no-{name} does not know {name}\n" for name in sorted(old))
    for words in (["--all"], ["--all", "--dry-run"]):
        lines = refused(new, "app", "upgrade", *words).splitlines(keepends=True)
        assert "".join(sorted(lines[1:])) == everybody
    for name, member in old.items():
        said = refused(new, "app", "upgrade", name)
        assert said.splitlines()[1:] == [f"host no-{name} does not know {name}"]
        assert features(new)[name] is False
        assert member.stop() == 0
        assert f"{name} would be switched on" in new.cli("app", "upgrade", name, "--dry-run")
        assert features(new)[name] is False
        assert f"{name} is on" in new.cli("app", "upgrade", name)
        assert features(new)[name] is True
        member.start(is_ready=False)
    for name, member in old.items():
        assert member.wait() != 0
        said = member.log().replace("\\", "")
        assert f'feature "{name}"' in said and "run a newer one" in said and said.count('feature "') == 1
    assert "nothing to do" in new.cli("app", "upgrade", "--all")
    assert new.process.poll() is None


def test_a_feature_that_is_switched_on_behind_a_hosts_back_stops_it(fleet, two_builds):
    new, old = two_builds
    for name in list(old):
        member = old.pop(name)
        with sqlite3.connect(fleet.folder / "q.db", timeout=30) as db:
            db.execute("UPDATE meta SET value = trim(value || ' ' || ?) WHERE name = 'features'", [name])
            db.execute("INSERT INTO meta VALUES('desired_version', 1) ON CONFLICT DO UPDATE SET value = value + 1")
        assert member.wait() != 0
        assert "event=feature-missing" in member.log() and f"feature={name}" in member.log()
        assert fleet.living() == [new, *old.values()]
    wait_until(lambda: fleet.counts() == {"new": fleet.shards}, "the host that knows them all has every shard")


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
