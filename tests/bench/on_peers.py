"""The same work on what people use today: no-op tasks with payloads of 100 bytes, end to end, in the same run as Quiver's.

Each gets what its manual recommends for throughput: pipelines or bulk submission, prefetching, no results kept, no
persistence (as Quiver's Redis here), and as many worker processes as there are cores where one cannot use them all."""
import contextlib
import functools
import os
import socket
import subprocess
import sys
import time

from on_redis import OnRedis, Redis
from place import opened
from processes import BUILD, ROOT, TOOLS, Folder, Stuck, output, start, stop, wait_done, wait_until
from rates import best_rate

sys.path.append(str(ROOT / "tests" / "e2e" / "support"))
from postgres import Postgres  # noqa: E402

APPS = ROOT / "tests" / "bench" / "peers"
CORES = os.cpu_count() or 1


def said(*words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout.strip().splitlines()[-1] if done.stdout.strip() else "?"


def package(name):
    return said("dpkg-query", "-W", "-f=${Version}", name)


def node_version(name):
    return said("node", "-p", f"require('{BUILD}/bench/node_modules/{name}/package.json').version")


def server_version():
    return said("redis-server", "--version").split("v=")[1].split()[0]


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
            return tasks / float(output([TOOLS / "peers" / name, port, tasks], 300))
        finally:
            stop(server, 5)


@contextlib.contextmanager
def workers(words, count, folder, env):
    """So many workers.  Gives a function: the rate of so many tasks that a producer makes."""
    done, started = folder / "done", []
    done.touch()
    full = {**os.environ, "DONE": str(done), "NODE_PATH": str(BUILD / "bench" / "node_modules"), "PYTHONPATH": str(APPS),
            "PYTHONDONTWRITEBYTECODE": "1", **env}

    def through(producer, tasks):
        before = done.stat().st_size
        making = start([*producer, tasks], folder / "log", env=full, cwd=folder)
        started.append(making)
        try:
            # From the first one done on: an interpreter's start is not part of it.
            wait_until(lambda: done.stat().st_size > before, "the first task is done", 60, 0.001)
            first, began = done.stat().st_size, time.monotonic()
            wait_done(lambda: done.stat().st_size, before + tasks)
        except Stuck as error:
            raise Stuck(f"{error}; its log ends with:\n{(folder / 'log').read_text()[-1000:]}") from None
        seconds = time.monotonic() - began
        making.wait(60)
        return (before + tasks - first) / seconds

    try:
        started += [start(words, folder / "log", env=full, cwd=folder) for _ in range(count)]
        yield through
    finally:
        for process in started:
            stop(process, 5)


def warm_rate(through, producer, tasks):
    """They are warm: some tasks have gone through before."""
    through(producer, 1000)
    return through(producer, tasks)


def on_redis(worker, count, producer, tasks, env):
    """On a Redis of their own."""
    with Folder() as folder:
        server = Redis(folder)
        try:
            server.wait()
            full = {"REDIS": f"unix://{server.socket}", "REDIS_SOCKET": str(server.socket), **env(server)}
            with workers(worker, count, folder, full) as through:
                return warm_rate(through, producer, tasks)
        finally:
            stop(server.process)


def on_postgres(app, count, tasks):
    """On a PostgreSQL of their own that waits for no disk."""
    server = Postgres(fsync="off")
    try:
        with open(server.data / "postgresql.auto.conf", "a") as settings:
            settings.write("synchronous_commit = off\nfull_page_writes = off\nmax_connections = 200\nshared_buffers = 128MB\n")
        server.start().fresh("")
        with Folder() as folder:
            env = {"DATABASE_URL": f"postgres://postgres@%2F{str(server.folder).strip('/').replace('/', '%2F')}/app"}
            output(["node", app, "migrate"], 60, env={**os.environ, **env, "NODE_PATH": str(BUILD / "bench" / "node_modules")})
            with workers(["node", app, "work"], count, folder, env) as through:
                return warm_rate(through, ["node", app], tasks)
    finally:
        server.close()


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
     "in memory, 8 C workers, 100 background jobs a step", 4,
     lambda tasks: with_server(["gearmand", "-L", "127.0.0.1", "-p", "{port}", "-l", "{folder}/gearmand.log"], "gearman", tasks)),
    ("Sidekiq", lambda: package("ruby-sidekiq"),
     "no order, no fencing; a killed worker's tasks are lost; a segfault takes its neighbours along",
     f"push_bulk of 1000, {CORES} processes of 10 threads, retry off", 2,
     lambda tasks: on_redis(["sidekiq", "-r", APPS / "sidekiq_app.rb", "-c", "10"], CORES, ["ruby", APPS / "sidekiq_app.rb"],
                            tasks, none)),
    ("BullMQ", lambda: node_version("bullmq"),
     "no order per key, no fencing, no isolation; a dead worker's tasks wait until they count as stalled",
     f"addBulk of 1000, concurrency 100, {CORES} processes, nothing kept", 2,
     lambda tasks: on_redis(["node", APPS / "bullmq_app.js", "work"], CORES, ["node", APPS / "bullmq_app.js"], tasks,
                            none)),
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
    ("graphile-worker", lambda: f"{node_version('graphile-worker')}, PostgreSQL {package('postgresql')}",
     "order only in named queues (one at a time, and a slower path), no fencing, no isolation; a dead worker's tasks wait for 4 hours",
     f"fsync and synchronous_commit off, addJobs of 1000, {CORES} processes of 24 jobs, "
     "a local queue of 500, outcomes in batches", 1,
     lambda tasks: on_postgres(APPS / "graphile_app.js", CORES, tasks)),
]


def measure_quiver(tasks):
    with opened(OnRedis) as place:
        return best_rate(place.start().warm(), tasks, 2)


def measure(table, options, name, version, lacks, how, share, rate_of):
    """Quiver's rate is measured again beside each, before and after it, since the weather changes."""
    tasks = max(2000, int(options.tasks * share / 4) // 1000 * 1000)
    quiver = measure_quiver(options.tasks)
    rate = max(rate_of(tasks) for _ in range(2))
    quiver = max(quiver, measure_quiver(options.tasks))
    table.add(f"peer {name} {version()}", rate, "tasks/s", how=f"{how}; no persistence, {CORES} cores, {tasks} tasks, best of 2")
    table.add(f"Quiver beside {name}", quiver, "tasks/s",
              how=f"Redis {server_version()}, no persistence, {CORES} cores, ordered, fenced, isolated; best of 4")
    table.add(f"Quiver / {name}", quiver / rate, "x", bar="peers",
              how=f"it has {lacks}")


PARTS = {peer[0].lower(): functools.partial(lambda table, options, peer: measure(table, options, *peer), peer=peer)
         for peer in PEERS}
