"""A host that is told to stop: what it still does, and what it leaves to others."""
import signal

import pytest

from hosts import wait_until


def task(key, number, words=""):
    return {"handler": "work", "key": key, "payload": f"{number} {words}".strip()}


def test_a_stopping_host_starts_no_further_call(host):
    """Also none that its runner has already: a stop takes as long as the calls that run, not as those behind them."""
    release = host.folder / "release"
    host.configure(work="").start()
    host.submit([task(f"k{n}", n, f"wait:{release}") for n in range(8)])
    wait_until(host.starts, "the first runs")
    host.signal()
    host.wait_for_log("event=stopping")
    release.touch()
    assert host.wait() == 0
    assert len(host.starts()) == 1
    host.start()
    host.wait_done(8)
    assert sorted(host.starts()) == list(range(8)), "each once, and at no cost"


@pytest.mark.parametrize("how", ["its drain is over", "a second signal"])
@pytest.mark.parametrize("waiting", [1, 3000], ids=["little waits", "more waits than a window holds"])
def test_a_call_cut_by_a_stopping_host_waits_for_nothing(host, how, waiting):
    """Its task stays where it is, and so do those that wait, for the next owner to start at once."""
    release = host.folder / "release"
    drain = "200ms" if how == "its drain is over" else "60s"
    host.configure(shards=1, change=lambda text: text.replace('drain = "20s"', f'drain = "{drain}"'), work="").start()
    host.submit([task("k", 1, f"deaf:{release}"), task("k", 2)])
    host.wait_started(1)
    host.submit([task(f"k{n}", n) for n in range(3, 3 + waiting)])
    wait_until(lambda: host.sum("submitted") == 2 + waiting, "all are there")
    host.signal()
    if how == "a second signal":
        host.wait_for_log("event=stopping")
        host.signal(signal.SIGINT)
    assert host.wait() == 0
    assert "event=cut-short" in host.log()
    assert "no handler" not in host.cli("key", "list")
    assert host.rows("side") == []
    release.touch()
    host.start()
    host.wait_done(2 + waiting)
