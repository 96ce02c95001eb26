"""Plugins that do their worst (tests/villains): each costs its own task what it must, and nobody else anything."""
import os
import pathlib
import re
import resource
import shutil
import signal
import tempfile

import pytest

from runs import Tries, read_or_nothing, wait_for

INNOCENT = 20  # tasks on either side of the bad one
BAD = INNOCENT + 1

# What becomes of the bad task, what its error says, and the options it needs.
TASK_VILLAINS = {
    "segv": ("CRASHED", r"SIGSEGV at address 0x0 \(a null pointer\)\nhandle\+0x\w+ \(segv\.so\) at segv\.c:\d+", ()),
    "abort": ("CRASHED", r"SIGABRT\n(.*\n)+handle\+0x\w+ \(abort\.so\)", ()),
    "double_free": ("CRASHED", r"SIGABRT: (double free|free\(\))(.*\n)+handle\+0x\w+ \(double_free\.so\) at", ()),
    "stack_overflow": ("CRASHED", r"SIGSEGV.*: stack overflow: this thread's stack has 1024 KiB\n(.*\n)+deeper\+.*\n"
                       r"and again, \d+ times", ()),
    "heap_overflow": ("CRASHED", r"SIGABRT: munmap_chunk\(\): invalid pointer\n", ()),
    "exit_zero": ("CRASHED", r"exit\(\) was called, exit status 0\n(.*\n)+handle\+", ()),
    "thread_crashes": ("CRASHED", r"SIGSEGV at address 0x0 \(a null pointer\) in a thread that the plugin started\n"
                       r"helper\+.* at thread_crashes\.c:\d+", ()),
    "thread_exits": ("CRASHED", r"exit\(\) was called in a thread that the plugin started, exit status 3\n(.*\n)+helper", ()),
    "spin": ("TIMED_OUT", r"did not stop when told\n(.*\n)*handle\+0x\w+ \(spin\.so\)",
             ("--timeout", "200ms", "--grace", "200ms")),
    "deadlock": ("TIMED_OUT", r"did not stop when told\n(.*\n)*pthread_mutex_lock.*\nhandle\+0x\w+ \(deadlock\.so\) at",
                 ("--timeout", "200ms", "--grace", "200ms")),
    "allocate": ("RETRY", r"out of memory after \d+ MiB", ("--memory", "64MiB")),
    "allocate_and_trust": ("CRASHED", r"SIGSEGV", ("--memory", "64MiB")),
    "two_gib": ("CRASHED", r"a null pointer, under a memory limit of 64 MiB \(limits\.memory\)", ("--memory", "64MiB")),
    "scribbles": ("CRASHED", r"wrote over the memory shared with the host|SIG|ended", ("--timeout", "2s")),
    "returns_1000": ("RETRY", r"returned 1000, which is no outcome", ()),
    "throws": ("CRASHED", r"SIGABRT: terminate called after throwing an instance of 'std::runtime_error', what\(\):  not "
               r"caught\n(.*\n)+handle\(void\*, qv_task const\*\)\+0x\w+ \(throws\.so\) at throws\.cc:\d+", ()),
    "longjmp": ("CRASHED", r"SIG|stack smashing|exit status", ()),
    "large_result": ("REJECT", r"result: Message too long", ()),
    "kills_itself": ("CRASHED", r"killed by SIGKILL; .*(OOM killer|did it)", ()),
}

# Why the plugin is refused.
LOAD_VILLAINS = {
    "init_exits": (r"it crashed before it was ready \(constructor or init\): the process ended with exit status 3", ()),
    "init_fails": (r"init: no database at example", ("--set", "db=example")),
    "init_hangs": (r"not ready within 300 ms", ("--init-timeout", "300ms")),
    "constructor_crashes": (r"it crashed before it was ready .*: SIGSEGV at .*\nbefore_anything\+\w+ .* at constructor_c", ()),
    "constructor_hangs": (r"not ready within 300 ms", ("--init-timeout", "300ms")),
    "old_abi": (r"abi 0\.7, this host speaks 1\.x; rebuild it", ()),
    "missing_symbol": (r"nobody_has_this", ()),
}


