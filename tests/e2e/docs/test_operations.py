"""The scenarios of etc/OPERATIONS.md: what an operator types and sees, walked through with real hosts.

The page has a block for each, with commands ("$ quiver …") and what they print.  Here each scenario is set up and its
commands are run; what they print must be what the page shows, but for numbers, ids, times and paths.
QUIVER_RECORD=1 writes what was seen into the page.
"""
import os
import re
import shutil
import subprocess

import pytest

from hosts import Host, wait_until

COMMANDS = re.compile(r"<!-- scenario: (\S+) -->\n```\n(.*?)```\n", re.DOTALL)


def task(key, payload, handler="mail"):
    return {"handler": handler, "key": key, "payload": payload}


def page(root):
    return root / "etc" / "OPERATIONS.md"


def plain(text):
    """Without what differs from run to run."""
    text = re.sub(r"\b[0-9a-z]{20}-\d+\b", "ID", text)
    text = re.sub(r"\b[0-9a-f]{8,32}\b", "HEX", text)
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+Z", "TIME", text)
    text = re.sub(r"\b\d+(\.\d+)?(ms|s|m|h|d)\b", "AGE", text)
    text = re.sub(r"(?<![\w-])-(?![\w-])", "AGE", text)
    text = re.sub(r"\d+(\.\d+)?", "N", text)
    return [re.sub(r"\s+", " ", line).strip() for line in text.splitlines()]


class Walk:
    """A host and the commands of one scenario, in their order."""

    def __init__(self, root, host, name):
        self.root, self.host, self.name = root, host, name
        self.env = {**os.environ, "QUIVER_CONFIG": str(host.config), "PATH": f"{host.quiver.parent}:{os.environ['PATH']}"}
        self.shown = []
        block = next((body for found, body in COMMANDS.findall(page(root).read_text()) if found == name), "")
        self.expected = block

    def tidy(self, text):
        text = text.replace(str(self.host.folder), "/var/lib/quiver")
        text = re.sub(rf"(?<![\w-]){re.escape(os.uname().nodename)}(?![\w-])", "web-1.example", text)
        if hasattr(self.host, "redis"):
            text = text.replace(self.host.redis.socket, "/run/redis.sock")
        text = re.sub(r"(machine|id)=[0-9a-f]{32}", r"\1=…", text)
        return re.sub(r"&id=…|\?machine=…", "", text)

    def run(self, command, code=0):
        """As a shell would."""
        done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=120, env=self.env, cwd=self.host.folder)
        assert done.returncode == code, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
        self.shown.append((command, self.tidy(done.stdout + done.stderr)))
        return done.stdout

    def wait(self, command, words):
        """Until the command says so; then it is a step like any other."""
        def says():
            done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=120, env=self.env, cwd=self.host.folder)
            return words in done.stdout + done.stderr
        wait_until(says, f"{words} in {command}")

    def end(self):
        block = "".join(f"$ {command}\n{text}" for command, text in self.shown)
        if os.environ.get("QUIVER_RECORD"):
            text = page(self.root).read_text()
            marker = f"<!-- scenario: {self.name} -->\n```\n"
            assert marker in text, f"the page has no {marker}"
            start = text.index(marker) + len(marker)
            page(self.root).write_text(text[:start] + block + text[text.index("```\n", start):])
            return
        assert plain(self.expected) == plain(block), f"QUIVER_RECORD=1 writes it anew:\n{block}"


@pytest.fixture
def walk(root, host):
    def begin(name, made=host, shards=4, change=lambda text: text, **handlers):
        def named(text):
            return change('host = { name = "web-1"; };\n' + text)
        made.configure(shards=shards, change=named, **(handlers or {"mail": "threads = 2;"}))
        return Walk(root, made, name)
    return begin


def test_a_backlog_grows(walk, host, tmp_path):
    w = walk("backlog")
    host.start()
    host.submit([task(f"user-{n}", f"{n} wait:{tmp_path}/go") for n in range(400)])
    w.wait("quiver status --json", '"waiting": 398')
    w.wait("quiver tasks --state running --json | wc -l", "2")
    w.wait("quiver status --fail-if oldest=3s", "the oldest waits for")
    w.run("quiver status --fail-if oldest=3s --fail-if waiting@mail=100 > /dev/null", code=1)
    w.run("quiver tasks --state running")
    w.run("quiver tasks --handler mail --state waiting --limit 2")
    w.end()


def test_a_key_is_stuck(walk, host):
    w = walk("stuck-key", change=lambda text: text.replace('backoff = "20ms"; max = "100ms"', 'backoff = "1h"; max = "1h"'))
    host.start()
    host.submit([task("user-17", "1 retry:1"), task("user-17", "2"), task("user-17", "3")])
    w.wait("quiver key user-17", "state        parked")
    w.run("quiver key user-17")
    w.run("quiver tasks --key user-17")
    w.run("quiver key retry user-17")
    host.wait_done(3)
    w.end()


def test_a_handler_is_down(walk, host, tmp_path):
    (tmp_path / "down").touch()
    w = walk("handler-down")
    host.start()
    host.submit([task("user-1", f"1 down:{tmp_path}/down")])
    w.wait("quiver key user-1", "mail is unavailable")
    w.run("quiver status --fail-if unavailable=1 > /dev/null", code=1)
    w.run("quiver tasks --handler mail")
    w.run("quiver pause mail --reason 'the provider is down until 18:00'")
    w.wait("quiver key user-1", "mail is paused")
    w.run("quiver tasks --handler mail")
    (tmp_path / "down").unlink()
    w.run("quiver resume mail")
    host.wait_done(1)
    w.end()


