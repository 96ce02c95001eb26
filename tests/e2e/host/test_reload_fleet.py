"""`quiver reload --all`: hosts with a configuration file each, as on machines of their own, on one store."""
import json
import signal
import subprocess

import pytest

from hosts import wait_until
from sites import Site, add

NAMES = ("a", "b", "c")
QUICK = 'reload = { probation = "300ms"; tasks = 20; };\n'


class Machine(Site):
    """A folder of its own, with its state, plugins and file; the store and the coordination are everybody's."""

    def __init__(self, quiver, built, folder, name, store):
        (folder / name).mkdir()
        super().__init__(quiver, built, folder / name)
        self.name, self.store, self.shared = name, store, folder

    def write(self, extra=QUICK):
        def change(text):
            text = text.replace(f'url = "sqlite:{self.folder}/q.db"; synchronous = "normal";', self.store)
            return f'coordination = {{ url = "local:{self.shared}/tree"; }};\n' + add(
                f'host = {{ name = "{self.name}"; }};\n' + extra)(text)

        return self.configure(change=change, work="")

    def is_idle(self, reloads):
        """Nothing was asked of it beyond so many reloads."""
        return self.count("event=reload ") == reloads


@pytest.fixture
def store(request, tmp_path):
    """SQLite, unless a test asks for Redis."""
    if getattr(request, "param", "sqlite") == "sqlite":
        return f'url = "sqlite:{tmp_path}/q.db"; synchronous = "normal";'
    return f'url = "redis+unix:{request.getfixturevalue("redis_server").start().socket}";'


@pytest.fixture
def fleet(quiver, root, tmp_path, store):
    machines = [Machine(quiver, root / "build" / "test-plugins", tmp_path, name, store) for name in NAMES]
    try:
        for machine in machines:
            machine.write().start()
        wait_until(lambda: members(machines[0]) == set(NAMES), "every host has written its document")
        yield machines
    finally:
        for machine in machines:
            machine.close()


def status(machine):
    return json.loads(machine.cli("status", "--json"))


def orders(machine):
    """The names of the orders that stand in the store."""
    found = status(machine)["totals"]["desired"]
    assert all(name.startswith("reload.") for name in found)
    return list(found)


def members(machine):
    return {member["name"] for member in status(machine)["members"]}


def reload_all(machine, *options, code=0):
    return json.loads(machine.cli("reload", "--all", "--json", *options, code=code))


def states(answers):
    return [(answer["host"], answer["state"]) for answer in answers]


@pytest.mark.parametrize("store", ["sqlite", "redis"], indirect=True)
def test_every_host_of_the_app_reloads_its_own_file(fleet):
    for machine in fleet:
        machine.install("ledger-two.so")
    said = reload_all(fleet[1], "--wait")
    assert states(said) == [(name, "decided") for name in NAMES]
    for machine, answer in zip(fleet, said):
        assert not answer["failed"] and answer["text"] == "work: unproven"
        assert machine.history()[-1] == ("work", 2, "unproven")
    said = fleet[2].cli("reload", "--all")
    assert [f"host {name}: taken: every handler is unchanged\n" in said for name in NAMES] == [True] * 3, said
    assert not orders(fleet[0]), "orders are removed"


def test_the_first_host_that_refuses_is_named_and_the_next_is_not_asked(fleet):
    first, second, third = fleet
    second.config.write_text(second.config.read_text().replace("grace =", "grce ="))
    done = subprocess.run([first.quiver, "reload", "--all", "-c", first.config], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1, done
    assert "host a: taken" in done.stdout and "host b: taken" not in done.stdout
    assert "quiver reload: host b: refused: " in done.stderr and "grce" in done.stderr and str(second.config) in done.stderr
    assert "nothing was changed" in done.stderr and "stopped at host b; 1 more was not asked" in done.stderr
    assert first.is_idle(1) and second.is_idle(1) and third.is_idle(0)
    assert states(reload_all(third, code=1)) == [("a", "taken"), ("b", "refused")]
    assert third.is_idle(0) and not orders(first)


def test_a_version_that_cannot_serve_stops_whoever_waits(fleet):
    """The plan is taken, and only a runner finds out that it cannot load the plugin."""
    (fleet[0].plugins / ".bad").write_bytes(b"not a plugin")
    (fleet[0].plugins / ".bad").rename(fleet[0].plugins / "ledger.so")
    said = reload_all(fleet[2], "--wait", code=1)
    assert states(said) == [("a", "decided")] and said[0]["failed"] and said[0]["text"].startswith("work: refused: ")
    assert fleet[1].is_idle(0)


@pytest.fixture
def waiting(fleet):
    """A command that waits for the first host, whose new version is on probation for longer than any test lasts."""
    fleet[0].write('reload = { probation = "10m"; tasks = 100; };\n')
    fleet[0].install("ledger-two.so")
    with subprocess.Popen([fleet[1].quiver, "reload", "--all", "--wait", "-c", fleet[1].config],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as command:
        try:
            assert "host a: asked; it has 1m to answer" in command.stdout.readline()
            assert "host a: taken: work: new generation: file" in command.stdout.readline()
            assert "host a: waiting" in command.stdout.readline()
            assert len(orders(fleet[1])) == 1
            yield command
        finally:
            command.kill()


def test_a_host_that_is_gone_is_named(fleet, waiting):
    fleet[0].kill()
    _, said = waiting.communicate(timeout=60)
    assert waiting.returncode == 1 and "quiver reload: host a: gone: " in said and "2 more were not asked" in said
    assert fleet[1].is_idle(0) and fleet[2].is_idle(0)


def test_whoever_interrupts_leaves_no_order_behind(fleet, waiting):
    waiting.send_signal(signal.SIGINT)
    _, said = waiting.communicate(timeout=60)
    assert waiting.returncode == 1 and "quiver reload: host a: interrupted: it took the plan" in said
    assert not orders(fleet[1])
    assert fleet[1].is_idle(0) and fleet[2].is_idle(0)


def test_an_order_is_not_dumped(fleet, waiting):
    """A command that was killed leaves it behind."""
    waiting.kill()
    waiting.wait(60)
    for machine in fleet:
        machine.stop()
    assert orders(fleet[1]) and "reload." not in fleet[1].cli("dump")


def test_what_a_killed_command_left_behind_is_removed_by_the_next(fleet, waiting):
    waiting.kill()
    waiting.wait(60)
    fleet[0].kill()
    wait_until(lambda: "a" not in members(fleet[1]), "the document of the killed host is forgotten")
    assert orders(fleet[1])
    assert states(reload_all(fleet[1])) == [("b", "taken"), ("c", "taken")]
    assert not orders(fleet[1])


@pytest.mark.parametrize("words, said", [(("--host", "a"), "exclude each other"), (("--dry-run",), "leave out --all")])
def test_all_is_neither_for_one_host_nor_for_a_dry_run(quiver, words, said):
    done = subprocess.run([quiver, "reload", "--all", *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and said in done.stderr
