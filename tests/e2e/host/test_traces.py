"""A trace goes from a producer through handlers and follow-ups, on whatever host, and its spans reach a receiver, once each."""
import json
import os
import re
import subprocess
import sys
import zlib

import pytest

from fleet import Backing, Fleet
from hosts import wait_until
from otlp import Receiver, as_text

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"

WORKER = '''
import json, os, sys
sys.path.insert(0, "{root}/sdk/pipe/python")
import quiver_pipe

def handle(task):
    words = task.payload.decode().split()
    with open("{folder}/seen", "a") as seen:
        seen.write(json.dumps(dict(id=task.id, key=task.key, headers=task.headers, env=dict((name, os.environ.get(name))
                   for name in ("TRACEPARENT", "TRACESTATE")))) + "\\n")
    if words and words[0] == "then":
        task.tell("submit", " ".join(words[2:]).encode(), handler="chain", key=words[1])
    if words and words[0] == "own":
        task.tell("submit", b"", handler="chain", key="own", **{{"header.traceparent": words[1]}})
    if words and words[0] == "fail":
        raise quiver_pipe.Outcome("reject", "no good")

quiver_pipe.serve(handle)
'''

HANDLERS = '''
  chain = {{ plugin = "{root}/plugins/pipe.so"; config = {{ command = ["{python}", "{folder}/worker.py"]; }};
    retry = {{ attempts = 2; backoff = "20ms"; }}; }};
  outside = {{ plugin = "remote"; }};
  shell = {{ plugin = "{root}/plugins/exec.so"; config = {{ shell = "printf '%s %s' \\"$TRACEPARENT\\" \\"$TRACESTATE\\""; }}; }};
'''


@pytest.fixture
def receiver():
    made = Receiver()
    yield made
    made.close()
    assert not made.problems, made.problems


def settings(receiver, more="ratio = 1.0;"):
    return f'traces = {{ url = "{receiver if isinstance(receiver, str) else receiver.url}"; interval = "100ms"; {more} }};\n'


def prepare(root, folder):
    (folder / "worker.py").write_text(WORKER.format(root=root, folder=folder))
    return HANDLERS.format(root=root, folder=folder, python=sys.executable)


def configure(host, root, tmp_path, top, **handlers):
    handlers = handlers or {"work": "crashes = 2;"}
    texts = prepare(root, tmp_path)
    return host.configure(shards=8, change=lambda text: text.replace("handlers = {", top + "handlers = {" + texts), **handlers)


def seen(folder):
    path = folder / "seen"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def attempts(spans):
    return [span for span in spans if span["name"].startswith("process ")]


def waits(spans):
    return [span for span in spans if span["name"].startswith("wait ")]


def metric(host, result):
    text = host.cli("status", "--json")  # it runs
    assert text
    path = next((host.folder / "state").glob("*.http"), None) or next(host.folder.glob("state-*/*.http"))
    done = subprocess.run(["curl", "-s", "--unix-socket", str(path), "http://localhost/metrics"], capture_output=True, text=True)
    return int(float(re.search(rf'quiver_trace_spans_total{{result="{result}"}} (\S+)', done.stdout)[1]))


