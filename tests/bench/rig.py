"""What the benchmarks share: a table that is printed and kept as TSV, processes that are started and looked at."""
import ctypes
import pathlib
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
QUIVER = BUILD / "quiver"
TOOLS = BUILD / "tests" / "bench"
OUT = BUILD / "bench"
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)
SHARDS = 64
KEYS = 10000
HOT_TASKS = 20000  # of one key: more than are done while others are measured beside it


class Table:
    """A row: where, what, a figure with its unit, the bar and whether it is met, and how it was measured."""

    def __init__(self):
        self.rows = []

    def add(self, where, what, value, unit, *, bar=None, at_least=True, how=""):
        verdict = "" if bar is None else "ok" if (value >= bar if at_least else value <= bar) else "MISSED"
        said_bar = "" if bar is None else f"{'>=' if at_least else '<='} {bar:g}"
        self.rows.append((where, what, f"{value:.6g}", unit, said_bar, verdict, how))
        shown = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
        print(f"{where:7} {what:52} {shown:>10} {unit:9} {said_bar:9} {verdict:6} {how}", flush=True)

    def note(self, text):
        print(f"        {text}", flush=True)

    def save(self):
        OUT.mkdir(parents=True, exist_ok=True)
        with open(OUT / "bench.tsv", "w") as file:
            file.write("where\twhat\tvalue\tunit\tbar\tverdict\thow\n")
            file.writelines("\t".join(row) + "\n" for row in self.rows)


def machine():
    cpus = [line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    load = open("/proc/loadavg").read().split()[0]
    return f"{len(cpus)} cores ({cpus[0] if cpus else platform.machine()}), Linux {platform.release()}, load {load} at the start"


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


def tool(name, *words, seconds=600):
    """What the tool printed."""
    return subprocess.run([TOOLS / name, *map(str, words)], check=True, stdout=subprocess.PIPE, text=True,
                          timeout=seconds).stdout


def wait_until(condition, what, seconds=120, pause=0.005):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"bench: this never happened: {what}")
        time.sleep(pause)


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


def share(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * part))]


def shard_of(key, shards=SHARDS):
    return zlib.crc32(key.encode()) % shards


class Folder:
    """A temporary folder; on the disk that /tmp is on."""

    def __enter__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="quiver-bench-"))
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


CONFIG = """
app = "bench"; shards = {shards}; state = "{folder}/state"; plugins = "{plugins}";
store = {{ {store} }};
coordination = {{ url = "local:{folder}/state"; }};
handlers = {{ noop = {{ plugin = "noop.so"; config = {{ latencies = "{latencies}"; }}; }}; }};
"""


class Host:
    """`quiver run` with a no-op handler and all else as it is by default.  `done()` is the store's to say."""

    def __init__(self, folder, store, shards=SHARDS):
        self.folder, self.shards = folder, shards
        self.config = folder / "runtime.cfg"
        self.store, self.process = store, None

    def start(self, with_latencies=False):
        latencies = self.folder / "latencies" if with_latencies else ""
        self.config.write_text(CONFIG.format(shards=self.shards, folder=self.folder, store=self.store,
                                             plugins=BUILD / "test-plugins", latencies=latencies))
        log = self.folder / "log"
        before = log.read_text().count("event=running") if log.exists() else 0
        self.process = start([QUIVER, "run", "-c", self.config], log)
        wait_until(lambda: log.read_text().count("event=running") > before or self.process.poll() is not None,
                   f"the host runs:\n{log.read_text()}")
        if self.process.poll() is not None:
            sys.exit(f"bench: the host ended:\n{log.read_text()}")
        return self

    def stop(self):
        stop(self.process)

    def runner(self):
        """The pid of its one runner, or None."""
        for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                if int(stat.read_text().rsplit(")", 1)[1].split()[1]) == self.process.pid and \
                        b"runner" in (stat.parent / "cmdline").read_bytes():
                    return int(stat.parent.name)
            except (FileNotFoundError, ProcessLookupError):
                pass
        return None

    def latencies_ms(self, skip):
        return [int(line) / 1e6 for line in (self.folder / "latencies").read_text().split()[skip:]]


def measure_idle(pids, seconds):
    """Percent of a core that these processes take together while nothing happens."""
    time.sleep(2)
    before, began = sum(map(cpu_seconds, pids)), time.monotonic()
    time.sleep(seconds)
    return (sum(map(cpu_seconds, pids)) - before) / (time.monotonic() - began) * 100


def measure_memory(table, where, host, how):
    """Right after load, and once it is idle: an idle host gives back what it does not need at its next renewal."""
    table.add(where, "memory of the host right after load", rss_mb(host.process.pid), "MB", how=f"RSS; {how}")
    table.add(where, "memory of a runner", rss_mb(host.runner()), "MB", bar=6, at_least=False, how=f"RSS; {how}")
    time.sleep(5)
    table.add(where, "memory of the host, idle after load", rss_mb(host.process.pid), "MB", bar=15, at_least=False, how="RSS")


def measure_hot(table, where, host, push_hot, push_others, done_of, how, tasks):
    """One key alone, then beside others, whose rate without it is measured first.  No other key is in its shard."""
    hot_shard = shard_of("hot", host.shards)

    def others():
        done = done_of()
        return sum(done) - done[hot_shard]

    def rate_of_others():
        first, began = others(), time.monotonic()
        push_others(tasks)
        wait_until(lambda: others() >= first + tasks, "the others are done")
        return tasks / (time.monotonic() - began)

    alone = []
    for _ in range(3):
        first = done_of()[hot_shard]
        push_hot(tasks // 20)
        began, at = time.monotonic(), done_of()[hot_shard]
        wait_until(lambda: done_of()[hot_shard] >= first + tasks // 20, "the hot key is done")
        alone.append((first + tasks // 20 - at) / (time.monotonic() - began))
    table.add(where, "hot key: one key alone", max(alone), "tasks/s", bar=5000, how=f"{how}; best of 3")
    ratios, beside = [], []
    for _ in range(3):
        without = rate_of_others()
        goal = done_of()[hot_shard] + HOT_TASKS
        push_hot(HOT_TASKS)
        first, began = done_of()[hot_shard], time.monotonic()
        ratios.append(rate_of_others() / without)
        beside.append((done_of()[hot_shard] - first) / (time.monotonic() - began))
        wait_until(lambda: done_of()[hot_shard] >= goal, "the hot key's rest is done", 300, 0.1)
    table.add(where, "hot key: beside others", statistics.median(beside), "tasks/s", how=how)
    table.add(where, "hot key: others' rate beside it / without it", statistics.median(ratios), "", bar=0.8,
              how=f"{how}; median of 3")
