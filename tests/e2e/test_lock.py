"""`quiver lock` and `quiver elect`: a command that runs in one place at a time, and is stopped when it may not."""
import os
import pathlib
import signal
import subprocess
import time

import pytest

PATIENCE_S = 30


def wait_for(condition):
    """Waits until it holds."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "still not so"
        time.sleep(0.01)


@pytest.fixture
def place(tmp_path):
    """A configuration whose sessions are short."""
    (tmp_path / "plugins").mkdir()
    config = tmp_path / "runtime.cfg"
    config.write_text("""
app = "test"; shards = 1;
store = { url = "sqlite:var/quiver.db"; };
coordination = { url = "local:var"; session = "1s"; };
plugins = "plugins";
handlers = { };
""")
    return tmp_path


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
        child.communicate()


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
    assert (code, out) == (1, "")
    assert "somebody else has it" in err
    assert run(start, "lock", "job", "--try", "--busy-code", "75", "--", "echo", "ran")[:2] == (75, "")
    assert run(start, "lock", "job", "--wait", "100ms", "--", "echo", "ran")[:2] == (1, "")
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
