"""Everybody in a run: the hosts, the producers, the consumers, and those who die with them."""
import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import time

from fleet import Member
from history import Limit
from world import OUTSIDE

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
LIBC = ctypes.CDLL(None)
HERE = os.path.dirname(os.path.abspath(__file__))

CONFIG = """
app = "chaos";
shards = {shards};
state = "{folder}/state-{name}";
plugins = "{folder}/plugins";
host = {{ name = "{name}"; }};
store = {{ {store} }};
coordination = {{ {coordination} }};
lease = {{ ttl = "{ttl_s}s"; drain = "3s"; }};
log = {{ level = "debug"; }};
limits = {{ slots = {{ concurrency = 3; }}; pace = {{ rate = 50; burst = 10; }}; }};
handlers = {{
  work = {{ {ledger} processes = {processes}; threads = {threads}; }};
  few = {{ {ledger} threads = 3; limited_by = ( "slots" ); }};
  paced = {{ {ledger} threads = 2; limited_by = ( "pace" ); }};
}};
"""
LEDGER = """plugin = "ledger.so"; timeout = "3s"; grace = "500ms"; crashes = {crashes};
    config = {{ path = "{folder}/ledger"; who = "{name}"; }};
    retry = {{ attempts = {attempts}; backoff = "20ms"; max = "200ms"; }};"""
# A share lasts one and a half leases; a runner is killed after the grace, and three seconds for its backtrace.
BACK_S = 1.5 + 0.5 + 3 + 0.5
# The first has each of its times whatever happens, the other one goes by overlap and by the last that was missed.
SCHEDULES = {"tick-each": ("--every", "1s", "--overlap", "queue-all", "--catchup", "all", "--catchup-for", "60s"),
             "tick-last": ("--cron", "* * * * *", "--overlap", "skip", "--catchup", "last")}

# Processes and threads: hosts have unequal seats, so that tasks without a key run on others' (a name that is not here: the last).
SEATS = {"h1": (1, 1), "h2": (1, 2), "": (2, 2)}
# What a host's log says of tasks that ran on other hosts' seats, in its owner's words or the borrower's.
LOANS = {"on borrowed seats": "event=borrowed ", "… that fell silent": "event=seat-silent ", "… declined": "event=declined ",
         "… past their time": "event=borrowed-late ", "… found by a new owner": re.compile(r"event=adopted .* host=")}


