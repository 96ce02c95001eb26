"""The transcripts of etc/HTTP.md are what a shell and curl print.

Every line that begins with `$ ` is run, one after the other in one shell; what follows it is its output, with ids and
numbers that differ from run to run written as ID and N.  QUIVER_RECORD=1 writes the page anew."""
import functools
import os
import re
import shutil
import subprocess

import pytest

from http_hosts import Server

SECTION = re.compile(r"(<!-- transcripts -->\n)(.*?)(<!-- end -->)", re.DOTALL)
END = "--- that was it ---"

# What the page's shell has besides curl: the variables that it names.
SETUP = """
ask() { curl -sS -w '%{http_code}\\n' -H "Authorization: Bearer $token" "$@"; }
raw() { exec 3<>"/dev/tcp/127.0.0.1/$port"; printf "$1" >&3; timeout 20 cat <&3 | sed -n '1p;$p'; exec 3>&-; }
"""


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


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
def test_the_page_shows_what_happens(host, root):
    page = root / "etc" / "HTTP.md"
    text = page.read_text()
    # So many that the shard whose backlog is filled is hardly ever that of another task.
    host.configure = functools.partial(host.configure, shards=256)
    server = Server(host)
    host.config.write_text(host.config.read_text().replace('synchronous = "normal";', 'synchronous = "normal"; max_backlog = 3;'))
    host.stop()
    host.start()
    shell = subprocess.Popen(["bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             env={**os.environ, "LC_ALL": "C", "token": server.token, "port": str(server.port),
                                  "url": f"http://127.0.0.1:{server.port}"})

    def run(command):
        shell.stdin.write(f"{command}\necho '{END}'\n")
        shell.stdin.flush()
        lines = []
        while (line := shell.stdout.readline()) and END not in line:
            lines.append(line)
        before = line.partition(END)[0]
        return steady("".join(lines) + (before + "\n" if before else ""))

    run(SETUP)
    seen, found = "", SECTION.search(text)
    for command, shown in blocks(found[2]):
        seen += shown if command is None else f"$ {command}\n{run(command)}"
    shell.stdin.close()
    shell.wait(60)
    shell.stdout.close()
    if os.environ.get("QUIVER_RECORD"):
        page.write_text(text[:found.start(2)] + seen + text[found.end(2):])
    assert seen == found[2], f"QUIVER_RECORD=1 writes it anew:\n{seen}"
