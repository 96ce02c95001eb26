"""The release before this one, out of git's history: tests/previous-release names it."""
import fcntl
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]


class Release:
    """A built tree of another release."""

    def __init__(self, version, folder):
        self.version, self.folder = version, folder
        self.quiver = folder / "build" / "quiver"
        self.plugins = folder / "build" / "test-plugins"


def named():
    lines = (ROOT / "tests" / "previous-release").read_text().splitlines()
    return next(line.split() for line in lines if line and not line.startswith("#"))


def build(commit, folder):
    folder.mkdir(parents=True, exist_ok=True)
    archive = subprocess.run(["git", "-C", ROOT, "archive", commit], check=True, capture_output=True).stdout
    subprocess.run(["tar", "-C", folder, "-xf", "-"], input=archive, check=True)
    clean = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "QUIVER")}
    wanted = ["build", "build/test-plugins/ledger.so", "build/test-plugins/ledger-two.so"]
    done = subprocess.run(["make", "--no-print-directory", f"-j{os.cpu_count()}", *wanted], cwd=folder, env=clean,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


def previous_release():
    """Built once, below build/; skips where it cannot be."""
    version, commit = named()
    folder = ROOT / "build" / "previous" / commit[:12]
    is_built = folder / "is-built"
    if not is_built.exists():
        if not os.environ.get("QUIVER_TEST_LONG"):
            pytest.skip("the previous release is built by the long run")
        if subprocess.run(["git", "-C", ROOT, "cat-file", "-e", commit], capture_output=True).returncode != 0:
            pytest.skip(f"there is no history here that has {version}, {commit}")
        folder.parent.mkdir(parents=True, exist_ok=True)
        with open(folder.parent / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not is_built.exists():
                build(commit, folder)
                is_built.touch()
    return Release(version, folder)
