"""A task as this client sends it: checked by the rules of the envelope, written as bytes or as a request."""
from __future__ import annotations

import base64
import datetime
import os
import re
import urllib.parse
import zlib
from dataclasses import dataclass, field
from typing import Mapping, Optional, Union

from ._errors import Refused

LANES = ("high", "normal", "low")
NUMBER_MAX = 2**53 - 1
DAY_MS = 86_400_000

Time = Union[int, float, datetime.timedelta]

_HANDLER = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}\Z")
_HEADER = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_CONTROL = re.compile(rb"[\x00-\x1f\x7f]")
_CONTROL_TEXT = re.compile(r"[\x00-\x1f\x7f]")


def milliseconds(time: Time, name: str) -> int:
    """A number is seconds, as everywhere in Python."""
    seconds = time.total_seconds() if isinstance(time, datetime.timedelta) else time
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds * 1000 <= NUMBER_MAX:
        raise Refused(f"{name}: has to be a positive number of seconds, not {time!r}")
    return max(1, round(seconds * 1000))


def unix_milliseconds(at: Union[datetime.datetime, int, float], name: str) -> int:
    if isinstance(at, datetime.datetime):
        if at.tzinfo is None:
            raise Refused(f"{name}: has no time zone; datetime.now(timezone.utc), for example, has one")
        return round(at.timestamp() * 1000)
    return milliseconds(at, name)


@dataclass(frozen=True)
class Task:
    """One task to be submitted.  What is not set is as the handler's settings say.

    Times are seconds or timedelta; `at` is a datetime with a zone, or unix seconds.  Headers are text or bytes.
    """

    handler: str
    payload: Union[bytes, str] = b""
    key: Optional[str] = None
    lane: str = "normal"
    delay: Optional[Time] = None
    at: Union[datetime.datetime, int, float, None] = None
    unique: Optional[Time] = None
    merge: bool = False
    debounce: Optional[Time] = None
    timeout: Optional[Time] = None
    attempts: Optional[int] = None
    headers: Mapping[str, Union[str, bytes]] = field(default_factory=dict)
    traceparent: Optional[str] = None
    idempotency_key: Optional[str] = None

    def data(self) -> bytes:
        return self.payload.encode() if isinstance(self.payload, str) else bytes(self.payload)

    def all_headers(self) -> "dict[str, Union[str, bytes]]":
        """In small letters: HTTP knows no others, and a handler gets the same whichever way a task came."""
        headers = {name.lower() if name.isascii() else name: value for name, value in self.headers.items()}
        if len(headers) != len(self.headers):
            raise Refused("headers: two names differ in capitals alone")
        if self.traceparent is not None:
            headers["traceparent"] = self.traceparent
        return headers

    def check(self) -> None:
        """Raises Refused if a host would refuse it, whatever it is sent by."""
        if not _HANDLER.match(self.handler):
            raise Refused(f"handler: {self.handler!r} has to be a letter, then letters, digits, _ or -; at most 64")
        if self.key is not None:
            check_text("key", self.key)
        if self.lane not in LANES:
            raise Refused(f"lane: {self.lane!r} is none of high, normal, low")
        if (self.merge or self.debounce is not None or self.unique is not None) and self.key is None:
            raise Refused("unique, merge and debounce: need a key")
        if self.debounce is not None and milliseconds(self.debounce, "debounce") > DAY_MS:
            raise Refused("debounce: is longer than a day")
        if self.attempts is not None and not 1 <= self.attempts <= 1000:
            raise Refused(f"attempts: {self.attempts} is not from 1 to 1000")
        if self.idempotency_key is not None:
            check_text("idempotency_key", self.idempotency_key)
        for name, value in self.all_headers().items():
            check_header(name, value)
        if len(self.all_headers()) > 32:
            raise Refused(f"headers: {len(self.all_headers())} of them, of at most 32")


def check_text(name: str, text: str) -> None:
    size = len(text.encode())
    if not 1 <= size <= 255:
        raise Refused(f"{name}: has {size} bytes, of 1 to 255")
    if _CONTROL_TEXT.search(text):
        raise Refused(f"{name}: holds a control character")


def check_header(name: str, value: Union[str, bytes]) -> None:
    if not _HEADER.match(name):
        raise Refused(f"header {name!r}: has to be 1 to 64 letters, digits, _ or -")
    data = value.encode() if isinstance(value, str) else value
    most = 768 if _CONTROL.search(data) else 1024
    if len(data) > most:
        raise Refused(f"header {name}: has {len(data)} bytes, of at most {most}")


def is_plain(value: Union[str, bytes]) -> bool:
    """Whether it may stand as it is; bytes with control characters go as base64."""
    return not _CONTROL.search(value.encode() if isinstance(value, str) else value)


