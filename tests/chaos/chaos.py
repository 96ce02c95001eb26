"""Breaks a fleet on purpose, and checks its history.  README.md says how to read what it prints.

    chaos.py [--on sqlite|redis|redis+zookeeper|redis+etcd|sentinel|cluster] [--over client|http] [--for 60s] [--seed N]
             [--only "kill host,late"]
"""
import argparse
import collections
import heapq
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "tests" / "e2e" / "support")]

import nemeses  # noqa: E402
from places import BACKINGS  # noqa: E402
from book import now_ns  # noqa: E402
from checker import Index, check, story  # noqa: E402
from crowd import SCHEDULES, Crowd, adopt_orphans, command_of, send  # noqa: E402
from amounts import most_of  # noqa: E402
from history import Dead, History, Rest, Sample, Schedule, read_asks, read_consumer, read_lines, scheduled  # noqa: E402
from world import World  # noqa: E402

SAMPLE_S = 0.25
UNREACHABLE = 3  # what `quiver run` ends with if store or coordination do not answer
SHARDS = 16
LISTED, STORIES = 20, 2
LEFT = ("queued", "delayed", "in_flight", "parked", "results")
WAIT_S = 25


class Run:
    def __init__(self, crowd, chosen):
        self.crowd, self.seconds = crowd, chosen.seconds
        self.plan = nemeses.plan(chosen.seed, chosen.seconds, chosen.on, crowd.ttl_s, chosen.every, chosen.only)
        self.history = History(shards=crowd.shards, ttl_s=crowd.ttl_s, attempts=crowd.attempts, crashes=crowd.crashes,
                               limits=crowd.limits)
        self.counts = collections.Counter()
        self.skipped = 0
        self.began = 0
        self.broken = set()  # links
        self.deaths = []  # hosts that ended though nobody had asked them to

    # --- the faults ---

    def say(self, text):
        print(f"{time.monotonic() - self.began:8.2f} s  {text}", flush=True)

    def rest(self, seconds):
        time.sleep(seconds)

    def hurt(self):
        """The plan, in its order; what was hurt is healed at its time."""
        todo, count = [], 0
        for fault in self.plan:
            heapq.heappush(todo, (fault.at_s, count, fault, None))
            count += 1
        self.began = time.monotonic()
        while todo:
            at_s, _, fault, again = heapq.heappop(todo)
            self.watch_until(self.began + min(at_s, self.seconds))
            if again:
                again()
                continue
            again = self.apply(fault)
            if again:
                heapq.heappush(todo, (at_s + fault.for_s, count, fault, again))
                count += 1

    def apply(self, fault):
        try:
            text, again = fault.kind(self, fault.target)
        except nemeses.Skipped as why:
            self.skipped += 1
            self.say(f"{nemeses.name_of(fault.kind)}: not now, {why}")
            return None
        self.counts[nemeses.name_of(fault.kind)] += 1
        self.say(f"{nemeses.name_of(fault.kind)}: {text}" + (f", for {fault.for_s:.2f} s" if again else ""))
        return again

    def watch_until(self, end):
        """Looks at the store's epochs until then."""
        while True:
            self.sample()
            self.look_at_hosts()
            self.look_at_helpers()
            left = end - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, SAMPLE_S))

    def look_at_hosts(self):
        """A host that has come up never ends by itself.  One that starts may find no plugin that it can load, or nobody
        who answers; it says so, and ends."""
        for host in self.crowd.hosts:
            if host.is_due and not host.is_alive:
                host.spawn()
            elif host.process and not host.is_alive and not host.is_doomed:
                is_excused = "event=running" not in host.log() and (
                    host.process.returncode == UNREACHABLE or self.crowd.met_bad_plugin(host))
                if not is_excused:
                    self.deaths.append(f"{host.name} ended by itself with {host.process.returncode}, "
                                       f"see {host.logs[-1].name}")
                    self.say(self.deaths[-1])
                host.spawn()

    def look_at_helpers(self):
        """Who found no store when it began tries again; the client library never takes its program down."""
        for helper in self.crowd.producers + self.crowd.consumers:
            code = helper.process.returncode if helper.process and not helper.is_alive else None
            if code is not None and code < 0 and code != -signal.SIGKILL:
                self.deaths.append(f"{helper.name} died of signal {-code}")
                self.say(self.deaths[-1])
            if code is not None and code != -signal.SIGKILL:
                helper.spawn()

    def sample(self):
        self.crowd.backing.watch()
        try:
            self.history.samples.append(Sample(now_ns(), self.crowd.backing.epochs()))
        except Exception:  # noqa: BLE001: the store may be anything just now
            pass

    # --- afterwards ---

    def heal(self):
        self.crowd.install_plugin(self.crowd.plugin.read_bytes())
        self.crowd.world.heal()
        self.crowd.backing.heal()
        self.crowd.revive()
        for producer in self.crowd.producers:
            producer.end()
        for name in SCHEDULES:
            self.crowd.cli("schedule", "pause", name)
        self.history.healed_ns = now_ns()
        self.say("healed; nobody submits any more")

    def totals(self):
        done = self.crowd.cli("status", "--json")
        return json.loads(done.stdout)["totals"] if done.returncode == 0 else None

    def settle(self):
        """Waits until nothing is left to do, as long as something moves: a slow machine takes its time."""
        seen, moved = None, time.monotonic()
        while True:
            self.sample()
            totals = self.totals()
            self.look_at_hosts()
            self.look_at_consumers()
            if totals and not any(totals[name] for name in LEFT) and not self.on_their_way():
                self.history.finished_ns = now_ns()
                self.history.done_count, self.history.merged_count = totals["done"], totals["merged"]
                self.say(f"all is done, {(self.history.finished_ns - self.history.healed_ns) / 1e9:.1f} s after healing")
                return
            now, found = time.monotonic(), (totals, (self.crowd.folder / "ledger").stat().st_size)
            if found != seen:
                seen, moved = found, now
            self.history.stall_s = now - moved
            waited_s = (now_ns() - self.history.healed_ns) / 1e9
            if now - moved > self.patience_s() or waited_s > 20 * self.patience_s():
                self.say(f"not all is done: {totals}")
                return
            time.sleep(0.1)

    def on_their_way(self):
        try:
            return self.crowd.backing.on_their_way()
        except Exception:  # noqa: BLE001: the store may be anything just now
            return 1

    def patience_s(self):
        """How long nothing at all may move: leases, and what a task that hosts died with has to wait; longer if others
        want the processors."""
        return (3 * self.history.ttl_s + WAIT_S) * min(max(1.0, os.getloadavg()[0] / os.cpu_count()), 4.0)

    def look_at_consumers(self):
        for consumer in self.crowd.consumers:
            if not consumer.is_alive:
                consumer.spawn()

    def collect(self):
        h, crowd = self.history, self.crowd
        h.failovers = crowd.backing.failovers
        for producer in crowd.producers:
            for book in producer.books:
                h.asks += read_asks(book)
        for consumer in crowd.consumers:
            for book in consumer.books:
                taken, commits = read_consumer(book)
                h.taken += taken
                h.commits += commits
        h.lines = read_lines(crowd.folder / "ledger")
        h.free = {line.key: int(line.id.rpartition("-")[2]) for line in h.lines if line.key.startswith("free-")}
        listed = crowd.cli("dead", "list", "--json", "--limit", "1000000")
        for record in map(json.loads, listed.stdout.splitlines()):
            h.dead.append(Dead(record["id"], scheduled(record["id"]) or number_of(record["payload"]), record["reason"]))
        self.look_for_rest()
        for name in SCHEDULES:
            shown = json.loads(crowd.cli("schedule", "show", name, "--json").stdout)
            every_s = shown["definition"].get("every_ms", 60_000) // 1000
            h.schedules.append(Schedule(name, every_s, crowd.first_s[name], shown["next_ms"] // 1000, shown["fired"],
                                        shown["skipped"], name != "tick-each"))
        checked = crowd.cli("fsck")
        if checked.returncode:
            h.store_faults.append((checked.stdout + checked.stderr).strip())

    def look_for_rest(self):
        """Where those are that are neither done nor dead."""
        h = self.history
        ended = {t.number for t in h.taken} | {d.number for d in h.dead}
        ids = {ask.id: ask.number for ask in h.asks if ask.status == "kept" and ask.number not in ended}
        ids.update({line.id: line.number for line in h.lines if line.number not in ended})
        for task_id, number in list(ids.items())[:200]:
            shown = self.crowd.cli("task", task_id, "--json")
            state = json.loads(shown.stdout)["state"] if shown.returncode == 0 else "gone"
            # A task that others were merged into is done, or dead, with the number of the last of them.
            if state not in ("gone", "done", "dead"):
                h.rest.append(Rest(task_id, number, state))

    def end(self):
        for consumer in self.crowd.consumers:
            consumer.end()
        faults = self.deaths + self.crowd.stop_hosts() + self.crowd.sanitizer_reports()
        left = self.crowd.leftovers(self.crowd.backing.pids())
        faults += [f"left behind: {pid} {command_of(pid)}" for pid in left]
        for pid in left:
            send(pid, 9)
        return faults


