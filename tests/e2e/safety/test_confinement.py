"""What a hostile plugin can do, with what set: measured, and held against the table of etc/SECURITY.md.

`breaks_out.so` tries each thing; QUIVER_RECORD=1 writes the table anew.  Each cell is a test of its own: those that this machine
cannot show (control groups with a memory controller, or any at all) are skipped with the reason, and stay as they are."""
import collections
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import uuid

import pytest

from hosts import wait_until
from private_hosts import NEEDS_ROOT, PrivateHost

pytestmark = NEEDS_ROOT

PAGE = pathlib.Path(__file__).resolve().parents[3] / "etc/SECURITY.md"
BEGIN, END = "<!-- measured: begin -->\n", "<!-- measured: end -->\n"
COLUMNS = ["nothing", "`read`, `write`", "`network`", "`user`", "cgroup", "`user`, cgroup"]
LIMITS = 'memory = "64MiB";'
PLAIN = 'plugin = "breaks_out.so"; retry = { attempts = 1; }; crashes = 1; idle_timeout = "0"; '

# What is tried, as the table says it, and what the villain is asked; {names} are filled in for each host.
ROWS = [
    ("read the host's environment", "environ {host}"),
    ("read or write the host's memory", "memory {host}"),
    ("trace the host (ptrace)", "trace {host}"),
    ("trace a runner of another handler", "trace {neighbour}"),
    ("send signals to the host, and so end it", "signal {host}"),
    ("send signals to the guard", "signal {guard}"),
    ("send signals to runners of other handlers", "signal {neighbour}"),
    ("ask the host's control socket for a reload", "control {state}/host-a.sock"),
    ("ask the host's HTTP socket, without a token", "http {state}/host-a.http"),
    ("read the HTTP token", "open {state}/http.token"),
    ("read the SQLite store", "open {folder}/q.db"),
    ("change the SQLite store", "write {folder}/q.db"),
    ("read files that everybody may read", "open /etc/passwd"),
    ("have more private memory than `limits.memory`", "private 128"),
    ("have more shared memory than `limits.memory`", "shared 128"),
    ("have a larger memfd than `limits.memory`", "memfd 128"),
    ("connect to a TCP port of this machine", "tcp {port}"),
    ("send to a UDP port of this machine", "udp {port}"),
    ("connect to an abstract Unix socket", "abstract {abstract}"),
    ("leave its control group", "join {leaf}"),
    ("leave a process behind that outlives its runner", "outlive runner"),
    ("the same, and it outlives a killed host", "outlive host"),
    ("the same, without the environment of its runner", "outlive host clean"),
]
COST_LIVES = {"private 128", "shared 128", "memfd 128"}
NEED_MEMORY = {"shared 128", "memfd 128"}
YAMA = pathlib.Path("/proc/sys/kernel/yama/ptrace_scope")
CAN_TRACE = not YAMA.exists() or YAMA.read_text().strip() == "0"  # otherwise nobody traces anybody on this machine


def unified():
    """Where control groups of version 2 are mounted."""
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        if " - cgroup2 " in line and " rw" in line:
            return pathlib.Path(line.split()[4])
    return None


class Delegated:
    """A control group as systemd would hand it to a user: with what controllers this machine has, and no process in it."""

    def __init__(self, uid):
        top = unified()
        if not top:
            pytest.skip("control groups of version 2 are not mounted here")
        own = re.search(r"^0::(/.*)$", pathlib.Path("/proc/self/cgroup").read_text(), re.M)[1]
        self.path = top / own.lstrip("/") / f"test-{uuid.uuid4().hex[:8]}"
        try:
            for word in ("+memory", "+pids", "+cpu"):
                try:
                    (self.path.parent / "cgroup.subtree_control").write_text(word)
                except OSError:
                    pass  # this machine lacks it, or processes are in the way
            self.path.mkdir()
        except OSError as error:
            pytest.skip(f"no control group can be made here: {error}")
        for path in (self.path, *(self.path / name for name in ("cgroup.procs", "cgroup.subtree_control",
                                                                "cgroup.threads"))):
            os.chown(path, uid, uid)

    def controllers(self):
        return (self.path / "cgroup.controllers").read_text().split()

    def enter(self):
        """Before a program is started."""
        (self.path / "cgroup.procs").write_text("0")

    def leaf(self):
        return next(self.path.glob("quiver-*/host"))

    def clear(self):
        """As systemd does between two starts of a unit."""
        def is_empty():
            for path in sorted(self.path.rglob("*/"), key=lambda p: -len(p.parts)):
                try:
                    path.rmdir()
                except OSError:
                    return False
            return True

        wait_until(is_empty, f"nothing is left in {self.path}")
        for name in self.controllers():
            if name in ("memory", "pids", "cpu"):
                (self.path / "cgroup.subtree_control").write_text(f"-{name}")

    def remove(self):
        self.clear()
        self.path.rmdir()


