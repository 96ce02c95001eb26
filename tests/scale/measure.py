#!/usr/bin/python3
"""What a small fleet costs its servers: real hosts on a real Redis, ZooKeeper and etcd.

Measured by the kernel and the servers themselves: bytes that a server has read and written (/proc/PID/io), its processor
time, the commands that Redis has counted.  From these, what one server carries is worked out in etc/OPERATIONS.md.

usage: measure.py [--hosts N] [--seconds N]       after `make build test-binaries`
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e" / "support"))

from etcds import Etcd  # noqa: E402
from hosts import wait_until  # noqa: E402
from servers import RedisServer  # noqa: E402
from zookeepers import ZooKeeper  # noqa: E402

CONFIG = """
app = "test"; shards = {shards}; state = "{folder}/state-{name}"; plugins = "{root}/build/test-plugins";
host = {{ name = "{name}"; }}; store = {{ url = "{store}"; }}; coordination = {{ url = "{url}"; session = "10s"; }};
lease = {{ ttl = "10s"; }};
handlers = {{ noop = {{ plugin = "noop.so"; }}; }};
"""


class Figures:
    """What a process has used so far."""

    def __init__(self, pid, client=None):
        with open(f"/proc/{pid}/io") as lines:
            said = dict(line.split(": ") for line in lines.read().splitlines())
        with open(f"/proc/{pid}/stat") as stat:
            words = stat.read().rpartition(")")[2].split()
        self.read, self.written = int(said["rchar"]), int(said["wchar"])
        self.cpu_s = (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
        self.commands = client.info("stats")["total_commands_processed"] if client else 0
        self.at = time.monotonic()

    def since(self, before):
        """(bytes read, bytes written, processor seconds, commands, seconds)"""
        return (self.read - before.read, self.written - before.written, self.cpu_s - before.cpu_s,
                self.commands - before.commands, self.at - before.at)


class Fleet:
    """Hosts on one store and one coordination."""

    def __init__(self, folder, store, url, shards):
        self.folder, self.store, self.url, self.shards, self.hosts = folder, store, url, shards, []

    def add(self, count):
        for _ in range(count):
            name = f"host-{len(self.hosts):03}"
            config = self.folder / f"{name}.cfg"
            config.write_text(CONFIG.format(name=name, folder=self.folder, root=ROOT, store=self.store, url=self.url,
                                            shards=self.shards))
            with open(self.folder / f"{name}.log", "wb") as log:
                self.hosts.append(subprocess.Popen([ROOT / "build" / "quiver", "run", "-c", config], stdout=log,
                                                   stderr=log))
        wait_until(self.is_even, f"{len(self.hosts)} hosts share the shards", 120)

    def is_even(self):
        told = self.cli("members", "--json", check=False)
        counts = [member.get("shards", 0) for member in json.loads(told or '{"members": []}')["members"]]
        return len(counts) == len(self.hosts) and sum(counts) == self.shards and max(counts) - min(counts) <= 1

    def cli(self, *words, check=True, text=None):
        return subprocess.run([ROOT / "build" / "quiver", *words, "-c", self.folder / "host-000.cfg"], check=check,
                              capture_output=True, text=True, input=text).stdout

    def close(self):
        for host in self.hosts:
            host.terminate()
        for host in self.hosts:
            host.wait()


def cost_of_members(fleet, pid):
    """Bytes both ways for one `quiver members`, which reads the node of every host."""
    before = Figures(pid)
    for _ in range(10):
        fleet.cli("members", "--json")
    read, written, _, _, _ = Figures(pid).since(before)
    return (read + written) / 10


def coordination(kind, folder, hosts, seconds):
    """What an idle host costs, and what a read of one node."""
    with RedisServer(folder / "store") as store, kind(folder / "authority") as authority:
        scheme = {RedisServer: "redis", ZooKeeper: "zookeeper", Etcd: "etcd"}[kind]
        url = authority.url if kind is RedisServer else f"{scheme}://127.0.0.1:{authority.port}/measured"
        client = authority.client() if kind is RedisServer else None
        fleet = Fleet(folder, store.url, url, 64)
        try:
            pid = authority.process.pid
            fleet.add(hosts // 4)
            time.sleep(3)
            few = cost_of_members(fleet, pid)
            fleet.add(hosts - hosts // 4)
            time.sleep(3)
            many = cost_of_members(fleet, pid)
            before = Figures(pid, client)
            time.sleep(seconds)
            read, written, cpu_s, commands, took_s = Figures(pid, client).since(before)
            print(f"{scheme:10} a host that is idle: {read / took_s / hosts:5.0f} B/s in {written / took_s / hosts:5.0f} B/s"
                  f" out {cpu_s / took_s / hosts * 1e6:5.0f} us/s of processor time"
                  + (f" {commands / took_s / hosts:5.2f} commands/s" if client else "")
                  + f"; a read of a member's node: {(many - few) / (hosts - hosts // 4):5.0f} B", flush=True)
        finally:
            fleet.close()


def store_idle(folder, shards, seconds):
    with RedisServer(folder / "store") as store:
        fleet = Fleet(folder, store.url, f"local:{folder}/coordination", shards)
        try:
            fleet.add(2)
            time.sleep(3)
            client, pid = store.client(), store.process.pid
            before = Figures(pid, client)
            time.sleep(seconds)
            read, written, cpu_s, commands, took_s = Figures(pid, client).since(before)
            print(f"store idle, {shards} shards on 2 hosts: {commands / took_s:7.2f} commands/s {read / took_s:8.0f} B/s in"
                  f" {written / took_s:8.0f} B/s out {cpu_s / took_s * 100:6.3f} % of a core"
                  f" {client.info('memory')['used_memory'] / 1e6:6.1f} MB", flush=True)
        finally:
            fleet.close()


def tasks(folder, count):
    with RedisServer(folder / "store") as store:
        fleet = Fleet(folder, store.url, f"local:{folder}/coordination", 64)
        try:
            fleet.add(1)
            client, pid = store.client(), store.process.pid
            before, host = Figures(pid, client), Figures(fleet.hosts[0].pid)
            fleet.cli("submit", "noop", "--lines", text="".join(f"k{n % 10000}\t{'x' * 100}\n" for n in range(count)))
            done = lambda: sum(int(client.hget(f"quiver:{{test:{n}}}:shard", "done") or 0) for n in range(64)) >= count
            wait_until(done, f"{count} tasks", 120)
            read, written, cpu_s, commands, _ = Figures(pid, client).since(before)
            _, _, host_s, _, _ = Figures(fleet.hosts[0].pid).since(host)
            print(f"{count} no-op tasks: Redis {cpu_s / count * 1e6:.1f} us, host {host_s / count * 1e6:.1f} us,"
                  f" {read / count:.0f} B in, {written / count:.0f} B out, {commands / count:.3f} commands each", flush=True)
        finally:
            fleet.close()


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--hosts", type=int, default=16)
    options.add_argument("--seconds", type=int, default=20)
    asked = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="quiver-scale-") as made:
        for number, kind in enumerate((RedisServer, ZooKeeper, Etcd)):
            folder = pathlib.Path(made) / f"coordination-{number}"
            folder.mkdir()
            coordination(kind, folder, asked.hosts, asked.seconds)
        for shards in (64, 1024):
            folder = pathlib.Path(made) / f"store-{shards}"
            folder.mkdir()
            store_idle(folder, shards, asked.seconds)
        folder = pathlib.Path(made) / "tasks"
        folder.mkdir()
        tasks(folder, 100000)


if __name__ == "__main__":
    main()
