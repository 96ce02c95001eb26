"""A receiver of traces: OTLP/HTTP in JSON, which checks every request by the rules of the protocol, and keeps its spans.

    python3 otlp.py PORT      receives, and prints what it got as a tree when it is interrupted
"""
import http.server
import json
import re
import ssl
import sys
import threading
import time

HEX = {"traceId": 32, "spanId": 16, "parentSpanId": 16}
KINDS = {1: "INTERNAL", 5: "CONSUMER"}
SPAN = {"traceId", "spanId", "traceState", "parentSpanId", "name", "kind", "startTimeUnixNano", "endTimeUnixNano",
        "attributes", "events", "links", "status", "flags"}


def check_number(text):
    assert isinstance(text, str) and re.fullmatch(r"0|[1-9]\d{0,19}", text) and int(text) < 1 << 64, \
        f"a 64-bit number is a decimal string: {text!r}"
    return int(text)


def check_ids(thing):
    for name, size in HEX.items():
        if name in thing:
            assert re.fullmatch(f"[0-9a-f]{{{size}}}", thing[name]) and int(thing[name], 16), (name, thing[name])


def read_attributes(listed):
    """A plain dict of them; each name is there once."""
    found = {}
    for attribute in listed:
        assert set(attribute) == {"key", "value"} and attribute["key"] not in found, attribute
        (kind, value), = attribute["value"].items()
        assert kind in ("stringValue", "intValue"), attribute
        if kind == "intValue":
            value = check_number(value)
        assert isinstance(value, (str, int))
        found[attribute["key"]] = value
    return found


def read_span(span):
    assert set(span) <= SPAN and {"traceId", "spanId", "name", "kind", "startTimeUnixNano", "endTimeUnixNano"} <= set(span), span
    check_ids(span)
    span = dict(span, start=check_number(span["startTimeUnixNano"]), end=check_number(span["endTimeUnixNano"]))
    assert span["end"] >= span["start"] > 1_600_000_000 * 10**9, "unix time in nanoseconds"
    assert span["kind"] in KINDS
    span["attributes"] = read_attributes(span.get("attributes", []))
    span["events"] = {event["name"]: read_attributes(event["attributes"]) for event in span.get("events", [])
                      if check_number(event["timeUnixNano"])}
    for link in span.get("links", []):
        assert set(link) == {"traceId", "spanId"}
        check_ids(link)
    assert set(span["status"]) in (set(), {"code", "message"}) and span["status"].get("code", 2) == 2, span["status"]
    return span


def read_request(body):
    """(resource, span) of each span of a request."""
    document = json.loads(body)
    assert set(document) == {"resourceSpans"}
    for resource in document["resourceSpans"]:
        assert set(resource) == {"resource", "scopeSpans"} and set(resource["resource"]) == {"attributes"}
        who = read_attributes(resource["resource"]["attributes"])
        for scope in resource["scopeSpans"]:
            assert set(scope) == {"scope", "spans"} and scope["scope"]["name"] == "quiver"
            for span in scope["spans"]:
                yield dict(read_span(span), resource=who)


class Receiver:
    """Keeps what it gets in `spans`.  `answers` are given before all others: (status, headers), or seconds of silence."""

    def __init__(self, port=0, certificate=None):
        """`certificate`: a file with it and its key; then it is https."""
        self.spans, self.problems, self.answers, self.requests, self.heads = [], [], [], 0, []
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.requests += 1
                receiver.heads.append(dict(self.headers))
                status, headers = 200, {}
                answer = receiver.answers.pop(0) if receiver.answers else None
                if isinstance(answer, (int, float)):
                    time.sleep(answer)
                elif answer:
                    status, headers = answer
                if status == 200:
                    try:
                        assert self.path == "/v1/traces" and self.headers["Content-Type"] == "application/json"
                        receiver.spans.extend(read_request(body))
                    except (AssertionError, ValueError, KeyError) as wrong:
                        receiver.problems.append(wrong)
                try:
                    self.send_response(status)
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", "2")
                    self.end_headers()
                    self.wfile.write(b"{}")
                except OSError:
                    pass  # who asked has gone

            def log_message(self, *words):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f"http{'s' if certificate else ''}://127.0.0.1:{self.server.server_port}/v1/traces"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def of(self, trace):
        return [span for span in self.spans if span["traceId"] == trace]


def as_text(spans):
    """The traces as trees, the earliest first."""
    lines = []
    for trace in dict.fromkeys(span["traceId"] for span in spans):
        own = sorted((s for s in spans if s["traceId"] == trace), key=lambda s: s["start"])
        ids, begin = {span["spanId"] for span in own}, own[0]["start"]
        lines.append(f"trace {trace}")

        def show(span, depth):
            a = span["attributes"]
            words = [f"{(span['start'] - begin) / 1e6:9.2f} ms +{(span['end'] - span['start']) / 1e6:8.2f} ms  ",
                     "  " * depth, f"{span['name']} [{KINDS[span['kind']]}] {span['spanId']}"]
            words += [f" {name.rpartition('.')[2]}={a[name]}" for name in ("quiver.host", "quiver.worker", "quiver.seat", "quiver.shard",
                      "quiver.attempt", "quiver.outcome") if name in a]
            words += [f" event:{name}" for name in span["events"]]
            words += [f" link:{link['spanId']}" for link in span.get("links", [])]
            lines.append("".join(words))
            for child in own:
                if child.get("parentSpanId") == span["spanId"]:
                    show(child, depth + 1)

        for parent in dict.fromkeys(s.get("parentSpanId") for s in own if s.get("parentSpanId") not in ids):
            if parent:
                lines.append(f"                          (the producer's span) {parent}")
            for span in own:
                if span.get("parentSpanId") == parent:
                    show(span, 1 if parent else 0)
    return "\n".join(lines)


if __name__ == "__main__":
    receiver = Receiver(int(sys.argv[1]))
    print(receiver.url, flush=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        print(as_text(receiver.spans))