class Scene(PrivateHost):
    """A host with the villain under several names, and what the villain may aim at."""

    def __init__(self, quiver, villains, group=None):
        super().__init__(quiver, villains)
        (self.plugins / "breaks_out.so").write_bytes((villains / "breaks_out.so").read_bytes())
        (self.plugins / "breaks_out.so").chmod(0o755)
        self.group, self.who = group, {}
        self.tcp, self.udp, self.abstract = socket.socket(), socket.socket(type=socket.SOCK_DGRAM), f"quiver-{uuid.uuid4().hex}"
        self.tcp.bind(("127.0.0.1", 0))
        self.tcp.listen(16)
        self.udp.bind(self.tcp.getsockname())
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind("\0" + self.abstract)
        self.listener.listen(16)

    def begin(self, use, **handlers):
        texts = {name: f"{PLAIN} limits = {{ {LIMITS} {limits} }};" for name, limits in handlers.items()}
        self.configure(change=lambda text: text + f'host = {{ name = "host-a"; cgroup = "{use}"; }};\n', **texts,
                       neighbour=texts[next(iter(handlers))])
        if self.group:
            self.who = self.user or {}
            self.user = {"preexec_fn": lambda: self.enter(self.who)}
        self.start()
        self.ask("neighbour", "core")
        return self

    def start(self, *options, is_ready=True):
        if self.group:
            self.group.clear()
        return super().start(*options, is_ready=is_ready)

    def enter(self, who):
        """In the new process: only root may move it to the group, so it becomes another user afterwards."""
        self.group.enter()
        if who:
            os.setgroups([])
            os.setgid(who["group"])
            os.setuid(who["user"])

    def runners_of(self, handler):
        return [pid for pid in self.children() if self.name_of(pid) == f"quiver: {handler}"]

    def children(self):
        pid = self.process.pid
        return list(map(int, pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))

    @staticmethod
    def name_of(pid):
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode()

    def names(self):
        (guard,) = [pid for pid in self.children() if "guard" in self.name_of(pid)]
        return {"host": self.process.pid, "guard": guard, "neighbour": self.runners_of("neighbour")[0], "folder": self.folder,
                "state": self.folder / "state", "port": self.tcp.getsockname()[1], "abstract": self.abstract,
                "leaf": self.group.leaf() if self.group else "/nowhere"}

    def attempts(self, handler, asked):
        """Which of these the villain could do.  Those that may cost it its life are tried one by one."""
        alone = [what for what in asked if what in COST_LIVES]
        together = [what for what in asked if what not in alone]
        # First, since among the others is one that leaves its control group.
        could = {what: self.survives(handler, what) for what in alone}
        names = self.names()
        said = self.ask(handler, "\n".join(what.format(**names) for what in together)).splitlines()
        assert len(said) == len(together)
        could.update({what: word == "done" for what, word in zip(together, said)})
        return could

    def survives(self, handler, what):
        done = subprocess.run([self.quiver, "submit", handler, "--wait-for", "120s", what, "-c", self.config],
                              capture_output=True, text=True, timeout=150, **self.client())
        assert done.returncode == 0 or " is dead" in done.stderr, done.stderr
        return done.returncode == 0 and done.stdout.strip() == "done"

    def client(self):
        """A command is started by the host's user."""
        return {name: value for name, value in (self.user or {}).items() if name != "preexec_fn"} or self.who

    def cli(self, *words, text=None, code=0):
        """What it prints; on standard error it may say that it waits."""
        done = subprocess.run([self.quiver, *map(str, words), "-c", self.config], input=text, capture_output=True,
                              text=True, timeout=150, **self.client())
        assert done.returncode == code, done.stderr + done.stdout
        return done.stdout

    def outlives(self, handler, what, how=""):
        left = int(self.ask(handler, f"leave {how}"))
        wait_until(lambda: self.name_of(left) == "sleep", "it is another program")
        if what == "runner":
            for runner in self.runners_of(handler):
                os.kill(runner, signal.SIGKILL)
            self.ask(handler, "core")  # the next runner is there, so the end of the first was seen to
        else:
            self.kill()
            wait_until(lambda: not self.guards(), "its guard is done")
        is_there = is_running(left)
        if is_there:
            os.kill(left, signal.SIGKILL)
        if what == "host":
            self.start()
            self.ask("neighbour", "core")
        return is_there

    def close(self):
        super().close()
        for one in (self.tcp, self.udp, self.listener):
            one.close()
        if self.group:
            self.group.remove()


