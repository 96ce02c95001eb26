"""Reload, when what is to be taken up is broken: it is refused or rolled back, and the old version serves on."""
import os
import shutil
import threading

import pytest

from hosts import wait_until
from sites import add, site, task  # noqa: F401 (site is a fixture)

# Cannot even start: refused, with the words of its runner.
REFUSED = {
    "init_exits": "the process ended with exit status 3",
    "init_fails": "init: no database",
    "init_hangs": "not ready within",
    "constructor_crashes": "it crashed before it was ready (constructor or init): SIGSEGV",
    "constructor_hangs": "not ready within",
    "old_abi": "abi 0.7",
    "missing_symbol": "nobody_has_this",
}

# Starts well and then fails whatever it is given: rolled back.
ROLLED_BACK = {
    "segv": "bad", "abort": "bad", "stack_overflow": "bad", "heap_overflow": "bad", "exit_zero": "bad", "spin": "bad",
    "allocate": "bad", "allocate_and_trust": "bad", "scribbles": "bad", "returns_1000": "bad", "throws": "bad",
    "longjmp": "bad", "kills_itself": "bad", "every_100th": "100", "bad_batch": "bad",
    "sleeps": "60000",
}

# Does its harm where nobody's tasks are: it is taken up, and serves.
HARMLESS = ("closes_descriptors", "floods_stdout", "future_abi", "slow_close", "thread_after_close")

PATIENCE = 'reload = { probation = "1m"; failures = 4; };\n'
VICTIM = """
handlers = {
  victim = { plugin = "victim.so"; timeout = "300ms"; grace = "100ms"; init_timeout = "1s"; crashes = 2;
    retry = { attempts = 2; backoff = "10ms"; max = "20ms"; }; limits = { memory = "64MiB"; processes = 0; };
    config = { db = "example"; }; };
"""


@pytest.fixture(scope="session")
def villains(root):
    folder = root / "build" / "villains"
    assert folder.exists(), f"{folder} is not there; run make villains first"
    return folder


@pytest.fixture
def victim(site, root):
    """A site with one more handler, whose plugin is good: it says DONE to everything."""
    shutil.copy(root / "plugins" / "echo.so", site.plugins / "victim.so")
    site.configure(work="", change=lambda text: add(PATIENCE)(text).replace("handlers = {", VICTIM, 1)).start()
    return site


def deploy(site, path):
    new = site.plugins / ".new"
    shutil.copy(path, new)
    new.rename(site.plugins / "victim.so")


def serve(site, count, payload="x"):
    """So many tasks, each of another key; returns once all are done."""
    done = site.sum("done")
    site.submit([{"handler": "victim", "key": f"v{i}", "payload": payload} for i in range(count)])
    wait_until(lambda: site.sum("done") >= done + count, f"{count} more are done")


@pytest.mark.parametrize("name", REFUSED)
def test_a_villain_that_cannot_start_is_refused(victim, villains, name):
    serve(victim, 5)
    deploy(victim, villains / f"{name}.so")
    assert victim.outcomes(code=1) == [("victim", 2, "refused")]
    assert REFUSED[name] in victim.log()
    serve(victim, 5)
    assert victim.sum("dead") == 0
    assert victim.history()[-1] == ("victim", 2, "refused")


@pytest.mark.parametrize("name", ROLLED_BACK)
def test_a_villain_that_fails_its_tasks_is_rolled_back_and_no_task_pays(victim, villains, name):
    serve(victim, 5)
    deploy(victim, villains / f"{name}.so")
    assert victim.actions() == {"victim": "new generation", "work": "unchanged"}
    victim.wait_for_log("event=promoted handler=victim generation=2")
    serve(victim, 12, ROLLED_BACK[name])
    victim.wait_for_log("event=rolled-back handler=victim generation=2 to=1")
    assert victim.sum("dead") == 0
    assert victim.history()[-1] == ("victim", 2, "rolled back")
    # Not again, until it changes.
    assert victim.actions(code=1) == {"victim": "held back", "work": "unchanged"}
    serve(victim, 5)
    with open(victim.plugins / "victim.so", "ab") as file:
        file.write(b"changed")
    assert victim.actions() == {"victim": "new generation", "work": "unchanged"}


@pytest.mark.parametrize("name", HARMLESS)
def test_a_villain_that_harms_no_task_serves(victim, villains, name):
    deploy(victim, villains / f"{name}.so")
    assert victim.actions() == {"victim": "new generation", "work": "unchanged"}
    victim.wait_for_log("event=promoted handler=victim generation=2")
    serve(victim, 5)
    shutil.copy(victim.plugins / "victim.so", victim.plugins / "old.so")
    deploy(victim, victim.built.parent.parent / "plugins" / "echo.so")
    assert victim.actions() == {"victim": "new generation", "work": "unchanged"}
    victim.wait_for_log("event=promoted handler=victim generation=3")
    serve(victim, 5)


