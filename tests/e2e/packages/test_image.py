"""The container image, in the long run: made, read as others read it, and run as far as that goes without a container engine."""
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tarfile

import pytest

from hosts import wait_until

USER = 10001


@pytest.fixture(scope="module")
def image(root):
    if not os.environ.get("QUIVER_TEST_LONG"):
        pytest.skip("the image is made in the long run")
    if os.geteuid() != 0 or not shutil.which("mmdebstrap"):
        pytest.skip("needs root and the package mmdebstrap")
    env = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    done = subprocess.run(["make", "image"], cwd=root, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=1700)
    assert done.returncode == 0, done.stdout
    (made,) = (root / "build/image").glob("*.image.tar")
    return made


def test_the_image_is_what_engines_read(image):
    """By the OCI layout and by what `docker save` writes: one layer, whose sums are right."""
    with tarfile.open(image) as archive:
        files = {m.name: archive.extractfile(m).read() for m in archive if m.isfile()}
    assert all(hashlib.sha256(data).hexdigest() == name.rpartition("/")[2] for name, data in files.items() if name.startswith("blobs/"))
    assert json.loads(files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}

    def blob(descriptor):
        data = files["blobs/sha256/" + descriptor["digest"].partition(":")[2]]
        assert len(data) == descriptor["size"]
        return data

    manifest = json.loads(blob(json.loads(files["index.json"])["manifests"][0]))
    config = json.loads(blob(manifest["config"]))
    (layer,) = manifest["layers"]
    with tarfile.open(fileobj=io.BytesIO(blob(layer)), mode="r:gz") as archive:
        members = {m.name: m for m in archive}
    assert config["config"]["User"] == f"{USER}:{USER}" and config["config"]["StopSignal"] == "SIGTERM"
    assert config["config"]["Healthcheck"]["Test"][:3] == ["CMD", "/usr/bin/quiver", "status"]
    assert members["var/lib/quiver"].uid == USER and members["usr/bin/quiver"].uid == 0
    assert not [name for name in members if re.search(r"(^|/)(sh|bash|dash|dpkg|apt|perl)$", name) and members[name].isfile()]
    docker = json.loads(files["manifest.json"])[0]
    assert docker["Config"] in files and set(docker["Layers"]) <= set(files)
    if shutil.which("skopeo"):
        said = subprocess.run(["skopeo", "inspect", f"oci-archive:{image}"], capture_output=True, text=True)
        assert said.returncode == 0 and json.loads(said.stdout)["Os"] == "linux", said.stderr


def test_a_host_runs_in_it_as_its_user_and_stops_on_sigterm(image, tmp_path):
    root, log = image.parent / "root", tmp_path / "log"
    enter = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c",
             f'mount -t proc proc "{root}/proc" && mount -t tmpfs none "{root}/dev" && mknod -m 666 "{root}/dev/null" c 1 3 && '
             f'mkdir -m 1777 "{root}/dev/shm" && exec chroot --userspec={USER}:{USER} "{root}" /usr/bin/quiver "$@"', "sh"]
    env = {"PATH": os.environ["PATH"], "HOME": "/var/lib/quiver"}

    def command(*words):
        return subprocess.run([*enter, *words], env=env, capture_output=True, text=True, timeout=120)

    with open(log, "wb") as to:
        host = subprocess.Popen([*enter, "run", "-c", "/etc/quiver/runtime.cfg"], env=env, stdout=to, stderr=to, stdin=subprocess.DEVNULL)
    try:
        wait_until(lambda: "event=running" in log.read_text() or host.poll() is not None, "it runs")
        assert host.poll() is None, log.read_text()
        done = command("submit", "-c", "/etc/quiver/runtime.cfg", "echo", "--wait", "world")
        assert done.returncode == 0 and "hello" in done.stdout, done.stderr
        healthy = lambda: command("status", "-c", "/etc/quiver/runtime.cfg", "--fail-if", "unowned=1").returncode == 0  # noqa: E731
        wait_until(healthy, "its health check says so")
        (inner,) = pathlib.Path(f"/proc/{host.pid}/task/{host.pid}/children").read_text().split()
        assert f"Uid:\t{USER}\t{USER}" in pathlib.Path(f"/proc/{inner}/status").read_text()
        os.kill(int(inner), signal.SIGTERM)
        assert host.wait(60) == 0, log.read_text()
    finally:
        if host.poll() is None:
            host.kill()
            host.wait()
    state = [path for path in (root / "var/lib/quiver").iterdir()]
    assert {path.stat().st_uid for path in state} == {USER}
