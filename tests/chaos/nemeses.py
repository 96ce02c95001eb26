"""What is done to a run: a plan drawn from a seed, and those who carry it out.

A nemesis is a function that hurts something and returns how to make it good again (or None: nothing to do), or SKIPPED
with a reason in place of that.  All run on one thread: processes of ours die with the thread that started them.
"""
import collections
import os
import random
import signal

import redis

from book import now_ns
from crowd import send
from history import Stop
from places import role_of

# One fault: `at_s` after the beginning, for `for_s`; `target` picks among those there are.
Fault = collections.namedtuple("Fault", "at_s kind target for_s")


class Skipped(Exception):
    """It cannot be done now, and why."""


def pick(things, target):
    if not things:
        raise Skipped("nobody is there")
    return things[target % len(things)]


def living(run, target):
    return pick([host for host in run.crowd.hosts if host.is_alive], target)


def fell(run, target):
    """One that is about to be ended by us."""
    host = living(run, target)
    host.is_doomed = True
    return host


def start_again(run, host):
    def again():
        if host.is_alive:
            host.is_due = True  # it is still draining
        else:
            host.spawn()
    return again


def go_on(pids):
    def again():
        for pid in pids:
            send(pid, signal.SIGCONT)
    return again


# --- hosts ------------------------------------------------------------------------------------------------------------


def kill_host(run, target):
    host = fell(run, target)
    send(host.process.pid, signal.SIGKILL)
    host.process.wait()
    return host.name, start_again(run, host)


def kill_host_and_guard(run, target):
    host = fell(run, target)
    send(host.process.pid, signal.SIGSTOP)
    send(host.guard(), signal.SIGKILL)
    send(host.process.pid, signal.SIGKILL)
    host.process.wait()
    return host.name, start_again(run, host)


def kill_family(run, target):
    """As if the machine was lost."""
    host = fell(run, target)
    family = host.family()
    for pid in family:
        send(pid, signal.SIGSTOP)
    for pid in reversed(family):
        send(pid, signal.SIGKILL)
    host.process.wait()
    return f"{host.name}, {len(family)} processes", start_again(run, host)


def kill_guard(run, target):
    host = living(run, target)
    if not send(host.guard(), signal.SIGKILL):
        raise Skipped(f"{host.name} has no guard")
    return host.name, None


def kill_runner(run, target):
    host = living(run, target)
    pid = pick(host.runners(), target)
    send(pid, signal.SIGKILL)
    return f"{pid} of {host.name}", None


def stop(run, pids, text):
    """What hosts among them did not do meanwhile is not held against them."""
    names, began = [host.name for host in run.crowd.hosts if host.is_alive and host.process.pid in pids], now_ns()
    for pid in pids:
        send(pid, signal.SIGSTOP)

    def again():
        go_on(pids)()
        run.history.stops += [Stop(name, began, now_ns()) for name in names]
    return text, again


def pause_host(run, target):
    host = living(run, target)
    return stop(run, [host.process.pid], host.name)


def pause_runner(run, target):
    host = living(run, target)
    pid = pick(host.runners(), target)
    return stop(run, [pid], f"{pid} of {host.name}")


def pause_host_and_runners(run, target):
    host = living(run, target)
    return stop(run, [host.process.pid, *host.runners()], host.name)


def pause_family(run, target):
    host = living(run, target)
    return stop(run, host.family(), host.name)


def wake_runners_first(run, target):
    """They have got tasks that they have not begun; when they wake, others own the shards, and their host still sleeps."""
    host = living(run, target)
    runners = host.runners()
    if not runners:
        raise Skipped(f"{host.name} has no runners")
    stop(run, runners, "")
    run.rest(0.2)
    _, wake_host = stop(run, [host.process.pid], "")

    def again():
        go_on(runners)()
        run.rest(0.2)
        wake_host()
    return host.name, again


def pause_all(run, target):
    hosts = [host for host in run.crowd.hosts if host.is_alive]
    return stop(run, [host.process.pid for host in hosts], ", ".join(host.name for host in hosts))


def kill_host_with_guard_asleep(run, target):
    """The guard wakes long after somebody else has taken over: it must release nothing that is not its own."""
    host = living(run, target)
    guard = host.guard()
    if not send(guard, signal.SIGSTOP):
        raise Skipped(f"{host.name} has no guard")
    host.is_doomed = True
    send(host.process.pid, signal.SIGKILL)
    host.process.wait()

    def again():
        send(guard, signal.SIGCONT)
        start_again(run, host)()
    return host.name, again


