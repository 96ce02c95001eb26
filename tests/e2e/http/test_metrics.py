"""Metrics of a fleet: sums over hosts are right while hosts die and shards move; what is counted is what happened."""
import json
import os
import signal
import subprocess
import time

import pytest

import prometheus
from fleet import Backing, Fleet
from hosts import wait_until
from prometheus import Prometheus, Watcher, free_port, parse, read, total

TASKS = 60
NEEDS_PROMETHEUS = pytest.mark.skipif(not prometheus.is_installed(), reason="prometheus is not installed")


def http(port, more=""):
    line = f'http = {{ listen = "127.0.0.1:{port}"; {more} }};\n'
    return lambda text: line + text


# --- a fleet ------------------------------------------------------------------------------------------------------------


class Story:
    """What happened to a fleet of three hosts, and who watched it."""

    def __init__(self, quiver, root, folder):
        self.ports = [free_port() for _ in "abc"]
        self.fleet = Fleet(quiver, root / "build" / "test-plugins", folder, Backing(folder))
        self.fleet.shards = 12
        for name, port in zip("abc", self.ports):
            self.fleet.add(name, change=http(port, "open_metrics = true;"))
        self.fleet.start("a", "b", "c")
        self.watcher = Watcher(self.ports)
        rules = root / "etc" / "alerts.yml"
        self.prometheus = Prometheus(folder, self.ports, rules) if prometheus.is_installed() else None
        self.fleet.wait_even()

    def submit(self, count, first=0):
        self.fleet.any().submit({"handler": "work", "key": f"k{i % 23}", "payload": f"{i}"} for i in range(first, first + count))

    def wait_sum(self, wanted, name, **labels):
        self.watcher.wait(wanted, name, **labels)
        if self.prometheus:
            chosen = ",".join(f'{label}="{value}"' for label, value in labels.items())
            self.prometheus.wait(wanted, f"sum({name}{{{chosen}}})")

    def wait_settled(self, waiting):
        self.wait_sum(self.fleet.shards, "quiver_shards_owned")
        self.wait_sum(waiting, "quiver_tasks_waiting")

    def close(self):
        self.watcher.close()
        if self.prometheus:
            self.prometheus.close()
        self.fleet.close()


@pytest.fixture(scope="module")
def story(quiver, root, tmp_path_factory):
    """Tasks are done; others wait while a host is killed and started again, and another gives its shards away; at last they
    are done, too."""
    made = Story(quiver, root, tmp_path_factory.mktemp("fleet"))
    try:
        fleet, members = made.fleet, made.fleet.members
        made.submit(TASKS)
        made.wait_sum(TASKS, "quiver_tasks_finished_total", outcome="done")
        fleet.any().cli("pause")
        made.submit(TASKS, TASKS)
        made.wait_settled(TASKS)
        for _ in range(10 if os.environ.get("QUIVER_TEST_LONG") else 1):
            members["a"].kill()
            made.wait_settled(TASKS)
            members["a"].start()
            fleet.wait_even()
            made.wait_settled(TASKS)
            fleet.any().cli("members", "drain", "b")
            wait_until(lambda: fleet.counts()["b"] == 0, "b has given its shards away")
            made.wait_settled(TASKS)
            fleet.any().cli("members", "activate", "b")
        fleet.any().cli("resume")
        made.wait_sum(0, "quiver_tasks_waiting")
        wait_until(lambda: fleet.backing.sum("done") == 2 * TASKS, "all are done")
        wait_until(lambda: made.watcher.increase("quiver_tasks_finished_total", outcome="done") >= 2 * TASKS, "it is seen")
        yield made
    finally:
        made.close()


def test_the_sum_of_what_finished_is_what_the_store_has_recorded(story):
    increase = story.watcher.increase
    assert increase("quiver_tasks_finished_total", outcome="done") == 2 * TASKS
    assert increase("quiver_tasks_finished_total") == 2 * TASKS
    assert increase("quiver_attempts_total", kind="done") == 2 * TASKS
    assert increase("quiver_task_run_seconds_count") == 2 * TASKS
    assert increase("quiver_task_wait_seconds_count") == 2 * TASKS
    assert increase("quiver_shards_acquired_total") >= story.fleet.shards


def test_a_counter_of_a_process_only_grows(story):
    for scrapes in story.watcher.seen.values():
        for before, after in zip(scrapes, scrapes[1:]):
            if total(before, "process_start_time_seconds") != total(after, "process_start_time_seconds"):
                continue
            for key, value in before.items():
                if key[0].endswith(("_total", "_bucket", "_count")):
                    assert after[key] >= value, key


def test_each_shard_is_exported_once(story):
    samples = [parse(read(port)[2]) for port in story.ports]
    assert sum(total(s, "quiver_shards_owned") for s in samples) == story.fleet.shards
    assert sum(total(s, "quiver_app_tasks_done") for s in samples) == 2 * TASKS
    assert [total(s, "quiver_leader") for s in samples].count(1) == 1
    assert [total(s, "quiver_shards_unowned") for s in samples].count(None) == 2
    assert sum(total(s, "quiver_shards_unowned") or 0 for s in samples) == 0
    assert all(total(s, "quiver_member") == total(s, "quiver_store_up") == 1 for s in samples)


