"""The alert rules and the dashboard: they name metrics that there are, and each alert fires when it should."""
import json
import re
import subprocess

import pytest

import prometheus

NEEDS_PROMTOOL = pytest.mark.skipif(not prometheus.is_installed(), reason="prometheus is not installed")

# Per alert: series that make it fire, and series that do not, an hour long in steps of a minute (promtool's notation).
ALERTS = {
    "QuiverTasksWaitTooLong": ({'quiver_oldest_task_age_seconds{instance="a"}': "400x60", 'quiver_oldest_task_age_seconds{instance="b"}': "1x60"},
                               {"quiver_oldest_task_age_seconds": "299x60"}),
    "QuiverBacklogGrows": ({"quiver_tasks_waiting": "10000+100x60"}, {"quiver_tasks_waiting": "20000-100x60"}),
    "QuiverTasksDie": ({'quiver_tasks_finished_total{handler="mail",outcome="crashed"}': "0+1x60"},
                       {'quiver_tasks_finished_total{handler="mail",outcome="done"}': "0+9x60"}),
    "QuiverHandlerFails": ({'quiver_attempts_total{handler="mail",kind="done"}': "0+60x60",
                            'quiver_attempts_total{handler="mail",kind="retry"}': "0+60x60"},
                           {'quiver_attempts_total{handler="mail",kind="done"}': "0+60x60",
                            'quiver_attempts_total{handler="mail",kind="retry"}': "0+1x60",
                            'quiver_attempts_total{handler="mail",kind="interruption"}': "0+600x60"}),
    "QuiverHandlerCrashes": ({'quiver_runner_exits_total{handler="mail",cause="crashed"}': "0+2x60"},
                             {'quiver_runner_exits_total{handler="mail",cause="retired"}': "0+9x60"}),
    "QuiverHandlerCannotWork": ({'quiver_handler_state{handler="mail",state="quarantined"}': "1x60"},
                                {'quiver_handler_state{handler="mail",state="paused"}': "1x60"}),
    "QuiverHandlerUnserved": ({"quiver_unserved_handlers": "1x60"}, {"quiver_unserved_handlers": "0x60"}),
    "QuiverTaskRunsVeryLong": ({'quiver_longest_running_seconds{handler="mail"}': "4000x60"},
                               {'quiver_longest_running_seconds{handler="mail"}': "60x60"}),
    "QuiverShardsWithoutOwner": ({"quiver_shards_unowned": "3x60"}, {"quiver_shards_unowned": "0x60"}),
    "QuiverNoLeader": ({'quiver_leader{instance="a"}': "0x60", 'quiver_leader{instance="b"}': "0x60"},
                       {'quiver_leader{instance="a"}': "0x60", 'quiver_leader{instance="b"}': "1x60"}),
    "QuiverHostDown": ({'up{job="quiver",instance="a"}': "0x60"}, {'up{job="quiver",instance="a"}': "1x60"}),
    "QuiverHostCutOff": ({'quiver_store_up{instance="a"}': "0x60"}, {'quiver_store_up{instance="a"}': "1x60", "quiver_member": "1x60"}),
    "QuiverLeaseNearlyLost": ({"quiver_lease_margin_seconds": "-1x60"}, {"quiver_lease_margin_seconds": "6x60"}),
    "QuiverFenced": ({"quiver_fenced_calls_total": "0+1x60"}, {"quiver_fenced_calls_total": "7x60"}),
    "QuiverTakeovers": ({"quiver_takeovers_total": "0+1x60"}, {"quiver_takeovers_total": "64x60"}),
    "QuiverScheduleLate": ({'quiver_schedule_late_seconds{schedule="nightly"}': "90x60"},
                           {'quiver_schedule_late_seconds{schedule="nightly"}': "5x60"}),
    "QuiverStoreSlow": ({'quiver_store_call_seconds_bucket{call="advance",le="1.0"}': "0x60",
                         'quiver_store_call_seconds_bucket{call="advance",le="2.5"}': "0+60x60",
                         'quiver_store_call_seconds_bucket{call="advance",le="+Inf"}': "0+60x60"},
                        {'quiver_store_call_seconds_bucket{call="advance",le="0.001"}': "0+60x60",
                         'quiver_store_call_seconds_bucket{call="advance",le="+Inf"}': "0+60x60"}),
    "QuiverLoopBusy": ({'quiver_loop_lag_seconds_bucket{le="0.25"}': "0x60", 'quiver_loop_lag_seconds_bucket{le="0.5"}': "0+60x60",
                        'quiver_loop_lag_seconds_bucket{le="+Inf"}': "0+60x60"},
                       {'quiver_loop_lag_seconds_bucket{le="0.25"}': "0+60x60", 'quiver_loop_lag_seconds_bucket{le="+Inf"}': "0+60x60"}),
    "QuiverReloadRefused": ({'quiver_reloads_total{result="refused"}': "0+1x60"}, {'quiver_reloads_total{result="taken"}': "0+1x60"}),
    "QuiverVersionsDiffer": ({'quiver_generation_info{handler="mail",hash="1",instance="a"}': "1x60",
                              'quiver_generation_info{handler="mail",hash="2",instance="b"}': "1x60"},
                             {'quiver_generation_info{handler="mail",hash="1",instance="a"}': "1x60",
                              'quiver_generation_info{handler="mail",hash="1",instance="b"}': "1x60"}),
    "QuiverResultsDropped": ({"quiver_results_dropped": "0+1x60"}, {"quiver_results_dropped": "5x60"}),
}