def end_host(run, target):
    host = fell(run, target)
    send(host.process.pid, signal.SIGTERM)
    return host.name, start_again(run, host)


def end_host_twice(run, target):
    host = fell(run, target)
    send(host.process.pid, signal.SIGTERM)
    send(host.process.pid, signal.SIGTERM)
    return host.name, start_again(run, host)


# --- producers and consumers ------------------------------------------------------------------------------------------


def kill_producer(run, target):
    helper = pick([p for p in run.crowd.producers if p.is_alive], target)
    send(helper.process.pid, signal.SIGKILL)
    helper.process.wait()
    return helper.name, lambda: helper.is_alive or helper.spawn()


def kill_consumer(run, target):
    helper = pick([c for c in run.crowd.consumers if c.is_alive], target)
    send(helper.process.pid, signal.SIGKILL)
    helper.process.wait()
    return helper.name, lambda: helper.is_alive or helper.spawn()


def pause_consumer(run, target):
    helper = pick([c for c in run.crowd.consumers if c.is_alive], target)
    return stop(run, [helper.process.pid], helper.name)


# --- the file ---------------------------------------------------------------------------------------------------------


def lock_file(run, target):
    try:
        db = run.crowd.backing.lock()
    except OSError as error:
        raise Skipped(str(error)) from error

    def again():
        db.execute("ROLLBACK")
        db.close()
    return "held by another program", again


def fill_disk(run, target):
    if not run.crowd.backing.has_disk:
        raise Skipped("no disk of our own: needs root")
    run.crowd.backing.fill_disk()
    return "no byte is free", run.crowd.backing.free_disk


# --- plugins ----------------------------------------------------------------------------------------------------------


def reload_storm(run, target):
    """SIGHUP again and again, each time with another version, or with what is none."""
    crowd = run.crowd
    kinds = [crowd.plugin, crowd.other_plugin, None]
    for i in range(3 + target % 5):
        plugin = kinds[(target >> i) % 3]
        crowd.install_plugin(plugin and plugin.read_bytes())
        for host in crowd.hosts:
            if host.is_running:
                send(host.process.pid, signal.SIGHUP)
        run.rest(0.02)

    def again():
        crowd.install_plugin(crowd.plugin.read_bytes())
        for host in crowd.hosts:
            if host.is_running:
                send(host.process.pid, signal.SIGHUP)
    return "all hosts", again


# --- Redis ------------------------------------------------------------------------------------------------------------


def data_servers(run):
    return run.crowd.backing.data


def kill_redis(run, target):
    server = pick([s for s in data_servers(run) if s.process], target)
    server.kill9()

    def again():
        if not server.process:
            server.start()
    return server.folder.name, again


def pause_redis(run, target):
    server = pick([s for s in data_servers(run) if s.process], target)
    server.pause()

    def again():
        if server.process:
            server.cont()
    return server.folder.name, again


def kill_clients(run, target):
    server = pick([s for s in data_servers(run) if s.process], target)
    try:
        with redis.Redis(host="127.0.0.1", port=server.port, socket_timeout=0.3) as client:
            return f"{client.execute_command('CLIENT KILL TYPE normal')} of {server.folder.name}", None
    except redis.exceptions.RedisError as error:
        raise Skipped(error) from error


def fail_over(run, target):
    """As an operator does it."""
    backing = run.crowd.backing
    try:
        if hasattr(backing, "group"):
            sentinel = pick([s for s in backing.group.sentinels if s.process], target)
            sentinel.do("SENTINEL", "FAILOVER", backing.group.name)
            name = backing.group.name
        else:
            server = pick([n for n in backing.cluster.nodes if role_of(n) == "slave"], target)
            server.do("CLUSTER", "FAILOVER")
            name = server.folder.name
    except (redis.exceptions.RedisError, AssertionError) as error:
        raise Skipped(error) from error
    return name, None


