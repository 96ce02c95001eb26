"""Quiver on SQLite, and the bare batch rate on the same file system."""
import sqlite3
import time

from place import Place, shard_of, words
from processes import Folder, running, tool, wait_done, wait_until

# Reading the counters of a thousand shards takes a millisecond of a core that Quiver shares.
PAUSE_MAX_S = 0.05


class OnSqlite(Place):
    name, levels = "sqlite", ("NORMAL", "FULL")
    bare_name = "bare batch rate"
    bare_latency_name = "insert and commit"
    db = None

    def open(self):
        """A file needs nothing."""

    def close(self):
        super().close()
        if self.db:
            self.db.close()

    def url(self):
        return f'url = "sqlite:{self.folder}/q.db"; synchronous = "{self.level.lower()}";'

    def limit(self, what, tasks, **load):
        """In a file of its own, new each time."""
        with Folder() as folder:
            return tool("sqlite_load", folder / "bare.db", what, self.level.lower(), *words({"tasks": tasks, **load}))

    def bare(self, tasks, **load):
        """Insert, then read and delete."""
        return sum(map(float, self.limit("bare", tasks, **load).split()))

    def bare_latencies(self, count):
        """A transaction of one insert."""
        return [float(line) for line in self.limit("commits", count, rate=500).split()]

    def done_of(self):
        found = dict(self.ask("SELECT shard, done FROM shard"))
        return [found.get(shard, 0) for shard in range(self.shards)]

    def done(self, but=-1):
        """Of all shards but one, added up by SQLite: rows made into Python's would cost a round with many shards as much as its tasks do."""
        return self.ask("SELECT sum(done) FROM shard WHERE shard != ?", but).fetchone()[0] or 0

    def ask(self, sql, *values):
        self.db = self.db or sqlite3.connect(f"file:{self.folder}/q.db?mode=ro", uri=True, timeout=30)
        return self.db.execute(sql, values)

    def producer(self, tasks, **load):
        """The client library, a thousand in one step unless told otherwise."""
        return self.client_load(tasks, **load)

    def through(self, tasks, **load):
        """Without what is done in a shard that the load avoids."""
        def done():
            return self.done(shard_of(load["avoid"], self.shards) if "avoid" in load else -1)

        first, began = done(), time.monotonic()
        with running(self.producer(tasks, **load)) as producer:
            wait_done(done, first + tasks, pause_max=PAUSE_MAX_S)
            seconds = time.monotonic() - began
            producer.wait(60)
        return seconds

    def drain(self, tasks):
        before = self.done()
        self.start()
        wait_until(lambda: self.done() > before, "it has begun", pause=0.001)
        first, began = self.done() - before, time.monotonic()
        wait_done(self.done, before + tasks, pause_max=PAUSE_MAX_S)
        return (time.monotonic() - began) * tasks / max(1, tasks - first)

    def stored_bytes(self):
        """With what is still in the WAL: a task is in one of them."""
        db = sqlite3.connect(f"{self.folder}/q.db", timeout=30)
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.close()
        return (self.folder / "q.db").stat().st_size
