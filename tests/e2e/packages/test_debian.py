"""Debian's packages: what they say about themselves, and, in the long run, their life in a fresh Debian 12.

Life: built, installed, run as their user and as a service, built upon, upgraded, removed, purged.  The times of the steps are
printed and kept in build/chroot/times."""
import glob
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

from chroots import PLACE, Chroot, Steps
from hosts import wait_until


def version(root):
    return re.search(r'QUIVER_VERSION +"(.*)"', (root / "runtime/base/version.h").read_text())[1]


def run(*words, cwd=None, code=0, **more):
    env = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    done = subprocess.run([str(word) for word in words], cwd=cwd, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=1700, **more)
    assert done.returncode == code, f"{words}: exit code {done.returncode}\n{done.stdout}"
    return done.stdout


# --- what the files say ---------------------------------------------------------------------------------------------------

def test_packages_clients_and_change_log_have_the_version_of_the_binary(root, quiver):
    number = version(root)
    assert f"quiver {number} " in run(quiver, "--version")
    assert (root / "etc/debian/changelog").read_text().startswith(f"quiver ({number}) ")
    assert re.search(r"^## (\S+)", (root / "etc/CHANGELOG.md").read_text(), re.MULTILINE)[1] == number
    assert json.loads((root / "sdk/clients/node/package.json").read_text())["version"] == number
    for name in ("python/pyproject.toml", "python/quiver/__init__.py", "ruby/quiver-client.gemspec", "ruby/lib/quiver.rb"):
        assert f'"{number}"' in (root / "sdk/clients" / name).read_text(), name


def test_the_symbols_file_has_every_function_of_the_client_library(root, quiver):
    exported = set(re.findall(r" [TD] (qv_client_\w+)", run("nm", "-D", "--defined-only", root / "build/libquiver.so.1")))
    listed = re.findall(r"^ (qv_client_\w+)@QUIVER_CLIENT_1 ([0-9.]+)$", (root / "etc/debian/libquiver1.symbols").read_text(), re.MULTILINE)
    assert exported == {name for name, _ in listed}


def test_the_unit_is_well_confined(root):
    if not shutil.which("systemd-analyze"):
        pytest.skip("the package systemd is not installed")
    unit = root / "etc/quiver.service"
    said = run("systemd-analyze", "security", "--offline=true", "--no-pager", unit)
    score = float(re.search(r"exposure level for quiver.service: ([0-9.]+)", said)[1])
    print(f"systemd-analyze security: {score}")
    assert score <= 2.2, said  # 10: a service with nothing set
    # It knows every line of it; that the binary is not installed here is no fault of the unit.
    lines = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True).stderr.splitlines()
    assert [line for line in lines if "quiver.service" in line and "is not executable" not in line and "creating stop" not in line] == []


# --- their life -----------------------------------------------------------------------------------------------------------

def current(root, pattern):
    """The packages that match, if no file of the tree is younger than they are."""
    made = [deb for deb in glob.glob(str(pattern)) if "dbgsym" not in deb]
    if not made or not (root / ".git").exists():
        return []
    files = [root / name for name in run("git", "ls-files", cwd=root).split("\n")[:-1]]
    age = min(map(os.path.getmtime, made))
    return [] if any(file.exists() and file.stat().st_mtime > age for file in files) else sorted(made)


@pytest.fixture(scope="module")
def steps():
    if not os.environ.get("QUIVER_TEST_LONG"):
        pytest.skip("packages are built and installed in the long run")
    return Steps(PLACE / "times")


@pytest.fixture(scope="module")
def debs(root, steps):
    """Those of this tree; `make deb` ends with lintian, which must have nothing to say."""
    pattern = root / "build/deb/*.deb"
    if not current(root, pattern):
        said = steps("build the packages, with lintian (make deb)", lambda: run("make", "deb", cwd=root))
        assert not re.search(r"^[EWI]: ", said, re.MULTILINE), said
    return sorted(deb for deb in glob.glob(str(pattern)) if "dbgsym" not in deb)


@pytest.fixture(scope="module")
def next_debs(root, steps):
    """The same with a higher number, out of an unpacked tarball: nothing of git is there."""
    place = PLACE / "next"
    number = version(root)
    higher = f"{number}.99"
    tree = place / f"quiver-{number}"
    pattern = tree / "build/deb/*.deb"
    if not current(root, pattern):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        run("make", "dist-tarball", f"DIST={place}", cwd=root)
        run("tar", "-C", place, "-xf", place / f"quiver-{number}.tar.xz")
        header = tree / "runtime/base/version.h"
        header.write_text(header.read_text().replace(f'"{number}"', f'"{higher}"'))
        changes = tree / "etc/debian/changelog"
        changes.write_text(changes.read_text().replace(f"({number})", f"({higher})", 1))
        config = tree / "etc/runtime.cfg"
        config.write_text(config.read_text() + "// Something new.\n")
        steps("build a higher version from the tarball", lambda: run("make", "deb", cwd=tree))
    return higher, sorted(deb for deb in glob.glob(str(pattern)) if "dbgsym" not in deb)


