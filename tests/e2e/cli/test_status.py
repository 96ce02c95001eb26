"""quiver status and the control socket: what hosts say about themselves, and who is answered."""
import json
import os
import pty
import re
import select
import signal
import socket
import stat
import subprocess
import time

from hosts import Host, wait_until

SHARD = ["shard", "owner", "host", "epoch", "waiting", "running", "queued", "delayed", "in_flight", "parked", "dead", "oldest_ms"]
MEMBER = ["name", "nonce", "state", "weight", "shards", "age_ms", "version", "machine", "pid", "started_ms", "seats",
          "running", "done_rate"]
RATES = ["done_rate", "failed_rate", "run_p50_ms", "run_p99_ms"]
HANDLER = ["name", "plugin", "version", "generation", "state", "waiting", "running", "seats", "lent", "borrowed", "done", "retried",
           "later", "rejected", "crashed", "timed_out", "merged", "dead", "oldest_ms", *RATES, "hash"]
HOST_HANDLER = ["name", "plugin", "version", "generation", "hash", "state", "waiting", "running", "seats", "done", "retried",
                "later", "rejected", "crashed", "timed_out", "merged", "lent", "borrowed", *RATES, "oldest_ms",
                "generations"]
WHY = "it is down"


def task(key, payload, handler="work"):
    return {"handler": handler, "key": key, "payload": payload}


def status(host):
    return json.loads(host.cli("status", "--json"))


def handler(host, name="work"):
    return next((h for h in status(host)["handlers"] if h["name"] == name), None)


def named(name):
    return lambda text: f'host = {{ name = "{name}"; }};\n' + text


def socket_of(host, name="a"):
    return host.folder / "state" / f"{name}.sock"


