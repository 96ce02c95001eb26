"""What a newcomer gets wrong, and that the answer says what to do about it."""
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

SETTINGS = """
app = "test"; shards = 4; state = "{state}"; plugins = "{plugins}";
store = {{ url = "sqlite:{store}"; }};
handlers = {{ work = {{ plugin = "ledger.so"; config = {{ path = "/dev/null"; }}; }}; }};
"""
NOBODY = 65534


def says(quiver, folder, *words, user=None):
    done = subprocess.run([quiver, *map(str, words)], cwd=folder, capture_output=True, text=True, timeout=120, user=user,
                          extra_groups=[] if user else None,
                          env={name: value for name, value in os.environ.items() if name != "QUIVER_CONFIG"})
    assert done.returncode != 0, done.stdout + done.stderr
    return done.stderr


def test_without_settings_it_says_how_to_get_some(quiver, tmp_path):
    if pathlib.Path("/etc/quiver/runtime.cfg").exists():
        pytest.skip("this machine has settings")
    for command in (["run"], ["submit", "echo", "hi"], ["status"], ["doctor"]):
        assert "quiver init FOLDER" in says(quiver, tmp_path, *command)


def test_a_folder_that_is_not_there_is_named_with_its_setting(quiver, root, tmp_path):
    def configure(**more):
        paths = {"state": tmp_path / "state", "plugins": root / "build" / "test-plugins", "store": tmp_path / "q.db", **more}
        (tmp_path / "runtime.cfg").write_text(SETTINGS.format(**paths))
        return tmp_path / "runtime.cfg"

    said = says(quiver, tmp_path, "run", "-c", configure(store=tmp_path / "no" / "q.db"))
    assert f"store folder {tmp_path}/no: No such file or directory; make it, or change store.url" in said
    said = says(quiver, tmp_path, "run", "-c", configure(state=tmp_path / "no" / "state"))
    assert f"state folder {tmp_path}/no/state: No such file or directory; make the folder above it" in said


def test_another_user_is_told_whose_it_is_and_not_that_there_is_none(host, root):
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    with tempfile.TemporaryDirectory(prefix="quiver-newcomer-") as made:
        folder = pathlib.Path(made)
        folder.chmod(0o755)
        quiver = folder / "quiver"
        shutil.copy2(host.quiver, quiver)
        plugins = folder / "plugins"
        plugins.mkdir()
        shutil.copy2(root / "build" / "test-plugins" / "ledger.so", plugins)
        config = folder / "runtime.cfg"
        config.write_text(SETTINGS.format(state=folder / "state", plugins=plugins, store=folder / "state" / "q.db"))
        config.chmod(0o644)
        host.config = config
        host.start()
        try:
            for mode in (0o700, 0o755):  # whether the file can be seen or not
                (folder / "state").chmod(mode)
                for command in (["submit", "work", "hi"], ["status"], ["doctor", "--all"]):
                    said = subprocess.run([quiver, *command, "-c", config], cwd="/", capture_output=True, text=True,
                                          timeout=120, user=NOBODY, extra_groups=[])
                    assert said.returncode == 3, (command, said)
                    assert "as the user of its hosts, or as root" in said.stdout + said.stderr, (command, said)
                    assert "there is no store" not in said.stdout + said.stderr
            (folder / "state").chmod(0o755)
            assert "start the host as the user that it belongs to" in says(quiver, "/", "run", "--name", "b", "-c", config,
                                                                           user=NOBODY)
        finally:
            (folder / "state").chmod(0o700)
            host.close()


def test_a_library_that_is_not_installed_is_said_once_with_what_to_do(root):
    words = ["make", "-s", "have-libraries"]
    assert subprocess.run(words, cwd=root, capture_output=True, text=True).returncode == 0
    said = subprocess.run([*words, "HEADERS=errno.h quiver-is-not-there.h"], cwd=root, capture_output=True, text=True)
    assert said.returncode != 0 and said.stderr.count("make build:") == 1
    assert "<quiver-is-not-there.h> is not installed; as root: make deps" in said.stderr
