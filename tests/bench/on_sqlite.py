"""Quiver on SQLite, and the bare batch rate on the same file system."""
import sqlite3
import time

from place import Place, shard_of, words
from processes import Folder, running, tool, wait_done, wait_until


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
        self.db = self.db or sqlite3.connect(f"file:{self.folder}/q.db?mode=ro", uri=True, timeout=30)
        found = dict(self.db.execute("SELECT shard, done FROM shard"))
        return [found.get(shard, 0) for shard in range(self.shards)]

    def producer(self, tasks, **load):
        """The client library, a thousand in one step unless told otherwise."""
        return self.client_load(tasks, **load)

    def through(self, tasks, **load):
        """Without what is done in a shard that the load avoids."""
        avoided = shard_of(load["avoid"], self.shards) if "avoid" in load else None

        def done():
            return sum(count for shard, count in enumerate(self.done_of()) if shard != avoided)

        first, began = done(), time.monotonic()
        with running(self.producer(tasks, **load)) as producer:
            wait_done(done, first + tasks)
            seconds = time.monotonic() - began
            producer.wait(60)
        return seconds

    def drain(self, tasks):
        before = self.done()
        self.start()
        wait_until(lambda: self.done() > before, "it has begun", pause=0.001)
        first, began = self.done() - before, time.monotonic()
        wait_done(self.done, before + tasks)
        return (time.monotonic() - began) * tasks / max(1, tasks - first)

    def stored_bytes(self):
        """With what is still in the WAL: a task is in one of them."""
        db = sqlite3.connect(f"{self.folder}/q.db", timeout=30)
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.close()
        return (self.folder / "q.db").stat().st_size