def ask(path, data, ends=True, seconds=30):
    """All that comes back."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(seconds)
        s.connect(str(path))
        try:
            s.sendall(data)
            if ends:
                s.shutdown(socket.SHUT_WR)
        except BrokenPipeError:
            pass
        said = b""
        while True:
            try:
                more = s.recv(65536)
            except ConnectionResetError:
                return said
            if not more:
                return said
            said += more


# --- documents --------------------------------------------------------------------------------------------------------


def test_status_as_json_has_its_shape(host):
    host.configure(shards=8, change=named("a"), work="crashes = 1;", other="").start()
    host.submit([task("k", "1"), task("k", "2 reject"), task("j", "3 retry:1"), task("c", "4 crash")])
    wait_until(lambda: (handler(host) or {}).get("crashed") == 1, "the host has said so")
    wait_until(lambda: handler(host)["done"] == 2, "the host has said so")
    found = status(host)
    assert list(found) == ["app", "store", "coordination", "shards", "members", "handlers", "limits", "dead", "totals",
                           "rates", "problems"]
    assert [list(s) for s in found["shards"]] == [SHARD] * 8
    member, = found["members"]
    assert list(member) == MEMBER
    assert (member["name"], member["state"], member["weight"], member["shards"]) == ("a", "running", 1, 8)
    assert {s["owner"] for s in found["shards"]} == {member["nonce"]}
    assert all(list(h) == HANDLER for h in found["handlers"])
    assert [h["name"] for h in found["handlers"]] == ["work", "other"]
    work = found["handlers"][0]
    assert (work["plugin"], work["version"], work["generation"], work["state"]) == ("ledger.so", "1.0", 1, "open")
    assert (work["done"], work["retried"], work["rejected"], work["crashed"], work["timed_out"]) == (2, 1, 1, 1, 0)
    assert found["totals"]["dead"] == 2 and found["totals"]["done"] == 2
    assert set(found["rates"]) == {"done", "retried", "failed"}
    wait_until(lambda: handler(host)["run_p99_ms"] > 0, "it says how long they took")


def test_what_runs_and_how_old_it_is(host, tmp_path):
    host.configure(work="threads = 4;").start()
    host.submit([task(f"k{n}", f"{n} wait:{tmp_path}/go") for n in range(3)])
    wait_until(lambda: handler(host)["running"] == 3, "three run")
    wait_until(lambda: handler(host)["oldest_ms"] > 1000, "they grow old")
    (tmp_path / "go").touch()
    wait_until(lambda: handler(host)["done"] == 3, "they are done")
    wait_until(lambda: (handler(host)["running"], handler(host)["oldest_ms"]) == (0, 0), "nothing is left")


def test_the_rates_go_back_to_zero(host):
    host.configure(work="").start()
    host.submit([task(f"k{n}", str(n)) for n in range(100)])
    wait_until(lambda: status(host)["rates"]["done"] > 0, "it works")
    wait_until(lambda: status(host)["rates"]["done"] == 0, "it rests")


def test_handlers_say_in_what_state_they_are(host, tmp_path):
    down = tmp_path / "down"
    down.touch()
    host.configure(work="", other="", third="").start()
    host.cli("pause", "other")
    host.submit([task("k", f"1 down:{down}")])
    wait_until(lambda: [h["state"] for h in status(host)["handlers"]] == ["unavailable", "paused", "open"], "it is said")
    wait_until(lambda: handler(host).get("unavailable_ms", 0) > 1000, "it lasts")
    assert handler(host)["unavailable"] == WHY
    assert re.search(f"^  unavailable for [0-9.]+m?s: {WHY}$", host.cli("status"), re.M)
    assert host.log().count("event=unavailable ") == 1 and f'handler=work generation=1 since_ms=0 outages=1 error="{WHY}"' in host.log()
    assert "event=available " not in host.log()
    down.unlink()
    host.cli("resume", "other")
    wait_until(lambda: {h["state"] for h in status(host)["handlers"]} == {"open"}, "it is said")
    host.wait_for_log("event=available handler=work generation=1 after_ms=")
    assert host.log().count("event=available ") == 1
    assert list(handler(host)) == HANDLER and "unavailable" not in host.cli("status")


def test_a_host_that_left_is_no_member(host):
    host.configure(work="").start()
    wait_until(lambda: status(host)["members"], "it says that it is there")
    host.stop()
    assert status(host)["members"] == [] and status(host)["handlers"] == []


def test_a_host_that_died_is_soon_no_member(host):
    host.configure(work="").start()
    wait_until(lambda: status(host)["members"], "it says that it is there")
    host.kill()
    wait_until(lambda: status(host)["members"] == [], "it is forgotten")


def test_an_idle_host_stays_a_member(host):
    """Beyond the time after which a silent one is forgotten, though it has nothing new to say."""
    host.configure(work="").start()
    wait_until(lambda: status(host)["members"], "it says that it is there")
    end = time.monotonic() + 8
    while time.monotonic() < end:
        assert len(status(host)["members"]) == 1
        time.sleep(0.2)


def test_two_hosts_are_merged(quiver, host, tmp_path):
    host.configure(shards=8, change=named("a"), work="", other="").start()
    second = Host(quiver, host.plugins, tmp_path / "second")
    second.folder.mkdir()
    second.config.write_text(host.config.read_text().replace('name = "a"', 'name = "b"'))
    try:
        second.start()
        host.submit([task(f"k{n}", str(n)) for n in range(40)])
        wait_until(lambda: handler(host)["done"] == 40, "all are done")
        wait_until(lambda: sorted(m["name"] for m in status(host)["members"]) == ["a", "b"], "both say so")
        assert [h["name"] for h in status(host)["handlers"]] == ["work", "other"]
        assert handler(host)["version"] == "1.0"
    finally:
        second.close()


def test_hundreds_of_handlers_fit_or_are_counted(host):
    host.configure(shards=1, **{f"handler-with-a-long-name-{n:03}": "" for n in range(150)}).start()
    wait_until(lambda: status(host)["members"], "it says that it is there")
    row, = host.rows("status")
    assert len(row["document"]) <= 8192
    said = json.loads(row["document"])
    assert len(said["handlers"]) + said.get("handlers_left_out", 0) == 150 and len(said["handlers"]) > 50


# --- for people -------------------------------------------------------------------------------------------------------


def on_terminal(host, *words, **env):
    """What a command writes to a terminal of 24 lines."""
    ours, theirs = pty.openpty()
    shown = b""
    done = subprocess.Popen([host.quiver, *words, "-c", host.config], stdout=theirs, env={**os.environ, "TERM": "xterm", **env})
    os.close(theirs)
    try:
        while True:
            try:
                more = os.read(ours, 65536)
            except OSError:  # how a terminal says that nobody writes any more
                break
            if not more:
                break
            shown += more
        assert done.wait(60) == 0
    finally:
        os.close(ours)
    return shown.decode()


def test_many_shards_and_handlers_fit_a_screen_and_a_pipe_gets_all(host, tmp_path):
    host.configure(shards=1024, work="", **{f"h{n}": "" for n in range(20)}).start()
    wait_until(lambda: status(host)["members"], "it says that it is there")
    host.cli("pause")
    host.submit([task(f"k{n}", str(n)) for n in range(3000)])
    text = on_terminal(host, "status")
    assert len(text.splitlines()) <= 24, text
    assert "1024 shards" in text and "shards more" in text and "more (--json has all)" in text
    text = host.cli("status")
    assert "more" not in text and len(text.splitlines()) > 900 and "\nh19 " in text and "\033" not in text


def test_colours_are_for_terminals(host):
    host.configure(work="").start()
    host.cli("pause")
    assert "\033[33mPAUSED" in on_terminal(host, "status")
    assert "\033" not in on_terminal(host, "status", NO_COLOR="1")
    assert "\033" not in on_terminal(host, "status", TERM="dumb")
    assert "\033" not in host.cli("status")


def test_status_is_a_check(host, tmp_path):
    host.configure(work="").start()
    host.cli("status", "--fail-if", "dead=1", "--fail-if", "oldest=1h", "--fail-if", "waiting=1", "--fail-if", "parked=1")
    host.submit([task("k", "1 reject")])
    wait_until(lambda: host.rows("dead"), "it is dead")
    done = subprocess.run([host.quiver, "status", "-c", host.config, "--fail-if", "dead=1", "--fail-if", "waiting=5"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "1 dead" in done.stderr and "waiting" not in done.stderr and "shard" in done.stdout
    host.cli("status", "--fail-if", "dead=2")
    host.stop()
    host.submit([task("k", "2")])
    wait_until(lambda: subprocess.run([host.quiver, "status", "-c", host.config, "--fail-if", "oldest=1s"], timeout=60,
                                      capture_output=True).returncode == 1, "it waits too long")
    for wrong in ("oldest=soon", "oldest", "dead=0", "dead=x", "sad=1"):
        host.cli("status", "--fail-if", wrong, code=2)


def test_watch_repeats(host):
    host.configure(work="").start()
    plain = subprocess.Popen([host.quiver, "status", "-c", host.config, "--watch", "--json"], stdout=subprocess.PIPE)
    try:
        assert all(json.loads(plain.stdout.readline())["app"] == "test" for _ in range(2))
    finally:
        plain.kill()
        plain.wait()
        plain.stdout.close()


def test_watch_redraws_on_a_terminal(host):
    host.configure(work="").start()
    ours, theirs = pty.openpty()
    shown = b""
    watch = subprocess.Popen([host.quiver, "status", "-c", host.config, "--watch"], stdout=theirs)
    try:
        end = time.monotonic() + 60
        while shown.count(b"\033[H\033[J") < 2 and time.monotonic() < end:
            if select.select([ours], [], [], 1)[0]:
                shown += os.read(ours, 65536)
        assert shown.count(b"\033[H\033[J") >= 2 and b"waiting" in shown
        watch.send_signal(signal.SIGINT)
        watch.wait(30)
    finally:
        watch.kill()
        watch.wait()
        os.close(ours)
        os.close(theirs)


# --- the control socket -----------------------------------------------------------------------------------------------


def test_a_host_is_asked_by_name(host):
    host.configure(change=named("a"), work="").start()
    assert stat.S_IMODE(socket_of(host).stat().st_mode) == 0o600
    pong = json.loads(ask(socket_of(host), b'{"verb": "ping"}\n'))
    assert (pong["ok"], pong["name"], pong["pid"]) == (True, "a", host.process.pid)
    fresh = json.loads(host.cli("status", "--host", "a"))
    assert fresh["name"] == "a" and [list(h) for h in fresh["handlers"]] == [HOST_HANDLER]
    host.stop()
    assert not socket_of(host).exists()
    host.cli("status", "--host", "a", code=3)


def test_a_second_host_of_one_name_is_refused(quiver, host, tmp_path):
    host.configure(change=named("a"), work="").start()
    second = Host(quiver, host.plugins, tmp_path)
    second.config, second.logs = host.config, list(host.logs)
    try:
        assert second.start(is_ready=False).wait() == 1
        del second.logs[:-1]  # the other is the first one's, which goes on writing it
        assert f"(pid {host.process.pid})" in second.log() and "quiver run --name NAME" in second.log()
    finally:
        second.close()
    assert json.loads(host.cli("status", "--host", "a"))["pid"] == host.process.pid


def test_the_socket_of_a_dead_host_is_replaced(host):
    host.configure(change=named("a"), work="").start()
    host.kill()
    assert socket_of(host).exists()
    host.start()
    assert json.loads(host.cli("status", "--host", "a"))["pid"] == host.process.pid
    assert len(list((host.folder / "state").glob("*.sock"))) == 1


def test_nothing_said_there_stops_the_host(host, chance):
    host.configure(change=named("a"), work="").start()
    path = socket_of(host)
    for bad in (b"\n", b"garbage\n", b"{}\n", b"[]\n", b'{"verb": "explode"}\n', b"\0" * 100 + b"\n", b'{"verb": "ping"',
                b"[" * 60000 + b"\n", b'{"verb": ["ping"]}\n', bytes(range(256)) + b"\n"):
        said = json.loads(ask(path, bad))
        assert said["ok"] is False and said["error"]
    assert json.loads(ask(path, b"x" * 300000, ends=False))["error"] == "a request has at most 65536 bytes"
    for _ in range(200):
        ask(path, chance.randbytes(chance.randrange(1, 3000)))
    idle = [socket.socket(socket.AF_UNIX) for _ in range(40)]
    for s in idle:
        s.setblocking(False)
        try:
            s.connect(str(path))
        except BlockingIOError:
            pass
    host.submit([task("k", "1")])
    host.wait_done(1)
    for s in idle:
        s.close()
    # Those who say nothing are let go, and so is the place that they had.
    wait_until(lambda: json.loads(ask(path, b'{"verb": "ping"}\n'))["ok"], "there is room again")
    assert host.stop() == 0
