"""The client on the store's own Redis, for speed: an RPUSH a task, by redis-py.

It can submit, submit many, and wait for outcomes.  What needs one of Quiver's scripts (unique, idempotency keys) or a
host (cancel, status, results) is refused by name: the client over HTTP has it.

Nothing is sent twice: a command whose answer was lost is unknown.  redis-py's own client of a Cluster repeats such commands, so
here it only says which server has a key, and the commands go to that server.
"""
from __future__ import annotations

import time
from typing import Any, Iterable, Optional

from . import _redis_plan as plan
from ._answers import Outcome, Submitted
from ._errors import QuiverError
from ._redis_plan import meaning
from ._task import Task


class RedisClient:
    """`redis` is a client of redis-py: redis.Redis, Sentinel's master_for(), or redis.RedisCluster."""

    def __init__(self, redis: Any, app: str, max_payload: int = 1 << 20) -> None:
        plan.check_client(redis)
        self._redis, self._app, self._max_payload = redis, app, max_payload
        self._is_cluster = hasattr(redis, "get_node_from_key")
        self._is_stale = False  # of a Cluster: who has which key has to be asked again
        self._shards = 0

    def close(self) -> None:
        self._redis.close()

    def __enter__(self) -> "RedisClient":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def shards(self) -> int:
        """As the store has recorded them; they never change."""
        if not self._shards:
            name = f"quiver:{{{self._app}}}:app"
            self._shards = plan.shards_of(self._app, self._do(name, "HGET", name, "shards", is_write=False))
        return self._shards

    def submit(self, handler: str, payload: "bytes | str" = b"", **options: Any) -> Submitted:
        return self.submit_task(Task(handler, payload, **options))

    def submit_task(self, task: Task, reply: Optional[float] = None) -> Submitted:
        plan.check(task, self._max_payload)
        id, name, data = plan.stored(self._app, self.shards(), task, self._now_ms([task]), reply)
        self._do(name, "RPUSH", name, data)
        return Submitted(id)

    def submit_many(self, tasks: Iterable[Task]) -> "list[Submitted | QuiverError]":
        """Stores tasks in the given order; returns for each its id, or what it would have raised.  Once a command fails, nothing more
        is sent: the rest are Retry."""
        all_of_them = list(tasks)
        sending = plan.Many(self._app, self.shards(), all_of_them, self._now_ms(all_of_them), self._max_payload)
        for name, data in sending.commands():
            try:
                self._do(name, "RPUSH", name, *data)
                sending.stored()
            except QuiverError as error:
                sending.failed(error)
                break
        return sending.said

    def call(self, handler: str, payload: "bytes | str" = b"", wait: float = 30.0, **options: Any) -> Outcome:
        """Submits a task and waits for its outcome, which is asked for more rarely the longer it takes."""
        made = self.submit_task(Task(handler, payload, **options), reply=wait + 60)
        return self.wait(made.id, wait)

    def wait(self, id: str, wait: float) -> Outcome:
        """The outcome of a task that call() submitted."""
        until, pause = time.monotonic() + wait, 0.001
        while True:
            name = plan.reply_of(self._app, id)
            told = self._do(name, "GET", name, is_write=False)
            if told is not None:
                ended = plan.outcome(id, told)
                if isinstance(ended, Outcome):
                    return ended
                id = ended
                continue
            if time.monotonic() >= until:
                return Outcome("waiting", id)
            time.sleep(min(pause, max(0.0, until - time.monotonic())))
            pause = min(pause * 1.5, 0.25)

    def _now_ms(self, tasks: "list[Task]") -> int:
        """The store's time, if one of them needs it."""
        if not any(task.delay is not None for task in tasks):
            return 0
        told = self._do(f"quiver:{{{self._app}}}:app", "TIME", is_write=False)
        return int(told[0]) * 1000 + int(told[1]) // 1000

    def _do(self, key: str, *words: Any, is_write: bool = True) -> Any:
        """One command, to whoever has the key.  MOVED says that it was not done, so it may be sent to another server."""
        for _ in range(plan.MOVES):
            try:
                return self._server(key).execute_command(*words)
            except Exception as error:
                self._is_stale = self._is_cluster
                if not plan.is_moved(error):
                    raise meaning(error, is_write) from error
        raise plan.moves_for_ever()

    def _server(self, key: str) -> Any:
        if not self._is_cluster:
            return self._redis
        if self._is_stale:
            self._redis.nodes_manager.initialize()
            self._is_stale = False
        return self._redis.get_redis_connection(self._redis.get_node_from_key(key))
