"""Client of Quiver: tasks that run in the order of their key, each once, none lost.

    import quiver

    with quiver.connect("http://127.0.0.1:7070", token=token) as client:
        client.submit("mail", b"hello", key="user-17")

Two ways to a fleet behind the same calls: HTTP (the standard library alone; quiver.aio for asyncio), and the store's
own Redis, for speed (quiver.RedisClient and quiver.aio.RedisClient, with redis-py).
"""
from __future__ import annotations

from typing import Any, Union

from . import _redis_connect
from ._answers import Outcome, Result, Submitted
from ._errors import QuiverError, Refused, Retry, Unknown
from ._http import Client
from ._redis import RedisClient
from ._task import Task

__all__ = ["Client", "Outcome", "QuiverError", "RedisClient", "Refused", "Result", "Retry", "Submitted", "Task", "Unknown", "connect"]
__version__ = "0.2.0"


def connect(url: str, **options: Any) -> "Union[Client, RedisClient]":
    """http://, https:// and http+unix: give a Client.  With app=NAME, redis://, rediss://, unix://, redis+sentinel://H1,H2,H3/MASTER and
    redis+cluster://H1,H2,H3 give a RedisClient; other options go to redis-py."""
    if not url.startswith(_redis_connect.SCHEMES):
        return Client(url, **options)
    app = options.pop("app", None)
    if not app:
        raise Refused("a store on Redis may have several apps: say app=NAME")
    more = {name: options.pop(name) for name in ("max_payload",) if name in options}
    return RedisClient(_redis_connect.open_redis(url, False, options), app, **more)
