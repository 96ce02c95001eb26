"""Running `quiver try` in the end-to-end tests, and proof that it left nothing behind."""
import json
import os
import pathlib
import signal
import subprocess
import time
import uuid


class Tries:
    """Runs of `quiver try` that share a temporary folder and a mark in their environment, by which whatever they leave
    behind is found."""

    def __init__(self, quiver, folder):
        self.quiver = quiver
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.mark = f"TRIES_MARK={uuid.uuid4()}"
        name, value = self.mark.split("=")
        self.env = {**os.environ, "TMPDIR": str(self.temporary), name: value}
        self.started = []

    def start(self, plugin, *options, **more):
        """A run in the background; its standard streams are pipes, unless `more` says otherwise."""
        streams = {name: subprocess.PIPE for name in ("stdin", "stdout", "stderr")}
        child = subprocess.Popen([str(word) for word in (self.quiver, "try", plugin, *options)], env=self.env,
                                 **{**streams, **more})
        self.started.append(child)
        return child

    def run(self, plugin, *options, text="", timeout=60, **more):
        """A whole run.  Returns (exit code, standard output, standard error)."""
        child = self.start(plugin, *options, **more)
        out, err = child.communicate(text if isinstance(text, bytes) else text.encode(), timeout=timeout)
        return child.returncode, out.decode(errors="replace"), err.decode(errors="replace")

    def lines(self, plugin, payloads, *options, **more):
        """A task per payload.  Returns (exit code, {payload's place: JSON object}, standard error)."""
        text = "".join(f"{payload}\n" for payload in payloads)
        code, out, err = self.run(plugin, "--lines", "--json", *options, text=text, **more)
        return code, by_place(out), err

    def processes(self):
        """Every process that carries our mark."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit() and self.mark.encode() in read_or_nothing(entry / "environ"):
                found.append(int(entry.name))
        return found

    def runners(self, child):
        """The runners of one run that are up: they have their name."""
        found = []
        for pid in read_or_nothing(pathlib.Path(f"/proc/{child.pid}/task/{child.pid}/children")).split():
            if read_or_nothing(pathlib.Path(f"/proc/{int(pid)}/comm")).startswith(b"qv:"):
                found.append(int(pid))
        return found

    def assert_nothing_left(self):
        wait_for(lambda: not self.processes(), "the processes to be gone")
        assert os.listdir(self.temporary) == []

    def close(self):
        for child in self.started:
            child.kill()
            child.wait()
            for stream in (child.stdin, child.stdout, child.stderr):
                if stream:
                    stream.close()
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def by_place(out):
    """The outcomes by the place of their task in the input, from 1.  Each has exactly one."""
    tasks = {}
    for line in out.splitlines():
        task = json.loads(line)
        if "id" not in task:
            continue
        place = int(task["id"].removeprefix("try-"))
        assert place not in tasks, f"two outcomes: {tasks[place]} and {task}"
        tasks[place] = task
    return tasks


def read_or_nothing(path):
    try:
        return path.read_bytes()
    except OSError:  # it has ended meanwhile
        return b""


def wait_for(condition, what, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.005)