@pytest.fixture(scope="session")
def villains(root, quiver):
    folder = quiver.parent / "villains"
    if not folder.exists():
        folder = root / "build" / "villains"
    assert folder.exists(), f"{folder} is not there; run make villains first"
    return folder


def payloads(bad="bad"):
    return [f"innocent-{i}" for i in range(INNOCENT)] + [bad] + [f"innocent-{i}" for i in range(INNOCENT)]


def assert_innocents_done(tasks, count=2 * INNOCENT + 1, bad=(BAD,)):
    assert sorted(tasks) == list(range(1, count + 1))
    others = {place: task for place, task in tasks.items() if place not in bad and task["outcome"] != "DONE"}
    assert others == {}


def test_every_villain_is_in_a_test(root):
    names = {path.stem for path in (root / "tests/villains").glob("*.c*")}
    text = "".join(path.read_text() for path in (root / "tests/e2e").glob("*/test_*.py"))
    assert {name for name in names if f'"{name}.so"' not in text and f'"{name}":' not in text} == set()


@pytest.mark.parametrize("seats", [1, 4])
@pytest.mark.parametrize("name", TASK_VILLAINS)
def test_the_bad_task_pays_and_the_innocent_are_done(tries, villains, name, seats):
    outcome, error, options = TASK_VILLAINS[name]
    code, tasks, err = tries.lines(villains / f"{name}.so", payloads(), "--threads", seats, *options)
    assert_innocents_done(tasks)
    assert tasks[BAD]["outcome"] == outcome, f"{tasks[BAD]}\n{err}"
    assert re.search(error, tasks[BAD]["error"]), tasks[BAD]["error"]
    assert code == 1


@pytest.mark.parametrize("name", LOAD_VILLAINS)
def test_a_plugin_that_cannot_start_is_refused_once_and_by_name(tries, villains, name):
    why, options = LOAD_VILLAINS[name]
    code, out, err = tries.run(villains / f"{name}.so", "-p", "x", *options)
    assert code == 1
    assert out == ""
    assert err.count(f"quiver try: plugin {name}.so: ") == 1
    assert re.search(why, err), err


# --- those that want a stage of their own -------------------------------------------------------------------------------

def test_a_crash_may_leave_a_core_dump(tries, villains, tmp_path):
    folder = tmp_path / "here"
    folder.mkdir()
    code, out, _ = tries.run(villains / "segv.so", "-p", "bad", cwd=folder)
    assert code == 1 and "core dump" not in out and not list(folder.iterdir())
    code, out, _ = tries.run(villains / "segv.so", "-p", "bad", "--core", "1MiB", cwd=folder)
    assert code == 1 and "a core dump may be there: pid " in out
    pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text().strip()
    if pattern[0] not in "|/" and resource.getrlimit(resource.RLIMIT_CORE)[1]:
        assert list(folder.iterdir())


def test_every_hundredth_task_crashes_beside_seven_others(tries, villains):
    code, tasks, _ = tries.lines(villains / "every_100th.so", range(1, 1001), "--threads", 8)
    assert_innocents_done(tasks, 1000, bad=range(100, 1001, 100))
    for place in range(100, 1001, 100):
        assert tasks[place]["outcome"] == "CRASHED"
        assert "every_100th.so" in tasks[place]["error"]
    assert code == 1


@pytest.mark.parametrize("bad,outcome", [("bad", "CRASHED"), ("hang", "TIMED_OUT")])
def test_one_bad_task_of_a_batch_is_found_out(tries, villains, bad, outcome):
    _, tasks, _ = tries.lines(villains / "bad_batch.so", payloads(bad), "--batch", 8, "--timeout", "200ms",
                              "--grace", "100ms", "--threads", 2)
    assert_innocents_done(tasks)
    assert tasks[BAD]["outcome"] == outcome


