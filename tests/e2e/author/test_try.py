"""quiver try: options, exit codes, what it shows, limits, services, --here, --bench, and how it ends."""
import base64
import errno
import json
import os
import shutil
import signal
import subprocess

import pytest

from runs import by_place, wait_for

MIB = 1 << 20


@pytest.fixture(scope="session")
def echo(root):
    return root / "plugins" / "echo.so"


@pytest.fixture(scope="session")
def villains(root):
    return root / "build" / "villains"


@pytest.fixture(scope="session")
def services(villains):
    return villains / "services.so"


# --- what it shows --------------------------------------------------------------------------------------------------------

def test_one_task_as_text(tries, echo):
    code, out, err = tries.run(echo, "--payload", "world", "--set", "greeting=hi")
    assert code == 0
    first, second = out.splitlines()
    assert first.startswith("DONE        id=try-1 key=try-1 time=")
    assert second == "  result     hi, world"
    assert err == ""


def test_one_task_as_json(tries, echo):
    code, out, _ = tries.run(echo, "--payload", "world", "--json", "--key", "alice")
    task = json.loads(out)
    assert code == 0
    assert set(task) == {"id", "key", "outcome", "time_us", "result"}
    assert (task["key"], task["outcome"], task["result"]) == ("alice", "DONE", "hello, world")
    assert 0 <= task["time_us"] < 10000000


def test_the_sum_stands_at_the_end(tries, services):
    code, out, _ = tries.run(services, "--lines", text="a\nreject\nlater\nb\n")
    assert code == 1
    assert out.splitlines()[-1] == "4 tasks: 2 DONE 1 RETRY 1 REJECT"


@pytest.mark.parametrize("payload,outcome", [("a", "DONE"), ("later", "RETRY"), ("reject", "REJECT"),
                                             ("unavailable", "UNAVAILABLE"), ("not now", "LATER")])
def test_the_exit_code_is_0_only_if_all_are_done(tries, services, payload, outcome):
    code, out, _ = tries.run(services, "-p", payload, "--json")
    assert json.loads(out)["outcome"] == outcome
    assert code == (0 if outcome == "DONE" else 1)


def test_bytes_that_are_no_text_are_base64_in_json_and_escaped_in_text(tries, echo):
    data = bytes(range(256))
    code, out, _ = tries.run(echo, "--payload", "-", "--json", text=data)
    assert code == 0
    assert base64.b64decode(json.loads(out)["result_base64"]) == b"hello, " + data
    _, out, _ = tries.run(echo, "--payload", "-", text=b"a\0\x1b[2Jb")
    assert "hello, a\\x00\\x1b[2Jb" in out


# --- services -------------------------------------------------------------------------------------------------------------

def run_service(tries, services, name, *options):
    _, out, err = tries.run(services, "-p", name, "--json", *options)
    return json.loads(out), err


def test_a_plugin_of_the_first_header_loads_and_works(tries, villains):
    code, out, err = tries.run(villains / "first_abi.so", "-k", "k1", "--header", "a=b", "--header64", "c=AAE=", "--json")
    assert code == 0, out + err
    assert json.loads(out)["result"] == "k1 1 a=b 0" and json.loads(out)["submits"][0]["handler"] == "next"


def test_a_plugin_of_a_later_header_loads_and_works(tries, villains):
    code, out, err = tries.run(villains / "future_abi.so", "-p", "submit", "--json")
    assert code == 0 and json.loads(out)["submits"][0]["handler"] == "next", out + err


@pytest.mark.parametrize("payload,names", [("lock", ("trylock", "unlock")), ("ids", ("next_id",)), ("room", ("room_append",))])
def test_a_service_answers_as_on_a_host(tries, services, host, payload, names):
    host.configure(change=lambda text: text.replace("handlers = {", 'handlers = { served = { plugin = "%s"; };' % services))
    host.start()
    on_host = host.cli("submit", "served", "--wait-for", "60s", payload)
    assert host.stop() == 0
    for options in ([], ["--here"]):
        task, err = run_service(tries, services, payload, *options)
        assert (task["outcome"], task["result"]) == ("DONE", on_host)
        for name in names:
            said = f"{name} is not supported by this host; it returns -ENOTSUP"
            assert (said in err) == (said in host.log()) == (f"{name} {-errno.ENOTSUP}" in on_host)


