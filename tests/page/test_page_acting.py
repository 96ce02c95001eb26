"""What the page's buttons do: each says what, to how many, and asks before."""
import re

from hosts import wait_until
from rig import SHOTS, task


def dead(shown, filter=""):
    return shown.get(f"/v1/dead?limit=1000{filter}")["tasks"]


def test_a_group_of_dead_tasks_is_requeued_after_one_question(shown, browser):
    shown.look("dead")
    browser.press("Requeue 7")
    browser.wait_text("7 tasks of mail that died with this error")
    browser.shot(SHOTS / "dead-asked-1280-light.png")
    browser.press("Leave it")
    browser.wait(lambda: "Leave it" not in browser.text(), "the question to go")
    assert len(dead(shown)) == 9
    browser.press("Requeue 7")
    browser.press("Requeue 7")
    browser.wait_text("7 tasks requeued.", "#said")
    wait_until(lambda: len(dead(shown)) == 9, "they died again")
    history = dead(shown, "&handler=mail&error=no+such")[0]["history"]
    assert [e["kind"] for e in history].count("requeued") == 1


def test_a_group_leaves_alone_what_has_a_longer_error(shown, browser):
    shown.host.submit([task("mail", 1, "short", key="one"), task("mail", 2, "short?really", key="two")])
    wait_until(lambda: len(dead(shown, "&error=short")) == 2, "both are dead")
    assert [t["key"] for t in dead(shown, "&cause=what+is+short?")] == ["one"]
    shown.look("dead")
    browser.wait_text("what is short?really?")
    browser.run("[...document.querySelectorAll('main tr')].find((r) => /what is short\\?\\s+rejected/.test(r.innerText)).querySelector('button.danger').click()")
    browser.wait_text("1 task of mail with this error is gone for good")
    browser.run("document.querySelector('.confirm button.danger').click()")
    browser.wait_text("1 task dropped", "#said")
    assert [t["key"] for t in dead(shown, "&error=short")] == ["two"]


def test_what_a_filter_shows_is_cancelled_and_nothing_that_came_later(shown, browser):
    shown.host.submit([task("mail", n, "result", key="held-1") for n in range(100, 112)])
    wait_until(lambda: len(shown.get("/v1/tasks?key=held-1&limit=100")["tasks"]) == 14, "they wait")
    shown.look("tasks?key=held-1")
    browser.press("Cancel 14")
    browser.wait_text("14 tasks: what waits will not run")
    browser.press("Cancel 14")
    browser.wait_text("tasks cancelled", "#said")
    wait_until(lambda: not shown.get("/v1/tasks?key=held-1")["tasks"], "none waits any more")
    assert len(dead(shown, "&key=held-1")) == 14


def test_a_handler_is_paused_and_resumed(shown, browser):
    shown.look("handlers?name=mail")
    browser.press("Pause mail")
    browser.wait_text("No task of mail starts until it is resumed")
    browser.press("Pause mail")
    browser.press("Resume mail")
    browser.wait(lambda: "Pause mail" in browser.text(), "the handler to go on")


def test_a_reload_shows_what_became_of_each_version(shown, browser):
    for member in shown.fleet.members.values():
        member.config.write_text(member.config.read_text().replace('threads = 4;', 'threads = 5;'))
    shown.look("handlers?name=mail")
    browser.press("Reload host-a")
    browser.wait_text("The other hosts keep theirs")
    browser.press("Reload host-a")
    browser.wait(lambda: re.search(r"generation\s+2", browser.text()), "the new generation")
    browser.wait(lambda: re.findall(r"host-[ab]\s+(\d+)\s+1\.0", browser.text()) == ["2", "1"], "its versions, the latest first")
    browser.shot(SHOTS / "handler-reloaded-1280-light.png")
    assert shown.get("/v1/status")["handlers"][0]["seats"] == 5 + 4


def test_a_key_is_held_retried_and_skipped(shown, browser):
    shown.look("keys?key=parked-1")
    browser.press("Skip the first task")
    browser.wait_text("becomes dead without having been done")
    browser.press("Leave it")
    browser.press("Retry now")
    browser.wait_text("Retry now: done.", "#said")
    wait_until(lambda: dead(shown, "&key=parked-1"), "its second attempt was the last")
    browser.press("Hold the key")
    browser.press("Hold the key")
    browser.wait_text("is held by a person")
    browser.press("Let it go on")
    browser.wait_text("Let it go on: done.", "#said")


