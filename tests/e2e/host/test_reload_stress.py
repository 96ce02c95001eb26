"""Reload under load: nothing is lost, failed or doubled, order is kept, and nothing is left behind."""
import os
import random
import re
import threading
import time
import zlib

import pytest

from hosts import check_ledger, wait_until
from sites import add, by_key, site, task  # noqa: F401 (site is a fixture)

SEATS = 4
SHARDS = 8


@pytest.fixture
def chance():
    seed = int(os.environ.get("QUIVER_TEST_SEED", random.randrange(1 << 32)))
    print(f"QUIVER_TEST_SEED={seed}")
    return random.Random(seed)


class Load:
    """Submits batches of numbered tasks until it is told to stop."""

    def __init__(self, site, chance):
        self.site, self.chance = site, chance
        self.tasks, self.is_over = [], threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.is_over.is_set():
            first = len(self.tasks)
            batch = [task(f"k{self.chance.randrange(40)}", first + i, f"us:{self.chance.choice((0, 100, 2000))}")
                     for i in range(100)]
            self.site.submit(batch)
            self.tasks += batch
            # Do not run far ahead of the host: what counts is that it always has some.
            wait_until(lambda: len(self.tasks) - self.site.sum("done") < 400 or self.is_over.is_set(), "it keeps up")

    def stop(self):
        self.is_over.set()
        self.thread.join()
        return self.tasks


def footprint(site):
    pid = site.process.pid
    pages = int(open(f"/proc/{pid}/statm").read().split()[1])
    staged = os.listdir(next((site.folder / "state").glob("staging-*")))
    return {"fds": len(os.listdir(f"/proc/{pid}/fd")), "threads": len(os.listdir(f"/proc/{pid}/task")),
            "runners": sum(map(len, site.runners().values())), "files": len(staged), "mib": pages * 4096 >> 20}


def promotions(site):
    """(at_ns, build) of each, after the start."""
    found = re.findall(r'event=promoted handler=work .* version="([^"]+)" at_ns=(\d+)', site.log())
    return [(int(at_ns), {"1.0": "one", "2.0": "two"}[version]) for version, at_ns in found]


def settle(site):
    wait_until(lambda: all(len(h["generations"]) <= 2 for h in site.ask("status")["handlers"]), "the old ones are gone")
    wait_until(lambda: sum(map(len, site.runners().values())) <= 2, "and their runners")


def check_builds(site):
    """Once a version is promoted, nothing is handed to the one before; and what was handed to it and had not started is
    taken back."""
    changes = promotions(site)
    starts = [e for e in site.ledger() if e.what == "start"]
    for shard in range(SHARDS):
        own = sorted((e for e in starts if zlib.crc32(e.key.encode()) % SHARDS == shard), key=lambda e: (e.epoch, e.start))
        switches = sum(a.build != b.build for a, b in zip(own, own[1:]))
        assert switches <= len(changes), f"shard {shard} goes back and forth"
    for (at_ns, build), end_ns in zip(changes, [at for at, _ in changes[1:]] + [1 << 62]):
        late = [e for e in starts if at_ns < e.at_ns < end_ns and e.build != build]
        # A seat may have won its task just before, and be about to write its line.
        assert len(late) <= SEATS, f"{len(late)} started on the old build after {build} was promoted: {late[:5]}"


def test_a_hundred_reloads_under_load_lose_fail_and_double_nothing(site, chance):
    site.configure(shards=SHARDS, work="processes = 2; threads = 2;",
                   change=add('reload = { probation = "1m"; tasks = 50; };\n')).start()
    broken = site.plugins / "broken"
    whole = (site.built / "ledger-two.so").read_bytes()
    load = Load(site, chance)
    try:
        wait_until(lambda: site.sum("done") > 300, "it has begun")
        before = None
        for i in range(100):
            choice = chance.choice(("ledger.so", "ledger-two.so", "broken"))
            if choice == "broken":
                broken.write_bytes(whole[:chance.randrange(len(whole) // 2)])
                broken.rename(site.plugins / "ledger.so")
            else:
                site.install(choice)
            site.hang_up()
            time.sleep(chance.random() * 0.08)  # random moments are the point
            if i == 20:
                before = footprint(site)
        site.install("ledger-two.so")
        site.hang_up()
    finally:
        tasks = load.stop()
    wait_until(lambda: site.sum("done") >= len(tasks), "all are done", 120)
    wait_until(lambda: promotions(site)[-1][1] == "two", "the last one serves")
    settle(site)
    assert site.sum("done") == len(tasks)
    assert site.sum("dead") == 0
    assert all(e.attempt == 1 for e in site.ledger())
    check_ledger(site.ledger(), by_key(tasks))
    check_builds(site)
    assert site.count("event=rolled-back") == 0
    assert len(promotions(site)) >= 10
    after = footprint(site)
    assert after["files"] <= 2
    assert after["fds"] <= before["fds"] and after["threads"] <= before["threads"]
    if "asan" not in str(site.quiver):  # which keeps freed memory for a while
        assert after["mib"] <= before["mib"] + 16, f"{before} {after}"
    assert site.stop() == 0
    assert not list((site.folder / "state").glob("staging-*"))
