"""A host's log: pure logfmt, JSON or fields of the journal through a bad day, a line for what costs a task something, one line for an outage."""
import json
import os
import re
import socket
import struct
import subprocess

import pytest

from hosts import wait_until

PAIR = re.compile(r'([a-z][a-z0-9_]*)=("(?:[^"\\\x00-\x1f]|\\["\\nt]|\\x[0-9a-f]{2})*"|[^\s"=\\]+)')


def task(key, payload, handler="work"):
    return {"handler": handler, "key": key, "payload": payload}


def parsed(line):
    """The pairs of a line, in order; fails unless the line is nothing but pairs with one space between them."""
    pairs, at = [], 0
    while at < len(line):
        found = PAIR.match(line, at)
        assert found, f"not logfmt at {line[at:at + 60]!r} in {line!r}"
        pairs.append(found.groups())
        at = found.end()
        if at < len(line):
            assert line[at] == " ", f"not logfmt at {line[at:at + 60]!r} in {line!r}"
            at += 1
    return pairs


def lines(host):
    return [dict(parsed(line)) for log in host.logs for line in log.read_bytes().decode(errors="replace").splitlines()]


def events(host, name):
    return [line for line in lines(host) if line["event"] == name]


def test_every_line_of_a_bad_day_is_logfmt(host, tmp_path):
    (tmp_path / "down").touch()
    host.configure(shards=2, work="crashes = 2; timeout = \"300ms\";", other="").start()
    odd = 'k "quoted" = \\ back\u00e9'
    host.submit([task(odd, "1 reject"), task(odd, "2 retry:9"), task("c", "3 crash"), task("t", f"4 deaf:{tmp_path}/never"),
                 task("d", f"5 down:{tmp_path}/down", "other"), task("u", "6", "nobody"), task("b", "7 submit:bad")])
    wait_until(lambda: len(host.rows("dead")) >= 4, "all that can die is dead")
    host.config.write_text(host.config.read_text().replace("crashes = 2", "crashes = what"))
    host.cli("reload", "--wait", code=1)
    host.kill()
    host.config.write_text(host.config.read_text().replace("crashes = what", "crashes = 2"))
    host.start()
    (tmp_path / "down").unlink()
    wait_until(lambda: events(host, "available") or host.sum("done") >= 2, "it goes on")
    host.stop()
    for line in lines(host):
        names = list(line)
        assert names[:3] == ["time", "level", "event"], line
        assert line["level"] in ("error", "warn", "info", "debug")
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", line["event"]), line["event"]
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])


def a_day(host):
    """Tasks that end in every way, with keys and texts that need quotes, and a guard that has something to say."""
    host.start(is_ready=False)
    host.wait_for_log('"event":"running"')
    host.submit([task('k "quoted" = \\ back\u00e9', "1 reject"), task("42", "2 retry:9"), task("c", "3 crash")])
    wait_until(lambda: len(host.rows("dead")) == 3, "all are dead")
    host.kill()


def test_as_json_every_line_is_an_object_with_the_same_names(host):
    host.configure(shards=2, work="crashes = 1;")
    host.config.write_text(host.config.read_text().replace("log = {", 'log = { format = "json";'))
    a_day(host)
    wait_until(lambda: any('"event":"guard"' in log.read_text() for log in host.logs), "the guard has cleaned up")
    seen = [json.loads(line, object_pairs_hook=lambda pairs: pairs) for log in host.logs for line in log.read_text().splitlines()]
    for pairs in seen:
        names = [name for name, _ in pairs]
        assert names[:3] == ["time", "level", "event"] and len(names) == len(set(names)), pairs
    by_event = {}
    for pairs in seen:
        by_event.setdefault(dict(pairs)["event"], []).append(dict(pairs))
    assert by_event["rejected"][0]["key"] == 'k "quoted" = \\ back\u00e9' and by_event["rejected"][0]["attempt"] == 1
    assert by_event["exhausted"][0]["key"] == "42", "a key that looks like a number is a string all the same"
    assert {"task", "handler", "key", "error"} <= set(by_event["dead"][0])
    assert by_event["guard"][0]["runners"] >= 1


def fields(datagram):
    """What the journal would keep: its native protocol."""
    found, at = {}, 0
    while at < len(datagram):
        line = datagram[at:datagram.index(b"\n", at)]
        at += len(line) + 1
        if b"=" in line:
            name, value = line.split(b"=", 1)
        else:
            size, = struct.unpack_from("<Q", datagram, at)
            name, value = line, datagram[at + 8:at + 8 + size]
            at += 8 + size
            assert datagram[at:at + 1] == b"\n"
            at += 1
        assert name not in found and re.fullmatch(rb"[A-Z][A-Z0-9_]*", name), name
        found[name.decode()] = value.decode()
    return found