def test_a_task_is_found_by_its_id_and_its_payload_opens_on_demand(shown, browser):
    number = shown.host.submit_one(task("mail", 10, "reject", key="one"))
    shown.look("tasks")
    browser.wait(lambda: browser.run("return document.querySelector('input[name=id]')"), "the field")
    browser.run("document.querySelector('input[name=id]').focus()")
    browser.key(number, "\n")
    browser.wait_text("dead")
    assert "10 reject" not in browser.text()
    browser.press("Text")
    browser.wait_text("10 reject", "pre")
    browser.press("Hex")
    browser.wait_text("31 30 20", "pre")


def test_a_dead_task_is_requeued_with_another_payload(shown, browser):
    number = shown.host.submit_one(task("mail", 20, "reject", key="edited"))
    shown.look(f"task?id={number}")
    browser.press("Requeue with another payload")
    browser.run("const t = document.querySelector('textarea'); t.focus(); t.select()")
    browser.key("21 result")
    browser.press("Requeue it so")
    browser.wait(lambda: number not in browser.run("return location.hash"), "the new task")
    browser.wait_text("done")
    assert "Cancel it" not in browser.text(), "what is done cannot be cancelled"


def test_a_host_is_drained_and_its_shards_are_seen_to_move(shown, browser):
    shown.look("members")
    browser.press("Drain host-b")
    browser.wait_text("gives its 10 shards to the other hosts")
    browser.press("Drain host-b")
    # Those where something runs stay until it ends.
    wait_until(lambda: len(shown.fleet.members["h1"].shards()) < 10, "the others have some of them")
    browser.press("Give host-b work again")
    browser.wait(lambda: "Drain host-b" in browser.text(), "it works again")
    browser.go("shards")
    browser.wait_text("Latest moves")
    browser.wait(lambda: re.search(r"host-b\s+host-a", browser.text()), "what moved, from whom to whom")
    browser.run("document.querySelector('.shards button').focus()")
    browser.wait(lambda: re.search(r"epoch\s+\d+", browser.text("main dl")), "the shard that has the focus")


def test_a_schedule_shows_its_next_times_here_and_in_utc_is_paused_and_run(shown, browser):
    shown.look("schedules")
    browser.wait_text("30 2 * * sun in Europe/Berlin")
    browser.press("report")
    browser.wait(lambda: len(re.findall(r"\d{4}-\d\d-\d\d 0[01]:30:00Z", browser.text())) == 10, "ten times in UTC")
    assert len(re.findall(r"02:30:00|03:30:00", browser.text())) >= 10, "and by the clock of its zone"
    browser.shot(SHOTS / "schedule-1280-light.png")
    browser.press("Pause report")
    browser.press("Pause report")
    browser.wait(lambda: browser.title().endswith("is paused"), "it is paused")
    browser.press("Resume report")
    browser.wait(lambda: browser.title().endswith("is active"), "it is active")
    browser.go("schedules?name=sweep")
    browser.press("Run it now")
    browser.press("Run it now")
    browser.wait_text("Submitted as", "#said")
    wait_until(lambda: 81 in [e.number for e in shown.host.ledger() if e.what == "end"], "its task has run")


def test_a_limit_tells_what_waits_for_it_and_is_set_for_a_while(shown, browser):
    shown.look("limits")
    browser.wait_text("2 at once")
    browser.wait_text("100 per 1 s, 20 more after a rest")
    browser.wait(lambda: "2 in use" in browser.text(), "both are used")
    browser.press("smtp")
    browser.wait_text("on hosts")
    browser.run("const f = document.querySelector('input[name=amount]'); f.focus(); f.select()")
    browser.key("3")
    browser.press("Set smtp")
    browser.wait_text("smtp is set on every host for 10m.", "#said")
    browser.wait_text("3 in use")
    browser.wait_text("beside the configuration, for another")
    browser.shot(SHOTS / "limit-1280-light.png")
    browser.press("Set smtp back")
    browser.wait(lambda: "beside the configuration" not in browser.text(), "it is as before")
