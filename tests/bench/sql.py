#!/usr/bin/env python3
"""Tasks per second that `sql` inserts, with and without batches:  tests/bench/sql.py [TASKS]

One host, one seat; its store is as fast as it gets (NORMAL), the databases are as durable as they are by default.  The tasks,
each of a key of its own, wait in the store; the time is that from the first one done to the last."""
import pathlib
import sqlite3
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from hosts import Host, wait_until  # noqa: E402
from postgres import Postgres  # noqa: E402

DDL = """CREATE TABLE record (id text PRIMARY KEY, name text, is_deleted boolean NOT NULL DEFAULT false,
  fence_epoch bigint NOT NULL DEFAULT 0, fence_start bigint NOT NULL DEFAULT 0, fence_task text NOT NULL DEFAULT '')"""
CONFIG = """
app = "bench"; state = "{folder}/state"; plugins = "{root}/plugins";
store = {{ url = "sqlite:{folder}/q.db"; synchronous = "normal"; }};
handlers = {{ sql = {{ plugin = "sql.so"; batch = {{ max = {batch}; wait = "2ms"; }};
  config = {{ url = "{url}"; tables = ( {{ name = "record"; columns = ["name"]; }} ); }}; }}; }};
"""


def measure(folder, url, batch, tasks):
    """Tasks per second."""
    host = Host(ROOT / "build" / "quiver", ROOT / "plugins", folder)
    host.config.write_text(CONFIG.format(folder=folder, root=ROOT, url=url, batch=batch))
    host.start().stop()  # now there is a store
    host.submit([{"handler": "sql", "key": f"k{i}", "payload": f'{{"op":"insert","table":"record","id":"k{i}",'
                  f'"data":{{"name":"somebody {i}"}}}}'} for i in range(tasks)])
    host.start()
    try:
        first = wait_until(lambda: host.sum("done"), "the first is done")
        start = time.monotonic()
        host.wait_done(tasks, 120)
        return (tasks - first) / (time.monotonic() - start)
    finally:
        host.stop()


def measure_sqlite(batch, tasks):
    with tempfile.TemporaryDirectory(prefix="quiver-bench-") as name:
        folder = pathlib.Path(name)
        db = sqlite3.connect(folder / "app.db")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(DDL)
        db.close()
        return measure(folder, f"sqlite:{folder}/app.db", batch, tasks)


def measure_postgres(server, batch, tasks):
    server.fresh(DDL)
    with tempfile.TemporaryDirectory(prefix="quiver-bench-") as name:
        return measure(pathlib.Path(name), server.url(), batch, tasks)


def main():
    tasks = int(sys.argv[1]) if len(sys.argv) > 1 else 10000
    server = Postgres(fsync="on")
    print(f"{f'sql: {tasks} inserts, one seat':32} {'batch':>9} {'tasks/s':>9} {'ratio':>10}")
    try:
        server.start()
        for name, bench in (("SQLite, WAL, FULL", measure_sqlite),
                            ("PostgreSQL, Unix socket", lambda *words: measure_postgres(server, *words))):
            alone = None
            for batch in (1, 10, 100):
                rate = bench(batch, tasks)
                alone = alone or rate
                print(f"{name:32} {batch:9} {rate:9.0f} {rate / alone:9.1f} x", flush=True)
    finally:
        server.close()


if __name__ == "__main__":
    main()