# --- as a request over HTTP --------------------------------------------------------------------------------------------


def duration(time: Time, name: str) -> str:
    return f"{milliseconds(time, name)}ms"


def timestamp(at: Union[datetime.datetime, int, float]) -> str:
    ms = unix_milliseconds(at, "at")
    return datetime.datetime.fromtimestamp(ms // 1000, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S") + f".{ms % 1000:03d}Z"


def parameters(task: Task) -> "dict[str, str]":
    """The query, in a fixed order."""
    task.check()
    said: "dict[str, str]" = {}
    if task.key is not None:
        said["key"] = task.key
    if task.lane != "normal":
        said["lane"] = task.lane
    for name in ("delay", "unique", "debounce", "timeout"):
        value = getattr(task, name)
        if value is not None:
            said[name] = duration(value, name)
    if task.at is not None:
        said["at"] = timestamp(task.at)
    if task.merge:
        said["merge"] = "1"
    if task.attempts is not None:
        said["attempts"] = str(task.attempts)
    return said


def request(task: Task, wait: Optional[Time] = None) -> "tuple[str, dict[str, str], bytes]":
    """The target, the fields and the body of POST /v1/tasks/HANDLER."""
    said = parameters(task)
    if wait is not None:
        said["wait"] = duration(wait, "wait")
    query = urllib.parse.urlencode(said, quote_via=urllib.parse.quote)
    fields = {"Content-Type": "application/octet-stream"}
    if task.idempotency_key is not None:
        fields["Idempotency-Key"] = task.idempotency_key.encode().decode("latin-1")  # UTF-8 on the wire
    for name, value in task.all_headers().items():
        data = value.encode() if isinstance(value, str) else value
        if name == "traceparent" and is_plain(data):
            fields["traceparent"] = data.decode("latin-1")
        elif data.isascii() and is_plain(data):
            fields[f"Quiver-Header-{name}"] = data.decode("ascii")
        else:
            fields[f"Quiver-Header64-{name}"] = base64.b64encode(data).decode()
    return f"/v1/tasks/{task.handler}" + ("?" + query if query else ""), fields, task.data()


def line(task: Task) -> "dict[str, object]":
    """The task as one line of POST /v1/tasks."""
    said: "dict[str, object]" = {"handler": task.handler, **parameters(task)}
    if task.merge:
        said["merge"] = True
    if task.attempts is not None:
        said["attempts"] = task.attempts
    said["payload_base64"] = base64.b64encode(task.data()).decode()
    headers = task.all_headers()
    plain = {n: v if isinstance(v, str) else v.decode() for n, v in headers.items() if is_text(v)}
    if plain:
        said["headers"] = plain
    others = {n: base64.b64encode(v if isinstance(v, bytes) else v.encode()).decode() for n, v in headers.items() if n not in plain}
    if others:
        said["headers_base64"] = others
    if task.idempotency_key is not None:
        said["idempotency_key"] = task.idempotency_key
    return said


def is_text(value: Union[str, bytes]) -> bool:
    if not is_plain(value):
        return False
    try:
        value.decode() if isinstance(value, bytes) else value.encode()
    except UnicodeError:
        return False
    return True


# --- as bytes in a store -----------------------------------------------------------------------------------------------


def shard_of(key: str, shards: int) -> int:
    return zlib.crc32(key.encode()) % shards


def new_id(shard: int) -> str:
    digits = "0123456789abcdefghjkmnpqrstvwxyz"
    return "".join(digits[byte & 31] for byte in os.urandom(20)) + f"-{shard}"


def envelope(task: Task, id: "str | None" = None, submitted_ms: int = 0, not_before_ms: int = 0, reply_ms: int = 0) -> bytes:
    """The bytes that a store holds: see envelope.h of the runtime."""
    task.check()
    lines = [b"qv1", b"key:" + (task.key or "").encode(), b"handler:" + task.handler.encode()]

    def put(name: str, value: object) -> None:
        if value:
            lines.append(f"{name}:{value}".encode())

    put("id", id)
    put("lane", task.lane if task.lane != "normal" else "")
    put("not_before", not_before_ms)
    put("attempts", task.attempts)
    put("timeout", milliseconds(task.timeout, "timeout") if task.timeout is not None else 0)
    put("reply", reply_ms)
    put("submitted", submitted_ms)
    put("merge", 1 if task.merge or task.debounce is not None else 0)
    put("debounce", milliseconds(task.debounce, "debounce") if task.debounce is not None else 0)
    for name, value in task.all_headers().items():
        data = value.encode() if isinstance(value, str) else value
        if is_plain(data):
            lines.append(b"header." + name.encode() + b":" + data)
        else:
            lines.append(b"header64." + name.encode() + b":" + base64.b64encode(data))
    return b"\n".join(lines) + b"\n\n" + task.data()