def test_a_version_that_only_fails_is_rolled_back_when_its_time_is_over(site):
    site.configure(work="", change=add('reload = { probation = "1s"; failures = 0; };\n')).start()
    down = site.folder / "down"
    down.touch()
    site.install("ledger-two.so")
    site.reload()
    site.wait_for_log("event=promoted handler=work generation=2")
    site.submit([task("a", 1, f"down:{down}")])
    site.wait_for_log("event=rolled-back handler=work generation=2 to=1")
    down.unlink()
    site.wait_done(1)


def test_what_a_failing_version_did_to_a_task_is_forgiven(site):
    site.configure(work="", change=add('reload = { probation = "2s"; failures = 2; };\n')).start()
    site.install("ledger-two.so")
    site.reload()
    site.wait_for_log("event=promoted handler=work generation=2")
    # Four attempts it has, and as one and the same task it is one failure, however often it comes back.
    site.submit([task("a", 1, "retry:1")])
    site.wait_for_log("event=rolled-back")
    site.wait_done(1)
    starts = [(e.attempt, e.build) for e in site.ledger() if e.what == "start"]
    assert starts[-2:] == [(1, "one"), (2, "one")]
    assert set(starts[:-2]) == {(1, "two")}
    assert len(starts) > 6


def test_a_version_that_rejects_everything_is_rolled_back_and_its_dead_can_be_had_again(victim, villains):
    deploy(victim, villains / "large_result.so")
    victim.reload()
    victim.wait_for_log("event=promoted handler=victim generation=2")
    victim.submit([{"handler": "victim", "key": f"v{i}", "payload": "bad"} for i in range(12)])
    victim.wait_for_log("event=rolled-back handler=victim generation=2 to=1")
    wait_until(lambda: victim.sum("done") + victim.sum("dead") == 12, "all have ended")
    victim.cli("dead", "requeue", "--all")
    wait_until(lambda: victim.sum("done") == 12, "all are done")


def test_a_version_that_has_done_tasks_is_not_rolled_back_for_a_poisonous_one(site):
    site.configure(work="crashes = 5;", change=add('reload = { probation = "1s"; tasks = 1000; };\n')).start()
    site.install("ledger-two.so")
    site.reload()
    site.wait_for_log("event=promoted handler=work generation=2")
    site.submit([task(f"k{i}", i) for i in range(60)])
    site.wait_done(60)
    site.submit([task("poison", 100, "crash")])
    wait_until(lambda: site.sum("dead") == 1, "it is dead")
    site.wait_for_log("event=proven handler=work generation=2")
    assert site.count("event=rolled-back") == 0


def test_a_second_version_on_probation_falls_back_to_the_last_good_one(site, villains):
    site.configure(work="", change=add('reload = { probation = "1m"; };\n')).start()
    site.submit([task("a", 1)])
    site.wait_done(1)
    site.install("ledger-two.so")
    site.reload()
    site.wait_for_log("event=promoted handler=work generation=2 replaces=1")
    shutil.copy(villains / "segv.so", site.plugins / ".new")
    (site.plugins / ".new").rename(site.plugins / "ledger.so")
    site.reload()
    site.wait_for_log("event=promoted handler=work generation=3 replaces=2")
    site.submit([{"handler": "work", "key": f"k{i}", "payload": "bad"} for i in range(4)])
    site.wait_for_log("event=rolled-back handler=work generation=3 to=1")


@pytest.mark.skipif(not os.environ.get("QUIVER_TEST_ALL"), reason="takes as long as eight runners' backoff")
def test_a_reload_lifts_a_quarantine(site):
    late = site.folder / "late"
    site.configure(work="", change=lambda text: text.replace(f"{site.folder}/ledger", f"{late}/ledger")).start()
    site.submit([task("a", 1)])
    site.wait_for_log("event=quarantine ")
    late.mkdir()
    assert site.actions() == {"work": "unchanged"}
    site.wait_done(1)


# --- how people install ---------------------------------------------------------------------------------------------------

def serves(site, number, build):
    done = site.sum("done")
    site.submit([task("a", number)])
    site.wait_done(done + 1)
    assert site.builds()[number] == build


def test_a_file_copied_over_the_old_one_harms_nothing_and_is_taken_up(site):
    site.configure(work="").start()
    serves(site, 1, "one")
    shutil.copyfile(site.built / "ledger-two.so", site.plugins / "ledger.so")
    serves(site, 2, "one")
    site.reload()
    site.wait_for_log("event=promoted")
    serves(site, 3, "two")


