#!/usr/bin/python3
"""Writes sdk/clients/cases.jsonl: what every client, in every language, has to do with a task or an answer.

    tests/clients/cases.py > sdk/clients/cases.jsonl

Each line is one case:

  {"name": …, "submit": TASK, "request": {"target", "fields", "body_base64"}, "line": {…}, "envelope_base64": …, "shard": …}
      What a client sends over HTTP (alone, and as a line among many), and the bytes and the shard, of 64, on Redis; with
      the id, the time of submission and the time before which it does not start that stand in "as".
  {"name": …, "submit": TASK, "refused": WORD}
      The client itself refuses it; its text has that word.
  {"name": …, "answer": {"status", "fields", "body_base64"}, "to": "submit" | "call", "means": {…}}
      What an answer means: {"id", "duplicate"}, {"outcome", …}, or {"error": "refused" | "retry" | "unknown", …}.

A TASK has handler, payload_base64, key, lane, delay_ms, at_ms, unique_ms, merge, debounce_ms, timeout_ms, attempts,
headers (texts), headers_base64 (bytes), traceparent, idempotency_key; what is not there is not set.  Nothing here is
made by a client: this is written from the documentation, and tests/e2e/client/test_clients.py holds the envelopes
against Quiver's own reader.
"""
import base64
import datetime
import json
import re
import sys
import urllib.parse
import zlib

AS = {"id": "0123456789abcdefghjk-{shard}", "submitted_ms": 1794931039462}
CONTROL = re.compile(rb"[\x00-\x1f\x7f]")


def b64(data):
    return base64.b64encode(data).decode()


def headers_of(task):
    """Name and bytes, in order.  Names are in small letters: HTTP knows no others."""
    found = [(name.lower(), value.encode()) for name, value in task.get("headers", {}).items()]
    found += [(name.lower(), base64.b64decode(value)) for name, value in task.get("headers_base64", {}).items()]
    if "traceparent" in task:
        found.append(("traceparent", task["traceparent"].encode()))
    return found


