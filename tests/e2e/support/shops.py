"""What the tests of the commands on a store share: a store, and a small helper (owner.c) that plays the host."""
import json
import os
import subprocess

import pytest

CONFIG = """
app = "demo"; shards = 8;
store = { url = "sqlite:q.db"; synchronous = "normal"; max_payload = "64KiB"; max_backlog = 100000; };
coordination = { url = "local:var"; };
handlers = { mail = { plugin = "mail.so"; }; echo = { plugin = "echo.so"; }; };
"""
COMMANDS = ["submit", "status", "task", "dead", "key", "pause", "resume", "results", "take", "fsck", "envelope"]


@pytest.fixture(scope="session")
def owner_program(root, quiver):
    """Built with the same sanitizer as the binary under test."""
    path = quiver.parent / "tests/e2e/support/owner"
    san = [f"SAN={quiver.parent.name}"] if quiver.parent.name in ("asan", "tsan") else []
    subprocess.run(["make", "-s", *san, path.relative_to(root)], cwd=root, check=True, timeout=600)
    return path


class Shop:
    """A folder with a configuration, a store in it, and somebody who plays the host."""

    def __init__(self, quiver, owner, folder):
        self.quiver, self.owner, self.folder = quiver, owner, folder
        self.env = {**os.environ, "QUIVER_CONFIG": str(folder / "runtime.cfg")}
        (folder / "runtime.cfg").write_text(CONFIG)

    def run(self, *words, stdin=b"", code=0):
        done = subprocess.run([self.quiver, *map(str, words)], input=stdin, cwd=self.folder, env=self.env,
                              capture_output=True, timeout=120)
        assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
        return done

    def out(self, *words, **options):
        return self.run(*words, **options).stdout.decode().strip()

    def err(self, *words, **options):
        return self.run(*words, **options).stderr.decode()

    def json(self, *words, **options):
        return json.loads(self.out(*words, "--json", **options))

    def lines(self, *words, **options):
        return [json.loads(line) for line in self.out(*words, "--json", **options).splitlines()]

    def host(self, *words):
        done = subprocess.run([self.owner, f"sqlite:{self.folder}/q.db", "demo", "8", *words], check=True,
                              capture_output=True, timeout=120)
        return done.stdout.decode(errors="replace").splitlines()

    def totals(self):
        return self.json("status")["totals"]


@pytest.fixture
def bare(quiver, owner_program, tmp_path):
    """No store yet."""
    return Shop(quiver, owner_program, tmp_path)


@pytest.fixture
def shop(bare):
    bare.host("create")
    return bare
