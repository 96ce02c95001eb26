"""quiver vet: what is wrong with a plugin is found, named, and can be seen again; a good one is left alone."""
import json
import os
import re
import shlex
import sqlite3
import subprocess

import pytest

HEAD = """
#include <quiver/plugin.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
#include <signal.h>
"""
INIT = "static int32_t init(const struct qv_host *host, void **self) QV_NOEXCEPT { (void)host; (void)self; %s; return 0; }\n"
HANDLE = ("static int32_t handle(void *self, const struct qv_task *task) QV_NOEXCEPT\n"
          "{ (void)self; (void)task; %s; return QV_DONE; }\n")
CLOSE = "static void finish(void *self) QV_NOEXCEPT { (void)self; %s; }\n"
PLUGIN = 'QV_PLUGIN("%s", "%s", %s, init, handle, finish, NULL)\n'
HIDDEN = ["-fvisibility=hidden", "-Wl,-z,noexecstack"]


def source(init="", handle="", close="", before="", name="villain", version="1.0", flags="0"):
    """A whole plugin out of the bodies of its functions."""
    return (HEAD + before + INIT % init + HANDLE % handle + CLOSE % close + PLUGIN % (name, version, flags))


@pytest.fixture
def build(root, tmp_path):
    def compile_it(text, *flags, compiler="cc", suffix="c", name="villain"):
        file = tmp_path / f"{name}.{suffix}"
        file.write_text(text)
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-g", "-pthread", "-I", root / "sdk/include",
                        *(flags or HIDDEN), "-o", tmp_path / f"{name}.so", file], check=True, timeout=60)
        return tmp_path / f"{name}.so"

    return compile_it


@pytest.fixture
def vet(quiver, tmp_path):
    """Runs quiver vet and returns its report; findings of one check by name."""

    def run(plugin, *words, code=0):
        done = subprocess.run([quiver, "vet", plugin, "--json", *map(str, words)], cwd=tmp_path, text=True,
                              capture_output=True, timeout=120)
        assert done.returncode == code, done.stdout + done.stderr
        report = json.loads(done.stdout)
        assert report["ok"] == (code == 0)
        assert report["errors"] == sum(f["level"] == "error" for f in report["findings"])
        assert report["warnings"] == sum(f["level"] == "warning" for f in report["findings"])
        return report

    return run


def found(report, check, level):
    """The texts and hints of one check's findings of that level."""
    return [f["text"] + "\n" + f.get("hint", "") for f in report["findings"] if (f["check"], f["level"]) == (check, level)]


def bad(report):
    return [f for f in report["findings"] if f["level"] in ("warning", "error")]


def typed(finding):
    """The command that a finding says shows it again."""
    line = next(line for line in finding.splitlines() if line.startswith("see it again: "))
    return line.removeprefix("see it again: ")


# --- good ones --------------------------------------------------------------------------------------------------------

def test_a_stock_plugin_has_nothing_wrong(vet, root):
    report = vet(root / "plugins/echo.so", "--set", "greeting=hi")
    assert bad(report) == []
    assert (report["name"], report["version"]) == ("echo", "1.0")
    assert "100 times" in found(report, "init/close", "ok")[0]
    for check in ("payloads", "threads", "batches"):
        assert "10000 random payloads" in found(report, check, "ok")[0]
    assert found(report, "settings", "ok") and found(report, "symbols", "ok") and found(report, "exports", "ok")


