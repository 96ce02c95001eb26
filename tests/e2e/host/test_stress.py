"""A thousand runners killed at random moments under load: every task has exactly one outcome, and nothing is left."""
import collections
import os
import random
import signal
import threading
import time

import pytest

from runs import by_place, wait_for

KILLS = 1000
RUNS = 3  # at once
LINE = b"2" + 200 * b" " + b"\n"  # 2 ms; and long, so that few of them wait in the pipe when we are through
SEED = int(os.environ.get("STRESS_SEED", time.time_ns() % 1000000))


class Load:
    """One run that is fed for as long as the test likes."""

    def __init__(self, tries, plugin):
        self.tries = tries
        self.child = tries.start(plugin, "--lines", "--json", "--quiet", "--processes", 2, "--threads", 2)
        self.fed = 0
        self.is_over = False
        self.out = []
        self.heard = 0  # of `out` when we killed last
        self.descriptors = []
        self.threads = [threading.Thread(target=self.feed), threading.Thread(target=self.read)]
        for thread in self.threads:
            thread.start()

    def feed(self):
        try:
            while not self.is_over:
                self.child.stdin.write(LINE * 50)
                self.child.stdin.flush()
                self.fed += 50
            self.child.stdin.close()
        except BrokenPipeError:
            pass  # the test has failed, and says so

    def read(self):
        while chunk := self.child.stdout.read1(65536):
            self.out.append(chunk)

    def kill_one(self, dice):
        """Kills one of its runners, whatever that is doing.  Not twice without an outcome in between: runners that die
        one after the other before they have answered anything are what quarantine is for."""
        runners = self.tries.runners(self.child)
        if not runners or len(self.out) == self.heard:
            assert self.child.poll() is None, self.child.stderr.read()
            return False
        self.heard = len(self.out)
        try:
            os.kill(dice.choice(runners), signal.SIGKILL)
        except ProcessLookupError:
            return False
        self.descriptors.append(len(os.listdir(f"/proc/{self.child.pid}/fd")))
        return True

    def end(self):
        self.is_over = True
        for thread in self.threads:
            thread.join(60)
        assert self.child.wait(60) in (0, 1), self.child.stderr.read()
        return by_place(b"".join(self.out).decode())


@pytest.fixture
def loads(tries, root):
    made = [Load(tries, root / "build" / "villains" / "sleeps.so") for _ in range(RUNS)]
    yield made
    for load in made:
        load.is_over = True
        load.child.kill()


def test_a_thousand_killed_runners_lose_and_double_nothing(loads):
    print(f"STRESS_SEED={SEED}")
    dice = random.Random(SEED)
    for load in loads:
        wait_for(lambda load=load: load.out, "the first outcome")
    kills = 0
    deadline = time.monotonic() + 200
    while kills < KILLS:
        assert time.monotonic() < deadline, f"only {kills} kills"
        kills += dice.choice(loads).kill_one(dice)
        time.sleep(dice.uniform(0, 0.02))

    outcomes = collections.Counter()
    for load in loads:
        tasks = load.end()
        assert sorted(tasks) == list(range(1, load.fed + 1))
        outcomes.update(task["outcome"] for task in tasks.values())
        # No more in the second half than in the first: what a dead runner had was closed.
        half = len(load.descriptors) // 2
        assert max(load.descriptors[half:]) <= max(load.descriptors[:half]) + 8
    # A kill costs one task at most: the suspect that was killed again while it ran alone.
    assert set(outcomes) <= {"DONE", "CRASHED"}
    assert outcomes["CRASHED"] <= kills
    print(f"{kills} kills, {dict(outcomes)}")
    assert outcomes["DONE"] > kills
