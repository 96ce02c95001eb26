"""The tarball and what is built from it: the same bytes each time, anywhere."""
import json
import os
import re
import shutil
import subprocess
import tarfile

import pytest


def run(*words, cwd=None, code=0, **more):
    env = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    # Two builds that share a cache would be equal whatever they are.
    done = subprocess.run([str(word) for word in words], cwd=cwd, env={**env, "CCACHE_DISABLE": "1", **more}, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=1700)
    assert done.returncode == code, f"{words}: exit code {done.returncode}\n{done.stdout}"
    return done.stdout


def tarball(root, folder):
    """As `make dist` makes it, without the list of what the binary links."""
    run("make", "dist-tarball", f"DIST={folder}", "XZ_LEVEL=-0", cwd=root)
    (made,) = folder.glob("quiver-*.tar.xz")
    return made


@pytest.fixture
def clone(root, tmp_path):
    """The files of this tree, in a folder of another name, with modes and times of their own."""
    if not (root / ".git").exists():
        pytest.skip("this tree is an unpacked tarball")
    run("git", "clone", "-q", "--shared", root, tmp_path / "clone")
    for path in (tmp_path / "clone").rglob("*.md"):
        path.chmod(0o664)
        os.utime(path, (1, 1))
    return tmp_path / "clone"


def test_the_tarball_is_the_same_each_time_and_belongs_to_nobody(clone, tmp_path):
    first = tarball(clone, tmp_path / "a")
    run("cp", "-a", clone, tmp_path / "another-name")
    for path in (tmp_path / "another-name").rglob("*.md"):
        path.chmod(0o600)
        os.utime(path)
    second = tarball(tmp_path / "another-name", tmp_path / "b")
    assert first.read_bytes() == second.read_bytes()
    with tarfile.open(first) as archive:
        members = archive.getmembers()
    names = [m.name for m in members]
    assert names == sorted(names, key=lambda name: name.split("/")) and all(name.split("/")[0] == first.name.removesuffix(".tar.xz") for name in names)
    assert {(m.uid, m.gid, m.mtime) for m in members} == {(0, 0, members[0].mtime)}
    assert not [m.name for m in members if m.mode & 0o022 and not m.issym()]
    assert not [name for name in names if re.search(r"\.so$|\.o$|/build/|/\.git/|__pycache__", name)]


def test_an_unpacked_tarball_makes_the_same_tarball(clone, tmp_path):
    made = tarball(clone, tmp_path / "a")
    run("tar", "-C", tmp_path, "-xf", made)
    unpacked = tmp_path / made.name.removesuffix(".tar.xz")
    assert not (unpacked / ".git").exists()
    (unpacked / "build").mkdir()
    (unpacked / "build" / "something").write_text("was built")
    assert tarball(unpacked, tmp_path / "b").read_bytes() == made.read_bytes()


def test_the_list_of_what_is_linked_names_every_library(root, quiver):
    if not shutil.which("dpkg-query"):
        pytest.skip("not Debian")
    files = [quiver, *sorted((root / "plugins").glob("*.so"))]
    said = [run(root / "etc/packages/sbom.py", "1.2.3", *files, SOURCE_DATE_EPOCH="1700000000") for _ in range(2)]
    assert said[0] == said[1]
    document = json.loads(said[0])
    assert document["spdxVersion"] == "SPDX-2.3" and document["creationInfo"]["created"] == "2023-11-14T22:13:20Z"
    names = {package["name"]: package["versionInfo"] for package in document["packages"]}
    assert names["quiver"] == "1.2.3"
    assert {"libc6", "libuv1", "libsqlite3-0", "libconfig9", "libjansson4", "libzookeeper-mt2", "libssl3", "libcurl4"} <= set(names)
    installed = run("dpkg-query", "-W", "-f", "${Version}", "libuv1")
    assert names["libuv1"] == installed
    ids = [package["SPDXID"] for package in document["packages"]]
    assert len(ids) == len(set(ids))
    assert {r["relatedSpdxElement"] for r in document["relationships"]} == set(ids)


def test_two_builds_in_two_folders_are_equal(root):
    if not os.environ.get("QUIVER_TEST_LONG"):
        pytest.skip("two whole builds are for the long run")
    said = run("make", "reproducible", cwd=root)
    assert "build/quiver: OK" in said and "build/libquiver.so.1: OK" in said and "plugins/sql.so: OK" in said, said