def move_slots(run, target):
    """Shards go from one server to another, live."""
    backing, moved = run.crowd.backing, 0
    cluster = backing.cluster
    if not backing.is_well():
        raise Skipped("not all servers answer")
    try:
        for shard in {target % run.crowd.shards, (target >> 4) % run.crowd.shards}:
            slot = cluster.slot(f"quiver:{{chaos:{shard}}}:shard")
            source = cluster.owner(slot)
            others = [n for n in backing.masters_now() if n is not source]
            if source and source.process and others:
                run.history.moves.append((shard, now_ns()))
                backing.move_slot(slot, source, pick(others, target))
                run.history.moves.append((shard, now_ns()))
                moved += 1
    except (redis.exceptions.RedisError, AssertionError) as error:
        raise Skipped(error) from error
    return f"{moved} shards", None


# --- the network: all links of one host (or of everybody outside) to servers, or one of them -----------------------------


def break_network(hurt, text, is_lasting=True):
    def nemesis(run, target):
        scope, links = pick(run.crowd.world.scopes(), target)
        if run.broken & set(links):
            raise Skipped(f"the network of {scope} is broken already")
        for link in links:
            hurt(link)
        if not is_lasting:
            return scope, None
        run.broken |= set(links)

        def again():
            for link in links:
                run.broken.discard(link)
                link.heal()
        return scope, again
    nemesis.__name__ = text
    return nemesis


cut = break_network(lambda link: link.cut(reset=True), "reset_connections", is_lasting=False)
hold = break_network(lambda link: link.hold(), "hold_network")
refuse = break_network(lambda link: link.refuse(), "refuse_connections")
slow = break_network(lambda link: link.delay(0.05, 0.05), "slow_network")
lose_replies = break_network(lambda link: link.lose_replies(), "lose_replies")
lose_requests = break_network(lambda link: link.lose_requests(), "lose_requests")
half_open = break_network(lambda link: link.half_open(), "half_open_connections")
straggle = break_network(lambda link: link.straggle(0.3), "late_last_words", is_lasting=False)


def late_words_of_a_sleeper(run, target):
    """What a host said before it lost its connections reaches the store when it has said more since, and sleeps: there is
    work again, and nobody but that late call to take it."""
    host, world = living(run, target), run.crowd.world
    for (who, _), link in world.links.items():
        if who == host.name and link not in run.broken:
            link.straggle(0.5)
    run.rest(0.4)
    return stop(run, [host.process.pid], host.name)


def isolate_server(run, target):
    """From the other servers, in both directions or one; hosts reach it as ever.  A master goes on serving, or its replica
    falls behind."""
    world = run.crowd.world
    name = pick(sorted({who for who, _, _ in world.peer_links}), target)
    links = world.links_of_server(name)
    if run.broken & set(links):
        raise Skipped(f"the network of {name} is broken already")
    way = pick(["hold", "refuse", "lose_requests", "lose_replies"], target >> 4)
    for link in links:
        getattr(link, way)()
    run.broken |= set(links)

    def again():
        for link in links:
            run.broken.discard(link)
            link.heal()
    return f"{name}, {way.replace('_', ' ')}", again


# --- clocks -----------------------------------------------------------------------------------------------------------

HOUR_MS = 3_600_000


def step_host_clock(run, target):
    """By up to hours, forwards or back; and later as far the other way."""
    host, world = living(run, target), run.crowd.world
    by_ms = (1 if target & 64 else -1) * (target * 7919 % (6 * HOUR_MS) + 1)
    world.step(host.name, by_ms)
    run.history.host_steps += 1
    return f"{host.name}, {by_ms / 1000:+.3f} s", lambda: world.step(host.name, -by_ms) and None


def step_server_clock(run, target):
    """Forwards by up to an hour, for good: every lease and session is over at once.  Back by some seconds, longer than any
    lease lasts: not by more, since what is delayed or parked is due when this clock says so."""
    server, world = pick(data_servers(run), target), run.crowd.world
    by_ms = target * 7919 % HOUR_MS + 1 if target & 64 else -(target % 4000 + 1000)
    world.step(server.folder.name, by_ms)
    run.history.steps.append(now_ns())
    return f"{server.folder.name}, {by_ms / 1000:+.3f} s", None


def skew_server_clock(run, target):
    """One of several servers is some seconds ahead of the others, or behind; a failover is a step then."""
    server, world = pick(data_servers(run), target), run.crowd.world
    if world.steps_ms.get(server.folder.name):
        raise Skipped(f"{server.folder.name} is already")
    by_ms = (1 if target & 64 else -1) * (target % 3000 + 500)
    world.step(server.folder.name, by_ms)
    run.history.steps.append(now_ns())

    def again():
        world.step(server.folder.name, -by_ms)
        run.history.steps.append(now_ns())
    return f"{server.folder.name}, {by_ms / 1000:+.3f} s", again