def test_a_new_plugin_has_nothing_wrong(quiver, root, vet, tmp_path):
    subprocess.run([quiver, "new", "fresh"], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    subprocess.run(["make", "-C", tmp_path / "fresh"], check=True, env=env, stdout=subprocess.DEVNULL)
    assert bad(vet(tmp_path / "fresh/fresh.so", "--quick")) == []


def test_the_text_report_names_the_plugin_and_ends_with_the_counts(quiver, root):
    done = subprocess.run([quiver, "vet", "plugins/echo.so", "--quick", "--seed", "7"], cwd=root, text=True,
                          capture_output=True, timeout=60)
    lines = done.stdout.splitlines()
    assert lines[0] == "plugins/echo.so" and lines[-1] == "plugins/echo.so: 0 errors, 0 warnings"
    assert any(line.startswith("  ok       payloads") and "seed 7" in line for line in lines)


def test_the_same_seed_gives_the_same_run(vet, root):
    runs = [vet(root / "plugins/echo.so", "--quick", "--seed", 99) for _ in range(2)]
    assert runs[0] == runs[1]
    assert vet(root / "plugins/echo.so", "--quick")["seed"] != 99


# --- the file ---------------------------------------------------------------------------------------------------------

def test_a_text_file_is_no_plugin(vet, tmp_path):
    (tmp_path / "a.so").write_text("#!/bin/sh\n")
    assert "no ELF header" in found(vet(tmp_path / "a.so", code=1), "file", "error")[0]
    assert "No such file" in found(vet(tmp_path / "b.so", code=1), "file", "error")[0]


def test_a_cut_file_is_named_as_such(vet, root, tmp_path):
    (tmp_path / "cut.so").write_bytes((root / "plugins/echo.so").read_bytes()[:9000])
    report = vet(tmp_path / "cut.so", code=1)
    assert "cut short" in found(report, "file", "error")[0] and len(report["findings"]) == 1


def test_a_second_export_is_a_warning_that_names_it(vet, build):
    extra = "QV_EXPORT int helper(void); int helper(void) { return 1; }\n"
    report = vet(build(source(before=extra)), "--quick")
    warning = found(report, "exports", "warning")[0]
    assert "1 symbol beside quiver_plugin: helper" in warning and "sdk/plugin.mk" in warning


def test_of_many_exports_the_first_and_their_number_are_told(vet, build):
    extra = "".join(f"QV_EXPORT int f{i}(void); int f{i}(void) {{ return {i}; }}\n" for i in range(40))
    warning = found(vet(build(source(before=extra)), "--quick"), "exports", "warning")[0]
    assert "40 symbols" in warning and warning.count("f1") < 20 and "…" in warning


def test_a_gnu_unique_symbol_is_a_warning_with_the_way_out(vet, build):
    text = source(before="extern \"C++\" { template <class T> struct Box { static int count; };\n"
                         "template <class T> int Box<T>::count = 0; }\n", handle="Box<int>::count++")
    plugin = build(text, "-std=gnu++17", compiler="g++", suffix="cc")
    warning = found(vet(plugin, "--quick"), "unique", "warning")[0]
    assert "STB_GNU_UNIQUE" in warning and "-fno-gnu-unique" in warning
    plugin = build(text, "-std=gnu++17", "-fno-gnu-unique", *HIDDEN, compiler="g++", suffix="cc", name="cured")
    assert found(vet(plugin, "--quick"), "unique", "warning") == []


def test_an_executable_stack_is_a_warning(vet, build):
    report = vet(build(source(), "-fvisibility=hidden", "-Wl,-z,execstack"), "--quick")
    assert "-z,noexecstack" in found(report, "stack", "warning")[0]


def test_every_symbol_that_nothing_provides_is_named(vet, build):
    plugin = build(source(before="int one(void); int two(void);\n", handle="(void)(one() + two())"))
    report = vet(plugin, code=1)
    assert "undefined symbol" in found(report, "load", "error")[0]
    missing = found(report, "symbols", "error")[0]
    assert "one" in missing and "two" in missing and "-z,defs" in missing


def test_a_symbol_of_the_hosts_own_libraries_is_a_warning(vet, build):
    report = vet(build(source(before="unsigned uv_version(void);\n", handle="(void)uv_version()")), "--quick")
    assert "uv_version" in found(report, "symbols", "warning")[0]


# --- load and init ----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("fields,said", [
    ("{ sizeof(struct qv_plugin), 7, 0, 0, \"v\", \"1\", init, handle, finish, 0 }", "abi 7.0"),
    ("{ sizeof(struct qv_plugin), 1, 0, 0, \"\", \"1\", init, handle, finish, 0 }", "name is empty"),
    ("{ sizeof(struct qv_plugin), 1, 0, 0, \"v\", \"1\", init, 0, finish, 0 }", "handle is missing"),
    ("{ 4, 1, 0, 0, \"v\", \"1\", init, handle, finish, 0 }", "size is 4"),
])
def test_a_wrong_field_of_the_table_is_named(vet, build, fields, said):
    text = HEAD + INIT % "" + HANDLE % "" + CLOSE % ""
    text += f"QV_EXPORT const struct qv_plugin quiver_plugin = {fields};\n"
    assert said in found(vet(build(text), code=1), "load", "error")[0]


def test_a_plugin_without_a_table_is_told_how_to_get_one(vet, build):
    report = vet(build("int unused;\n"), code=1)
    assert "QV_PLUGIN()" in found(report, "load", "error")[0]


