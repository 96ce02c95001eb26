"""Reload: new versions of handlers and new settings, while the host runs and has work."""
import os
import re
import shutil
import signal
import subprocess

import pytest

from hosts import Host, wait_until
from sites import add, site, task  # noqa: F401 (site is a fixture)

QUICK = 'reload = { probation = "2s"; tasks = 20; };\n'


# --- from one version to the next ----------------------------------------------------------------------------------------

def test_a_new_file_is_taken_up_and_the_old_one_leaves(site):
    site.configure(work="", change=add(QUICK)).start()
    site.submit([task("a", 1)])
    site.wait_done(1)
    old = site.runners()["work"]
    site.install("ledger-two.so")
    site.hang_up()
    site.wait_for_log("event=promoted handler=work generation=2 replaces=1")
    site.submit([task("a", 2)])
    site.wait_done(2)
    assert site.builds() == {1: "one", 2: "two"}
    wait_until(lambda: not site.runners()["work"] & old, "the old runner is gone")
    assert site.actions() == {"work": "unchanged"}
    assert site.history() == [("work", 1, "good"), ("work", 2, "serving")]


def test_what_runs_ends_on_the_old_build_and_what_has_not_started_starts_on_the_new(site):
    site.configure(work="", shards=1).start()
    go = site.folder / "go"
    # Quick ones, so that the runner is given more than it can start; then one that keeps its only seat.
    site.submit([task(f"w{i}", i) for i in range(300)])
    site.wait_done(300)
    site.submit([task("long", 1000, f"wait:{go}")] + [task(f"k{i}", 1001 + i) for i in range(20)])
    site.wait_started(1000)
    site.install("ledger-two.so")
    site.hang_up()
    wait_until(lambda: len(site.starts()) == 321, "the others run on the new build")
    go.touch()
    site.wait_done(321)
    builds = site.builds()
    assert builds.pop(1000) == "one"
    assert {builds[number] for number in range(1001, 1021)} == {"two"}
    assert all(e.attempt == 1 for e in site.ledger())


def test_what_does_not_end_within_the_drain_is_interrupted_at_no_cost(site):
    site.configure(work="", change=lambda text: text.replace('drain = "20s"', 'drain = "200ms"')).start()
    go = site.folder / "go"
    site.submit([task("deaf", 1, f"deaf:{go}")])
    site.wait_started(1)
    site.install("ledger-two.so")
    site.hang_up()
    site.wait_for_log("event=drain-over")
    wait_until(lambda: site.starts().count(1) == 2, "it runs again")
    go.touch()
    site.wait_done(1)
    assert [e.build for e in site.ledger() if e.what == "start"] == ["one", "two"]
    assert [e.attempt for e in site.ledger()] == [1, 1, 1]


@pytest.mark.parametrize("guard", ["the guard told", "its successor"])
def test_the_guard_knows_the_lease_time_of_now(site, guard):
    site.configure(work="").start()
    leases = lambda: {row["ttl"] for row in site.rows("shard")}
    wait_until(lambda: leases() == {1000}, "it has its shards")
    site.configure(work="", change=lambda text: text.replace('ttl = "1s"', 'ttl = "7s"'))
    site.hang_up()
    wait_until(lambda: leases() == {7000}, "it has renewed them")
    if guard == "its successor":
        first = site.guard()
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: site.guard() not in (None, first), "a new guard")
    site.kill()
    wait_until(lambda: "event=guard " in site.log(), "the guard has given all back")
    assert leases() == {7000}


def test_generations_beyond_the_limit_wait_for_their_turn(site):
    site.configure(work="", change=add("reload = { generations = 2; };\n")).start()
    go = site.folder / "go"
    site.submit([task("a", 1, f"wait:{go}")])
    site.wait_started(1)
    site.install("ledger-two.so")
    assert site.actions() == {"work": "new generation"}
    site.wait_for_log("event=promoted handler=work generation=2")
    site.install("ledger.so")
    assert site.actions() == {"work": "new generation"}
    assert [g["state"] for g in site.ask("status")["handlers"][0]["generations"]] == ["waiting", "current", "draining"]
    go.touch()
    site.wait_for_log("event=promoted handler=work generation=3")
    site.wait_done(1)


def test_cplusplus_statics_and_thread_locals_do_not_keep_the_old_code(site):
    site.install("statics.so", "statics.so")
    change = lambda text: text.replace("handlers = {", 'handlers = { statics = { plugin = "statics.so"; };', 1)
    site.configure(work="", change=change).start()
    assert site.cli("submit", "statics", "--wait", "x").strip() == "one one one"
    site.install("statics-two.so", "statics.so")
    assert site.actions() == {"statics": "new generation", "work": "unchanged"}
    site.wait_for_log("event=promoted handler=statics")
    assert site.cli("submit", "statics", "--wait", "x").strip() == "two two two"