def number_of(payload):
    name = payload.split(" ")[0]
    number, arrow, _ = name.partition(">")
    return number + arrow


# --- what is printed --------------------------------------------------------------------------------------------------


def print_table(run, report, faults):
    h = run.history
    statuses = collections.Counter(ask.status for ask in h.asks)
    print("\nfaults")
    for name, count in sorted(run.counts.items()):
        print(f"  {name:<32}{count:>6}")
    rows = {
        "faults in all": sum(run.counts.values()), "could not be done then": run.skipped, "handovers": report.handovers,
        "tasks acknowledged": statuses["kept"], "unknown": statuses["unknown"], "refused": statuses["refused"],
        "done": report.done, "dead": report.dead, "follow-ups started": len({x.number for x in h.lines if ">" in x.number}),
        "repeats": report.repeats, "overlaps that promise 3 allows": report.overlaps, **run.crowd.loans(),
    }
    if h.steps:
        rows["steps of the store's clock"] = len(h.steps)
        rows["starts just after one, too late"] = len(report.early)
    if h.failovers:
        rows["failovers of the store"] = len(h.failovers)
        rows["… s in which it could lose"] = round(covered_ns(h.failovers) / 1e9, 1)
        rows["the store lost, acknowledged tasks"] = report.lost
        rows["the store lost, in all"] = len(report.losses)
    if h.finished_ns:
        rows["finished after healing, s"] = round((h.finished_ns - h.healed_ns) / 1e9, 1)
    rows["violations"] = len(report.violations) + len(faults)
    print("run")
    for name, value in rows.items():
        print(f"  {name:<32}{value:>6}")
    for limit in h.limits:
        print(f"  limit {limit.name:<26}{most_of(h, Index(h), limit)}")
    for s in h.schedules:
        print(f"  schedule {s.name:<23}{(s.next_s - s.first_s) // s.every_s} due, {s.fired} fired, {s.skipped} passed")
    print(f"  {'merged':<32}{h.merged_count if h.merged_count is not None else '?':>6}")


