"""axe-core, which finds what keeps people from using a page.  It comes from npm when the tests run, and stays in build/."""
import json
import pathlib
import subprocess
import tarfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "axe"
SERIOUS = ("serious", "critical")


def fetch():
    """The text of its script; without npm or without a registry the test is skipped, and says so."""
    found = sorted(FOLDER.glob("axe-core-*.tgz"))
    if not found:
        FOLDER.mkdir(parents=True, exist_ok=True)
        try:
            done = subprocess.run(["npm", "pack", "--silent", "axe-core"], cwd=FOLDER, capture_output=True, text=True, timeout=60)
        except (OSError, subprocess.TimeoutExpired) as error:
            pytest.skip(f"axe-core cannot be had: {error}")
        if done.returncode != 0:
            pytest.skip(f"axe-core cannot be had: npm pack said {done.stderr.strip()[:200]}")
        found = sorted(FOLDER.glob("axe-core-*.tgz"))
    with tarfile.open(found[-1]) as archive:
        return archive.extractfile("package/axe.min.js").read().decode()


def findings(browser, script):
    """What is serious on the page as it is shown, one line each."""
    # The page's policy lets no script of another in; the driver's own are outside of it.
    if not browser.run("return typeof window.axe !== 'undefined'"):
        browser.run(script)
    found = json.loads(browser.driver.execute_async_script("""
        const done = arguments[arguments.length - 1];
        axe.run(document, { resultTypes: ["violations"] }).then((r) => done(JSON.stringify(r.violations)), (e) => done(JSON.stringify([{ impact: "critical", id: String(e), nodes: [] }])))"""))
    return [f"{v['impact']} {v['id']}: {n['html'][:200]} {n.get('failureSummary', '')[:200]}" for v in found if v["impact"] in SERIOUS
            for n in v["nodes"] or [{"html": ""}]]
