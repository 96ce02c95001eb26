"""Handlers for Quiver's pipe plugin: serve(handle) calls handle(task) for every task, one after the other."""
import base64
import os
import sys
import threading
import traceback
import types

# Frames have the pipes for themselves: what the handler prints goes to stderr, which is the log.
IN, OUT = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)
sys.stdout.reconfigure(line_buffering=True)

NUMBERS = ("attempt", "attempts_max", "crashes", "submitted_ms", "fence_epoch", "fence_start", "deadline_ms")


class Outcome(Exception):
    """raise Outcome("reject" | "retry" | "later" | "limited" | "unavailable", why); for retry, later and limited also after_ms=…"""
    def __init__(self, kind, why="", **fields):
        super().__init__(why)
        if kind not in ("reject", "retry", "later", "limited", "unavailable"):
            raise ValueError(f"an Outcome is reject, retry, later, limited or unavailable, not {kind!r}")
        self.kind, self.fields = kind, fields


class ServiceError(Exception):
    """The host did not do what was asked: error is the name of the reason in plugin.h, "ETIMEDOUT" for example."""
    def __init__(self, service, error, text):
        super().__init__(f"{service}: {error}: {text}")
        self.error = error


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


ASKING = threading.Lock()  # an answer does not say which thread asked


def ask(tell, service, allowed, body=b"", **fields):
    """The value that the host answers; None if it refuses for the reason that is allowed."""
    with ASKING:
        tell(service, body, **fields)
        _, said, text = receive()
    if "error" not in said:
        return int(said["value"])
    if said["error"] == allowed:
        return None
    raise ServiceError(service, said["error"], text.decode())


class Services:
    """Of a task, as task.NAME: they wait for the host's answer, and raise ServiceError."""
    def __init__(self, tell):
        self.tell = tell

    def trylock(self, name, ttl_ms):
        """The fencing token of the lock, which is the task's until it ends or ttl_ms have passed; None: somebody else has it."""
        return ask(self.tell, "trylock", "EBUSY", name=name, ttl_ms=ttl_ms)

    def unlock(self, name, token):
        """False: it was no longer held with that token."""
        return ask(self.tell, "unlock", "ENOENT", name=name, token=token) is not None

    def next_id(self):
        return ask(self.tell, "next_id", None)

    def room_append(self, room, data):
        """The number of the entry."""
        return ask(self.tell, "room_append", None, data, room=room)


def answer(tell, kind, body=b"", **fields):
    """Ends the task, after all that it printed: the host logs that under this task."""
    sys.stdout.flush()
    sys.stderr.flush()
    tell(kind, body, **fields)


def trace(headers):
    """TRACEPARENT and TRACESTATE of the task, for tools that trace and for what the handler starts."""
    for name in ("traceparent", "tracestate"):
        if isinstance(headers.get(name), str):
            os.environ[name.upper()] = headers[name]
        else:
            os.environ.pop(name.upper(), None)


def run(handle, fields, body):
    """task.payload, task.checkpoint: bytes; task.id, .key, .handler, .lane: text; those of NUMBERS: int;
    task.headers: dict; task.fields: all as it came; task.tell(kind, body, name=value); the Services"""
    def tell(kind, body=b"", **more):
        send(kind, body, id=fields["id"], **more)

    split = len(body) - int(fields.get("checkpoint_size", 0))
    numbers = {name: int(fields[name]) for name in NUMBERS if name in fields}
    headers = {name[len("header."):]: value for name, value in fields.items() if name.startswith("header.")}
    headers |= {name[len("header64."):]: base64.b64decode(value) for name, value in fields.items() if name.startswith("header64.")}
    trace(headers)
    ours = Services(tell)
    task = types.SimpleNamespace(**{**fields, **numbers}, payload=body[:split], checkpoint=body[split:], fields=fields,
                                 headers=headers, tell=tell, trylock=ours.trylock, unlock=ours.unlock,
                                 next_id=ours.next_id, room_append=ours.room_append)
    try:
        result = handle(task)
        if result is not None:
            tell("result", result)
        answer(tell, "done")
    except Outcome as outcome:
        answer(tell, outcome.kind, str(outcome), **outcome.fields)
    except Exception as error:
        for line in traceback.format_exc().splitlines():
            tell("log", line, level="error")
        answer(tell, "retry", f"{type(error).__name__}: {error}")


def serve(handle):
    receive()
    send("ready", protocol=1)
    while True:
        _, fields, body = receive()
        run(handle, fields, body)