def covered_ns(failovers):
    """Some of them may be at the same time."""
    covered, end = 0, 0
    for f in sorted(failovers, key=lambda f: f.from_ns):
        covered += max(0, f.until_ns - max(f.from_ns, end))
        end = max(end, f.until_ns)
    return covered


def print_violations(h, report, faults):
    for text in faults:
        print(f"\nVIOLATION: {text}")
    for rule, count in collections.Counter(v.rule for v in report.violations).items():
        print(f"\nVIOLATION: {rule}, {count} times")
        found = [v for v in report.violations if v.rule == rule]
        for v in found[:LISTED]:
            print(f"  {v.key or 'all'} {v.number}: {v.text}")
        for key, v in list({v.key: v for v in found if v.key}.items())[:STORIES]:
            print("\n".join(f"    {line}" for line in story(h, key, v.number)))
    for rule, count in collections.Counter(v.rule for v in report.losses).items():
        print(f"\nthe store lost what it had acknowledged: {rule}, {count} times")


# --- main -------------------------------------------------------------------------------------------------------------


def seconds_of(text):
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(s|m|h|)", text)
    if not match:
        raise argparse.ArgumentTypeError(f"{text} is no time; 90s, 5m or 1h are")
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--on", default="sqlite", choices=sorted(BACKINGS))
    parser.add_argument("--over", default="client", choices=("client", "http"), help="how producers submit")
    parser.add_argument("--for", dest="seconds", type=seconds_of, default=60.0, metavar="TIME")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--every", type=float, default=0.7, metavar="S", help="mean time between two faults")
    parser.add_argument("--only", type=lambda text: text.split(","), default=(), metavar="WORDS",
                        help="only faults whose names contain one of these, separated by commas")
    parser.add_argument("--keep", action="store_true", help="keep the folder also if all is well")
    chosen = parser.parse_args()
    if not nemeses.kinds(chosen.on, chosen.only):
        parser.error(f"no fault on {chosen.on} is called {' or '.join(chosen.only)}")
    if chosen.seed is None:
        chosen.seed = random.randrange(1 << 32)
    return chosen


