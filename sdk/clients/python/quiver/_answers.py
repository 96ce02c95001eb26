"""What comes back, and what an answer over HTTP means: shared by the blocking and the asyncio client."""
from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import Any, Iterable, Mapping, Optional

from ._errors import QuiverError, Refused, Retry, Unknown
from ._task import Task, line


@dataclass(frozen=True)
class Submitted:
    """`duplicate`: it was stored before, under its idempotency key."""

    id: str
    duplicate: bool = False


@dataclass(frozen=True)
class Outcome:
    """How a task ended.  `state` is "done", "dead", or "waiting": not within the time; `reason` and `error` of a dead one."""

    state: str
    id: Optional[str] = None
    result: Optional[bytes] = None
    reason: str = ""
    error: str = ""

    @property
    def is_done(self) -> bool:
        return self.state == "done"


@dataclass(frozen=True)
class Result:
    """A result that was taken; commit() its receipt when it has been dealt with."""

    receipt: str
    id: str
    key: str
    handler: str
    data: bytes
    more: Mapping[str, Any] = field(default_factory=dict)


def document(body: bytes) -> "dict[str, Any]":
    try:
        read = json.loads(body)
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


def failure(status: int, body: bytes) -> QuiverError:
    """What an answer means that is no success.  429 and 503 stored nothing; 504 may have, and behind a proxy's 502 is anything."""
    told = document(body)
    text = str(told.get("detail") or told.get("error") or body[:200].decode(errors="replace") or f"status {status}")
    if status == 504:
        return Unknown(text)
    if status in (408, 429, 503):
        return Retry(text)
    if 400 <= status < 500:
        return Refused(text, status, told.get("id"))
    return Unknown(f"{status}: {text}")


def submitted(status: int, body: bytes) -> Submitted:
    told = document(body)
    if status != 202 or not isinstance(told.get("id"), str):
        raise failure(status, body)
    return Submitted(told["id"], bool(told.get("duplicate")))


def outcome(status: int, fields: Mapping[str, str], body: bytes) -> Outcome:
    if status == 200:
        return Outcome("done", result=body)
    if status == 204:
        return Outcome("done")
    if status == 422:
        told = document(body)
        return Outcome("dead", told.get("id"), reason=str(told.get("reason", "")), error=str(told.get("error") or told.get("detail") or ""))
    return Outcome("waiting", submitted(status, body).id)


def ended(id: str, told: "dict[str, Any]") -> Outcome:
    """Of the document of a task."""
    if told.get("state") == "dead":
        return Outcome("dead", id, reason=str(told.get("reason", "")), error=str(told.get("error") or ""))
    return Outcome("done" if told.get("state") == "done" else "waiting", id)


def lines(count: int, body: bytes) -> "list[Submitted | QuiverError]":
    """What became of each line, in order.  Lines without an answer were not read: later lines were not stored."""
    said: "list[Submitted | QuiverError]" = []
    for text in body.splitlines():
        told = document(text)
        if told.get("status") == 202:
            said.append(Submitted(str(told.get("id")), bool(told.get("duplicate"))))
        else:
            said.append(failure(int(told.get("status") or 504), text))
    said += [Retry("the server stopped before this line; it was not stored")] * (count - len(said))
    return said[:count]


def results(body: bytes) -> "list[Result]":
    return [result(one) for one in document(body).get("results", [])]


def result(told: "dict[str, Any]") -> Result:
    data = base64.b64decode(told["data_base64"]) if "data_base64" in told else str(told.get("data", "")).encode()
    known = {"receipt", "id", "key", "handler", "data", "data_base64"}
    return Result(str(told.get("receipt", "")), str(told.get("id", "")), str(told.get("key", "")), str(told.get("handler", "")), data,
                  {name: value for name, value in told.items() if name not in known})


def receipts(of: Iterable["Result | str"]) -> bytes:
    return json.dumps({"receipts": [one.receipt if isinstance(one, Result) else one for one in of]}).encode()


class Lines:
    """Tasks on their way as lines of JSON, a request after the other; those that no host would take are never sent."""

    def __init__(self, tasks: Iterable[Task], at_once: int) -> None:
        self.said: "list[Submitted | QuiverError]" = []
        self._left: "list[tuple[int, bytes]]" = []
        self._at_once = at_once
        for at, task in enumerate(tasks):
            try:
                self._left.append((at, json.dumps(line(task)).encode() + b"\n"))
                self.said.append(Retry("an earlier task was not stored; this one was not sent"))
            except Refused as error:
                self.said.append(error)

    def next(self) -> "bytes | None":
        """The next request's body; None once all is sent."""
        return b"".join(text for _, text in self._left[:self._at_once]) or None

    def answered(self, status: int, body: bytes) -> bool:
        """Whether to go on: not behind a line that was not stored and might be later, which would overtake it."""
        count = len(self._left[:self._at_once])
        return self._told(lines(count, body) if status == 200 else [failure(status, body)] * count)

    def failed(self, error: QuiverError) -> bool:
        return self._told([error] * len(self._left[:self._at_once]))

    def _told(self, told: "list[Submitted | QuiverError]") -> bool:
        for (at, _), one in zip(self._left, told):
            self.said[at] = one
        del self._left[:self._at_once]
        return not any(isinstance(one, (Retry, Unknown)) for one in told)
