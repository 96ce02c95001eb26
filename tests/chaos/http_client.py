"""A producer with nothing but HTTP: any host will do, and what is not answered is asked again until it is.

Each task has an Idempotency-Key of its own, so that a repeat is safe whatever became of the first: the host was killed
before or after it stored the task, or was stopped and goes on later."""
import glob
import http.client
import json
import socket
import time
import urllib.parse

TIMEOUT_S = 0.5  # short, so that a host that is only paused takes the request later, too
PAUSE_S = 0.05
REFUSED = {400, 409, 413}  # certainly not taken; anything else is asked again


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=TIMEOUT_S)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(TIMEOUT_S)
        self.sock.connect(self.path)


class HttpClient:
    """As client.Client; `is_over` says that nobody wants it to go on."""

    def __init__(self, folder, chance, is_over):
        self.folder, self.chance, self.is_over = folder, chance, is_over
        self.repeats = 0

    def ask(self, path, body, fields):
        """Status and body of some host's answer, or None."""
        sockets = glob.glob(f"{self.folder}/state-h*/h*.http")
        if not sockets:
            return None
        connection = UnixConnection(self.chance.choice(sockets))
        try:
            connection.request("POST", path, body, fields)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def until_known(self, attempt):
        """What attempt() says, asked again until it says something."""
        while True:
            found = attempt()
            if found is not None or self.is_over():
                return found
            self.repeats += 1
            time.sleep(PAUSE_S * self.chance.random())

    def submit(self, handler, tasks):
        """(status, id) of each; a task of a key is not sent before the one before it is known."""
        if self.chance.random() < 0.5:
            return [self.until_known(lambda t=t: self.post(handler, t)) or ("unknown", "") for t in tasks]
        return self.until_known(lambda: self.post_lines(handler, tasks)) or [("unknown", "")] * len(tasks)

    def post(self, handler, task):
        query = {"key": task["key"], "lane": task["lane"]}
        if task["delay_ms"]:
            query["delay"] = f"{task['delay_ms']}ms"
        handler = task.get("handler", handler)
        answer = self.ask(f"/v1/tasks/{handler}?{urllib.parse.urlencode(query)}", task["payload"].encode(),
                          {"Idempotency-Key": task["number"]})
        if answer is None or answer[0] != 202:
            return ("refused", "") if answer and answer[0] in REFUSED else None
        return "kept", json.loads(answer[1])["id"]

    def post_lines(self, handler, tasks):
        lines = []
        for task in tasks:
            line = {"handler": task.get("handler", handler), "key": task["key"], "lane": task["lane"], "payload": task["payload"],
                    "idempotency_key": task["number"]}
            if task["delay_ms"]:
                line["delay"] = f"{task['delay_ms']}ms"
            lines.append(json.dumps(line))
        answer = self.ask("/v1/tasks", "\n".join(lines).encode(), {})
        if answer is None or answer[0] != 200:
            return None
        told = [json.loads(line) for line in answer[1].splitlines()]
        # The whole batch again: what was stored is known by its name, and the order stays.
        if len(told) < len(tasks) or any(t["status"] not in REFUSED | {202} for t in told):
            return None
        return [("kept", t["id"]) if t["status"] == 202 else ("refused", "") for t in told]

    def close(self):
        print(f"{self.repeats} requests were repeated", flush=True)