def is_running(pid):
    """A process that was killed takes a moment to end; one that was not stays."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    pending = re.search(r"^ShdPnd:\s+(\w+)", status, re.M)
    return not re.search(r"^State:\s+[ZX]", status, re.M) and not (pending and int(pending[1], 16) & 1 << 8)


# --- the table ----------------------------------------------------------------------------------------------------------


def table_of(page):
    """{(row, column): word} of the page."""
    lines = page.partition(BEGIN)[2].partition(END)[0].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    head, rows = (cells[0][1:], cells[2:]) if cells else ([], [])
    return {(row[0], column): word for row in rows for column, word in zip(head, row[1:])}


def why_not_column(scene, column):
    """Why nothing of a column can be measured here; None: it can."""
    told = json.loads(scene.cli("check", "--config-only", "--json"))["confinement"]
    if column == "`read`, `write`" and told["landlock"] < 6:
        return f"this kernel has version {told['landlock']} of Landlock, and the table is about 6"
    if column == "`network`" and not told["network_namespace"]:
        return "the host's user may make no network namespace here: the kernel allows none without privileges, as in any chroot"
    return None


def why_not_cell(scene, asked):
    """The same of one cell."""
    if asked.startswith("trace") and not CAN_TRACE:
        return "this machine lets nobody trace anybody (kernel.yama.ptrace_scope)"
    if scene.group and asked in NEED_MEMORY and "memory" not in scene.group.controllers():
        return "control groups of this machine have no memory controller"
    return None


def measured(scene, handler, column):
    """{what is asked: "yes" or "no", or the reason why it is not known here} of one column."""
    why = why_not_column(scene, column)
    if why:
        return {asked: Unknown(why) for _, asked in ROWS}
    words = {asked: Unknown(why) for _, asked in ROWS if (why := why_not_cell(scene, asked))}
    if not scene.group:
        words["join {leaf}"] = "–"
    tried = [asked for _, asked in ROWS if asked not in words]
    could = scene.attempts(handler, [asked for asked in tried if not asked.startswith("outlive")])
    could.update({asked: scene.outlives(handler, *asked.split()[1:]) for asked in tried if asked.startswith("outlive")})
    words.update({asked: "yes" if has_done else "no" for asked, has_done in could.items()})
    return words


class Unknown(str):
    """Why a cell cannot be measured."""


@pytest.fixture(scope="module")
def villains(quiver, root):
    beside = quiver.parent / "villains"
    return beside if beside.exists() else root / "build/villains"


@pytest.fixture(scope="module")
def plain(quiver, villains):
    """A host of an ordinary user, without control groups."""
    scene = Scene(quiver, villains).as_user("nobody")
    paths = f'read = ["/usr", "/bin", "/proc"]; write = ["{scene.folder}/own"];'
    (scene.folder / "own").mkdir()
    scene.begin("off", plain="", landlock=paths, network='network = "none";')
    yield scene
    scene.close()


@pytest.fixture(scope="module")
def user(quiver, villains):
    """A host of root, whose runners have a user of their own."""
    scene = Scene(quiver, villains).begin("off", user='user = "nobody";')
    yield scene
    scene.close()


@pytest.fixture(scope="module")
def delegated(quiver, villains):
    """A host of an ordinary user, with a control group that it was given."""
    scene = Scene(quiver, villains, Delegated(65534)).as_user("nobody").begin("require", cgroup="")
    yield scene
    scene.close()


@pytest.fixture(scope="module")
def both(quiver, villains):
    scene = Scene(quiver, villains, Delegated(0)).begin("require", both='user = "nobody";')
    yield scene
    scene.close()


# Which host and handler show a column.
SHOWN_BY = [("plain", "plain"), ("plain", "landlock"), ("plain", "network"), ("user", "user"), ("delegated", "cgroup"),
            ("both", "both")]


@pytest.fixture(scope="module")
def words(request):
    """Measures a column when it is first asked for."""
    known = {}

    def column_of(fixture, handler, column):
        """A host that cannot be made here is not tried again for each row."""
        try:
            return measured(request.getfixturevalue(fixture), handler, column)
        except pytest.skip.Exception as why:
            return collections.defaultdict(lambda text=str(why): Unknown(text))

    def of(column):
        if column not in known:
            fixture, handler = SHOWN_BY[column]
            known[column] = column_of(fixture, handler, COLUMNS[column])
            if os.environ.get("QUIVER_RECORD"):
                record(PAGE.read_text(), {(text, COLUMNS[column]): known[column][asked] for text, asked in ROWS
                                          if not isinstance(known[column][asked], Unknown)})
        return known[column]

    return of


@pytest.mark.parametrize("column, row", [(column, row) for column in range(len(COLUMNS)) for row in range(len(ROWS))])
def test_the_table_of_what_a_hostile_plugin_can_do_is_true(words, column, row):
    text, asked = ROWS[row]
    word = words(column)[asked]
    if isinstance(word, Unknown):
        pytest.skip(word)
    assert table_of(PAGE.read_text())[text, COLUMNS[column]] == word, f"{text}, with {COLUMNS[column]}"


def record(page, found):
    cells = {**table_of(page), **found}
    lines = [f"| what a plugin tries | {' | '.join(COLUMNS)} |", "|---" * (len(COLUMNS) + 1) + "|"]
    for text, _ in ROWS:
        lines.append(f"| {text} | {' | '.join(cells.get((text, column), '?') for column in COLUMNS)} |")
    before, _, rest = page.partition(BEGIN)
    PAGE.write_text(before + BEGIN + "\n".join(lines) + "\n" + END + rest.partition(END)[2])


def test_the_table_is_whole():
    """Every row and every column has its word."""
    table = table_of(PAGE.read_text())
    assert set(table) == {(text, column) for text, _ in ROWS for column in COLUMNS}
    assert set(table.values()) <= {"yes", "no", "–"}


# --- what else a runner gets, and what is said about it --------------------------------------------------------------------


def test_a_runner_has_no_descriptor_of_its_host(plain):
    """Standard input and output, and those that it talks with, above the numbers that a plugin uses."""
    found = dict(line.split("=", 1) for line in plain.ask("plain", "descriptors").splitlines())
    low = sorted(int(number) for number, target in found.items() if int(number) < 900 and "/proc/" not in target)
    assert low == [0, 1, 2]
    for target in found.values():
        assert "q.db" not in target and ".sock" not in target and ".token" not in target, found


def test_a_runner_leaves_no_core_unless_asked_for(plain):
    assert plain.ask("plain", "core") == "0"


def test_check_says_what_each_limit_covers(plain):
    said = plain.cli("check", "--config-only")
    assert "control group   none: host.cgroup is \"off\"" in said
    assert "limits.memory (plain, landlock, network …): what each process allocates for itself; not shared memory" in said
    assert re.search(r"limits\.network \(network\): (everything but Unix sockets|TCP alone|nothing)", said)
    told = json.loads(plain.cli("check", "--config-only", "--json"))["confinement"]
    assert told["cgroup"] is None and not told["memory"]
    if told["network_namespace"] or told["landlock"] >= 4:  # else the handler is refused
        said = plain.ask("network", f"udp {plain.tcp.getsockname()[1]}")
        assert told["network_namespace"] == (said != "done"), "check says what a runner then gets"
    assert {line["limit"] for line in told["limits"] if line["handler"] == "landlock"} == {"memory", "read, write"}


def test_a_host_that_requires_control_groups_does_not_start_without(plain, quiver, villains):
    other = Scene(quiver, villains).as_user("nobody")
    try:
        other.configure(change=lambda text: text + 'host = { cgroup = "require"; };\n', plain=PLAIN)
        other.start(is_ready=False)
        assert other.wait() == 1
        why = "its control group belongs to another user" if unified() else "this machine has no control groups of version 2"
        assert f'host.cgroup = "require": {why}' in other.log()
    finally:
        other.close()


def test_runners_are_in_groups_of_their_own_and_the_guard_is_in_none_of_them(both):
    """cgroup.kill of the runners' group does not reach the host and its guard."""
    names = both.names()
    (made,) = both.group.path.glob("quiver-*")

    def group_of(pid):
        return re.search(r"^0::.*/(quiver-.*)$", pathlib.Path(f"/proc/{pid}/cgroup").read_text(), re.M)[1]

    assert group_of(names["host"]) == group_of(names["guard"]) == f"{made.name}/host"
    assert re.fullmatch(rf"{made.name}/runners/neighbour\.\d+", group_of(names["neighbour"]))
    (made / "runners" / "cgroup.kill").write_text("1")
    both.ask("neighbour", "core")  # by another runner, of the same host
    assert both.names()["guard"] == names["guard"]