@pytest.fixture(scope="module")
def known(root):
    """Names of metrics, as the manual has them; a unit test compares it with the program's own table."""
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \|", (root / "etc/METRICS.md").read_text(), re.M)
    names = {name for name, _ in rows}
    return names | {name + ending for name, kind in rows if kind == "histogram" for ending in ("_bucket", "_sum", "_count")}


def named(text):
    return set(re.findall(r"\b(?:quiver|process)_[a-z_]+", text))


def test_alerts_and_manual_name_metrics_that_there_are(root, known):
    used = named("".join(re.findall(r"^ {8}expr: (?:\|\n(?: {10,}.*\n)+|.*)", (root / "etc/alerts.yml").read_text(), re.M)))
    assert len(used) > 15 and used <= known
    questions = (root / "etc/METRICS.md").read_text().partition("## Questions")[2]
    assert named(questions) <= known


def test_the_dashboard_asks_for_metrics_that_there_are(root, known):
    board = json.loads((root / "etc/grafana.json").read_text())
    panels = [p for p in board["panels"] if p["type"] != "row"]
    expressions = [t["expr"] for p in panels for t in p["targets"]]
    assert len(expressions) > 25 and all(named(e) and named(e) <= known for e in expressions)
    assert all(named(v["query"]) <= known for v in board["templating"]["list"])
    assert len({p["id"] for p in board["panels"]}) == len(board["panels"])


def test_every_alert_has_a_test(root):
    assert re.findall(r"- alert: (\w+)", (root / "etc/alerts.yml").read_text()) == list(ALERTS)


@NEEDS_PROMTOOL
def test_an_alert_fires_when_it_should_and_not_otherwise(root, tmp_path):
    tests = []
    for name, cases in ALERTS.items():
        for series, wanted in zip(cases, (1, None)):
            query = f'count by (alertname) (ALERTS{{alertname="{name}",alertstate="firing"}})'
            samples = [{"labels": f'{{alertname="{name}"}}', "value": 1}] if wanted else []
            tests.append({"interval": "1m", "input_series": [{"series": s, "values": v} for s, v in series.items()],
                          "promql_expr_test": [{"expr": query, "eval_time": "50m", "exp_samples": samples}]})
    file = tmp_path / "alerts.test.yml"  # what is JSON is YAML, too
    file.write_text(json.dumps({"rule_files": [str(root / "etc/alerts.yml")], "evaluation_interval": "1m", "tests": tests}))
    for words in (["check", "rules", root / "etc/alerts.yml"], ["test", "rules", file]):
        done = subprocess.run(["promtool", *map(str, words)], text=True, capture_output=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr


@NEEDS_PROMTOOL
def test_the_dashboard_can_be_asked(root, tmp_path):
    """Prometheus understands every expression, with Grafana's variables filled in."""
    board = json.loads((root / "etc/grafana.json").read_text())
    expressions = [t["expr"] for p in board["panels"] for t in p.get("targets", [])]
    rules = [{"record": f"panel:{i}", "expr": e.replace("$__rate_interval", "1m").replace("$job", ".*").replace("$handler", ".*")}
             for i, e in enumerate(expressions)]
    file = tmp_path / "panels.yml"
    file.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    done = subprocess.run(["promtool", "check", "rules", str(file)], text=True, capture_output=True, timeout=120)
    assert done.returncode == 0 and f"{len(rules)} rules found" in done.stdout, done.stdout + done.stderr
