"""The client on the store's own Redis, for speed: an RPUSH a task, by redis-py.

It can submit, submit many, and wait for outcomes.  What needs one of Quiver's scripts (unique, idempotency keys) or a
host (cancel, status, results) is refused by name: the client over HTTP has it.
"""
from __future__ import annotations

import random
import time
from typing import Any, Iterable, Optional

from . import _task
from ._answers import Outcome, Submitted
from ._errors import QuiverError, Refused, Retry, Unknown
from ._msgpack import unpack
from ._task import Task

PIPELINE = 1000


class RedisClient:
    """`redis` is a client of redis-py: redis.Redis, Sentinel's master_for(), or redis.RedisCluster."""

    def __init__(self, redis: Any, app: str, max_payload: int = 1 << 20) -> None:
        self._redis, self._app, self._max_payload = redis, app, max_payload
        self._shards = 0

    def shards(self) -> int:
        """As the store has recorded them; they never change."""
        if not self._shards:
            told = self._said(lambda: self._redis.hget(f"quiver:{{{self._app}}}:app", "shards"), is_write=False)
            if told is None:
                raise Refused(f"there is no app {self._app} in this Redis; a host makes it", 404)
            if not told.isdigit() or not 1 <= int(told) <= 4096:
                raise Refused(f"app {self._app}: shards is {told!r}")
            self._shards = int(told)
        return self._shards

    def submit(self, handler: str, payload: "bytes | str" = b"", **options: Any) -> Submitted:
        return self.submit_task(Task(handler, payload, **options))

    def submit_task(self, task: Task, reply: Optional[float] = None) -> Submitted:
        id, name, data = self._stored(task, reply)
        self._said(lambda: self._redis.rpush(name, data))
        return Submitted(id)

    def submit_many(self, tasks: Iterable[Task]) -> "list[Submitted | QuiverError]":
        said: "list[Submitted | QuiverError]" = []
        part: "list[tuple[int, str, str, bytes]]" = []
        for task in tasks:
            try:
                part.append((len(said), *self._stored(task, None)))
                said.append(Submitted(part[-1][1]))
            except Refused as error:
                said.append(error)
            if len(part) == PIPELINE and not self._push(part, said):
                return said
        self._push(part, said)
        return said

    def _push(self, part: "list[tuple[int, str, str, bytes]]", said: "list[Submitted | QuiverError]") -> bool:
        """In order; what a server refused or did not answer is said in its place."""
        pipe = self._redis.pipeline(transaction=False)
        for _, _, name, data in part:
            pipe.rpush(name, data)
        try:
            told = self._said(lambda: pipe.execute(raise_on_error=False)) if part else []
        except QuiverError as error:
            told = [error] * len(part)
        for (at, *_), one in zip(part, told):
            if isinstance(one, QuiverError):
                said[at] = one
            elif isinstance(one, Exception):
                said[at] = meaning(one)
        part.clear()
        return not any(isinstance(one, Exception) for one in told)

    def call(self, handler: str, payload: "bytes | str" = b"", wait: float = 30.0, **options: Any) -> Outcome:
        """Submits a task and waits for its outcome, which is asked for more rarely the longer it takes."""
        made = self.submit_task(Task(handler, payload, **options), reply=wait + 60)
        return self.wait(made.id, wait)

    def wait(self, id: str, wait: float) -> Outcome:
        until, pause = time.monotonic() + wait, 0.001
        shard = id.rpartition("-")[2]
        while True:
            told = self._said(lambda: self._redis.get(f"quiver:{{{self._app}:{shard}}}:reply:{id}"), is_write=False)
            if told is not None:
                state, has_data, data, reason = unpack(told)[:4]
                if state == 3:
                    return self.wait(data.decode(), max(0.0, until - time.monotonic()))
                return Outcome("done" if state == 1 else "dead", id, data if has_data else None, reason.decode())
            if time.monotonic() >= until:
                return Outcome("waiting", id)
            time.sleep(min(pause, max(0.0, until - time.monotonic())))
            pause = min(pause * 1.5, 0.25)

    def _stored(self, task: Task, reply: Optional[float]) -> "tuple[str, str, bytes]":
        """The id, the list and the bytes."""
        for name in ("unique", "idempotency_key"):
            if getattr(task, name) is not None:
                raise Refused(f"{name}: needs a script of the store; the client over HTTP has it")
        task.check()
        if len(task.bytes()) > self._max_payload:
            raise Refused(f"payload: has {len(task.bytes())} bytes, of at most {self._max_payload}", 413)
        now_ms = int(time.time() * 1000)
        not_before_ms = _task.unix_milliseconds(task.at, "at") if task.at is not None else 0
        if task.delay is not None:
            seconds, micros = self._said(lambda: self._redis.time(), is_write=False)
            not_before_ms = max(not_before_ms, seconds * 1000 + micros // 1000 + _task.milliseconds(task.delay, "delay"))
        shards = self.shards()
        shard = _task.shard_of(task.key, shards) if task.key is not None else random.randrange(shards)
        id = _task.new_id(shard)
        reply_ms = _task.milliseconds(reply, "wait") if reply is not None else 0
        return id, f"quiver:{{{self._app}:{shard}}}:{task.lane}", _task.envelope(task, id, now_ms, not_before_ms, reply_ms)

    def _said(self, ask: Any, is_write: bool = True) -> Any:
        try:
            return ask()
        except QuiverError:
            raise
        except Exception as error:
            raise meaning(error, is_write) from error


def meaning(error: Exception, is_write: bool = True) -> QuiverError:
    """Of an error of redis-py: a refusal stored nothing, a lost connection may have."""
    import redis

    text = f"Redis: {error}"
    if isinstance(error, (redis.exceptions.AuthenticationError, redis.exceptions.NoPermissionError)):
        return Refused(text, 403)
    if isinstance(error, (redis.exceptions.BusyLoadingError, redis.exceptions.ReadOnlyError, redis.exceptions.ClusterDownError)):
        return Retry(text)
    if isinstance(error, redis.exceptions.ResponseError):
        waits = ("OOM", "MISCONF", "NOREPLICAS", "LOADING", "READONLY", "MASTERDOWN", "TRYAGAIN", "CLUSTERDOWN", "BUSY")
        return Retry(text) if text.removeprefix("Redis: ").startswith(waits) else Refused(text)
    if isinstance(error, redis.exceptions.ConnectionError) and "connecting to" in str(error):
        return Retry(text)
    return Unknown(text) if is_write else Retry(text)
