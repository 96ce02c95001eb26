"""Handlers in any language: a command per task, and what the one page says about all of them."""
import json
import os
import re
import sys

import pytest

from tries_of_commands import ALL_BYTES, bench, kill_the_runner, MIB, PYTHON, result_of  # noqa: F401 (a fixture)


def test_exec_gives_the_payload_and_takes_the_result_as_bytes(bench):
    task, _ = bench.one("exec", {"command": ["cat"]}, ALL_BYTES)
    assert task["outcome"] == "DONE"
    assert result_of(task) == ALL_BYTES


def test_exec_without_output_has_no_result(bench):
    task, _ = bench.one("exec", {"command": ["true"]}, b"x")
    assert task["outcome"] == "DONE"
    assert result_of(task) is None


@pytest.mark.parametrize("shell", [
    "cat",                                                       # reads and writes at once
    f"{PYTHON} -c 'import sys; sys.stdout.write(\"x\" * {MIB}); sys.stdout.flush(); sys.stdin.read()'",
    f"exec <&-; head -c {MIB} /dev/zero",                        # never reads
])
def test_exec_does_not_block_on_a_mebibyte_in_and_out(bench, shell):
    payload = os.urandom(MIB)
    task, _ = bench.one("exec", {"shell": shell}, payload)
    assert task["outcome"] == "DONE"
    assert len(result_of(task)) == MIB
    if shell == "cat":
        assert result_of(task) == payload


@pytest.mark.parametrize("status,outcome", [(0, "DONE"), (65, "REJECT"), (69, "UNAVAILABLE"), (79, "LATER"), (75, "RETRY"),
                                            (1, "RETRY"), (127, "RETRY"), (139, "RETRY")])
def test_exec_exit_codes_are_outcomes(bench, status, outcome):
    task, _ = bench.one("exec", {"shell": f"exit {status}"})
    assert task["outcome"] == outcome
    if status:
        assert task["error"] == f"exit status {status}"


def test_exec_stderr_is_logged_and_its_last_lines_are_the_error(bench):
    # Few enough lines that a busy host takes all of them, together longer than an error text.
    task, log = bench.one("exec", {"shell": "for i in $(seq 10 29); do printf '%0100d\\n' $i >&2; done; printf end >&2; exit 1"})
    assert "info: 0" in log and "010\n" in log and "info: end" in log
    assert task["error"].startswith("exit status 1: 0")
    assert task["error"].endswith("028|" + "29".zfill(100) + "|end")
    assert "010|" not in task["error"] and len(task["error"]) < 1024


def test_exec_survives_a_flood_of_stderr(bench):
    task, log = bench.one("exec", {"shell": "yes complaint | head -c 30000000 >&2; echo fine"})
    assert (task["outcome"], result_of(task)) == ("DONE", b"fine\n")
    assert "lines dropped" in log


def test_exec_rejects_more_output_than_allowed(bench):
    task, _ = bench.one("exec", {"shell": "yes", "max_stdout": "10KiB"})
    assert task["outcome"] == "REJECT"
    assert "more than max_stdout = 10240 bytes" in task["error"]
    task, _ = bench.one("exec", {"shell": "head -c 10240 /dev/zero", "max_stdout": "10KiB"})
    assert task["outcome"] == "DONE"


def test_exec_tells_the_command_about_its_task(bench):
    task, _ = bench.one("exec", {"shell": "env"}, b"", "--key", "user 7", "--handler", "mail", "--timeout", "60s")
    env = dict(line.split("=", 1) for line in task["result"].splitlines())
    assert env["QUIVER_ID"] == "try-1"
    assert env["QUIVER_KEY"] == "user 7"
    assert env["QUIVER_HANDLER"] == "mail"
    assert env["QUIVER_ATTEMPT"] == "1"
    assert env["QUIVER_FENCE_EPOCH"].isdigit() and env["QUIVER_FENCE_START"].isdigit()
    assert 0 < int(env["QUIVER_DEADLINE_MS"]) <= 60000


def test_exec_hands_on_a_small_environment(bench, tmp_path):
    settings = {"shell": "pwd; env", "cwd": tmp_path, "env": ["MODE=fast=1", "WANTED", "LANG=xx"]}
    task, _ = bench.one("exec", settings, env={"SECRET": "s", "WANTED": "w", "LANG": "C"})
    where, *env = task["result"].splitlines()
    assert where == str(tmp_path)
    assert "MODE=fast=1" in env and "WANTED=w" in env and "LANG=xx" in env
    assert "LANG=C" not in env
    assert any(line.startswith("PATH=") for line in env)
    assert not any(line.startswith("SECRET") for line in env)


def test_exec_uses_no_shell_unless_asked(bench):
    task, _ = bench.one("exec", {"command": ["echo", "$HOME; exit 3", "*"]})
    assert task["result"] == "$HOME; exit 3 *\n"


@pytest.mark.parametrize("settings,why", [
    ({}, "what to run is not set"),
    ({"command": ["no-such-program-here"]}, "no-such-program-here: not found in PATH="),
    ({"command": ["/no/such/file"]}, "/no/such/file: No such file or directory"),
    ({"command": ["/etc/passwd"]}, "/etc/passwd: not an executable file"),
    ({"command": ["/tmp"]}, "/tmp: not an executable file"),
    ({"command": ["true"], "shell": "true"}, "both `command` and `shell`"),
    ({"command": ["true"], "cwd": "/no/such"}, "cwd /no/such: No such file"),
    ({"command": ["true"], "cwd": "/etc/passwd"}, "cwd /etc/passwd: "),
    ({"command": ["true"], "env": ["=x"]}, "has no name"),
    ({"command": ["true"], "env": ["QUIVER_ID=1"]}, "begin with QUIVER_"),
    ({"command": ["true"], "kill_after": "2 weeks"}, 'kill_after = "2 weeks"'),
    ({"command": ["true"], "kill_after": "-1s"}, 'kill_after = "-1s"'),
])
@pytest.mark.parametrize("plugin", ["exec", "pipe"])
def test_a_wrong_setting_is_refused_with_its_reason(bench, plugin, settings, why):
    tasks, log = bench.tries(plugin, settings, "--payload", "x")
    said = json.dumps(tasks) + log
    assert why.replace('"', '\\"') in said or why in said
    assert "outcome" not in said


