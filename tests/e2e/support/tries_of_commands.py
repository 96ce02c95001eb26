"""What the tests of handlers in any language share: `quiver try` on the exec and pipe plugins, and nothing left over."""
import base64
import json
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import time
import uuid

import pytest

PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
ALL_BYTES = bytes(range(256)) + b"\n\n\0\0\r\n"
MIB = 1024 * 1024


def wait_until(condition, what, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s: {what()}"
        time.sleep(0.01)


class Bench:
    """Runs `quiver try` with a mark in the environment of whatever it starts, to find what it leaves behind."""

    def __init__(self, quiver, root, folder):
        self.quiver, self.root, self.folder = quiver, root, folder
        self.mark = f"QVTEST={uuid.uuid4()}"

    def command(self, plugin, settings, *options):
        words = [str(self.quiver), "try", str(self.root / "plugins" / f"{plugin}.so"), "--json"]
        for name, value in settings.items():
            if isinstance(value, (list, tuple)):
                for index, element in enumerate(value):
                    words += ["--set", f"{name}.{index}={element}"]
            else:
                words += ["--set", f"{name}={value}"]
        return words + [str(option) for option in options]

    def start(self, plugin, settings, *options, env=None, **more):
        settings = {**settings, "env": [self.mark, *settings.get("env", [])]}
        name, value = self.mark.split("=")
        return subprocess.Popen(self.command(plugin, settings, *options), env={**os.environ, **(env or {}), name: value},
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)

    def tries(self, plugin, settings, *options, stdin=b"", env=None):
        """What became of each task, by number; and what was logged."""
        process = self.start(plugin, settings, *options, stdin=subprocess.PIPE, env=env)
        try:
            out, err = process.communicate(stdin, timeout=100)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        tasks = [json.loads(line) for line in out.splitlines()]
        tasks.sort(key=lambda task: int(task.get("id", "try-0").split("-")[1]))
        return tasks, err.decode(errors="replace")

    def one(self, plugin, settings, payload=b"", *options, **more):
        tasks, log = self.tries(plugin, settings, "--payload", "-", *options, stdin=payload, **more)
        assert len(tasks) == 1, (tasks, log)
        return tasks[0], log

    def outcomes(self, plugin, settings, lines, *options):
        tasks, log = self.tries(plugin, settings, "--lines", *options, stdin="\n".join(lines).encode() + b"\n")
        return [task.get("outcome") for task in tasks], tasks, log

    def left_over(self):
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                if self.mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found.append((int(entry.name), (entry / "cmdline").read_bytes()))
            except OSError:
                continue
        return found

    def script(self, text, name="worker.py"):
        path = self.folder / name
        path.write_text(textwrap.dedent(text))
        return path


@pytest.fixture
def bench(quiver, root, tmp_path):
    bench = Bench(quiver, root, tmp_path)
    yield bench
    wait_until(lambda: not bench.left_over(), lambda: f"left over: {bench.left_over()}")


def result_of(task):
    if "result_base64" in task:
        return base64.b64decode(task["result_base64"])
    return task["result"].encode() if "result" in task else None


def children_of(pid):
    return [int(child) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()]


def kill_the_runner(bench, process, ready):
    """Waits for the file that says that all is running, kills the runner with SIGKILL, and once more when the task runs
    again, alone; returns the outcome."""
    for _ in range(2):
        wait_until(ready.exists, lambda: "the command runs")
        ready.unlink()
        runners = children_of(process.pid)
        assert len(runners) == 1
        assert len(bench.left_over()) > 3  # try, runner, guard, child, grandchild
        os.kill(runners[0], signal.SIGKILL)
    out, _ = process.communicate(timeout=60)
    return json.loads(out.splitlines()[0])["outcome"]
