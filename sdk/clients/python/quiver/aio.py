"""The clients for asyncio: the same calls, awaited.  Over HTTP with the standard library alone; on the store's Redis by redis-py."""
from __future__ import annotations

import asyncio
import ssl
import time
import urllib.parse
from types import TracebackType
from typing import Any, Awaitable, Callable, Iterable, Mapping, Optional, Type, Union

from . import _answers as answers
from . import _redis_connect, _task
from . import _redis_plan as plan
from ._answers import Outcome, Result, Submitted
from ._errors import QuiverError, Refused, Retry, Unknown
from ._http import LINES_AT_ONCE, Address, Answer
from ._task import Task


class Client:
    """As quiver.Client; at most `connections` requests are under way at once, others wait their turn."""

    def __init__(self, url: str, token: Optional[str] = None, timeout: float = 30.0, repeats: int = 3, connections: int = 16) -> None:
        self._address = Address(url)
        self._token, self._timeout, self._repeats = token, timeout, repeats
        self._turns = asyncio.Semaphore(connections)
        self._idle: "list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]" = []

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        await self.close()

    async def close(self) -> None:
        while self._idle:
            self._idle.pop()[1].close()

    async def submit(self, handler: str, payload: "bytes | str" = b"", **options: Any) -> Submitted:
        return await self.submit_task(Task(handler, payload, **options))

    async def submit_task(self, task: Task) -> Submitted:
        target, fields, body = _task.request(task)

        async def once() -> Submitted:
            status, _, answer = await self._ask("POST", target, fields, body)
            return answers.submitted(status, answer)

        return await repeated(self._repeats if task.idempotency_key else 0, once)

    async def submit_many(self, tasks: Iterable[Task]) -> "list[Submitted | QuiverError]":
        sending, goes_on = answers.Lines(tasks, LINES_AT_ONCE), True
        while goes_on and (body := sending.next()):
            try:
                status, _, answer = await self._ask("POST", "/v1/tasks", {"Content-Type": "application/x-ndjson"}, body)
                goes_on = sending.answered(status, answer)
            except QuiverError as error:
                goes_on = sending.failed(error)
        return sending.said

    async def call(self, handler: str, payload: "bytes | str" = b"", wait: float = 30.0, **options: Any) -> Outcome:
        task = Task(handler, payload, **options)
        target, fields, body = _task.request(task, wait=wait)

        async def once() -> Outcome:
            return answers.outcome(*await self._ask("POST", target, fields, body, self._timeout + wait))

        return await repeated(self._repeats if task.idempotency_key else 0, once)

    async def wait(self, id: str, wait: float = 30.0) -> Outcome:
        until, pause = time.monotonic() + wait, 0.02
        while True:
            ended = answers.ended(id, await self.task(id))
            left = until - time.monotonic()
            if ended.state != "waiting" or left <= 0:
                return ended
            await asyncio.sleep(min(pause, left))
            pause = min(pause * 1.5, 1.0)

    async def task(self, id: str) -> "dict[str, Any]":
        return await self._json("GET", f"/v1/tasks/{urllib.parse.quote(id, safe='')}")

    async def cancel(self, id: str) -> "dict[str, Any]":
        return await self._json("POST", f"/v1/tasks/{urllib.parse.quote(id, safe='')}/cancel")

    async def status(self) -> "dict[str, Any]":
        return await self._json("GET", "/v1/status")

    async def results(self, max: int = 100, lease: Optional[float] = None) -> "list[Result]":
        query = f"?max={max}" + (f"&lease={_task.duration(lease, 'lease')}" if lease is not None else "")
        status, _, body = await self._ask("POST", "/v1/results/take" + query, {}, b"")
        if status != 200:
            raise answers.failure(status, body)
        return answers.results(body)

    async def commit(self, results: "Iterable[Result | str]") -> "dict[str, Any]":
        return await self._json("POST", "/v1/results/commit", answers.receipts(results), {"Content-Type": "application/json"})

    # --- one request

    async def _json(self, method: str, target: str, body: bytes = b"", fields: Mapping[str, str] = {}) -> "dict[str, Any]":
        status, _, answer = await self._ask(method, target, fields, body)
        if not 200 <= status < 300:
            raise answers.failure(status, answer)
        return answers.document(answer)

    async def _connect(self) -> "tuple[asyncio.StreamReader, asyncio.StreamWriter]":
        while self._idle:
            reader, writer = self._idle.pop()
            if not reader.at_eof() and not writer.is_closing():
                return reader, writer
            writer.close()
        try:
            if self._address.is_unix:
                return await asyncio.open_unix_connection(self._address.path)
            tls = ssl.create_default_context() if self._address.is_tls else None
            return await asyncio.open_connection(self._address.host, self._address.port, ssl=tls)
        except OSError as error:
            raise Retry(f"cannot connect to {self._address.name}: {error}") from error

    async def _ask(self, method: str, target: str, fields: Mapping[str, str], body: bytes,
                   timeout: Optional[float] = None) -> "tuple[int, Mapping[str, str], bytes]":
        head = {"Host": self._address.name, **fields, "Content-Length": str(len(body))}
        if self._token:
            head["Authorization"] = f"Bearer {self._token}"
        if any(c in name + value for name, value in head.items() for c in "\r\n"):
            raise Refused("a field of the request holds a line break")
        text = f"{method} {target} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in head.items()) + "\r\n"
        async with self._turns:
            reader, writer = await self._connect()
            try:
                writer.write(text.encode("latin-1") + body)
                status, told, answer = await asyncio.wait_for(read_answer(reader), timeout or self._timeout)
            except (OSError, ValueError, EOFError, asyncio.TimeoutError, asyncio.LimitOverrunError) as error:
                writer.close()
                raise Unknown(f"{self._address.name} did not answer: {error or type(error).__name__}") from error
            except BaseException:
                writer.close()  # cancelled: the answer would be another request's
                raise
            if told.get("connection", "").lower() == "close":
                writer.close()
            else:
                self._idle.append((reader, writer))
            return status, told, answer


