"""`quiver lock` and `quiver elect`: a command that runs in one place at a time, and is stopped when it may not."""
import json
import os
import pathlib
import signal
import subprocess
import time

import pytest

from backings import durable_redis
from zookeepers import ZooKeeper

PATIENCE_S = 60


def wait_for(condition):
    """Waits until it holds."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "still not so"
        time.sleep(0.01)


CONFIG = """
app = "test"; shards = 1;
store = {{ url = "sqlite:var/quiver.db"; }};
coordination = {{ url = "{url}"; session = "{session}"; }};
plugins = "plugins";
handlers = {{ }};
"""


def configure(place, url="local:var", session="1s"):
    (place / "runtime.cfg").write_text(CONFIG.format(url=url, session=session))


@pytest.fixture
def place(tmp_path):
    """A configuration whose sessions are short."""
    (tmp_path / "plugins").mkdir()
    configure(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def redis(tmp_path_factory):
    with durable_redis(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory):
    with ZooKeeper(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


@pytest.fixture(params=["local", "redis", "zookeeper"])
def on_each(request, place):
    """The place with sessions that nobody outwaits, on each coordination; returns what the nodes below `path` are called,
    or None where only the contract's tests can tell."""
    if request.param == "local":
        configure(place, session="5m")
        return lambda path: None
    server = request.getfixturevalue(request.param)
    if request.param == "redis":
        server.do("FLUSHALL")
        configure(place, server.url, "5m")
        return lambda path: sorted(server.do("SMEMBERS", f"quiver:{{test:coord}}:children:{path}"))
    configure(place, f"zookeeper://127.0.0.1:{server.port}/{place.name}", "5m")

    def names(path):
        with server.client() as client:
            return sorted(client.get_children(f"/{place.name}/test/{path}"))

    return names


