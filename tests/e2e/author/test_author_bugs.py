"""The table of the author's guide ("When your plugin crashes"): each bug, in a plugin that has it, is told as the table says, by
quiver try, quiver vet, the log and quiver task."""
import re
import subprocess

import pytest

from hosts import Host, wait_until

# The plugin that has the bug, by the bug's name in the table; and its limits, as settings and as options.
PLUGINS = {
    "a null pointer": "segv.so", "a double free": "double_free.so", "an exception that nobody catches": "throws.so",
    "a recursion without an end": "stack_overflow.so", "a crash in a thread of yours": "thread_crashes.so",
    "`exit` in a thread of yours": "thread_exits.so", "a deadlock": "deadlock.so", "2 GB under `limits.memory`": "two_gib.so",
    "a leak": "leaks.so",
}
MEMORY = {"two_gib.so": ('limits = { memory = "64MiB"; };', ("--memory", "64MiB"))}
CONFIG = """
app = "bugs"; shards = 4; state = "{folder}/state"; plugins = "{plugins}";
store = {{ url = "sqlite:{folder}/q.db"; synchronous = "normal"; }};
lease = {{ ttl = "1s"; }};
handlers = {{ {handlers} }};
"""
HANDLER = '{name} = {{ plugin = "{plugin}"; timeout = "300ms"; grace = "100ms"; crashes = 1; retry = {{ attempts = 1; }}; {more} }};\n'


def rows(root):
    """{bug: (what they say, what vet finds)}, each as the texts between back quotes."""
    text = (root / "sdk/README.md").read_text()
    table = text[text.index("| the bug |"):].split("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    return {bug: (re.findall(r"`([^`]+)`", said), re.findall(r"`([^`]+)`", found)) for bug, said, found in cells}


def pattern(said):
    """Numbers differ from machine to machine, and so does what a C library says about one block freed twice."""
    return re.sub(r"\d+", r"\\d+", re.escape(said)).replace(r"double\ free\ or\ corruption\ \(out\)", r"(double free|free\(\))")


def assert_said(texts, where, output):
    for said in texts:
        assert re.search(pattern(said), output), f"{where} lacks {said}:\n{output}"


@pytest.fixture(scope="module")
def host(quiver, root, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bugs")
    made = Host(quiver, root / "build/villains", folder)
    handlers = "".join(HANDLER.format(name=plugin.removesuffix(".so"), plugin=plugin, more=MEMORY.get(plugin, ("",))[0])
                       for plugin in PLUGINS.values())
    made.config.write_text(CONFIG.format(folder=folder, plugins=made.plugins, handlers=handlers))
    made.start()
    yield made
    made.close()


def test_every_bug_of_the_table_has_a_plugin(root):
    assert set(rows(root)) == set(PLUGINS)


@pytest.mark.parametrize("bug", [bug for bug in PLUGINS if bug != "a leak"])
def test_a_crash_is_told_as_the_guide_says(quiver, root, host, bug):
    plugin = PLUGINS[bug]
    said, _ = rows(root)[bug]
    tried = subprocess.run([quiver, "try", host.plugins / plugin, "-p", "bad", "--timeout", "300ms", "--grace", "100ms",
                            *MEMORY.get(plugin, ("", ()))[1]], text=True, capture_output=True, timeout=60)
    assert tried.returncode == 1
    assert_said(said, "quiver try", tried.stdout)
    handler = plugin.removesuffix(".so")
    task = host.cli("submit", handler, "--key", handler, "bad").strip()
    wait_until(lambda: "state        dead" in host.cli("task", task), "the task is given up")
    shown = host.cli("task", task)
    assert_said(said, "quiver task", shown)
    source = re.search(rf"^ {{6}}\S.* \({handler}\.so\) at {handler}\.cc?:\d+$", shown, re.MULTILINE)
    assert source, f"no line with a source file:\n{shown}"
    assert re.search(r"^ {6}\(on .* plugin=[0-9a-f]{8} version=1\.0\)$", shown, re.MULTILINE), shown
    line = next(line for line in host.log().splitlines() if "event=crash" in line and task in line)
    assert_said(said, "the log", line.replace('\\"', '"'))
    assert re.search(rf'pid=\d+ plugin="?{handler}\.so"? version="?1\.0"? hash=[0-9a-f]{{8}} ', line), line


@pytest.mark.parametrize("bug", PLUGINS)
def test_vet_finds_it_as_the_guide_says(quiver, root, tmp_path, bug):
    plugin = PLUGINS[bug]
    (tmp_path / "corpus").write_text("bad\n")
    size = ("--payloads", "2000") if bug == "a leak" else ("--payloads", "30")
    vetted = subprocess.run([quiver, "vet", root / "build/villains" / plugin, "--corpus", "corpus", "--seed", "1", *size,
                             "--quick", *MEMORY.get(plugin, ("", ()))[1]], text=True, capture_output=True, timeout=120,
                            cwd=tmp_path)
    assert_said([text for text in rows(root)[bug][1] if not text.startswith("--")], "quiver vet", vetted.stdout)
    assert [path.name for path in tmp_path.iterdir()] == ["corpus"]