def test_the_journal_gets_fields(host, tmp_path):
    journal = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    journal.bind(str(tmp_path / "journal"))
    journal.settimeout(30)
    host.configure(shards=2, work="crashes = 1;")
    journalled = f'log = {{ format = "journal"; journal = "{tmp_path}/journal";'
    host.config.write_text(host.config.read_text().replace("log = {", journalled))
    host.start(is_ready=False)
    seen = []

    def until(event):
        while not seen or seen[-1]["QUIVER_EVENT"] != event:
            seen.append(fields(journal.recv(65536)))
        return seen[-1]

    until("running")
    host.submit([task("two words", "1 reject")])
    told = until("rejected")
    assert (told["QUIVER_KEY"], told["PRIORITY"], told["SYSLOG_IDENTIFIER"]) == ("two words", "4", "quiver")
    assert told["MESSAGE"].startswith("rejected handler=work task=")
    host.kill()
    assert int(until("guard")["QUIVER_RUNNERS"]) >= 1
    assert not any(log.read_text() for log in host.logs), "nothing goes to standard error beside it"


JOURNALD = """
mount -t tmpfs none /run && mount -t tmpfs none /var/log && mkdir -p /run/systemd/journal /run/log/journal || exit 77
/lib/systemd/systemd-journald 2>{folder}/journald.log & journald=$!
for i in $(seq 100); do [ -S /run/systemd/journal/socket ] && break; sleep 0.1; done
[ -S /run/systemd/journal/socket ] || exit 77
{quiver} run -c {config} 2>{folder}/host.log & host=$!
found() {{ journalctl -D /run/log/journal -o json --no-pager QUIVER_EVENT=$1 | grep -q .; }}
for i in $(seq 300); do found running && break; sleep 0.2; done
{quiver} submit work --key 'two words' --traceparent {parent} '1 reject' -c {config}
for i in $(seq 300); do found rejected && break; sleep 0.2; done
journalctl -D /run/log/journal -o json --no-pager -t quiver > {folder}/journal
kill $host; wait $host; kill $journald; wait $journald
exit 0
"""


def test_a_real_journal_keeps_the_fields(host, tmp_path):
    """journald of systemd, in a mount namespace of its own: where that cannot be had, this is skipped."""
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    host.configure(shards=2, work="")
    host.config.write_text(host.config.read_text().replace("log = {", 'log = { format = "journal";'))
    script = JOURNALD.format(quiver=host.quiver, config=host.config, folder=tmp_path, parent=f"00-{trace}-00f067aa0ba902b7-01")
    if os.geteuid() or not os.path.exists("/lib/systemd/systemd-journald"):
        pytest.skip("needs root and systemd-journald")
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, timeout=240)
    if done.returncode == 77 or "unshare" in done.stderr:
        # In a chroot whose root is no mount point unshare fails; without journald's socket the script says nothing.
        pytest.skip(f"no journald in a mount namespace of its own can be had here: {done.stderr.strip() or 'it did not start'}")
    entries = [json.loads(line) for line in (tmp_path / "journal").read_text().splitlines()]
    told, = [entry for entry in entries if entry["QUIVER_EVENT"] == "rejected"]
    assert (told["QUIVER_KEY"], told["QUIVER_HANDLER"], told["QUIVER_TRACE"]) == ("two words", "work", trace)
    assert (told["PRIORITY"], told["QUIVER_LEVEL"], told["SYSLOG_IDENTIFIER"]) == ("4", "warn", "quiver")
    assert told["QUIVER_TASK"] and told["_TRANSPORT"] == "journal" and told["_COMM"] == "quiver"


def test_what_costs_a_task_something_has_a_line(host):
    host.configure(shards=2, work="crashes = 1;", held='on_exhausted = "hold";').start()
    host.submit([task("a", "1 reject"), task("b", "2 retry:9"), task("c", "3 crash"), task("d", "4 retry:9", "held")])
    for name, key, reason in (("rejected", "a", "rejected"), ("exhausted", "b", "exhausted"), ("dead", "c", "crashed"),
                              ("held", "d", "exhausted")):
        wait_until(lambda: events(host, name), f"event={name}")
        line, = events(host, name)
        assert (line["level"], line["key"], line["reason"]) == ("warn", key, reason) and line["task"] and line["error"], line
        assert line["handler"] == ("held" if name == "held" else "work") and int(line["attempt"]) >= 1
    retries = events(host, "retry")
    assert {r["key"] for r in retries} == {"b", "d"} and all(r["level"] == "debug" and r["again_ms"] for r in retries)


def test_many_deaths_are_some_lines_and_a_count(host):
    host.configure(shards=2, work="").start()
    host.submit([task(f"k{n}", f"{n} reject") for n in range(500)])
    wait_until(lambda: len(host.rows("dead")) == 500, "all are dead")
    wait_until(lambda: len(events(host, "rejected")) + sum(int(e["rejected"]) for e in events(host, "tasks-given-up")) == 500,
               "every one has a line or is counted")
    assert 20 <= len(events(host, "rejected")) <= 400 and events(host, "tasks-given-up")


def test_an_outage_of_the_store_is_one_line(redis_host):
    host = redis_host.configure(shards=64, work="").start()
    host.submit([task(f"k{n}", str(n)) for n in range(64)])
    wait_until(lambda: json.loads(host.cli("status", "--json"))["totals"]["done"] == 64, "it works")
    host.redis.kill()
    wait_until(lambda: events(host, "store-away"), "it is told")
    host.redis.start()
    wait_until(lambda: events(host, "store-back"), "it is told")
    assert len(events(host, "store-away")) == 1 and events(host, "store-away")[0]["level"] == "warn"
    assert {line["event"] for line in lines(host) if line["level"] == "error"} <= {"store-emptied"}  # it kept nothing on disk
