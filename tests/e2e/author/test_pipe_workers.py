"""Handlers in any language: the SDK's workers behind the pipe plugin, and bad ones."""
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

import pytest

from tries_of_commands import ALL_BYTES, bench, kill_the_runner, MIB, PYTHON, result_of, wait_until  # noqa: F401 (a fixture)


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
        if what.startswith("print"):
            print(what)
            print("unended", what, end="")
            return None
        if what == "numbers":
            return repr([task.attempt, task.fence_epoch > 0, task.fence_start + 1, task.attempts_max, task.crashes])
        if what == "names":
            return " ".join(vars(task))
        if what == "headers":
            return repr([task.headers["t"], list(task.headers["digest"])]).replace("'", '"')
        if what == "later":
            raise Outcome("later", "it is away", after_ms=4321)
        if what == "imposter":
            error = RuntimeError("not an outcome")
            error.kind = "reject"
            raise error
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
      if (what === 'headers') return JSON.stringify([task.headers.t, [...task.headers.digest]]);
      if (what === 'later') throw new Outcome('later', 'it is away', {{ after_ms: 4321 }});
      if (what === 'pid') return String(process.pid);
      if (what === 'boom') throw new Error('no good');
      if (what.startsWith('print')) {{
        console.log(what);
        process.stdout.write(`unended ${{what}}`);
        return null;
      }}
      if (what === 'numbers') return JSON.stringify([task.attempt, task.fence_epoch > 0, task.fence_start + 1, task.attempts_max, task.crashes]);
      if (what === 'names') return Object.keys(task).join(' ');
      if (what === 'imposter') throw Object.assign(new Error('not an outcome'), {{ kind: 'reject' }});
      if (what === 'null') throw null;
      if (what === 'undefined') throw undefined;
      if (what === 'bare') throw Object.create(null);
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
      when "headers" then [task.headers["t"], task.headers["digest"].bytes].inspect
      when "later" then raise QuiverPipe::Outcome.new(:later, "it is away", after_ms: 4321)
      when "pid" then Process.pid
      when "boom" then raise ArgumentError, "no good"
      when /^print/
        puts task.payload
        print "unended ", task.payload
        nil
      when "numbers" then [task.attempt, task.fence_epoch > 0, task.fence_start + 1, task.attempts_max, task.crashes].inspect
      when "imposter" then raise Class.new(StandardError) {{ def kind = "reject" }}, "not an outcome"
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
    task, _ = bench.one("pipe", language["all"], b"later")
    assert (task["outcome"], task["error"], task["retry_after_ms"]) == ("LATER", "it is away", 4321)
    task, _ = bench.one("pipe", language["all"], b"unavailable")
    assert (task["outcome"], task["error"]) == ("UNAVAILABLE", "because")


def test_a_header_may_be_bytes(bench, language):
    task, _ = bench.one("pipe", language["all"], b"headers", "--header", "t=x", "--header64", "digest=AAEK/w==")
    assert json.loads(task["result"]) == ["x", [0, 1, 10, 255]]


def test_what_a_worker_prints_is_logged_under_the_task_that_printed_it(bench, language):
    outcomes, _, log = bench.outcomes("pipe", language["all"], ["print one", "print two", "pid"])
    assert outcomes == ["DONE"] * 3
    lines = [line for line in log.splitlines() if "print" in line]
    assert lines == ["try-1: info: print one", "try-1: info: unended print one",
                     "try-2: info: print two", "try-2: info: unended print two"]


def test_an_unexpected_error_is_logged_at_level_error_with_its_place(bench, language):
    _, log = bench.one("pipe", language["all"], b"boom")
    errors = [line for line in log.splitlines() if line.startswith("try-1: error: ")]
    assert any("no good" in line for line in errors), log
    assert any(language["all"]["command"][1].name in line for line in errors), log
    assert "try-1: info:" not in log


def test_numbers_of_a_task_are_numbers(bench, language):
    task, _ = bench.one("pipe", language["all"], b"numbers")
    assert json.loads(task["result"].replace("True", "true")) == [1, True, 2, 4, 0]


@pytest.mark.parametrize("name,types,field", [("python", "python/quiver_pipe.pyi", r"^    (?:def )?(\w+)[:(]"),
                                              ("node", "node/quiver_pipe.d.ts", r"^  (\w+)\??[:(]")])
def test_the_types_name_every_field_of_a_task(bench, name, types, field):
    interpreter, echo, text, _ = LANGUAGES[name]
    if not interpreter:
        pytest.skip(f"{name} is not installed")
    sdk = bench.root / "sdk" / "pipe"
    script = bench.script(text.format(sdk=sdk), f"all{pathlib.Path(echo).suffix}")
    task, _ = bench.one("pipe", {"command": [interpreter, script]}, b"names", "--timeout", "60s")
    declared = re.split(r"(?:class|interface) Task", (sdk / types).read_text())[1]
    declared = re.split(r"^(?:def|class|export)", declared, flags=re.MULTILINE)[0]
    assert set(re.findall(field, declared, re.MULTILINE)) == set(task["result"].split())


