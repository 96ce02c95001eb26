#!/usr/bin/python3
"""image.py VERSION DEBS FOLDER: a container image of the packages in DEBS, written to FOLDER.

FOLDER/root                        the files: Quiver, the libraries that it links or loads, time zones, certificates; no shell
FOLDER/quiver-VERSION.image.tar    the same as an image, for `podman load`, `docker load`, `skopeo copy oci-archive:…`

Debian's packages are unpacked by mmdebstrap from where this machine's apt gets them; nothing is run in the image.  Needs root,
for the owners of files.  The image runs as uid 10001, with the settings in /etc/quiver/runtime.cfg, and its state in the volume
/var/lib/quiver.  Stop it with SIGTERM; its health is that of `quiver status`.
"""
import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

USER = 10001
STATE = "var/lib/quiver"
CONFIG = "/etc/quiver/runtime.cfg"
# Loaded when they are needed, so no package's dependency says so; and what TLS and schedules read.
ALSO = ("libcurl4", "libssl3", "ca-certificates", "tzdata")
# Files that nothing reads in there.
USELESS = ("usr/share/man", "usr/share/locale", "usr/share/info", "usr/share/lintian", "usr/share/bash-completion", "usr/share/fish",
           "usr/share/zsh", "usr/sbin/update-ca-certificates", "var/cache", "var/lib/apt", "var/lib/dpkg", "etc/apt", "etc/logrotate.d",
           "lib/systemd", "usr/lib/systemd", "usr/lib/sysusers.d", "usr/lib/tmpfiles.d", "dev", "etc/ca-certificates", "usr/share/doc/quiver/etc")
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def libraries(deb):
    """The packages of libraries that a package needs."""
    depends = output("dpkg-deb", "-f", deb, "Depends")
    return set(re.findall(r"(?:^|, )(lib[a-z0-9.+-]+)", depends))


def suite():
    return re.search(r"^VERSION_CODENAME=(\S+)$", pathlib.Path("/etc/os-release").read_text(), re.MULTILINE)[1]


def unpack(debs, root):
    """Everything that the image has."""
    wanted = sorted(set().union(*map(libraries, debs), ALSO))
    sources = [str(path) for path in (pathlib.Path("/etc/apt/sources.list"), *sorted(pathlib.Path("/etc/apt/sources.list.d").glob("*")))
               if path.suffix in (".list", ".sources") and path.exists()]
    settings = [f"--aptopt={path}" for path in sorted(pathlib.Path("/etc/apt/apt.conf.d").glob("*")) if "Acquire" in path.read_text()]
    subprocess.run(["mmdebstrap", "--quiet", "--mode=root", "--variant=extract", f"--include={','.join(wanted)}",
                    '--aptopt=APT::Install-Recommends "false"', *settings, suite(), root, *sources], check=True)
    for deb in debs:
        subprocess.run(["dpkg-deb", "-x", deb, root], check=True)


def furnish(root):
    """What maintainer scripts would have done, and less of what nobody needs."""
    authorities = sorted((root / "usr/share/ca-certificates").rglob("*.crt"))
    (root / CERTIFICATES).parent.mkdir(parents=True, exist_ok=True)
    (root / CERTIFICATES).write_bytes(b"".join(path.read_bytes() for path in authorities))
    shutil.rmtree(root / "usr/share/ca-certificates")
    for name in USELESS:
        path = root / name
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
    (root / "etc/passwd").write_text(f"root:x:0:0:root:/:/nonexistent\nquiver:x:{USER}:{USER}:Quiver host:/{STATE}:/nonexistent\n")
    (root / "etc/group").write_text(f"root:x:0:\nquiver:x:{USER}:\n")
    (root / "etc/nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files dns\n")
    for name, mode, owner in ((STATE, 0o700, USER), ("tmp", 0o1777, 0), ("dev", 0o755, 0), ("proc", 0o755, 0), ("run", 0o755, 0)):
        (root / name).mkdir(parents=True, exist_ok=True)
        (root / name).chmod(mode)
        os.chown(root / name, owner, owner)


