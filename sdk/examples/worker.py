#!/usr/bin/python3
"""A worker of a handler with plugin = "remote", with Python's standard library alone.

    QUIVER_TOKEN=… worker.py HANDLER [URL...]     a URL for each host; http://127.0.0.1:7070 if none is given
"""
import json
import os
import socket
import sys
import threading
import time
import urllib.error
import urllib.request

HANDLER, URLS = sys.argv[1], sys.argv[2:] or ["http://127.0.0.1:7070"]


def post(url, path, body=None):
    fields = {"Authorization": f"Bearer {os.environ['QUIVER_TOKEN']}"}
    request = urllib.request.Request(f"{url}/v1/work/{HANDLER}{path}", json.dumps(body or {}).encode(), fields)
    with urllib.request.urlopen(request, timeout=70) as answer:
        return json.loads(answer.read() or "null")


def handle(task):
    """Does a task: returns done with a result, or retry, later, reject, unavailable.  task["stop"]: somebody cancelled it."""
    return {"outcome": "done", "result": task["payload"].upper()}


def keep(url, task, is_over):
    """Heartbeats while the task runs.  Without an answer for too long it is another worker's: this process must not go on."""
    end = time.monotonic() + task["remaining_ms"] / 1000
    while not is_over.wait(task["ttl_ms"] / 3000):
        try:
            said = post(url, f"/{task['id']}/heartbeat", {"fence": task["fence"]})
            task["stop"], end = said["stop"], time.monotonic() + said["remaining_ms"] / 1000
        except OSError as error:
            if getattr(error, "code", 0) == 409 or time.monotonic() > end:
                os._exit(1)


def serve(url, name):
    while True:
        try:
            task = post(url, f"?wait=30s&worker={name}")
            if task:
                is_over = threading.Event()
                threading.Thread(target=keep, args=(url, task, is_over), daemon=True).start()
                try:
                    outcome = handle(task)
                except Exception as error:  # whatever the handler did not expect costs the task an attempt
                    outcome = {"outcome": "retry", "error": repr(error)}
                is_over.set()
                post(url, f"/{task['id']}/outcome", {"fence": task["fence"], **outcome})
        except OSError as error:
            print(f"{url}: {error}", file=sys.stderr)
            time.sleep(1)


for number, address in enumerate(URLS):
    threading.Thread(target=serve, args=(address, f"{socket.gethostname()}-{os.getpid()}-{number}")).start()
