"""Tasks that come in over HTTP, at a host that also runs them: one a request, as lines, and waited for."""
import contextlib
import socket

from latency import IDLE_RATES, WARM, add_shares, latencies
from place import opened, words
from processes import TOOLS, output, running, wait_until
from table import share

CONNECTIONS = 16
SLOW = 200  # connections of a client that never ends its request


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Door:
    """The HTTP server of a place's host."""

    def __init__(self, place, port):
        self.place, self.port = place, port
        self.token = (place.folder / "host-0" / "http.token").read_text().split()[2]

    def words(self, what, *more, **load):
        return [TOOLS / "http_load", str(self.port), self.token, what, *map(str, more), *words(load)]

    def rate(self, tasks, what, *more):
        """Tasks a second that are taken; afterwards all of them are done."""
        goal = self.place.done() + tasks
        seconds = float(output(self.words(what, *more, tasks=tasks)))
        wait_until(lambda: self.place.done() >= goal, "all are done", 120, 0.05)
        return tasks / seconds

    def waits(self, count):
        """From the request to the outcome, in ms, of an idle host."""
        found = output(self.words("wait", tasks=WARM + count, rate=IDLE_RATES[0])).split()
        return [float(ms) for ms in found][WARM:]

    @contextlib.contextmanager
    def slow_clients(self):
        with running(self.words("slow", SLOW)) as process:
            process.stdout.readline()
            yield


def measure_http(table, options, kind):
    port, tasks = free_port(), options.tasks // 2
    settings = {"more": f'http = {{ listen = "127.0.0.1:{port}"; connections = {2 * SLOW}; }};', "with_latencies": True}
    with opened(kind, **settings) as place:
        place.start().warm(2000)
        door = Door(place, port)
        how = f"{CONNECTIONS} connections, keep-alive; best of {options.rounds}; {place.how()}; the tasks are run meanwhile"
        before = place.cpu()
        singles = [door.rate(tasks, "single", CONNECTIONS) for _ in range(options.rounds)]
        for name, seconds in place.cpu().items():
            table.add(f"HTTP: one task a request, CPU of {name}", (seconds - before[name]) / tasks / options.rounds * 1e6,
                      "us/task", how=place.level)
        table.add("HTTP: one task a request", max(singles), "tasks/s", bar="http.single", how=how)
        bulk, lines = [], []
        for _ in range(options.rounds):
            bulk.append(tasks / place.submit(tasks))
            lines.append(door.rate(tasks, "lines"))
        table.add("HTTP: lines of JSON", max(lines), "tasks/s", how=f"one request; best of {options.rounds}")
        table.add("HTTP: lines, of the client library", max(lines) / max(bulk), "", bar="http.lines",
                  how=f"1000 in one step: {max(bulk):,.0f} tasks/s")
        plain, _ = latencies(place, WARM + options.singles, WARM, step=1, rate=IDLE_RATES[0], stamp=1)
        waits = door.waits(options.singles)
        how = f"{options.singles} requests, {1000 // IDLE_RATES[0]} ms apart at least"
        add_shares(table, "HTTP: request to outcome, idle", waits, how)
        table.add("HTTP: request to outcome, of the idle latency", share(waits, .5) / share(plain, .5), "x", bar="http.wait",
                  how=f"p50 of submit to handle(): {share(plain, .5):.3f} ms")
        with door.slow_clients():
            slowed = max(door.rate(tasks, "single", CONNECTIONS) for _ in range(options.rounds))
            table.add(f"HTTP: one task a request beside {SLOW} slow clients, of that without", slowed / max(singles), "",
                      bar="http.slow", how=f"{slowed:,.0f} tasks/s")
            table.add(f"HTTP: request to outcome beside {SLOW} slow clients, of that without",
                      share(door.waits(options.singles), .5) / share(waits, .5), "x", bar="http.slow.wait", how="p50")
