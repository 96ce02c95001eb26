#!/usr/bin/python3
"""The Python client behind the protocol of tests/clients/README.md: a line of JSON asks, a line of JSON answers."""
import asyncio
import base64
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "sdk" / "clients" / "python"))

import quiver
import quiver.aio
from quiver import _answers, _task

SECONDS = {"delay_ms": "delay", "unique_ms": "unique", "debounce_ms": "debounce", "timeout_ms": "timeout", "at_ms": "at"}


def b64(data):
    return None if data is None else base64.b64encode(data).decode()


def task_of(said):
    options = {}
    for name, value in said.items():
        if name in SECONDS:
            options[SECONDS[name]] = value / 1000
        elif name == "payload_base64":
            options["payload"] = base64.b64decode(value)
        elif name == "headers_base64":
            options.setdefault("headers", {}).update({n: base64.b64decode(v) for n, v in value.items()})
        elif name == "headers":
            options.setdefault("headers", {}).update(value)
        else:
            options[name] = value
    return quiver.Task(**options)


def encode(said):
    task = task_of(said["submit"])
    target, fields, body = _task.request(task)
    fields = {name.lower(): value.encode("latin-1").decode() for name, value in fields.items() if name != "Content-Type"}
    told = {"request": {"target": target, "fields": fields, "body_base64": b64(body)}, "line": _task.line(task)}
    if "as" in said:
        not_before = _task.unix_milliseconds(task.at, "at") if task.at is not None else 0
        told["envelope_base64"] = b64(_task.envelope(task, said["as"]["id"], said["as"]["submitted_ms"], not_before))
        told["shard"] = _task.shard_of(task.key, 64) if task.key is not None else said["shard"]
    return told


def shown(value):
    """What a call returned, as the cases write it."""
    if isinstance(value, quiver.Submitted):
        return {"id": value.id, "duplicate": value.duplicate}
    if isinstance(value, quiver.Outcome):
        told = {"outcome": value.state, "id": value.id, "reason": value.reason, "error_text": value.error}
        if value.state == "done":
            told["result_base64"] = b64(value.result)
        return told
    if isinstance(value, quiver.QuiverError):
        told = {"error": type(value).__name__.lower(), "text": str(value)}
        if getattr(value, "id", None):
            told["id"] = value.id
        return told
    if isinstance(value, quiver.Result):
        return {"receipt": value.receipt, "id": value.id, "key": value.key, "handler": value.handler, "data_base64": b64(value.data)}
    return [shown(one) for one in value] if isinstance(value, list) else value


def interpret(said):
    answer = said["answer"]
    body = base64.b64decode(answer["body_base64"])
    if said["to"] == "call":
        return _answers.outcome(answer["status"], answer["fields"], body)
    return _answers.submitted(answer["status"], body)


class Blocking:
    """Calls of a client that return; `run` is what asyncio needs instead."""

    def __init__(self, client):
        self.client = client

    def run(self, value):
        return value


class Awaited(Blocking):
    def __init__(self, url, **options):
        self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        super().__init__(quiver.aio.connect(url, **options))

    def run(self, value):
        return self.loop.run_until_complete(value)


def open_client(said):
    options = {name: said[name] for name in ("token", "app", "timeout") if name in said}
    return Awaited(said["url"], **options) if said.get("is_async") else Blocking(quiver.connect(said["url"], **options))


def do(opened, said):
    client, what = opened.client, said["do"]
    if what == "submit":
        return opened.run(client.submit_task(task_of(said["task"])))
    if what == "submit_many":
        return opened.run(client.submit_many([task_of(one) for one in said["tasks"]]))
    if what == "call":
        task = task_of(said["task"])
        options = {name: value for name, value in vars(task).items() if name not in ("handler", "payload") and value not in (None, {})}
        return opened.run(client.call(task.handler, task.payload, wait=said["wait_ms"] / 1000, **options))
    if what == "wait":
        return opened.run(client.wait(said["id"], said["wait_ms"] / 1000))
    if what == "cancel":
        return opened.run(client.cancel(said["id"]))
    if what == "task":
        return opened.run(client.task(said["id"]))
    if what == "results":
        return opened.run(client.results(max=said["max"]))
    return opened.run(client.commit(said["receipts"]))


def main():
    opened = None
    for line in sys.stdin:
        said = json.loads(line)
        try:
            if said["do"] == "encode":
                told = encode(said)
            elif said["do"] == "answer":
                told = shown(interpret(said))
            elif said["do"] == "open":
                opened, told = open_client(said), {}
            else:
                told = shown(do(opened, said))
        except quiver.Refused as error:
            told = {"refused": str(error), **shown(error)}
        except quiver.QuiverError as error:
            told = shown(error)
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
