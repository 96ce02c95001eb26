"""Workers over HTTP in each language, and that each client can be installed from its folder."""
import base64
import json
import os
import shutil
import subprocess

import pytest

import client_harness
from client_harness import LANGUAGES, ROOT
from hosts import wait_until
from worker_hosts import WorkerHost


def start_worker(language, way, folder, host):
    """The worker of the README, as it stands."""
    text, = client_harness.blocks_of(language, True)
    folder.mkdir()
    words, more = way(text, folder)
    if language == "go":  # go run would stay when its child is killed
        subprocess.run(["go", "build", "-o", "worker", "."], cwd=folder, check=True, env={**os.environ, **more})
        words = [folder / "worker"]
    return subprocess.Popen(words, cwd=folder, stderr=open(folder / "log", "wb"),
                            env={**os.environ, "QUIVER_URL": f"http+unix:{host.socket}", "QUIVER_TOKEN": "", **more})


@pytest.mark.parametrize("language, way", LANGUAGES)
def test_the_worker_of_the_readme_does_tasks_and_one_that_dies_is_replaced(quiver, tmp_path, language, way):
    if not shutil.which(language.replace("python", "python3")):
        pytest.skip(f"{language} is not installed")
    host = WorkerHost(quiver, quiver.parent / "test-plugins", tmp_path, "one").write()
    host.start()
    worker = None
    try:
        worker = start_worker(language, way, tmp_path / "first", host)
        host.submit([{"handler": "mail", "key": f"k{n % 3}", "payload": f"n {n}"} for n in range(10)])
        host.wait_done(10)
        said = host.cli("submit", "mail", "--key", "k", "--wait", "ä", "--json")
        assert json.loads(said)["result"] == "hello, ä"
        host.cli("submit", "mail", "--key", "k", "")
        wait_until(lambda: host.sum("dead") == 1, "an empty payload is rejected")
        worker.kill()
        worker.wait()
        host.submit([{"handler": "mail", "key": f"k{n % 3}", "payload": "after"} for n in range(5)])
        worker = start_worker(language, way, tmp_path / "second", host)
        host.wait_done(16)
    finally:
        if worker:
            worker.kill()
            worker.wait()
        host.close()


SLOW = {  # a handle() that takes several times its lease, tells of itself, and is cancelled
    "python": ("""
import os, time
from quiver.worker import Outcome, serve

def handle(task):
    if task.payload == b"cancel me":
        task.stop.wait(60)
        return None
    if task.attempt == 1:
        task.tell("checkpoint", b"so far")
        task.tell("progress", done=1, total=2)
        time.sleep(3)
        raise Outcome("retry", "again", after_ms=1)
    task.tell("submit", b"more", handler="next", key="f")
    return task.checkpoint + task.headers["bytes"]

serve(handle, "mail", os.environ["QUIVER_URL"])
"""),
    "node": ("""
import { Outcome, serve } from 'quiver-client/worker';
import { setTimeout as sleep } from 'node:timers/promises';

async function handle(task) {
  if (task.payload.toString() === 'cancel me') {
    await new Promise((resolve) => { task.stop.addEventListener('abort', resolve); });
    return null;
  }
  if (task.attempt === 1) {
    task.tell('checkpoint', 'so far');
    task.tell('progress', '', { done: 1, total: 2 });
    await sleep(3000);
    throw new Outcome('retry', 'again', { after_ms: 1 });
  }
  task.tell('submit', 'more', { handler: 'next', key: 'f' });
  return Buffer.concat([task.checkpoint, task.headers.bytes]);
}

await serve(handle, 'mail', { url: process.env.QUIVER_URL });
"""),
    "ruby": ("""
require "quiver"

Quiver::Worker.serve("mail", ENV.fetch("QUIVER_URL")) do |task|
  if task.payload == "cancel me"
    sleep(0.01) until task.stop?
    next nil
  end
  if task.attempt == 1
    task.tell.(:checkpoint, "so far")
    task.tell.(:progress, "", done: 1, total: 2)
    sleep(3)
    raise Quiver::Worker::Outcome.new(:retry, "again", after_ms: 1)
  end
  task.tell.(:submit, "more", handler: "next", key: "f")
  task.checkpoint + task.headers["bytes"]
end
"""),
    "go": ("""
package main

import (
	"context"
	"os"
	"time"

	quiver "quiver.example/client"
)

func handle(ctx context.Context, task *quiver.Work) ([]byte, error) {
	if string(task.Payload) == "cancel me" {
		<-ctx.Done()
		return nil, nil
	}
	if task.Attempt == 1 {
		task.SetCheckpoint([]byte("so far"))
		task.SetProgress(1, 2)
		time.Sleep(3 * time.Second)
		return nil, &quiver.NotDone{Kind: "retry", Why: "again", After: time.Millisecond}
	}
	task.FollowUp("next", "f", []byte("more"), 0)
	return append(task.Checkpoint, task.Headers["bytes"]...), nil
}

func main() {
	client, _ := quiver.Open(os.Getenv("QUIVER_URL"), "")
	_ = client.Serve(context.Background(), "mail", handle)
}
"""),
}


