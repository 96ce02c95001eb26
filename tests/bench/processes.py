"""Processes of the benchmarks: started, waited for, looked at, and always stopped, each by its own pid."""
import contextlib
import ctypes
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
QUIVER = BUILD / "quiver"
TOOLS = BUILD / "tests" / "bench"
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)
TOOL_S = 600


class Stuck(Exception):
    """What was waited for did not happen."""


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def start(words, log, **more):
    with open(log, "ab") as file:
        return subprocess.Popen([str(w) for w in words], stdout=file, stderr=file, preexec_fn=die_with_parent, **more)


def stop(process, seconds=30):
    if process and process.poll() is None:
        process.terminate()
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def running(words, **more):
    """A process whose output is to be read; gone afterwards."""
    with subprocess.Popen([str(w) for w in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          preexec_fn=die_with_parent, **more) as process:
        try:
            yield process
        finally:
            stop(process, 5)


def output(words, seconds=TOOL_S, **more):
    """What it printed.  It has that long."""
    with running(words, **more) as process:
        try:
            said, complaint = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise Stuck(f"{words[0]} {words[1:]} was not done after {seconds} s") from None
    if process.returncode:
        raise Stuck(f"{words[0]} failed with {process.returncode}: {complaint.strip() or said.strip()}")
    return said


def tool(name, *words):
    return output([TOOLS / name, *words])


def wait_until(condition, what, seconds=120, pause=0.005):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise Stuck(f"this did not happen within {seconds} s: {what}")
        time.sleep(pause)


def wait_done(done, goal, seconds=60, pause=0.005, pause_max=0):
    """Until done() has reached the goal; Stuck if it stands still that long.

    With `pause_max` it looks less often while the goal is far away, after half of the time that is left by the rate so far:
    whoever only wants to know the end must not cost what it measures."""
    first = last = done()
    began = moved = time.monotonic()
    while last < goal:
        rate = (last - first) / (time.monotonic() - began + 1e-9)
        left_s = (goal - last) / rate if rate else 0
        time.sleep(max(pause, min(pause_max, left_s / 2)))
        now = done()
        if now != last:
            last, moved = now, time.monotonic()
        elif time.monotonic() - moved > seconds:
            raise Stuck(f"{last} of {goal} tasks were done, and then none for {seconds} s")


def cpu_seconds(pid):
    """Of all threads of a process, to the nanosecond."""
    total = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            total += int((task / "schedstat").read_text().split()[0])
        except FileNotFoundError:
            pass
    return total / 1e9


def rss_mb(pid):
    for line in open(f"/proc/{pid}/status"):
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0


def children(pid):
    """Its processes: {pid: command line}."""
    found = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat.read_text().rsplit(")", 1)[1].split()[1]) == pid:
                found[int(stat.parent.name)] = (stat.parent / "cmdline").read_bytes().decode().replace("\0", " ")
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


class Folder:
    """A temporary folder; on the disk that /tmp is on."""

    def __enter__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="quiver-bench-"))
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)