@NEEDS_PROMETHEUS
def test_prometheus_sees_rates_and_no_negative_ones(story):
    value = story.prometheus.value
    # rate() reckons with the time before the first and after the last sample; so it is near what was counted.
    seen = value('sum(increase(quiver_tasks_finished_total{outcome="done"}[10m]))')
    assert 0.5 * TASKS <= seen <= 4 * TASKS
    assert value('min(min_over_time(quiver_tasks_waiting[10m]))') >= 0
    assert value('count(rate(quiver_tasks_finished_total[1m]) < 0)') is None
    assert value("max(max_over_time(sum(quiver_shards_owned)[10m:200ms]))") <= 2 * story.fleet.shards
    assert value("histogram_quantile(0.99, sum by (le) (rate(quiver_task_run_seconds_bucket[10m])))") > 0
    assert value("count(up == 1)") == 3


@NEEDS_PROMETHEUS
def test_promtool_has_nothing_to_say(story):
    _, fields, text = read(story.ports[0])
    assert fields["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    done = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


# --- one host -----------------------------------------------------------------------------------------------------------


def test_what_is_counted_is_what_happened(host):
    port = free_port()
    host.configure(change=http(port, "open_metrics = true;"), mail="crashes = 1;", other="tasks = [ \"else\" ];").start()
    payloads = ["1", "2 retry:2", "3 reject", "4 crash", "5 retry:9"]
    host.submit({"handler": "mail", "key": f"k{p[0]}", "payload": p} for p in payloads)

    def counted():
        samples = parse(read(port)[2])
        has_ended = total(samples, "quiver_tasks_finished_total") == 5 and total(samples, "quiver_tasks_dead") == 3
        return samples if has_ended else None

    samples = wait_until(counted, "all five have ended")

    def of(name, **labels):
        return total(samples, name, handler="mail", **labels)

    outcomes = {"done": 2, "rejected": 1, "crashed": 1, "exhausted": 1, "timed_out": 0, "cancelled": 0}
    assert {o: of("quiver_tasks_finished_total", outcome=o) for o in outcomes} == outcomes
    kinds = {"done": 2, "retry": 2 + 4, "reject": 1, "crash": 1, "timeout": 0, "unavailable": 0}
    assert {k: of("quiver_attempts_total", kind=k) for k in kinds} == kinds
    assert of("quiver_runner_exits_total", cause="crashed") == 1
    assert of("quiver_task_wait_seconds_count") == 5
    assert of("quiver_task_run_seconds_count") == of("quiver_attempts_total")
    assert total(samples, "quiver_tasks_finished_total", handler="other") == 0
    assert total(samples, "quiver_store_call_seconds_count", call="advance") > 0
    assert total(samples, "quiver_loop_lag_seconds_count") > 0 and total(samples, "process_open_fds") > 10
    assert total(samples, "process_cpu_seconds_total") > 0 and total(samples, "process_resident_memory_bytes") > 1e6


def test_what_waits_and_runs_is_told_by_handler_and_lane(host, tmp_path):
    port, gate = free_port(), tmp_path / "gate"
    host.configure(change=http(port, "open_metrics = true;"), mail="").start()
    host.submit([{"handler": "mail", "key": "k", "lane": "high", "payload": f"1 wait:{gate}"},
                 *({"handler": "mail", "key": "k", "lane": "high", "payload": f"{i}"} for i in range(2, 5)),
                 {"handler": "mail", "key": "k", "lane": "low", "payload": "5"},
                 {"handler": "mail", "key": "d", "payload": "6", "delay": "1h"}])
    host.wait_started(1)

    def seen():
        samples = parse(read(port)[2])
        ages = total(samples, "quiver_oldest_task_age_seconds"), total(samples, "quiver_longest_running_seconds")
        return samples if total(samples, "quiver_tasks_waiting") == 4 and all(ages) else None

    samples = wait_until(seen, "four tasks wait, and time passes")
    assert total(samples, "quiver_handler_tasks_running", handler="mail", lane="high") == 1
    assert total(samples, "quiver_handler_tasks_running") == 1
    assert total(samples, "quiver_handler_tasks_waiting", lane="low") + total(samples, "quiver_tasks_waiting", lane="low") >= 1
    assert total(samples, "quiver_tasks_delayed") == 1
    assert total(samples, "quiver_seats", handler="mail", state="used") == 1
    gate.touch()
    host.wait_done(5)


def test_metrics_take_a_role_unless_they_are_open(host):
    port = free_port()
    tokens = host.folder / "tokens"
    tokens.write_text("shop submit shop-shop-shop-shop\nwatcher read watcher-watcher-1\n")
    tokens.chmod(0o600)
    more = f'tokens_file = "{tokens}"; open_metrics = '
    host.configure(change=http(port, more + "false;"), mail="").start()
    assert read(port)[0] == 401
    assert read(port, Authorization="Bearer shop-shop-shop-shop")[0] == 403
    assert read(port, Authorization="Bearer watcher-watcher-1")[0] == 200
    host.configure(change=http(port, more + "true;"), mail="")
    host.cli("reload", "--wait")
    assert read(port)[0] == 200 and read(port, "/v1/status")[0] == 401
    samples = parse(read(port)[2])
    assert total(samples, "quiver_http_requests_refused_total", cause="forbidden") == 3
    assert total(samples, "quiver_reloads_total", result="taken") == 1


def test_openmetrics_for_who_asks_for_it(host):
    port = free_port()
    host.configure(change=http(port, "open_metrics = true;"), mail="").start()
    _, fields, text = read(port, Accept="application/openmetrics-text;version=1.0.0,text/plain;q=0.5")
    assert fields["Content-Type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert text.endswith("\n# EOF\n") and "# TYPE quiver_tasks_finished counter\n" in text
    parse(text)


def test_a_host_without_its_store_says_nothing_of_its_shards(redis_server, redis_host):
    port = free_port()
    redis_host.configure(change=http(port, "open_metrics = true;"), mail="").start()
    redis_host.cli("pause")
    redis_host.submit({"handler": "mail", "key": f"k{i}", "payload": f"{i}"} for i in range(5))
    wait_until(lambda: total(parse(read(port)[2]), "quiver_tasks_waiting") == 5, "they wait")
    redis_server.process.send_signal(signal.SIGSTOP)
    try:
        samples = wait_until(lambda: (s := parse(read(port)[2])) and not total(s, "quiver_shards_owned") and s,
                             "its own deadline has passed")
        assert not total(samples, "quiver_tasks_waiting") and total(samples, "quiver_lease_margin_seconds") <= 0
    finally:
        redis_server.process.send_signal(signal.SIGCONT)
    wait_until(lambda: total(parse(read(port)[2]), "quiver_tasks_waiting") == 5, "they are told of again")


# --- the last hour ------------------------------------------------------------------------------------------------------


def history(port):
    """{host: [{column: number}]}"""
    status, _, text = read(port, "/v1/history", Authorization="Bearer watcher-watcher-1")
    assert status == 200, text
    answer = json.loads(text)
    return {h["name"]: [dict(zip(answer["columns"], p)) for p in h["points"]] for h in answer["hosts"]}


@pytest.mark.parametrize("kind", ["host", "redis_host"])
def test_a_host_goes_on_with_the_history_of_the_one_before(kind, request):
    host, port = request.getfixturevalue(kind), free_port()
    tokens = host.folder / "tokens"
    tokens.write_text("watcher read watcher-watcher-1\n")
    tokens.chmod(0o600)
    host.configure(change=http(port, f'tokens_file = "{tokens}";'), mail="").start()
    assert read(port, "/v1/history")[0] == 401
    assert history(port) == {}
    host.submit({"handler": "mail", "key": f"k{i}", "payload": f"{i} us:1000" + (" reject" if i == 0 else "")} for i in range(10))
    host.wait_done(9)
    assert host.stop() == 0
    host.start()
    (name, points), = history(port).items()
    assert len(points) == 1
    point = points[0]
    assert point["done_per_second"] * point["seconds"] == pytest.approx(9, rel=0.01)
    assert point["failed_per_second"] * point["seconds"] == pytest.approx(1, rel=0.01)
    assert 0.001 <= point["run_p50_seconds"] <= point["run_p99_seconds"]
    assert abs(point["at_ms"] / 1000 - time.time()) < 600
    host.submit_one({"handler": "mail", "key": "k", "payload": "11"})
    host.wait_done(10)
    assert host.stop() == 0
    host.start()
    (again, points), = history(port).items()
    assert again == name and len(points) == 2 and points[0] == point
    assert points[1]["done_per_second"] * points[1]["seconds"] == pytest.approx(1, rel=0.01) and points[1]["failed_per_second"] == 0


@pytest.mark.skipif(not os.environ.get("QUIVER_TEST_LONG"), reason="a point takes a minute")
def test_a_host_writes_a_point_a_minute(host):
    port = free_port()
    tokens = host.folder / "tokens"
    tokens.write_text("watcher read watcher-watcher-1\n")
    tokens.chmod(0o600)
    host.configure(change=http(port, f'tokens_file = "{tokens}";'), mail="").start()
    host.cli("pause")
    host.submit({"handler": "mail", "key": f"k{i}", "payload": f"{i}"} for i in range(7))
    points = wait_until(lambda: next(iter(history(port).values()), []), "a minute is over", 300)
    assert points[0]["waiting"] == 7 and points[0]["seconds"] == pytest.approx(60, abs=20)
    host.kill()  # without a word: what was written stays
    host.start()
    wait_until(lambda: len(next(iter(history(port).values()), [])) == 2, "the next one", 300)