def test_a_plugin_that_closes_all_descriptors_harms_nobody(tries, villains):
    _, tasks, _ = tries.lines(villains / "closes_descriptors.so", payloads(), "--threads", 4, "--timeout", "2s")
    assert_innocents_done(tasks)
    assert tasks[BAD]["outcome"] in ("DONE", "CRASHED")


def test_100_mb_of_output_are_mostly_dropped_and_counted(tries, villains):
    code, tasks, err = tries.lines(villains / "floods_stdout.so", payloads(), "--threads", 2)
    assert code == 0
    assert_innocents_done(tasks, bad=())
    shown = len(re.findall(r"^stdout: \d+ +$", err, re.M))
    dropped = sum(int(n) for n in re.findall(r"^stdout: (\d+) lines dropped", err, re.M))
    assert shown + dropped == 1000000
    assert 0 < shown < 500000


def test_a_thread_that_goes_on_after_close_ends_with_the_runner(tries, villains):
    code, tasks, _ = tries.lines(villains / "thread_after_close.so", payloads())
    assert code == 0
    assert_innocents_done(tasks, bad=())


def test_a_close_that_never_returns_is_cut_short(tries, villains):
    code, tasks, _ = tries.lines(villains / "slow_close.so", payloads(), "--grace", "200ms")
    assert code == 0
    assert_innocents_done(tasks, bad=())


def test_a_table_from_the_future_is_understood(tries, villains):
    code, tasks, _ = tries.lines(villains / "future_abi.so", payloads(), "--threads", 2)
    assert code == 0
    assert_innocents_done(tasks, bad=())


def test_a_fork_bomb_ends_at_its_limit_and_leaves_no_child(quiver, villains):
    """Root has no such limit: somebody else runs it then."""
    nobody = 65534
    folder = tempfile.mkdtemp(prefix="quiver-fork-", dir="/tmp")
    made = None
    try:
        path = os.path
        shutil.copy(quiver, path.join(folder, "quiver"))
        shutil.copy(villains / "fork_bomb.so", folder)
        os.chmod(folder, 0o755)
        made = Tries(path.join(folder, "quiver"), pathlib.Path(folder))
        more = {}
        if os.geteuid() == 0:
            os.chown(made.temporary, nobody, nobody)
            more = {"user": nobody, "group": nobody, "extra_groups": []}
        _, tasks, _ = made.lines(path.join(folder, "fork_bomb.so"), payloads(), "--threads", 1, "--max-processes", 40,
                                 **more)
        assert_innocents_done(tasks)
        assert tasks[BAD]["outcome"] == "RETRY"
        assert re.search(r"fork refused after \d+", tasks[BAD]["error"])
        made.assert_nothing_left()
    finally:
        if made:
            made.close()
        shutil.rmtree(folder)


# --- files that are no plugins ------------------------------------------------------------------------------------------

def refuse(tries, plugin):
    code, out, err = tries.run(plugin, "-p", "x")
    assert code == 1
    assert out == ""
    assert err.startswith("quiver try: plugin ")
    return err


def test_a_text_file_is_refused(tries, tmp_path):
    (tmp_path / "text.so").write_text("#!/bin/sh\necho no plugin\n")
    assert "text.so: not a shared object" in refuse(tries, tmp_path / "text.so")


@pytest.mark.parametrize("part", [0.01, 0.3, 0.6, 0.9, 0.99])
def test_a_truncated_plugin_is_refused(tries, villains, tmp_path, part):
    whole = (villains / "sleeps.so").read_bytes()
    (tmp_path / "cut.so").write_bytes(whole[:int(len(whole) * part)])
    assert "cut.so: " in refuse(tries, tmp_path / "cut.so")


def test_another_machines_plugin_is_refused(tries, villains, tmp_path):
    data = bytearray((villains / "sleeps.so").read_bytes())
    data[18] = 183 if data[18] != 183 else 62  # e_machine: AArch64, or x86-64 if that is what we are
    (tmp_path / "other.so").write_bytes(data)
    assert "other.so: built for" in refuse(tries, tmp_path / "other.so")