def layer(root, epoch):
    """All files as one archive, in order, with one time."""
    def entries():
        for folder, folders, files in os.walk(root):
            folders.sort()
            for name in sorted([*files, *folders]):
                yield pathlib.Path(folder, name).relative_to(root)

    to = io.BytesIO()
    with tarfile.open(fileobj=to, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path in sorted(entries()):
            info = archive.gettarinfo(root / path, str(path))
            info.mtime, info.uname, info.gname = epoch, "", ""
            if info.isfile():
                with open(root / path, "rb") as file:
                    archive.addfile(info, file)
            else:
                archive.addfile(info)
    return to.getvalue()


def settings(version):
    return {"User": f"{USER}:{USER}", "Entrypoint": ["/usr/bin/quiver"], "Cmd": ["run", "-c", CONFIG], "StopSignal": "SIGTERM",
            "WorkingDir": f"/{STATE}", "Volumes": {f"/{STATE}": {}}, "Env": ["PATH=/usr/bin", f"HOME=/{STATE}"],
            "Labels": {"org.opencontainers.image.title": "quiver", "org.opencontainers.image.version": version,
                       "org.opencontainers.image.licenses": "MIT"},
            # Docker's; others ignore it.  The first start may make the store.
            "Healthcheck": {"Test": ["CMD", "/usr/bin/quiver", "status", "-c", CONFIG, "--fail-if", "unowned=1"],
                            "Interval": 30 * 10**9, "Timeout": 10 * 10**9, "StartPeriod": 30 * 10**9, "Retries": 3}}


class Image:
    """An OCI layout that is also what `docker save` writes."""

    def __init__(self):
        self.files = {}

    def blob(self, data, media):
        name = hashlib.sha256(data).hexdigest()
        self.files[f"blobs/sha256/{name}"] = data
        return {"mediaType": media, "digest": f"sha256:{name}", "size": len(data)}

    def document(self, value, media):
        return self.blob(json.dumps(value, sort_keys=True).encode(), media)

    def write(self, path, epoch):
        with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as archive:
            for name in sorted(self.files):
                info = tarfile.TarInfo(name)
                info.size, info.mtime, info.mode = len(self.files[name]), epoch, 0o644
                archive.addfile(info, io.BytesIO(self.files[name]))


def assemble(root, version, epoch, path):
    machine = output("dpkg", "--print-architecture").strip()
    made = output("date", "-u", "-d", f"@{epoch}", "+%Y-%m-%dT%H:%M:%SZ").strip()
    files = layer(root, epoch)
    image, media = Image(), "application/vnd.oci.image."
    part = image.blob(gzip.compress(files, 6, mtime=0), media + "layer.v1.tar+gzip")
    config = image.document(
        {"architecture": machine, "os": "linux", "created": made, "config": settings(version), "history": [{"created": made}],
         "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(files).hexdigest()]}}, media + "config.v1+json")
    manifest = image.document({"schemaVersion": 2, "mediaType": media + "manifest.v1+json", "config": config, "layers": [part]},
                              media + "manifest.v1+json")
    named = {**manifest, "annotations": {"org.opencontainers.image.ref.name": version, "io.containerd.image.name": f"quiver:{version}"}}
    image.files["oci-layout"] = b'{"imageLayoutVersion": "1.0.0"}'
    image.files["index.json"] = json.dumps({"schemaVersion": 2, "manifests": [named]}, sort_keys=True).encode()
    place = "blobs/sha256/{}".format
    image.files["manifest.json"] = json.dumps([{"Config": place(config["digest"][7:]), "RepoTags": [f"quiver:{version}"],
                                                "Layers": [place(part["digest"][7:])]}]).encode()
    image.write(path, epoch)


def main(version, debs, folder):
    if os.geteuid() != 0:
        sys.exit("image.py: the owners of the image's files need root")
    found = [next(pathlib.Path(debs).glob(f"{name}_{version}_*.deb")) for name in ("quiver", "quiver-plugins")]
    folder = pathlib.Path(folder).resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    root = folder / "root"
    unpack(found, root)
    furnish(root)
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or (root / CONFIG.lstrip("/")).stat().st_mtime)
    path = folder / f"quiver-{version}.image.tar"
    assemble(root, version, epoch, path)
    print(f"{path}: {path.stat().st_size >> 20} MiB")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
