"""Can everybody use the page: by keyboard, with a screen reader, in the dark, on a phone, without motion?"""
import os

import pytest

import axe
from browser import Keys
from rig import SHOTS
from test_page import PAGES, SIZES


@pytest.fixture(scope="module")
def script():
    return axe.fetch()


def pages(shown):
    crashed = shown.get("/v1/dead?handler=thumbs")["tasks"][0]["id"]
    return [*PAGES, "handlers?name=thumbs", "keys?key=parked-1", f"task?id={crashed}", "dead?handler=mail", "tasks?state=waiting"]


def look_closely(shown, browser, script, page, found):
    browser.go(page)
    browser.wait(lambda: "Asking" not in browser.text(), "its data")
    # Either light and either width is seen in two pictures; the long run looks at all four.
    for width, scheme in SIZES if "QUIVER_TEST_LONG" in os.environ else (SIZES[0], SIZES[3]):
        browser.resize(width)
        browser.prefer(scheme)
        found += [f"{page} {width} {scheme}: {line}" for line in axe.findings(browser, script)]


def test_axe_finds_nothing_serious_on_any_page_in_any_light_and_width(shown, browser, script):
    found = []
    shown.look()
    for page in pages(shown):
        look_closely(shown, browser, script, page, found)
    browser.go("dead")
    browser.press("Drop 7")
    browser.wait_text("gone for good")
    look_closely(shown, browser, script, "dead", found)
    browser.resize(1280)
    browser.prefer("light")
    assert not found, "\n".join(found)


def test_axe_would_find_pale_text_and_a_field_without_a_name(shown, browser, script):
    shown.look("tasks")
    browser.wait_text("one task by its id")
    browser.run("document.documentElement.style.setProperty('--muted', '#cccccc'); document.querySelector('label input').parentNode.replaceWith(document.createElement('input'))")
    found = "\n".join(axe.findings(browser, script))
    assert "color-contrast" in found and "label" in found, found


def focused(browser):
    return browser.run("return document.activeElement.getAttribute('aria-label') || document.activeElement.innerText || document.activeElement.name || document.activeElement.tagName")


def test_the_keyboard_alone_reaches_acts_and_comes_back(shown, browser):
    shown.look()
    # From the beginning of the document, wherever the focus was.
    browser.run("window.focus(); document.body.tabIndex = -1; document.body.focus(); document.body.removeAttribute('tabindex')")
    browser.key(Keys.TAB)
    assert focused(browser) == "To the content"
    seen = []
    for _ in range(6):
        browser.key(Keys.TAB)
        seen.append(focused(browser).split("\n")[0])
        # Where the focus is can be seen.
        outline = browser.run("const s = getComputedStyle(document.activeElement); return [s.outlineStyle, parseFloat(s.outlineWidth)]")
        assert outline[0] != "none" and outline[1] >= 2, (seen[-1], outline)
    assert seen[:4] == ["Light or dark", "Overview", "Handlers", "Keys"]
    for _ in range(20):
        if focused(browser).startswith("Dead"):
            break
        browser.key(Keys.TAB)
    browser.key(Keys.ENTER)
    browser.wait(lambda: browser.run("return location.hash") == "#/dead", "the page of the focused link")
    for _ in range(40):
        if focused(browser) == "Drop 7":
            break
        browser.key(Keys.TAB)
    browser.key(Keys.ENTER)
    browser.wait_text("gone for good")
    for _ in range(10):
        if focused(browser) == "Leave it":
            break
        browser.key(Keys.TAB)
    browser.key(Keys.ENTER)
    browser.wait(lambda: "gone for good" not in browser.text(), "nothing was dropped")
    assert len(shown.get("/v1/dead?handler=mail")["tasks"]) == 8


def test_what_is_drawn_anew_keeps_the_focus_and_what_is_typed(shown, browser):
    shown.look("tasks")
    browser.wait(lambda: browser.run("return document.querySelector('input[name=handler]')"), "the field")
    browser.run("document.querySelector('input[name=handler]').focus()")
    browser.key("ma")
    at = browser.run("return performance.now()")
    browser.wait(lambda: browser.run("return performance.now()") > at + 2500, "it was drawn a few times")
    browser.key("il", Keys.ENTER)
    browser.wait(lambda: "handler=mail" in browser.run("return location.hash"), "the whole word")


def test_who_wants_no_motion_gets_none(shown, browser):
    shown.look()
    moving = "return [...document.querySelectorAll('*')].filter((e) => { const s = getComputedStyle(e); return parseFloat(s.transitionDuration) || parseFloat(s.animationDuration); }).length"
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]})
    browser.wait_text("Handlers")
    browser.run("document.querySelector('main > div[data-key]').classList.add('stale')")
    assert browser.run("return matchMedia('(prefers-reduced-motion: reduce)').matches") and browser.run(moving) == 0
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    browser.run("document.querySelector('main > div[data-key]').classList.add('stale')")
    assert browser.run(moving) > 0


def test_light_or_dark_is_kept_when_it_was_chosen(shown, browser):
    shown.look()
    ground = "return getComputedStyle(document.body).backgroundColor"
    before = browser.run(ground)
    browser.run("document.querySelector('header button').click()")
    browser.wait(lambda: browser.run(ground) != before, "the other one")
    chosen = browser.run(ground)
    shown.look()
    assert browser.run(ground) == chosen
    browser.run("localStorage.clear()")


def test_axe_finds_nothing_serious_at_the_door_and_when_the_host_is_gone(shown, browser, script):
    browser.open(shown.address)
    browser.run("sessionStorage.clear()")
    browser.open(shown.address)
    browser.wait_text("Who are you?")
    assert axe.findings(browser, script) == []
    shown.look()
    browser.wait_text("Handlers")
    shown.host.kill()
    browser.wait_text("does not answer")
    found = []
    for width, scheme in SIZES:
        browser.resize(width)
        browser.prefer(scheme)
        found += axe.findings(browser, script)
    browser.shot(SHOTS / "gone-360-dark.png")
    browser.resize(1280)
    browser.prefer("light")
    shown.host.start()
    assert found == []
