"""Handlers in any language: the exec and pipe plugins in a real runner, good and bad commands, and nothing left over."""
import base64
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import uuid

import pytest

PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
ALL_BYTES = bytes(range(256)) + b"\n\n\0\0\r\n"
MIB = 1024 * 1024


# --- what the tests share ---------------------------------------------------------------------------------------------

def wait_until(condition, what, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s: {what()}"
        time.sleep(0.01)


class Bench:
    """Runs `quiver try` with a mark in the environment of whatever it starts, to find what it leaves behind."""

    def __init__(self, quiver, root, folder):
        self.quiver, self.root, self.folder = quiver, root, folder
        self.mark = f"QVTEST={uuid.uuid4()}"

    def command(self, plugin, settings, *options):
        words = [str(self.quiver), "try", str(self.root / "plugins" / f"{plugin}.so"), "--json"]
        for name, value in settings.items():
            if isinstance(value, (list, tuple)):
                for index, element in enumerate(value):
                    words += ["--set", f"{name}.{index}={element}"]
            else:
                words += ["--set", f"{name}={value}"]
        return words + [str(option) for option in options]

    def start(self, plugin, settings, *options, env=None, **more):
        settings = {**settings, "env": [self.mark, *settings.get("env", [])]}
        name, value = self.mark.split("=")
        return subprocess.Popen(self.command(plugin, settings, *options), env={**os.environ, **(env or {}), name: value},
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)

    def tries(self, plugin, settings, *options, stdin=b"", env=None):
        """What became of each task, by number; and what was logged."""
        process = self.start(plugin, settings, *options, stdin=subprocess.PIPE, env=env)
        try:
            out, err = process.communicate(stdin, timeout=100)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        tasks = [json.loads(line) for line in out.splitlines()]
        tasks.sort(key=lambda task: int(task.get("id", "try-0").split("-")[1]))
        return tasks, err.decode(errors="replace")

    def one(self, plugin, settings, payload=b"", *options, **more):
        tasks, log = self.tries(plugin, settings, "--payload", "-", *options, stdin=payload, **more)
        assert len(tasks) == 1, (tasks, log)
        return tasks[0], log

    def outcomes(self, plugin, settings, lines, *options):
        tasks, log = self.tries(plugin, settings, "--lines", *options, stdin="\n".join(lines).encode() + b"\n")
        return [task.get("outcome") for task in tasks], tasks, log

    def left_over(self):
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                if self.mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found.append((int(entry.name), (entry / "cmdline").read_bytes()))
            except OSError:
                continue
        return found

    def script(self, text, name="worker.py"):
        path = self.folder / name
        path.write_text(textwrap.dedent(text))
        return path


@pytest.fixture
def bench(quiver, root, tmp_path):
    bench = Bench(quiver, root, tmp_path)
    yield bench
    wait_until(lambda: not bench.left_over(), lambda: f"left over: {bench.left_over()}")


def result_of(task):
    if "result_base64" in task:
        return base64.b64decode(task["result_base64"])
    return task["result"].encode() if "result" in task else None


def children_of(pid):
    return [int(child) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()]


def kill_the_runner(bench, process, ready):
    """Waits for the file that says that all is running, kills the runner with SIGKILL, returns the outcome."""
    wait_until(ready.exists, lambda: "the command runs")
    runners = children_of(process.pid)
    assert len(runners) == 1
    assert len(bench.left_over()) > 3  # try, runner, guard, child, grandchild
    os.kill(runners[0], signal.SIGKILL)
    out, _ = process.communicate(timeout=60)
    return json.loads(out.splitlines()[0])["outcome"]


# --- exec -------------------------------------------------------------------------------------------------------------

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


@pytest.mark.parametrize("status,outcome", [(0, "DONE"), (65, "REJECT"), (69, "UNAVAILABLE"), (75, "RETRY"),
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


# --- pipe: the workers of the SDK --------------------------------------------------------------------------------------

# Of each language: its interpreter, its example, and a handler that does what the payload says.
PYTHON_ALL = """
    import os, sys
    sys.path.insert(0, "{sdk}/python")
    from quiver_pipe import Outcome, serve

    def handle(task):
        what = task.payload.decode()
        if what == "all":
            print("printed")
            task.tell("log", "a warning", level="warn")
            task.tell("progress", done=1, total=2)
            task.tell("submit", b"a\\0b", handler="mail", key="k", lane="high", delay_ms=50, **{{"header.trace": "t"}})
            return f"{{task.id}} {{task.key}} {{task.handler}} {{task.attempt}}"
        if what == "save":
            task.tell("checkpoint", b"half way")
            raise Outcome("retry", "not yet", after_ms=1234)
        if what == "pid":
            return str(os.getpid())
        if what == "boom":
            raise ValueError("no good")
        raise Outcome(what, "because")

    serve(handle)
"""
NODE_ALL = """
    const {{ serve, Outcome }} = require('{sdk}/node/quiver_pipe');
    serve(async (task) => {{
      const what = task.payload.toString();
      if (what === 'all') {{
        console.log('printed');
        task.tell('log', 'a warning', {{ level: 'warn' }});
        task.tell('progress', '', {{ done: 1, total: 2 }});
        task.tell('submit', 'a\\0b', {{ handler: 'mail', key: 'k', lane: 'high', delay_ms: 50, 'header.trace': 't' }});
        return `${{task.id}} ${{task.key}} ${{task.handler}} ${{task.attempt}}`;
      }}
      if (what === 'save') {{
        task.tell('checkpoint', 'half way');
        throw new Outcome('retry', 'not yet', {{ after_ms: 1234 }});
      }}
      if (what === 'pid') return String(process.pid);
      if (what === 'boom') throw new Error('no good');
      throw new Outcome(what, 'because');
    }});
"""
RUBY_ALL = """
    require "{sdk}/ruby/quiver_pipe"
    QuiverPipe.serve do |task|
      case task.payload
      when "all"
        puts "printed"
        task.tell.(:log, "a warning", level: "warn")
        task.tell.(:progress, done: 1, total: 2)
        task.tell.(:submit, "a\\0b", handler: "mail", key: "k", lane: "high", delay_ms: 50, "header.trace": "t")
        "#{{task.id}} #{{task.key}} #{{task.handler}} #{{task.attempt}}"
      when "save"
        task.tell.(:checkpoint, "half way")
        raise QuiverPipe::Outcome.new(:retry, "not yet", after_ms: 1234)
      when "pid" then Process.pid
      when "boom" then raise ArgumentError, "no good"
      else raise QuiverPipe::Outcome.new(task.payload, "because")
      end
    end
"""
LANGUAGES = {
    "python": (PYTHON, "python/echo.py", PYTHON_ALL, "ValueError: no good"),
    "node": (shutil.which("node"), "node/echo.js", NODE_ALL, "Error: no good"),
    "ruby": (shutil.which("ruby"), "ruby/echo.rb", RUBY_ALL, "ArgumentError: no good"),
}


@pytest.fixture(params=LANGUAGES)
def language(request, bench):
    interpreter, echo, text, boom = LANGUAGES[request.param]
    if not interpreter:
        pytest.skip(f"{request.param} is not installed")
    sdk = bench.root / "sdk" / "pipe"
    script = bench.script(text.format(sdk=sdk), f"all{pathlib.Path(echo).suffix}")
    quiet = ["PYTHONDONTWRITEBYTECODE=1"]
    return {"echo": {"command": [interpreter, sdk / echo], "env": quiet},
            "all": {"command": [interpreter, script], "env": quiet}, "boom": boom}


def test_a_worker_echoes_any_bytes(bench, language):
    task, _ = bench.one("pipe", language["echo"], ALL_BYTES)
    assert (task["outcome"], result_of(task)) == ("DONE", b"hello, " + ALL_BYTES)


def test_a_worker_takes_and_returns_a_mebibyte(bench, language):
    payload = os.urandom(MIB - 7)
    task, _ = bench.one("pipe", language["echo"], payload)
    assert task["outcome"] == "DONE"
    assert result_of(task) == b"hello, " + payload


def test_a_worker_rejects(bench, language):
    task, _ = bench.one("pipe", language["echo"], b"")
    assert (task["outcome"], task["error"]) == ("REJECT", "the payload is empty")


def test_a_result_that_the_host_refuses_is_a_reject(bench, language):
    task, _ = bench.one("pipe", language["echo"], b"x" * MIB)
    assert task["outcome"] == "REJECT"
    assert f"result of {MIB + 7} bytes refused" in task["error"]


def test_a_worker_has_the_services(bench, language):
    task, log = bench.one("pipe", language["all"], b"all", "--key", "schlüssel=1", "--handler", "h")
    assert task["outcome"] == "DONE"
    assert task["result"] == "try-1 schlüssel=1 h 1"
    (submit,) = task["submits"]
    assert submit == {"handler": "mail", "key": "k", "lane": 1, "delay_ms": 50, "payload": "a\0b"}
    assert "info: printed" in log
    assert "warn: a warning" in log


def test_a_worker_chooses_any_outcome(bench, language):
    outcomes, tasks, log = bench.outcomes("pipe", language["all"], ["reject", "retry", "save", "boom"])
    assert outcomes == ["REJECT", "RETRY", "RETRY", "RETRY"]
    assert tasks[0]["error"] == tasks[1]["error"] == "because"
    assert (tasks[2]["error"], tasks[2]["retry_after_ms"], tasks[2]["checkpoint"]) == ("not yet", 1234, "half way")
    assert tasks[3]["error"] == language["boom"]
    assert "no good" in log
    task, _ = bench.one("pipe", language["all"], b"unavailable")
    assert (task["outcome"], task["error"]) == ("UNAVAILABLE", "because")


def test_a_worker_stays_and_each_seat_has_its_own(bench, language):
    _, tasks, _ = bench.outcomes("pipe", language["all"], ["pid"] * 20)
    assert len({task["result"] for task in tasks}) == 1
    outcomes, _, _ = bench.outcomes("pipe", language["all"], ["pid"] * 20, "--threads", "2")
    assert outcomes == ["DONE"] * 20


# --- pipe: bad workers -------------------------------------------------------------------------------------------------

# A worker of its own, independent of the SDK's; what it does when the payload is "bad" is the test's.
VILLAIN = """
    import os, signal, subprocess, sys, time

    def send(kind, body=b"", **fields):
        frame = kind.encode() + b"\\n" + "".join(f"{n}={v}\\n" for n, v in fields.items()).encode() + b"\\n" + body
        os.write(1, len(frame).to_bytes(4, "big") + frame)

    def receive():
        frame = sys.stdin.buffer.read(int.from_bytes(sys.stdin.buffer.read(4) or sys.exit(), "big"))
        head, _, body = frame.partition(b"\\n\\n")
        return dict(line.split("=", 1) for line in head.decode().split("\\n")[1:]), body

    receive()
    send("ready", protocol=1)
    while True:
        task, payload = receive()
        if payload == b"bad": BAD
        send("result", str(os.getpid()).encode(), id=task["id"])
        send("done", id=task["id"])
"""


def villain(bench, bad, **more):
    return {"command": [PYTHON, bench.script(VILLAIN.replace("BAD", bad))], "kill_after": "300ms", **more}


@pytest.mark.parametrize("bad,why", [
    ("os.kill(os.getpid(), 11)", "the worker ended: killed by SIGSEGV"),
    ("os.write(2, b'last words'); os._exit(3)", "the worker ended: exit status 3: last words"),
    ("os._exit(0)", "the worker ended: exit status 0"),
    ("print('Hello, world', flush=True); time.sleep(1000)", 'sent "Hello, world.", which is no frame: its length is over max_frame'),
    ("os.write(1, b'\\0\\0\\0\\5abcde')", "which is no frame: its head does not end"),
    ("os.write(1, b'\\0\\0\\0\\7a\\nb\\n\\ncd')", "which is no frame: its head is not made of lines"),
    ("os.write(1, b'\\0\\0\\0\\7a\\0=\\n\\ncd')", "which is no frame: its head is not made of lines"),
    ("os.write(1, b'\\0\\0\\1\\0done'); os._exit(1)", "ended in the middle of a frame: exit status 1"),
    ("os.write(1, b'\\0\\0'); os._exit(1)", "ended in the middle of a frame: exit status 1"),
    ("os.close(1); time.sleep(1000)", "the worker closed its stdin or stdout"),
    ("send('done', id='another')", "sent a frame for another task"),
    ("send('done')", "sent a frame without the task's id"),
    ("send('what', id=task['id'])", "sent a frame of an unknown kind"),
    ("send('progress', id=task['id'], done='x')", "a field that is no number"),
    ("send('retry', id=task['id'], after_ms='-1')", "after_ms is no number"),
    ("send('submit', id=task['id'], lane='fast')", "lane is not low, normal or high"),
    ("subprocess.Popen(['sleep', '1000']); os._exit(7)", "the worker ended: exit status 7"),
])
def test_a_bad_worker_costs_its_task_only(bench, bad, why):
    outcomes, tasks, _ = bench.outcomes("pipe", villain(bench, bad), ["one", "bad", "two"])
    assert outcomes == ["DONE", "RETRY", "DONE"]
    assert why in tasks[1]["error"]
    assert tasks[0]["result"] != tasks[2]["result"]  # another process


@pytest.mark.parametrize("bad", [
    "time.sleep(1000)",
    "os.write(1, b'\\0\\0\\1\\0done'); time.sleep(1000)",
    "signal.signal(15, signal.SIG_IGN); time.sleep(1000)",
    "subprocess.Popen(['sleep', '1000']); time.sleep(1000)",
    "os.close(0); time.sleep(1000)",
])
def test_a_worker_that_hangs_is_stopped_at_the_timeout(bench, bad):
    outcomes, tasks, _ = bench.outcomes(
        "pipe", villain(bench, bad), ["one", "bad", "two"], "--timeout", "1s", "--grace", "60s")
    assert outcomes == ["DONE", "RETRY", "DONE"]
    how = "killed" if "SIG_IGN" in bad else "told by SIGTERM"
    assert tasks[1]["error"] == f"stopped before it was done; the worker was {how}"


def test_a_worker_may_answer_when_it_is_stopped(bench):
    bad = ("signal.signal(15, lambda *_: (send('retry', b'half way', id=task['id'], after_ms=5), os._exit(0)))"
           "; time.sleep(1000)")
    outcomes, tasks, _ = bench.outcomes(
        "pipe", villain(bench, bad, kill_after="60s"), ["bad", "two"], "--timeout", "500ms", "--grace", "60s")
    assert outcomes == ["RETRY", "DONE"]
    assert (tasks[0]["error"], tasks[0]["retry_after_ms"]) == ("half way", 5)


@pytest.mark.parametrize("bad", [
    "send('done', id=task['id']); os._exit(0)",
    "send('done', id=task['id']); os.close(1); time.sleep(1000)",
    "send('done', id=task['id']); send('done', id=task['id']); continue",
    "send('done', id=task['id']); os.write(1, b'rubbish'); time.sleep(1000)",
])
def test_what_a_worker_does_after_its_answer_costs_nothing_that_was_answered(bench, bad):
    lines = ["one", "bad"]
    outcomes, _, _ = bench.outcomes("pipe", villain(bench, bad), lines)
    assert outcomes == ["DONE", "DONE"]


def test_a_worker_that_floods_stderr_still_answers(bench):
    bad = "sys.stderr.write('complaint\\n' * 1000000)"
    outcomes, _, log = bench.outcomes("pipe", villain(bench, bad), ["bad", "two"])
    assert outcomes == ["DONE", "DONE"]
    assert "info: complaint" in log and "lines dropped" in log


@pytest.mark.parametrize("text,why", [
    ("this is no python", "the worker ended: exit status 1: "),
    ("import sys; sys.exit(4)", "the worker ended: exit status 4"),
    ("print('hello')", 'sent "hello.", which is no frame'),
    ("import time; time.sleep(1000)", "did not say ready within start_timeout"),
    ("import os; os.write(1, b'\\0\\0\\0\\x12ready\\nprotocol=2\\n\\n'); input()", "speaks another protocol than 1"),
    ("import os; os.write(1, b'\\0\\0\\0\\7ready\\n\\n'); input()", "speaks another protocol than 1"),
    ("import os; os.write(1, b'\\0\\0\\0\\6done\\n\\n'); input()", "did not begin with a ready frame"),
])
def test_a_worker_that_cannot_start_is_refused_at_once(bench, text, why):
    tasks, log = bench.tries("pipe", {"command": [PYTHON, bench.script(text)], "start_timeout": "1s"}, "--payload", "x")
    said = json.dumps(tasks) + log
    assert why in said or why.replace('"', '\\"') in said
    assert "outcome" not in said


def test_tasks_keep_their_attempts_while_no_worker_can_be_started(bench):
    broken = bench.folder / "broken"
    settings = villain(bench, f"open({str(broken)!r}, 'w'); os._exit(1)")
    script = bench.script(f"import os, sys; os.path.exists({str(broken)!r}) and sys.exit('out of order'); "
                          f"exec(open(sys.argv[1]).read())", "start.py")
    settings["command"] = [PYTHON, script, settings["command"][1]]
    outcomes, tasks, _ = bench.outcomes("pipe", settings, ["one", "bad", "two"])
    assert outcomes == ["DONE", "RETRY", "UNAVAILABLE"]
    assert tasks[2]["error"] == "no worker: the worker ended: exit status 1: out of order"


def test_a_worker_that_keeps_dying_is_restarted_with_pauses(bench):
    outcomes, tasks, _ = bench.outcomes("pipe", villain(bench, "os._exit(1)"), ["bad"] * 5)
    assert outcomes[:3] == ["RETRY"] * 3
    assert "UNAVAILABLE" in outcomes
    assert any("3 failures in a row, next start in" in task["error"] for task in tasks)


@pytest.mark.parametrize("threads", [1, 3])
def test_pipe_leaves_nothing_when_its_runner_is_killed(bench, threads):
    ready = bench.folder / "ready"
    bad = f"subprocess.Popen(['sh', '-c', 'sleep 1000 & touch {ready}; sleep 1000']); time.sleep(1000)"
    process = bench.start("pipe", villain(bench, bad), "--payload", "bad", "--threads", threads)
    assert kill_the_runner(bench, process, ready) == "CRASHED"


@pytest.mark.parametrize("plugin", ["exec", "pipe"])
def test_nothing_is_left_when_the_host_is_killed(bench, plugin):
    ready = bench.folder / "ready"
    shell = f"sleep 1000 & touch {ready}; sleep 1000"
    bad = f"subprocess.Popen(['sh', '-c', '{shell}']); time.sleep(1000)"
    process = bench.start(plugin, {"shell": shell} if plugin == "exec" else villain(bench, bad), "--payload", "bad")
    wait_until(ready.exists, lambda: "the command runs")
    process.kill()
    process.communicate(timeout=60)


def test_pipe_closes_a_worker_that_does_not_leave_by_itself(bench):
    settings = villain(bench, "signal.signal(15, signal.SIG_IGN); send('done', id=task['id']); time.sleep(1000)")
    task, _ = bench.one("pipe", settings, b"bad")
    assert task["outcome"] == "DONE"


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
