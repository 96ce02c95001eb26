"""The page in a real browser, before two real hosts with a backlog, failures, crashes and hostile texts."""
import http.client
import json
import re
import secrets
import signal
import sqlite3
from urllib.parse import quote

import pytest

from browser import Keys
from hosts import wait_until
from rig import ROOT, SHOTS, TOKENS, task, xss

PAGES = ["", "handlers", "keys", "tasks", "dead", "schedules", "limits", "shards", "members", "locks"]
SIZES = ((1280, "light"), (360, "light"), (1280, "dark"), (360, "dark"))


# --- who may look -----------------------------------------------------------------------------------------------------


def test_without_a_token_the_page_shows_nothing_and_says_where_it_is(shown, browser):
    browser.open(shown.address)
    browser.run("sessionStorage.clear()")
    browser.open(shown.address)
    browser.wait_text("http.token")
    assert "mail" not in browser.text()
    browser.run("document.querySelector('input[name=token]').focus()")
    browser.key(shown.token, Keys.ENTER)
    browser.wait_text("Handlers")
    assert shown.token not in browser.run("return location.href")


def test_a_link_with_a_token_lets_in_and_hides_it(shown, browser):
    shown.look()
    browser.wait_text("9 tasks are dead")
    assert shown.token not in browser.run("return location.href + document.documentElement.outerHTML")


def test_who_may_only_read_sees_no_button_that_acts_and_the_server_refuses(shown, browser):
    for page in ("handlers?name=mail", "dead", "tasks?state=waiting", "members", "keys?key=held-1"):
        shown.look(page, token="watcher-watcher-1")
        browser.wait(lambda: "Asking" not in browser.text() and browser.run("return document.querySelector('main table, main dl')"), "it is there")
        labels = browser.run("return [...document.querySelectorAll('main button')].map((b) => b.innerText)")
        assert not [text for text in labels if re.match(r"(Pause|Resume|Reload|Requeue|Drop|Cancel|Drain|Hold|Let|Skip|Retry) ", text)], labels
    assert "read only" in browser.text("header")
    for path in ("/v1/handlers/mail/pause", "/v1/reload", "/v1/members/host-b/drain", "/v1/dead/drop?all=1&before=9999999999999"):
        assert shown.ask("POST", path, token="watcher-watcher-1")[0] == 403, path
        assert shown.ask("POST", path, token=None)[0] == 401, path


def test_who_may_only_submit_is_told_so(shown, browser):
    browser.open(f"{shown.address}#token=shop-shop-shop-shop")
    browser.wait_text("This token may not look")


def test_another_name_of_the_host_gets_neither_the_page_nor_the_api(shown):
    for path in ("/", "/page/main.js", "/v1/status"):
        assert shown.ask("GET", path, Host="evil.example")[0] == 421, path
    assert shown.ask("POST", "/v1/handlers/mail/pause", Origin="http://evil.example")[0] == 403
    assert shown.ask("POST", "/v1/handlers/mail/pause", Sec_Fetch_Site="cross-site")[0] == 403
    assert shown.get("/v1/status")["totals"]["paused"] == {}


def test_a_token_that_is_taken_back_is_said_and_the_last_known_stays(shown, browser):
    tokens = shown.folder / "tokens"
    shown.look(token="watcher-watcher-1")
    tokens.write_text(TOKENS.replace("watcher-watcher-1", "another-another-1"))
    shown.host.signal(signal.SIGHUP)
    browser.wait_text("not accepted any more")
    assert "Handlers" in browser.text()
    tokens.write_text(TOKENS)
    shown.host.signal(signal.SIGHUP)
    browser.wait(lambda: "not accepted" not in browser.text(), "it is accepted again")


# --- what is seen -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES)
def test_each_page_says_its_state_and_the_browser_has_nothing_to_complain_about(shown, browser, page):
    browser.complaints()
    shown.look(page)
    name = page or "overview"
    browser.wait(lambda: browser.run("return document.querySelector('nav [aria-current]')?.innerText ?? ''").lower().startswith(name), "its place in the list")
    browser.wait(lambda: "Asking" not in browser.text(), "its data")
    for width, scheme in SIZES:
        browser.resize(width)
        browser.prefer(scheme)
        browser.wait(lambda: browser.run("const r = document.querySelector('nav [aria-current]').getBoundingClientRect(); return r.left >= 0 && r.right <= innerWidth + 1"), "its name in the list of pages")
        browser.shot(SHOTS / f"{name}-{width}-{scheme}.png")
        overflow = browser.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert overflow <= 0, f"{page} is {overflow} pixels too wide at {width}"
    browser.resize(1280)
    browser.prefer("light")
    assert browser.title().lower() != name, "a title says the state, not the place"
    assert browser.complaints() == []


