#!/usr/bin/env python3
"""my-plugin: counts the words of its payload; replace that with your own work.

A worker of plugin = "pipe.so": it stays, and gets one task at a time.  What handle() returns is the task's result; an
exception makes it run again later, Outcome("reject", why) never, Outcome("unavailable", why) once the others can go on,
Outcome("later", why) when this key can go on; the other keys need not wait."""
from quiver_pipe import Outcome, serve


def handle(task):
    text = task.payload.decode()
    if not text.strip():
        raise Outcome("reject", "the payload has no words")
    return str(len(text.split())).encode()


if __name__ == "__main__":
    serve(handle)
