"""The README as a newcomer types it: its blocks, exactly, in a copy of the tree; and every command and option that it
names exists."""
import os
import re
import shutil
import signal
import subprocess

import pytest

from hosts import wait_until


def blocks(text, title):
    """The code blocks of one chapter."""
    chapter = text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    assert chapter, title
    return re.findall(r"```\n(.*?)```", chapter, re.DOTALL)


@pytest.fixture
def clone(root, quiver, tmp_path):
    """What is in the repository, and what is built of it: make finds nothing to do."""
    folder = tmp_path / "quiver"
    if not (root / ".git").exists() or not shutil.which("git"):
        pytest.skip("this is no clone")
    names = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True).stdout
    for name in filter(None, names.decode().split("\0")):
        if not (root / name).exists():
            continue
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / name, folder / name)
    (folder / "build").mkdir()
    for name in ("obj", "quiver", "embedded.c", "flags", "libruntime.a", "libquiver-mock.a"):
        if (root / "build" / name).exists():
            subprocess.run(["cp", "-a", root / "build" / name, folder / "build"], check=True)
    for plugin in (root / "plugins").glob("*.so"):
        shutil.copy2(plugin, folder / "plugins" / plugin.name)
    return folder


def clean_env():
    return {name: value for name, value in os.environ.items()
            if not name.startswith(("MAKE", "MFLAGS", "QUIVER", "PKG_CONFIG"))}


class Terminal:
    """A shell of its own in that folder, whose program is ended with Ctrl-C."""

    def __init__(self, folder, line, log):
        self.log = log
        with open(log, "wb") as out:
            self.process = subprocess.Popen(["bash", "-c", line], cwd=folder, env=clean_env(), stdout=out, stderr=out,
                                            start_new_session=True)

    def text(self):
        return self.log.read_text(errors="replace")

    def wait_for(self, text):
        wait_until(lambda: text in self.text() or self.process.poll() is not None, f"{text}", 300)
        assert text in self.text(), self.text()

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGINT)
        self.process.wait(60)


def test_five_minutes_as_typed(root, clone, tmp_path):
    block, *_ = blocks((root / "README.md").read_text(), "Five minutes")
    first, _, rest = block.partition("\n")
    second_host = next(block for block in blocks((root / "README.md").read_text(), "Several hosts") if "--name b" in block)
    assert first.startswith("make run")
    terminals = [Terminal(clone, first, tmp_path / "first")]
    try:
        terminals[0].wait_for("Ready.  In another terminal:")
        done = subprocess.run(["bash", "-ex"], input=rest, cwd=clone, env=clean_env(), capture_output=True, text=True,
                              timeout=300)
        assert done.returncode == 0, done.stderr + done.stdout
        assert "hello, world" in done.stdout and done.stdout.endswith("3"), done.stdout
        assert "word-count" in (clone / "etc" / "runtime.cfg").read_text()
        terminals.append(Terminal(clone, "export PATH=$PWD/build:$PATH\n" + second_host, tmp_path / "second"))
        terminals[1].wait_for("event=running")
        wait_until(lambda: "b," in subprocess.run([clone / "build/quiver", "status"], cwd=clone, capture_output=True,
                                                  text=True, timeout=60).stdout, "the second host is seen beside the first")
    finally:
        for terminal in reversed(terminals):
            terminal.close()
    for terminal in terminals:
        wait_until(lambda: "event=stopped" in terminal.text(), "a Ctrl-C lets a host end in peace")


def test_every_command_and_option_that_it_names_exists(root, quiver):
    text = (root / "README.md").read_text()
    helps = {}
    for line in re.findall(r"^(?:[^`\n]*&& )?quiver (\w+.*)$", text, re.MULTILINE):
        line = line.partition("  #")[0].partition(" -- ")[0]
        command = line.split()[0]
        if command not in helps:
            done = subprocess.run([quiver, command, "--help"], capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, line
            helps[command] = done.stdout
        for option in re.findall(r"(?<= )--[a-z-]+", line.partition("|")[0]):
            assert option in helps[command], line
    assert len(helps) > 10
