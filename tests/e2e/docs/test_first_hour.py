"""What a newcomer types first: a folder of one's own, a handler in any language, and its line in the settings."""
import json
import os
import shutil
import signal
import subprocess

import pytest

from hosts import wait_until


@pytest.fixture
def typed(quiver, tmp_path):
    """Runs a command in a folder, without a configuration from elsewhere; returns what it printed, on standard error
    alone if `is_error`."""
    env = {name: value for name, value in os.environ.items() if name != "QUIVER_CONFIG"}
    env["PATH"] = f"{quiver.parent}:{env['PATH']}"

    def run(*words, cwd=tmp_path, code=0, is_error=False):
        done = subprocess.run(list(map(str, words)), cwd=cwd, env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stderr if is_error or code else done.stdout

    return run


@pytest.fixture
def folder(typed, tmp_path):
    """What quiver init makes, and a host that can be started in it."""
    typed("quiver", "init", "jobs")
    return tmp_path / "jobs"


@pytest.fixture
def running(quiver, folder):
    with open(folder / "log", "wb") as log:
        host = subprocess.Popen([quiver, "run", "--set", "http.listen=127.0.0.1:0"], cwd=folder, stdout=log, stderr=log)
    wait_until(lambda: host.poll() is not None or "event=running" in (folder / "log").read_text(), "it runs")
    assert host.poll() is None, (folder / "log").read_text()
    yield folder
    host.send_signal(signal.SIGTERM)
    assert host.wait(60) == 0


def test_init_makes_a_folder_that_runs(typed, running):
    assert typed("quiver", "submit", "echo", "--wait", "world", cwd=running) == "hello, world"
    assert "made before" in typed("quiver", "init", cwd=running, code=1)
    assert (running / "var").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("language", ["python", "node", "ruby", "shell"])
def test_a_worker_in_any_language_is_made_tried_and_served(typed, running, language):
    program = {"python": "python3", "shell": "sh"}.get(language, language)
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed here")
    said = typed("quiver", "new", "words", f"--{language}", "--add", cwd=running)
    assert "+   words = { plugin = " in said
    assert "3" in typed("make", "-s", "-C", "words", "try", "PAYLOAD=one two three", cwd=running)
    typed("quiver", "reload", cwd=running)
    assert typed("quiver", "submit", "words", "--wait", "one two three four", cwd=running) == "4"
    assert "no words" in typed("quiver", "submit", "words", "--wait", " ", cwd=running, code=1)


def test_handler_add_changes_one_line_and_refuses_what_would_be_wrong(typed, folder):
    settings = folder / "etc" / "runtime.cfg"
    before = settings.read_text()
    settings.chmod(0o640)
    assert "nothing was changed" in typed("quiver", "handler", "add", "more", "echo.so", "--dry-run", cwd=folder)
    assert settings.read_text() == before
    said = typed("quiver", "handler", "add", "more", "echo.so", cwd=folder)
    after = settings.read_text()
    assert '+   more = { plugin = "echo.so"; };' in said and settings.stat().st_mode & 0o777 == 0o640
    added = [line for line in after.splitlines() if line not in before.splitlines()]
    assert [line.strip() for line in added] == ['more = { plugin = "echo.so"; };']
    assert len(after.splitlines()) == len(before.splitlines()) + 1
    assert "a handler more already" in typed("quiver", "handler", "add", "more", "echo.so", cwd=folder, code=1)
    assert "nothing was changed" in typed("quiver", "handler", "add", "9lives", "echo.so", cwd=folder, code=1)
    assert "is not there yet" in typed("quiver", "handler", "add", "soon", "soon.so", cwd=folder, is_error=True)
    typed("quiver", "check", "--config-only", cwd=folder)
    assert not list((folder / "etc").glob("*.new"))


def test_a_reload_says_what_may_have_been_overlooked(typed, running, root):
    """A plugin that was dropped and not named; a handler that was removed while its tasks wait."""
    settings = running / "etc" / "runtime.cfg"
    before = settings.read_text()
    typed("quiver", "handler", "add", "more", "echo.so", cwd=running)
    typed("quiver", "reload", cwd=running)
    typed("quiver", "pause", "more", cwd=running)
    for _ in range(3):
        typed("quiver", "submit", "more", "x", cwd=running)
    settings.write_text(before)
    shutil.copy(running / "plugins" / "echo.so", running / "plugins" / "dropped.so")
    stock = [f"{folder.name}.so" for folder in (root / "plugins").iterdir() if folder.is_dir() and folder.name != "common"]
    for name in stock:
        shutil.copy(root / "plugins" / name, running / "plugins" / name)
    said = typed("quiver", "reload", cwd=running, is_error=True)
    assert "quiver handler add dropped dropped.so" in said
    assert "more is removed, and 3 of its tasks wait" in said
    assert [name for name in stock if f"{name}: no handler" in said] == []


def test_a_handler_that_was_added_is_at_once_one_that_is_served(typed, running):
    """Nobody who reloads and then looks is told that no host serves it."""
    def status():
        return json.loads(typed("quiver", "status", "--json", cwd=running))

    for name in ("first", "second", "third"):
        typed("quiver", "submit", name, "x", cwd=running)
        wait_until(lambda: name in status()["members"][0].get("unserved", []), "the host says that it does not serve it")
        typed("quiver", "handler", "add", name, "echo.so", cwd=running)
        said = typed("quiver", "reload", "--wait", cwd=running)
        after = status()
        assert {h["name"]: h["state"] for h in after["handlers"]}.get(name) in ("open", "starting"), after
        assert "unserved" not in after["members"][0]
        assert f"waiting for {name} to be ready" in said and f"{name:24} generation 1, version 1.0: good" in said