def test_an_odd_name_no_version_and_unknown_flags_are_warnings(vet, build):
    report = vet(build(source(name="my plugin", version="", flags="0x80")), "--quick")
    assert "my plugin" in found(report, "name", "warning")[0]
    assert found(report, "version", "warning") and "0x80" in found(report, "flags", "warning")[0]


def test_a_failing_init_says_why(vet, build):
    report = vet(build(source(init='return qv_init_errorf(host, "no database at %s", "db:1")')), code=1)
    assert "no database at db:1" in found(report, "load", "error")[0]
    assert found(report, "payloads", "ok") == []


def test_a_crashing_constructor_is_shown_with_its_place(vet, build):
    boom = "__attribute__((constructor)) static void boom(void) { *(volatile int *)8 = 1; }\n"
    error = found(vet(build(source(before=boom)), code=1), "load", "error")[0]
    assert "SIGSEGV" in error and "boom" in error


def test_a_hanging_constructor_ends_the_vetting_not_the_vet(vet, build):
    hang = "__attribute__((constructor)) static void hang(void) { for (;;) pause(); }\n"
    report = vet(build(source(before=hang)), "--init-timeout", "1s", code=1)
    assert "not ready within 1s" in found(report, "load", "error")[0]


def test_a_crashing_close_is_an_error(vet, build):
    assert "SIGABRT" in found(vet(build(source(close="abort()")), "--quick", code=1), "close", "error")[0]


def test_a_setting_that_init_never_read_is_a_warning(vet, build):
    plugin = build(source(init='(void)qv_config(host, "greeting", "hi")'))
    report = vet(plugin, "--quick", "--set", "greetnig=hello")
    assert "greetnig" in found(report, "settings", "warning")[0]
    assert found(vet(plugin, "--quick", "--set", "greeting=hello"), "settings", "warning") == []


def test_settings_come_from_a_file_too(vet, build, tmp_path):
    plugin = build(source(init='if (strcmp(qv_config(host, "a", ""), "1")) return -1'))
    (tmp_path / "settings.cfg").write_text('a = 1;\nb = 2;\n')
    report = vet(plugin, "--quick", "--config", tmp_path / "settings.cfg")
    assert "init never read: b" in found(report, "settings", "warning")[0]
    assert "nowhere.cfg" in found(vet(plugin, "--config", "nowhere.cfg", code=1), "file", "error")[0]


def test_a_service_in_init_answers_as_on_a_host(vet, build):
    ask = 'uint64_t n; if (host->next_id(host, &n) != {0} || host->trylock(host, "l", 1000, &n) != {0}) return -1'
    assert bad(vet(build(source(init=ask.format("0"))), "--quick")) == []
    assert found(vet(build(source(init=ask.format("-ENOTSUP"))), "--quick", code=1), "load", "error")


# --- init and close, many times ---------------------------------------------------------------------------------------

def test_leaked_memory_is_told_per_init(vet, build):
    report = vet(build(source(init="*self = malloc(5000)")), "--quick", code=1)
    error = found(report, "init/close", "error")[0]
    assert "bytes behind: 5" in error and "valgrind" in error


def test_leaked_descriptors_are_counted(vet, build):
    report = vet(build(source(init='(void)!open("/dev/null", O_RDONLY)')), "--quick", code=1)
    assert "left 20 descriptors behind: 1 each time" in found(report, "init/close", "error")[0]


def test_leaked_threads_are_counted(vet, build):
    sleeper = "static void *sleeper(void *arg) { for (;;) pause(); return arg; }\n"
    start = "pthread_t t; pthread_create(&t, NULL, sleeper, NULL)"
    report = vet(build(source(before=sleeper, init=start)), "--quick", code=1)
    assert any("20 threads" in error for error in found(report, "init/close", "error"))


def test_what_close_gives_back_is_no_leak(vet, build):
    before = ("struct own { void *memory; int fd; pthread_t thread; };\n"
              "static void *brief(void *arg) { return arg; }\n"
              "static char *cache;\n")
    init = ("struct own *o = malloc(sizeof(*o)); o->memory = malloc(100000); o->fd = open(\"/dev/null\", O_RDONLY);"
            "pthread_create(&o->thread, NULL, brief, NULL); if (!cache) cache = strdup(\"once\"); *self = o")
    close = "struct own *o = self; pthread_join(o->thread, NULL); close(o->fd); free(o->memory); free(o)"
    assert bad(vet(build(source(before=before, init=init, close=close)))) == []


