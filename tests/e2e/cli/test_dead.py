"""quiver dead: which tasks are meant, how many of them, and nothing else."""
import json
import os
import pty
import subprocess
import time

import pytest

from dumps import dead, load, make_dump, queued
from hosts import Host

HOUR_MS = 3600 * 1000
NOW_MS = int(time.time() * 1000)


def bodies():
    """30 dead tasks of two handlers, three reasons, three errors, and three ages."""
    found = []
    for i in range(30):
        found.append(dead(i, key=f"k{i % 6}", shard=i % 8, handler="mail" if i % 3 else "echo",
                          reason=("exhausted", "rejected", "cancelled")[i % 3],
                          error=("connection refused", "no such user", "timed out: a b")[i % 3],
                          at_ms=NOW_MS - (1 + i // 10) * 24 * HOUR_MS))
    return found


@pytest.fixture(params=["sqlite", "redis"])
def store(request, quiver, tmp_path):
    if request.param == "redis":
        made = request.getfixturevalue("redis_host")
    else:
        made = Host(quiver, quiver.parent / "test-plugins", tmp_path)
    made.configure(shards=5, work="")
    load(made, make_dump(bodies() + [queued(100)]))
    yield made
    made.close()


def listed(host, *words):
    return [json.loads(line) for line in host.cli("dead", "list", "--json", *words).splitlines()]


def numbers(tasks):
    return sorted(int(task["payload"]) for task in tasks)


def act(host, *words):
    return json.loads(host.cli("dead", *words, "--json"))


@pytest.mark.parametrize("verb, done", [("requeue", "requeued"), ("drop", "dropped")])
def test_a_limit_is_a_limit(store, verb, done):
    first = numbers(listed(store, "--limit", "3"))
    assert len(first) == 3
    assert act(store, verb, "--all", "--limit", "3") == {"seen": 30, "matched": 30, "chosen": 3, done: 3}
    left = numbers(listed(store))
    assert len(left) == 27 and not set(first) & set(left), "those that the list showed first"
    assert act(store, verb, "--limit", "3")[done] == 3
    assert act(store, verb, "--handler", "mail", "--limit", "2")[done] == 2
    assert store.cli("dead", verb, "--all") == f"22 {done}: 22 dead, 22 of them matched\n"
    assert store.cli("fsck").strip().endswith("sound")


FILTERS = [
    (["--handler", "mail"], lambda i: i % 3), (["--reason", "rejected"], lambda i: i % 3 == 1),
    (["--error", "refused"], lambda i: i % 3 == 0), (["--error", "timed out: a b"], lambda i: i % 3 == 2),
    (["--error", "REFUSED"], lambda i: False), (["--key", "k4"], lambda i: i % 6 == 4), (["--key", "k"], lambda i: False),
    (["--before", "36h"], lambda i: i >= 10), (["--before", "2.5d"], lambda i: i >= 20),
    (["--handler", "mail", "--reason", "cancelled", "--before", "36h"], lambda i: i % 3 == 2 and i >= 10),
]


@pytest.mark.parametrize("words, fits", FILTERS, ids=lambda value: "-".join(value) if isinstance(value, list) else "")
def test_only_what_fits_every_filter_is_touched(store, words, fits):
    meant = [i for i in range(30) if fits(i)]
    rest = [i for i in range(30) if not fits(i)]
    assert numbers(listed(store, *words)) == meant
    said = act(store, "drop", *words, "--dry-run")
    assert (said["matched"], said["chosen"], said["dropped"]) == (len(meant), len(meant), 0)
    assert numbers(listed(store)) == list(range(30)), "a dry run does nothing"
    assert act(store, "drop", *words)["dropped"] == len(meant)
    assert numbers(listed(store)) == rest


def test_a_time_is_read_as_it_is_shown(store):
    task = listed(store, "--limit", "1")[0]
    shown = next(line for line in store.cli("dead").splitlines() if line.startswith(task["id"])).split("  ")[1]
    assert shown.endswith("Z")
    before = len(listed(store, "--before", shown))
    whole = [time.strftime(form, time.gmtime(NOW_MS / 1000 + 60)) for form in ("%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M")]
    assert all(len(listed(store, "--before", text)) == 30 for text in whole)
    assert len(listed(store, "--before", "2001-01-01")) == 0
    assert before == sum(other["at_ms"] < task["at_ms"] for other in listed(store))
    for wrong in ("yesterday", "12", "", "2026-13-01", "2026-01-01x"):
        store.cli("dead", "list", "--before", wrong, code=2)


def on_a_terminal(store, *words, answer, meanwhile=lambda: None):
    """Output and exit code of a command that asks somebody."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([store.quiver, "dead", *words, "-c", store.config], stdin=theirs, stdout=theirs,
                               stderr=theirs)
    os.close(theirs)
    text = b""
    while b"[y/N]" not in text:
        text += os.read(ours, 1000)
    meanwhile()
    os.write(ours, answer)
    while True:
        try:
            more = os.read(ours, 1000)
        except OSError:
            break
        if not more:
            break
        text += more
    os.close(ours)
    return text.decode(), process.wait(60)


def test_on_a_terminal_it_asks_first(store):
    text, code = on_a_terminal(store, "requeue", "--handler", "mail", answer=b"n\n")
    assert "requeue 20 tasks of handler mail? [y/N]" in text and "nothing was requeued" in text and code == 1
    text, code = on_a_terminal(store, "drop", "--handler", "mail", "--reason", "rejected", "--limit", "4", answer=b"\n")
    assert "drop 4 of 10 tasks of handler mail, for the reason rejected? [y/N]" in text and code == 1
    assert len(listed(store)) == 30
    text, code = on_a_terminal(store, "drop", "--all", "--limit", "4", answer=b"y\n")
    assert "drop 4 of 30 tasks? [y/N]" in text and "4 dropped" in text and code == 0
    assert len(listed(store)) == 26


def test_what_dies_after_it_began_is_left_alone(store):
    def one_more():
        load(store, make_dump([dead(77, key="late")]), "--merge")
        assert 77 in numbers(listed(store))

    text, code = on_a_terminal(store, "drop", "--all", answer=b"y\n", meanwhile=one_more)
    assert "30 dropped" in text and code == 0
    assert numbers(listed(store)) == [77]


def test_yes_and_pipes_are_not_asked(store):
    ours, theirs = pty.openpty()
    done = subprocess.run([store.quiver, "dead", "requeue", "--limit", "2", "--yes", "-c", store.config], stdin=theirs,
                          stdout=theirs, stderr=theirs, timeout=60)
    os.close(theirs)
    text = os.read(ours, 1000)
    os.close(ours)
    assert done.returncode == 0 and b"2 requeued" in text and b"[y/N]" not in text
    assert store.cli("dead", "requeue", "--all").startswith("28 requeued")


@pytest.mark.parametrize("words", [["list", "--all"], ["list", "--dry-run"], ["drop", "t1-0", "--reason", "x"], ["drop"],
                                   ["drop", "t1-0", "--limit", "3"], ["drop", "--limit", "0"], ["drop", "--dry-run"],
                                   ["requeue", "t1-0", "--dry-run"]])
def test_what_makes_no_sense_is_refused(store, words):
    store.cli("dead", *words, code=2)
    assert len(listed(store)) == 30


def test_a_record_that_cannot_be_read_stays_and_the_rest_is_done(redis_host):
    redis_host.configure(shards=1, work="")
    load(redis_host, make_dump([dead(i) for i in range(5)]))
    with redis_host.redis.client() as client:
        client.hset("quiver:{test:0}:dead", "3", b"\xc1 garbage")
        done = subprocess.run([redis_host.quiver, "dead", "drop", "t0-0", "-c", redis_host.config], capture_output=True,
                              timeout=60)
        assert done.stdout == b"1 dropped\n"
        done = subprocess.run([redis_host.quiver, "dead", "drop", "t2-0", "t4-0", "-c", redis_host.config],
                              capture_output=True, timeout=60)
        assert done.returncode == 1 and b"cannot be read and stays" in done.stderr and done.stdout == b"1 dropped\n"
        assert client.hget("quiver:{test:0}:dead", "3") == b"\xc1 garbage"
        assert client.hlen("quiver:{test:0}:dead") == 3
        for value in ("nan", "-1", "1.5", "inf", "x"):
            client.hset("quiver:{test:0}:shard", "normal", value)
            done = subprocess.run([redis_host.quiver, "dead", "requeue", "t1-0", "-c", redis_host.config],
                                  capture_output=True, timeout=60)
            assert done.returncode == 3 and b"{test:0}:shard: normal is" in done.stderr
            assert client.hlen("quiver:{test:0}:dead") == 3 and not client.exists("quiver:{test:0}:normal")


def test_the_key_of_a_task_without_one_is_its_id(store):
    task = dead(55, key="", shard=3)
    load(store, make_dump([task]), "--merge")
    found = [task["id"] for task in listed(store) if task["payload"] == "55"]
    assert numbers(listed(store, "--key", found[0])) == [55]
