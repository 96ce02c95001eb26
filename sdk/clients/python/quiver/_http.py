"""The blocking client over HTTP, with the standard library alone."""
from __future__ import annotations

import http.client
import select
import socket
import threading
import time
import urllib.parse
from types import TracebackType
from typing import Any, Callable, Iterable, Mapping, Optional, Type, TypeVar

from . import _answers as answers
from . import _task
from ._answers import Outcome, Result, Submitted
from ._errors import QuiverError, Refused, Retry, Unknown
from ._task import Task

LINES_AT_ONCE = 1000
Answer = TypeVar("Answer")


class Address:
    """http://HOST:PORT, https://HOST:PORT, or http+unix:PATH, a host's own socket."""

    def __init__(self, url: str) -> None:
        parts = urllib.parse.urlsplit(url)
        self.is_unix = parts.scheme == "http+unix"
        self.is_tls = parts.scheme == "https"
        self.path = parts.path
        if self.is_unix and not self.path:
            raise Refused(f"{url}: has no path: http+unix:/var/lib/quiver/NAME.http")
        if not self.is_unix and (parts.scheme not in ("http", "https") or not parts.hostname):
            raise Refused(f"{url}: is not http://HOST:PORT, https://HOST:PORT or http+unix:PATH")
        self.host = "localhost" if self.is_unix else str(parts.hostname)
        self.port = parts.port or (443 if self.is_tls else 80)
        self.name = "localhost" if self.is_unix else parts.netloc.rpartition("@")[2]

    def connect(self, timeout: float) -> http.client.HTTPConnection:
        if self.is_unix:
            made = http.client.HTTPConnection("localhost", timeout=timeout)
            made.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            made.sock.settimeout(timeout)
            made.sock.connect(self.path)
            return made
        kind = http.client.HTTPSConnection if self.is_tls else http.client.HTTPConnection
        made = kind(self.host, self.port, timeout=timeout)
        made.connect()
        made.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made


