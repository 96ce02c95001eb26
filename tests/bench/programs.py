"""Benchmarks that are programs in C with a table of their own, in the one table: the SQLite store without a host, and the
leader's arithmetic."""
import re

from processes import Folder, Stuck, output, TOOLS

TASKS = 40000


def lines_of(pattern, name, *words, **more):
    found = re.findall(pattern, output([TOOLS / name, *words], **more), re.MULTILINE)
    if not found:
        raise Stuck(f"{name} printed nothing that looks like a figure")
    return found


def measure_store(table, options):
    with Folder() as folder:
        for level, what, figure in lines_of(r"^(NORMAL|FULL) +(.*?) +(\d+) /s$", "bench_sqlite", TASKS,
                                            env={"TMPDIR": str(folder)}):
            table.add(f"{what}, {level}", figure, "tasks/s", how="the store without a host")


def measure_assign(table, options):
    rows = lines_of(r"^(\w.*?) +([\d.]+) ms +(\d+) moves +written and read +([\d.]+) ms +(\d+) bytes$", "bench_assign")
    how = "4096 shards, 200 members"
    for what, planned, moves, copied, _ in rows:
        table.add(f"assignment: {what}", planned, "ms", how=f"{how}; {moves} moves; written and read in {copied} ms")
    table.add("assignment: its document", max(int(row[4]) for row in rows), "bytes", bar="assign", how=how)


PARTS = {"store": measure_store, "assign": measure_assign}
