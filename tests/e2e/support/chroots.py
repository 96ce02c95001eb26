"""A Debian 12 of its own below build/chroot/, where packages are installed, upgraded and purged.

The bare system is made once by debootstrap, from where this machine's apt gets its packages, and copied for each use.  With
`boot` systemd runs in it as process 1 (systemd-nspawn), where the machine allows that; without, commands are run by chroot."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest

from hosts import wait_until

ROOT = pathlib.Path(__file__).resolve().parents[3]
PLACE = ROOT / "build" / "chroot"


def output(*command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, timeout=600).stdout


def release():
    """The name of this machine's release, and the mirror that its apt uses for it."""
    name = re.search(r"^VERSION_CODENAME=(\S+)$", pathlib.Path("/etc/os-release").read_text(), re.MULTILINE)[1]
    mirrors = output("apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages", f"Codename: {name}").split()
    return name, mirrors[0] if mirrors else None


def base():
    """The bare system; skips where there can be none."""
    made = PLACE / "base"
    if made.exists():
        return made
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        pytest.skip("needs root and the package debootstrap")
    name, mirror = release()
    if not mirror:
        pytest.skip("apt knows no mirror of this release (apt-get update)")
    PLACE.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(PLACE / "base.new", ignore_errors=True)
    done = subprocess.run(["debootstrap", "--variant=minbase", name, PLACE / "base.new", mirror], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"debootstrap cannot run here: {done.stdout[-500:]}")
    (PLACE / "base.new").rename(made)
    return made


def copy_apt(root):
    """Its apt gets packages from where ours does."""
    for name in ("sources.list", "sources.list.d", "apt.conf.d", "preferences.d", "trusted.gpg.d", "keyrings", "auth.conf.d"):
        source, to = pathlib.Path("/etc/apt", name), root / "etc/apt" / name
        if source.is_dir():
            shutil.rmtree(to, ignore_errors=True)
            shutil.copytree(source, to)
        elif source.exists():
            shutil.copy(source, to)
    if not pathlib.Path("/etc/apt/sources.list").exists():
        (root / "etc/apt/sources.list").unlink(missing_ok=True)  # debootstrap's; ours are in sources.list.d
    shutil.copytree("/usr/share/keyrings", root / "usr/share/keyrings", dirs_exist_ok=True)
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    # Hooks of this machine may name programs that are not there.
    for path in (root / "etc/apt/apt.conf.d").iterdir():
        if re.search(r"(Pre|Post)-Invoke|Pre-Install-Pkgs", path.read_text()):
            path.unlink()


class Chroot:
    """A copy of the bare system."""

    def __init__(self, name):
        self.root = PLACE / name
        shutil.rmtree(self.root, ignore_errors=True)
        subprocess.run(["cp", "-a", "--reflink=auto", base(), self.root], check=True)
        copy_apt(self.root)
        # It need not survive a power cut.
        (self.root / "etc/dpkg/dpkg.cfg.d/fast").write_text("force-unsafe-io\n")
        self.machine = None  # systemd-nspawn
        self.init = None  # the pid of its systemd, as we see it

    def path(self, name):
        return self.root / name.lstrip("/")

    def command(self, words, user="root"):
        words = [str(word) for word in words]
        if user != "root":
            words = ["runuser", "-u", user, "--", *words]
        if self.init:
            return ["nsenter", "-t", str(self.init), "-m", "-u", "-i", "-n", "-p", "--", "/usr/bin/env", "-C", "/", *words]
        return ["unshare", "--mount", "--pid", "--fork", "--kill-child", f"--mount-proc={self.root}/proc", "chroot", str(self.root), *words]

    def run(self, *words, user="root", code=0, text=None):
        env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8",
               "DEBIAN_FRONTEND": "noninteractive"}
        done = subprocess.run(self.command(words, user), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, input=text, timeout=900,
                              env=env)
        assert code is None or done.returncode == code, f"{words}: exit code {done.returncode}\n{done.stdout}"
        return done.stdout

    def popen(self, *words, user="root", log):
        with open(log, "wb") as to:
            return subprocess.Popen(self.command(words, user), stdin=subprocess.DEVNULL, stdout=to, stderr=to)

    def apt(self, *words):
        return self.run("apt-get", "-qy", "-o", "Dpkg::Options::=--force-confold", *words)

    # --- systemd as process 1 ---

    def boot(self):
        """True if systemd runs in it."""
        if not shutil.which("systemd-nspawn") or not self.path("/lib/systemd/systemd").exists():
            return False
        log = self.root.with_suffix(".console")
        with open(log, "wb") as to:
            self.machine = subprocess.Popen(
                ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--boot", "--console=read-only", f"--directory={self.root}",
                 "--private-network", "--resolv-conf=off", "systemd.unit=multi-user.target"], stdin=subprocess.DEVNULL, stdout=to, stderr=to)

        def is_up():
            if self.machine.poll() is not None:
                return True
            children = pathlib.Path(f"/proc/{self.machine.pid}/task/{self.machine.pid}/children").read_text().split()
            if not children:
                return False
            self.init = int(children[0])
            done = subprocess.run(self.command(["systemctl", "is-system-running"]), capture_output=True, text=True)
            return done.stdout.strip() in ("running", "degraded")

        try:
            wait_until(is_up, "systemd is up", 120)
        except AssertionError:
            self.halt()
            return False
        if self.machine.poll() is not None:
            self.machine = self.init = None
            return False
        return True

    def halt(self):
        if self.machine:
            self.machine.send_signal(signal.SIGTERM)
            try:
                self.machine.wait(60)
            except subprocess.TimeoutExpired:
                self.machine.kill()
                self.machine.wait()
        self.machine = self.init = None

    def close(self):
        self.halt()
        shutil.rmtree(self.root, ignore_errors=True)


class Steps:
    """How long each step took; printed, and kept in a file."""

    def __init__(self, path):
        self.path, self.lines = path, []

    def __call__(self, what, do):
        began = time.monotonic()
        found = do()
        self.lines.append(f"{time.monotonic() - began:7.1f} s  {what}")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text("\n".join(self.lines) + "\n")
        print(self.lines[-1], flush=True)
        return found