def test_only_the_librarys_own_error_chooses_an_outcome(bench, language):
    outcomes, tasks, _ = bench.outcomes("pipe", language["all"], ["imposter", "no outcome", "pid"])
    assert outcomes == ["RETRY", "RETRY", "DONE"]
    assert "not an outcome" in tasks[0]["error"]
    assert "reject, retry, later, limited or unavailable" in tasks[1]["error"]


@pytest.mark.parametrize("thrown,shown", [("null", "null"), ("undefined", "undefined"), ("bare", "[Object: null prototype] {}")])
def test_node_may_throw_anything(bench, thrown, shown):
    if not LANGUAGES["node"][0]:
        pytest.skip("node is not installed")
    script = bench.script(NODE_ALL.format(sdk=bench.root / "sdk" / "pipe"), "all.js")
    outcomes, tasks, _ = bench.outcomes("pipe", {"command": [LANGUAGES["node"][0], script]}, ["pid", thrown, "pid"])
    assert outcomes == ["DONE", "RETRY", "DONE"]
    assert tasks[1]["error"] == f"thrown: {shown}"
    assert tasks[0]["result"] == tasks[2]["result"]  # the same process


def test_a_worker_stays_and_each_seat_has_its_own(bench, language):
    _, tasks, _ = bench.outcomes("pipe", language["all"], ["pid"] * 20)
    assert len({task["result"] for task in tasks}) == 1
    outcomes, _, _ = bench.outcomes("pipe", language["all"], ["pid"] * 20, "--threads", "2")
    assert outcomes == ["DONE"] * 20


# --- pipe: services that answer ----------------------------------------------------------------------------------------

# Of each language: takes a lock twice, gives it back twice, takes another that somebody holds, appends to a room, asks for a name
# that cannot be.
ASKERS = {
    "python": (".py", """
    import sys
    sys.path.insert(0, "{sdk}/python")
    from quiver_pipe import ServiceError, serve

    def handle(task):
        token = task.trylock("mine", 60000)
        said = [token > 0, task.trylock("mine", 60000) == token, task.unlock("mine", token), task.unlock("mine", token)]
        said += [task.trylock("held", 60000), task.next_id() < task.next_id(), task.room_append("news", task.key)]
        try:
            task.trylock("a/b", 60000)
        except ServiceError as error:
            said.append(error.error)
        return " ".join(str(one).lower() for one in said)

    serve(handle)
"""),
    "node": (".js", """
    const {{ serve, ServiceError }} = require('{sdk}/node/quiver_pipe');
    serve(async (task) => {{
      const token = await task.trylock('mine', 60000);
      const said = [token > 0n, (await task.trylock('mine', 60000)) === token, await task.unlock('mine', token), await task.unlock('mine', token)];
      const [held, first, second, number] = await Promise.all([task.trylock('held', 60000), task.next_id(), task.next_id(), task.room_append('news', task.key)]);
      said.push(held === null ? 'none' : held, first < second, number);
      try {{
        await task.trylock('a/b', 60000);
      }} catch (error) {{
        said.push(error instanceof ServiceError && error.error.toLowerCase());
      }}
      task.next_id(); // nobody waits for this one
      return said.join(' ');
    }});
"""),
    "ruby": (".rb", """
    require "{sdk}/ruby/quiver_pipe"
    QuiverPipe.serve do |task|
      token = task.trylock.("mine", 60_000)
      said = [token > 0, task.trylock.("mine", 60_000) == token, task.unlock.("mine", token), task.unlock.("mine", token)]
      said.push(task.trylock.("held", 60_000) || "none", task.next_id.() < task.next_id.(), task.room_append.("news", task.key))
      begin
        task.trylock.("a/b", 60_000)
      rescue QuiverPipe::ServiceError => error
        said << error.error.downcase
      end
      said.join(" ")
    end
"""),
}


def test_the_services_of_a_host_answer_in_every_language(host, root, tmp_path):
    handlers = ""
    there = [name for name in ASKERS if LANGUAGES[name][0]]
    for name in there:
        suffix, text = ASKERS[name]
        script = tmp_path / f"asker{suffix}"
        script.write_text(textwrap.dedent(text.format(sdk=root / "sdk" / "pipe")))
        handlers += (f'{name} = {{ plugin = "{root}/plugins/pipe.so"; '
                     f'config = {{ command = ["{LANGUAGES[name][0]}", "{script}"]; env = ["PYTHONDONTWRITEBYTECODE=1"]; }}; }};')
    host.configure(change=lambda text: text.replace("handlers = {", "handlers = {" + handlers))
    host.start()
    gate = tmp_path / "gate"
    held = subprocess.Popen([host.quiver, "lock", "held", "-c", host.config, "--", "sh", "-c", f"touch {gate}; exec sleep 1000"])
    try:
        wait_until(gate.exists, "the lock")
        for number, name in enumerate(there):
            # Twice: whether an answer is left over shows in the second.
            said = [host.cli("submit", name, "--key", name, "--wait-for", "60s", "x").strip() for _ in range(2)]
            first = 1 + 2 * number
            assert said == [f"true true true false none true {first + i} einval" for i in range(2)], name
    finally:
        held.terminate()
        held.wait()
    assert host.cli("room", "news", "read", "--raw") == "".join(2 * name for name in there)


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
