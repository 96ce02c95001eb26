#!/usr/bin/python3
"""A small scenario to watch, which checks itself:  tests/demo/demo.py [--tasks N] [--keys N] [--seed N]

Thousands of inserts, updates and deletes of some hundred records go through the `sql` handler; beside them a handler that
fails now and then, and a task that crashes its handler.  Two hosts share the work, and one of them is killed midway.  At
the end the database is compared with what was submitted.  Exit status 1 if one record is not as its last task left it.
"""
import argparse
import collections
import json
import random
import resource
import signal
import sys
import time

from fleet import Fleet
from screen import Screen

WAVES = 80
PATIENCE_S = 55
FLAKY_KEYS, FLAKY_TASKS = 8, 5  # keys, and tasks of each


class Records:
    """The changes of the records in the order of submission, and what they should come to."""

    def __init__(self, chance, keys):
        self.chance = chance
        self.keys = [f"record-{i}" for i in range(keys)]
        self.rows = {}  # id → (step, text, is_deleted)
        self.history = collections.defaultdict(list)  # id → (step, is_deleted) after each task
        self.count = 0

    def task(self):
        key = self.chance.choice(self.keys)
        self.count += 1
        step, text, is_deleted = self.rows.get(key, (0, None, True))
        payload = {"op": "insert" if is_deleted else self.chance.choices(["update", "delete"], [5, 1])[0],
                   "table": "record", "id": key}
        if payload["op"] == "delete":
            is_deleted = True
        else:
            step, text, is_deleted = self.count, f"text {self.count}", False
            payload["data"] = {"step": step, "text": text}
        self.rows[key] = (step, text, is_deleted)
        self.history[key].append((step, is_deleted))
        return {"handler": "sql", "key": key, "payload": json.dumps(payload)}


class Verdict:
    """What the database says, next to what it should say."""

    def __init__(self, records, fleet):
        with fleet.database() as db:
            found = {row[0]: (row[1], row[2], bool(row[3])) for row in
                     db.execute("SELECT id, step, text, is_deleted FROM record")}
            journal = db.execute("SELECT id, step, is_deleted, task FROM journal ORDER BY number").fetchall()
        self.right = sum(found.get(key) == row for key, row in records.rows.items())
        self.wrong = len(records.rows) - self.right
        self.out_of_order, self.lost = judge(records.history, journal)


def judge(history, journal):
    """How many changes came before one that was submitted earlier, and how many never came.  A task that was run again,
    because its host died before its outcome was kept, may be there twice in a row: that is no violation."""
    place, out_of_order, seen, last_task = {}, 0, collections.defaultdict(set), {}
    numbers = {key: {state: i for i, state in enumerate(states)} for key, states in history.items()}
    for key, step, is_deleted, task in journal:
        number = numbers[key].get((step, bool(is_deleted)), -1)
        if number != place.get(key, -1) + 1 and last_task.get(key) != task:
            out_of_order += 1
        place[key] = max(place.get(key, -1), number)
        last_task[key] = task
        seen[key].add(number)
    lost = sum(len(states) - len(seen[key] - {-1}) for key, states in history.items())
    return out_of_order, lost


def flaky_tasks():
    return [{"handler": "flaky", "key": f"flaky-{key}", "payload": str(number)}
            for number in range(FLAKY_TASKS) for key in range(FLAKY_KEYS)]


def judge_flaky(fleet):
    """(done, out of order); run again, as above, is no violation."""
    path = fleet.folder / "ledger"
    by_key = collections.defaultdict(list)
    for line in path.read_text().splitlines() if path.exists() else []:
        key, number = line.split()
        if by_key[key][-1:] != [int(number)]:
            by_key[key].append(int(number))
    return (sum(len(set(numbers)) for numbers in by_key.values()),
            sum(numbers != sorted(set(numbers)) for numbers in by_key.values()))


def crash_tasks():
    return [{"handler": "crash", "key": "crash", "payload": word + "\n"} for word in ("calm", "boom", "calm", "calm")]