def test_a_follow_up_is_shown(tries, services):
    task, _ = run_service(tries, services, "submit")
    assert task["submits"] == [{"handler": "next", "key": "k2", "lane": 1, "delay_ms": 1500, "payload": "more"}]
    _, out, _ = tries.run(services, "-p", "submit")
    assert "  submit     handler=next key=k2 lane=high delay=1.5s" in out


def test_retry_after_checkpoint_and_progress(tries, services):
    task, _ = run_service(tries, services, "later")
    assert (task["outcome"], task["retry_after_ms"]) == ("RETRY", 2500)
    task, _ = run_service(tries, services, "checkpoint")
    assert (task["outcome"], task["checkpoint"]) == ("RETRY", "half")
    task, _ = run_service(tries, services, "progress")
    assert task["outcome"] == "DONE"


# --- settings -------------------------------------------------------------------------------------------------------------

def test_settings_from_a_file_and_from_the_command_line(tries, echo, tmp_path):
    settings = tmp_path / "mine.cfg"
    settings.write_text('greeting = "from the file";\n')
    assert "from the file, x" in tries.run(echo, "-p", "x", "--config", settings)[1]
    assert "by hand, x" in tries.run(echo, "-p", "x", "--config", settings, "--set", "greeting=by hand")[1]
    assert "a=b, x" in tries.run(echo, "-p", "x", "--set", "greeting=a=b")[1]


def test_a_setting_that_nobody_reads_is_a_warning(tries, echo):
    code, _, err = tries.run(echo, "-p", "x", "--set", "greting=hi")
    assert code == 0
    assert "warning: settings that the plugin never read (misspelt?): greting" in err


def test_a_missing_settings_file_is_named(tries, echo, tmp_path):
    code, out, err = tries.run(echo, "-p", "x", "--config", tmp_path / "none.cfg")
    assert (code, out) == (1, "")
    assert "none.cfg" in err


# --- wrong words ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("words,said", [
    ([], "which plugin?"),
    (["a.so", "b.so"], "one plugin at a time"),
    (["a.so", "--threads", "0"], "from 1 to"),
    (["a.so", "--threads", "many"], "from 1 to"),
    (["a.so", "--processes", "-1"], "from 1 to"),
    (["a.so", "--batch", "129"], "from 1 to 128"),
    (["a.so", "--timeout", "5"], "--timeout"),
    (["a.so", "--memory", "lots"], "--memory"),
    (["a.so", "--max-payload", "65MiB"], "64MiB"),
    (["a.so", "--set", "novalue"], "NAME=VALUE"),
    (["a.so", "--key", ""], "1 to 255 bytes"),
    (["a.so", "--key", "k" * 256], "1 to 255 bytes"),
    (["a.so", "--lines", "-p", "x"], "leave out --payload"),
    (["a.so", "--here", "--threads", "2"], "--here has one seat"),
    (["a.so", "--trheads", "2"], "--threads"),
    (["a.so", "--attempt", "0"], "from 1 to"),
    (["a.so", "--repeat", "0"], "from 1 to"),
    (["a.so", "--repeat", "2", "--lines"], "leave out --repeat"),
    (["a.so", "--repeat", "2", "--bench", "2"], "leave out --repeat"),
    (["a.so", "--header", "novalue"], "NAME=VALUE"),
    (["a.so", "--header", "a b=c"], "--header"),
    (["a.so", "--header64", "a=b"], "is not base64 with its padding"),
    (["a.so", *["--header=a=" + "v" * 1024] * 9], "8KiB"),
    (["a.so", "--checkpoint", "c" * 4097], "4096 bytes"),
])
def test_wrong_usage_exits_2_and_says_why(tries, words, said):
    code, out, err = tries.run(*words) if words else tries.run("--json")
    assert (code, out) == (2, "")
    assert said in err
    assert "quiver try --help" in err


