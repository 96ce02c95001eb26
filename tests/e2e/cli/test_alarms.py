"""quiver status --fail-if: every alarm that a person can set fires, with and without a host, whoever holds the task."""
import json
import subprocess

from hosts import Host, wait_until


def task(key, payload, handler="work"):
    return {"handler": handler, "key": key, "payload": payload}


def status(host):
    return json.loads(host.cli("status", "--json"))


def alarm(host, *conditions):
    """What it says, or None if no condition is reached."""
    words = [word for condition in conditions for word in ("--fail-if", condition)]
    done = subprocess.run([host.quiver, "status", "-c", host.config, *words], capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, 1), done.stderr
    return done.stderr if done.returncode else None


def fires(host, condition, says):
    wait_until(lambda: says in (alarm(host, condition) or ""), f"{condition} fires")


def test_what_a_host_has_claimed_waits_too(host, tmp_path):
    """A thousand tasks in the window of a busy host were once nobody's: neither queued nor old."""
    host.configure(shards=4, work="").start()
    host.submit([task(f"k{n}", f"{n} wait:{tmp_path}/go") for n in range(200)])
    wait_until(lambda: status(host)["totals"]["running"] == 1, "one runs")
    totals = status(host)["totals"]
    assert totals["waiting"] == 199 and totals["queued"] < 199, totals
    assert sum(s["waiting"] for s in status(host)["shards"]) == 199
    fires(host, "oldest=1s", "the oldest waits for ")
    fires(host, "waiting=199", "199 waiting, and the limit is 199")
    fires(host, "waiting@work=150", "work: ")
    fires(host, "oldest@work=1s", "work: the oldest waits for ")
    assert alarm(host, "waiting=200", "oldest=1h", "waiting@other=1", "oldest@other=1s") is None
    host.kill()
    fires(host, "oldest=1s", "the oldest waits for ")
    fires(host, "waiting=200", "200 waiting")
    wait_until(lambda: status(host)["totals"]["running"] == 0, "nothing runs without an owner")
    fires(host, "oldest@work=1s", "work: the oldest waits for ")
    fires(host, "waiting@work=150", "work: ")
    wait_until(lambda: [h["state"] for h in status(host)["handlers"]] == ["unserved"], "no host says anything of it")


def test_what_is_paused_unserved_or_down_waits_too(host, tmp_path):
    (tmp_path / "down").touch()
    host.configure(shards=2, work="", other="").start()
    host.cli("pause", "other")
    host.submit([task("p", "1", "other"), task("u", "2", "nobody"), task("d", f"3 down:{tmp_path}/down")])
    for name in ("other", "nobody", "work"):
        fires(host, f"oldest@{name}=1s", f"{name}: the oldest waits for ")
    fires(host, "waiting=3", "3 waiting")
    fires(host, "unavailable=1", "1 handler unavailable")
    fires(host, "unavailable@work=1", "work: 1 handler unavailable")
    assert alarm(host, "unavailable@other=1", "quarantined=1", "refused=1", "versions=1") is None


def test_parked_is_parked_and_held_is_held(host, tmp_path):
    """A busy key's surplus is neither."""
    host.configure(shards=2, change=lambda text: text.replace('backoff = "20ms"; max = "100ms"', 'backoff = "1h"; max = "1h"')
                   + "window = { per_key = 1; };\n", work="threads = 2;").start()
    host.submit([task("busy", f"{n} wait:{tmp_path}/go") for n in range(40)])
    assert alarm(host, "parked=1", "held=1") is None
    host.submit([task("p", "1 retry:9")])
    fires(host, "parked=1", "1 key parked")
    assert alarm(host, "parked=2", "held=1") is None
    host.cli("key", "hold", "h")
    fires(host, "held=1", "1 key held")
    assert "Keys that wait for a person: 1" in host.cli("status")


def test_hosts_shards_dead_and_dropped_results(host):
    host.configure(shards=2, change=lambda text: text.replace('"normal";', '"normal"; results = { max = 3; };'), work="").start()
    wait_until(lambda: alarm(host, "unowned=1", "dead=1", "dropped_results=1") is None, "the host has its shards")
    fires(host, "hosts=2", ", and there should be 2")
    wait_until(lambda: alarm(host, "hosts=1") is None, "the host has said that it is there")
    host.submit([task("k", "1 reject"), task("k", "2 reject")])
    fires(host, "dead=2", "2 dead")
    fires(host, "dead@work=2", "work: 2 dead")
    assert status(host)["dead"][0]["tasks"] == 2
    host.submit([task("r", f"{n} result") for n in range(9)])
    fires(host, "dropped_results=1", "results dropped")
    assert "results were dropped" in host.cli("status")
    host.stop()
    fires(host, "hosts=1", "0 hosts, and there should be 1")
    fires(host, "unowned=2", "2 shards without an owner")


def test_hosts_that_differ(quiver, host, tmp_path):
    host.configure(shards=2, change=lambda text: 'host = { name = "a"; };\n' + text, work="").start()
    second = Host(quiver, tmp_path / "plugins", tmp_path / "second")
    second.folder.mkdir()
    second.plugins.mkdir()
    (second.plugins / "ledger.so").write_bytes((host.plugins / "ledger.so").read_bytes() + b"\0")
    second.config.write_text(host.config.read_text().replace('name = "a"', 'name = "b"')
                             .replace(f'plugins = "{host.plugins}"', f'plugins = "{second.plugins}"'))
    try:
        second.start()
        fires(host, "versions=1", "different versions")
        fires(host, "versions@work=1", "different versions")
    finally:
        second.close()


def test_a_handlers_counts_do_not_fall_at_a_restart(host):
    host.configure(shards=2, work="").start()
    host.submit([task(f"k{n}", str(n)) for n in range(20)])
    wait_until(lambda: status(host)["handlers"] and status(host)["handlers"][0]["done"] == 20, "they are counted")
    assert host.stop() == 0
    host.start()
    host.submit([task("k", "20")])
    wait_until(lambda: status(host)["handlers"] and status(host)["handlers"][0]["done"] == 21, "they are counted on")
    host.kill()
    host.start()
    wait_until(lambda: status(host)["handlers"] and status(host)["handlers"][0]["done"] == 21, "also after a crash")


def test_a_condition_that_there_is_not_is_refused_by_name(host):
    host.configure(work="").start()
    for wrong in ("queued=1", "sad=1", "parked@work=1", "hosts@work=1", "oldest", "oldest=soon", "dead=0", "dead=-1", "=1",
                  "dead@=1", "dead@a b=1"):
        said = subprocess.run([host.quiver, "status", "-c", host.config, "--fail-if", wrong], capture_output=True, text=True,
                              timeout=60)
        assert said.returncode == 2, wrong
    for wrong in ("queued=1", "sad=1"):
        said = subprocess.run([host.quiver, "status", "-c", host.config, "--fail-if", wrong], capture_output=True, text=True,
                              timeout=60)
        for name in ("oldest", "waiting", "dead", "parked", "held", "hosts", "unowned", "unavailable", "quarantined", "refused",
                     "dropped_results", "versions"):
            assert name in said.stderr