@pytest.mark.parametrize("size", [0, 1, 4096, -4096])
def test_half_a_file_is_refused_and_the_whole_one_taken_up_later(site, size):
    whole = (site.built / "ledger-two.so").read_bytes()
    site.configure(work="").start()
    serves(site, 1, "one")
    (site.plugins / "ledger.so").write_bytes(whole[:size])
    assert site.outcomes(code=1) == [("work", 2, "refused")]
    serves(site, 2, "one")
    (site.plugins / "ledger.so").write_bytes(whole)
    site.reload()
    site.wait_for_log("event=promoted handler=work generation=3")
    serves(site, 3, "two")


def test_a_file_that_is_being_written_is_waited_for(site):
    whole = (site.built / "ledger-two.so").read_bytes()
    site.configure(work="").start()
    is_over = threading.Event()

    def write_slowly():
        with open(site.plugins / "ledger.so", "wb", buffering=0) as file:
            file.write(whole[:4096])
            while not is_over.wait(0.0005):
                os.utime(site.plugins / "ledger.so")
            file.write(whole[4096:])

    writer = threading.Thread(target=write_slowly)
    writer.start()
    try:
        said = site.reload("--wait", code=1)
    finally:
        is_over.set()
        writer.join()
    # Either it was seen to change, or half of it was tried: refused both ways.
    assert [e["outcome"] for e in said["outcomes"]] == ["refused"]
    serves(site, 1, "one")
    site.reload()
    site.wait_for_log("event=promoted")
    serves(site, 2, "two")


def test_a_deleted_file_is_refused_and_the_handler_serves_on(site):
    site.configure(work="").start()
    (site.plugins / "ledger.so").unlink()
    said = site.reload(code=1)["handlers"][0]
    assert said["action"] == "refused"
    assert "No such file" in said["why"]
    serves(site, 1, "one")
    site.install("ledger-two.so")
    site.reload()
    site.wait_for_log("event=promoted")
    serves(site, 2, "two")


def test_replaced_twice_at_once_the_last_one_wins(site):
    site.configure(work="").start()
    for _ in range(5):
        site.install("ledger-two.so")
        site.hang_up()
        site.install("ledger.so")
        site.hang_up()
        site.install("ledger-two.so")
        site.hang_up()
        wait_until(lambda: site.actions("--dry-run") == {"work": "unchanged"}, "it has settled")

    def has_settled():
        """The version before the last may still be a candidate, while the one before that, a 2.0 too, serves."""
        handler = site.ask("status")["handlers"][0]
        return handler["version"] == "2.0" and all(g["state"] != "candidate" for g in handler["generations"])

    wait_until(has_settled, "the last one serves")
    serves(site, 1, "two")


def test_a_switched_symbolic_link_is_a_new_version(site):
    for name, version in (("v1", "ledger.so"), ("v2", "ledger-two.so")):
        (site.folder / name).mkdir()
        shutil.copy(site.built / version, site.folder / name / "ledger.so")
    (site.plugins / "ledger.so").unlink()
    current = site.folder / "current"
    current.symlink_to("v1")
    (site.plugins / "ledger.so").symlink_to(current / "ledger.so")
    site.configure(work="").start()
    serves(site, 1, "one")
    new = site.folder / "current.new"
    new.symlink_to("v2")
    new.rename(current)
    site.reload()
    site.wait_for_log("event=promoted")
    serves(site, 2, "two")


def test_what_everybody_can_write_is_refused_unless_allowed(site):
    site.configure(work="").start()
    site.install("ledger-two.so")
    (site.plugins / "ledger.so").chmod(0o666)
    said = site.reload(code=1)["handlers"][0]
    assert "everybody on this machine can write to it" in said["why"]
    (site.plugins / "ledger.so").chmod(0o644)
    site.plugins.chmod(0o777)
    said = site.reload(code=1)["handlers"][0]
    assert "everybody on this machine can write to its folder" in said["why"]
    serves(site, 1, "one")
    site.configure(work="", change=add('reload = { world_writable = "allow"; };\n'))
    site.reload()
    site.wait_for_log("event=promoted")
    serves(site, 2, "two")


def test_a_host_does_not_start_with_what_everybody_can_write(site):
    (site.plugins / "ledger.so").chmod(0o666)
    site.configure(work="").start("--strict", is_ready=False)
    assert site.wait() == 1
    assert "everybody on this machine can write to it" in site.log()
    assert "everybody on this machine can write to it" in site.cli("check", "--json", code=1)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_refused(site):
    site.configure(work="").start()
    site.install("ledger-two.so")
    (site.plugins / "ledger.so").chmod(0)
    assert "Permission denied" in site.reload(code=1)["handlers"][0]["why"]
    serves(site, 1, "one")


def test_a_folder_instead_of_a_file_is_refused(site):
    site.configure(work="").start()
    (site.plugins / "ledger.so").unlink()
    (site.plugins / "ledger.so").mkdir()
    assert "not a regular file" in site.reload(code=1)["handlers"][0]["why"]
    serves(site, 1, "one")