@pytest.fixture(scope="module")
def system(steps):
    made = steps("make a fresh Debian (debootstrap, or a copy of one)", lambda: Chroot("packages"))
    steps("apt-get update", lambda: made.apt("update"))
    yield made
    made.close()


def put(system, debs):
    """Copies them in; returns what apt-get calls them."""
    for deb in debs:
        shutil.copy(deb, system.path("/srv"))
    return [f"/srv/{os.path.basename(deb)}" for deb in debs]


@pytest.fixture(scope="module")
def installed(system, steps, debs):
    """All four, while no service manager runs."""
    system.path("/usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n")
    system.path("/usr/sbin/policy-rc.d").chmod(0o755)
    steps("install all packages and what they need", lambda: system.apt(
        "install", "--no-install-recommends", *put(system, debs), "gcc", "make", "pkg-config", "libc6-dev", "dbus", "systemd", "logrotate"))
    return system


def test_an_installation_without_a_service_manager_starts_nothing(installed):
    assert "quiver:x:" in installed.path("/etc/passwd").read_text()
    for name, mode in (("/var/lib/quiver", 0o700), ("/var/log/quiver", 0o750)):
        status = installed.path(name).stat()
        assert status.st_mode & 0o7777 == mode and status.st_uid == int(installed.run("id", "-u", "quiver"))
    assert list(installed.path("/var/lib/quiver").iterdir()) == [], "no host ran"
    assert '/etc/quiver/runtime.cfg' in installed.run("dpkg-query", "-W", "-f", "${Conffiles}", "quiver")
    assert "quiver-abi-1" in installed.run("dpkg-query", "-W", "-f", "${Provides}", "quiver")
    installed.run("logrotate", "--debug", "/etc/logrotate.d/quiver")


class Running:
    """A host in it that some user started."""

    def __init__(self, system, user, log, *settings):
        self.system, self.user, self.log = system, user, log
        self.process = system.popen("quiver", "run", "-c", "/etc/quiver/runtime.cfg", *settings, user=user, log=log)

    def __enter__(self):
        wait_until(lambda: "event=running" in self.log.read_text() or self.process.poll() is not None, "it runs")
        assert self.process.poll() is None, self.log.read_text()
        return self

    def __exit__(self, *_):
        """SIGTERM to the host itself: above it are those who changed its user and its view of the system."""
        pid = self.process.pid
        while not pathlib.Path(f"/proc/{pid}/comm").read_text().startswith("quiver"):
            pid = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0]
        os.kill(int(pid), signal.SIGTERM)
        assert self.process.wait(60) == 0, self.log.read_text()


def test_a_host_runs_with_the_installed_settings_and_an_installed_client_talks_to_it(installed, steps, tmp_path):
    installed.run("sh", "-ec", "cd /tmp && cp /usr/share/doc/libquiver-dev/examples/submit.c . &&"
                               " gcc -Wall -Werror -o client submit.c $(pkg-config --cflags --libs quiver-client)")
    linked = installed.run("ldd", "/tmp/client")
    assert re.search(r"libquiver\.so\.1 => /(usr/)?lib/[a-z0-9_]+-linux-gnu/libquiver\.so\.1", linked), linked
    with Running(installed, "quiver", tmp_path / "log"):
        said = steps("submit --wait to a host of the user quiver", lambda: installed.run("quiver", "submit", "echo", "--wait", "world", user="quiver"))
        assert "hello" in said and "world" in said
        assert "running" in installed.run("quiver", "status", user="quiver")
        assert "hello" in installed.run("/tmp/client", "/etc/quiver/runtime.cfg", "echo", "user-17", "world", user="quiver")


def test_a_host_of_root_takes_the_plugins_of_the_package(installed, tmp_path):
    installed.path("/tmp/root").mkdir(mode=0o700)
    settings = ["--set", "state=/tmp/root", "--set", "store.url=sqlite:/tmp/root/q.db", "--set", "coordination.url=local:/tmp/root"]
    with Running(installed, "root", tmp_path / "log", *settings) as host:
        assert "hello" in installed.run("quiver", "submit", "echo", "--wait", "world", *settings)
        assert "event=refused" not in host.log.read_text()


def test_a_plugin_is_made_with_the_installed_sdk(installed, steps):
    def build():
        installed.run("sh", "-ec", "cd /tmp && quiver new mine && make -C mine all test && make -C mine install"
                                   " && quiver try /usr/lib/quiver/plugins/mine.so --payload 'one two three'")

    steps("quiver new, its tests, quiver try", build)
    installed.path("/usr/lib/quiver/plugins/mine.so").unlink()