def test_a_program_a_folder_and_nothing_are_refused(tries, quiver, tmp_path):
    refuse(tries, quiver)
    assert "not a regular file" in refuse(tries, tmp_path)
    assert "cannot open it" in refuse(tries, tmp_path / "nothing.so")


# --- what happens from outside ------------------------------------------------------------------------------------------

def stop(pid):
    """Stops the process and waits until every thread of it has."""
    os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: all(re.search(rb"\) [Tt] ", read_or_nothing(path / "stat"))
                         for path in pathlib.Path(f"/proc/{pid}/task").iterdir()), "the process to stop")


def wait_until_asleep(child, payload):
    """Until the handler has said that it is at work on that."""
    while f"asleep for {payload} ms" not in (line := child.stderr.readline().decode()):
        assert line, "the run ended before"


def feed(child, *lines):
    for line in lines:
        child.stdin.write(f"{line}\n".encode())
    child.stdin.flush()


@pytest.mark.parametrize("how", ["truncate", "overwrite", "replace", "remove"])
def test_the_file_may_be_changed_under_a_running_plugin(tries, villains, tmp_path, how):
    plugin = tmp_path / "mine.so"
    shutil.copy(villains / "sleeps.so", plugin)
    child = tries.start(plugin, "--lines", "--json", "--processes", 2)
    feed(child, *[1] * 8)
    wait_until_asleep(child, 1)
    if how == "truncate":
        os.truncate(plugin, 0)
    elif how == "overwrite":
        plugin.write_bytes(b"\xff" * 100000)
    elif how == "replace":
        shutil.copy(villains / "segv.so", tmp_path / "new.so")
        os.replace(tmp_path / "new.so", plugin)
    else:
        plugin.unlink()
    # The second runner is started only now, and gets the version that the first one has.
    out, err = child.communicate(b"1\n" * 40, timeout=60)
    assert child.returncode == 0, err
    assert out.count(b'"DONE"') == 48


def test_a_runner_killed_from_outside_costs_nobody_anything(tries, villains):
    """Nobody can tell who sent a SIGKILL: the task that ran is run again, alone."""
    child = tries.start(villains / "sleeps.so", "--lines", "--json", "--threads", 1)
    feed(child, 100, *[1] * 20)
    wait_until_asleep(child, 100)
    os.kill(tries.runners(child)[0], signal.SIGKILL)
    out, _ = child.communicate(timeout=60)
    assert out.count(b'"outcome"') == 21
    assert out.count(b'"DONE"') == 21


def test_a_runner_killed_while_its_task_runs_alone_costs_that_task(tries, villains):
    child = tries.start(villains / "sleeps.so", "--lines", "--json", "--threads", 1)
    feed(child, 60000)
    for _ in range(2):
        wait_until_asleep(child, 60000)
        for runner in tries.runners(child):
            os.kill(runner, signal.SIGKILL)
    out, _ = child.communicate(b"1\n" * 20, timeout=60)
    assert out.count(b'"CRASHED"') == 1
    assert out.count(b'"DONE"') == 20


def test_a_runner_stopped_from_outside_is_noticed(tries, villains):
    """One that runs something: its task times out, for the host cannot tell it from one that hangs."""
    child = tries.start(villains / "sleeps.so", "--lines", "--json", "--timeout", "1s", "--grace", "200ms")
    feed(child, 300, *[1] * 20)
    wait_until_asleep(child, 300)
    stop(tries.runners(child)[0])
    out, _ = child.communicate(timeout=60)
    assert out.count(b'"outcome"') == 21
    assert out.count(b'"TIMED_OUT"') == 1
    assert out.count(b'"DONE"') == 20


def test_a_runner_stopped_while_idle_costs_nobody_anything(tries, villains):
    child = tries.start(villains / "sleeps.so", "--lines", "--json", "--init-timeout", "500ms")
    feed(child, 1)
    assert b'"DONE"' in child.stdout.readline()
    stop(tries.runners(child)[0])
    out, _ = child.communicate(b"1\n" * 20, timeout=60)
    assert out.count(b'"DONE"') == 20
    assert child.returncode == 0
