"""`quiver take`, and the client library's functions for workers: tasks of a remote handler over a host's own socket."""
import concurrent.futures
import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile

import pytest

from hosts import wait_until
from worker_hosts import WorkerHost


class TakeHost(WorkerHost):
    """A host, and workers beside it."""

    def words(self, *words, command=()):
        return [self.quiver, "take", *map(str, words), "-c", self.config, *(["--", *map(str, command)] if command else [])]

    def take(self, *words, command=(), code=0):
        """Standard output, or of a command that fails standard error."""
        done = subprocess.run(self.words(*words, command=command), capture_output=True, text=True, timeout=120)
        assert done.returncode == code, done.stderr + done.stdout
        return done.stderr if code else done.stdout

    @contextlib.contextmanager
    def taking(self, *words, command):
        worker = subprocess.Popen(self.words(*words, command=command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            yield worker
        finally:
            worker.kill()
            worker.communicate()

    def one(self, key, payload="x"):
        return self.submit_one({"handler": "mail", "key": key, "payload": payload})

    def again(self, number):
        """Takes it by hand and finishes it; returns what was said of it meanwhile."""
        task = json.loads(self.take("mail", "--wait", "30s", "--json"))
        assert task["id"] == number
        found = self.task(number)
        self.take("finish", "mail", number, "--fence", task["fence"], "done")
        return found

    def results(self):
        return [bytes(row["data"]).decode() for row in self.rows("result")]


@pytest.fixture(scope="module")
def one(quiver, root):
    """A host that the tests of this file share."""
    with tempfile.TemporaryDirectory(prefix="quiver-") as folder:
        host = TakeHost(quiver, root / "build" / "test-plugins", pathlib.Path(folder), "one")
        host.write(ttl="2s").start()
        yield host
        host.close()


def test_a_command_does_tasks_as_the_exec_plugin_would(one):
    one.submit([{"handler": "mail", "key": "a", "payload": str(i), "headers": {"Tenant-Id": "7"}} for i in range(3)])
    script = 'echo "$QUIVER_HANDLER $QUIVER_KEY $QUIVER_ATTEMPT $QUIVER_HEADER_TENANT_ID $(cat)"; test -n "$QUIVER_ID$QUIVER_FENCE_EPOCH"'
    said = one.take("mail", "-n", 3, "--worker", "w1", "--json", command=["sh", "-c", script])
    lines = [json.loads(line) for line in said.splitlines()]
    assert [(line["key"], line["attempt"], line["outcome"]) for line in lines] == [("a", 1, "done")] * 3
    assert [f"mail a 1 7 {i}\n" for i in range(3)] == [text for text in one.results() if text.startswith("mail a")]
    assert one.task(lines[0]["id"])["worker"] == "w1"


def test_a_command_that_fails_is_retried_and_its_words_are_kept(one):
    number = one.one("b")
    command = ["sh", "-c", 'test $QUIVER_ATTEMPT = 2 && exit 3; echo no route >&2; exit 75']
    said = one.take("mail", "-n", 2, command=command)
    assert said.splitlines() == [f"{number} retry: exit status 75: no route", f"{number} retry: exit status 3"]
    event, _ = one.again(number)["history"]
    assert (event["kind"], event["text"]) == ("attempt", "exit status 75: no route")


@pytest.mark.parametrize("script, outcome", [("exit 65", "reject: exit status 65"), ("exit 79", "later: exit status 79"),
                                             ("kill -9 $$", "retry: killed by SIGKILL"),
                                             ("head -c 1100000 /dev/zero", "reject: the command wrote more")])
def test_what_the_end_of_a_command_means(one, script, outcome):
    number = one.one("c")
    assert one.take("mail", "-n", 1, command=["sh", "-c", script]).startswith(f"{number} {outcome}")
    if not outcome.startswith("reject"):
        one.cli("task", "cancel", number)
    one.wait_task(number, lambda t: t["state"] == "dead", "it is dead")


def test_a_worker_that_is_killed_costs_an_interruption_and_its_command(one, tmp_path):
    number = one.one("d")
    with one.taking("mail", command=["sh", "-c", f"echo $$ > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid; exec sleep 600"]) as worker:
        wait_until((tmp_path / "pid").exists, "the command runs")
        worker.kill()
        worker.wait()
        pid = int((tmp_path / "pid").read_text())
        wait_until(lambda: not pathlib.Path(f"/proc/{pid}").exists(), "the command is gone, too")
    found = one.again(number)
    assert (found["interruptions"], found["attempts"]) == (1, 0)


def test_a_worker_that_is_told_to_end_gives_its_task_back_at_no_cost(one, tmp_path):
    number = one.one("e")
    with one.taking("mail", command=["sh", "-c", f"touch {tmp_path}/on; exec sleep 600"]) as worker:
        wait_until((tmp_path / "on").exists, "the command runs")
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 128 + signal.SIGTERM
        assert worker.stdout.read() == f"{number} later: the worker was stopped, killed by SIGTERM\n"
    found = one.again(number)
    assert (found["interruptions"], found["attempts"], found["laters"]) == (0, 0, 1)


def test_heartbeats_keep_a_task_for_longer_than_its_ttl(one, tmp_path):
    number = one.one("f")
    script = f"touch {tmp_path}/on; until test -e {tmp_path}/go; do sleep 0.05; done"
    with one.taking("mail", "-n", 1, command=["sh", "-c", script]) as worker:
        wait_until((tmp_path / "on").exists, "the command runs")
        until = one.until()
        wait_until(lambda: one.until() > until + 2000, "it is kept")
        (tmp_path / "go").touch()
        assert worker.wait(60) == 0
        assert worker.stdout.read() == f"{number} done\n"


def test_a_command_ends_when_its_task_is_cancelled(one, tmp_path):
    number = one.one("g")
    with one.taking("mail", "-n", 1, command=["sh", "-c", f"touch {tmp_path}/on; exec sleep 600"]) as worker:
        wait_until((tmp_path / "on").exists, "the command runs")
        one.cli("task", "cancel", number)
        assert worker.wait(60) == 0
        assert worker.stdout.read() == f"{number} retry: stopped before it was done, killed by SIGTERM\n"
    assert one.wait_task(number, lambda t: t["state"] == "dead", "it is dead")["reason"] == "cancelled"


def test_two_takers_and_nine_tasks(one):
    one.submit([{"handler": "mail", "payload": f"nine {i}"} for i in range(9)])
    with concurrent.futures.ThreadPoolExecutor() as pool:
        said = list(pool.map(lambda _: one.take("mail", "--wait", "1s", command=["cat"]), range(2)))
    lines = "".join(said).splitlines()
    assert len({line.split()[0] for line in lines}) == len(lines) == 9
    assert sorted(text for text in one.results() if text.startswith("nine")) == [f"nine {i}" for i in range(9)]


def test_a_task_is_printed_kept_and_finished_by_hand(one):
    number = one.one("h", "hello")
    task = json.loads(one.take("mail", "--wait", "10s", "--json"))
    assert (task["id"], task["payload"], task["host"]) == (number, "hello", "one")
    fence = ["--fence", task["fence"]]
    kept = json.loads(one.take("heartbeat", "mail", number, *fence, "--checkpoint", "half", "--json"))
    assert kept["stop"] is False and 0 < kept["remaining_ms"] <= 2000
    assert one.take("finish", "mail", number, *fence, "retry", "no route", "--retry-after", "1ms") == f"{number} retry\n"
    again = json.loads(one.take("mail", "--wait", "10s"))
    assert (again["id"], again["attempt"], again["checkpoint"]) == (number, 2, "half")
    for word in ("done", "retry"):
        said = one.take("finish", "mail", number, *fence, word, "sent", code=1)
        assert "409: this is not the current start of the task" in said and "poll for another" in said
    assert "409" in one.take("heartbeat", "mail", number, *fence, code=1)
    assert one.take("finish", "mail", number, "--fence", again["fence"], "done", "sent") == f"{number} done\n"
    assert one.task(number)["state"] == "done" and "sent" in one.results()


def test_what_is_wrong_is_said_with_what_to_do(one, tmp_path):
    assert "no task of mail came within 0 ms" in one.take("mail", code=1)
    assert "did you mean mail?" in one.take("mial", code=1)
    other = TakeHost(one.quiver, one.plugins, tmp_path, "one")
    text = one.config.read_text()
    other.config.write_text(text.replace("  next = {", '  plain = { plugin = "ledger.so"; };\n  next = {'))
    said = other.take("plain", code=1)
    assert 'plain has plugin = "ledger.so"' in said and 'plugin = "remote"' in said
    other.config.write_text(text.replace("state-one", "state-none"))
    assert "start one: quiver run" in other.take("mail", code=3)
    assert "no program /nowhere" in one.take("mail", command=["/nowhere"], code=2)
    assert "how did it end" in one.take("finish", "mail", "x-1", "--fence", "1.1.1", "finished", code=2)
    assert "--fence" in one.take("finish", "mail", "x-1", "done", code=2)
    assert "work.id" in one.take("finish", "mail", "../x", "--fence", "1.1.1", "done", code=1)


def test_a_socket_that_nobody_listens_on_and_one_that_never_ends_are_passed_over(one):
    """A host that was killed leaves its socket behind; whatever else listens there is not believed."""
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(one.socket.with_name("dead.http")))
    with socket.socket(socket.AF_UNIX) as hostile, concurrent.futures.ThreadPoolExecutor() as pool:
        hostile.bind(str(one.socket.with_name("hostile.http")))
        hostile.listen()

        def serve():
            connection, _ = hostile.accept()
            with connection, contextlib.suppress(OSError):
                connection.sendall(b"HTTP/1.1 200 OK\r\n")
                for _ in range(1000):
                    connection.sendall(b"X-Endless: " + b"x" * 1000 + b"\r\n")

        served = pool.submit(serve)
        number = one.one("i")
        try:
            done = subprocess.run(one.words("mail", "-n", 1, command=["true"]), capture_output=True, text=True, timeout=120)
            assert done.stdout.split() == [number, "done"], done.stderr
            served.result(60)
        finally:
            for name in ("dead.http", "hostile.http"):
                os.unlink(one.socket.with_name(name))


def test_the_example_is_a_worker_with_the_client_library(one, root, tmp_path):
    subprocess.run(["make", "-s", "-C", root, "build/libquiver.so.1"], check=True, timeout=600,
                   env={name: value for name, value in os.environ.items() if not name.startswith("MAKE")})
    program = tmp_path / "worker"
    subprocess.run(["gcc", "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{root}/sdk/include", "-o", program,
                    root / "sdk/examples/worker.c", root / "build/libquiver.so.1", f"-Wl,-rpath,{root}/build"], check=True, timeout=300)
    one.submit([{"handler": "mail", "key": "j", "payload": f"library {i}"} for i in range(3)])
    done = subprocess.run([program, one.config, "mail"], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert [text for text in one.results() if text.startswith("LIBRARY")] == [f"LIBRARY {i}" for i in range(3)]
    refused = subprocess.run([program, one.config, "nobody"], capture_output=True, text=True, timeout=120)
    assert refused.returncode == 1 and "no handler nobody" in refused.stderr


def test_of_several_hosts_each_is_asked(one):
    """A second host in the same state folder: a task waits at the one that owns its shard."""
    second = TakeHost(one.quiver, one.plugins, one.folder, "two")
    second.write(ttl="2s", change=lambda text: text.replace("state-two", "state-one")).start()
    try:
        wait_until(lambda: len(one.shards()) == len(second.shards()) == 2, "each has its share")
        keys = [host.own_key("m") for host in (one, second)]
        numbers = {one.one(key) for key in keys}
        said = one.take("mail", "-n", 2, "--wait", "30s", "--json")
        tasks = [json.loads(line) for line in said.splitlines()]
        assert {task["id"] for task in tasks} == numbers and {task["host"] for task in tasks} == {"one", "two"}
        for task in tasks:
            one.take("finish", "mail", task["id"], "--fence", task["fence"], "done")
    finally:
        second.close()