# --- a task as it would be later ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("here", [[], ["--here"]])
def test_a_task_has_the_headers_attempt_and_checkpoint_that_were_asked_for(tries, services, here):
    code, out, err = tries.run(services, "-p", "seen", "--json", "--header", "a=b", "--header", "trace=x=y", "--attempt", 7,
                               "--checkpoint", "half", *here)
    assert (code, err) == (0, "")
    assert json.loads(out)["result"] == "7 of 7, half, 2 trace=x=y"
    assert json.loads(tries.run(services, "-p", "seen", "--json", *here)[1])["result"] == "1 of 4, , 0 -=-"


def test_lines_have_the_same_headers(tries, services):
    _, out, _ = tries.run(services, "--lines", "--json", "--header", "a=b", "--attempt", 2, text="seen\nseen\n")
    assert [json.loads(line)["result"] for line in out.splitlines()] == ["2 of 4, , 1 a=b"] * 2


@pytest.mark.parametrize("here", [[], ["--here"]])
def test_a_task_is_repeated_with_an_id_and_a_fence_of_its_own(tries, echo, here):
    code, out, _ = tries.run(echo, "-p", "world", "--json", "--repeat", 300, *here)
    tasks = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert {task["id"] for task in tasks} == {f"try-{i}" for i in range(1, 301)}
    assert {task["result"] for task in tasks} == {"hello, world"}


def test_a_long_result_is_cut_in_text_and_whole_in_json(tries, echo):
    payload = "\u00e9" * 50000
    _, out, _ = tries.run(echo, "-p", "-", text=payload)
    assert len(out) < 5000
    assert "97960 more bytes; --json shows all of them" in out
    assert "\ufffd" not in out
    assert json.loads(tries.run(echo, "-p", "-", "--json", text=payload)[1])["result"] == "hello, " + payload


# --- lines ----------------------------------------------------------------------------------------------------------------

def test_lines_have_keys_if_they_have_a_tab(tries, echo):
    _, tasks, _ = tries.lines(echo, ["alice\tone", "two", "bob\tthree\tmore", "\r"])
    assert [tasks[i]["key"] for i in range(1, 5)] == ["alice", "try-2", "bob", "try-4"]
    assert [tasks[i]["result"] for i in range(1, 5)] == ["hello, one", "hello, two", "hello, three\tmore", "hello, \r"]


def test_the_last_line_needs_no_newline_and_no_input_is_no_task(tries, echo):
    code, out, _ = tries.run(echo, "--lines", "--json", text="a\nb")
    assert len(by_place(out)) == 2
    assert tries.run(echo, "--lines", text="")[:2] == (0, "")


@pytest.mark.parametrize("line,said", [("\tno key", "line 3: a key has 1 to 255 bytes"),
                                       ("k" * 256 + "\tx", "line 3: a key has 1 to 255 bytes"),
                                       ("x" * 1001, "line 3: the payload is larger than --max-payload"),
                                       ("x" * 100000, "line 3: the payload is larger than --max-payload")])
def test_a_bad_line_ends_the_input_and_is_named(tries, echo, line, said):
    code, out, err = tries.run(echo, "--lines", "--max-payload", "1000B", text=f"a\nb\n{line}\nd\n")
    assert code == 1
    assert out.count("DONE ") == 2
    assert said in err


def test_outcomes_come_while_the_input_is_still_open(tries, echo):
    child = tries.start(echo, "--lines", "--json")
    for i in range(3):
        child.stdin.write(b"x\n")
        child.stdin.flush()
        assert json.loads(child.stdout.readline())["outcome"] == "DONE"
    child.stdin.close()
    assert child.wait(20) == 0


# --- payloads -------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("size,options", [(0, ()), (511, ()), (MIB, ()), (64 * MIB, ("--max-payload", "64MiB"))])
def test_a_payload_arrives_whole(tries, services, size, options):
    data = b"\0" * (size - 1) + b"\x2a" if size else b""
    code, out, _ = tries.run(services, "-p", "-", "--json", *options, text=data)
    assert code == 0
    assert json.loads(out)["result"] == f"{size} bytes, ends with {0x2a if size else 0}"