class Client:
    """Submits tasks, waits for outcomes, takes results.  Any thread may call it; each has a connection of its own."""

    def __init__(self, url: str, token: Optional[str] = None, timeout: float = 30.0, repeats: int = 3) -> None:
        self._address = Address(url)
        self._token, self._timeout, self._repeats = token, timeout, repeats
        self._own = threading.local()
        self._all: "list[http.client.HTTPConnection]" = []
        self._lock = threading.Lock()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close()

    def close(self) -> None:
        with self._lock:
            for connection in self._all:
                connection.close()
            self._all.clear()
        self._own = threading.local()

    # --- submitting

    def submit(self, handler: str, payload: "bytes | str" = b"", **options: Any) -> Submitted:
        """Stores a task and returns its id; the options are those of Task.  Refused, Retry or Unknown say why not."""
        return self.submit_task(Task(handler, payload, **options))

    def submit_task(self, task: Task) -> Submitted:
        target, fields, body = _task.request(task)
        return repeated(self._repeats if task.idempotency_key else 0,
                        lambda: answers.submitted(*self._ask("POST", target, fields, body)[::2]))

    def submit_many(self, tasks: Iterable[Task]) -> "list[Submitted | QuiverError]":
        """Stores tasks in the given order, a thousand a request; returns for each its id, or what it would have raised.
        Once a request fails, nothing more is sent: the rest are Retry."""
        sending, goes_on = answers.Lines(tasks, LINES_AT_ONCE), True
        while goes_on and (body := sending.next()):
            try:
                status, _, answer = self._ask("POST", "/v1/tasks", {"Content-Type": "application/x-ndjson"}, body)
                goes_on = sending.answered(status, answer)
            except QuiverError as error:
                goes_on = sending.failed(error)
        return sending.said

    # --- outcomes

    def call(self, handler: str, payload: "bytes | str" = b"", wait: float = 30.0, **options: Any) -> Outcome:
        """Submits a task and waits for its outcome, at most 60 s."""
        task = Task(handler, payload, **options)
        target, fields, body = _task.request(task, wait=wait)
        return repeated(self._repeats if task.idempotency_key else 0,
                        lambda: answers.outcome(*self._ask("POST", target, fields, body, self._timeout + wait)))

    def wait(self, id: str, wait: float = 30.0) -> Outcome:
        """How a task that was submitted before ended, without its result: that is among results(), or comes with call().  It is asked
        for more rarely the longer it takes.  Refused (404): it was done too long ago, or never was."""
        until, pause = time.monotonic() + wait, 0.02
        while True:
            ended = answers.ended(id, self.task(id))
            left = until - time.monotonic()
            if ended.state != "waiting" or left <= 0:
                return ended
            time.sleep(min(pause, left))
            pause = min(pause * 1.5, 1.0)

    def task(self, id: str) -> "dict[str, Any]":
        """Where a task is and what happened to it, as `quiver task ID --json` prints it."""
        return self._json("GET", f"/v1/tasks/{urllib.parse.quote(id, safe='')}")

    def cancel(self, id: str) -> "dict[str, Any]":
        return self._json("POST", f"/v1/tasks/{urllib.parse.quote(id, safe='')}/cancel")

    def status(self) -> "dict[str, Any]":
        return self._json("GET", "/v1/status")

    # --- results

    def results(self, max: int = 100, lease: Optional[float] = None) -> "list[Result]":
        """Takes results; those that are not committed within the lease come back."""
        query = f"?max={max}" + (f"&lease={_task.duration(lease, 'lease')}" if lease is not None else "")
        status, _, body = self._ask("POST", "/v1/results/take" + query, {}, b"")
        if status != 200:
            raise answers.failure(status, body)
        return answers.results(body)

    def commit(self, results: "Iterable[Result | str]") -> "dict[str, Any]":
        """These are done with: `committed` says how many, `refused` which were not ours any more."""
        return self._json("POST", "/v1/results/commit", answers.receipts(results), {"Content-Type": "application/json"})

    # --- one request

    def _json(self, method: str, target: str, body: bytes = b"", fields: Mapping[str, str] = {}) -> "dict[str, Any]":
        status, _, answer = self._ask(method, target, fields, body)
        if not 200 <= status < 300:
            raise answers.failure(status, answer)
        return answers.document(answer)

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        """The thread's own, if the server has not closed it meanwhile: an idle one has nothing to say but its end."""
        kept: Optional[http.client.HTTPConnection] = getattr(self._own, "connection", None)
        if kept is not None and kept.sock is not None and not select.select([kept.sock], [], [], 0)[0]:
            kept.sock.settimeout(timeout)
            return kept
        self._drop()
        try:
            made = self._address.connect(timeout)
        except OSError as error:
            raise Retry(f"cannot connect to {self._address.name}: {error}") from error
        with self._lock:
            self._all.append(made)
        self._own.connection = made
        return made

    def _drop(self) -> None:
        kept = getattr(self._own, "connection", None)
        if kept is not None:
            kept.close()
            with self._lock:
                if kept in self._all:
                    self._all.remove(kept)
            self._own.connection = None

    def _ask(self, method: str, target: str, fields: Mapping[str, str], body: bytes,
             timeout: Optional[float] = None) -> "tuple[int, Mapping[str, str], bytes]":
        connection = self._connection(timeout or self._timeout)
        own = {"Host": self._address.name, **fields}
        if self._token:
            own["Authorization"] = f"Bearer {self._token}"
        try:
            connection.request(method, target, body if method == "POST" else None, own)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        except (OSError, http.client.HTTPException) as error:
            self._drop()
            raise Unknown(f"{self._address.name} did not answer: {error or type(error).__name__}") from error


def repeated(repeats: int, call: "Callable[[], Answer]") -> Answer:
    """Calls again after Retry and Unknown, later each time: only for what may be repeated."""
    for at in range(repeats + 1):
        try:
            return call()
        except (Retry, Unknown):
            if at == repeats:
                raise
            time.sleep(0.1 * 2**at)
    raise AssertionError("not reached")