@pytest.mark.parametrize("language, way", LANGUAGES)
def test_a_worker_keeps_a_long_task_and_says_all_that_one_behind_pipe_can(quiver, tmp_path, language, way, monkeypatch):
    if not shutil.which(language.replace("python", "python3")):
        pytest.skip(f"{language} is not installed")
    monkeypatch.setattr(client_harness, "blocks_of", lambda *_: [SLOW[language]])
    host = WorkerHost(quiver, quiver.parent / "test-plugins", tmp_path, "one").write()
    host.start()
    worker = start_worker(language, way, tmp_path / "worker", host)
    try:
        id = host.cli("submit", "mail", "--key", "k", "--header64", "bytes=AP8=", "x").strip()
        host.wait_done(1)
        follow_up = wait_until(lambda: host.poll(handler="next", wait="1s"), "the follow-up is there")
        assert follow_up["payload"] == "more" and host.finish(follow_up)[0] in (200, 202)
        taken = json.loads(host.cli("results", "--json", "--max", "10").splitlines()[0])
        assert taken["id"] == id and base64.b64decode(taken["data_base64"]) == b"so far\x00\xff", taken
        id = host.cli("submit", "mail", "--key", "k", "cancel me").strip()
        wait_until(lambda: host.task(id)["state"] == "running", "it runs")
        host.cli("task", "cancel", id)
        wait_until(lambda: host.task(id)["state"] in ("dead", "done"), "it was cancelled")
        assert worker.poll() is None, (tmp_path / "worker" / "log").read_text()
        open_before = len(os.listdir(f"/proc/{worker.pid}/fd"))
        for _ in range(5 if "QUIVER_TEST_LONG" in os.environ else 0):  # each long enough for a heartbeat
            id = host.cli("submit", "mail", "--key", "k", "cancel me").strip()
            wait_until(lambda: host.task(id)["state"] == "running", "it runs")
            host.cli("task", "cancel", id)
            wait_until(lambda: host.task(id)["state"] in ("dead", "done"), "it was cancelled")
        wait_until(lambda: len(os.listdir(f"/proc/{worker.pid}/fd")) <= open_before + 2, "no connection is left over")
    finally:
        worker.kill()
        worker.wait()
        host.close()


@pytest.mark.parametrize("language", ["python", "node", "ruby", "go"])
def test_each_client_can_be_installed_from_its_folder(tmp_path, language):
    """With the language's own tool, without the net; and then it is used from elsewhere."""
    if "QUIVER_TEST_LONG" not in os.environ:
        pytest.skip("in the long form")
    tool = {"python": "/usr/bin/pip3", "node": "npm", "ruby": "gem", "go": "go"}[language]
    if not shutil.which(tool):
        pytest.skip(f"{tool} is not installed")
    folder = shutil.copytree(ROOT / "sdk/clients" / language, tmp_path / "source", ignore=shutil.ignore_patterns("__pycache__"))
    env = {**os.environ, "HOME": str(tmp_path), "GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOCACHE": str(ROOT / "build" / "go")}
    place = tmp_path / "installed"

    def run(*words, cwd=folder, **more):
        done = subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True, env={**env, **more}, timeout=280)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    place.mkdir()
    if language == "python":
        run(tool, "install", "--no-index", "--no-build-isolation", "--no-deps", "--target", place, folder)
        assert (place / "quiver" / "py.typed").exists()
        said = run("/usr/bin/python3", "-c", "import quiver, quiver.aio, quiver.worker; print(quiver.__file__)", cwd="/", PYTHONPATH=str(place))
        assert said.strip() == str(place / "quiver" / "__init__.py")
    elif language == "node":
        run(tool, "install", "--offline", "--no-audit", "--no-fund", "--install-links", folder, cwd=place)
        (place / "use.mjs").write_text("import { connect } from 'quiver-client';\nimport { serve } from 'quiver-client/worker';\nconsole.log(typeof connect, typeof serve);\n")
        assert run("node", "use.mjs", cwd=place) == "function function\n"
        assert {"index.d.ts", "worker.d.ts"} <= set(os.listdir(place / "node_modules/quiver-client"))
    elif language == "ruby":
        run(tool, "build", "quiver-client.gemspec", "--output", "client.gem")
        run(tool, "install", "--local", "--no-document", "--install-dir", place, "client.gem")
        said = run("ruby", "-e", "gem 'quiver-client'; require 'quiver'; puts Quiver::Worker", cwd="/", GEM_PATH=str(place), GEM_HOME=str(place))
        assert said == "Quiver::Worker\n"
    else:
        run(tool, "build", "./...")
        assert run("gofmt", "-l", ".") == ""