@pytest.mark.parametrize("name,number", [("SEGV", "SIGSEGV"), ("KILL", "SIGABRT"), ("ABRT", "SIGABRT")])
def test_exec_death_by_signal_is_a_crash_of_that_task_alone(bench, name, number):
    outcomes, tasks, log = bench.outcomes(
        "exec", {"shell": f'[ "$(cat)" != bad ] || kill -{name} $$'}, ["one", "bad", "two"])
    assert outcomes == ["DONE", "CRASHED", "DONE"]
    assert f"crashed: {number}" in tasks[1]["error"]
    assert f"the command was killed by SIG{name}; its task is charged with a crash" in log


def test_exec_stops_the_whole_group_at_the_timeout(bench):
    task, _ = bench.one("exec", {"shell": "sleep 1000 & echo bye >&2; sleep 1000"}, b"", "--timeout", "500ms")
    assert task["outcome"] == "RETRY"
    assert task["error"] == "stopped before it was done, killed by SIGTERM: bye"


def test_exec_kills_what_ignores_sigterm_before_the_grace_ends(bench):
    settings = {"shell": "trap '' TERM; sleep 1000 & sleep 1000", "kill_after": "300ms"}
    task, _ = bench.one("exec", settings, b"", "--timeout", "300ms", "--grace", "60s")
    assert task["outcome"] == "RETRY"
    assert "killed by SIGKILL" in task["error"]


def test_exec_lets_a_stopped_command_finish(bench):
    settings = {"shell": "trap 'echo saved; exit 0' TERM; while :; do sleep 0.05; done", "kill_after": "60s"}
    task, _ = bench.one("exec", settings, b"", "--timeout", "300ms", "--grace", "60s")
    assert (task["outcome"], result_of(task)) == ("DONE", b"saved\n")


def test_exec_does_not_wait_for_a_grandchild_that_holds_stdout(bench):
    task, _ = bench.one("exec", {"shell": "sleep 1000 & echo mine"}, b"", "--timeout", "60s")
    assert (task["outcome"], result_of(task)) == ("DONE", b"mine\n")


@pytest.mark.parametrize("threads", [1, 3])
def test_exec_leaves_nothing_when_its_runner_is_killed(bench, tmp_path, threads):
    ready = tmp_path / "ready"
    process = bench.start("exec", {"shell": f"(sleep 1000 & touch {ready}; sleep 1000) & sleep 1000"},
                          "--payload", "x", "--threads", threads)
    assert kill_the_runner(bench, process, ready) == "CRASHED"


def test_exec_has_a_command_per_seat(bench):
    lines = [f"{i}" for i in range(40)]
    outcomes, tasks, _ = bench.outcomes("exec", {"command": ["cat"]}, lines, "--threads", "4", "--processes", "2")
    assert outcomes == ["DONE"] * 40
    assert sorted(task["result"] for task in tasks) == sorted(lines)


# --- the one page ------------------------------------------------------------------------------------------------------

def test_the_worker_of_the_protocol_page_works(bench):
    page = (bench.root / "sdk" / "pipe" / "README.md").read_text()
    text = page.split("```python\n", 1)[1].split("```", 1)[0]
    outcomes, tasks, _ = bench.outcomes("pipe", {"command": [PYTHON, bench.script(text)]}, ["abc", "def"])
    assert outcomes == ["DONE", "DONE"]
    assert [task["result"] for task in tasks] == ["ABC", "DEF"]


def test_the_frame_of_the_protocol_page_is_one(root):
    page = (root / "sdk" / "pipe" / "README.md").read_text()
    dump = "".join(re.findall(r"^[0-9a-f]{4}  ((?:[0-9a-f]{2} )+)", page, re.M))
    frame = bytes.fromhex(dump)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert frame[4:] == b"task\nid=01-7\nkey=user-7\nhandler=up\nattempt=1\n\nab\0c"


@pytest.mark.parametrize("page", ["plugins/exec/README.md", "plugins/pipe/README.md", "sdk/pipe/README.md"])
def test_the_links_of_a_page_lead_somewhere(root, page):
    targets = re.findall(r"\]\(([^)#:]+)\)", (root / page).read_text())
    assert targets
    for target in targets:
        assert ((root / page).parent / target).exists(), target


@pytest.mark.parametrize("plugin", ["exec", "pipe"])
def test_the_settings_of_a_page_are_the_settings_of_its_plugin(bench, plugin):
    """Set them all: the host reports none of them as unknown."""
    page = (bench.root / "plugins" / plugin / "README.md").read_text()
    rows = page.split("| setting |", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    names = [name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert {"command", "cwd", "env", "kill_after"} <= set(names)
    command = ["true"] if plugin == "exec" else [PYTHON, "-B", bench.root / "sdk/pipe/python/echo.py"]
    values = {"command": command, "cwd": "/", "env": ["A=b"], "max_stdout": "1KiB", "max_frame": "1KiB"}
    settings = {name: values.get(name, "1s") for name in names if name != "shell"}
    _, log = bench.tries(plugin, {**settings, "no_such_setting": "1"}, "--payload", "x")
    assert re.findall(r"never read .*: (.*)", log) == ["no_such_setting"]