@pytest.fixture
def start(quiver, place):
    """Starts a command; whatever still runs at the end of the test is killed."""
    children = []

    def start_one(*words):
        child = subprocess.Popen([quiver, words[0], "-c", place / "runtime.cfg", *words[1:]], cwd=place,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        children.append(child)
        return child

    yield start_one
    for child in children:
        if child.poll() is None:
            os.kill(child.pid, signal.SIGCONT)
            child.kill()
        child.wait()
        child.stdout.close()  # not read to its end: what was left running may still hold it
        child.stderr.close()
    for pid in (place / "pids").read_text().split() if (place / "pids").exists() else []:
        if is_alive(pid):
            os.kill(int(pid), signal.SIGKILL)


def run(start, *words):
    """Runs it to its end: exit code, output, complaints."""
    child = start(*words)
    out, err = child.communicate(timeout=PATIENCE_S)
    return child.returncode, out, err


def holder(start, place, verb="lock", name="job"):
    """One whose command has begun: writes its pid, then waits."""
    pidfile = place / f"pid-{time.monotonic_ns()}"
    child = start(verb, name, "--", "sh", "-c", f"echo $$ > {pidfile}.new; mv {pidfile}.new {pidfile}; exec sleep 1000")
    wait_for(pidfile.exists)
    return child, int(pidfile.read_text())


def is_alive(pid):
    """A process that is there and has not ended."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_the_command_has_a_token_and_its_exit_code_is_ours(start):
    code, out, _ = run(start, "lock", "job", "--", "sh", "-c", "echo $QUIVER_LOCK $QUIVER_TOKEN; exit 7")
    name, first = out.split()
    assert (code, name) == (7, "job")
    _, out, _ = run(start, "lock", "job", "--", "sh", "-c", "echo $QUIVER_TOKEN")
    assert int(out) > int(first)


def test_a_command_that_is_killed_says_by_what(start):
    assert run(start, "lock", "job", "--", "sh", "-c", "kill -9 $$")[0] == 128 + 9
    assert run(start, "lock", "job", "--", "no-such-command")[0] == 127


def test_who_tries_gives_up_at_once_and_runs_nothing(start, place):
    holder(start, place)
    code, out, err = run(start, "lock", "job", "--try", "--", "echo", "ran")
    assert (code, out) == (75, "")
    assert "somebody else has it" in err
    assert run(start, "lock", "job", "--try", "--busy-code", "9", "--", "echo", "ran")[:2] == (9, "")
    assert run(start, "lock", "job", "--wait", "100ms", "--", "echo", "ran")[:2] == (75, "")
    assert run(start, "lock", "other", "--try", "--", "echo", "ran")[:2] == (0, "ran\n")


def test_one_holds_it_at_a_time(start, place):
    script = "n=$(cat n); sleep 0.02; echo $((n + 1)) > n"
    (place / "n").write_text("0\n")
    children = [start("lock", "job", "--", "sh", "-c", script) for _ in range(8)]
    for child in children:
        _, err = child.communicate(timeout=PATIENCE_S)
        assert (child.returncode, err) == (0, "")
    assert (place / "n").read_text() == "8\n"


def test_a_killed_holder_leaves_neither_lock_nor_command(start, place):
    child, pid = holder(start, place)
    child.kill()
    assert run(start, "lock", "job", "--wait", "20s", "--", "echo", "ran")[:2] == (0, "ran\n")
    wait_for(lambda: not is_alive(pid))


# Writes down its pid and goes on for ever; once in a session of its own, once with a parent that is gone.
DAEMONS = """
setsid sh -c 'echo $$ >> pids; while :; do sleep 0.1; done' &
(sh -c 'trap "" TERM HUP INT; echo $$ >> pids; while :; do sleep 0.1; done' &)
(setsid sh -c 'sh -c "echo \\$\\$ >> pids; exec sleep 1000" &' &)
while [ "$(wc -l < pids)" -lt 3 ]; do sleep 0.01; done
touch ready
"""
WHO_LIVES = "for p in $(cat pids); do kill -0 $p 2> /dev/null && echo $p lives; done; echo ran"


def guard_of(child):
    """The process that keeps the lock: the only child of what was started."""
    found = pathlib.Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()
    assert len(found) == 1
    return int(found[0])


def daemons(start, place, verb="lock"):
    (place / "pids").write_text("")
    child = start(verb, "job", "--", "sh", "-c", DAEMONS + "exec sleep 1000")
    wait_for((place / "ready").exists)
    return child


@pytest.mark.parametrize("verb", ["lock", "elect"])
def test_what_a_killed_holder_started_is_gone_before_the_next_begins(start, place, on_each, verb):
    child = daemons(start, place, verb)
    second = start(verb, "job", "--", "sh", "-c", WHO_LIVES)
    child.kill()
    out, _ = second.communicate(timeout=PATIENCE_S)
    assert (second.returncode, out) == (0, "ran\n")


def test_what_a_command_leaves_running_is_gone_before_the_next_begins(start, place, on_each):
    (place / "pids").write_text("")
    assert run(start, "lock", "job", "--", "sh", "-c", DAEMONS + "exit 5")[0] == 5
    assert run(start, "lock", "job", "--", "sh", "-c", WHO_LIVES)[:2] == (0, "ran\n")


def test_a_kill_of_the_whole_process_group_does_not_reach_the_guard(quiver, start, place):
    (place / "pids").write_text("")
    child = subprocess.Popen([quiver, "lock", "-c", place / "runtime.cfg", "job", "--", "sh", "-c", DAEMONS + "exec sleep 99"],
                             cwd=place, start_new_session=True)
    wait_for((place / "ready").exists)
    os.killpg(child.pid, signal.SIGKILL)  # a group of its own, not ours
    child.wait()
    assert run(start, "lock", "job", "--", "sh", "-c", WHO_LIVES)[:2] == (0, "ran\n")


def test_without_its_guard_the_front_ends_everything(start, place):
    child = daemons(start, place)
    os.kill(guard_of(child), signal.SIGKILL)
    _, err = child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 1
    assert "was killed by signal" in err
    assert not any(is_alive(pid) for pid in (place / "pids").read_text().split())


def test_without_both_the_session_decides(start, place, redis):
    redis.do("FLUSHALL")
    configure(place, redis.url, "1s")
    child, _ = holder(start, place)
    guard = guard_of(child)
    os.kill(guard, signal.SIGSTOP)
    child.kill()
    os.kill(guard, signal.SIGKILL)
    assert run(start, "lock", "job", "--wait", "40s", "--", "echo", "ran")[:2] == (0, "ran\n")


def test_the_node_of_a_lock_whose_holder_lost_its_session_goes_when_locks_are_listed(start, place, redis):
    redis.do("FLUSHALL")
    configure(place, redis.url, "1s")
    child, _ = holder(start, place)
    guard = guard_of(child)
    os.kill(guard, signal.SIGSTOP)
    child.kill()
    os.kill(guard, signal.SIGKILL)
    held, _ = holder(start, place, "lock", "held")

    def names():
        assert [lock["name"] for lock in listed(start)["locks"] if lock["name"] != "job"] == ["held"]
        return redis.do("SMEMBERS", "quiver:{test:coord}:children:locks")

    wait_for(lambda: names() == {b"held"} or names() == [b"held"])
    assert held.poll() is None


def test_a_stopped_guard_loses_the_lock_and_its_command(start, place):
    child, pid = holder(start, place)
    guard = guard_of(child)
    os.kill(guard, signal.SIGSTOP)
    assert run(start, "lock", "job", "--wait", "40s", "--", "echo", "ran")[:2] == (0, "ran\n")
    os.kill(guard, signal.SIGCONT)
    _, err = child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 1
    assert "the lock was lost" in err
    wait_for(lambda: not is_alive(pid))


@pytest.mark.parametrize("verb", ["lock", "elect"])
def test_names_that_nobody_uses_leave_no_nodes(start, place, on_each, verb):
    parent = {"lock": "locks", "elect": "elections"}[verb]
    children = [start(verb, f"job-{n % 4}", "--", "true") for n in range(12)]
    for child in children:
        child.communicate(timeout=PATIENCE_S)
        assert child.returncode == 0
    child, _ = holder(start, place, verb, "held")
    assert on_each(parent) in (["held"], [b"held"], None)
    child.kill()
    if on_each(parent) is not None:
        wait_for(lambda: on_each(parent) == [])


def test_a_holder_that_was_stopped_too_long_loses_the_lock_and_its_command(start, place):
    child, pid = holder(start, place)
    os.kill(child.pid, signal.SIGSTOP)
    code, out, _ = run(start, "lock", "job", "--wait", "20s", "--", "echo", "ran")
    assert (code, out) == (0, "ran\n")
    os.kill(child.pid, signal.SIGCONT)
    _, err = child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 1
    assert "the lock was lost" in err
    wait_for(lambda: not is_alive(pid))


def test_a_signal_reaches_the_command(start, place):
    child, pid = holder(start, place)
    child.terminate()
    child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 128 + signal.SIGTERM
    assert not is_alive(pid)
    assert run(start, "lock", "job", "--try", "--", "true")[0] == 0


def test_one_leads_and_another_follows(start, place):
    first, pid = holder(start, place, "elect", "boss")
    second = start("elect", "boss", "--", "sh", "-c", "echo $QUIVER_ELECTION $QUIVER_TOKEN; exit 3")
    assert second.poll() is None and is_alive(pid)
    first.kill()
    out, _ = second.communicate(timeout=PATIENCE_S)
    assert second.returncode == 3
    assert out.split()[0] == "boss"


def test_one_that_lost_leadership_leads_again(start, place):
    log = place / "log"
    child = start("elect", "boss", "--", "sh", "-c", f"echo began >> {log}; exec sleep 1000")
    wait_for(log.exists)
    os.kill(child.pid, signal.SIGSTOP)
    assert run(start, "elect", "boss", "--", "true")[0] == 0
    os.kill(child.pid, signal.SIGCONT)
    wait_for(lambda: log.read_text() == "began\nbegan\n")


@pytest.mark.parametrize("words", [["lock"], ["lock", "job"], ["lock", "a/b", "--", "true"],
                                   ["lock", "job", "--wait", "soon", "--", "true"],
                                   ["lock", "job", "--try", "--wait", "1s", "--", "true"],
                                   ["lock", "job", "--busy-code", "900", "--", "true"], ["elect", "boss"]])
def test_wrong_words_are_refused(start, words):
    assert run(start, *words)[0] == 2


# --- the service trylock --------------------------------------------------------------------------------------------------

BUSY = -16


@pytest.fixture
def locker(host, root):
    """A host whose handler takes the locks that its payloads name."""
    plugin = root / "build" / "villains" / "locks.so"
    more = f'handlers = {{ locks = {{ plugin = "{plugin}"; threads = 4; crashes = 1; }};'
    host.configure(change=lambda text: text.replace("handlers = {", more))
    return host.start()


def taken(host, words):
    """What a task with that payload got: trylock's answer and its token."""
    return [int(word) for word in host.cli("submit", "locks", "--wait-for", "60s", words).split()]


def test_a_lock_is_the_tasks_until_it_ends(locker):
    gate = locker.folder / "gate"
    locker.cli("submit", "locks", f"hold one {gate}")
    wait_for((locker.folder / "gate.held").exists)
    assert taken(locker, "take one") == [BUSY, 0]
    assert taken(locker, "take other")[0] == 0
    shell = [locker.quiver, "lock", "one", "--try", "--busy-code", "9", "-c", locker.config, "--", "true"]
    assert subprocess.run(shell, cwd=locker.folder, stderr=subprocess.DEVNULL).returncode == 9
    gate.touch()
    wait_for(lambda: taken(locker, "take one")[0] == 0)
    status, token = taken(locker, "take one")
    assert status == 0 and taken(locker, "take one") > [0, token]
    assert subprocess.run(shell, cwd=locker.folder).returncode == 0


def test_a_lock_of_a_task_that_crashed_is_free(locker):
    gate = locker.folder / "gate"
    locker.cli("submit", "locks", f"die one {gate}")
    wait_for((locker.folder / "gate.held").exists)
    assert taken(locker, "take one") == [BUSY, 0]
    gate.touch()
    locker.wait_for_log("event=crash")
    assert taken(locker, "take one")[0] == 0


# --- several holders, looking, intervening --------------------------------------------------------------------------------

@pytest.fixture
def calm(place):
    """The place with sessions that nobody outwaits."""
    configure(place, session="5m")
    return place


def listed(start, *words):
    code, out, err = run(start, "lock", "list", "--json", *words)
    assert code == 0, err
    return json.loads(out)


def states(start, name):
    """Whether each place of that lock is held, in order."""
    for lock in listed(start)["locks"]:
        if (lock["kind"], lock["name"]) == ("lock", name):
            return [place["holds"] for place in [lock["holder"], *lock["queue"]]]
    return []


def waiting(start, *words):
    """One whose command holds until it is killed; returns at once."""
    return start("lock", *words, "--", "sleep", "1000")


def test_readers_share_and_a_writer_waits_for_all_of_them(start, calm):
    readers = [waiting(start, "job", "--shared") for _ in range(2)]
    wait_for(lambda: states(start, "job") == [True, True])
    writer = waiting(start, "job")
    wait_for(lambda: states(start, "job") == [True, True, False])
    late = waiting(start, "job", "--shared")
    wait_for(lambda: states(start, "job") == [True, True, False, False])
    for reader in readers:
        reader.terminate()
    wait_for(lambda: states(start, "job") == [True, False])
    writer.terminate()
    wait_for(lambda: states(start, "job") == [True])
    late.terminate()


def test_a_semaphore_has_so_many_holders_and_no_more(start, calm):
    holders = [waiting(start, "job", "--semaphore", "2") for _ in range(3)]
    wait_for(lambda: states(start, "job") == [True, True, False])
    assert run(start, "lock", "job", "--semaphore", "2", "--try", "--", "true")[0] == 75
    for one in holders:
        one.terminate()


def test_who_retries_gives_up_after_so_many_or_has_it_in_the_end(start, calm):
    child, pid = holder(start, calm)
    code, _, err = run(start, "lock", "job", "--retries", "2", "--backoff", "1ms,5ms", "--verbose", "--", "true")
    assert code == 75 and err.count("follows after") == 2
    late = start("lock", "job", "--retries", "forever", "--backoff", "1ms,20ms", "--", "echo", "ran")
    child.terminate()
    assert late.communicate(timeout=PATIENCE_S)[0] == "ran\n" and late.returncode == 0


def test_a_lock_is_listed_with_its_holder_and_broken_with_a_trace(start, calm):
    child, pid = holder(start, calm)
    found = listed(start)["locks"][0]["holder"]
    assert (found["command"], found["holds"], found["limit"]) == ("sh", True, 1) and found["pid"] and found["since_ms"]
    next_one = start("lock", "job", "--", "echo", "ran")
    wait_for(lambda: states(start, "job") == [True, False])
    code, out, _ = run(start, "lock", "break", "job")
    assert code == 0 and "broke lock job, held by machine=" in out
    assert child.wait(PATIENCE_S) == 1 and not is_alive(pid)
    assert next_one.communicate(timeout=PATIENCE_S)[0] == "ran\n"
    assert listed(start)["breaks"] == [out.strip()]
    code, _, err = run(start, "lock", "break", "job")
    assert code == 1 and "nobody holds the lock job" in err


def test_a_leader_that_is_asked_to_resign_ends_its_command_first(start, calm):
    first, pid = holder(start, calm, "elect")
    second = start("elect", "job", "--", "sh", "-c", f"kill -0 {pid} && echo both || echo alone")
    wait_for(lambda: [lock["waiting"] for lock in listed(start)["locks"]] == [1])
    code, out, _ = run(start, "elect", "job", "--who", "--json")
    assert code == 0 and json.loads(out)["command"] == "sh"
    assert run(start, "elect", "job", "--resign")[0] == 0
    assert second.communicate(timeout=PATIENCE_S)[0] == "alone\n"
    assert not is_alive(pid)
    wait_for(lambda: run(start, "elect", "job", "--who")[0] == 0)  # it stands again
    first.terminate()
    first.wait(PATIENCE_S)
    assert run(start, "elect", "job", "--who")[0] == 1


def test_who_follows_hears_of_each_join_and_leave_once(host):
    host.configure()
    host.start("--name", "a")
    follower = subprocess.Popen([host.quiver, "members", "--follow", "--json", "-c", host.config], stdout=subprocess.PIPE,
                                text=True)
    try:
        heard = [json.loads(follower.stdout.readline())]
        assert host.stop() == 0
        heard.append(json.loads(follower.stdout.readline()))
        host.start("--name", "b")
        heard.append(json.loads(follower.stdout.readline()))
    finally:
        follower.terminate()
        follower.wait()
        follower.stdout.close()
    assert [(one["event"], one["name"]) for one in heard] == [("joined", "a"), ("left", "a"), ("joined", "b")]
    assert heard[0]["nonce"] == heard[1]["nonce"] != heard[2]["nonce"]


def bench(host, *words):
    """What it prints, for two contenders and a second."""
    host.configure()
    host.start()
    return host.cli("bench", "lock", "--contenders", "2", "--for", "1s", *words)


def test_the_shares_of_contenders_add_up(host):
    measured = json.loads(bench(host, "--json", "--hold", "1ms"))
    shares = measured["contenders"]
    assert len(shares) == 2 and all(one["acquisitions"] > 0 for one in shares)
    assert sum(one["acquisitions"] for one in shares) == measured["acquisitions"]
    assert sum(one["share_percent"] for one in shares) == pytest.approx(100)
    assert measured["per_second"] == pytest.approx(measured["acquisitions"])
    assert 0 < measured["wait_p50_ms"] <= measured["wait_p99_ms"] <= measured["wait_max_ms"]
    assert (measured["lost"], measured["overlaps"], measured["coordination"]) == (0, 0, "local")
    assert json.loads(host.cli("lock", "list", "--json"))["locks"] == [], "nothing of it is left"
    first, *rest = host.cli("bench", "lock", "--contenders", "3", "--for", "200ms").splitlines()
    assert first.startswith("local: ") and "a second" in first
    assert sum(int(line.split()[2]) for line in rest) == int(first.split()[1]) and len(rest) == 3


@pytest.mark.parametrize("words", [(), ("tree",), ("lock", "--contenders", "0"), ("lock", "--contenders", "65"), ("lock", "--for", "25h"),
                                   ("lock", "--hold", "2m")])
def test_what_cannot_be_measured_is_refused(start, words):
    code, _, err = run(start, "bench", *words)
    assert code == 2 and "quiver bench" in err


def test_a_bench_without_a_store_says_how_to_get_one(start, place):
    (place / "var").mkdir()
    code, out, err = run(start, "bench", "lock")
    assert code == 3 and not out and "quiver run" in err