def test_what_malloc_keeps_for_later_is_no_leak(vet, build):
    """A block of another size each time: freed, they stay with the thread that had them."""
    init = "static int inits; void *volatile block = malloc(24 + 16 * (size_t)inits++); free(block)"
    assert bad(vet(build(source(init=init)), "--quick")) == []


def test_the_sql_plugin_leaves_nothing_behind(vet, root, tmp_path):
    with sqlite3.connect(tmp_path / "rows.db") as db:
        db.execute("CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT)")
    settings = tmp_path / "sql.cfg"
    settings.write_text(f'url = "sqlite:{tmp_path}/rows.db"; tables = ( {{ name = "customer"; columns = ["name"]; }} );\n')
    # No random payload is a row, which is said; nothing else is.
    (warning,) = bad(vet(root / "plugins" / "sql.so", "--config", settings, "--payloads", 500))
    assert "no task was DONE" in warning["text"]


def test_an_init_that_works_only_once_is_an_error(vet, build):
    report = vet(build(source(before="static int inits;\n", init="if (inits++) return -1")), "--quick", code=1)
    assert "time number 2" in found(report, "init/close", "error")[0]


# --- payloads ---------------------------------------------------------------------------------------------------------

def test_a_crash_comes_with_a_command_that_shows_it_again(vet, build, quiver, tmp_path):
    plugin = build(source(handle='if (task->payload_size && *(const char *)task->payload == \'%%\') raise(SIGSEGV)'
                          .replace("%%", "%")))
    error = found(vet(plugin, "--quick", code=1), "payloads", "error")[0]
    assert "SIGSEGV" in error
    command = shlex.split(typed(error))
    assert command[:2] == ["quiver", "try"]
    again = subprocess.run([quiver, *command[1:]], cwd=tmp_path, text=True, capture_output=True, timeout=60)
    assert again.returncode == 1 and "SIGSEGV" in again.stdout


@pytest.mark.parametrize("condition", ["memchr(task->payload, 255, task->payload_size)", "task->payload_size > 65536"])
def test_a_payload_that_cannot_be_typed_is_made_anew(vet, build, quiver, tmp_path, condition):
    plugin = build(source(handle=f"if (task->payload_size && {condition}) abort()"))
    before = set(tmp_path.iterdir())
    error = found(vet(plugin, "--payloads", 3000, "--seed", 5, code=1), "payloads", "error")[0]
    assert set(tmp_path.iterdir()) == before
    again = subprocess.run(["sh", "-c", typed(error)], env={**os.environ, "PATH": f"{quiver.parent}:{os.environ['PATH']}"},
                           text=True, cwd=tmp_path, capture_output=True, timeout=60)
    assert again.returncode == 1 and "SIGABRT" in again.stdout, again.stderr


def test_payloads_of_the_author_come_first_and_are_changed(vet, build, quiver, tmp_path):
    (tmp_path / "corpus").write_text("order 7\norder 8\n")
    row = "char id; int n = 0; if (sscanf(task->payload, \"order %c%n\", &id, &n) == 1"
    fine = build(source(handle=f"{row} && n == 7) return QV_DONE; return QV_REJECT"), name="fine")
    report = vet(fine, "--quick", "--corpus", "corpus", "--seed", 3)
    assert "500 payloads (2 of the corpus, changes of them, random ones), seed" in found(report, "payloads", "ok")[0]
    assert int(re.search(r"(\d+) DONE", found(report, "payloads", "ok")[0])[1]) > 20
    assert "--corpus FILE" in found(vet(fine, "--quick"), "payloads", "warning")[0]
    # One that only a changed payload has, and that can be seen again.
    plugin = build(source(handle=f"{row} && id > 'f') abort()"))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a").write_bytes(b"order 7\n\0")
    assert bad(vet(plugin, "--payloads", 3000)) == []
    error = found(vet(plugin, "--payloads", 3000, "--corpus", "folder", "--seed", 3, code=1), "payloads", "error")[0]
    again = subprocess.run(["sh", "-c", typed(error)], env={**os.environ, "PATH": f"{quiver.parent}:{os.environ['PATH']}"},
                           text=True, cwd=tmp_path, capture_output=True, timeout=60)
    assert again.returncode == 1 and "SIGABRT" in again.stdout, again.stderr