def test_the_largest_payload_comes_back_as_a_result(tries, echo):
    data = b"x" * (2 * MIB)
    code, out, _ = tries.run(echo, "-p", "-", "--json", "--max-payload", "3MiB", text=data)
    assert code == 0
    assert json.loads(out)["result"] == "hello, " + data.decode()


@pytest.mark.parametrize("size,options", [(MIB + 1, ()), (64 * MIB + 1, ("--max-payload", "64MiB"))])
def test_a_payload_over_the_limit_is_refused(tries, services, size, options):
    code, out, err = tries.run(services, "-p", "-", *options, text=b"x" * size)
    assert (code, out) == (1, "")
    assert "larger than --max-payload" in err


# --- here -----------------------------------------------------------------------------------------------------------------

def test_here_shows_the_same(tries, services):
    for payload in ("ids", "lock", "submit", "checkpoint", "later", "reject", "some text"):
        there = json.loads(tries.run(services, "-p", payload, "--json")[1])
        here = json.loads(tries.run(services, "-p", payload, "--json", "--here")[1])
        for task in (there, here):
            task.pop("time_us", None)
        assert here == there


def test_here_raises_stop_at_the_timeout(tries, services):
    code, out, _ = tries.run(services, "-p", "wait", "--json", "--here", "--timeout", "50ms")
    task = json.loads(out)
    assert (code, task["outcome"], task["error"]) == (1, "RETRY", "told to stop")


def test_here_takes_lines_and_batches(tries, villains):
    code, out, _ = tries.run(villains / "bad_batch.so", "--here", "--lines", "--batch", 8, "--json",
                             text="".join(f"{i}\n" for i in range(1000)))
    assert code == 0
    assert len(by_place(out)) == 1000


@pytest.mark.parametrize("here", [(), ("--here",)])
def test_the_first_of_a_key_that_is_not_done_ends_its_part_of_a_batch(tries, root, tmp_path, here):
    """As batch.same_key does."""
    code, out, _ = tries.run(root / "build" / "test-plugins" / "ledger.so", *here, "--lines", "--batch", 8, "--json", "--set",
                             f"path={tmp_path}/ledger", text="k\t0\nk\t1 retry:9\nk\t2\nk\t3\nj\t4\n")
    outcomes = [json.loads(line)["outcome"] for line in out.splitlines()]
    assert code == 1 and outcomes == ["DONE", "RETRY", "INTERRUPTED", "INTERRUPTED", "DONE"]
    started = [line.split()[4] for line in (tmp_path / "ledger").read_text().splitlines() if line.startswith("start")]
    assert started == ["0", "1", "4"]


@pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind is not installed")
def test_here_is_clean_under_valgrind(quiver, echo):
    if b"__asan_init" in quiver.read_bytes():
        pytest.skip("a sanitizer is in it already")
    done = subprocess.run(["valgrind", "-q", "--error-exitcode=99", "--leak-check=full", quiver, "try", echo, "--here",
                           "--lines", "--set", "greeting=hi"], input=b"a\nb\nc\n", capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr == b""


# --- bench ----------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("options", [(), ("--processes", 2), ("--threads", 4), ("--here",)])
def test_bench_prints_figures_that_fit_together(tries, echo, options):
    code, out, _ = tries.run(echo, "--bench", 20000, "--json", *options)
    assert code == 0
    figures = json.loads(out)
    assert 19999 <= figures["tasks"] <= 20000
    assert figures["tasks_per_second"] == pytest.approx(figures["tasks"] / figures["seconds"], rel=0.01)
    assert figures["us_per_task"] == pytest.approx(1e6 / figures["tasks_per_second"], rel=0.01)
    assert "tasks/s" in tries.run(echo, "--bench", 1000, *options)[1]


# --- how it ends ----------------------------------------------------------------------------------------------------------

def start_asleep(tries, villains, *options):
    """A run that is at work on a task of a minute, with more waiting."""
    child = tries.start(villains / "sleeps.so", "--lines", "--json", *options)
    child.stdin.write(b"60000\n" * 10)
    child.stdin.flush()
    while b"asleep for 60000 ms" not in (line := child.stderr.readline()):
        assert line
    return child


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_what_runs_and_leaves_nothing(tries, villains, number):
    child = start_asleep(tries, villains, "--threads", 2)
    child.send_signal(number)
    out, _ = child.communicate(timeout=30)
    assert child.returncode == 1
    outcomes = [task["outcome"] for task in by_place(out.decode()).values()]
    assert set(outcomes) <= {"RETRY", "INTERRUPTED"}  # those that ran listened, the others never started
    assert len(outcomes) >= 2
    tries.assert_nothing_left()


def test_a_second_signal_does_not_wait_for_the_grace(tries, villains):
    child = tries.start(villains / "spin.so", "-p", "bad", "--grace", "10m", "--json")
    wait_for(lambda: tries.runners(child), "a runner")
    while child.poll() is None:  # however far the start has come
        child.send_signal(signal.SIGINT)
        try:
            child.wait(0.2)
        except subprocess.TimeoutExpired:
            pass
    assert child.returncode == 1
    tries.assert_nothing_left()


def test_when_it_is_killed_its_runners_end_too(tries, villains):
    child = start_asleep(tries, villains, "--processes", 2)
    wait_for(lambda: len(tries.runners(child)) == 2, "two runners")
    child.kill()
    child.wait()
    wait_for(lambda: not tries.processes(), "the runners to end")
    # Nobody was left to remove it.
    for name in os.listdir(tries.temporary):
        shutil.rmtree(tries.temporary / name)


def test_a_temporary_folder_that_is_not_there_is_named(tries, echo, tmp_path):
    tries.env["TMPDIR"] = str(tmp_path / "missing")
    code, _, err = tries.run(echo, "-p", "x")
    assert code == 1
    assert f"cannot make a temporary folder in {tmp_path / 'missing'}" in err


# --- once per process -----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("options, seats", [((), 1), (("--threads", 3), 3), (("--here",), 1)])
def test_load_runs_once_before_all_seats_and_unload_after_them(tries, villains, options, seats):
    code, out, err = tries.run(villains / "loads.so", "--payload", "x", *options)
    assert code == 0 and "result     loads 1" in out
    lines = [line.partition("info: ")[2] for line in (out + err).splitlines() if "load " in line.partition("info: ")[2]]
    assert lines == ["load 1 after 0 inits", f"unload after {seats} of {seats} closes"]


def test_a_load_that_fails_is_named(tries, villains):
    code, _, err = tries.run(villains / "loads.so", "--payload", "x", "--set", "refuse=no network")
    assert code == 1 and "plugin loads.so: load: no network" in err


@pytest.mark.parametrize("setting, text", [
    ("pause=5", "is not a number with a unit"), ("pause=2m", "out of range: from 0 to 60000 ms"), ("room=0", "out of range"),
    ("room=1e", "is not a number with a unit"), ("depth=11", "is not from 1 to 10"), ("depth=deep", "is no whole number"),
])
def test_a_setting_that_is_out_of_range_refuses_init(tries, villains, setting, text):
    code, _, err = tries.run(villains / "loads.so", "--payload", "x", "--set", setting)
    assert code == 1 and text in err and setting.partition("=")[0] in err


def test_settings_have_the_units_of_the_configuration(tries, villains):
    _, out, err = tries.run(villains / "loads.so", "--payload", "x", "--set", "pause=1.5s", "--set", "room=64KiB",
                            "--set", "depth=9")
    assert "pause 1500 ms, room 65536 bytes, depth 9" in out + err


def test_a_service_on_another_thread_says_so_once(tries, villains):
    code, out, err = tries.run(villains / "other_thread.so", "--payload", "x")
    assert code == 0 and (out + err).count("was called on another thread than its seat's") == 1
