"""No command waits in silence for a server that is away: it says so while it waits, and gives up if it was told to."""
import contextlib
import signal
import socket
import subprocess

import pytest

READERS = [["status"], ["submit", "echo", "x"], ["task", "1m7m12b33vzbgs9k6a74-0"], ["key", "k"], ["dead", "list"],
           ["pause", "echo"], ["members"], ["results"], ["fsck"], ["dump"]]


@pytest.fixture(params=["refuses", "hangs"])
def port(request):
    """Of a server that does not run, or that accepts connections and never answers."""
    with contextlib.closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        if request.param == "hangs":
            one.listen(100)
        yield one.getsockname()[1]


def configure(folder, store, coordination):
    path = folder / f"{coordination.partition(':')[0]}.cfg"
    path.write_text(f'app = "test"; shards = 4; state = "{folder}/state"; store = {{ url = "{store}"; }};\n'
                    f'coordination = {{ url = "{coordination}"; }}; handlers = {{ }};\n')
    return path


@contextlib.contextmanager
def started(quiver, *commands):
    """All at once: each waits for seconds.  A command is its configuration and its words."""
    running = []
    for config, words in commands:
        at = words.index("--") if "--" in words else len(words)
        running.append(subprocess.Popen([quiver, *words[:at], "-c", config, *words[at:]], stderr=subprocess.PIPE,
                                        stdout=subprocess.DEVNULL, text=True))
    try:
        yield running
    finally:
        for command in running:
            command.kill()
            command.wait(60)
            command.stderr.close()


def test_a_command_says_that_it_waits_for_the_store(quiver, tmp_path, port):
    url = f"redis://127.0.0.1:{port}"
    config = configure(tmp_path, url, f"local:{tmp_path}/state")
    with started(quiver, *((config, words) for words in READERS)) as commands:
        for command in commands:
            said = command.stderr.readline()
            assert "waiting for the store" in said and url in said, command.args
        assert all(command.poll() is None for command in commands), "it was said when it was over"
        for command in commands:
            assert url in command.stderr.readline(), command.args
            assert command.wait(60) == 3


TREES = ["zookeeper://127.0.0.1:{}/quiver", "redis://127.0.0.1:{}", "etcd://127.0.0.1:{}/quiver"]


def test_a_lock_says_that_it_waits_for_the_coordination(quiver, tmp_path, port):
    config = [configure(tmp_path, f"sqlite:{tmp_path}/q.db", url.format(port)) for url in TREES]
    with started(quiver, *((one, [word, "a", "--", "true"]) for one in config for word in ("lock", "elect"))) as commands:
        for command in commands:
            said = command.stderr.readline()
            assert "waiting for the coordination" in said and str(port) in said, command.args
        for command in commands:
            assert command.poll() is None
            command.send_signal(signal.SIGTERM)
        for command in commands:
            assert command.wait(60) == 128 + signal.SIGTERM


def test_a_lock_gives_up_when_its_time_is_over(quiver, tmp_path, port):
    config = [configure(tmp_path, f"sqlite:{tmp_path}/q.db", url.format(port)) for url in TREES]
    with started(quiver, *((one, [word, "a", "--wait", "1500ms", "--", "true"]) for one in config
                           for word in ("lock", "elect"))) as commands:
        for command in commands:
            assert command.wait(60) == 3
            assert "does not answer" in command.stderr.read()


def test_a_submit_that_waits_says_where_its_task_is(host):
    host.configure(work="").start()
    assert host.stop() == 0
    with started(host.quiver, (host.config, ["submit", "work", "--wait", "1"])) as (command,):
        assert "quiver task " in command.stderr.readline()
        assert command.poll() is None


def test_members_says_that_it_waits_for_the_coordination(host, port):
    host.configure(work="").start()
    assert host.stop() == 0
    url = f"zookeeper://127.0.0.1:{port}/quiver"
    host.configure(change=lambda text: text + f'coordination = {{ url = "{url}"; }};\n', work="")
    with started(host.quiver, (host.config, ["members"])) as (command,):
        said = command.stderr.readline()
        assert "waiting for the coordination" in said and url in said
        assert command.wait(60) == 3