def test_a_host_that_stops_leaves_no_group_behind(quiver, villains):
    scene = Scene(quiver, villains, Delegated(0))
    try:
        scene.begin("require", user='user = "nobody";')
        assert scene.stop() == 0
        assert not list(scene.group.path.glob("quiver-*"))
        scene.start()
        assert len(list(scene.group.path.glob("quiver-*"))) == 1
    finally:
        scene.close()


def test_memory_processes_and_processors_are_limited_by_a_control_group(both):
    missing = {"memory", "pids", "cpu"} - set(both.group.controllers())
    if missing:
        pytest.skip(f"control groups of this machine have no {', '.join(sorted(missing))}")
    limits = 'user = "nobody"; memory = "64MiB"; processes = 24; cores = 0.5;'
    both.configure(change=lambda text: text + 'host = { name = "host-a"; cgroup = "require"; };\n',
                   both=f"{PLAIN} limits = {{ {limits} }};", neighbour=f"{PLAIN} limits = {{ {limits} }};")
    both.cli("reload", "--wait")
    assert both.ask("both", "fork 8") == "done"
    assert both.ask("both", "fork 40") == "EAGAIN"
    group = next(both.group.path.glob("quiver-*/runners/both.*"))
    assert (group / "memory.max").read_text().strip() == str(64 << 20)
    assert (group / "cpu.max").read_text().strip() == "50000 100000"
    task = both.cli("submit", "both", "shared 128").strip()
    wait_until(lambda: "OOM killer" in both.cli("task", task), "it is said why it was killed")


def test_what_was_started_before_the_host_is_left_alone(quiver, villains):
    """A script that starts something of its own and then becomes the host."""
    scene = Scene(quiver, villains)
    try:
        scene.configure(change=lambda text: text + 'host = { cgroup = "off"; };\n', plain=PLAIN)
        words = ["sh", "-c", f"sleep 1000 & echo $! > {scene.folder}/pid; exec {scene.quiver} run -c {scene.config}"]
        scene.logs.append(scene.folder / "log")
        with open(scene.logs[-1], "wb") as log:
            scene.process = subprocess.Popen(words, stderr=log, stdout=log)
        scene.wait_for_log("event=running")
        assert scene.outlives("plain", "runner") is False
        before = int((scene.folder / "pid").read_text())
        assert is_running(before) and "stray" in scene.log()
        assert scene.stop() == 0
        assert is_running(before)
        os.kill(before, signal.SIGKILL)
    finally:
        scene.close()