def test_one_changed_handler_of_many_leaves_the_others_alone(site):
    site.install("ledger.so", "other.so")
    handlers = {f"h{i}": "" for i in range(20)}
    change = lambda text: re.sub(r'(h7 = \{ plugin = )"ledger.so"', r'\1"other.so"', text)
    site.configure(change=change, **handlers).start()
    site.submit([task("a", i, handler=f"h{i}") for i in range(20)])
    site.wait_done(20)
    before = site.runners()
    site.install("ledger-two.so", "other.so")
    actions = site.actions()
    assert actions.pop("h7") == "new generation"
    assert set(actions.values()) == {"unchanged"}
    site.wait_for_log("event=promoted handler=h7")
    wait_until(lambda: not site.runners()["h7"] & before["h7"], "its old runner is gone")
    after = site.runners()
    assert after.pop("h7") != before.pop("h7")
    assert after == before


# --- settings ------------------------------------------------------------------------------------------------------------

def test_a_mistake_in_the_file_changes_nothing_and_is_named(site):
    site.configure(work="").start()
    site.install("ledger-two.so")
    site.configure(work='timeot = "3s";')
    site.hang_up()
    site.wait_for_log("event=reload-refused")
    assert re.search(r"runtime.cfg:\d+: .*timeot", site.log())
    assert "nothing was changed" in site.log()
    site.cli("reload", code=1)
    site.configure(work="")
    site.submit([task("a", 1)])
    site.wait_done(1)
    assert site.builds() == {1: "one"}


@pytest.mark.parametrize("change,name", [
    (lambda text: text.replace('app = "test"', 'app = "toast"'), "app"),
    (lambda text: text.replace("shards = 8", "shards = 16"), "shards"),
    (lambda text: text.replace("q.db", "r.db"), "store.url"),
    (lambda text: add('coordination = { session = "20s"; };\n')(text), "coordination.session"),
])
def test_what_takes_a_restart_is_named_and_nothing_else_is_applied(site, change, name):
    site.configure(work="").start()
    site.install("ledger-two.so")
    site.configure(work='timeout = "7s";', change=change)
    said = site.reload(code=1)
    assert len(said["problems"]) == 1
    how = "is fixed since the app was made" if name == "shards" else "takes a restart"
    assert f"{name} has changed, which {how}" in said["problems"][0]
    site.configure(work="")
    assert site.actions("--dry-run") == {"work": "new generation"}
    assert site.count("event=promoted") == 0


def test_a_dry_run_says_what_would_happen_and_changes_nothing(site):
    site.configure(work="", gone="").start()
    site.install("ledger-two.so")
    site.configure(work="", added="")
    assert site.actions("--dry-run") == {"work": "new generation", "added": "added", "gone": "removed"}
    assert site.actions("--dry-run") == {"work": "new generation", "added": "added", "gone": "removed"}
    assert site.history() == [("work", 1, "good"), ("gone", 1, "good")]
    assert "(nothing was changed)" in site.cli("reload", "--dry-run")


def test_live_settings_change_without_new_runners(site):
    site.configure(work='processes = 1; timeout = "300s";').start()
    site.submit([task("a", 1)])
    site.wait_done(1)
    before = site.runners()["work"]
    site.configure(work='processes = 3; timeout = "200ms"; crashes = 1;',
                   change=lambda text: text.replace('level = "debug"', 'level = "info"'))
    said = site.reload()["handlers"][0]
    assert said["action"] == "changed in place"
    assert said["why"] == "processes, timeout, crashes"
    go = site.folder / "go"
    site.submit([task(f"k{i}", 10 + i, f"wait:{go}") for i in range(3)])
    wait_until(lambda: len(site.starts()) == 4, "three run at once")
    assert before < site.runners()["work"]
    # The new timeout holds for what starts now; told to stop, they say RETRY.
    wait_until(lambda: any(e.attempt == 2 for e in site.ledger()), "one was told to stop")
    go.touch()
    site.wait_done(4)
    site.configure(work='processes = 1;')
    site.reload()
    wait_until(lambda: len(site.runners()["work"]) == 1, "the surplus ones leave")


def test_a_log_level_reaches_runners_that_are_up(site, root):
    shutil.copy(root / "build" / "villains" / "sleeps.so", site.plugins)

    def at(level):
        sleeper = 'handlers = { sleeper = { plugin = "sleeps.so"; };'
        return lambda text: text.replace('"debug"', f'"{level}"').replace("handlers = {", sleeper, 1)

    def lines():
        """That one more task makes the runner log."""
        before = site.count("asleep for 1 ms")
        site.cli("submit", "sleeper", "--wait", "1")
        return site.count("asleep for 1 ms") - before

    site.configure(work="", change=at("info")).start()
    wait_until(lambda: lines() == 1, "the runner logs")
    runners = site.runners()
    for level, count in (("warn", 0), ("info", 1)):
        site.configure(work="", change=at(level))
        assert set(site.actions().values()) == {"unchanged"}
        wait_until(lambda: lines() == count, f"the runner logs as at {level}")
    assert site.runners() == runners