def adopt_orphans():
    """Whoever loses its parent becomes our child: at the end we see who is left."""
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def parents():
    """{pid: its parent}, of the living."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as stat:
                state, parent = stat.read().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if state not in "ZX":
            found[int(pid)] = int(parent)
    return found


def descendants(root):
    found, parent_of = [root], parents()
    for pid in found:
        found += [child for child, parent in parent_of.items() if parent == pid]
    return found[1:]


def command_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline") as line:
            return line.read().replace("\0", " ").strip()
    except OSError:
        return ""


def send(pid, number):
    """Whether it was there."""
    try:
        os.kill(pid, number)
        return True
    except (ProcessLookupError, TypeError):
        return False


class Host(Member):
    """A host that is killed and started again and again."""

    is_doomed = False  # we have ended it, or are about to
    is_due = False  # to be started again as soon as it has ended

    def spawn(self):
        self.is_doomed = self.is_due = False
        self.spawned_s = time.monotonic()
        self.logs.append(self.folder / f"log-{self.name}-{len(self.logs)}")
        with open(self.logs[-1], "wb") as log:
            self.process = subprocess.Popen([self.quiver, "run", "-c", self.config], stderr=log, stdout=log,
                                            env=self.fleet.environment(self.name), preexec_fn=die_with_parent)

    @property
    def is_alive(self):
        return self.process is not None and self.process.poll() is None

    @property
    def is_running(self):
        """It has come so far that it takes signals."""
        return self.is_alive and "event=running" in self.log()

    def family(self):
        """The host, its guard and its runners."""
        return [self.process.pid, *self.children()] if self.is_alive else []


class Helper:
    """A producer or a consumer, in one life after the other."""

    def __init__(self, crowd, kind, number):
        self.crowd, self.kind, self.number = crowd, kind, number
        self.lives, self.process, self.books = 0, None, []

    @property
    def name(self):
        return f"{self.kind}-{self.number}"

    @property
    def is_alive(self):
        return self.process is not None and self.process.poll() is None

    def spawn(self):
        self.lives += 1
        folder, seed = self.crowd.folder, f"{self.crowd.seed}-{self.name}-{self.lives}"
        self.books.append(folder / f"{self.name}.{self.lives}")
        self.books[-1].touch()
        is_safe = self.number == 1 and self.crowd.outside_safe is not None
        words = [self.crowd.outside_safe if is_safe else self.crowd.outside, self.books[-1]]
        if self.kind == "producer":
            words += [f"{self.number}.{self.lives}", seed, self.crowd.rate, folder, int(is_safe), self.crowd.over]
        else:
            words += [seed]
        with open(folder / f"log-{self.name}", "ab") as log:
            self.process = subprocess.Popen([sys.executable, f"{HERE}/{self.kind}.py", *map(str, words)], stdout=log,
                                            stderr=log, env=self.crowd.world.environment(OUTSIDE),
                                            preexec_fn=die_with_parent)

    def end(self, seconds=30):
        if self.is_alive:
            send(self.process.pid, signal.SIGCONT)
            self.process.terminate()
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Crowd:
    def __init__(self, quiver, plugins, folder, backing, seed, hosts=4, producers=2, consumers=2, shards=16, rate=60,
                 over="client"):
        self.quiver, self.folder, self.backing, self.seed, self.rate = quiver, folder, backing, seed, rate
        self.over = over  # how producers submit
        self.world = backing.world
        self.is_sanitized = "asan" in quiver.parts
        self.shards, self.ttl_s, self.attempts, self.crashes = shards, 1, 4, 3
        self.plugins = folder / "plugins"
        self.plugins.mkdir()
        self.plugin, self.other_plugin = plugins
        self.bad_plugins = []  # [from, until]: when there was none that can be loaded
        self.install_plugin(self.plugin.read_bytes())
        self.hosts = [self.make_host(f"h{n}") for n in range(1, hosts + 1)]
        self.outside = self.make_place(OUTSIDE)
        self.outside_safe = self.write_config(f"{OUTSIDE}-safe", "wait_replicas = 1;") if backing.has_replicas else None
        self.producers = [Helper(self, "producer", n) for n in range(1, producers + 1)]
        self.consumers = [Helper(self, "consumer", n) for n in range(1, consumers + 1)]
        self.orphans_seen = []
        self.limits = [Limit("slots", "few", concurrency=3, seats=3 * hosts, back_s=BACK_S),
                       Limit("pace", "paced", rate=50, burst=10, seats=2 * hosts, back_s=BACK_S)]
        self.first_s = {}  # of each schedule: the first time that was due

    def install_plugin(self, content):
        """By rename, as an installer does.  None: what is no plugin."""
        for spell in self.bad_plugins[-1:]:
            spell[1] = min(spell[1], time.monotonic())
        if content is None:
            self.bad_plugins.append([time.monotonic(), float("inf")])
            content = b"\x7fELF half a file"
        new = self.plugins / "ledger.so.new"
        new.write_bytes(content)
        new.chmod(0o755)
        new.rename(self.plugins / "ledger.so")

    def make_place(self, name):
        """Where somebody is: a configuration, and links to all servers."""
        self.world.connect(name, self.backing.ports())
        return self.write_config(name)

    def write_config(self, name, more=""):
        path = self.folder / f"{name}.cfg"
        store, coordination = self.backing.settings()
        ledger = LEDGER.format(folder=self.folder, name=name, crashes=self.crashes, attempts=self.attempts)
        processes, threads = SEATS.get(name, SEATS[""])
        path.write_text(CONFIG.format(shards=self.shards, folder=self.folder, name=name, store=f"{store} {more}",
                                      coordination=coordination, ttl_s=self.ttl_s, ledger=ledger, processes=processes,
                                      threads=threads))
        return path

    def make_host(self, name):
        self.make_place(name)
        return Host(self, name)

    def environment(self, name):
        """Of whoever runs the binary.  What a sanitizer has to say stands in files of its own: a log may be read before it is complete."""
        if not self.is_sanitized:
            return self.world.environment(name)
        return {**self.world.environment(name, before=sanitizers()),
                "ASAN_OPTIONS": f"detect_leaks=1:detect_stack_use_after_return=1:log_path={self.folder}/san",
                "UBSAN_OPTIONS": f"print_stacktrace=1:log_path={self.folder}/san"}

    def sanitizer_reports(self):
        """A line of each, and where the rest is."""
        reports = sorted(self.folder.glob("san.*"))
        return [f"{path.name}: {first_error(path.read_text(errors='replace'))}" for path in reports if path.stat().st_size]

    def start(self):
        self.hosts[0].spawn()
        self.hosts[0].wait_for_log("event=running")  # it makes the store
        for name, options in SCHEDULES.items():
            made = self.cli("schedule", "set", name, "--handler", "work", *options, "--json", "tick stamp")
            self.first_s[name] = json.loads(made.stdout)["next_ms"] // 1000
        for host in self.hosts[1:]:
            host.spawn()
        for helper in self.producers + self.consumers:
            helper.spawn()

    def loans(self):
        """How often each of those happened, in all lives of all hosts."""
        counts = dict.fromkeys(LOANS, 0)
        for log in (log for host in self.hosts for log in host.logs):
            text = log.read_text(errors="replace")
            for name, words in LOANS.items():
                counts[name] += text.count(words) if isinstance(words, str) else len(words.findall(text))
        return counts

    def met_bad_plugin(self, host):
        """Whether there was one while it has lived."""
        return any(until >= host.spawned_s for _, until in self.bad_plugins)

    def revive(self):
        """Whoever is stopped goes on, whoever is down is started."""
        for pid in descendants(os.getpid()):
            send(pid, signal.SIGCONT)
        for one in self.hosts + self.consumers:
            if not one.is_alive:
                one.spawn()

    def cli(self, *words, seconds=300):
        return subprocess.run([self.quiver, *words, "-c", self.outside], capture_output=True, text=True,
                              timeout=seconds, env=self.environment(OUTSIDE))

    def stop_hosts(self, seconds=120):
        """Politely.  Returns what was wrong with their ends."""
        faults = []
        living = [host for host in self.hosts if host.is_alive]
        for host in living:
            host.is_doomed = True
            host.signal(signal.SIGTERM)
        for host in living:
            try:
                code = host.wait(seconds)
                if code:
                    faults.append(f"{host.name} ended with {code} on SIGTERM, see {host.logs[-1].name}")
            except subprocess.TimeoutExpired:
                faults.append(f"{host.name} did not end on SIGTERM, see {host.logs[-1].name}")
                host.kill()
        return faults

    def leftovers(self, servers, seconds=60):
        """Processes of ours that outlived their hosts, but for these; they get a moment."""
        end = time.monotonic() + seconds
        while True:
            self.reap()
            found = [pid for pid in descendants(os.getpid())
                     if pid not in servers and ("quiver" in command_of(pid))]
            if not found or time.monotonic() > end:
                return found
            time.sleep(0.05)

    def reap(self):
        """Adopted orphans that have ended.  Not those that Popen waits for."""
        ours = {one.process.pid for one in self.hosts + self.producers + self.consumers if one.process}
        for pid, parent in zombies():
            if parent == os.getpid() and pid not in ours:
                try:
                    os.waitpid(pid, os.WNOHANG)
                except ChildProcessError:
                    pass

    def close(self):
        for one in self.producers + self.consumers + self.hosts:
            if one.is_alive:
                send(one.process.pid, signal.SIGKILL)
                one.process.wait()


def sanitizers():
    """The libraries that have to come before any other that is preloaded."""
    return [subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
            for name in ("libasan.so", "libubsan.so")]


def first_error(report):
    return next((line for line in report.splitlines() if "ERROR: " in line or "runtime error" in line), report[:80])


def zombies():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as stat:
                state, parent = stat.read().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if state == "Z":
            yield int(pid), int(parent)
