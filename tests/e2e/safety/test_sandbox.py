"""What a runner can get at: not its host's memory or environment, and, as a user of its own, none of the host's files."""
import os
import pathlib
import re
import stat

import pytest

from hosts import wait_until
from private_hosts import NEEDS_ROOT, PrivateHost

SECRET = "correct-horse-battery-staple"
SPIES = 'plugin = "spies.so"; retry = { attempts = 1; };'


@pytest.fixture
def private(quiver, root):
    villains = quiver.parent / "villains"
    made = PrivateHost(quiver, villains if villains.exists() else root / "build/villains")
    yield made
    made.close()


def with_password(private, server):
    """On a Redis whose password is in the host's environment."""
    with server.client() as client:
        client.config_set("requirepass", SECRET)
    os.chmod(server.folder, 0o755)
    os.chmod(server.socket, 0o666)
    private.env["STORE_PASSWORD"] = SECRET
    return f'url = "redis+unix:{server.socket}"; password_env = "STORE_PASSWORD";'


def environment_of(pid):
    return pathlib.Path(f"/proc/{pid}/environ").read_bytes()


def family_of(private):
    """The host, its guard and its runners."""
    pid = private.process.pid
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *map(int, children)]


# --- the host is out of reach -------------------------------------------------------------------------------------------


def test_a_runner_cannot_read_or_write_its_host(private):
    """As a user who is not root: root's runners can do whatever they like, and a host says so."""
    if os.geteuid() == 0:
        private.as_user("nobody")
    private.configure(spies=SPIES).start()
    lines = private.ask("spies", "host").splitlines()
    assert len(lines) == 2, "the host and its guard"
    for line in lines:
        assert re.fullmatch(r"environ=(EACCES|EPERM) mem=(EACCES|EPERM) ptrace=EPERM peek=EPERM", line), line


def test_a_host_that_may_leave_cores_can_be_traced(private):
    """QUIVER_CORES=1 is for whoever debugs a host; it also shows that the test above can fail."""
    if os.geteuid() == 0:
        private.as_user("nobody")
    private.env["QUIVER_CORES"] = "1"
    private.configure(spies=SPIES).start()
    assert "environ=OPEN" in private.ask("spies", "host").splitlines()[0]


@NEEDS_ROOT
def test_the_password_leaves_the_environment_of_host_guard_and_runners(private, redis_server):
    store = with_password(private, redis_server.start())
    private.configure(store=store, spies=SPIES).start()
    assert private.ask("spies", "get STORE_PASSWORD") == "(none)"
    family = family_of(private)
    assert len(family) == 3
    for pid in family:
        assert SECRET.encode() not in environment_of(pid)


def test_runners_get_the_usual_variables_and_those_that_are_listed(private):
    private.env.update({"SOME_TOKEN": "t", "WANTED": "w", "LC_TIME": "C", "NOTIFY_SOCKET": "/nowhere",
                        "QUIVER_TOKEN": "q"})
    private.configure(spies=SPIES, open=f'{SPIES} environment = ["WANTED", "NOT_THERE"];').start()
    for handler, name, expected in [("spies", "SOME_TOKEN", "(none)"), ("spies", "WANTED", "(none)"),
                                    ("spies", "LC_TIME", "C"), ("spies", "PATH", os.environ["PATH"]),
                                    ("spies", "NOTIFY_SOCKET", "(none)"), ("spies", "QUIVER_TOKEN", "(none)"),
                                    ("open", "WANTED", "w"),
                                    ("open", "SOME_TOKEN", "(none)"), ("open", "NOT_THERE", "(none)")]:
        assert private.ask(handler, f"get {name}") == expected, (handler, name)


def test_a_handler_is_not_given_the_password_of_the_store(private):
    store = 'url = "redis://127.0.0.1:1"; password_env = "STORE_PASSWORD";'
    private.env["STORE_PASSWORD"] = SECRET
    private.configure(store=store, spies=f'{SPIES} environment = ["STORE_PASSWORD"];')
    said = private.cli("check", "--config-only", code=1)
    assert "handlers.spies.environment: STORE_PASSWORD holds a password of Quiver's own" in said
    private.configure(spies=f'{SPIES} environment = ["QUIVER_TOKEN"];')
    assert "names that begin with QUIVER_ are reserved" in private.cli("check", "--config-only", code=1)


