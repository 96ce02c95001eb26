"""Hosts of one app in a temporary folder: what the demo runs on."""
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
QUIVER = os.environ.get("QUIVER", str(ROOT / "build" / "quiver"))

# The embedded defaults: an SQLite store, local coordination.  Hosts differ only in their name.
CONFIG = r"""
app = "demo"; shards = {shards};
state = "{folder}/state"; plugins = "{root}/plugins";
store = {{ url = "sqlite:{folder}/quiver.db"; }};
host = {{ name = "{name}"; }};
handlers = {{
  sql = {{ plugin = "sql.so"; threads = 2; batch = {{ max = 32; wait = "2ms"; }};
          config = {{ url = "sqlite:{folder}/app.db"; tables = ( {{ name = "record"; columns = ["step", "text"]; }} ); }}; }};
  // Fails at its first two attempts; then it writes down that it was here.
  flaky = {{ plugin = "exec.so"; threads = 4; retry = {{ attempts = 4; backoff = "300ms"; factor = 2.0; }};
            config = {{ shell = "[ $QUIVER_ATTEMPT -ge 3 ] || exit 75; read -r n; echo $QUIVER_KEY $n >> '{folder}/ledger'"; }}; }};
  // One of its tasks kills it.
  crash = {{ plugin = "exec.so"; threads = 2; crashes = 2;
            config = {{ shell = "read -r word; [ $word != boom ] || kill -SEGV $$"; }}; }};
}};
"""

# Every change of a record leaves a line in the journal, so that its order can be judged and not only its end.
DDL = """
PRAGMA journal_mode = WAL;
CREATE TABLE record (id text PRIMARY KEY, step integer NOT NULL, text text,
        is_deleted boolean NOT NULL DEFAULT false, fence_epoch bigint NOT NULL DEFAULT 0,
        fence_start bigint NOT NULL DEFAULT 0, fence_task text NOT NULL DEFAULT '');
CREATE TABLE journal (number integer PRIMARY KEY, id text, step integer, is_deleted boolean, task text);
CREATE TRIGGER inserted AFTER INSERT ON record BEGIN
        INSERT INTO journal (id, step, is_deleted, task) VALUES (new.id, new.step, new.is_deleted, new.fence_task); END;
CREATE TRIGGER updated AFTER UPDATE ON record BEGIN
        INSERT INTO journal (id, step, is_deleted, task) VALUES (new.id, new.step, new.is_deleted, new.fence_task); END;
"""


class Fleet:
    """`with Fleet() as fleet: fleet.start_host("a")`.  Nothing is left afterwards: no process, no file."""

    shards = 16

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="quiver-demo-"))
        self.hosts = {}  # name → process; of a host that was killed too, until it is started again
        self.config = None  # any host's will do to submit and to look

    def __enter__(self):
        with self.database() as db:
            db.executescript(DDL)
        return self

    def __exit__(self, *_):
        for process in self.hosts.values():
            if process.poll() is None:
                process.terminate()
        for process in self.hosts.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder)

    def database(self):
        """The application's."""
        return sqlite3.connect(self.folder / "app.db", timeout=30)

    def start_host(self, name):
        """Starts it, or starts it again, and waits until it runs."""
        self.config = self.folder / f"{name}.cfg"
        self.config.write_text(CONFIG.format(folder=self.folder, root=ROOT, name=name, shards=self.shards))
        log = self.folder / f"{name}.log"
        with open(log, "wb") as out:
            process = subprocess.Popen([QUIVER, "run", "-c", self.config], stdout=out, stderr=out)
        self.hosts[name] = process
        end = time.monotonic() + 30
        while b"event=running" not in log.read_bytes():
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"host {name} does not run:\n{self.last_words(name)}")
            time.sleep(0.02)

    def kill_host(self, name):
        """kill -9."""
        self.hosts[name].send_signal(signal.SIGKILL)
        self.hosts[name].wait()

    def shards_of(self, name):
        """Those that it holds, as the store says."""
        nonce = re.search(r"event=running .*nonce=(\w+)", (self.folder / f"{name}.log").read_text()).group(1)
        with sqlite3.connect(f"file:{self.folder}/quiver.db?mode=ro", uri=True, timeout=30) as db:
            rows = db.execute("SELECT shard FROM shard WHERE held AND until > 0 AND lower(hex(holder)) = ?", (nonce,))
            return [row[0] for row in rows]

    def await_shares(self):
        """Until each host has its part."""
        end = time.monotonic() + 30
        while any(len(self.shards_of(name)) != self.shards // len(self.hosts) for name in self.hosts):
            if time.monotonic() > end:
                raise RuntimeError("the shards do not settle")
            time.sleep(0.02)

    def last_words(self, name, lines=20):
        return "\n".join((self.folder / f"{name}.log").read_text(errors="replace").splitlines()[-lines:])

    def cli(self, *words, text=None):
        done = subprocess.run([QUIVER, *words, "-c", str(self.config)], input=text, capture_output=True, text=True,
                              timeout=60)
        if done.returncode != 0:
            raise RuntimeError(f"quiver {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def submit(self, tasks):
        self.cli("submit", "--json-lines", text="".join(json.dumps(task) + "\n" for task in tasks))

    def totals(self):
        """queued, in_flight, parked, dead, submitted, done, …"""
        return json.loads(self.cli("status", "--json"))["totals"]

    def dead(self):
        return [json.loads(line) for line in self.cli("dead", "list", "--json").splitlines()]
