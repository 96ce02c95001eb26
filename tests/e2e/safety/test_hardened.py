"""The binaries are built so that a mistake in memory ends in a crash, and not in somebody else's code."""
import platform
import re
import shutil
import subprocess

import pytest

IS_INTEL = platform.machine() == "x86_64"
ENDBR64 = b"\xf3\x0f\x1e\xfa"

pytestmark = pytest.mark.skipif(not shutil.which("readelf"), reason="readelf is not installed (package binutils)")


def readelf(option, path):
    return subprocess.run(["readelf", "-W", option, path], check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def built(root):
    """What is installed, never with a sanitizer, whatever else is tested."""
    subprocess.run(["make", "-s", "-C", root, "build", "build/libquiver.so.1"], check=True, capture_output=True)
    return [root / "build/quiver", root / "build/libquiver.so.1", *sorted((root / "plugins").glob("*.so"))]


@pytest.fixture(scope="module")
def an_authors(root, quiver, tmp_path_factory):
    """What sdk/plugin.mk makes of the template."""
    folder = tmp_path_factory.mktemp("author")
    subprocess.run([root / "build/quiver", "new", "mine"], check=True, cwd=folder, capture_output=True)
    subprocess.run(["make", "-C", folder / "mine"], check=True, capture_output=True)
    return folder / "mine" / "mine.so"


def assert_bound_at_load(path):
    """Full RELRO: what calls go through is read-only before the first of them."""
    flags = readelf("-d", path)
    assert re.search(r"\(FLAGS\).*BIND_NOW|\(BIND_NOW\)", flags) and re.search(r"\(FLAGS_1\).*NOW", flags), path
    segments = readelf("-l", path)
    assert "GNU_RELRO" in segments, path
    (stack,) = re.findall(r"GNU_STACK .*", segments)
    assert "RWE" not in stack and "E " not in stack.split("0x")[-2], path


def test_everything_is_bound_at_load_and_no_stack_is_executable(built, an_authors):
    assert len(built) >= 6
    for path in [*built, an_authors]:
        assert_bound_at_load(path)


def test_the_program_can_be_loaded_anywhere(built):
    assert re.search(r"Type:\s+DYN", readelf("-h", built[0]))
    assert "PIE" in readelf("-d", built[0])


def test_stacks_are_watched_and_copies_are_checked(built):
    for path in built:
        symbols = readelf("--dyn-syms", path)
        assert "__stack_chk_fail" in symbols, path
        assert re.search(r"__\w+_chk\b", symbols), path


def test_where_calls_may_arrive_is_marked(built, an_authors):
    """The instruction itself: whether the whole file is marked is up to the system's own start files, which in Debian 12
    are not."""
    if not IS_INTEL:
        pytest.skip("this machine's processors have no CET")
    for path in [*built, an_authors]:
        assert path.read_bytes().count(ENDBR64) >= (1000 if path.stem == "quiver" else 4), path  # the start files have two


def test_an_authors_stack_is_watched_and_his_copies_are_checked(root, tmp_path):
    (tmp_path / "mine.c").write_text("""
#include <quiver/plugin.h>
static int32_t handle(void *self, const struct qv_task *task)
{
        char text[16];
        (void)self;
        strcpy(text, (const char *)task->payload);
        return text[0] == 'x' ? QV_REJECT : QV_DONE;
}
QV_PLUGIN("mine", "1", 0, NULL, handle, NULL, NULL)
""")
    (tmp_path / "Makefile").write_text(f"NAME = mine\nSRC = mine.c\ninclude {root}/sdk/plugin.mk\n")
    subprocess.run(["make", "-C", tmp_path], check=True, capture_output=True)
    symbols = readelf("--dyn-syms", tmp_path / "mine.so")
    assert "__stack_chk_fail" in symbols and "__strcpy_chk" in symbols
    # Without an optimiser there is nothing to check copies with, and no warning about it either.
    subprocess.run(["make", "-C", tmp_path, "clean"], check=True, capture_output=True)
    done = subprocess.run(["make", "-C", tmp_path, "CFLAGS=-O0 -Wall -Werror"], capture_output=True, text=True)
    assert done.returncode == 0 and "FORTIFY" not in done.stderr, done.stderr