TYPED = """
import { connect, Client, Refused, type Outcome } from 'quiver-client';
import { serve, Outcome as Chosen } from 'quiver-client/worker';

async function main(): Promise<void> {
  const client: Client = await connect('http://127.0.0.1:1', { token: 't' });
  const ended: Outcome = await client.wait((await client.submit('mail', 'x', { key: 'k', delay: 5 })).id, 10);
  if (ended.state === 'dead') throw new Refused(ended.reason);
  const redis = await connect('redis+cluster://127.0.0.1:1', { app: 'a', password: 'p' });
  await redis.submitMany([{ handler: 'mail', payload: new Uint8Array(1) }]);
  await serve(async (task) => {
    if (!task.payload.length) throw new Chosen('reject', 'empty', { after_ms: 1 });
    return task.payload;
  }, 'mail', { url: 'http://127.0.0.1:1' });
}
void main();
"""


def test_types_of_node_are_those_of_its_calls(tmp_path):
    if "QUIVER_TEST_LONG" not in os.environ or not shutil.which("tsc"):
        pytest.skip("in the long form, with node-typescript")
    node = tmp_path / "node_modules" / "@types" / "node"
    node.mkdir(parents=True)  # as much of Node's types as is needed here
    (node / "index.d.ts").write_text("declare type Buffer = Uint8Array & { toString(encoding?: string): string };\n")
    (node / "package.json").write_text('{ "name": "@types/node", "version": "18.0.0", "types": "index.d.ts" }')
    (tmp_path / "node_modules" / "quiver-client").symlink_to(ROOT / "sdk/clients/node")

    def compiled(text):
        (tmp_path / "use.mts").write_text(text)
        return subprocess.run(["tsc", "--noEmit", "--strict", "--target", "es2022", "--module", "nodenext", "--moduleResolution", "nodenext",
                               "--types", "node", "--preserveSymlinks", "use.mts"], cwd=tmp_path, capture_output=True, text=True, timeout=280)

    done = compiled(TYPED)
    assert done.returncode == 0, done.stdout
    assert "'delai' does not exist" in compiled(TYPED.replace("delay: 5", "delai: 5")).stdout


def test_types_of_python_hold(tmp_path):
    if "QUIVER_TEST_LONG" not in os.environ or not shutil.which("mypy"):
        pytest.skip("in the long form, with mypy")
    source = tmp_path / "use.py"

    def checked(text):
        source.write_text(text)
        return subprocess.run(["mypy", "--strict", "--python-version", "3.9", "--cache-dir", tmp_path / "cache", source, ROOT / "sdk/clients/python/quiver"],
                              cwd=tmp_path, capture_output=True, text=True, timeout=280, env={**os.environ, "MYPYPATH": str(ROOT / "sdk/clients/python")})

    done = checked("import quiver\nmade: quiver.Submitted = quiver.Client('http://h').submit('mail', b'x', key='k')\nid: str = made.id\n")
    assert done.returncode == 0, done.stdout
    assert "Incompatible types" in checked("import quiver\nid: int = quiver.Submitted('a').id\n").stdout
