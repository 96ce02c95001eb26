"""A plugin that cannot be taken when the host starts: that handler is refused, and everything else works."""
import json
import shutil

import pytest

from hosts import wait_until
from sites import Site, site, task  # noqa: F401 (a fixture)


def break_plugin(site, how):
    path = site.plugins / "mail.so"
    if how == "missing":
        path.unlink(missing_ok=True)
    elif how == "anybody's":
        shutil.copy(site.built / "ledger.so", path)
        path.chmod(0o777)


def with_mail(text):
    return text.replace("handlers = {", f'handlers = {{ mail = {{ plugin = "mail.so"; config = {{ path = "LEDGER"; }}; }};', 1)


def configure(site):
    return site.configure(change=lambda text: with_mail(text).replace("LEDGER", str(site.folder / "ledger")), work="")


def handler(site, name):
    found = [h for h in json.loads(site.cli("status", "--json"))["handlers"] if h["name"] == name]
    return found[0] if found else {}


@pytest.mark.parametrize("how", ["missing", "anybody's"])
def test_a_broken_plugin_stops_its_own_handler_and_no_other(site, how):
    break_plugin(site, how)
    configure(site).start()
    assert "level=error event=refused handler=mail" in site.log()
    site.submit([task("k", 1), task("m", 2, handler="mail")])
    site.wait_done(1)
    wait_until(lambda: handler(site, "mail").get("state") == "refused", "status says so")
    why = handler(site, "mail")["refused"]
    assert "mail.so" in why
    text = site.cli("status")
    assert "refused" in text and why[:60] in text
    site.cli("status", "--fail-if", "refused=1", code=1)
    site.cli("status", "--fail-if", "refused@work=1")
    assert ("mail", 0, "refused") in site.history()
    assert 2 not in site.starts()
    # Repaired, and taken up without a restart.
    site.install("ledger.so", "mail.so")
    site.hang_up()
    site.wait_done(2)
    wait_until(lambda: handler(site, "mail").get("state") == "open", "status says so")
    assert "refused" not in handler(site, "mail")
    site.cli("status", "--fail-if", "refused=1")


def test_a_handler_that_is_still_broken_at_a_reload_stays_refused(site):
    break_plugin(site, "missing")
    configure(site).start()
    assert site.actions(code=1)["mail"] == "refused"
    wait_until(lambda: handler(site, "mail").get("state") == "refused", "status says so")
    site.configure(work="")
    site.reload()
    wait_until(lambda: handler(site, "mail") == {}, "nobody asks for it any more")
    site.cli("status", "--fail-if", "refused=1")


def test_a_strict_host_does_not_start_without_one_of_its_plugins(site):
    break_plugin(site, "missing")
    configure(site)
    assert site.start("--strict", is_ready=False).wait() == 1
    assert "handler mail" in site.log() and "mail.so" in site.log()