def test_a_trace_of_three_hops_over_two_hosts(quiver, root, tmp_path, receiver, capsys):
    """submit → handler → follow-up on another host's shard → follow-up: each is the child of the one that submitted it."""
    fleet = Fleet(quiver, root / "build" / "test-plugins", tmp_path, Backing(tmp_path))
    texts = prepare(root, tmp_path)
    for name in ("host-a", "host-b"):
        fleet.add(name, change=lambda text: text.replace("handlers = {", settings(receiver) + "handlers = {" + texts))
    a, b = fleet.members.values()
    try:
        a.start(), b.start()
        wait_until(lambda: a.shards() and b.shards() and len(a.shards()) + len(b.shards()) == 20, "both own shards")
        where = {shard: host.name for host in (a, b) for shard in host.shards()}
        keys = {}
        for number in range(200):
            keys.setdefault(where[zlib.crc32(f"person-{number}".encode()) % 20], []).append(f"person-{number}")
        one, two, three = keys["host-a"][0], keys["host-b"][0], keys["host-a"][1]
        a.cli("submit", "chain", "--key", one, "--traceparent", PARENT, f"then {two} then {three} end")
        wait_until(lambda: len(receiver.of(TRACE)) >= 6, "three waits and three attempts")
        spans = receiver.of(TRACE)
        assert len(spans) == 6 and len({span["spanId"] for span in spans}) == 6, as_text(spans)
        hops = sorted(attempts(spans), key=lambda span: span["start"])
        assert [hop["attributes"]["quiver.host"] for hop in hops] == ["host-a", "host-b", "host-a"]
        assert [hop["resource"]["quiver.host"] for hop in hops] == ["host-a", "host-b", "host-a"]
        assert [hop["parentSpanId"] for hop in hops] == [SPAN, hops[0]["spanId"], hops[1]["spanId"]]
        for hop in hops:
            assert hop["links"] == [{"traceId": TRACE, "spanId": hop["parentSpanId"]}]
            assert hop["kind"] == 5 and hop["attributes"]["quiver.outcome"] == "done" and hop["status"] == {}
            assert re.fullmatch(r"\d+\.\d+", hop["attributes"]["quiver.fence"]) and hop["attributes"]["quiver.attempt"] == 1
        for key, hop in zip((one, two, three), hops):
            assert key not in json.dumps(hop), "a key may name a person: only its hash goes out"
            assert re.fullmatch("[0-9a-f]{16}", hop["attributes"]["quiver.key_hash"])
        assert {wait["parentSpanId"] for wait in waits(spans)} == {hop["parentSpanId"] for hop in hops}
        found = {entry["key"]: entry for entry in seen(tmp_path)}
        for key, hop in zip((one, two, three), hops):
            given = f"00-{TRACE}-{hop['spanId']}-01"
            assert found[key]["headers"]["traceparent"] == found[key]["env"]["TRACEPARENT"] == given
        with capsys.disabled():
            if os.environ.get("QUIVER_SHOW"):
                print("\n" + as_text(spans))
    finally:
        fleet.close()


def test_an_attempt_that_crashes_has_its_span_with_the_crash(host, root, tmp_path, receiver):
    configure(host, root, tmp_path, settings(receiver)).start()
    host.submit([{"handler": "work", "key": "c", "payload": "1 crash", "headers": {"traceparent": PARENT, "tracestate": "a=1,b=2"}}])
    wait_until(lambda: len(attempts(receiver.of(TRACE))) == 2, "both attempts")
    first, last = sorted(attempts(receiver.of(TRACE)), key=lambda span: span["start"])
    assert first["attributes"]["quiver.outcome"] == last["attributes"]["quiver.outcome"] == "crashed"
    assert "SIG" in first["events"]["crash"]["exception.message"] and first["status"]["code"] == 2
    assert "retry" in first["events"] and last["events"]["dead"]["quiver.reason"] == "crashed"
    assert first["attributes"]["quiver.crashes"] == 0 and last["attributes"]["quiver.crashes"] == 1
    assert first["spanId"] != last["spanId"] and first["parentSpanId"] == last["parentSpanId"] == SPAN
    assert first["traceState"] == "a=1,b=2"
    assert len(waits(receiver.of(TRACE))) == 1, "it waited for its first start once"
    lines = [line for line in host.log().splitlines() if "event=crash" in line or "event=dead" in line]
    assert lines and all(f" trace={TRACE} " in line for line in lines), lines


