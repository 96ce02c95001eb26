"""The transcripts of etc/HTTP.md, etc/MIGRATING.md and etc/LOCKS.md are what a shell prints.

Every line between `<!-- transcripts -->` and `<!-- end -->` that begins with `$ ` is run, one after the other in one
shell; what follows it is its output, with ids and numbers that differ from run to run written as ID and N.
QUIVER_RECORD=1 writes the page anew.  A block behind `<!-- file: NAME -->` is a file of that name."""
import functools
import json
import os
import re
import shutil
import subprocess

import pytest

from hosts import wait_until
from http_hosts import Server, free_port

SECTION = re.compile(r"(?<=<!-- transcripts -->\n)(.*?)(?=<!-- end -->)", re.DOTALL)
FILE = re.compile(r"<!-- file: (\S+) -->\n```\n(.*?)```\n", re.DOTALL)
END = "--- that was it ---"

# What the shell of HTTP.md has besides curl.
SETUP = """
ask() { curl -sS -w '%{http_code}\\n' -H "Authorization: Bearer $token" "$@"; }
raw() { exec 3<>"/dev/tcp/127.0.0.1/$port"; printf "$1" >&3; timeout 20 cat <&3 | sed -n '1p;$p'; exec 3>&-; }
"""

pytestmark = pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")


def steady(text):
    text = re.sub(r"\b[0-9a-z]{20}-\d+\b", "ID", text)
    text = re.sub(r'("\w*_ms":)\d+', r"\1N", text)
    text = re.sub(r'("times":\[)[\d,]+', r"\1N", text)
    text = re.sub(r'("version":)\d{13}', r"\1N", text)
    text = re.sub(r'("(?:looked|total|tasks)":)\d+', r"\1N", text)
    return re.sub(r"[ \t]+\n", "\n", text.replace("\r", ""))


def blocks(text):
    """(command, expected output), and the text around them, in their order."""
    for part in re.split(r"(^\$ .*\n(?:(?!\$ |```|\n).*\n)*)", text, flags=re.MULTILINE):
        command = re.match(r"\$ (.*)\n", part)
        yield (command[1], part[command.end():]) if command else (None, part)


def check(page, folder, setup="", **variables):
    """Runs what the page shows in a shell with these variables, in a folder that the page calls /srv/quiver."""
    shell = subprocess.Popen(["bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             cwd=folder, env={**os.environ, "LC_ALL": "C", **variables})

    def run(command):
        shell.stdin.write(f"{command}\necho '{END}'\n")
        shell.stdin.flush()
        lines = []
        while (line := shell.stdout.readline()) and END not in line:
            lines.append(line)
        before = line.partition(END)[0]
        return steady("".join(lines) + (before + "\n" if before else "")).replace(str(folder), "/srv/quiver")

    def section(found):
        return "".join(shown if command is None else f"$ {command}\n{run(command)}" for command, shown in blocks(found[0]))

    run(setup)
    text = page.read_text()
    assert SECTION.search(text), f"{page} has no transcripts"
    seen = SECTION.sub(section, text)
    shell.stdin.close()
    shell.wait(60)
    shell.stdout.close()
    if os.environ.get("QUIVER_RECORD"):
        page.write_text(seen)
    assert seen.splitlines() == text.splitlines(), "QUIVER_RECORD=1 writes it anew"


def test_the_page_of_http_shows_what_happens(host, root):
    # So many that the shard whose backlog is filled is hardly ever that of another task.
    host.configure = functools.partial(host.configure, shards=256)
    server = Server(host)
    host.config.write_text(host.config.read_text().replace('synchronous = "normal";', 'synchronous = "normal"; max_backlog = 3;'))
    host.stop()
    host.start()
    check(root / "etc" / "HTTP.md", host.folder, SETUP, token=server.token, port=str(server.port),
          url=f"http://127.0.0.1:{server.port}")


@pytest.mark.parametrize("name", ["MIGRATING.md", "LOCKS.md"])
def test_the_page_shows_what_happens(quiver, root, tmp_path, name):
    page = root / "etc" / name
    for name, text in FILE.findall(page.read_text()):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    port, log = free_port(), tmp_path / "log"
    with open(log, "wb") as output:
        process = subprocess.Popen([quiver, "run", "--set", f"http.listen=127.0.0.1:{port}", "--set", f"plugins={root}/plugins"],
                                   stderr=output, cwd=tmp_path)

    def is_ready():
        assert process.poll() is None, log.read_text()
        asked = subprocess.run([quiver, "status", "--fail-if", "unowned=1"], cwd=tmp_path, capture_output=True)
        return asked.returncode == 0

    try:
        wait_until(is_ready, "the host owns all shards")
        check(page, tmp_path, PATH=f"{quiver.parent}:{os.environ['PATH']}", url=f"http://127.0.0.1:{port}",
              token=(tmp_path / "var" / "http.token").read_text().split()[2])
    finally:
        process.terminate()
        assert process.wait(60) == 0, log.read_text()


def settings(quiver):
    """Every setting as GROUP.NAME; of a handler's groups, the last word is the group."""
    reference = subprocess.run([quiver, "check", "--reference"], capture_output=True, text=True, check=True).stdout
    groups = re.split(r"^### (.*)$", reference, flags=re.MULTILINE)[1:]
    return {f"{group.rpartition('.')[2]}.{name}" for group, rows in zip(groups[::2], groups[1::2])
            for name in re.findall(r"^\| `(\w+)`", rows, re.MULTILINE)}


def test_the_page_of_migrating_names_only_what_there_is(quiver, root):
    text = (root / "etc" / "MIGRATING.md").read_text()
    quoted = set(re.findall(r"`([^`\n]+)`", text))
    headers = "".join(path.read_text() for path in (root / "sdk/include/quiver").glob("*.h"))
    names = set(re.findall(r"\bqv_\w+|\bQV_\w+", text))
    assert len(names) > 30 and not [name for name in names if not re.search(rf"\b{name}\b", headers)]
    assert not [q for q in quoted if re.fullmatch(r"-E[A-Z]+", q) and q not in headers]
    known, groups = settings(quiver), "store|coordination|ids|locks|lease|host|http|log|retry|remote"
    named = {found[0] for q in quoted if (found := re.match(rf"({groups})\.\w+\b", q))}
    assert len(named) > 15 and named <= known
    commands = [q.partition(" -- ")[0].split() for q in quoted if re.match(r"quiver [a-z]+\b", q)]
    assert len(commands) > 20
    for _, command, *words in commands:
        said = subprocess.run([quiver, command, "--help"], capture_output=True, text=True, timeout=60)
        assert said.returncode == 0, command
        assert not [word for word in words if re.match("-|[a-z]+$", word) and word not in said.stdout], (command, words)
    described = {(verb.upper(), re.sub(r"\{\w+\}", "{}", path))
                 for path, verbs in json.loads((root / "etc/openapi.json").read_text())["paths"].items() for verb in verbs}
    routes = {(verb, re.sub(r"[A-Z]+", "{}", path)) for verb, path in re.findall(r"`(GET|POST) (/\w[^`?]*)", text)}
    assert len(routes) > 5 and routes <= described