def test_a_task_is_poison(walk, host):
    w = walk("poison", mail="threads = 2; crashes = 2;")
    host.start()
    host.submit([task("user-9", "1 crash"), task("user-9", "2")])
    host.wait_done(1)
    w.wait("quiver dead list", "crashed")
    w.run("quiver tasks --state dead --handler mail | sed 's/ 0x.*//'")
    w.run("grep -c 'event=dead ' log-0")
    w.run("quiver dead drop --reason crashed --yes")
    w.end()


def test_500_are_dead_after_a_mistake(walk, host):
    w = walk("500-dead")
    host.start()
    host.submit([task(f"user-{n}", f"{n} reject") for n in range(500)])
    w.wait("quiver status --fail-if dead=500", "500 dead")
    w.run("quiver status | tail -n 2")
    w.run("quiver dead requeue --handler mail --error 'no such' --dry-run")
    w.run("quiver dead requeue --handler mail --error 'no such' --yes")
    w.wait("quiver status --fail-if dead=500", "500 dead")  # nobody has mended this handler
    w.run("quiver dead drop --handler mail --limit 500 --yes")
    w.end()


def test_a_version_is_bad(walk, host, tmp_path, root):
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    shutil.copy(root / "build" / "test-plugins" / "ledger.so", plugins / "ledger.so")
    w = walk("bad-version", change=lambda text: text.replace(str(host.plugins), str(plugins)))
    host.start()
    host.submit([task("user-1", "1")])
    host.wait_done(1)
    (plugins / "ledger.so.new").write_bytes(b"not a plugin")
    (plugins / "ledger.so.new").rename(plugins / "ledger.so")
    w.run("quiver reload --dry-run", code=1)
    w.run("quiver reload --wait", code=1)
    host.submit([task("user-1", "2")])
    host.wait_done(2)
    w.end()


def test_a_host_is_drained(walk, host, quiver, tmp_path):
    w = walk("drain")
    host.start()
    second = Host(quiver, host.plugins, tmp_path / "second")
    second.folder.mkdir()
    second.config.write_text(host.config.read_text().replace('name = "web-1"', 'name = "web-2"'))
    try:
        second.start()
        w.wait("quiver members --json", '"web-2"')
        w.wait("quiver status --json", '"machine"')
        w.run("quiver members drain web-2")
        wait_until(lambda: '"drained"' in host.cli("status", "--json"), "it has nothing left")
        w.run("quiver status | grep '^host' | sort")
        w.run("quiver members activate web-2")
    finally:
        second.close()
    w.end()


def test_the_disk_is_full(walk, quiver, host, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("it takes root to make a small disk")
    try:
        w = walk("full-disk", change=lambda text: text.replace(f"sqlite:{tmp_path}/q.db", f"sqlite:{disk}/q.db"))
        host.start()
        (tmp_path / "big").write_bytes(b"x" * 200000)
        with open(disk / "other", "wb", buffering=0) as other:
            try:
                while other.write(b"x" * 4096) == 4096:
                    pass
            except OSError:
                pass
        w.run("quiver submit mail --key user-1 - < big", code=1)
        (disk / "other").unlink()
        w.run("quiver submit mail --key user-1 --wait 1 > /dev/null")
        host.stop()
        w.end()
    finally:
        host.close()
        subprocess.run(["umount", disk], check=True)


def test_redis_is_full(walk, redis_host):
    w = walk("full-redis", made=redis_host)
    redis_host.start()
    with redis_host.redis.client() as client:
        client.config_set("maxmemory", "1000000")
        w.wait("quiver status", "refuses")
        w.run("quiver submit mail --key user-1 hello", code=1)
        w.run("quiver status | grep '^refuses'")
        client.config_set("maxmemory", "0")
        w.run("quiver submit mail --key user-1 --wait '1' > /dev/null")
    w.end()


def test_a_store_moves_to_redis(walk, host, redis_server):
    w = walk("to-redis")
    host.start()
    host.stop()
    host.submit([task(f"user-{n}", str(n)) for n in range(100)])
    redis_server.start()
    new = host.folder / "new.cfg"
    text = host.config.read_text().replace(f"sqlite:{host.folder}/q.db", f"redis+unix:{redis_server.socket}")
    new.write_text(text.replace('synchronous = "normal";', "") + f'coordination = {{ url = "local:{host.folder}/state"; }};\n')
    w.run("quiver dump > tasks")
    w.run("quiver load -c new.cfg tasks")
    w.run("quiver fsck -c new.cfg")
    w.end()


def test_an_upgrade_goes_host_by_host(walk, host, quiver, tmp_path):
    w = walk("upgrade")
    host.start()
    second = Host(quiver, host.plugins, tmp_path / "second")
    second.folder.mkdir()
    second.config.write_text(host.config.read_text().replace('name = "web-1"', 'name = "web-2"'))
    try:
        second.start()
        wait_until(lambda: host.cli("status", "--json").count('"machine"') == 2, "both say what they are")
        w.run("quiver status --fail-if versions=1 --fail-if hosts=2 > /dev/null && echo all alike")
        assert second.stop() == 0
        second.start()
        wait_until(lambda: host.cli("status", "--json").count('"machine"') == 2, "both say what they are")
        w.run("quiver status --fail-if versions=1 --fail-if hosts=2 > /dev/null && echo all alike")
    finally:
        second.close()
    w.end()