def test_a_changed_setting_of_the_plugin_is_a_new_generation(site):
    site.configure(work="").start()
    site.submit([task("a", 1)])
    site.wait_done(1)
    change = lambda text: text.replace('/ledger"; };', '/ledger"; colour = "red"; };')
    site.configure(work="threads = 2;", change=change)
    said = site.reload()["handlers"][0]
    assert (said["action"], said["why"]) == ("new generation", "threads, config.colour")
    site.wait_for_log("event=promoted handler=work generation=2")


def test_signals_that_come_together_are_one_reload(site):
    site.configure(work="").start()
    for _ in range(200):
        site.hang_up()
    site.install("ledger-two.so")
    site.hang_up()
    site.wait_for_log("event=promoted handler=work generation=2")
    assert site.count("event=reload ") < 100


# --- handlers come and go ------------------------------------------------------------------------------------------------

def test_tasks_of_a_removed_handler_wait_visibly_and_run_when_it_is_back(site):
    go = site.folder / "go"
    site.configure(work="threads = 2;", other="").start()
    site.submit([task("busy", 1, f"wait:{go}"), *(task("a", i) for i in range(2, 5))])
    site.submit([task("b", 10, handler="other")])
    site.wait_done(4)
    site.configure(other="")
    assert site.actions() == {"other": "unchanged", "work": "removed"}
    site.wait_for_log("event=removed handler=work")
    site.submit([*(task("a", i) for i in range(20, 23)), task("b", 23, handler="other")])
    site.wait_done(5)
    wait_until(lambda: "no handler work on this host" in site.cli("key", "list"), "the key says why it waits")
    assert site.count("event=unserved handler=work") == 1
    assert site.ask("status")["unserved"] == ["work"]
    wait_until(lambda: "tasks of work wait: it has no such handler" in site.cli("status"), "status says so too")
    go.touch()
    site.wait_done(6)
    site.configure(work="threads = 2;", other="")
    assert site.actions() == {"other": "unchanged", "work": "added"}
    site.wait_done(9)
    assert site.starts("a") == [2, 3, 4, 20, 21, 22]
    assert "unserved" not in site.ask("status")


def test_handlers_come_and_go_many_times(site):
    site.configure(work="").start()
    number = 0
    for i in range(12):
        names = {f"n{i}": "", f"m{i}": ""}
        site.configure(work="", **names)
        site.reload()
        site.wait_for_log(f"event=promoted handler=n{i}")
        site.wait_for_log(f"event=promoted handler=m{i}")
        site.submit([task("a", number, handler=f"n{i}"), task("b", number + 1, handler=f"m{i}"),
                     task("c", number + 2)])
        number += 3
        site.wait_done(number)
    site.configure(work="")
    site.reload()
    wait_until(lambda: set(site.runners()) == {"work"}, "only one handler is left")
    wait_until(lambda: len(os.listdir(next((site.folder / "state").glob("staging-*")))) == 1, "one copy of a plugin is left")


def test_a_handler_can_take_over_another_ones_tasks(site):
    site.configure(work="", old='tasks = [ "mail", "post" ];').start()
    site.submit([task("a", 1, handler="mail"), task("a", 2, handler="post")])
    site.wait_done(2)
    site.configure(work='tasks = [ "work", "mail" ];', old='tasks = [ "post" ];')
    assert site.actions() == {"work": "changed in place", "old": "changed in place"}
    before = site.ask("status")["handlers"]
    site.submit([task("a", 3, handler="mail"), task("a", 4, handler="post")])
    site.wait_done(4)
    done = {h["name"]: h["done"] for h in site.ask("status")["handlers"]}
    assert done["work"] == {h["name"]: h["done"] for h in before}["work"] + 1


def test_a_host_that_is_stopping_says_so_to_who_asks_for_a_reload(site):
    go = site.folder / "go"
    site.configure(work="").start()
    site.submit([task("a", 1, f"deaf:{go}")])
    wait_until(lambda: site.starts("a") == [1], "it runs")
    site.signal()
    site.wait_for_log("event=stopping")
    site.hang_up()
    done = subprocess.run([site.quiver, "reload", "-c", site.config], capture_output=True, text=True, timeout=120)
    assert done.returncode and "the host is stopping" in done.stderr + done.stdout
    assert "event=stopped" not in site.log()
    go.touch()
    assert site.wait() == 0


