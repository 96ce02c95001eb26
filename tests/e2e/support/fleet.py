"""Several hosts on one store, and who owns what according to the store itself."""
import collections
import os
import re
import signal
import sqlite3
import subprocess

from hosts import Host, wait_until

CONFIG = """
app = "test";
shards = {shards};
state = "{folder}/state-{name}";
plugins = "{plugins}";
host = {{ name = "{host}"; weight = {weight}; }};
store = {{ {store} }};
coordination = {{ even_load = false; {coordination} }};
lease = {{ ttl = "1s"; drain = "{drain}"; }};
log = {{ level = "debug"; }};
handlers = {{
  work = {{ plugin = "ledger.so"; grace = "300ms"; config = {{ path = "{folder}/ledger"; }};
    retry = {{ attempts = 4; backoff = "20ms"; max = "100ms"; }};
    {more} }};
}};
"""


class Backing:
    """Where the tasks and the agreements of a fleet are: one file and one folder."""

    name = "sqlite+local"

    def __init__(self, folder):
        self.folder = folder
        self.store = f'url = "sqlite:{folder}/q.db"; synchronous = "normal";'
        self.url = f"local:{folder}/coordination"
        self.elsewhere = f"local:{folder}/elsewhere"  # where the others are not
        self.coordination = f'url = "{self.url}"; session = "1s";'

    def _query(self, words):
        with sqlite3.connect(f"file:{self.folder}/q.db?mode=ro", uri=True, timeout=30) as db:
            return db.execute(words).fetchall()

    def owners(self):
        """Who holds each shard, now: the nonce in hex; those that nobody holds are missing."""
        rows = self._query("SELECT shard, hex(holder) FROM shard WHERE held AND until > 0")
        return {shard: nonce.lower() for shard, nonce in rows}

    def epochs(self):
        return dict(self._query("SELECT shard, epoch FROM shard"))

    def sum(self, what):
        return self._query(f"SELECT total({what}) FROM shard")[0][0]

    def dead(self):
        return self._query("SELECT count(*) FROM dead")[0][0]

    def close(self):
        pass


class Member(Host):
    """One host of a fleet."""

    def __init__(self, fleet, name):
        super().__init__(fleet.quiver, fleet.plugins, fleet.folder)
        self.fleet, self.name = fleet, name
        self.config = fleet.folder / f"{name}.cfg"

    def start(self, *, is_ready=True):
        self.logs.append(self.folder / f"log-{self.name}-{len(self.logs)}")
        with open(self.logs[-1], "wb") as log:
            self.process = subprocess.Popen([self.quiver, "run", "-c", self.config], stderr=log, stdout=log)
        if is_ready:
            self.wait_for_log("event=running")
        return self

    @property
    def nonce(self):
        return re.search(r"event=running .*nonce=([0-9a-f]{32})", self.log()).group(1)

    def shards(self):
        return [shard for shard, nonce in self.fleet.backing.owners().items() if nonce == self.nonce]

    def children(self):
        """Its processes: {pid: command line}."""
        found = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/stat") as stat:
                    parent = int(stat.read().rpartition(")")[2].split()[1])
                with open(f"/proc/{pid}/cmdline") as line:
                    words = line.read().replace("\0", " ")
            except OSError:
                continue
            if parent == self.process.pid and words:
                found[int(pid)] = words
        return found

    def guard(self):
        return next((pid for pid, words in self.children().items() if "quiver: guard" in words), None)

    def runners(self):
        return [pid for pid, words in self.children().items() if " runner " in words]

    def kill_all(self):
        """The host, its guard and its runners, as a service manager kills what is left of a service (KillMode=mixed).
        They are stopped first, so that none of them does anything about another's death."""
        everybody = [self.process.pid, *self.children()]
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in everybody:
                os.kill(pid, number)
        self.wait()

    def leads(self):
        log = self.log()
        return log.rfind("event=leading") > log.rfind("event=not-leading")

    def count(self, event):
        return sum(log.read_text(errors="replace").count(f"event={event}") for log in self.logs)


class Fleet:
    """Hosts by name.  All share a store, a coordination and a ledger.  No shard moves for its load: a test that compares owners
    would see it."""

    def __init__(self, quiver, plugins, folder, backing):
        self.quiver, self.plugins, self.folder, self.backing = quiver, plugins, folder, backing
        self.members = collections.OrderedDict()
        self.loads = []  # whoever submits; ended with us
        self.shards = 20

    def add(self, name, host=None, weight=1, drain="20s", more="", shards=None, change=lambda text: text):
        """A host of that name (`host`: as it calls itself), configured and not started."""
        member = Member(self, name)
        member.config.write_text(change(CONFIG.format(
            shards=shards or self.shards, folder=self.folder, name=name, host=host or name, weight=weight, drain=drain,
            plugins=self.plugins, store=self.backing.store, coordination=self.backing.coordination, more=more)))
        self.members[name] = member
        return member

    def start(self, *names, **settings):
        for name in names:
            (self.members.get(name) or self.add(name, **settings)).start()
        return [self.members[name] for name in names]

    def living(self):
        return [m for m in self.members.values() if m.process and m.process.poll() is None]

    def counts(self):
        """How many shards each living host holds."""
        owners = collections.Counter(self.backing.owners().values())
        return {m.name: owners[m.nonce] for m in self.living()}

    def wait_even(self, seconds=60):
        """Until all shards are owned by living hosts, and equally."""
        def is_even():
            counts = self.counts()
            return sum(counts.values()) == self.shards and max(counts.values()) - min(counts.values()) <= 1 and counts

        return wait_until(is_even, f"even shares (now {self.counts()})", seconds)

    def all_owners(self):
        """Who holds each shard, once every one is held."""
        def look():
            owners = self.backing.owners()
            return owners if len(owners) == self.shards else None

        return wait_until(look, "every shard has an owner")

    def leader(self):
        return wait_until(lambda: next((m for m in self.living() if m.leads()), None), "somebody leads")

    def any(self):
        return self.living()[0]

    def close(self):
        for load in self.loads:
            load.finish()
        for member in self.members.values():
            if member.process and member.process.poll() is None:
                member.process.send_signal(signal.SIGCONT)
            member.close()
        self.backing.close()