async def read_answer(reader: asyncio.StreamReader) -> "tuple[int, Mapping[str, str], bytes]":
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    status = int(head[0].split(" ", 2)[1])
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    if status == 204:
        return status, fields, b""
    if fields.get("transfer-encoding", "").lower() == "chunked":
        parts = []
        while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            parts.append(await reader.readexactly(size))
            await reader.readexactly(2)
        while await reader.readuntil(b"\r\n") != b"\r\n":
            pass
        return status, fields, b"".join(parts)
    if "content-length" in fields:
        return status, fields, await reader.readexactly(int(fields["content-length"]))
    fields["connection"] = "close"
    return status, fields, await reader.read()


async def repeated(repeats: int, call: "Callable[[], Awaitable[Answer]]") -> Answer:
    for at in range(repeats + 1):
        try:
            return await call()
        except (Retry, Unknown):
            if at == repeats:
                raise
            await asyncio.sleep(0.1 * 2**at)
    raise AssertionError("not reached")


class RedisClient:
    """As quiver.RedisClient; `redis` is a client of redis.asyncio: Redis, Sentinel's master_for(), or RedisCluster."""

    def __init__(self, redis: Any, app: str, max_payload: int = 1 << 20) -> None:
        plan.check_client(redis)
        self._redis, self._app, self._max_payload = redis, app, max_payload
        self._is_cluster = hasattr(redis, "get_node_from_key")
        self._is_stale = self._is_cluster  # who has which key has to be asked first
        self._shards = 0

    async def __aenter__(self) -> "RedisClient":
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()

    async def close(self) -> None:
        await self._redis.close()

    async def shards(self) -> int:
        if not self._shards:
            name = f"quiver:{{{self._app}}}:app"
            self._shards = plan.shards_of(self._app, await self._do(name, "HGET", name, "shards", is_write=False))
        return self._shards

    async def submit(self, handler: str, payload: "bytes | str" = b"", **options: Any) -> Submitted:
        return await self.submit_task(Task(handler, payload, **options))

    async def submit_task(self, task: Task, reply: Optional[float] = None) -> Submitted:
        plan.check(task, self._max_payload)
        id, name, data = plan.stored(self._app, await self.shards(), task, await self._now_ms([task]), reply)
        await self._do(name, "RPUSH", name, data)
        return Submitted(id)

    async def submit_many(self, tasks: Iterable[Task]) -> "list[Submitted | QuiverError]":
        all_of_them = list(tasks)
        sending = plan.Many(self._app, await self.shards(), all_of_them, await self._now_ms(all_of_them), self._max_payload)
        for name, data in sending.commands():
            try:
                await self._do(name, "RPUSH", name, *data)
                sending.stored()
            except QuiverError as error:
                sending.failed(error)
                break
        return sending.said

    async def call(self, handler: str, payload: "bytes | str" = b"", wait: float = 30.0, **options: Any) -> Outcome:
        made = await self.submit_task(Task(handler, payload, **options), reply=wait + 60)
        return await self.wait(made.id, wait)

    async def wait(self, id: str, wait: float) -> Outcome:
        until, pause = time.monotonic() + wait, 0.001
        while True:
            name = plan.reply_of(self._app, id)
            told = await self._do(name, "GET", name, is_write=False)
            if told is not None:
                ended = plan.outcome(id, told)
                if isinstance(ended, Outcome):
                    return ended
                id = ended
                continue
            if time.monotonic() >= until:
                return Outcome("waiting", id)
            await asyncio.sleep(min(pause, max(0.0, until - time.monotonic())))
            pause = min(pause * 1.5, 0.25)

    async def _now_ms(self, tasks: "list[Task]") -> int:
        if not any(task.delay is not None for task in tasks):
            return 0
        told = await self._do(f"quiver:{{{self._app}}}:app", "TIME", is_write=False)
        return int(told[0]) * 1000 + int(told[1]) // 1000

    async def _do(self, key: str, *words: Any, is_write: bool = True) -> Any:
        for _ in range(plan.MOVES):
            try:
                return await (await self._server(key)).execute_command(*words)
            except Exception as error:
                self._is_stale = self._is_cluster
                if not plan.is_moved(error):
                    raise plan.meaning(error, is_write) from error
        raise plan.moves_for_ever()

    async def _server(self, key: str) -> Any:
        if not self._is_cluster:
            return self._redis
        if self._is_stale:
            await self._redis.nodes_manager.initialize()
            self._is_stale = False
        return self._redis.get_node_from_key(key)


def connect(url: str, **options: Any) -> "Union[Client, RedisClient]":
    """As quiver.connect()."""
    if not url.startswith(_redis_connect.SCHEMES):
        return Client(url, **options)
    app = options.pop("app", None)
    if not app:
        raise Refused("a store on Redis may have several apps: say app=NAME")
    more = {name: options.pop(name) for name in ("max_payload",) if name in options}
    return RedisClient(_redis_connect.open_redis(url, True, options), app, **more)