def stamp(ms):
    return datetime.datetime.fromtimestamp(ms // 1000, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S") + f".{ms % 1000:03d}Z"


def parameters(task):
    said = {}
    if "key" in task:
        said["key"] = task["key"]
    if task.get("lane", "normal") != "normal":
        said["lane"] = task["lane"]
    for name in ("delay", "unique", "debounce", "timeout"):
        if f"{name}_ms" in task:
            said[name] = f"{task[name + '_ms']}ms"
    if "at_ms" in task:
        said["at"] = stamp(task["at_ms"])
    if task.get("merge"):
        said["merge"] = "1"
    if "attempts" in task:
        said["attempts"] = str(task["attempts"])
    return said


def request(task):
    query = urllib.parse.urlencode(parameters(task), quote_via=urllib.parse.quote, safe="")
    fields = {}
    if "idempotency_key" in task:
        fields["idempotency-key"] = task["idempotency_key"]
    for name, value in headers_of(task):
        if name == "traceparent":
            fields["traceparent"] = value.decode()
        elif value.isascii() and not CONTROL.search(value):
            fields[f"quiver-header-{name}".lower()] = value.decode()
        else:
            fields[f"quiver-header64-{name}".lower()] = b64(value)
    return {"target": f"/v1/tasks/{task['handler']}" + ("?" + query if query else ""), "fields": fields,
            "body_base64": task.get("payload_base64", "")}


def is_text(value):
    try:
        value.decode()
    except UnicodeError:
        return False
    return not CONTROL.search(value)


def line(task):
    said = {"handler": task["handler"], **parameters(task), "payload_base64": task.get("payload_base64", "")}
    if task.get("merge"):
        said["merge"] = True
    if "attempts" in task:
        said["attempts"] = task["attempts"]
    for name, value in headers_of(task):
        if is_text(value):
            said.setdefault("headers", {})[name] = value.decode()
        else:
            said.setdefault("headers_base64", {})[name] = b64(value)
    if "idempotency_key" in task:
        said["idempotency_key"] = task["idempotency_key"]
    return said


def envelope(task, shard):
    lines = [b"qv1", b"key:" + task.get("key", "").encode(), b"handler:" + task["handler"].encode(),
             b"id:" + AS["id"].format(shard=shard).encode()]
    if task.get("lane", "normal") != "normal":
        lines.append(b"lane:" + task["lane"].encode())
    for name, value in (("not_before", task.get("at_ms")), ("attempts", task.get("attempts")), ("timeout", task.get("timeout_ms")),
                        ("submitted", AS["submitted_ms"]), ("merge", 1 if task.get("merge") or "debounce_ms" in task else None),
                        ("debounce", task.get("debounce_ms"))):
        if value:
            lines.append(f"{name}:{value}".encode())
    for name, value in headers_of(task):
        if CONTROL.search(value):
            lines.append(b"header64." + name.encode() + b":" + base64.b64encode(value))
        else:
            lines.append(b"header." + name.encode() + b":" + value)
    return b"\n".join(lines) + b"\n\n" + base64.b64decode(task.get("payload_base64", ""))


def good(name, **task):
    case = {"name": name, "submit": {"handler": "mail", **task}}
    case["request"], case["line"] = request(case["submit"]), line(case["submit"])
    # An id and a delay are the store's, or the moment's; unique and idempotency keys need a script: those go over HTTP.
    if not {"delay_ms", "unique_ms", "idempotency_key"} & set(task):
        shard = zlib.crc32(task["key"].encode()) % 64 if "key" in task else 7
        case.update(as_={"id": AS["id"].format(shard=shard), "submitted_ms": AS["submitted_ms"]}, shard=shard,
                    envelope_base64=b64(envelope(case["submit"], shard)))
        case["as"] = case.pop("as_")
    return case


def bad(name, word, **task):
    return {"name": name, "submit": {"handler": "mail", **task}, "refused": word}


KEYS = ["k", "user-17", "a b", "a/b", "a?b", "a&b=c", "a%41b", "a+b", "a:b", "\"quoted\"", "back\\slash", "#", "..", "ü", "日本語", "🙂",
        "e\u0301", "k" * 255, "é" * 127, "'", "<b>", "{app:1}", "0", "-", "--key", "a;b", "a|b", "*", "\u00a0", "\u2028", "~", "@"]
PAYLOADS = {"empty": b"", "text": b"hello", "a NUL": b"a\0b", "newlines": b"\n\nkey:x\n\n", "CRLF": b"a\r\n\r\nb", "every byte": bytes(range(256)),
            "UTF-8": "grüße 🙂".encode(), "not UTF-8": b"\xff\xfe\xc0\xaf", "JSON": b'{"a": [1, 2.5, null, "x"]}', "qv1": b"qv1\nkey:\n",
            "long": b"x" * 3000, "one newline": b"\n", "spaces": b"  ", "a quote": b'"', "a backslash": b"\\", "percent": b"%00%ff",
            "a byte 0x7f": b"\x7f", "ends in NUL": b"x\0"}
HANDLERS = ["a", "mail", "Mail_2", "a-b", "a" * 64, "Z9"]
HEADERS = {"x": "1", "empty": "", "A-b_9": "v", "spaces": "a b", "colon": "a:b", "percent": "%41", "comma": "a,b", "umlaut": "ü", "emoji": "🙂",
           "long": "v" * 1024, "n" * 64: "v", "quote": "\"", "backslash": "\\"}
BYTES = {"nul": b"\0", "newline": b"a\nb", "crlf": b"a\r\nb", "binary": bytes(range(256)), "del": b"\x7f", "tab": b"\t", "most": b"\0" * 768,
         "plain": b"plain"}
TIMES_MS = [1, 1000, 1500, 60_000, 3_600_000, 86_400_000]


def tasks():
    for key in KEYS:
        yield good(f"key {key[:20]}", key=key)
        yield good(f"key {key[:20]} with a payload", key=key, payload_base64=b64(key.encode()))
    for name, payload in PAYLOADS.items():
        yield good(f"payload {name}", payload_base64=b64(payload))
        yield good(f"payload {name} with a key", payload_base64=b64(payload), key="user-17")
    for handler in HANDLERS:
        yield good(f"handler {handler[:10]}", handler=handler, key="k")
    for lane in ("high", "normal", "low"):
        yield good(f"lane {lane}", lane=lane, key="k")
        yield good(f"lane {lane} without a key", lane=lane)
    for ms in TIMES_MS:
        yield good(f"delay {ms}", delay_ms=ms)
        yield good(f"unique {ms}", unique_ms=ms, key="k")
        yield good(f"timeout {ms}", timeout_ms=ms)
        yield good(f"debounce {ms}", debounce_ms=ms, key="k")
    for at in (1, 1794931039462, 1794931039000, 4102444800001, 253402300799999):
        yield good(f"at {at}", at_ms=at, key="k")
    for attempts in (1, 2, 1000):
        yield good(f"attempts {attempts}", attempts=attempts)
    yield good("merge", merge=True, key="k")
    yield good("merge and debounce", merge=True, debounce_ms=2000, key="k")
    for name, value in HEADERS.items():
        yield good(f"header {name[:10]}", headers={name: value}, key="k")
    for name, value in BYTES.items():
        yield good(f"header of bytes {name}", headers_base64={name: b64(value)}, key="k")
    yield good("32 headers", headers={f"h{n}": str(n) for n in range(32)})
    yield good("traceparent", traceparent="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", key="k")
    for key in ("req-1", "a b", "ü", "🙂", "k" * 255, "\"", "a:b"):
        yield good(f"idempotency key {key[:10]}", idempotency_key=key, key="k")
    yield good("everything", key="user-17", lane="low", at_ms=1794931049462, timeout_ms=5000, attempts=3, merge=True, debounce_ms=2000,
               headers={"a": "b"}, headers_base64={"c": "AAEC"}, traceparent="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
               payload_base64=b64(b"hello"))


def refusals():
    for handler in ("", "9a", "-a", "a b", "a/b", "a.b", "ü", "a" * 65, "a\n", "_a"):
        yield bad(f"handler {handler[:10]!r}", "handler", handler=handler)
    for name, key in {"empty": "", "a newline": "a\nb", "a NUL": "a\0b", "a tab": "a\tb", "DEL": "a\x7f", "256 bytes": "k" * 256,
                      "128 umlauts": "ü" * 128, "a carriage return": "a\r"}.items():
        yield bad(f"key: {name}", "key", key=key)
        yield bad(f"idempotency key: {name}", "idempotency_key", idempotency_key=key, key="k")
    for lane in ("", "HIGH", "fast", "norma"):
        yield bad(f"lane {lane!r}", "lane", lane=lane)
    for name in ("delay", "timeout", "debounce", "unique"):
        for ms in (0, -1000):
            yield bad(f"{name} {ms}", name, **{f"{name}_ms": ms}, key="k")
    yield bad("debounce beyond a day", "debounce", debounce_ms=86_400_001, key="k")
    for what in ({"unique_ms": 1000}, {"merge": True}, {"debounce_ms": 1000}):
        yield bad(f"{next(iter(what))} without a key", "key", **what)
    for attempts in (0, 1001, -1):
        yield bad(f"attempts {attempts}", "attempts", attempts=attempts)
    for name in ("", "a b", "a:b", "ü", "n" * 65, "a\n"):
        yield bad(f"header name {name[:10]!r}", "header", headers={name: "v"})
    yield bad("a header of 1025 bytes", "header", headers={"a": "v" * 1025})
    yield bad("a header of 769 bytes that need base64", "header", headers_base64={"a": b64(b"\0" * 769)})
    yield bad("two headers that differ in capitals", "header", headers={"a": "v", "A": "v"})
    yield bad("33 headers", "headers", headers={f"h{n}": "v" for n in range(33)})


def answer(name, to, status, body, means, fields=None):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return {"name": name, "answer": {"status": status, "fields": fields or {}, "body_base64": b64(data)}, "to": to, "means": means}


def answers():
    id = "1m7m0gmct5bgv262xmy5-1"
    yield answer("stored", "submit", 202, {"id": id}, {"id": id, "duplicate": False})
    yield answer("stored before", "submit", 202, {"id": id, "duplicate": True}, {"id": id, "duplicate": True})
    for status, error in ((400, "refused"), (401, "refused"), (403, "refused"), (404, "refused"), (405, "refused"), (409, "refused"),
                          (413, "refused"), (421, "refused"), (431, "refused"), (408, "retry"), (429, "retry"), (502, "unknown"),
                          (503, "retry"), (504, "unknown"), (500, "unknown")):
        for to in ("submit", "call"):
            yield answer(f"{status} to a {to}", to, status, {"status": status, "detail": "why"}, {"error": error, "text": "why"})
            yield answer(f"{status} to a {to}, without JSON", to, status, b"<html>", {"error": error, "text": "<html>"})
    yield answer("409 names the task that is there", "submit", 409, {"status": 409, "detail": "is there", "id": id},
                 {"error": "refused", "text": "is there", "id": id})
    yield answer("202 without an id", "submit", 202, {}, {"error": "unknown", "text": ""})
    yield answer("202 that is no JSON", "submit", 202, b"stored", {"error": "unknown", "text": ""})
    yield answer("done with a result", "call", 200, b"hello\0", {"outcome": "done", "result_base64": b64(b"hello\0")})
    yield answer("done with an empty result", "call", 200, b"", {"outcome": "done", "result_base64": ""})
    yield answer("done without a result", "call", 204, b"", {"outcome": "done", "result_base64": None})
    yield answer("dead", "call", 422, {"status": 422, "detail": "no such user", "id": id, "reason": "rejected", "attempts": 1, "crashes": 0,
                                       "interruptions": 0, "history": []},
                 {"outcome": "dead", "id": id, "reason": "rejected", "error_text": "no such user"})
    yield answer("not ended in time", "call", 202, {"id": id}, {"outcome": "waiting", "id": id})


def main():
    names = set()
    for case in (*tasks(), *refusals(), *answers()):
        assert case["name"] not in names, case["name"]
        names.add(case["name"])
        json.dump(case, sys.stdout, ensure_ascii=True)
        print()


if __name__ == "__main__":
    main()
