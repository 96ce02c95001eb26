"""What a plugin author is promised: quiver new, plugin.mk, the headers, an installed prefix, the guide's examples."""
import os
import re
import shutil
import signal
import sqlite3
import subprocess

import pytest

COMPILERS = [("gcc", "g++"), ("clang", "clang++")]
STRICT = "-O2 -Wall -Wextra -Wpedantic -Werror"


def run(*command, cwd=None, env=None, code=0):
    """Runs it, checks the exit code, returns what it said."""
    done = subprocess.run([str(word) for word in command], cwd=cwd, env=env, text=True, timeout=120,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == code, f"{command}: exit code {done.returncode}\n{done.stdout}"
    return done.stdout


def clean_env(**more):
    """Without what make passes on to its children, and without an SDK that happens to be installed."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("MAKE", "MFLAGS", "CFLAGS", "CXXFLAGS", "QUIVER", "PKG_CONFIG"))}
    return {**env, "PKG_CONFIG_LIBDIR": "/nonexistent", **more}


def exports(plugin):
    lines = run("nm", "-D", "--defined-only", plugin).splitlines()
    return [line.split()[-1] for line in lines]


def make(folder, *words, env=None, code=0):
    return run("make", "-C", folder, *words, env=env or clean_env(), code=code)


# --- quiver new -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("language", ["c", "cpp"])
def test_the_tests_of_a_new_plugin_fail_plainly_if_it_returns_nothing(quiver, tmp_path, language):
    """By an expectation that names the line and both values, not by a null pointer."""
    run(quiver, "new", "mute", *(["--cpp"] if language == "cpp" else []), cwd=tmp_path)
    source = tmp_path / "mute" / f"mute.{'cc' if language == 'cpp' else 'c'}"
    text = source.read_text()
    changed = re.sub(r"task->host->result\([^;]*?\) < 0", "false" if language == "cpp" else "0", text, flags=re.DOTALL)
    assert changed != text
    source.write_text(changed)
    said = make(tmp_path / "mute", "test", code=2)
    assert re.search(r'test_mute\.cc?:\d+: task->result is NULL, expected "3"', said) and "Segmentation" not in said, said


@pytest.mark.parametrize("cc,cxx", COMPILERS)
@pytest.mark.parametrize("language", ["c", "cpp"])
def test_a_new_plugin_builds_passes_and_exports_one_symbol(quiver, tmp_path, language, cc, cxx):
    run(quiver, "new", "geo-lookup", *(["--cpp"] if language == "cpp" else []), cwd=tmp_path)
    folder = tmp_path / "geo-lookup"
    words = [f"CC={cc}", f"CXX={cxx}", f"CFLAGS={STRICT}", f"CXXFLAGS={STRICT}"]
    said = make(folder, *words, "all", "test")
    assert "4 tests passed" in said
    assert "warning" not in said
    assert exports(folder / "geo-lookup.so") == ["quiver_plugin"]
    assert "4 tests passed" in make(folder, *words, "test", "SAN=1")

    make(folder, *words, "install", f"PLUGINS={tmp_path}/plugins")
    assert os.listdir(tmp_path / "plugins") == ["geo-lookup.so"]
    make(folder, "clean")
    suffix = "cc" if language == "cpp" else "c"
    assert sorted(os.listdir(folder)) == sorted(
        [".gitignore", "Makefile", "README.md", f"geo-lookup.{suffix}", f"test_geo-lookup.{suffix}"])


@pytest.mark.parametrize("more", [[], ["--cpp"]])
def test_a_new_plugin_runs_in_a_real_runner(quiver, tmp_path, more):
    run(quiver, "new", "counter", *more, cwd=tmp_path)
    make(tmp_path / "counter")
    plugin = tmp_path / "counter/counter.so"
    assert re.search(r"result +3$", run(quiver, "try", plugin, "--payload", "one two three"), re.M)
    assert "the payload is empty" in run(quiver, "try", plugin, "--payload", "", code=1)
    assert "2 words are too many" in run(quiver, "try", plugin, "--payload", "a b", "--set", "words_max=1", code=1)


def test_nothing_of_the_template_is_left_in_a_new_plugin(quiver, tmp_path):
    for name, more in (("alpha", []), ("beta-2", ["--cpp"])):
        said = run(quiver, "new", name, *more, cwd=tmp_path)
        assert f'{name} = {{ plugin = "{name}.so"' in said
        for file in (tmp_path / name).iterdir():
            text = file.read_text()
            for word in ("my-plugin", "my_plugin", "@EXT@", "@SDK@"):
                assert word not in text, f"{file} still says {word}"


USES = {  # a call, its library in the plugin
    "curl": ("curl_version()", "libcurl.so"), "pq": ("PQlibVersion()", "libpq.so"), "sqlite": ("sqlite3_libversion()", "libsqlite3.so"),
    "jansson": ("jansson_version_str()", "libjansson.so"), "ssl": ("EVP_sha256()", "libcrypto.so")}


@pytest.mark.parametrize("language", ["c", "cpp"])
def test_a_new_plugin_links_the_libraries_that_it_is_made_with(quiver, root, tmp_path, language):
    """Each is called, so that a header or a library that is missing fails the build."""
    named = [word for name in USES for word in ("--with", name)]
    run(quiver, "new", "many", *named, *(["--cpp"] if language == "cpp" else []), cwd=tmp_path)
    source = tmp_path / "many" / f"many.{'cc' if language == 'cpp' else 'c'}"
    text = source.read_text()
    use = " && ".join(f"{call} != 0" for call, _ in USES.values())
    changed = re.sub(r"(handle\([^;{]*\{\n)", rf"\1        if (!({use}))\n                return QV_RETRY;\n", text, count=1)
    assert changed != text
    source.write_text(changed)
    env = {name: value for name, value in clean_env().items() if name != "PKG_CONFIG_LIBDIR"} | {"QUIVER_SDK": str(root / "sdk")}
    assert "4 tests passed" in make(tmp_path / "many", "all", "test", env=env)
    plugin = tmp_path / "many" / "many.so"
    needed = run("objdump", "-p", plugin)
    assert all(library in needed for _, library in USES.values()), needed
    assert re.search(r"result +3$", run(quiver, "try", plugin, "--payload", "one two three"), re.M)


def test_a_library_that_is_missing_or_unknown_is_named(quiver, root, tmp_path):
    assert "--with knows curl, pq, sqlite, jansson and ssl" in run(quiver, "new", "a", "--with", "mysql", cwd=tmp_path, code=2)
    assert "a worker imports" in run(quiver, "new", "a", "--python", "--with", "curl", cwd=tmp_path, code=2)
    assert os.listdir(tmp_path) == []
    run(quiver, "new", "a", "--with", "curl", cwd=tmp_path)
    said = make(tmp_path / "a", env=clean_env(QUIVER_SDK=str(root / "sdk")), code=2)
    assert "PKGS = libcurl" in said and "libcurl4-openssl-dev" in said


@pytest.mark.parametrize("name", ["int", "test", "build", "a" * 64, "A-_-9", "qv"])
def test_any_legal_name_builds(quiver, tmp_path, name):
    run(quiver, "new", name, cwd=tmp_path)
    assert "4 tests passed" in make(tmp_path / name, f"CFLAGS={STRICT}", "all", "test")
    assert exports(tmp_path / name / f"{name}.so") == ["quiver_plugin"]


@pytest.mark.parametrize("name", ["", "9lives", "-x", "_x", "a b", "a/b", "../a", "a.b", "ä", "a" * 65])
def test_a_wrong_name_is_refused(quiver, tmp_path, name):
    said = run(quiver, "new", "--", name, cwd=tmp_path, code=2)
    assert "cannot be a plugin's name" in said
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("words", [["new"], ["new", "a", "b"], ["new", "a", "--cxx"], ["new", "a", "--cpp=1"]])
def test_wrong_usage_exits_2_and_makes_nothing(quiver, tmp_path, words):
    assert "quiver new --help" in run(quiver, *words, cwd=tmp_path, code=2)
    assert os.listdir(tmp_path) == []


def test_an_existing_folder_is_left_alone(quiver, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious").write_text("kept")
    assert "there already" in run(quiver, "new", "mine", cwd=tmp_path, code=1)
    assert os.listdir(tmp_path / "mine") == ["precious"]


def test_without_an_sdk_the_makefile_says_what_to_set(quiver, tmp_path):
    lonely = tmp_path / "bin" / "quiver"
    lonely.parent.mkdir()
    shutil.copy(quiver, lonely)
    assert "QUIVER_SDK" in run(lonely, "new", "mine", cwd=tmp_path)
    assert "QUIVER_SDK" in make(tmp_path / "mine", code=2)


def test_quiver_sdk_comes_before_all_else(quiver, root, tmp_path):
    run(quiver, "new", "mine", cwd=tmp_path)
    shutil.copytree(root / "sdk", tmp_path / "elsewhere")
    said = make(tmp_path / "mine", env=clean_env(QUIVER_SDK=str(tmp_path / "elsewhere")))
    assert f"-I{tmp_path}/elsewhere/include" in said


# --- plugin.mk --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("cc,cxx", COMPILERS)
def test_cpp_inline_statics_do_not_leak(root, tmp_path, cc, cxx):
    """An inline static becomes STB_GNU_UNIQUE with GCC: shared by the whole process, and never unloaded."""
    (tmp_path / "Makefile").write_text(f"NAME = leaky\nSRC = leaky.cc helper.c\ninclude {root}/sdk/plugin.mk\n")
    (tmp_path / "helper.c").write_text("int helper(void);\nint helper(void)\n{\n        return 3;\n}\n")
    (tmp_path / "leaky.cc").write_text("""
#include <quiver/plugin.h>
#include <string>
extern "C" int helper(void);
template <typename T> struct Shared { static inline T value{}; };
inline std::string &once() { static std::string text = "x"; return text; }
int32_t handle(void *, const qv_task *) noexcept
{
        Shared<std::string>::value += once();
        return helper() == 3 ? QV_DONE : QV_RETRY;
}
QV_PLUGIN("leaky", "1", 0, nullptr, handle, nullptr, nullptr)
""")
    make(tmp_path, f"CC={cc}", f"CXX={cxx}")
    assert exports(tmp_path / "leaky.so") == ["quiver_plugin"]
    assert " u " not in run("nm", tmp_path / "build/leaky.cc.o")


def test_an_undefined_symbol_fails_the_build(root, tmp_path):
    (tmp_path / "Makefile").write_text(f"NAME = open\nSRC = open.c\ninclude {root}/sdk/plugin.mk\n")
    (tmp_path / "open.c").write_text("""
#include <quiver/plugin.h>
int32_t not_there(void *self, const struct qv_task *task);
QV_PLUGIN("open", "1", 0, NULL, not_there, NULL, NULL)
""")
    assert "not_there" in make(tmp_path, code=2)
    assert not (tmp_path / "open.so").exists()


# --- the headers ------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("header", ["plugin.h", "mock.h"])
@pytest.mark.parametrize("compiler,language,standard", [
    ("gcc", "c", "c11"), ("clang", "c", "c11"), ("g++", "c++", "c++17"), ("clang++", "c++", "c++17")])
def test_a_header_compiles_alone_and_strictly(root, tmp_path, header, compiler, language, standard):
    source = tmp_path / "alone"
    source.write_text(f"#include <quiver/{header}>\n#include <quiver/{header}>\n")
    run(compiler, f"-std={standard}", "-x", language, *STRICT.split(), "-Wshadow", "-I", root / "sdk/include", "-c",
        "-o", tmp_path / "alone.o", source)


THROWING = """
#include <quiver/plugin.h>
#include <stdexcept>
static int32_t handle(void *, const qv_task *) %s { throw std::runtime_error("thrown"); }
QV_PLUGIN("thrower", "1", 0, nullptr, handle, nullptr, nullptr)
"""


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_an_exception_ends_in_terminate_and_not_in_the_caller(root, tmp_path, compiler):
    flags = ["-std=c++17", "-Wno-terminate", "-Wno-exceptions", "-I", root / "sdk/include"]
    plugin, caller = tmp_path / "plugin.cc", tmp_path / "caller.cc"
    plugin.write_text(THROWING % "noexcept")
    caller.write_text("""
#include <cstdio>
#include <quiver/plugin.h>
extern "C" const qv_plugin quiver_plugin;
int main()
{
        try {
                return quiver_plugin.handle(nullptr, nullptr);
        } catch (...) {
                std::puts("caught by the caller");
                return 3;
        }
}
""")
    run(compiler, *flags, "-o", tmp_path / "caller", plugin, caller)
    said = run(tmp_path / "caller", code=-signal.SIGABRT)
    assert "thrown" in said
    assert "caught by the caller" not in said


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_a_handler_that_may_throw_does_not_compile(root, tmp_path, compiler):
    source = tmp_path / "plugin.cc"
    source.write_text(THROWING % "")
    said = run(compiler, "-std=c++17", "-fsyntax-only", "-I", root / "sdk/include", source, code=1)
    assert "noexcept" in said


# --- install ----------------------------------------------------------------------------------------------------------

def files_below(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


@pytest.fixture(scope="module")
def prefix(root, quiver, tmp_path_factory):
    """An installed Quiver."""
    folder = tmp_path_factory.mktemp("prefix")
    make(root, "install", f"PREFIX={folder}")
    return folder


def test_an_author_outside_the_tree_needs_only_the_prefix(prefix, tmp_path):
    """The binary, pkg-config and the prefix; nothing of the source tree."""
    env = clean_env(PKG_CONFIG_LIBDIR=f"{prefix}/lib/pkgconfig", PATH=f"{prefix}/bin:{os.environ['PATH']}")
    said = run("quiver", "new", "mine", "--cpp", cwd=tmp_path, env=env)
    assert "quiver try ./mine.so" in said
    for words in (["all", "test"], ["test", "SAN=1"]):
        said = make(tmp_path / "mine", *words, env=env)
        assert "4 tests passed" in said
        assert f"-I{prefix}/include" in said
    make(tmp_path / "mine", "install", env=env)
    assert (prefix / "lib/quiver/plugins/mine.so").exists()
    (prefix / "lib/quiver/plugins/mine.so").unlink()

    flags = run("pkg-config", "--cflags", "--libs", "quiver-mock", env=env).split()
    source = tmp_path / "by_hand.c"
    source.write_text(BY_HAND)
    run("gcc", *STRICT.split(), "-o", tmp_path / "by_hand", source, *flags)
    run(tmp_path / "by_hand")


BY_HAND = """
#include <quiver/mock.h>
static int32_t handle(void *self, const struct qv_task *task)
{
        (void)self;
        return task->payload_size == 2 ? QV_DONE : QV_REJECT;
}
QV_PLUGIN("by_hand", "1", 0, NULL, handle, NULL, NULL)
int main(void)
{
        struct qv_mock *mock = qv_mock_new(&quiver_plugin);
        int ok = !qv_mock_init(mock) && qv_mock_handle(mock, qv_mock_new_task(mock, "k", "ok")) == QV_DONE;
        qv_mock_free(mock);
        return !ok;
}
"""


def test_the_stock_plugins_are_installed_with_one_export_each(prefix):
    plugins = list((prefix / "lib/quiver/plugins").glob("*.so"))
    assert "echo.so" in [plugin.name for plugin in plugins]
    for plugin in plugins:
        assert exports(plugin) == ["quiver_plugin"]


def test_the_installed_unit_and_sample_name_the_prefix(prefix, quiver, tmp_path):
    """The unit runs what was installed; the sample is valid, and its plugins are there."""
    unit = (prefix / "lib/systemd/system/quiver.service").read_text()
    assert f"ExecStart={prefix}/bin/quiver run" in unit and f"ExecReload={prefix}/bin/quiver reload" in unit
    assert "/usr/local" not in unit
    sample = prefix / "share/quiver/runtime.cfg"
    assert f'plugins = "{prefix}/lib/quiver/plugins";' in sample.read_text()
    folder = f"state={tmp_path}/state"
    done = subprocess.run([prefix / "bin/quiver", "check", "-c", sample, "--set", folder], capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("README.md", "LICENSE", "etc/OPERATIONS.md", "sdk/README.md", "examples/submit.c", "examples/echo.c"):
        assert (prefix / "share/doc/quiver" / name).exists(), name
    assert (prefix / "share/quiver/quiver.logrotate").exists() and (prefix / "lib/sysusers.d/quiver.conf").exists()


def test_uninstall_takes_back_exactly_what_install_put_there(root, quiver, tmp_path):
    destination = tmp_path / "stage"
    foreign = destination / "opt/q/lib/quiver/plugins/theirs.so"
    foreign.parent.mkdir(parents=True)
    foreign.write_text("not ours")
    words = [f"DESTDIR={destination}", "PREFIX=/opt/q"]
    make(root, "install", *words)
    installed = files_below(destination)
    for name in ("bin/quiver", "include/quiver/plugin.h", "include/quiver/mock.h", "share/quiver/plugin.mk",
                 "share/quiver/plugin.map", "lib/libquiver-mock.a", "lib/pkgconfig/quiver-plugin.pc",
                 "lib/pkgconfig/quiver-mock.pc", "lib/quiver/plugins/echo.so"):
        assert f"opt/q/{name}" in installed
    assert not [name for name in installed if name.endswith(".new")]
    assert "prefix=/opt/q\n" in (destination / "opt/q/lib/pkgconfig/quiver-plugin.pc").read_text()
    make(root, "uninstall", *words)
    assert files_below(destination) == ["opt/q/lib/quiver/plugins/theirs.so"]
    assert not (destination / "opt/q/include/quiver").exists()
    assert foreign.read_text() == "not ours"


@pytest.fixture
def torn_copy(tmp_path):
    """A PATH on which install(1) writes half a file and dies."""
    fake = tmp_path / "fake" / "install"
    fake.parent.mkdir()
    fake.write_text('#!/bin/sh\nfor to; do :; done\n[ -d "$to" ] || [ "$1" = -d ] && exit 0\n'
                    'rm -f "$to"; echo half > "$to"; exit 1\n')
    fake.chmod(0o755)
    return clean_env(PATH=f"{fake.parent}:{os.environ['PATH']}")


def test_an_install_that_dies_leaves_the_old_files_whole(root, quiver, tmp_path, torn_copy):
    """By rename: whoever looks sees the old file or the new one, never half of one."""
    make(root, "install", f"PREFIX={tmp_path}/q")
    before = {name: (tmp_path / "q" / name).read_bytes() for name in files_below(tmp_path / "q")}
    make(root, "install", f"PREFIX={tmp_path}/q", env=torn_copy, code=2)
    assert before == {name: (tmp_path / "q" / name).read_bytes() for name in before}


def test_an_author_s_install_that_dies_leaves_the_old_plugin_whole(quiver, tmp_path, torn_copy):
    run(quiver, "new", "mine", cwd=tmp_path)
    make(tmp_path / "mine", "install", f"PLUGINS={tmp_path}/plugins")
    before = (tmp_path / "plugins/mine.so").read_bytes()
    make(tmp_path / "mine", "install", f"PLUGINS={tmp_path}/plugins", env=torn_copy, code=2)
    assert (tmp_path / "plugins/mine.so").read_bytes() == before


# --- what the guides say ----------------------------------------------------------------------------------------------

GUIDES = ["README.md", "sdk/README.md"]
PAGES = ["etc/MIGRATING.md"]  # with excerpts, and no whole plugin


def blocks(path, language):
    found = re.findall(r"^```(\w*)\n(.*?)^```$", path.read_text(), re.M | re.S)
    return [text for name, text in found if name == language]


@pytest.mark.parametrize("guide", GUIDES + PAGES)
@pytest.mark.parametrize("cc,cxx", COMPILERS)
def test_the_examples_of_a_guide_compile(root, tmp_path, guide, cc, cxx):
    found = 0
    for language, suffix, compiler, standard in (("c", "c", cc, "c11"), ("cpp", "cc", cxx, "c++17")):
        for number, text in enumerate(blocks(root / guide, language)):
            source = tmp_path / f"example{number}.{suffix}"
            # An excerpt may leave out the first line, and the caller.
            if "#include <quiver/" not in text:
                text = "#include <quiver/plugin.h>\n" + text
            source.write_text(text)
            run(compiler, f"-std={standard}", *STRICT.split(), "-Wno-unused-function", "-I", root / "sdk/include",
                "-c", "-o", tmp_path / "example.o", source)
            found += 1
    assert found, f"{guide} has no example"


@pytest.mark.parametrize("guide", GUIDES)
def test_a_whole_plugin_in_a_guide_builds_with_plugin_mk(root, tmp_path, guide):
    wholes = [text for text in blocks(root / guide, "c") if "\nQV_PLUGIN(" in text]
    assert wholes
    for number, text in enumerate(wholes):
        (tmp_path / f"p{number}.c").write_text(text)
        (tmp_path / "Makefile").write_text(f"NAME = p{number}\nSRC = p{number}.c\ninclude {root}/sdk/plugin.mk\n")
        make(tmp_path)
        assert exports(tmp_path / f"p{number}.so") == ["quiver_plugin"]


def test_the_plugin_of_the_readme_does_what_it_says_in_thirty_lines(root, quiver, tmp_path):
    source = blocks(root / "README.md", "c")[0]
    assert len(source.splitlines()) <= 30
    (tmp_path / "ledger.c").write_text(source)
    (tmp_path / "Makefile").write_text(f"NAME = ledger\nSRC = ledger.c\ninclude {root}/sdk/plugin.mk\n")
    make(tmp_path)
    ledger = tmp_path / "ledger.txt"
    for payload in ("first", "second"):
        run(quiver, "try", tmp_path / "ledger.so", "--set", f"path={ledger}", "--key", "user-7", "--payload", payload)
    assert ledger.read_text() == "user-7 first\nuser-7 second\n"
    assert "nothing to write down" in run(quiver, "try", tmp_path / "ledger.so", "--set", f"path={ledger}",
                                          "--payload", "", code=1)


def test_the_fencing_sql_refuses_an_older_start(root):
    """The guide's statements, run as they stand."""
    table, write = blocks(root / "sdk/README.md", "sql")[:2]
    database = sqlite3.connect(":memory:")
    database.executescript(table)

    def put(balance, epoch, start):
        values = {"1": "user-7", "2": balance, "3": epoch, "4": start}
        return database.execute(re.sub(r"\$(\d)", r":p\1", write),
                                {f"p{name}": value for name, value in values.items()}).rowcount

    assert put(10, 1, 5) == 1
    assert put(20, 1, 6) == 1
    assert put(99, 1, 5) == 0, "an older start of the same owner"
    assert put(30, 2, 1) == 1, "a new owner counts from 1 again"
    assert put(99, 1, 7) == 0, "the old owner woke up"
    assert put(31, 2, 1) == 1, "the same start may write twice"
    assert database.execute("select balance from account").fetchall() == [(31,)]


@pytest.mark.parametrize("guide", GUIDES + PAGES + ["plugins/echo/README.md"])
def test_the_links_of_a_guide_lead_somewhere(root, guide):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (root / guide).read_text()):
        assert ((root / guide).parent / target).exists(), target


def test_the_map_of_the_tree_names_what_is_there(root):
    tree = blocks(root / "README.md", "")[-1]
    top, names = "", 0
    for line in tree.splitlines():
        top = re.match(r"(\w+/)?", line)[1] or top
        for name in re.findall(r"(?<![\w/])(?:\w+/)+(?= )|(?<![\w/])(?:\w+/)*\w+\.(?:c|h|mk|md|cfg)\b", line):
            assert any((root / base / name).exists() for base in ("", top, f"{top}include/quiver")), name
            names += 1
    assert names > 15
