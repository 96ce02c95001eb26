"""Workers over HTTP: serve(handle, "mail", url) calls handle(task) for the tasks of a handler with plugin = "remote".

The names are those of quiver_pipe, so a handle() that was written for one works with the other: what it returns is the result,
Outcome chooses another outcome, any other exception is a retry.  The host's services (trylock …) are not there over HTTP.
"""
from __future__ import annotations

import base64
import json
import os
import socket
import sys
import threading
import time
import traceback
from typing import Any, Callable, Optional, Union

from . import _answers as answers
from ._errors import QuiverError, Refused
from ._http import Client

POLL_S = 30
KINDS = ("reject", "retry", "later", "limited", "unavailable")
REPEATS = 5  # of an outcome whose answer was lost: the fence makes a repeat harmless


class Outcome(Exception):
    """raise Outcome("reject" | "retry" | "later" | "limited" | "unavailable", why); for retry, later and limited also after_ms=…"""

    def __init__(self, kind: str, why: str = "", **fields: Any) -> None:
        super().__init__(why)
        if kind not in KINDS:
            raise ValueError(f"an Outcome is reject, retry, later, limited or unavailable, not {kind!r}")
        self.kind, self.fields = kind, fields


class Task:
    """`stop` is set when the task was cancelled or its time is over: a long handle() looks at it."""

    def __init__(self, told: "dict[str, Any]") -> None:
        self.id, self.key, self.handler = str(told["id"]), str(told["key"]), str(told["handler"])
        self.attempt, self.attempts_max = int(told.get("attempt", 1)), int(told.get("attempts_max", 1))
        self.crashes, self.submitted_ms = int(told.get("crashes", 0)), int(told.get("submitted_ms", 0))
        self.fence_epoch, self.fence_start = (int(number) for number in str(told["fence"]).split(".")[:2])
        self.payload, self.checkpoint = bytes_of(told, "payload"), bytes_of(told, "checkpoint")
        self.headers: "dict[str, Union[str, bytes]]" = dict(told.get("headers") or {})
        self.headers.update({name: base64.b64decode(value) for name, value in (told.get("headers_base64") or {}).items()})
        self.fields = told
        self.stop = threading.Event()
        self.told: "dict[str, Any]" = {}  # for the outcome
        self.news: "dict[str, Any]" = {}  # for the next heartbeat, too

    def tell(self, kind: str, body: Union[bytes, str] = b"", **fields: Any) -> None:
        """"log", "result", "submit" (handler=, key=, lane=, delay_ms=), "checkpoint" or "progress" (done=, total=)."""
        data = body.encode() if isinstance(body, str) else bytes(body)
        if kind == "log":
            print(data.decode(errors="replace"), file=sys.stderr, flush=True)
        elif kind == "result":
            self.told["result_base64"] = base64.b64encode(data).decode()
        elif kind == "checkpoint":
            self.news["checkpoint_base64"] = base64.b64encode(data).decode()
        elif kind == "progress":
            self.news["progress"] = [int(fields.get("done", 0)), int(fields.get("total", 0))]
        elif kind == "submit":
            more = {name: value for name, value in fields.items() if name in ("handler", "key", "lane")}
            if "delay_ms" in fields:
                more["delay"] = f"{fields['delay_ms']}ms"
            self.told.setdefault("follow_ups", []).append({**more, "payload_base64": base64.b64encode(data).decode()})
        else:
            raise ValueError(f"a task can be told log, result, submit, checkpoint and progress, not {kind!r}")


Handle = Callable[[Task], Union[bytes, str, None]]


def bytes_of(told: "dict[str, Any]", name: str) -> bytes:
    if f"{name}_base64" in told:
        return base64.b64decode(told[f"{name}_base64"])
    return str(told.get(name) or "").encode()


