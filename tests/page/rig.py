"""Two hosts of one app with a page each, a backlog, failures, crashes, and hostile texts wherever a text can be."""
import http.client
import json
import pathlib

from fleet import Backing, Fleet
from hosts import wait_until
from http_hosts import free_port

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHOTS = ROOT / "build" / "page"
TOKENS = "watcher read watcher-watcher-1\nshop submit shop-shop-shop-shop\n"


def xss(where):
    """A text that would change the title of the page if it became markup."""
    return f"<img/src=x/onerror=document.title='{where}'><b>\"'&amp;"


HANDLERS = """limits = {{ smtp = {{ concurrency = 2; }}; api = {{ rate = 100; per = "1s"; burst = 20; }}; }};
handlers = {{
  mail = {{ plugin = "ledger.so"; grace = "300ms"; config = {{ path = "{folder}/ledger"; }}; threads = 4; timeout = "1h";
    retry = {{ attempts = 2; backoff = "1h"; max = "1h"; }}; }};
  thumbs = {{ plugin = "ledger.so"; grace = "300ms"; crashes = 1; config = {{ path = "{folder}/ledger"; }}; threads = 2; timeout = "1h"; limited_by = [ "smtp", "api" ];
    retry = {{ attempts = 1; }}; }};
}};
"""


def task(handler, number, words, key=None, **more):
    return {"handler": handler, "key": key, "payload": f"{number} {words}", **more}


class Shown:
    """The hosts, and a tab that looks at the first of them."""

    def __init__(self, quiver, folder, browser, names=("host-a", "host-b"), backing=None):
        self.browser, self.folder = browser, folder
        self.fleet = Fleet(quiver, ROOT / "build" / "test-plugins", folder, backing or Backing(folder))
        self.ports = {name: free_port() for name in names}
        tokens = folder / "tokens"
        tokens.write_text(TOKENS)
        tokens.chmod(0o600)
        for number, name in enumerate(names):
            self.fleet.add(f"h{number}", host=name, change=lambda text, name=name: self.change(text, name, tokens))
        self.host = self.fleet.members["h0"]

    def change(self, text, name, tokens):
        handlers = HANDLERS.format(folder=self.folder)
        return (f'http = {{ listen = "127.0.0.1:{self.ports[name]}"; tokens_file = "{tokens}"; }};\n'
                + text[:text.index("handlers = {")] + handlers)

    def start(self, has_tasks=True):
        for member in self.fleet.members.values():
            member.start()
        self.token = (self.folder / "state-h0" / "http.token").read_text().split()[2]
        self.fleet.wait_even()
        if has_tasks:
            self.submit()

    def submit(self):
        host = self.host
        host.cli("key", "hold", "held-1", "--reason", xss("reason"))
        host.submit([task("mail", number, "reject", key=f"user-{number}") for number in range(1, 8)])
        host.submit([
            task("mail", 20, "result", key=xss("key")), task("mail", 21, xss("error"), key="bad-word"),
            task("mail", 22, "result", key="held-1"), task("mail", 23, "result", key="held-1"),
            task("mail", 24, "retry:9", key="parked-1"), task("mail", 25, "result", key="parked-1"),
            task("thumbs", 30, "crash", key="crashes-1"), task("mail", 31, "result", key="later-1", delay="2h"),
            task("mail", 32, f"progress:3:8 wait:{self.folder}/go", key="long-1"),
        ])
        host.cli("schedule", "set", "report", "--cron", "30 2 * * sun", "--zone", "Europe/Berlin", "--handler", "mail", "80 " + xss("scheduled"))
        host.cli("schedule", "set", "sweep", "--every", "6h", "--handler", "mail", "81 result")
        wait_until(lambda: self.get("/v1/status")["totals"]["dead"] == 9, "nine are dead")
        host.submit([task("thumbs", 40 + n, f"wait:{self.folder}/go", key=f"photo-{n % 4}") for n in range(9)])
        wait_until(lambda: self.get("/v1/status")["totals"]["running"] >= 3, "some run")

    @property
    def address(self):
        return f"http://127.0.0.1:{self.ports['host-a']}/"

    def look(self, page="", token=None):
        """A new tab; it shows the page and something of it."""
        self.browser.open(f"{self.address}#token={token or self.token}")
        self.browser.wait(self.browser.title, "a title")
        if page:
            self.browser.go(page)

    def ask(self, verb, path, token="", **fields):
        """Status and body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.ports["host-a"], timeout=60)
        headers = {name.replace("_", "-"): value for name, value in fields.items()}
        if token is not None:
            headers["Authorization"] = f"Bearer {token or self.token}"
        connection.request(verb, path, headers=headers)
        answer = connection.getresponse()
        found = answer.status, answer.read()
        connection.close()
        return found

    def get(self, path):
        status, body = self.ask("GET", path)
        assert status == 200, body
        return json.loads(body)

    def close(self):
        (self.folder / "go").touch()
        self.fleet.close()
