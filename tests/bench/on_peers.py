"""The same work on what people use today: no-op tasks with payloads of 100 bytes, end to end, in the same run as Quiver's.

Each gets what its manual recommends for throughput: pipelines or bulk submission, prefetching, no results kept, no
persistence (as Quiver's Redis here), and as many worker processes as there are cores where one cannot use them all."""
import contextlib
import os
import socket
import subprocess
import time

from on_redis import Redis, site
from rig import BUILD, Folder, KEYS, ROOT, SHARDS, TOOLS, start, stop, wait_until

APPS = ROOT / "tests" / "bench" / "peers"
CORES = os.cpu_count() or 1


def said(*words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout.strip().splitlines()[-1] if done.stdout.strip() else "?"


def package(name):
    return said("dpkg-query", "-W", "-f=${Version}", name)


def free_port():
    with contextlib.closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def answers(port):
    with contextlib.closing(socket.socket()) as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def with_server(words, name, tasks):
    """A server of its own, and one program in C that produces and works."""
    with Folder() as folder:
        port = free_port()
        server = start([str(word).format(port=port, folder=folder) for word in words], folder / "log")
        try:
            wait_until(lambda: answers(port), f"{name} answers")
            return tasks / float(subprocess.run([TOOLS / "peers" / name, str(port), str(tasks)], check=True, timeout=300,
                                                stdout=subprocess.PIPE, text=True).stdout)
        finally:
            stop(server, 5)


def on_redis(worker, workers, producer, tasks, env):
    """Workers and a producer on a Redis of their own.  They are warm: some tasks have gone through before."""
    with Folder() as folder:
        server = Redis(folder)
        count = folder / "done"
        count.touch()
        full = {**os.environ, "REDIS": f"unix://{server.socket}", "REDIS_SOCKET": str(server.socket), "DONE": str(count),
                "PYTHONPATH": str(APPS), "PYTHONDONTWRITEBYTECODE": "1", **env(server)}
        running = [start(worker, folder / "log", env=full, cwd=folder) for _ in range(workers)]
        try:
            def through(number):
                before = count.stat().st_size
                making = start([*producer, number], folder / "log", env=full, cwd=folder)
                # From the first one done on: an interpreter's start is not part of it.
                wait_until(lambda: count.stat().st_size > before, f"{worker} works", 60, 0.001)
                first, began = count.stat().st_size, time.monotonic()
                wait_until(lambda: count.stat().st_size >= before + number, f"{worker} did {number}", 300)
                rate = (before + number - first) / (time.monotonic() - began)
                making.wait()
                return rate
            through(1000)
            return through(tasks)
        finally:
            for process in running:
                stop(process, 5)
            stop(server.process)


def none(server):
    return {}


# Name; version; what it does not do; how; and the rate of so many tasks.
PEERS = [
    ("beanstalkd", lambda: package("beanstalkd"),
     "no order per key, no fencing, no isolation (one process dies, one worker is gone); a dead worker's job comes back after its TTR",
     "in memory, pipelines of 100, one worker", 4,
     lambda tasks: with_server(["beanstalkd", "-l", "127.0.0.1", "-p", "{port}"], "beanstalk", tasks)),
    ("Gearman", lambda: package("gearman-job-server"),
     "no order per key, no fencing, no retries with backoff; in memory, background jobs die with the server",
     "in memory, C worker, 100 background jobs a step", 4,
     lambda tasks: with_server(["gearmand", "-L", "127.0.0.1", "-p", "{port}", "-l", "{folder}/gearmand.log"], "gearman", tasks)),
    ("Sidekiq", lambda: package("ruby-sidekiq"),
     "no order, no fencing; a killed worker's tasks are lost; a segfault takes its neighbours along",
     f"push_bulk of 1000, {CORES} processes of 10 threads, retry off", 2,
     lambda tasks: on_redis(["sidekiq", "-r", APPS / "sidekiq_app.rb", "-c", "10"], CORES, ["ruby", APPS / "sidekiq_app.rb"],
                            tasks, none)),
    ("BullMQ", lambda: said("node", "-p", f"require('{BUILD}/bench/node_modules/bullmq/package.json').version"),
     "no order per key, no fencing, no isolation; a dead worker's tasks wait until they count as stalled",
     f"addBulk of 1000, concurrency 100, {CORES} processes, nothing kept", 2,
     lambda tasks: on_redis(["node", APPS / "bullmq_app.js", "work"], CORES, ["node", APPS / "bullmq_app.js"], tasks,
                            lambda server: {"NODE_PATH": str(BUILD / "bench" / "node_modules")})),
    ("Celery", lambda: package("python3-celery"),
     "no order, no fencing; early acknowledgement loses a killed worker's tasks, with late they wait for the visibility timeout",
     f"prefork of {CORES}, prefetch 128, results off, early acknowledgement", .1,
     lambda tasks: on_redis(["/usr/bin/python3", "-m", "celery", "-A", "celery_app", "worker", "-c", CORES, "-l", "WARNING",
                             "--without-gossip", "--without-mingle", "--without-heartbeat"], 1,
                            ["/usr/bin/python3", APPS / "celery_app.py"], tasks, lambda s: {"REDIS": f"redis+socket://{s.socket}"})),
    ("RQ", lambda: package("python3-rq"),
     "no order with several workers, no fencing; without a fork per task no isolation; a killed worker's task counts as failed, later",
     f"enqueue_many of 100, {CORES} SimpleWorkers, results off", .1,
     lambda tasks: on_redis(["/usr/bin/python3", APPS / "rq_app.py", "work"], CORES, ["/usr/bin/python3", APPS / "rq_app.py"],
                            tasks, none)),
]
ON_REDIS = ("Sidekiq", "BullMQ", "Celery", "RQ")


def measure_quiver(tasks, rounds):
    with site() as (server, host):
        host.start()
        server.seconds("through", "bench", 20000, KEYS, SHARDS)
        return max(tasks / server.seconds("through", "bench", tasks, KEYS, SHARDS) for _ in range(rounds))


def measure(table, options):
    """Quiver's rate is measured again beside each, since the weather changes."""
    for name, version, lacks, how, share, rate_of in PEERS:
        tasks = max(2000, int(options.tasks * share / 4) // 1000 * 1000)
        quiver = measure_quiver(options.tasks, 1)
        rate = max(rate_of(tasks) for _ in range(2))
        quiver = max(quiver, measure_quiver(options.tasks, 1))
        table.add("peers", f"peer {name} {version()}", rate, "tasks/s", how=f"{how}; {tasks} tasks, best of 2")
        table.add("peers", f"Quiver beside {name}", quiver, "tasks/s", how="Redis, appendonly no, ordered; best of 2")
        table.add("peers", f"ratio: Quiver / {name}", quiver / rate, "x", bar=5 if name in ON_REDIS else 1)
        table.note(f"{name}: {lacks}")


PARTS = {"all": measure}