def outcome_of(handle: Handle, task: Task) -> "dict[str, Any]":
    try:
        result = handle(task)
        if result is not None:
            task.tell("result", result)
        return {"outcome": "done", **task.told}
    except Outcome as outcome:
        said = {"outcome": outcome.kind, "error": str(outcome)}
        if "after_ms" in outcome.fields:
            said["retry_after"] = f"{outcome.fields['after_ms']}ms"
    except Exception as error:
        traceback.print_exc()
        said = {"outcome": "retry", "error": f"{type(error).__name__}: {error}"}
    return {**said, **{name: value for name, value in task.news.items() if name == "checkpoint_base64"}}


class Worker:
    def __init__(self, handler: str, url: str, token: Optional[str], name: str) -> None:
        self._client = Client(url, token, timeout=10)
        self._path, self._name = f"/v1/work/{handler}", name

    def _post(self, path: str, body: "dict[str, Any]", timeout: float = 10) -> "Optional[dict[str, Any]]":
        text = json.dumps(body).encode()
        status, _, answer = self._client._ask("POST", self._path + path, {"Content-Type": "application/json"}, text, timeout)
        if status == 204:
            return None
        if not 200 <= status < 300:
            raise answers.failure(status, answer)
        return answers.document(answer)

    def take(self) -> Optional[Task]:
        told = self._post(f"?worker={self._name}&wait={POLL_S}s", {}, POLL_S + 10)
        return Task(told) if told else None

    def attend(self, task: Task, is_over: threading.Event) -> None:
        try:
            self.keep(task, is_over)
        finally:
            self._client._drop()  # a thread has a connection of its own

    def keep(self, task: Task, is_over: threading.Event) -> None:
        """Heartbeats.  Once the time is over the task may be another worker's, so this process must not go on with it."""
        end = time.monotonic() + task.fields["remaining_ms"] / 1000
        while not is_over.wait(max(0.0, min(task.fields["ttl_ms"] / 3000, end - time.monotonic()))):
            try:
                said = self._post(f"/{task.id}/heartbeat", {"fence": task.fields["fence"], **task.news})
                if said and said.get("stop"):
                    task.stop.set()
                if said and not task.stop.is_set():
                    end = time.monotonic() + float(said["remaining_ms"]) / 1000
            except Refused as error:
                if error.status == 409:
                    end = 0.0
            except QuiverError:
                pass
            if time.monotonic() >= end and not is_over.is_set():
                print(f"task {task.id} is no longer this worker's, and its handler still runs: the process ends", file=sys.stderr, flush=True)
                os._exit(70)

    def finish(self, task: Task, outcome: "dict[str, Any]") -> None:
        for at in range(REPEATS):
            try:
                self._post(f"/{task.id}/outcome", {"fence": task.fields["fence"], **outcome})
                return
            except Refused as error:
                if error.status != 409:  # 409: an earlier one was taken, or the time is over
                    print(f"task {task.id}: {error}", file=sys.stderr, flush=True)
                    if outcome["outcome"] == "done":
                        outcome = {"outcome": "reject", "error": f"its outcome was refused: {error}"}
                        continue
                return
            except QuiverError:
                time.sleep(0.1 * 2**at)

    def run(self, handle: Handle, until: threading.Event) -> None:
        while not until.is_set():
            try:
                task = self.take()
            except QuiverError as error:
                print(f"{self._path}: {error}", file=sys.stderr, flush=True)
                until.wait(1)
                continue
            if not task:
                continue
            is_over = threading.Event()
            beats = threading.Thread(target=self.attend, args=(task, is_over), daemon=True)
            beats.start()
            outcome = outcome_of(handle, task)
            is_over.set()
            beats.join()
            self.finish(task, outcome)


def serve(handle: Handle, handler: str, *urls: str, token: Optional[str] = None, until: Optional[threading.Event] = None) -> None:
    """Does tasks, one at a time for each URL, until `until` is set, or for ever.  Give the URL of each host, or of some: any hands out
    the tasks of all."""
    over = until or threading.Event()
    name = f"{socket.gethostname()[:32]}-{os.getpid()}"
    workers = [Worker(handler, url, token, f"{name}-{at}") for at, url in enumerate(urls)]
    threads = [threading.Thread(target=worker.run, args=(handle, over), daemon=True) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
