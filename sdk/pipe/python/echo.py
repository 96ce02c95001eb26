#!/usr/bin/env python3
"""Returns its payload with a greeting: config = { command = ["/usr/bin/python3", "/path/to/echo.py"]; };"""
from quiver_pipe import Outcome, serve


def handle(task):
    if not task.payload:
        raise Outcome("reject", "the payload is empty")
    return b"hello, " + task.payload


serve(handle)
