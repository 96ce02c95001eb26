"""The page in a real browser, on a real host with a backlog, failures and hostile names."""
import http.client
import pathlib
import re
import signal

import pytest

from browser import Browser, Keys
from hosts import Host
from http_hosts import free_port

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHOTS = ROOT / "build" / "page"
XSS = "<img src=x onerror=document.title='owned'><script>document.title='owned'</script>"
PAGES = ["", "handlers", "keys", "tasks", "dead", "shards", "members", "locks"]
TOKENS = "watcher read watcher-watcher-1\nshop submit shop-shop-shop-shop\n"


class Shown:
    """A host, and a tab that looks at it."""

    def __init__(self, host, browser):
        self.host, self.browser, self.port = host, browser, free_port()
        tokens = host.folder / "tokens"
        tokens.write_text(TOKENS)
        tokens.chmod(0o600)
        line = f'http = {{ listen = "127.0.0.1:{self.port}"; tokens_file = "{tokens}"; }};\n'
        host.configure(change=lambda text: line + text, mail="")
        host.start()
        self.token = (host.folder / "state" / "http.token").read_text().split()[2]
        host.cli("key", "hold", "held-1", "--reason", XSS)
        host.submit([task("mail", number, "reject", key=f"user-{number}") for number in range(1, 8)])
        host.submit([task("mail", 8, "result", key=XSS), task("mail", 11, f"reject {XSS}", key=f"bad {XSS}"), task("mail", 9, "result", key="held-1")])
        host.wait_done(1)

    @property
    def address(self):
        return f"http://127.0.0.1:{self.port}/"

    def look(self, page="", token=None):
        self.browser.open(f"{self.address}#token={token or self.token}")
        self.browser.wait(self.browser.title, "a title")
        if page:
            self.browser.go(page)


def task(handler, number, words, key=None):
    return {"handler": handler, "key": key, "payload": f"{number} {words}"}


@pytest.fixture(scope="module")
def browser():
    made = Browser()
    yield made
    made.close()


@pytest.fixture(scope="module")
def shown(quiver, root, tmp_path_factory, browser):
    host = Host(quiver, root / "build" / "test-plugins", tmp_path_factory.mktemp("page"))
    try:
        yield Shown(host, browser)
    finally:
        host.close()


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
    browser.wait_text("8 tasks are dead")
    assert shown.token not in browser.run("return location.href + document.documentElement.outerHTML")


@pytest.mark.parametrize("page", PAGES)
def test_each_page_says_its_state_and_the_browser_has_nothing_to_complain_about(shown, browser, page):
    browser.complaints()
    shown.look(page)
    name = page or "overview"
    browser.wait(lambda: browser.run("return document.querySelector('nav [aria-current]')?.innerText ?? ''").lower().startswith(name), "its place in the list")
    for width, scheme in ((1280, "light"), (360, "light"), (1280, "dark"), (360, "dark")):
        browser.resize(width)
        browser.prefer(scheme)
        browser.shot(SHOTS / f"{name}-{width}-{scheme}.png")
        overflow = browser.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert overflow <= 0, f"{page} is {overflow} pixels too wide at {width}"
    browser.resize(1280)
    browser.prefer("light")
    assert browser.title().lower() != name, "a title says the state, not the place"
    assert browser.complaints() == []


def test_hostile_texts_are_texts(shown, browser):
    shown.look("keys")
    browser.wait_text("held-1")
    assert XSS in browser.text()
    for page in ("", "tasks", "dead", "keys?key=held-1"):
        browser.go(page)
    browser.wait_text(XSS)
    assert browser.run("return document.images.length") == 0
    assert "owned" not in browser.run("return document.title")


def test_a_group_of_dead_tasks_is_requeued_after_one_question(shown, browser):
    shown.look("dead")
    browser.press("Requeue 8")
    browser.wait_text("8 tasks of mail that died with this error")
    browser.press("Leave it")
    browser.wait(lambda: "Leave it" not in browser.text(), "the question to go")
    assert shown.host.cli("dead", "list").count("\n") >= 7
    browser.press("Requeue 8")
    browser.press("Requeue 8")
    browser.wait_text("8 tasks requeued", "#said")


def test_a_handler_is_paused_and_resumed(shown, browser):
    shown.look("handlers?name=mail")
    browser.press("Pause mail")
    browser.wait_text("No task of mail starts until it is resumed")
    browser.press("Pause mail")
    browser.press("Resume mail")
    browser.wait(lambda: "Pause mail" in browser.text(), "the handler to go on")


def test_who_may_only_read_sees_no_button_that_acts(shown, browser):
    shown.look("handlers?name=mail", token="watcher-watcher-1")
    browser.wait_text("generation")
    assert "read only" in browser.text("header")
    assert "Pause mail" not in browser.text()


def test_who_may_only_submit_is_told_so(shown, browser):
    browser.open(f"{shown.address}#token=shop-shop-shop-shop")
    browser.wait_text("This token may not look")


def test_the_keyboard_alone_reaches_every_page(shown, browser):
    shown.look()
    browser.run("document.querySelector('nav a').focus()")
    for name in ("handlers", "keys"):
        browser.key(Keys.TAB)
    browser.key(Keys.ENTER)
    browser.wait(lambda: browser.run("return location.hash") == "#/keys", "the page of the focused link")


def test_a_task_is_found_by_its_id_and_its_payload_opens_on_demand(shown, browser):
    number = shown.host.submit_one(task("mail", 10, "reject", key="one"))
    shown.look(f"task?id={number}")
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


def test_a_token_that_is_taken_back_is_said_and_the_last_known_stays(shown, browser):
    tokens = shown.host.folder / "tokens"
    shown.look(token="watcher-watcher-1")
    tokens.write_text(TOKENS.replace("watcher-watcher-1", "another-another-1"))
    shown.host.signal(signal.SIGHUP)
    browser.wait_text("not accepted any more")
    assert "Handlers" in browser.text()
    tokens.write_text(TOKENS)
    shown.host.signal(signal.SIGHUP)
    browser.wait(lambda: "not accepted" not in browser.text(), "it is accepted again")


def test_the_files_are_small_and_are_asked_for_once(shown, browser):
    shown.look()
    sizes = browser.wire_bytes()
    assert 5000 < sum(size for _, size in sizes) <= 100_000, sizes
    connection = http.client.HTTPConnection("127.0.0.1", shown.port)
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
    connection = http.client.HTTPConnection("127.0.0.1", shown.port)
    connection.request("GET", "/")
    policy = connection.getresponse().headers["Content-Security-Policy"]
    connection.close()
    assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    for file in (ROOT / "runtime" / "http" / "page").iterdir():
        assert not re.search(r"innerHTML|insertAdjacentHTML|document\.write|eval\(|https?://(?!www\.w3\.org|\$)", file.read_text()), file


def test_a_host_that_dies_is_said_to_be_gone_and_the_last_known_stays(shown, browser):
    shown.look()
    browser.wait_text("Handlers")
    shown.host.kill()
    browser.wait_text("does not answer")
    assert "mail" in browser.text()
    browser.wait_text("not reachable", "header")
    shown.host.start()
    browser.wait(lambda: "does not answer" not in browser.text(), "the host to be back")
