#!/usr/bin/python3
"""Tasks per second that `sql` inserts, with and without batches:  tests/bench/sql.py [TASKS]

One host, one seat; its store is as fast as it gets (NORMAL), the databases are as durable as they are by default.  The tasks,
each of a key of its own, wait in the store; the time is that from the first one done to the last."""
import sqlite3
import sys
import time

from processes import QUIVER, ROOT, Folder
from table import Table

sys.path.append(str(ROOT / "tests" / "e2e" / "support"))
from hosts import Host, wait_until  # noqa: E402
from postgres import Postgres  # noqa: E402

TASKS = 5000
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
    host = Host(QUIVER, ROOT / "plugins", folder)
    host.config.write_text(CONFIG.format(folder=folder, root=ROOT, url=url, batch=batch))
    try:
        return drain(host, tasks)
    finally:
        host.close()


def drain(host, tasks):
    host.start().stop()  # now there is a store
    host.submit([{"handler": "sql", "key": f"k{i}", "payload": f'{{"op":"insert","table":"record","id":"k{i}",'
                  f'"data":{{"name":"somebody {i}"}}}}'} for i in range(tasks)])
    host.start()
    first = wait_until(lambda: host.sum("done"), "the first is done")
    start = time.monotonic()
    host.wait_done(tasks, 120)
    rate = (tasks - first) / (time.monotonic() - start)
    host.stop()
    return rate


def measure_sqlite(batch, tasks):
    with Folder() as folder:
        db = sqlite3.connect(folder / "app.db")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(DDL)
        db.close()
        return measure(folder, f"sqlite:{folder}/app.db", batch, tasks)


def measure_postgres(server, batch, tasks):
    server.fresh(DDL)
    with Folder() as folder:
        return measure(folder, server.url(), batch, tasks)


def measure_all(table, tasks):
    server = Postgres(fsync="on")
    try:
        server.start()
        for name, bench in (("SQLite, WAL, FULL", measure_sqlite),
                            ("PostgreSQL, Unix socket", lambda *words: measure_postgres(server, *words))):
            alone = None
            for batch in (1, 10, 100):
                rate = bench(batch, tasks)
                alone = alone or rate
                at = (batch, "a call")
                table.add(f"sql into {name}", rate, "tasks/s", at=at, how=f"{tasks} inserts, one seat; store NORMAL")
                table.add(f"sql into {name} / one by one", rate / alone, "x", at=at)
    finally:
        server.close()


PARTS = {"sql": lambda table, options: measure_all(table, TASKS)}

if __name__ == "__main__":
    measure_all(Table("sql"), int(sys.argv[1]) if len(sys.argv) > 1 else TASKS)