def test_what_a_host_makes_is_for_its_user_alone(private):
    private.configure(spies=SPIES)
    mask = os.umask(0)
    try:
        private.start()
    finally:
        os.umask(mask)
    assert private.ask("spies", "get QUIVER_CORES") == "(none)"
    made = [path for path in private.folder.rglob("*") if path.name.startswith("q.db") or "state" in path.parts]
    assert len(made) > 3
    for path in made:
        mode = path.lstat().st_mode
        # A private copy is read by a user who cannot get to its folder.
        if not stat.S_ISREG(mode) or not path.parent.name.startswith("staging-"):
            assert mode & 0o077 == 0, f"{path}: {stat.filemode(mode)}"


# --- runners of another user --------------------------------------------------------------------------------------------


@NEEDS_ROOT
def test_limits_user_works_under_run(private):
    """Loaded, called, heard, stopped and reaped as that user, from a state folder that it cannot enter."""
    private.configure(spies=f'{SPIES} limits = {{ user = "nobody"; }};')
    (private.plugins / "spies.so").chmod(0o600)  # the user gets the copy, and need not be able to read the original
    private.start()
    assert "ok" in private.cli("check")
    assert private.ask("spies", "who").split()[0] == "65534"
    assert "quarantine" not in private.log()
    runner = [pid for pid in family_of(private)[1:] if os.stat(f"/proc/{pid}/stat").st_uid == 65534 or
              "65534" in pathlib.Path(f"/proc/{pid}/status").read_text()]
    assert len(runner) == 1
    assert private.stop() == 0
    wait_until(lambda: not os.path.exists(f"/proc/{runner[0]}"), "the runner is gone")


@NEEDS_ROOT
def test_the_state_folder_and_the_store_stay_closed_to_a_runners_user(private):
    private.configure(spies=f'{SPIES} limits = {{ user = "nobody"; }};').start()
    state = private.folder / "state"
    (staging,) = state.glob("staging-*")
    (copy,) = staging.iterdir()
    for path in (state, staging, copy, private.folder / "q.db"):
        assert private.ask("spies", f"open {path}") == "EACCES", path
    assert private.ask("spies", f"open {private.folder}/quiver") == "OPEN"


@NEEDS_ROOT
def test_a_crash_of_another_users_runner_is_told_with_its_function(private):
    private.configure(segv='plugin = "segv.so"; crashes = 1; limits = { user = "nobody"; };').start()
    bad = private.cli("submit", "segv", "bad").strip()
    wait_until(lambda: private.sum("dead") == 1, "it crashed")
    assert re.search(r"handle\+0x\w+ \(segv\.so\)", private.cli("task", bad, "--json")), private.cli("task", bad)


@NEEDS_ROOT
def test_a_task_of_another_users_runner_is_timed_out(private):
    private.configure(spin='plugin = "spin.so"; crashes = 1; timeout = "200ms"; grace = "200ms"; '
                           'limits = { user = "nobody"; };').start()
    private.cli("submit", "spin", "bad")
    wait_until(lambda: private.sum("dead") == 1, "it was ended")


@NEEDS_ROOT
def test_a_confined_runner_of_another_user_is_loaded_too(private):
    private.configure(spies=f'{SPIES} limits = {{ user = "nobody"; read = ["/usr/share"]; }};').start()
    assert private.ask("spies", "who").split()[0] == "65534"
    if "no Landlock" not in private.log():
        assert private.ask("spies", "open /etc/passwd") == "EACCES"


@NEEDS_ROOT
def test_a_new_version_for_another_user_is_taken_up(private):
    private.configure(spies=f'{SPIES} limits = {{ user = "nobody"; }};').start()
    assert private.ask("spies", "who").split()[0] == "65534"
    private.configure(spies=f'{SPIES} threads = 1; max_result = "1KiB"; limits = {{ user = "nobody"; }};')
    private.cli("reload", "--wait")
    assert private.ask("spies", "who").split()[0] == "65534"


@NEEDS_ROOT
def test_plugins_that_run_as_root_are_warned_of_once(private):
    private.configure(a=SPIES, b=SPIES, c=f'{SPIES} limits = {{ user = "nobody"; }};').start()
    assert private.ask("a", "who").split()[0] == "0"
    private.cli("reload", "--wait")
    (line,) = re.findall(r"^.*event=runs-as-root.*$", private.log(), re.M)
    assert "level=warn " in line and "limits.user" in line and "handlers=a,b" in line
    assert private.stop() == 0
    private.configure(c=f'{SPIES} limits = {{ user = "nobody"; }};').start()
    assert "runs-as-root" not in private.log()
    private.configure(c=SPIES)
    private.cli("reload", "--wait")
    assert private.log().count("event=runs-as-root handlers=c ") == 1
