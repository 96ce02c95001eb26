"""Ordered batches (batch.same_key): one call gets several tasks of a key, in order, also while runners and hosts are
killed, and one that ends processes is found among many."""
import collections
import os
import re
import signal

import pytest

from hosts import wait_until

BATCHES = 'batch = {{ max = {max}; wait = "20ms"; same_key = true; }}; crashes = {crashes}; processes = 2; timeout = "60s";'


@pytest.fixture
def batches(host):
    """A host whose handler takes batches of so many."""
    def configure(most, crashes=1):
        return host.configure(job=BATCHES.format(max=most, crashes=crashes)).start()

    return configure


def tasks_of(key, payloads):
    return [{"handler": "job", "key": key, "payload": p} for p in payloads]


def check_runs(entries, expected):
    """Every task was done, none started before all before it of its key were, none beside another, and fences grew."""
    done, running, fences = collections.defaultdict(set), {}, collections.defaultdict(lambda: (0, 0))
    for e in entries:
        if e.what == "end":
            assert running.pop(e.key, None) == (e.number, e.epoch, e.start), f"an end beside another call: {e}"
            if e.outcome == 0:
                done[e.key].add(e.number)
            continue
        # One that never came to its end was killed: the next start of its key is a new call's.
        running[e.key] = (e.number, e.epoch, e.start)
        place = expected[e.key].index(e.number)
        assert set(expected[e.key][:place]) <= done[e.key], f"started before its time: {e}"
        assert (e.epoch, e.start) > fences[e.key], f"a fence went back: {e}"
        fences[e.key] = (e.epoch, e.start)
    assert {key: set(numbers) for key, numbers in expected.items()} == dict(done)


def test_a_culprit_among_many_costs_few_crashes_and_nobody_else_anything(batches):
    """64 tasks of one key, the 40th crashes: the first crash, and then about log2 64."""
    host = batches(64)
    host.submit(tasks_of("k", [f"{n} crash" if n == 40 else f"{n}" for n in range(64)]))
    host.wait_done(63)
    assert [row["reason"] for row in host.rows("dead")] == ["crashed"]
    assert max(host.batches()) > 16, "they ran in batches"
    deaths = set(re.findall(r"event=crash .*?pid=(\d+)", host.log()))
    assert 2 <= len(deaths) <= 9, f"{len(deaths)} runners ended"
    assert len(re.findall(r"event=crash .*?outcome=CRASHED", host.log())) == 1, "one task is charged"
    check_runs([e for e in host.ledger() if e.number != 40], {"k": [n for n in range(64) if n != 40]})
    assert {e.attempt for e in host.ledger()} == {1}, "nobody was charged an attempt"
    host.cli("fsck")
    assert host.stop() == 0


def test_the_first_that_is_not_done_ends_its_keys_part_of_a_batch(batches):
    host = batches(16)
    numbers = [f"{n} retry:1" if n == 5 else f"{n}" for n in range(12)]
    host.submit(tasks_of("k", numbers) + tasks_of("other", [str(n) for n in range(100, 112)]))
    host.wait_done(24)
    entries = [e for e in host.ledger() if e.key == "k"]
    check_runs(host.ledger(), {"k": list(range(12)), "other": list(range(100, 112))})
    assert [e.number for e in entries if e.what == "start"] == [0, 1, 2, 3, 4, 5, 5, 6, 7, 8, 9, 10, 11], "each once"
    assert {e.number for e in entries if e.attempt > 1} == {5}
    assert host.stop() == 0


def test_runners_and_hosts_that_are_killed_cost_no_order(batches, chance):
    """Killed in the middle of batches, two hosts after another.  A task that runs alone when its runner is killed is charged."""
    host = batches(16, crashes=4)
    expected = {f"k{k}": [1000 * k + n for n in range(150)] for k in range(3)}
    host.submit([t for key, numbers in expected.items() for t in tasks_of(key, [f"{n} us:300" for n in numbers])])
    for round_ in range(4):
        seen = len(host.ledger())
        wait_until(lambda seen=seen: len(host.ledger()) > seen + 20 or host.sum("done") == 450, "more tasks run")
        pids = re.findall(r"event=runner-ready .*?pid=(\d+)", host.log())
        if round_ < 2:  # a host that dies while a suspect runs alone makes that wait for 10 s
            host.kill()
            host.start()
        elif pids:
            try:
                os.kill(int(chance.choice(pids[-2:])), signal.SIGKILL)
            except ProcessLookupError:
                pass  # it had nothing more to do
    host.wait_done(450)
    assert max(host.batches()) > 4
    check_runs(host.ledger(), expected)
    host.cli("fsck")
    assert host.stop() == 0
