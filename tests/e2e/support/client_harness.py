"""Clients in other languages behind one protocol (tests/clients/README.md), and programs of their READMEs."""
import base64
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
HARNESSES = {"python": ["/usr/bin/python3", "tests/clients/harness.py"], "node": ["node", "tests/clients/harness.mjs"],
             "ruby": ["ruby", "tests/clients/harness.rb"], "go": ["build/tests/clients/go", "-test.run=TestContract"]}
# Which ways to a fleet a language has.
WAYS = [("python", "http"), ("python", "async"), ("python", "unix"), ("python", "redis"), ("python", "redis-async"),
        ("node", "http"), ("node", "unix"), ("node", "redis"),
        ("ruby", "http"), ("ruby", "unix"), ("ruby", "redis"), ("go", "http"), ("go", "unix")]


def build_go():
    """Its harness is a test of the package, which go compiles into a program."""
    environment = {**os.environ, "GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOCACHE": str(ROOT / "build" / "go"), "HOME": str(ROOT / "build")}
    subprocess.run(["go", "vet", "."], cwd=ROOT / "sdk/clients/go", check=True, env=environment)
    subprocess.run(["go", "test", "-c", "-o", ROOT / "build/tests/clients/go", "."], cwd=ROOT / "sdk/clients/go", check=True, env=environment)


class Harness:
    def __init__(self, language):
        words = HARNESSES[language]
        if not shutil.which("go" if language == "go" else words[0]):
            pytest.skip(f"{language} is not installed")
        if language == "go":
            build_go()
        self.language = language
        self.process = subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, "NODE_PATH": "/usr/share/nodejs",  # where Debian has packages of Node
                                             "QUIVER_CONTRACT": "1"})

    def ask(self, do, **said):
        self.process.stdin.write(json.dumps({"do": do, **said}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the harness ended at {do} {str(said)[:200]}"
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.stdout.read()
        self.process.stdout.close()
        assert self.process.wait(30) == 0


ON_REDIS = [(language, way) for language, way in WAYS if way.startswith("redis")]


def b64(data):
    return base64.b64encode(data).decode()


# --- programs of READMEs


def in_python(text, folder):
    return ["/usr/bin/python3", "-c", text], {"PYTHONPATH": str(ROOT / "sdk/clients/python")}


def in_node(text, folder):
    (folder / "node_modules").mkdir(exist_ok=True)
    (folder / "node_modules" / "quiver-client").symlink_to(ROOT / "sdk/clients/node")
    (folder / "example.mjs").write_text(text)
    return ["node", folder / "example.mjs"], {}


def in_ruby(text, folder):
    return ["ruby", "-I", ROOT / "sdk/clients/ruby/lib", "-e", text], {}


def in_go(text, folder):
    (folder / "main.go").write_text(text)
    (folder / "go.mod").write_text("module example\n\ngo 1.19\n\nrequire quiver.example/client v0.0.0\n\n"
                                   f"replace quiver.example/client => {ROOT}/sdk/clients/go\n")
    return ["go", "run", "."], {"GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOCACHE": str(ROOT / "build" / "go"), "HOME": str(folder)}


LANGUAGES = [("python", in_python), ("node", in_node), ("ruby", in_ruby), ("go", in_go)]


def blocks_of(language, is_worker):
    """The programs of a README, before or behind its heading of workers."""
    before, _, behind = (ROOT / f"sdk/clients/{language}/README.md").read_text().partition("## A worker")
    return re.findall(r"```(?:python|js|ruby|go)\n(.*?)```", behind if is_worker else before, re.DOTALL)
