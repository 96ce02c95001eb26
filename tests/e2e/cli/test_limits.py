"""Limits of the whole app: four hosts start no more than one limit allows, whatever happens to them; a handler closes
its limit for a while; a person changes one."""
import json
import signal
import subprocess

import pytest

from hosts import wait_until

RATE, BURST, SLOTS = 60, 12, 3
LIMITS = f"limits = {{ api = {{ rate = {RATE}; burst = {BURST}; }}; smtp = {{ concurrency = {SLOTS}; }}; }};\n"


@pytest.fixture
def fleet(redis_host):
    """Four hosts on one Redis."""
    host = redis_host.configure(shards=16, change=lambda text: LIMITS + text, work='threads = 8; limited_by = ( "api" );',
                                slow='threads = 4; limited_by = ( "smtp" );').start()
    others = []
    try:
        for name in "bcd":
            log = open(host.folder / f"log-{name}", "wb")
            others.append(subprocess.Popen([host.quiver, "run", "--set", f"host.name={name}", "-c", host.config],
                                           stdout=log, stderr=log))
            log.close()
        wait_until(lambda: len(json.loads(host.cli("status", "--json"))["members"]) == 4, "all have joined")
        yield host, others
    finally:
        for other in others:
            other.send_signal(signal.SIGCONT)
            other.kill()
            other.wait()


def most_at_once(entries, is_of):
    """A start without an end is that of a runner that was killed: it ended at once."""
    ends = {(e.id, e.start): e.at_ns for e in entries if e.what == "end"}
    events = []
    for e in entries:
        if e.what == "start" and is_of(e):
            events += [(e.at_ns, 1), (ends.get((e.id, e.start), e.at_ns), -1)]
    running = most = 0
    for _, change in sorted(events):
        running += change
        most = max(most, running)
    return most


def most_within(times, seconds):
    first = most = 0
    for last, at in enumerate(times):
        while at - times[first] > seconds * 1e9:
            first += 1
        most = max(most, last - first + 1)
    return most


def test_four_hosts_never_exceed_a_limit_and_use_it(fleet):
    host, (b, c, d) = fleet
    host.submit([{"handler": "slow", "key": f"s{n}", "payload": f"{n} us:80000"} for n in range(150)] +
                [{"handler": "work", "key": f"w{n % 200}", "payload": f"{1000 + n}"} for n in range(400)])
    wait_until(lambda: len(host.starts()) > 60, "they start")
    c.kill()
    d.send_signal(signal.SIGSTOP)
    wait_until(lambda: len(host.starts()) > 200, "the others go on")
    d.send_signal(signal.SIGCONT)
    wait_until(lambda: host.sum("done") >= 550, "all are done", 120)
    entries = host.ledger()
    times = sorted(e.at_ns for e in entries if e.what == "start" and e.number >= 1000)
    assert most_at_once(entries, lambda e: e.number < 1000) <= SLOTS
    use = (len(times) - BURST) / ((times[-1] - times[0]) / 1e9) / RATE
    print(f"most at once {most_at_once(entries, lambda e: e.number < 1000)}, "
          f"most within 1 s {most_within(times, 1)}, 3 s {most_within(times, 3)}, use {use:.2f}")
    # What is dispatched starts a moment later, each its own: a burst more is room for that.
    assert most_within(times, 3) <= 3 * RATE + 2 * BURST
    limits = {limit["name"]: limit for limit in json.loads(host.cli("limit", "--json"))["limits"]}
    assert limits["api"]["rate"] == RATE and limits["smtp"]["concurrency"] == SLOTS
    assert limits["smtp"]["handlers"] == ["slow"]


def test_a_handler_closes_its_limit_at_no_cost(host, tmp_path):
    host.configure(change=lambda text: LIMITS + text, work='threads = 2; limited_by = ( "api" );').start()
    flag = tmp_path / "busy"
    flag.touch()
    host.submit([{"handler": "work", "key": "a", "payload": f"1 limited:{flag}"}])
    wait_until(lambda: "event=limit-closed" in host.log(), "it says so")
    host.submit([{"handler": "work", "key": f"k{n}", "payload": f"{n} limited:{flag}"} for n in range(2, 20)])
    wait_until(lambda: host.log().count("event=limit-closed") > 3, "it is tried again, and says so")
    flag.unlink()
    host.wait_done(19)
    assert {e.attempt for e in host.ledger()} == {1}
    task = [e for e in host.ledger() if e.number == 1][0]
    assert "later" not in host.cli("task", task.id)


def test_a_limit_is_set_for_a_while_and_set_back(host):
    host.configure(change=lambda text: LIMITS + text, work='threads = 2; limited_by = ( "api" );').start()
    shown = lambda: json.loads(host.cli("limit", "show", "api", "--json"))
    wait_until(lambda: json.loads(host.cli("limit", "--json"))["limits"], "the host says what it has")
    assert "set" in host.cli("limit", "set", "api", "--rate", "5", "--burst", "2", "--for", "1h")
    wait_until(lambda: shown()["rate"] == 5 and shown()["burst"] == 2, "the host has heard of it")
    assert "event=limit-set limit=api" in host.log()
    host.submit([{"handler": "work", "key": f"k{n}", "payload": str(n)} for n in range(12)])
    host.wait_done(12)
    times = sorted(e.at_ns for e in host.ledger() if e.what == "start")
    assert times[-1] - times[0] >= 1.5e9  # 10 of them at 5 a second
    host.cli("limit", "clear", "api")
    wait_until(lambda: shown()["rate"] == RATE and "set" not in shown(), "it is as configured")
    assert "event=limit-cleared limit=api" in host.log()
    assert "is a rate" in subprocess.run([host.quiver, "limit", "set", "api", "--concurrency", "1", "-c", host.config],
                                         capture_output=True, text=True).stderr
    host.cli("limit", "show", "nobody", code=1)
    host.cli("limit", "set", "api", code=2)
