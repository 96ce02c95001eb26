"""Running `quiver run` in the end-to-end tests, and reading what its handler wrote down."""
import collections
import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import time

Entry = collections.namedtuple("Entry", "what at_ns key id number attempt epoch start outcome checkpoint build")

CONFIG = """
app = "test";
shards = {shards};
state = "{folder}/state";
plugins = "{plugins}";
store = {{ url = "sqlite:{folder}/q.db"; synchronous = "normal"; }};
lease = {{ ttl = "1s"; drain = "20s"; }};
log = {{ level = "debug"; }};
handlers = {{
{handlers}
}};
"""

HANDLER = """
  {name} = {{ plugin = "ledger.so"; grace = "300ms"; config = {{ path = "{folder}/ledger"; }};
    retry = {{ attempts = 4; backoff = "20ms"; max = "100ms"; }};
    {more} }};
"""


def wait_until(condition, what, seconds=60):
    """Waits for what a test needs, with plenty of patience.  Returns what the condition said."""
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < end, f"this never happened: {what}"
        time.sleep(0.01)


def words_of(pid):
    return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")


def is_left_guard(pid, logs):
    try:
        if b"guard" not in words_of(pid)[1:2] or os.readlink(f"/proc/{pid}/fd/2") not in logs:
            return False
        parent = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
        return b"run" not in words_of(parent)[1:2]
    except OSError:
        return False  # it is gone, or somebody else's


class Host:
    """A folder with a configuration and a store, and the host that is started there, again and again if need be."""

    def __init__(self, quiver, plugins, folder):
        self.quiver, self.plugins, self.folder = quiver, plugins, folder
        self.config = folder / "runtime.cfg"
        self.process = None
        self.logs = []

    def configure(self, shards=8, change=lambda text: text, **handlers):
        """A handler per name; its value is more settings, as text."""
        texts = [HANDLER.format(name=name, folder=self.folder, more=more) for name, more in handlers.items()]
        text = CONFIG.format(shards=shards, folder=self.folder, plugins=self.plugins, handlers="".join(texts))
        self.config.write_text(change(text))
        return self

    def start(self, *options, is_ready=True):
        self.logs.append(self.folder / f"log-{len(self.logs)}")
        with open(self.logs[-1], "wb") as log:
            self.process = subprocess.Popen([self.quiver, "run", *options, "-c", self.config], stderr=log, stdout=log)
        if is_ready:
            self.wait_for_log("event=running")
        return self

    def log(self):
        return self.logs[-1].read_text(errors="replace")

    def wait_for_log(self, text):
        def is_there():
            assert self.process.poll() is None or text in self.log(), f"it ended:\n{self.log()}"
            return text in self.log()

        wait_until(is_there, f"{text} in the log")

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def wait(self, seconds=60):
        """The exit code."""
        return self.process.wait(seconds)

    def stop(self):
        self.signal()
        return self.wait()

    def kill(self):
        self.process.kill()
        return self.wait()

    def close(self):
        if self.process and self.process.poll() is None:
            self.kill()
        wait_until(lambda: not self.guards(), "the guards of killed hosts are done: the next test may use that store")

    def guards(self):
        """Guards that outlive their host and write to one of its logs."""
        logs = {str(path) for path in self.logs}
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if is_left_guard(pid, logs)]

    def runners(self):
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(pid) for pid in children.split() if b"runner" in words_of(pid)[1:2]]

    def cli(self, *words, text=None, code=0):
        done = subprocess.run([self.quiver, *map(str, words), "-c", self.config], input=text, capture_output=True,
                              text=True, timeout=120)
        assert done.returncode == code, done.stderr + done.stdout
        return done.stdout

    def submit(self, tasks):
        """Tasks are dicts as `submit --json-lines` takes them."""
        self.cli("submit", "--json-lines", text="".join(json.dumps(t) + "\n" for t in tasks))

    def submit_one(self, task):
        """Returns its id."""
        return self.cli("submit", task["handler"], "--key", task["key"], task["payload"]).strip()

    def sum(self, what):
        """Of one of the store's counters, over all shards, as an independent reader sees it."""
        with sqlite3.connect(f"file:{self.folder}/q.db?mode=ro", uri=True, timeout=30) as db:
            return db.execute(f"SELECT total({what}) FROM shard").fetchone()[0]

    def wait_done(self, count, seconds=60):
        wait_until(lambda: self.sum("done") >= count, f"{count} tasks done", seconds)
        assert self.sum("done") == count

    def rows(self, table):
        with sqlite3.connect(f"file:{self.folder}/q.db?mode=ro", uri=True, timeout=30) as db:
            db.row_factory = sqlite3.Row
            return db.execute(f"SELECT * FROM {table}").fetchall()

    def ledger(self, name="ledger"):
        return [e for e in self.ledger_lines(name) if e.what != "batch"]

    def batches(self):
        """How many tasks each call of handle_many got."""
        return [e.outcome for e in self.ledger_lines() if e.what == "batch"]

    def ledger_lines(self, name="ledger"):
        path = self.folder / name
        if not path.exists():
            return []
        whole = path.read_text().rpartition("\n")[0]  # of a line that is being written only a part may be seen
        lines = (line.split(" ") for line in whole.splitlines())
        return [Entry(f[0], int(f[1]), f[2], f[3], int(f[4]), *map(int, f[5:9]), f[9], f[10]) for f in lines]

    def starts(self, key=None):
        """The numbers of the tasks that were started, in order."""
        return [e.number for e in self.ledger() if e.what == "start" and key in (None, e.key)]

    def wait_started(self, number):
        wait_until(lambda: number in self.starts(), f"task {number} started")


def check_ledger(entries, expected, may_repeat=False):
    """`expected`: per key the numbers in order of submission.  Every task ran to its end, in order, one at a time.  With
    may_repeat a start may have no end, or its outcome may be lost: then the same task comes again, and nothing else."""
    running, last = {}, {}
    fences = collections.defaultdict(lambda: (0, 0))
    done = collections.defaultdict(list)
    for e in entries:
        where = f"{e} after {done[e.key][-3:]}"
        if e.what == "end":
            assert running.pop(e.key, None) == e.number, f"an end without its start: {where}"
            if e.outcome == 0 and (not done[e.key] or done[e.key][-1] != e.number):
                done[e.key].append(e.number)
            continue
        if e.key in running:
            assert may_repeat and running[e.key] == e.number, f"two at once, {running[e.key]} and {where}"
        if e.number == last.get(e.key) and done[e.key] and done[e.key][-1] == e.number:
            assert may_repeat, f"done twice: {where}"
        else:
            place = len(done[e.key])
            assert expected[e.key][place] == e.number, f"out of order, {expected[e.key][place]} is next: {where}"
        assert (e.epoch, e.start) > fences[e.key], f"a fence went back: {where}"
        fences[e.key] = (e.epoch, e.start)
        running[e.key] = last[e.key] = e.number
    assert dict(done) == dict(expected)