def test_a_trace_begins_where_none_came_and_one_that_is_malformed_is_counted(host, root, tmp_path, receiver):
    configure(host, root, tmp_path, settings(receiver)).start()
    host.submit([{"handler": "chain", "key": "k", "payload": "then k2 end"},
                 {"handler": "chain", "key": "m", "payload": "x", "headers": {"traceparent": "00-" + "0" * 32 + "-" + SPAN + "-01", "tracestate": "a=1"}}])
    wait_until(lambda: len(attempts(receiver.spans)) == 3, "three attempts")
    by_key = {entry["key"]: entry["headers"]["traceparent"].split("-") for entry in seen(tmp_path)}
    assert by_key["k"][1] == by_key["k2"][1] != by_key["m"][1]
    spans = receiver.of(by_key["k"][1])
    root_span, = [span for span in spans if "parentSpanId" not in span]
    assert root_span["name"] == "wait chain" and "links" not in root_span
    first, second = sorted(attempts(spans), key=lambda span: span["start"])
    assert first["parentSpanId"] == root_span["spanId"] and second["parentSpanId"] == first["spanId"] == by_key["k"][2]
    assert next(entry for entry in seen(tmp_path) if entry["key"] == "m")["env"]["TRACESTATE"] is None, "it belongs to the other"
    path = next((tmp_path / "state").glob("*.http"))
    text = subprocess.run(["curl", "-s", "--unix-socket", str(path), "http://localhost/metrics"], capture_output=True, text=True).stdout
    assert "quiver_trace_malformed_total 1\n" in text


def test_what_the_parent_says_decides_and_else_the_ratio(host, root, tmp_path, receiver):
    configure(host, root, tmp_path, settings(receiver, "ratio = 0.0;")).start()
    unsampled = f"00-{TRACE[::-1]}-{SPAN}-00"
    host.submit([{"handler": "chain", "key": "no", "payload": "then no2 end", "headers": {"traceparent": unsampled}},
                 {"handler": "chain", "key": "none", "payload": "x"},
                 {"handler": "chain", "key": "yes", "payload": "x", "headers": {"traceparent": PARENT}}])
    wait_until(lambda: attempts(receiver.of(TRACE)) and len(seen(tmp_path)) == 4, "all ran")
    host.stop()
    assert {span["traceId"] for span in receiver.spans} == {TRACE}
    flags = {entry["key"]: entry["headers"]["traceparent"][-2:] for entry in seen(tmp_path)}
    assert flags == {"no": "00", "no2": "00", "none": "00", "yes": "01"}


def test_a_handler_may_say_which_span_its_follow_up_is_of(host, root, tmp_path, receiver):
    configure(host, root, tmp_path, settings(receiver)).start()
    own = f"00-{TRACE}-{'ab' * 8}-01"
    host.submit([{"handler": "chain", "key": "k", "payload": f"own {own}", "headers": {"traceparent": PARENT}}])
    wait_until(lambda: len(attempts(receiver.of(TRACE))) == 2, "both")
    _, second = sorted(attempts(receiver.of(TRACE)), key=lambda span: span["start"])
    assert second["parentSpanId"] == "ab" * 8


def test_without_traces_a_trace_is_passed_on_as_it_came(host, root, tmp_path):
    configure(host, root, tmp_path, "").start()
    host.submit([{"handler": "chain", "key": "k", "payload": "then k2 end", "headers": {"traceparent": PARENT, "tracestate": "a=1"}},
                 {"handler": "chain", "key": "plain", "payload": "then plain2 end"}])
    wait_until(lambda: len(seen(tmp_path)) == 4, "all ran")
    found = {entry["key"]: entry for entry in seen(tmp_path)}
    assert found["k"]["headers"] == found["k2"]["headers"] == {"traceparent": PARENT, "tracestate": "a=1"}
    assert found["plain"]["headers"] == found["plain2"]["headers"] == {}


def test_the_command_line_takes_its_trace_from_the_environment(host, root, tmp_path, receiver):
    configure(host, root, tmp_path, settings(receiver)).start()

    def submit(*words, **environment):
        return subprocess.run([host.quiver, "submit", *words, "-c", host.config], env={**os.environ, **environment},
                              capture_output=True, text=True)

    given = submit("shell", "--wait", TRACEPARENT=PARENT, TRACESTATE="v=1").stdout
    wait_until(lambda: attempts(receiver.of(TRACE)), "its span")
    span, = attempts(receiver.of(TRACE))
    assert given == f"00-{TRACE}-{span['spanId']}-01 v=1", "a command gets the span of its attempt"
    assert submit("shell", "--wait", TRACEPARENT="nonsense").returncode == 0
    refused = submit("shell", "--traceparent", "nonsense")
    assert refused.returncode == 2 and "--traceparent nonsense is none" in refused.stderr