# --- ZooKeeper --------------------------------------------------------------------------------------------------------


def kill_keeper(run, target):
    server = pick([s for s in run.crowd.backing.ensemble.servers if s.process], target)
    server.kill9()
    return f"server {server.number}", lambda: server.process or server.launch()


def pause_keepers(count, text):
    def nemesis(run, target):
        servers = [s for s in run.crowd.backing.ensemble.servers if s.process]
        chosen = [pick(servers, target + i) for i in range(min(count, len(servers)))]
        for server in chosen:
            server.pause()

        def again():
            for server in chosen:
                if server.process:
                    server.cont()
        return ", ".join(f"server {server.number}" for server in chosen), again
    nemesis.__name__ = text
    return nemesis


pause_keeper = pause_keepers(1, "pause_keeper")
lose_quorum = pause_keepers(2, "lose_quorum")


# --- the plan ---------------------------------------------------------------------------------------------------------

# How often, and how long in TTLs.
SHORT, LONG, EITHER, MOMENT, ASLEEP = (0.1, 0.8), (1.2, 4.0), (0.1, 4.0), (0.05, 1.5), (0.4, 0.7)

EVERYWHERE = {
    kill_host: (6, EITHER), kill_host_and_guard: (3, EITHER), kill_family: (3, EITHER), kill_guard: (2, MOMENT),
    kill_runner: (5, MOMENT), kill_host_with_guard_asleep: (2, LONG), pause_host: (4, EITHER), pause_runner: (3, EITHER),
    pause_host_and_runners: (3, EITHER), pause_family: (3, EITHER), wake_runners_first: (3, LONG), pause_all: (1, EITHER), end_host: (4, EITHER),
    end_host_twice: (1, EITHER), step_host_clock: (2, EITHER), reload_storm: (3, SHORT), kill_producer: (2, MOMENT), kill_consumer: (2, MOMENT), pause_consumer: (1, EITHER),
}
FILE = {lock_file: (2, EITHER), fill_disk: (2, SHORT)}
SERVER = {kill_redis: (4, EITHER), pause_redis: (3, EITHER), kill_clients: (3, MOMENT)}
NETWORK = {cut: (2, MOMENT), hold: (2, EITHER), refuse: (2, EITHER), slow: (2, EITHER), lose_replies: (3, EITHER),
           lose_requests: (2, EITHER), half_open: (2, EITHER), straggle: (2, MOMENT),
           late_words_of_a_sleeper: (3, ASLEEP)}
KEEPERS = {kill_keeper: (3, LONG), pause_keeper: (2, EITHER), lose_quorum: (2, LONG), isolate_server: (3, LONG)}
ONE = {**SERVER, **NETWORK, step_server_clock: (2, MOMENT)}
SEVERAL = {**SERVER, **NETWORK, skew_server_clock: (2, EITHER), fail_over: (4, MOMENT), isolate_server: (2, (0.3, 2.5))}
# etcd is written in Go, and does not see the world through a library: its clock and its links stay as they are.
ETCD = {kind: how for kind, how in KEEPERS.items() if kind is not isolate_server}
ON = {"sqlite": FILE, "redis": ONE, "redis+zookeeper": {**ONE, **KEEPERS}, "redis+etcd": {**ONE, **ETCD}, "sentinel": SEVERAL,
      "cluster": {**SEVERAL, move_slots: (4, MOMENT)}}


def kinds(backing_name, words=()):
    """Those whose names contain one of the words."""
    table = {**EVERYWHERE, **ON[backing_name]}
    return {kind: how for kind, how in table.items() if not words or any(word in name_of(kind) for word in words)}


def plan(seed, seconds, backing_name, ttl_s, every_s=0.7, words=()):
    """The same seed gives the same plan."""
    chance = random.Random(f"{seed} {backing_name}")
    table = kinds(backing_name, words)
    faults, at_s = [], 0.5
    while at_s < seconds:
        kind = chance.choices(list(table), [weight for weight, _ in table.values()])[0]
        low, high = table[kind][1]
        faults.append(Fault(at_s, kind, chance.randrange(1 << 16), chance.uniform(low, high) * ttl_s))
        at_s += chance.expovariate(1 / every_s)
    return faults


def name_of(kind):
    return kind.__name__.replace("_", " ")


def is_root():
    return os.geteuid() == 0