@pytest.mark.parametrize("corpus, said", [("missing", "No such file"), ("empty", "it has no payload")])
def test_a_corpus_that_is_none_is_refused(vet, build, tmp_path, corpus, said):
    (tmp_path / "empty").write_text("")
    assert said in found(vet(build(source()), "--corpus", corpus, code=1), "file", "error")[0]


def test_constructors_that_print_or_start_threads_are_warned_of(vet, build):
    plugin = build(source(before="static void *idle(void *p) { for (;;) pause(); return p; }\n"
                          "__attribute__((constructor)) static void early(void)\n"
                          '{ pthread_t t; puts("hello"); if (pthread_create(&t, NULL, idle, NULL)) abort(); }\n'))
    warnings = found(vet(plugin, "--quick"), "constructor", "warning")
    assert "its constructors print: 6 bytes" in warnings[0] and "load()" in warnings[0]
    assert "its constructors start 1 thread" in warnings[1]


@pytest.fixture
def sanitized(build):
    if subprocess.run(["cc", "-fsanitize=address", "-x", "c", "-", "-o", "/dev/null"], input="int main(void) {}", text=True,
                      capture_output=True, timeout=60).returncode:
        pytest.skip("this compiler has no AddressSanitizer")
    return lambda **parts: build(source(**parts), "-fsanitize=address", *HIDDEN)


def test_a_plugin_with_address_sanitizer_is_vetted_and_tried(vet, sanitized, quiver, tmp_path):
    plugin = sanitized(before="static char *volatile copy;\n",
                       handle="copy = malloc(8); memset(copy, 1, task->payload_size == 3 ? 9 : 8); free(copy)")
    report = vet(plugin, "--quick", code=1)
    error, = found(report, "payloads", "error")
    assert "SUMMARY: AddressSanitizer: heap-buffer-overflow" in error and "villain.c:" in error
    assert [f for f in bad(report) if f["check"] == "exports"] == []
    done = subprocess.run([quiver, "try", plugin, "-p", "abc"], text=True, capture_output=True, timeout=60)
    assert done.returncode == 1 and "heap-buffer-overflow" in done.stdout and "WRITE of size 9" in done.stdout
    assert subprocess.run([quiver, "try", plugin, "-p", "abcd"], capture_output=True, timeout=60).returncode == 0


def test_a_leak_that_address_sanitizer_sees_is_an_error(vet, sanitized):
    plugin = sanitized(before="static void *volatile last;\n", handle="last = malloc(3)")
    assert "byte(s) leaked" in found(vet(plugin, "--quick", code=1), "payloads", "error")[0]


def test_the_command_carries_the_settings(vet, build):
    plugin = build(source(init='(void)qv_config(host, "a", "")', handle="abort()"))
    error = found(vet(plugin, "--quick", "--set", "a=it's", code=1), "payloads", "error")[0]
    assert shlex.split(typed(error))[3:5] == ["--set", "a=it's"]


def test_a_crash_that_needs_others_before_it_is_told_apart(vet, build):
    plugin = build(source(before="static int calls;\n", handle="if (++calls == 50) abort()"))
    error = found(vet(plugin, "--quick", code=1), "payloads", "error")[0]
    assert "not with this payload alone" in error and "--seed" in error


def test_a_plugin_that_always_crashes_is_not_tried_ten_thousand_times(vet, build):
    report = vet(build(source(handle="abort()")), code=1)
    error, = found(report, "payloads", "error")
    others = int(re.search(r", like (\d+) others, crashed: SIGABRT", error)[1])
    assert others < 100


def test_exit_in_a_handler_is_a_crash(vet, build):
    assert "exit() was called" in found(vet(build(source(handle="exit(0)")), "--quick", code=1), "payloads", "error")[0]


def test_a_handler_that_ignores_stop_is_an_error(vet, build):
    plugin = build(source(handle="if (task->payload_size == 2) for (;;) pause()"))
    report = vet(plugin, "--payloads", 20, code=1)
    error = found(report, "stop", "error")[0]
    assert "told to stop" in error and "qv_stop" in error and "--timeout 1s" in typed(error)


def test_a_handler_that_stops_when_told_is_fine(vet, build):
    plugin = build(source(handle="if (task->payload_size == 2) while (!qv_stop(task)) usleep(1000)"))
    report = vet(plugin, "--payloads", 12)
    assert "ended within" in found(report, "stop", "ok")[0]


