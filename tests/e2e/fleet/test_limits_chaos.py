"""Limits while hosts are killed, stopped and cut off from the store: how many calls ran at once, and how many started, as
the handlers themselves wrote it down."""
import json
import os
import signal
import subprocess
import time

import pytest

from hosts import wait_until
from proxy import Proxy

RATE, BURST, SLOTS = 50, 10, 3
LIMITS = f"limits = {{ api = {{ rate = {RATE}; burst = {BURST}; }}; smtp = {{ concurrency = {SLOTS}; }}; }};\n"
SECONDS = 90
QUIET_S = 10  # before the trouble
SHORT_S = 0.3  # a call that takes a while, and does not look at its stop flag


def now():
    """As the ledger has it."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Member:
    """A host with a way of its own to Redis, a ledger of its own, and what was done to it."""

    def __init__(self, host, name):
        self.host, self.name = host, name
        self.proxy = Proxy(host.redis.socket, str(host.redis.folder / f"{name}.sock"))
        self.config = host.folder / f"{name}.cfg"
        text = host.config.read_text().replace(f"redis+unix:{host.redis.socket}", self.proxy.url)
        self.config.write_text(text.replace(f"{host.folder}/ledger", f"{host.folder}/ledger-{name}"))
        self.deaths, self.stops, self.cuts = [], [], []  # times; from when to when
        self.start()

    def start(self):
        log = open(self.host.folder / f"log-{self.name}", "ab")
        self.process = subprocess.Popen([self.host.quiver, "run", "--set", f"host.name={self.name}", "-c", self.config],
                                        stdout=log, stderr=log)
        log.close()

    def kill(self, seconds):
        self.process.kill()
        self.process.wait()
        self.deaths.append(now())
        time.sleep(seconds / 4)
        self.start()

    def stop(self, seconds):
        began = now()
        self.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.process.send_signal(signal.SIGCONT)
        self.stops.append((began, now()))

    def cut_off(self, seconds):
        began = now()
        self.proxy.hold()
        time.sleep(seconds)
        self.proxy.heal()
        self.cuts.append((began, now()))

    def close(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()
        self.proxy.close()

    def log(self):
        return (self.host.folder / f"log-{self.name}").read_text()

    def entries(self):
        return self.host.ledger(f"ledger-{self.name}")

    def calls(self):
        """From when to when each call ran, but for what ran on while the host stood still."""
        entries = self.entries()
        ends = {(e.id, e.epoch, e.start): e.at_ns / 1e9 for e in entries if e.what == "end"}
        for e in entries:
            if e.what != "start":
                continue
            began = e.at_ns / 1e9
            # One that was killed says nothing: with its host, or as it took too long after it was told to stop.
            end = ends.get((e.id, e.epoch, e.start)) or min([began + SHORT_S] + [at for at in self.deaths if at > began])
            for stopped, _ in self.stops:
                if began <= stopped < end:
                    end = stopped
            yield e.number, began, end


def most_at_once(calls):
    running = most = 0
    for _, change in sorted([(began, 1) for began, _ in calls] + [(end, -1) for _, end in calls]):
        running += change
        most = max(most, running)
    return most


def use_of(calls, first, last):
    """The share of the slots that was used in that time."""
    return sum(max(0, min(end, last) - max(began, first)) for began, end in calls) / SLOTS / (last - first)


def back_after(calls, died):
    """How long after that all slots were in use again; None: they never were."""
    running = 0
    for at, change in sorted([(began, 1) for began, _ in calls] + [(end, -1) for _, end in calls]):
        running += change
        if at > died and running == SLOTS:
            return at - died
    return None


def most_within(times, seconds):
    first = most = 0
    for last, at in enumerate(times):
        while at - times[first] > seconds:
            first += 1
        most = max(most, last - first + 1)
    return most


def cause_trouble(members, chance, go):
    """For SECONDS; meanwhile what waits for a file finds it, one after the other."""
    began = now()
    number = 0
    while now() < began + SECONDS:
        member = chance.choice(members)
        chance.choice([member.kill, member.stop, member.cut_off])(chance.uniform(0.5, 4))
        go(number)
        number += 1
        time.sleep(chance.uniform(0, 2))
    return number


@pytest.mark.skipif(not os.environ.get("QUIVER_TEST_LONG"), reason="takes two minutes; test_limits.py has a short form")
def test_limits_hold_while_hosts_are_killed_stopped_and_cut_off(redis_host, chance):
    host = redis_host.configure(shards=16, change=lambda text: LIMITS + text, work='threads = 8; limited_by = ( "api" );',
                                slow='threads = 4; limited_by = ( "smtp" );')
    members = []
    try:
        members += [Member(host, name) for name in "abcd"]
        wait_until(lambda: all("event=running" in m.log() for m in members), "all are running", 120)
        wait_until(lambda: len(json.loads(host.cli("status", "--json"))["members"]) == 4, "all have joined", 120)
        slow = [{"handler": "slow", "key": f"s{n}", "payload": f"{n} us:{int(SHORT_S * 1e6)}" if n % 8 or n < 240 else
                 f"{n} wait:{host.folder}/go-{n // 40}"} for n in range(3000)]
        work = [{"handler": "work", "key": f"w{n % 400}", "payload": f"{100000 + n}"} for n in range((SECONDS + QUIET_S + 30) * RATE)]
        host.submit(slow + work)
        wait_until(lambda: all(m.entries() for m in members), "all of them run some", 120)
        quiet = now()
        time.sleep(QUIET_S)
        trouble = now()
        cause_trouble(members, chance, lambda number: (host.folder / f"go-{number}").touch())
        over = now()
        calls = [call for member in members for call in member.calls()]
    finally:
        for member in members:
            member.close()
    slots = [(began, end) for number, began, end in calls if number < 100000]
    times = sorted(began for number, began, _ in calls if number >= 100000)
    most = most_at_once(slots)
    use = (len(times) - BURST) / (times[-1] - times[0]) / RATE
    faults = ", ".join(f"{sum(len(getattr(m, name)) for m in members)} {name}" for name in ("deaths", "stops", "cuts"))
    back = sorted(filter(None, (back_after(slots, at) for m in members for at in m.deaths)))
    print(f"{faults}; {len(slots)} calls, {most} of {SLOTS} at once, use {use_of(slots, quiet, trouble):.2f} in quiet and "
          f"{use_of(slots, trouble, over):.2f} in trouble, all in use again {back[0]:.1f} to {back[-1]:.1f} s after a death; "
          f"{len(times)} starts, {most_within(times, 10)} within 10 s of {10 * RATE + BURST}, use {use:.2f}")
    assert most <= SLOTS
    # What is dispatched starts a moment later, each its own: a burst more is room for that.
    assert most_within(times, 10) <= 10 * RATE + 2 * BURST
