"""Very many dead tasks: the page groups them, pages through them by cursor, and requeues a group whole; neither the tab
nor the host grows with them.  5 000 in the short run, 200 000 in the long one (QUIVER_TEST_LONG)."""
import os
import pathlib
import re

import pytest

from hosts import wait_until
from rig import SHOTS, Shown

COUNT = 200_000 if "QUIVER_TEST_LONG" in os.environ else 5_000
ODD = 40
PAGES = 60 if COUNT > 5000 else 8
PATIENCE_S = 900
MIB = 1024 * 1024


@pytest.fixture(scope="module")
def many(quiver, tmp_path_factory, browser):
    """All but a few died of the same."""
    made = Shown(quiver, tmp_path_factory.mktemp("many"), browser, names=("host-a",))
    try:
        made.start(has_tasks=False)
        made.host.cli("submit", "mail", "--lines", text="".join(f"k{n % 997}\t{n} {'odd' if n < ODD else 'reject'}\n" for n in range(COUNT)))
        wait_until(lambda: made.get("/v1/dead")["total"] == COUNT, "all are dead", PATIENCE_S)
        yield made
    finally:
        made.close()


def rss(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text()).group(1)) * 1024


def heap(browser):
    return browser.driver.execute_cdp_cmd("Runtime.getHeapUsage", {})["usedSize"]


def shown_number(number):
    return f"{number:,}".replace(",", "\u202f")


def test_lists_go_on_by_cursor_and_neither_tab_nor_host_grows(many, browser):
    many.look("dead")
    browser.wait_text(f"2 groups of {shown_number(COUNT)} tasks")
    browser.driver.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
    before_tab, before_host = heap(browser), rss(many.host.process.pid)
    browser.go("dead?all=1")
    seen = set()
    for _ in range(PAGES):
        browser.wait(lambda: len(rows(browser)) == 100 and not seen.intersection(rows(browser)), "the next hundred")
        seen.update(rows(browser))
        browser.press("The next page")
    assert len(seen) == PAGES * 100
    browser.driver.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
    assert heap(browser) < before_tab + 32 * MIB
    assert rss(many.host.process.pid) < before_host + 32 * MIB


def rows(browser):
    return browser.run("return [...document.querySelectorAll('main tbody tr a[href^=\"#/task?\"]')].map((a) => a.title)")


def test_a_group_is_requeued_whole_and_the_other_stays(many, browser):
    label = f"Requeue {shown_number(COUNT - ODD)}"
    before = rss(many.host.process.pid)
    many.host.cli("pause", "mail")
    many.look("dead")
    browser.press(label)
    browser.wait_text(f"{shown_number(COUNT - ODD)} tasks of mail that died with this error")
    browser.press(label)
    if COUNT > 5000:
        browser.wait_text(f"of {shown_number(COUNT - ODD)} requeued")
        browser.shot(SHOTS / "dead-requeueing-1280-light.png")
    wait_until(lambda: f"{shown_number(COUNT - ODD)} tasks requeued." in browser.text("#said"), "all of them", PATIENCE_S)
    totals = many.get("/v1/status")["totals"]
    assert (totals["dead"], totals["waiting"]) == (ODD, COUNT - ODD)
    # A host's window and the answers in flight are bounded, whatever waits.
    assert rss(many.host.process.pid) < before + 64 * MIB