def may_mount():
    """Once more, in a mount namespace of its own: what we mount there vanishes with us."""
    if os.environ.get("QUIVER_CHAOS_MAY_MOUNT") is not None or not nemeses.is_root():
        return
    is_able = subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL).returncode == 0
    os.environ["QUIVER_CHAOS_MAY_MOUNT"] = "1" if is_able else ""
    if is_able:
        os.execvp("unshare", ["unshare", "-m", sys.executable, *sys.argv])


def run_in(folder, chosen):
    """Returns whether all was well."""
    quiver = pathlib.Path(os.environ.get("QUIVER", ROOT / "build" / "quiver")).resolve()
    plugins = [ROOT / "build" / "test-plugins" / name for name in ("ledger.so", "ledger-two.so")]
    world = World(folder, ROOT / "build" / "tests" / "preload" / "world.so")
    backing = BACKINGS[chosen.on](folder, SHARDS, world)
    crowd = None
    try:
        backing.start()
        crowd = Crowd(quiver, plugins, folder, backing, chosen.seed, shards=SHARDS, over=chosen.over)
        crowd.start()
        run = Run(crowd, chosen)
        run.hurt()
        run.heal()
        run.settle()
        run.collect()
        faults = run.end()
        report = check(run.history)
        (folder / "failovers").write_text("\n".join(map(str, run.history.failovers)))  # for who looks into it later
        print_violations(run.history, report, faults)
        print_table(run, report, faults)
        if report.losses:
            print(f"\nthe store itself lost {report.lost} acknowledged tasks in {len(run.history.failovers)} failovers")
        return not report.violations and not faults
    finally:
        if crowd:
            crowd.close()
        backing.close()
        world.close()


def main():
    chosen = options()
    may_mount()
    adopt_orphans()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="quiver-chaos-"))
    again = f"make chaos ON={chosen.on} OVER={chosen.over} FOR={chosen.seconds:g}s SEED={chosen.seed}" + \
        (f' ONLY="{",".join(chosen.only)}"' if chosen.only else "") + \
        (" SAN=asan" if "asan" in os.environ.get("QUIVER", "") else "")
    print(f"on {chosen.on}, over {chosen.over}, for {chosen.seconds:g} s, seed {chosen.seed}", flush=True)
    is_well = False
    try:
        is_well = run_in(folder, chosen)
    finally:
        if is_well and not chosen.keep:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            print(f"\nthe run's folder is kept: {folder}")
        print(f"the same faults again: {again}")
        print("verdict: every promise was kept" if is_well else "verdict: BROKEN")
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main())