def test_manual_and_completion_are_installed(installed):
    pages = {path.name for path in installed.path("/usr/share/man/man1").glob("quiver*")}
    commands = re.findall(r"^  ([a-z]+) +\S", installed.run("quiver", "--help").split("commands:")[1].split("\n\n")[0], re.MULTILINE)
    assert pages == {"quiver.1.gz", *(f"quiver-{name}.1.gz" for name in commands)}
    for path in ("bash-completion/completions/quiver", "zsh/vendor-completions/_quiver", "fish/vendor_completions.d/quiver.fish"):
        assert "quiver complete" in installed.path(f"/usr/share/{path}").read_text()


@pytest.fixture(scope="module")
def booted(installed, steps):
    """systemd runs in it, on a network of its own."""
    installed.path("/usr/sbin/policy-rc.d").unlink()
    # A password for the service alone: the host reads it from where systemd puts it.
    installed.path("/etc/credstore").mkdir(mode=0o700, exist_ok=True)
    installed.path("/etc/credstore/quiver.redis").write_text("secret\n")
    installed.path("/etc/credstore/quiver.redis").chmod(0o600)
    if not steps("boot it", installed.boot):
        pytest.skip("systemd-nspawn cannot run here")
    yield installed
    installed.halt()


def shown(system, name):
    return system.run("systemctl", "show", "quiver.service", "--value", f"--property={name}").strip()


def test_the_service_runs(booted, steps):
    wait_until(lambda: shown(booted, "ActiveState") == "active", "the service is active")
    assert shown(booted, "User") == "quiver" and shown(booted, "NRestarts") == "0"
    assert "hello" in steps("submit --wait to the service", lambda: booted.run("quiver", "submit", "echo", "--wait", "world", user="quiver"))
    pid = shown(booted, "MainPID")
    assert booted.run("cat", "/run/credentials/quiver.service/quiver.redis") == "secret\n"
    assert "NoNewPrivs:\t1" in booted.run("cat", f"/proc/{pid}/status")
    assert "level=error" not in booted.run("journalctl", "-u", "quiver", "-o", "cat")
    booted.run("systemctl", "reload", "quiver")
    assert shown(booted, "MainPID") == pid


def test_a_running_host_takes_up_plugins_that_a_package_brings(booted, debs):
    """Without a restart; while they are not there it goes on without them."""
    (plugins,) = [path for path in put(booted, debs) if "quiver-plugins_" in path]
    pid = shown(booted, "MainPID")
    booted.run("dpkg", "--remove", "quiver-plugins")
    assert shown(booted, "MainPID") == pid and shown(booted, "ActiveState") == "active"
    booted.run("systemctl", "restart", "quiver")
    pid = shown(booted, "MainPID")
    assert "echo.so" in booted.run("journalctl", "-u", "quiver", "-o", "cat", "--grep", "echo.so")
    booted.run("dpkg", "--install", plugins)
    assert "hello" in booted.run("timeout", "60", "quiver", "submit", "echo", "--wait", "world", user="quiver")
    assert shown(booted, "MainPID") == pid and shown(booted, "NRestarts") == "0"


def test_an_upgrade_keeps_settings_and_tasks_and_restarts_the_host(booted, steps, next_debs):
    higher, debs = next_debs
    config = booted.path("/etc/quiver/runtime.cfg")
    config.write_text(config.read_text().replace('greeting = "hello"', 'greeting = "good morning"'))
    booted.run("quiver", "submit", "nobody", "--key", "k", "kept", user="quiver")
    before = shown(booted, "MainPID")
    steps("upgrade to the higher version", lambda: booted.apt("install", "--no-install-recommends", *put(booted, debs)))
    wait_until(lambda: shown(booted, "ActiveState") == "active", "the service is active")
    assert shown(booted, "MainPID") != before
    assert f"version {higher}" in wait_until(lambda: booted.run("quiver", "status", user="quiver", code=None), "it answers")
    assert "good morning" in booted.run("quiver", "submit", "echo", "--wait", "world", user="quiver")
    assert booted.path("/etc/quiver/runtime.cfg.dpkg-dist").exists(), "what the package would have had"
    assert '"nobody"' in booted.run("quiver", "tasks", "--json", user="quiver")


def test_what_is_removed_stops_and_what_is_purged_is_gone_but_for_tasks_and_user(booted, steps):
    steps("remove", lambda: booted.apt("remove", "quiver", "quiver-plugins", "libquiver1", "libquiver-dev"))
    assert shown(booted, "ActiveState") == "inactive"
    assert booted.path("/etc/quiver/runtime.cfg").exists() and not booted.path("/usr/bin/quiver").exists()
    said = steps("purge", lambda: booted.apt("purge", "quiver"))
    assert "tasks are kept in /var/lib/quiver" in said
    left = booted.run("find", "/etc", "/usr", "/var", "/lib/systemd", "/run", "-xdev", "-name", "*quiver*").split()
    left = [path for path in left if not path.startswith(("/var/cache/", "/etc/credstore/"))]
    assert [path for path in left if not path.startswith("/var/lib/quiver")] == []
    assert "quiver:x:" in booted.path("/etc/passwd").read_text()
    assert booted.path("/var/lib/quiver/quiver.db").exists()