def test_the_overview_tells_rates_seats_and_what_each_handler_does(shown, browser):
    shown.look()
    for text in ("Tasks per second", "Seats in use", "Waiting and running tasks", "P50 / P99", "DONE/S", "CRASHED"):
        browser.wait(lambda: text.lower() in browser.text().lower(), text)
    # A plot tells its numbers to those who do not see it, too.
    browser.run("document.querySelector('svg.plot').focus()")
    browser.key(Keys.LEFT)
    browser.wait(lambda: re.search(r"\d\d:\d\d:\d\d: done [\d.]+, failed [\d.]+", browser.text("figure .hidden")), "the value under the cursor")
    browser.press("As a table")
    browser.wait(lambda: browser.run("return document.querySelectorAll('figure details[open] tbody tr').length") > 0, "the same as a table")


def test_a_crash_shows_where_it_was_and_each_attempt_its_host_and_version(shown, browser):
    dead = shown.get("/v1/dead?handler=thumbs")["tasks"][0]["id"]
    shown.look(f"task?id={dead}")
    browser.wait_text("crashed: SIGSEGV")
    browser.wait_text("ledger.c:")
    assert re.search(r"on host-[ab], pid \d+, version 1\.0, generation 1, file [0-9a-f]+", browser.text())
    assert "waited" in browser.run("return document.querySelector('svg.bars').getAttribute('aria-label')")
    browser.shot(SHOTS / "task-crashed-1280-light.png")


def test_a_running_task_says_how_far_it_is(shown, browser):
    found = wait_until(lambda: [t for t in shown.get("/v1/tasks?state=running&handler=mail")["tasks"] if t.get("progress")], "it has said so")
    shown.look(f"task?id={found[0]['id']}")
    browser.wait_text("3 of 8 (37 %) done")
    assert browser.run("return document.querySelector('main progress').value") == 3
    browser.shot(SHOTS / "task-running-1280-light.png")


def test_filters_stand_in_the_address_and_hold_after_a_reload(shown, browser):
    shown.look("tasks?state=dead&handler=mail&error=what+is")
    browser.wait(lambda: browser.run("return document.querySelectorAll('main tbody tr').length") == 1, "one fits")
    browser.open(shown.address + "#/tasks?state=dead&older=9h")
    browser.wait_text("No task is like that")
    assert browser.run("return document.querySelector('select[name=state]').value") == "dead"
    browser.run("document.querySelector('input[name=older]').focus()")
    browser.run("document.activeElement.select()")
    browser.key("1ms", Keys.ENTER)
    browser.wait(lambda: "older=1ms" in browser.run("return location.hash"), "the new filter in the address")
    shown.host.submit([task("mail", 70 + n, "result", key="parked-1") for n in range(3)])
    browser.go("keys?order=tasks")
    browser.wait(lambda: browser.run("return document.querySelector('main tbody tr')?.innerText ?? ''").startswith("parked-1"), "the busiest key first")


# --- hostile texts ----------------------------------------------------------------------------------------------------


def write_document(shown, document):
    """As a host that lies would; kept for a minute."""
    with sqlite3.connect(f"{shown.folder}/q.db", timeout=30) as db:
        at, = db.execute("SELECT max(at) FROM status").fetchone()
        db.execute("INSERT INTO status VALUES (?, ?, ?, ?)", (secrets.token_bytes(16), at, at + 60000, json.dumps(document).encode()))


def hostile_host():
    handler = {name: xss(name) for name in ("plugin", "version", "hash", "unavailable", "refused")}
    version = {name: xss(f"version-{name}") for name in ("version", "outcome", "by", "text")}
    return {"name": xss("host"), "state": xss("state"), "version": xss("host-version"), "machine": xss("machine"), "http": xss("http"),
            "unserved": [xss("unserved")], "move_pending": [xss("pending")], "rates": {"done": xss("rate")}, "pid": xss("pid"),
            "handlers": [{**handler, "name": xss("handler"), "state": xss("handler-state"), "done_rate": xss("done_rate"), "run_p99_ms": xss("p99"),
                          "versions": [version]}]}


