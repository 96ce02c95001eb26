"""Dumps as `quiver dump` writes them, made here: a second implementation of runtime/cli/dump/dump_format.h."""
import json
import secrets
import subprocess
import zlib


def queued(number, key="k", shard=0, handler="work", payload=None, **more):
    text = f"qv1\nkey:{key}\nhandler:{handler}\nid:t{number}-{shard}\n\n{number if payload is None else payload}"
    return {"state": "queued", "shard": shard, "lane": "normal", "envelope": text, **more}


def dead(number, key="k", shard=0, handler="mail", reason="exhausted", error="connection refused", at_ms=1763256000000):
    task = queued(number, key, shard, handler)
    note = f"qn1\nattempts:4\nevent:{at_ms} attempt {error}\n\n"
    return {**task, "state": "dead", "id": f"t{number}-{shard}", "handler": handler, "reason": reason, "at_ms": at_ms,
            "note": note}


def head(shards=8, name=None, version=2):
    return {"quiver": "dump", "version": version, "name": name or secrets.token_hex(16), "app": "test", "shards": shards}


def make_dump(items, chunk=256, first=None):
    """Bytes."""
    first = first or head()
    lines, total, tasks, chunks = [], 0, 0, 0

    def add(line):
        nonlocal total
        line = (line if isinstance(line, str) else json.dumps(line)).encode() + b"\n"
        total = zlib.crc32(line, total)
        lines.append(line)

    add(first)
    for start in range(0, len(items), chunk):
        part = items[start:start + chunk]
        for item in part:
            add(item)
        tasks += sum("state" in item for item in part)
        chunks += 1
        add(f'{{"chunk":{chunks},"lines":{len(part)},"sum":"{total:08x}"}}')
    add(f'{{"end":true,"chunks":{chunks},"tasks":{tasks},"sum":"{total:08x}"}}')
    return b"".join(lines)


def load(host, dump, *words, code=0):
    """Through a pipe if `dump` is bytes, else a file's path.  What it printed."""
    if isinstance(dump, bytes):
        done = subprocess.run([host.quiver, "load", *words, "-c", host.config], input=dump, capture_output=True,
                              timeout=120)
    else:
        done = subprocess.run([host.quiver, "load", *words, "-c", host.config, dump], capture_output=True, timeout=120)
    assert done.returncode == code, done.stderr + done.stdout
    return (done.stdout + done.stderr).decode()


def dump_of(host):
    """Bytes."""
    return subprocess.run([host.quiver, "dump", "-c", host.config], capture_output=True, timeout=120, check=True).stdout


def lines_of(dump, kind):
    """The lines of a dump that have that name."""
    return [line for line in map(json.loads, dump.splitlines()) if kind in line]


def name(text, **more):
    """An idempotency key."""
    return {"idempotency": text, "key": "k", "shard": 3, "id": "t1-3", "digest": "0f" * 32, "left_ms": 1000, **more}


def schedule(name, key=None, **more):
    definition = json.dumps({"cron": "0 3 * * *", "handler": "work", **({"key": key} if key else {})})
    return {"schedule": name, "version": 3, "is_paused": False, "next_ms": 4102444800000, "last_ms": 0, "fired": 0,
            "skipped": 0, "definition": definition, **more}


def room(name, first=1, **more):
    return {"room": name, "first": first, "entries_max": 50000, "bytes_max": 1 << 30, "age_ms": 10 ** 12, **more}


def entry(name, number, text="", **more):
    return {"entry": name, "number": number, "at_ms": 1763256000000 + number, "bytes": text, **more}


def tasks_of(host):
    """What the store holds, as its own dump says: every envelope's payload by key, in order."""
    done = subprocess.run([host.quiver, "dump", "-c", host.config], capture_output=True, timeout=120, check=True)
    found = {}
    for line in done.stdout.splitlines():
        item = json.loads(line)
        if "state" in item:
            start, _, payload = item["envelope"].partition("\n\n")
            found.setdefault(start.split("\n")[1].removeprefix("key:"), []).append(payload)
    return found
