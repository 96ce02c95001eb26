"""quiver check loads every configured plugin: what a host would trip over at its start is a problem with file and line."""
import json
import os
import re
import subprocess

import pytest

HEAD = 'app = "demo";\nstore = { url = "sqlite:q.db"; };\nplugins = ".";\nhandlers = {\n'
PLUGIN = """
#include <quiver/plugin.h>
#include <unistd.h>
%(before)s
static int32_t init(const struct qv_host *host, void **self) { (void)host; (void)self; %(init)s; return 0; }
static int32_t handle(void *self, const struct qv_task *task) { (void)self; (void)task; return QV_DONE; }
static void finish(void *self) { (void)self; %(close)s; }
QV_PLUGIN("%(name)s", "2.1", 0, init, handle, finish, NULL)
"""


@pytest.fixture
def build(root, tmp_path):
    def compile_it(name, before="", init="", close=""):
        file = tmp_path / f"{name}.c"
        file.write_text(PLUGIN % {"name": name, "before": before, "init": init, "close": close})
        subprocess.run(["cc", "-shared", "-fPIC", "-fvisibility=hidden", "-O1", "-I", root / "sdk/include", "-o",
                        tmp_path / f"{name}.so", file], check=True, timeout=60)

    return compile_it


@pytest.fixture
def check(quiver, tmp_path):
    """Checks a file with these handlers, one a line from line 5 on."""

    def run(*handlers, words=(), code=0):
        (tmp_path / "runtime.cfg").write_text(HEAD + "\n".join(handlers) + "\n};\n")
        done = subprocess.run([quiver, "check", "-c", "runtime.cfg", *words], cwd=tmp_path, text=True,
                              capture_output=True, timeout=60)
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return run


def test_a_plugin_that_loads_is_named_in_the_summary(build, check):
    build("good")
    done = check('h = { plugin = "good.so"; };')
    assert "good.so (good 2.1)" in done.stdout and done.stderr == ""
    said = json.loads(check('h = { plugin = "good.so"; };', words=["--json"]).stdout)
    assert [(p["handler"], p["name"], p["version"]) for p in said["plugins"]] == [("h", "good", "2.1")]


def test_the_default_configuration_loads_its_plugins(quiver, root):
    done = subprocess.run([quiver, "check", "-c", root / "etc/runtime.cfg"], text=True, capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "") and "echo.so (echo 1.0)" in done.stdout


def test_a_missing_plugin_is_a_problem_of_its_handler(build, check):
    build("good")
    done = check('a = { plugin = "good.so"; };', 'b = { plugin = "gone.so"; };', code=1)
    assert done.stderr.startswith("runtime.cfg:6: handlers.b: plugin ")
    assert "No such file" in done.stderr and done.stdout == ""


def test_a_failing_init_is_told_with_its_own_words(build, check):
    build("picky", init='if (!qv_config(host, "url", NULL)) return qv_init_errorf(host, "set url")')
    assert "runtime.cfg:5: handlers.h: plugin picky.so: init: set url" in check('h = { plugin = "picky.so"; };',
                                                                               code=1).stderr
    check('h = { plugin = "picky.so"; config = { url = "x"; }; };')


def test_a_misspelt_setting_of_a_plugin_is_a_warning(build, check):
    build("reader", init='(void)qv_config(host, "greeting", "")')
    done = check('h = { plugin = "reader.so"; config = { greetnig = "hi"; }; };')
    assert "runtime.cfg:5: warning: handlers.h: plugin reader.so never read the setting greetnig" in done.stderr
    assert "ok" in done.stdout.splitlines()[0]


def test_threads_that_a_plugin_does_not_allow_are_an_error(build, check):
    build("single")
    assert "QV_THREADS" in check('h = { plugin = "single.so"; threads = 2; };', code=1).stderr


def test_a_hanging_constructor_ends_after_the_handlers_own_time(build, check):
    build("hangs", before="__attribute__((constructor)) static void hang(void) { for (;;) pause(); }")
    done = check('h = { plugin = "hangs.so"; init_timeout = "1s"; };', code=1)
    assert "runtime.cfg:5: handlers.h: plugin hangs.so: it was not ready within 1s" in done.stderr


def test_a_crash_is_told_in_one_line_with_its_place(build, check):
    build("crashes", before="__attribute__((noinline)) static void boom(void) { *(volatile int *)8 = 1; }",
          init="boom()")
    lines = check('h = { plugin = "crashes.so"; };', code=1).stderr.splitlines()
    assert len(lines) == 2 and "SIGSEGV" in lines[0] and "boom" in lines[0]
    assert "crashes.so" in lines[0]


def test_a_close_that_crashes_is_an_error(build, check):
    build("rude", close="abort()")
    problems = check('h = { plugin = "rude.so"; };', code=1).stderr
    assert re.search(r"close crashed: SIGABRT finish\+0x\w+ \(rude\.so\)", problems), problems


def test_every_handler_is_tried_whatever_became_of_the_others(build, check):
    build("good")
    build("fails", init="return -1")
    done = check('a = { plugin = "fails.so"; };', 'b = { plugin = "good.so"; };', 'c = { plugin = "fails.so"; };',
                 words=["--json"], code=1)
    said = json.loads(done.stdout)
    assert [(p["line"], p["severity"]) for p in said["problems"]] == [(5, "error"), (7, "error")]
    assert [p["handler"] for p in said["plugins"]] == ["b"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_plugin_is_loaded_as_its_handlers_user(build, check, tmp_path):
    build("who", init='if (getuid() == 0) return qv_init_errorf(host, "still root")')
    check('h = { plugin = "who.so"; limits = { user = "nobody"; }; };')
    assert "still root" in check('h = { plugin = "who.so"; };', code=1).stderr


def test_config_only_runs_no_plugins_code(build, check):
    build("fails", init="return -1")
    done = check('a = { plugin = "fails.so"; };', 'b = { plugin = "gone.so"; };', words=["--config-only"])
    assert "ok" in done.stdout.splitlines()[0]


def test_nothing_is_left_behind(build, check, tmp_path, monkeypatch):
    build("good")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    check('a = { plugin = "good.so"; };', 'b = { plugin = "gone.so"; };', code=1)
    assert os.listdir(temporary) == []
    assert not (tmp_path / "q.db").exists()