def test_http_takes_a_trace_and_never_refuses_a_task_for_it(host, root, tmp_path, receiver):
    configure(host, root, tmp_path, settings(receiver)).start()
    path = next((tmp_path / "state").glob("*.http"))

    def post(*headers):
        words = [word for header in headers for word in ("-H", header)]
        return subprocess.run(["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--unix-socket", str(path), *words, "-d", "x",
                               "http://localhost/v1/tasks/chain"], capture_output=True, text=True).stdout

    assert post(f"traceparent: {PARENT}", "tracestate: a=1", "tracestate: b=2") == "202"
    assert post("traceparent: " + "x" * 2000) == "202"
    assert post(f"traceparent: {PARENT}", f"traceparent: {PARENT}") == "202"
    wait_until(lambda: len(seen(tmp_path)) == 3, "all ran")
    wait_until(lambda: attempts(receiver.of(TRACE)), "its span")
    span, = attempts(receiver.of(TRACE))
    assert span["traceState"] == "a=1,b=2"


def test_a_worker_outside_gets_the_trace_and_its_owner_records_it(host, root, tmp_path, receiver):
    configure(host, root, tmp_path, settings(receiver)).start()
    host.submit([{"handler": "outside", "key": "k", "payload": "x", "headers": {"traceparent": PARENT}}])
    done = subprocess.run([host.quiver, "take", "outside", "--wait", "20s", "-n", "1", "-c", host.config, "--", "sh", "-c",
                           f"echo $TRACEPARENT > {tmp_path}/given"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    wait_until(lambda: attempts(receiver.of(TRACE)), "its span")
    span, = attempts(receiver.of(TRACE))
    assert (tmp_path / "given").read_text().strip() == f"00-{TRACE}-{span['spanId']}-01"
    assert span["attributes"]["quiver.worker"] and span["parentSpanId"] == SPAN


def test_a_receiver_that_is_down_costs_spans_and_nothing_else(host, root, tmp_path, receiver):
    dead = Receiver()
    dead.close()
    configure(host, root, tmp_path, settings(dead.url, "ratio = 1.0; queue = 64;")).start()
    host.submit([{"handler": "work", "key": f"k{n}", "payload": str(n)} for n in range(200)])
    host.wait_done(200)
    wait_until(lambda: metric(host, "dropped") == 2 * 200 - 64, "all but those that there is room for are dropped")
    host.wait_for_log("event=traces-failing")
    assert host.log().count("event=traces-dropped") == 1, "once, and not for each"
    host.config.write_text(host.config.read_text().replace(dead.url, receiver.url))
    host.cli("reload", "--wait")
    wait_until(lambda: metric(host, "exported") == 64, "a reload names another receiver: what waited goes there", seconds=90)
    assert len(receiver.spans) == 64


def test_a_receiver_that_says_429_gets_them_again_when_it_says(host, root, tmp_path, receiver):
    receiver.answers += [(429, {"Retry-After": "1"}), (503, {}), (200, {})]
    configure(host, root, tmp_path, settings(receiver)).start()
    host.submit([{"handler": "work", "key": "k", "payload": "1"}])
    wait_until(lambda: metric(host, "exported") == 2, "they are taken", seconds=90)
    assert receiver.requests == 3 and len(receiver.spans) == 2 and metric(host, "failed") == 0
    receiver.answers.append((400, {}))
    host.submit([{"handler": "work", "key": "k", "payload": "2"}])
    wait_until(lambda: metric(host, "failed") == 2, "what is refused is not sent again", seconds=90)
    assert receiver.requests == 4
    host.wait_for_log("event=traces-failing")


def test_a_slow_receiver_does_not_slow_tasks_and_a_stop_is_bounded(host, root, tmp_path, receiver):
    receiver.answers += [600]
    configure(host, root, tmp_path, settings(receiver)).start()
    host.submit([{"handler": "work", "key": f"k{n}", "payload": str(n)} for n in range(600)])
    host.wait_done(600)
    wait_until(lambda: receiver.requests == 1, "a full batch is under way")
    assert host.stop() == 0
    assert "event=traces-dropped" in host.log() and "event=stopped" in host.log()


def test_a_host_that_stops_sends_what_waits(host, root, tmp_path, receiver):
    configure(host, root, tmp_path, settings(receiver)).start()
    host.submit([{"handler": "work", "key": "k", "payload": "1"}])
    host.wait_done(1)
    assert host.stop() == 0
    assert len(receiver.spans) == 2


def test_secret_headers_come_from_a_file_and_are_never_shown(host, root, tmp_path, receiver):
    secret = tmp_path / "headers"
    secret.write_text("# for the receiver\nAuthorization: Bearer s3cret\n")
    secret.chmod(0o600)
    configure(host, root, tmp_path, settings(receiver, f'ratio = 1.0; headers = ["X-Scope: team"]; headers_file = "{secret}";')).start()
    host.submit([{"handler": "work", "key": "k", "payload": "1"}])
    host.wait_done(1)
    shown = host.cli("check", "--show") if "--show" in host.cli("check", "--help") else ""
    host.stop()
    assert receiver.heads[0]["Authorization"] == "Bearer s3cret" and receiver.heads[0]["X-Scope"] == "team"
    assert "s3cret" not in host.log() + shown
    host.config.write_text(host.config.read_text().replace("X-Scope: team", "Authorization: x"))
    done = subprocess.run([host.quiver, "check", "-c", host.config], capture_output=True, text=True)
    assert done.returncode == 1 and "headers_file" in done.stderr + done.stdout


def test_a_task_on_a_borrowed_seat_is_recorded_once_by_its_owner(quiver, root, tmp_path, receiver):
    fleet = Fleet(quiver, root / "build" / "test-plugins", tmp_path, Backing(tmp_path))
    for name, weight in (("host-a", 1000), ("host-b", 1)):
        fleet.add(name, weight=weight, more="processes = 1;",
                  change=lambda text: text.replace("handlers = {", settings(receiver) + "handlers = {"))
    a, b = fleet.members.values()
    gate = tmp_path / "gate"
    try:
        a.start(), b.start()
        wait_until(lambda: fleet.counts() == {"host-a": 20, "host-b": 0}, "host-a owns all")
        traces = [f"{number:032x}" for number in (1, 2)]
        for trace in traces:
            a.cli("submit", "work", "--traceparent", f"00-{trace}-{SPAN}-01", f"1 wait:{gate}")
        ledger = tmp_path / "ledger"
        wait_until(lambda: ledger.exists() and ledger.read_text().count("start") == 2, "both run")
        gate.touch()
        wait_until(lambda: all(attempts(receiver.of(trace)) for trace in traces), "both are recorded")
        assert a.stop() == 0 and b.stop() == 0
        spans = [span for trace in traces for span in attempts(receiver.of(trace))]
        assert len(spans) == 2 and {span["resource"]["quiver.host"] for span in spans} == {"host-a"}
        assert {(span["attributes"]["quiver.host"], span["attributes"].get("quiver.seat")) for span in spans} == \
            {("host-a", None), ("host-b", "borrowed")}
        assert all(span["attributes"]["quiver.outcome"] == "done" for span in spans)
    finally:
        fleet.close()


def test_over_https_only_a_receiver_that_is_trusted_gets_spans(host, root, tmp_path):
    made = tmp_path / "receiver.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=receiver", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", tmp_path / "key.pem",
                    "-out", tmp_path / "ca.pem"], check=True, capture_output=True)
    made.write_text((tmp_path / "ca.pem").read_text() + (tmp_path / "key.pem").read_text())
    receiver = Receiver(certificate=made)
    try:
        configure(host, root, tmp_path, settings(receiver)).start()
        host.submit([{"handler": "work", "key": "k", "payload": "1"}])
        host.wait_for_log("event=traces-failing")
        assert receiver.requests == 0 and "certificate" in host.log()
        host.stop()
        host.config.write_text(host.config.read_text().replace("ratio = 1.0;", f'ratio = 1.0; tls = {{ ca_file = "{tmp_path}/ca.pem"; }};'))
        host.start()
        host.submit([{"handler": "work", "key": "k", "payload": "2"}])
        wait_until(lambda: len(receiver.spans) == 2, "those of the second host are taken")
        assert not receiver.problems
    finally:
        receiver.close()