def test_hostile_texts_are_texts(shown, browser):
    number = shown.host.cli("submit", "--json-lines", text=json.dumps(
        {"handler": "mail", "key": "hostile", "payload": "50 reject " + xss("payload"), "headers": {"x-hostile": xss("header")}}) + "\n").strip()
    write_document(shown, hostile_host())
    shown.host.cli("pause", "thumbs", "--reason", xss("pause"))
    seen = {"keys": "reason", "dead": "error", "handlers": "handler", "members": "machine", "keys?key=" + quote(xss("key")): "key",
            "tasks?state=dead": "error", "handlers?name=" + quote(xss("handler")): "refused"}
    wait_until(lambda: [t for t in shown.get("/v1/dead?key=hostile")["tasks"]], "it is dead")
    number = shown.get("/v1/dead?key=hostile")["tasks"][0]["id"]
    shown.look()
    for page, text in {**seen, f"task?id={number}": "header", "": "pause", "shards": None, "tasks": None, "locks": None}.items():
        browser.go(page)
        if text:
            browser.wait(lambda: f"document.title='{text}'" in browser.text(), f"the text {text} on {page}")
    browser.go(f"task?id={number}")
    browser.press("Text")
    browser.wait_text("document.title='payload'", "pre")
    browser.press("JSON")
    browser.wait_text("This is no JSON")
    assert browser.run("return document.images.length + document.querySelectorAll('main b').length") == 0
    assert not re.match(r"^[a-z0-9_-]+$", browser.run("return document.title")), "one of them has become markup"
    shown.host.cli("resume", "thumbs")


def test_a_hostile_result_is_a_text(shown, browser):
    number = shown.host.submit_one(task("mail", 60, "result " + "submit:" + "done-1", key="result-1"))
    shown.look(f"task?id={number}")
    browser.wait_text("done")
    assert browser.run("return document.images.length") == 0


# --- on the wire ------------------------------------------------------------------------------------------------------


def test_the_files_are_small_and_are_asked_for_once(shown, browser):
    shown.look()
    sizes = browser.wire_bytes()
    assert 5000 < sum(size for _, size in sizes) <= 100_000, sizes
    connection = http.client.HTTPConnection("127.0.0.1", shown.ports["host-a"])
    connection.request("GET", "/page/main.js", headers={"Accept-Encoding": "gzip"})
    answer = connection.getresponse()
    assert answer.headers["Content-Encoding"] == "gzip" and answer.read()[:2] == b"\x1f\x8b"
    connection.request("GET", "/page/main.js", headers={"If-None-Match": answer.headers["ETag"]})
    again = connection.getresponse()
    assert (again.status, again.read()) == (304, b"")
    connection.request("GET", "/page/main.js")
    assert connection.getresponse().read().startswith(b"// main.js")
    connection.close()


def test_the_policy_lets_nothing_in_from_elsewhere(shown):
    connection = http.client.HTTPConnection("127.0.0.1", shown.ports["host-a"])
    connection.request("GET", "/")
    policy = connection.getresponse().headers["Content-Security-Policy"]
    connection.close()
    assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    for file in (ROOT / "runtime" / "http" / "page").iterdir():
        assert not re.search(r"innerHTML|insertAdjacentHTML|document\.write|eval\(|https?://(?!www\.w3\.org|\$)", file.read_text()), file


# --- a host that dies -------------------------------------------------------------------------------------------------


def test_a_host_that_dies_is_said_to_be_gone_and_the_page_links_to_the_others(shown, browser):
    shown.look()
    browser.wait_text("Handlers")
    shown.host.kill()
    browser.wait_text("host-a does not answer")
    assert "mail" in browser.text(), "the last known stays"
    browser.wait_text("not reachable", "header")
    browser.press("host-b")
    browser.wait(lambda: str(shown.ports["host-b"]) in browser.run("return location.href"), "the page of the other host")
    browser.run("sessionStorage.setItem('quiver-token', arguments[0]); location.reload()", "watcher-watcher-1")
    browser.wait_text("host-b", "header")
    browser.wait(lambda: "live" in browser.text("header"), "it goes on there")
    shown.host.start()
    shown.look()
    browser.wait(lambda: "does not answer" not in browser.text(), "the host to be back")
