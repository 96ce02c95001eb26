"""Metrics as Prometheus sees them: a scraper of our own, and a real Prometheus where it is installed."""
import collections
import contextlib
import http.client
import json
import re
import shutil
import socket
import subprocess
import threading
import urllib.parse

from hosts import wait_until

SAMPLE = re.compile(r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"(?:,|$)')


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def read(port, path="/metrics", **fields):
    """Status, fields and text of the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    with contextlib.closing(connection):
        connection.request("GET", path, headers=fields)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()


def parse(text):
    """{(name, ((label, value), ...)): value}; every line is a comment or a sample, and no sample comes twice."""
    found = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        sample = SAMPLE.match(line)
        assert sample, line
        labels = LABEL.findall(sample[2] or "")
        assert ",".join(f'{n}="{v}"' for n, v in labels) == (sample[2] or ""), line
        key = sample[1], tuple(labels)
        assert key not in found, line
        found[key] = float(sample[3])
    return found


def total(samples, name, **labels):
    """The sum of a family's samples that have these labels; None: there is no such sample."""
    values = [value for (found, has), value in samples.items() if found == name and labels.items() <= dict(has).items()]
    return sum(values) if values else None


class Watcher:
    """Reads the metrics of all hosts again and again, as Prometheus does, and adds up."""

    def __init__(self, ports):
        self.ports = ports
        self.seen = collections.defaultdict(list)  # port: every scrape that was answered
        self.now = {}
        self.lock = threading.Lock()
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self):
        while not self.is_over.wait(0.1):
            for port in self.ports:
                try:
                    status, _, text = read(port)
                    samples = parse(text) if status == 200 else None
                except OSError:
                    samples = None
                with self.lock:
                    self.now[port] = samples
                    if samples:
                        self.seen[port].append(samples)

    def sum(self, name, **labels):
        """Over the hosts that answered the last scrape."""
        with self.lock:
            latest = [samples for samples in self.now.values() if samples]
        return sum(total(samples, name, **labels) or 0 for samples in latest)

    def wait(self, wanted, name, **labels):
        """Until the sum is that, and stays so for five rounds."""
        def is_so():
            with self.lock:
                rounds = len(self.seen[self.ports[0]]), len(self.seen[self.ports[1]]), len(self.seen[self.ports[2]])
            if rounds != is_so.last:
                is_so.last = rounds
                is_so.rounds = is_so.rounds + 1 if self.sum(name, **labels) == wanted else 0
            return is_so.rounds >= 5

        is_so.last, is_so.rounds = None, 0
        wait_until(is_so, f"sum({name}) is {wanted}")

    def increase(self, name, **labels):
        """Over all hosts and the whole time, with resets, as rate() sees it; but exactly."""
        grown = 0
        for scrapes in self.seen.values():
            before = 0
            for samples in scrapes:
                now = total(samples, name, **labels) or 0
                grown += now - before if now >= before else now
                before = now
        return grown

    def close(self):
        self.is_over.set()
        self.thread.join()


class Prometheus:
    """A real one that scrapes hosts five times a second."""

    CONFIG = """
global: {{ scrape_interval: 200ms, scrape_timeout: 200ms, evaluation_interval: 200ms }}
scrape_configs: [ {{ job_name: quiver, static_configs: [ {{ targets: {targets} }} ] }} ]
rule_files: [ {rules} ]
"""

    def __init__(self, folder, ports, rules):
        self.port = free_port()
        targets = json.dumps([f"127.0.0.1:{port}" for port in ports])
        config = folder / "prometheus.yml"
        config.write_text(self.CONFIG.format(targets=targets, rules=rules))
        with open(folder / "prometheus.log", "wb") as log:
            self.process = subprocess.Popen(
                ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder}/tsdb",
                 f"--web.listen-address=127.0.0.1:{self.port}", "--query.lookback-delta=5s"], stdout=log, stderr=log)
        wait_until(lambda: self.ask("up == 1"), "Prometheus answers")

    def ask(self, expression):
        """[(labels, value)] at this moment."""
        try:
            _, _, text = read(self.port, "/api/v1/query?" + urllib.parse.urlencode({"query": expression}))
            answer = json.loads(text)
        except (OSError, ValueError):
            return []
        assert answer["status"] == "success", answer
        return [(item["metric"], float(item["value"][1])) for item in answer["data"]["result"]]

    def value(self, expression):
        found = self.ask(expression)
        return found[0][1] if found else None

    def wait(self, wanted, expression):
        wait_until(lambda: self.value(expression) == wanted, f"{expression} is {wanted}, not {self.value(expression)}")

    def close(self):
        self.process.terminate()
        self.process.wait(30)


def is_installed():
    return shutil.which("prometheus") and shutil.which("promtool")
