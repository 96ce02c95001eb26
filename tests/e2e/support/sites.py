"""A host whose plugins are replaced while it runs: what the tests of reload share."""
import collections
import json
import shutil
import signal
import socket

import pytest

from hosts import Host, wait_until


class Site(Host):
    """A host with a plugin folder of its own, into which versions are installed."""

    def __init__(self, quiver, built, folder):
        self.built = built
        plugins = folder / "plugins"
        plugins.mkdir()
        super().__init__(quiver, plugins, folder)
        self.install("ledger.so")

    def install(self, version, name="ledger.so"):
        """As one should: whole, and then by rename."""
        new = self.plugins / f".{name}.new"
        shutil.copy(self.built / version, new)
        new.rename(self.plugins / name)

    def hang_up(self):
        self.signal(signal.SIGHUP)

    def reload(self, *options, code=0):
        """What `quiver reload` says."""
        return json.loads(self.cli("reload", "--json", *options, code=code))

    def actions(self, *options, code=0):
        """… would do or does to each handler."""
        return {h["handler"]: h["action"] for h in self.reload(*options, code=code)["handlers"]}

    def outcomes(self, code=0):
        """… how each new generation fared."""
        return [(e["handler"], e["generation"], e["outcome"]) for e in self.reload("--wait", code=code)["outcomes"]]

    def count(self, text):
        return self.log().count(text)

    def wait_count(self, text, count):
        wait_until(lambda: self.count(text) >= count, f"{text} {count} times")

    def runners(self):
        """The pids of runners, by their handler's name."""
        found = {}
        for pid in open(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read().split():
            try:
                name = open(f"/proc/{pid}/comm").read().strip()
            except OSError:
                continue
            if name.startswith("qv:"):
                found.setdefault(name.removeprefix("qv:"), set()).add(int(pid))
        return found

    def guard(self):
        """Its pid; None while there is none."""
        for pid in open(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read().split():
            try:
                words = open(f"/proc/{pid}/cmdline").read()
            except OSError:
                continue
            if words.startswith("quiver: guard"):
                return int(pid)
        return None

    def builds(self):
        """The builds of the tasks that were started, by their numbers."""
        return {e.number: e.build for e in self.ledger() if e.what == "start"}

    def history(self):
        return [(e["handler"], e["generation"], e["outcome"]) for e in self.ask("status")["reloads"]]

    def ask(self, verb):
        """A question on the control socket, without the command line."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(60)
            s.connect(str(next((self.folder / "state").glob("*.sock"))))
            s.sendall(json.dumps({"verb": verb}).encode() + b"\n")
            return json.loads(s.makefile().readline())


@pytest.fixture
def site(quiver, root, tmp_path):
    built = root / "build" / "test-plugins"
    assert (built / "ledger-two.so").exists(), "run make test-binaries first"
    made = Site(quiver, built, tmp_path)
    yield made
    made.close()


def task(key, number, words="", handler="work"):
    return {"handler": handler, "key": key, "payload": f"{number} {words}".strip()}


def by_key(tasks):
    expected = collections.defaultdict(list)
    for t in tasks:
        expected[t["key"]].append(int(t["payload"].split()[0]))
    return expected


def add(text):
    """A change of the configuration: more of it, before the handlers."""
    return lambda before: before.replace("handlers = {", text + "handlers = {", 1)
