"""The client library as a program outside the tree gets it: header, pkg-config, static and shared, the example."""
import os
import subprocess

import pytest

STRICT = ["-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
CONFIG = 'app = "demo"; shards = 4; store = { url = "sqlite:q.db"; }; coordination = { url = "local:var"; };\n'


def run(*command, code=0, **options):
    done = subprocess.run([str(word) for word in command], text=True, timeout=300, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **options)
    assert done.returncode == code, f"{command}: exit code {done.returncode}\n{done.stdout}"
    return done.stdout


def clean_env(**more):
    """Without what make passes on to its children."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "QUIVER"))}
    return {**env, **more}


@pytest.fixture(scope="module")
def prefix(root, quiver, tmp_path_factory):
    folder = tmp_path_factory.mktemp("prefix")
    run("make", "-C", root, "install", f"PREFIX={folder}", env=clean_env())
    return folder


@pytest.fixture(scope="module")
def flags(prefix):
    """What pkg-config says, from the prefix first."""
    env = clean_env(PKG_CONFIG_PATH=f"{prefix}/lib/pkgconfig")
    return lambda *words: run("pkg-config", *words, "quiver-client", env=env).split()


@pytest.fixture(scope="module")
def owner(root, quiver):
    run("make", "-s", "-C", root, "build/tests/e2e/support/owner", env=clean_env())
    return root / "build/tests/e2e/support/owner"


@pytest.fixture
def shop(tmp_path, owner):
    (tmp_path / "runtime.cfg").write_text(CONFIG)
    run(owner, f"sqlite:{tmp_path}/q.db", "demo", 4, "create")
    return tmp_path


def serve(program, folder, owner, verdict, *words):
    """Starts the program and plays the host until it has worked off a task."""
    process = subprocess.Popen([program, folder / "runtime.cfg", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True)
    try:
        for _ in range(1000):
            if run(owner, f"sqlite:{folder}/q.db", "demo", 4, "work", verdict):
                break
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    return process.returncode, out, err


def symbols(*words):
    lines = run("nm", "--defined-only", *words).splitlines()
    return {line.split()[-1].split("@")[0] for line in lines if " T " in line or " D " in line or " B " in line}


def test_both_forms_show_only_the_client_s_names(prefix, root):
    shared = symbols("-D", prefix / "lib/libquiver.so")
    assert shared == symbols("-g", prefix / "lib/libquiver.a")
    assert len(shared) > 10 and all(name.startswith("qv_client_") for name in shared)
    header = (root / "sdk/include/quiver/client.h").read_text()
    assert all(f"{name}(" in header for name in shared)
    assert "SONAME" in run("readelf", "-d", prefix / "lib/libquiver.so") and \
        "[libquiver.so.1]" in run("readelf", "-d", prefix / "lib/libquiver.so")


def test_libcurl_is_only_loaded_for_etcd_and_never_linked(prefix, flags, quiver):
    assert "-lquiver" in flags("--libs") and "-lzookeeper_mt" in flags("--static", "--libs")
    assert not [word for word in flags("--static", "--libs") if "curl" in word]
    assert "curl_easy_init" not in run("nm", "-u", prefix / "lib/libquiver.a")
    for program in (prefix / "lib/libquiver.so", quiver):
        assert "NEEDED" in run("readelf", "-d", program) and "curl" not in run("readelf", "-d", program)


@pytest.mark.parametrize("form", ["shared", "static"])
def test_the_example_submits_and_waits(prefix, flags, root, shop, owner, form):
    program = shop / "submit"
    libraries = flags("--libs") + [f"-Wl,-rpath,{prefix}/lib"]
    if form == "static":
        libraries = [word for word in flags("--static", "--libs") if word != "-lquiver"]
        libraries.insert(0, prefix / "lib/libquiver.a")
    run("gcc", "-std=c11", *STRICT, *flags("--cflags"), "-o", program, root / "sdk/examples/submit.c", *libraries)
    assert serve(program, shop, owner, "echo", "echo", "user-17", "world")[:2] == (0, "world\n")
    code, _, said = serve(program, shop, owner, "reject", "echo", "user-17", "world")
    assert code == 1 and "dead (rejected): no such user" in said
    (shop / "q.db").unlink()
    assert "quiver run" in run(program, shop / "runtime.cfg", "echo", "k", "x", code=3)


@pytest.mark.parametrize("compiler", ["gcc -std=c11", "clang -std=c11", "g++ -std=c++17", "clang++ -std=c++17"])
def test_the_header_is_clean_beside_the_plugin_s(prefix, tmp_path, compiler):
    source = tmp_path / ("a.cc" if "++" in compiler else "a.c")
    source.write_text("#include <quiver/client.h>\n#include <quiver/plugin.h>\n"
                      "int use(void);\nint use(void)\n{\n"
                      "        struct qv_client_options options = QV_CLIENT_OPTIONS_INIT;\n"
                      "        struct qv_client_task task = QV_CLIENT_TASK_INIT;\n"
                      "        struct qv_client_info info = QV_CLIENT_INFO_INIT;\n"
                      "        struct qv_client_counts counts = QV_CLIENT_COUNTS_INIT;\n"
                      "        return (int)(options.size + task.size + info.size + counts.size);\n}\n")
    run(*compiler.split(), *STRICT, f"-I{prefix}/include", "-c", "-o", tmp_path / "a.o", source)