def test_a_second_host_of_this_machine_differs_by_its_command_line(site):
    """And keeps that when it reloads the file that both share."""
    site.configure(work="", change=add(QUICK)).start()
    with open(site.folder / "second", "wb") as log:
        second = subprocess.Popen([site.quiver, "run", "-c", site.config, "--name", "second", "--set", "lease.drain=7s"],
                                  stdout=log, stderr=log)
    text = lambda: (site.folder / "second").read_text()
    try:
        wait_until(lambda: "event=running host=second" in text(), "it runs")
        wait_until(lambda: "second" in site.cli("members"), "it is a member beside the first")
        site.install("ledger-two.so")
        assert site.actions("--host", "second") == {"work": "new generation"}
        assert "lease" not in text().partition("event=plan")[2]
        second.send_signal(signal.SIGTERM)
        assert second.wait(60) == 0
        assert "drain_ms=7000" in text()
    finally:
        second.kill()
        second.wait(60)


# --- waiting for a reload ---------------------------------------------------------------------------------------------

LONG_PROBATION = add('reload = { probation = "10m"; tasks = 100; };\n')


def test_a_refusal_does_not_wait_for_an_older_probation(site):
    """What an earlier reload brought is still on probation, for as long as this test lasts."""
    site.configure(change=LONG_PROBATION, work="").start()
    site.install("ledger-two.so")
    site.reload()
    site.wait_count("event=promoted", 1)
    site.config.write_text(site.config.read_text().replace(
        "handlers = {", 'handlers = { mail = { plugin = "missing.so"; };', 1))
    assert site.reload("--wait", code=1)["failed"]
    assert ("work", 2, "serving") in site.history()


def test_whoever_waits_is_told_the_plan_and_what_is_waited_for_at_once(site):
    site.configure(change=LONG_PROBATION, work="").start()
    site.install("ledger-two.so")
    with subprocess.Popen([site.quiver, "reload", "--wait", "-c", site.config], stdout=subprocess.PIPE, text=True) as wait:
        assert "new generation" in wait.stdout.readline()
        assert "waiting for work" in wait.stdout.readline()
        site.wait_count("event=promoted", 1)
        site.submit([task(f"k{n}", n) for n in range(100)])
        assert "good" in wait.stdout.readline()
        assert wait.wait(60) == 0


def test_a_version_that_got_no_task_is_unproven(site):
    site.configure(change=add('reload = { probation = "300ms"; tasks = 100; };\n'), work="").start()
    site.install("ledger-two.so")
    assert site.outcomes() == [("work", 2, "unproven")]
    assert "event=unproven handler=work" in site.log()


# --- several hosts on one machine -------------------------------------------------------------------------------------


@pytest.fixture
def pair(quiver, site):
    """Two hosts with one configuration file, of which the second was given another name."""
    site.configure(change=lambda text: QUICK + 'host = { name = "a"; };' + text, work="").start()
    second = Host(quiver, site.plugins, site.folder)
    second.config, second.logs = site.config, list(site.logs)
    second.start("--name", "b", "--set", "http.listen=127.0.0.1:0")
    del second.logs[:-1]
    yield site, second
    second.close()


def test_a_reload_reaches_all_hosts_of_this_machine(pair):
    first, second = pair
    first.install("ledger-two.so")
    said = first.cli("reload")
    assert "host a\n" in said and "host b\n" in said and said.count("new generation") == 2
    for host in pair:
        host.wait_for_log("event=promoted")
    first.config.write_text(first.config.read_text().replace("ledger.so", "missing.so"))
    assert [answer["host"] for answer in first.reload(code=1)] == ["a"], "the second is spared"
    assert "event=plan reload=2" not in second.log()
    assert first.reload("--host", "b", code=1)["failed"]


def test_a_dry_run_finds_what_only_loading_finds(site):
    """A file that can be read, and that no runner can load."""
    site.configure(work="").start()
    (site.plugins / "bad.so").write_bytes(b"not a plugin")
    site.config.write_text(site.config.read_text().replace(
        "handlers = {", 'handlers = { mail = { plugin = "bad.so"; };', 1))
    said = site.reload("--dry-run", code=1)
    assert said["failed"] and len(said["check"]) == 1 and "handlers.mail" in said["check"][0]
    (site.plugins / "bad.so").unlink()
    site.install("ledger.so", "bad.so")
    site.config.write_text(site.config.read_text().replace(
        'plugin = "bad.so";', f'plugin = "bad.so"; config = {{ path = "{site.folder}/other"; }};'))
    assert site.reload("--dry-run")["check"] == []
    assert "reloaded" not in site.log()
