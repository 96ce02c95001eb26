"""Handlers for Quiver's pipe plugin: serve(handle) calls handle(task) for every task, one after the other."""
import os
import sys
import traceback
import types

# Frames have the pipes for themselves: what the handler prints goes to stderr, which is the log.
IN, OUT = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)


class Outcome(Exception):
    """raise Outcome("reject" | "retry" | "unavailable", why); for retry also after_ms=…"""
    def __init__(self, kind, why="", **fields):
        super().__init__(why)
        self.kind, self.fields = kind, fields


def send(kind, body=b"", **fields):
    head = "".join(f"{name}={value}\n" for name, value in fields.items())
    frame = f"{kind}\n{head}\n".encode() + (body.encode() if isinstance(body, str) else body)
    OUT.write(len(frame).to_bytes(4, "big") + frame)
    OUT.flush()


def receive():
    size = int.from_bytes(IN.read(4) or sys.exit(), "big")
    head, _, body = IN.read(size).partition(b"\n\n")
    kind, *fields = head.decode().split("\n")
    return kind, dict(line.split("=", 1) for line in fields), body


def run(handle, fields, body):
    """task.payload, task.checkpoint: bytes; task.id, .key, .attempt, …: text; task.tell(kind, body, name=value)"""
    split = len(body) - int(fields.get("checkpoint_size", 0))
    task = types.SimpleNamespace(payload=body[:split], checkpoint=body[split:], fields=fields, **fields,
                                 tell=lambda kind, body=b"", **more: send(kind, body, id=fields["id"], **more))
    try:
        result = handle(task)
        if result is not None:
            task.tell("result", result)
        task.tell("done")
    except Outcome as outcome:
        task.tell(outcome.kind, str(outcome), **outcome.fields)
    except Exception as error:
        traceback.print_exc()
        task.tell("retry", f"{type(error).__name__}: {error}")


def serve(handle):
    receive()
    send("ready", protocol=1)
    while True:
        _, fields, body = receive()
        run(handle, fields, body)