def test_what_was_not_tested_is_said(vet, root):
    assert "not known" in found(vet(root / "plugins/echo.so", "--quick"), "stop", "note")[0]


def test_a_race_is_looked_for_only_if_threads_are_claimed(vet, build):
    body = "host_seats |= 1u << task->host->seat; if (host_seats & ~1u) abort()"
    text = source(before="static unsigned host_seats;\n", handle=body, flags="QV_THREADS")
    report = vet(build(text), "--quick", code=1)
    assert found(report, "payloads", "ok") and found(report, "threads", "error")
    report = vet(build(source(before="static unsigned host_seats;\n", handle=body)), "--quick")
    assert not [f for f in report["findings"] if f["check"] == "threads"]


def test_a_plugin_without_its_service_is_not_called_fit(vet, build):
    report = vet(build(source(handle="return QV_UNAVAILABLE")))
    assert "UNAVAILABLE" in found(report, "payloads", "warning")[0]
    assert ": 20 UNAVAILABLE" in found(report, "payloads", "ok")[0]


def test_memory_that_each_task_leaks_is_told_per_task(vet, build):
    body = "char *volatile lost = malloc(5000); memset(lost, 1, 5000); lost = NULL"
    warning = found(vet(build(source(handle=body))), "growth", "warning")[0]
    each = int(warning.split(" tasks, about ")[1].split()[0])
    # An estimate: what is lost first fills the room that large payloads left in the heap.
    assert "memory grows with every task" in warning and 2500 < each < 10000, warning


def test_descriptors_that_each_task_leaks_are_told(vet, build):
    warning = found(vet(build(source(handle='(void)open("/dev/null", O_RDONLY)')), "--payloads", 2000), "growth", "warning")[0]
    assert "descriptors grow with the tasks" in warning


def test_memory_that_is_bounded_is_no_growth(vet, build):
    body = ("static char *kept[64]; static unsigned at; char **slot = &kept[at++ % 64]; free(*slot);"
            " *slot = malloc(task->payload_size + 1); memcpy(*slot, task->payload, task->payload_size)")
    report = vet(build(source(handle=body)))
    assert bad(report) == [] and "neither memory nor descriptors" in found(report, "growth", "ok")[0]


def test_too_few_payloads_to_measure_growth_is_said(vet, root):
    assert "not measured" in found(vet(root / "plugins/echo.so", "--quick"), "growth", "note")[0]


def test_a_plugin_that_does_nothing_with_random_payloads_is_not_called_tried(vet, build):
    report = vet(build(source(handle="return QV_REJECT")), "--quick")
    assert "no task was DONE" in found(report, "payloads", "warning")[0]


def test_a_plugin_whose_every_task_times_out_is_not_called_tried(vet, build):
    report = vet(build(source(handle="while (!qv_stop(task)) usleep(1000); return QV_RETRY")), "--payloads", 2)
    assert "every task ran into the timeout" in found(report, "payloads", "warning")[0]


def test_a_run_ends_at_its_limit(vet, build):
    report = vet(build(source(handle="usleep(1000)")), "--payloads", 1000000, "--limit", "200ms")
    assert "of 1000000 payloads in 200ms" in found(report, "payloads", "note")[0]


def test_what_it_prints_stays_out_of_the_report(vet, build):
    plugin = build(source(init='puts("hello")', handle='puts("hello"); qv_logf(task->host, QV_LOG_ERROR, "hello")'))
    assert bad(vet(plugin, "--quick")) == []


# --- leftovers and usage ----------------------------------------------------------------------------------------------

def test_nothing_is_left_behind(vet, build, quiver, tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    plugin = build(source(handle='if (task->payload_size == 1) abort()'))
    vet(plugin, "--quick", code=1)
    assert os.listdir(temporary) == []
    running = subprocess.run(["ps", "-eo", "args"], text=True, capture_output=True, check=True).stdout
    assert "quiver: villain" not in running


@pytest.mark.parametrize("words", [[], ["a.so", "b.so"], ["a.so", "--payloads", "0"], ["a.so", "--payloads", "x"],
                                   ["a.so", "--seed", "-1"], ["a.so", "--set", "x"], ["a.so", "--quik"]])
def test_wrong_usage_exits_2(quiver, words):
    done = subprocess.run([quiver, "vet", *words], text=True, capture_output=True, timeout=60)
    assert done.returncode == 2 and "quiver vet --help" in done.stderr
