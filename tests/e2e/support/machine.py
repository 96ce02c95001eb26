#!/usr/bin/python3
"""Runs a command in a virtual machine with Debian's own kernel, where control groups have all their controllers.

    tests/e2e/support/machine.py COMMAND [ARGUMENT...]

The machine has this machine's files, read-only, a /tmp of its own, and version 2 of control groups alone; the command is run in
this tree, as root, and its exit code is returned.  Needs the packages qemu-system-x86 and busybox-static; the kernel (package
linux-image-amd64) is fetched with apt-get and unpacked in build/machine, not installed.  No part of `make test`: for instance

    tests/e2e/support/machine.py /usr/bin/python3 -m pytest -p no:cacheprovider -q tests/e2e/safety/test_confinement.py
"""
import gzip
import os
import pathlib
import re
import shlex
import shutil
import stat
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
PLACE = ROOT / "build" / "machine"
MODULES = ("virtio", "virtio_ring", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio_pci", "netfs", "fscache",
           "9pnet", "9pnet_virtio", "9p")

INIT = """#!/bin/busybox sh
/bin/busybox mount -t proc none /proc
# Which of them needs which differs from kernel to kernel: what cannot be loaded yet is tried again.
for round in 1 2 3 4; do for module in {modules}; do /bin/busybox insmod /$module.ko 2>/dev/null; done; done
/bin/busybox mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=loose,ro root /new
cd /new
/bin/busybox mount -t proc none proc
/bin/busybox mount -t sysfs none sys
/bin/busybox mount -t devtmpfs none dev
/bin/busybox mkdir -p dev/shm dev/pts
/bin/busybox mount -t tmpfs none dev/shm
/bin/busybox mount -t tmpfs none tmp
/bin/busybox chmod 1777 tmp
/bin/busybox mount -t tmpfs none run
/bin/busybox mount -t cgroup2 none sys/fs/cgroup
/bin/busybox ifconfig lo 127.0.0.1 up
/bin/busybox chroot . /bin/sh -c {command}
echo "machine: exit code $?"
/bin/busybox poweroff -f
"""


def fetch(package, folder):
    """Unpacks a package."""
    if not folder.exists():
        parts = PLACE / f"{package}.parts"
        parts.mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "download", package], cwd=parts, check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["dpkg", "-x", next(parts.glob("*.deb")), folder], check=True)
    return folder


def kernel():
    found = subprocess.run(["apt-cache", "depends", "linux-image-amd64"], check=True, capture_output=True, text=True)
    return fetch(re.search(r"Depends: (linux-image-\S+)", found.stdout)[1], PLACE / "kernel")


def entry(name, mode, data=b""):
    """A file of a cpio archive of the format that the kernel reads."""
    numbers = [entry.count, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0]
    entry.count += 1
    head = b"070701" + b"".join(b"%08X" % number for number in numbers) + name.encode() + b"\0"
    return head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4)


entry.count = 1


def initramfs(modules, command):
    script = INIT.format(modules=" ".join(MODULES), command=shlex.quote(command))
    busybox = fetch("busybox-static", PLACE / "busybox") / "bin/busybox"
    parts = [entry(name, stat.S_IFDIR | 0o755) for name in ("bin", "proc", "new")]
    parts.append(entry("bin/busybox", stat.S_IFREG | 0o755, busybox.read_bytes()))
    parts.append(entry("init", stat.S_IFREG | 0o755, script.encode()))
    for name in MODULES:
        parts.append(entry(f"{name}.ko", stat.S_IFREG | 0o644, next(modules.rglob(f"{name}.ko")).read_bytes()))
    path = PLACE / "initramfs.gz"
    path.write_bytes(gzip.compress(b"".join([*parts, entry("TRAILER!!!", 0)]), 1))
    return path


def main(words):
    if not words or not shutil.which("qemu-system-x86_64"):
        sys.exit(__doc__ if not words else "the package qemu-system-x86 is not installed")
    system = kernel()
    command = f"cd {ROOT} && PATH={os.environ['PATH']} HOME=/tmp {shlex.join(words)}"
    (image,) = (system / "boot").glob("vmlinuz-*")
    done = subprocess.run(
        ["qemu-system-x86_64", "-m", "2048", "-smp", "2", "-nographic", "-no-reboot", "-kernel", image, "-initrd",
         initramfs(system, command), "-accel", "tcg", "-append",
         "console=ttyS0 quiet panic=-1", "-virtfs", "local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    print(done.stdout)
    code = re.search(r"machine: exit code (\d+)", done.stdout)
    sys.exit(int(code[1]) if code else 1)


if __name__ == "__main__":
    main(sys.argv[1:])
