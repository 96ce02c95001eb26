"""Clients of redis-py by URL, in the forms that runtime.cfg has for a store; none of them repeats a command by itself."""
from __future__ import annotations

import importlib
import urllib.parse
from typing import Any

from ._errors import Refused

SCHEMES = ("redis://", "rediss://", "unix://", "redis+sentinel://", "redis+cluster://")


def servers(url: str, default_port: int) -> "list[tuple[str, int]]":
    found = []
    for text in urllib.parse.urlsplit(url).netloc.split(","):
        parts = urllib.parse.urlsplit(f"//{text}")
        if not parts.hostname or parts.username:
            raise Refused(f"{url}: is not {url.partition('://')[0]}://HOST:PORT,HOST:PORT…")
        found.append((parts.hostname, parts.port or default_port))
    return found


def library(name: str) -> Any:
    return importlib.import_module(name)


def open_redis(url: str, is_async: bool, options: "dict[str, Any]") -> Any:
    """`options` go to redis-py: password, ssl, socket_timeout …"""
    inside = "redis.asyncio" if is_async else "redis"
    redis, cluster, sentinel, retry = (library(name) for name in (inside, f"{inside}.cluster", f"{inside}.sentinel", f"{inside}.retry"))
    if url.startswith("redis+cluster://"):
        nodes = [cluster.ClusterNode(host, port) for host, port in servers(url, 6379)]
        return redis.RedisCluster(startup_nodes=nodes, **options)
    options = {"retry": retry.Retry(library("redis.backoff").NoBackoff(), 0), **options}
    if url.startswith("redis+sentinel://"):
        name, _, database = urllib.parse.urlsplit(url).path.strip("/").partition("/")
        if not name:
            raise Refused(f"{url}: names no master: redis+sentinel://HOST:PORT,HOST:PORT/MASTER")
        sentinel_options = options.pop("sentinel_kwargs", None)
        group = sentinel.Sentinel(servers(url, 26379), sentinel_kwargs={"socket_timeout": 2, **(sentinel_options or {})})
        return group.master_for(name, db=int(database or 0), **options)
    return redis.Redis.from_url(url, **options)
