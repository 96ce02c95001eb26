"""What a person is told of hosts that come and go, and of names that nobody knows."""
import json
import os
import pty
import subprocess
import time

from hosts import Host, wait_until


def named(name):
    return lambda text: f'host = {{ name = "{name}"; }};\n' + text


def status(host):
    return json.loads(host.cli("status", "--json"))


def said(host, *words):
    done = subprocess.run([host.quiver, *words, "-c", host.config], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_members_say_where_and_what_they_are(host):
    host.configure(shards=4, change=named("a"), work="threads = 3;").start()
    wait_until(lambda: any(m.get("pid") == host.process.pid for m in json.loads(host.cli("members", "--json"))["members"]), "it is told")
    member, = json.loads(host.cli("members", "--json"))["members"]
    assert member["machine"] == os.uname().nodename and member["seats"] == 3 and member["version"] and member["started_ms"] > 0
    assert str(host.process.pid) in host.cli("members") and os.uname().nodename[:24] in host.cli("members")


def test_a_host_without_shards_stands_by(quiver, host, tmp_path):
    host.configure(shards=1, change=named("a"), work="").start()
    second = Host(quiver, host.plugins, tmp_path / "second")
    second.folder.mkdir()
    second.config.write_text(host.config.read_text().replace('name = "a"', 'name = "b"'))
    try:
        second.start()
        wait_until(lambda: {m["state"] for m in status(host)["members"]} == {"running", "standby"}, "one of them stands by")
        wait_until(lambda: {m["state"] for m in json.loads(host.cli("members", "--json"))["members"]} == {"active", "standby"}, "so too here")
    finally:
        second.close()


def test_a_killed_host_is_not_shown_as_running(host):
    """Its guard takes its documents away, long before they expire."""
    host.configure(shards=4, change=lambda text: named("a")(text).replace('ttl = "1s"', 'ttl = "30s"'), work="").start()
    wait_until(lambda: [m["name"] for m in status(host)["members"]] == ["a"], "it is there")
    host.kill()
    wait_until(lambda: status(host)["members"] == [], "it is gone", seconds=30)


def test_a_killed_host_without_shards_is_not_shown_either(quiver, host, tmp_path):
    """It had no lease that could be returned."""
    host.configure(shards=1, change=lambda text: named("a")(text).replace('ttl = "1s"', 'ttl = "30s"'), work="").start()
    wait_until(lambda: [m["state"] for m in status(host)["members"]] == ["running"], "it has the shard")
    second = Host(quiver, host.plugins, tmp_path / "second")
    second.folder.mkdir()
    second.config.write_text(host.config.read_text().replace('name = "a"', 'name = "b"'))
    try:
        second.start()
        wait_until(lambda: len(status(host)["members"]) == 2, "the other stands by")
        second.kill()
        wait_until(lambda: [m["name"] for m in status(host)["members"]] == ["a"], "it is gone", seconds=20)
    finally:
        second.close()


def test_a_name_that_nobody_knows_is_warned_of(host):
    host.configure(shards=2, change=named("host-a"), work="").start()
    wait_until(lambda: status(host)["members"], "the host has said that it is there")
    warning = said(host, "members", "drain", "host-z")
    assert "no host knows the host host-z" in warning and "did you mean host-a?" in warning and "; there is host-a" in warning
    warning = said(host, "pause", "wrk")
    assert "no host knows the handler wrk" in warning and "did you mean work?" in warning
    assert said(host, "pause", "work") == "" and said(host, "members", "drain", "host-a") == ""
    assert said(host, "resume", "wrk") == ""


def on_terminal(words, feed):
    """What a command writes to standard error that is a terminal; `feed` writes to its standard input."""
    ours, theirs = pty.openpty()
    done = subprocess.Popen(list(map(str, words)), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    shown = b""
    try:
        feed(done.stdin)
        done.stdin.close()
        while True:
            try:
                more = os.read(ours, 65536)
            except OSError:
                break
            if not more:
                break
            shown += more
        assert done.wait(120) == 0, shown
    finally:
        os.close(ours)
    return shown.decode()


def test_long_work_shows_how_far_it_is_on_a_terminal_only(host):
    host.configure(shards=4, work="").start()
    host.stop()

    def feed(pipe):
        for n in range(6):
            pipe.write(b"".join(b"k%d\t%d\n" % (i, i) for i in range(1000)))
            pipe.flush()
            time.sleep(0.1)

    words = [host.quiver, "submit", "work", "--lines", "-c", host.config]
    shown = on_terminal(words, feed)
    assert "submit: " in shown and "/s" in shown and shown.endswith("\r\033[K"), shown
    done = subprocess.run([*words], input=b"k\tx\n" * 3000, capture_output=True, timeout=60)
    assert done.returncode == 0 and done.stderr == b""
