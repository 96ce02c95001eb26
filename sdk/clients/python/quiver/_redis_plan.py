"""What is sent to the store's Redis and what it means, without any I/O: shared by the blocking and the asyncio client."""
from __future__ import annotations

import importlib
import random
import time
from typing import Any, Iterator, Optional, Union

from . import _task
from ._answers import Outcome, Submitted
from ._errors import QuiverError, Refused, Retry, Unknown
from ._msgpack import unpack
from ._task import Task

TASKS_AT_ONCE = 1000
BYTES_AT_ONCE = 16 << 20
MOVES = 5


def check_client(redis: Any) -> None:
    """A client that repeats commands by itself would make two tasks of one whose answer was lost."""
    kwargs = getattr(getattr(redis, "connection_pool", None), "connection_kwargs", {})
    retry = kwargs.get("retry")
    if kwargs.get("retry_on_timeout") or kwargs.get("retry_on_error") or getattr(retry, "_retries", 0):
        raise Refused("this client of redis-py repeats commands by itself; make it with retry=Retry(NoBackoff(), 0), "
                      "and without retry_on_timeout and retry_on_error")


def check(task: Task, max_payload: int) -> None:
    for name in ("unique", "idempotency_key"):
        if getattr(task, name) is not None:
            raise Refused(f"{name}: needs a script of the store; the client over HTTP has it")
    task.check()
    if len(task.data()) > max_payload:
        raise Refused(f"payload: has {len(task.data())} bytes, of at most {max_payload}", 413)


def shards_of(app: str, told: Any) -> int:
    if told is None:
        raise Refused(f"there is no app {app} in this Redis; a host makes it", 404)
    if not told.isdigit() or not 1 <= int(told) <= 4096:
        raise Refused(f"app {app}: shards is {told!r}")
    return int(told)


def stored(app: str, shards: int, task: Task, store_ms: int, reply: Optional[float]) -> "tuple[str, str, bytes]":
    """The id, the list and the bytes; store_ms is the store's time, for a task with a delay."""
    not_before_ms = _task.unix_milliseconds(task.at, "at") if task.at is not None else 0
    if task.delay is not None:
        not_before_ms = max(not_before_ms, store_ms + _task.milliseconds(task.delay, "delay"))
    shard = _task.shard_of(task.key, shards) if task.key is not None else random.randrange(shards)
    id = _task.new_id(shard)
    reply_ms = _task.milliseconds(reply, "wait") if reply is not None else 0
    data = _task.envelope(task, id, int(time.time() * 1000), not_before_ms, reply_ms)
    return id, f"quiver:{{{app}:{shard}}}:{task.lane}", data


class Many:
    """Tasks on their way: those of one list are one command, which stores all of them or none.  Order is per key and lane, and those
    of a key and lane are in one list."""

    def __init__(self, app: str, shards: int, tasks: "list[Task]", store_ms: int, max_payload: int) -> None:
        self.said: "list[Submitted | QuiverError]" = []
        self._ids: "dict[int, str]" = {}
        self._left: "list[tuple[str, list[int], list[bytes]]]" = []
        part: "dict[str, tuple[str, list[int], list[bytes]]]" = {}
        count = size = 0
        for at, task in enumerate(tasks):
            try:
                check(task, max_payload)
                id, name, data = stored(app, shards, task, store_ms, None)
            except Refused as error:
                self.said.append(error)
                continue
            self.said.append(Retry("an earlier task was not stored; this one was not sent"))
            if count == TASKS_AT_ONCE or size + len(data) > BYTES_AT_ONCE:
                self._left += part.values()
                part, count, size = {}, 0, 0
            self._ids[at] = id
            _, places, texts = part.setdefault(name, (name, [], []))
            places.append(at)
            texts.append(data)
            count, size = count + 1, size + len(data)
        self._left += part.values()
        self._sent: "list[int]" = []

    def commands(self) -> "Iterator[tuple[str, list[bytes]]]":
        for name, self._sent, data in self._left:
            yield name, data

    def stored(self) -> None:
        for at in self._sent:
            self.said[at] = Submitted(self._ids[at])

    def failed(self, error: QuiverError) -> None:
        for at in self._sent:
            self.said[at] = error


def reply_of(app: str, id: str) -> str:
    return f"quiver:{{{app}:{id.rpartition('-')[2]}}}:reply:{id}"


def outcome(id: str, told: bytes) -> "Union[Outcome, str]":
    """Of a reply in the store; the id of another task: it was merged into that one."""
    state, has_data, data, reason = unpack(told)[:4]
    if state == 3:
        return str(data.decode())
    return Outcome("done" if state == 1 else "dead", id, data if has_data else None, reason.decode())


def is_moved(error: Exception) -> bool:
    redis: Any = importlib.import_module("redis")
    return isinstance(error, redis.exceptions.MovedError)


def moves_for_ever() -> QuiverError:
    return Retry("Redis: the servers of the Cluster do not agree who has the key")


def meaning(error: Exception, is_write: bool = True) -> QuiverError:
    """Of an error of redis-py: a refusal stored nothing, a lost connection may have."""
    redis: Any = importlib.import_module("redis")
    if isinstance(error, QuiverError):
        return error
    text = f"Redis: {error}"
    if isinstance(error, (redis.exceptions.AuthenticationError, redis.exceptions.NoPermissionError)):
        return Refused(text, 403)
    if isinstance(error, (redis.exceptions.BusyLoadingError, redis.exceptions.ReadOnlyError, redis.exceptions.ClusterDownError,
                          redis.exceptions.AskError, redis.exceptions.RedisClusterException, redis.sentinel.MasterNotFoundError)):
        return Retry(text)
    if isinstance(error, redis.exceptions.ResponseError):
        waits = ("OOM", "MISCONF", "NOREPLICAS", "LOADING", "READONLY", "MASTERDOWN", "TRYAGAIN", "CLUSTERDOWN", "BUSY", "ASK")
        return Retry(text) if text.removeprefix("Redis: ").startswith(waits) else Refused(text)
    if isinstance(error, redis.exceptions.ConnectionError) and "connecting to" in str(error):
        return Retry(text)
    return Unknown(text) if is_write else Retry(text)