def kill_one(fleet, screen):
    """kill -9 of a host in the middle of its work, and how long its shards had no owner."""
    shards = fleet.shards_of("b")
    fleet.kill_host("b")
    began = time.monotonic()
    while len(fleet.shards_of("a")) < fleet.shards and time.monotonic() < began + PATIENCE_S:
        pass
    screen.end_progress()
    screen.line(f"  kill -9 of host b: its {len(shards)} shards run on host a after {time.monotonic() - began:.2f} s")


def watch(fleet, screen, records, total):
    """Submits wave after wave, kills a host midway, and looks on until all is done."""
    waves = [total // WAVES + (i < total % WAVES) for i in range(WAVES)]
    extra = flaky_tasks() + crash_tasks()
    everything = total + len(extra)
    fleet.submit(extra)
    end = time.monotonic() + PATIENCE_S
    while True:
        if waves:
            fleet.submit([records.task() for _ in range(waves.pop())])
            if len(waves) == WAVES // 2:
                kill_one(fleet, screen)
        else:
            time.sleep(0.1)
        now = fleet.totals()
        screen.progress(now["done"] + now["dead"], everything, f"{now['parked']} parked, {now['dead']} dead")
        if not waves and now["done"] + now["dead"] >= everything:
            break
        if time.monotonic() > end:
            screen.end_progress()
            screen.line(f"  not done within {PATIENCE_S} s: {now}")
            break
    screen.end_progress()


def report(fleet, screen, records):
    verdict = Verdict(records, fleet)
    flaky_done, flaky_wrong = judge_flaky(fleet)
    dead = fleet.dead()
    crashed = [task for task in dead if task["handler"] == "crash" and task["reason"] == "crashed"]
    flaky_all = FLAKY_KEYS * FLAKY_TASKS
    now = fleet.totals()
    crash_done = now["done"] - records.count - flaky_done
    rows = [
        ("sql", records.count, len(records.rows), verdict.out_of_order, verdict.lost,
         f"{verdict.right} records as their last task left them, {verdict.wrong} not"),
        ("flaky", flaky_all, FLAKY_KEYS, flaky_wrong, flaky_all - flaky_done, "each done at its third attempt"),
        ("crash", 4, 1, 0, 3 - crash_done, f"{len(crashed)} task crashed twice and is dead; its key went on"),
    ]
    screen.line()
    screen.table(["handler", "tasks", "keys", "out of order", "lost", ""], rows)
    screen.line()
    is_good = (not verdict.wrong and all(row[3] == 0 and row[4] == 0 for row in rows) and len(crashed) == 1 and
               len(dead) == 1 and now["queued"] + now["in_flight"] + now["parked"] == 0)
    screen.verdict(is_good, "Every record is as its last task left it: 0 order violations, 0 lost." if is_good else
                   f"This is not right: {now}, dead: {[task['reason'] for task in dead]}")
    return is_good


def run(options, screen):
    chance = random.Random(options.seed)
    records = Records(chance, options.keys)
    screen.line(f"{options.tasks} inserts, updates and deletes of {options.keys} records on two hosts; a flaky handler; a "
                f"task that crashes.  (--seed {options.seed})")
    with Fleet() as fleet:
        fleet.start_host("a")
        fleet.start_host("b")
        fleet.await_shares()
        screen.line(f"  {fleet.shards} shards: host a has {len(fleet.shards_of('a'))}, host b has "
                    f"{len(fleet.shards_of('b'))}")
        watch(fleet, screen, records, options.tasks)
        is_good = report(fleet, screen, records)
        if not is_good:
            screen.line(fleet.last_words("a"))
        return is_good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=40000, help="changes of records (40000)")
    parser.add_argument("--keys", type=int, default=400, help="records (400)")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 16))
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # by way of Fleet.__exit__
    # The crash is on purpose: no core file.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    try:
        return 0 if run(options, Screen()) else 1
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
