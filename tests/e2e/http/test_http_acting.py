"""Intervening over HTTP: many tasks at once, an edited payload, a reload; each action is one line of the log."""
import json
import re

import pytest

from hosts import Host, wait_until
from http_hosts import Server, detail


@pytest.fixture(scope="module")
def server(quiver, root, tmp_path_factory, request):
    """A host whose handlers are `mail` and, where tasks only wait, `idle`."""
    host = Host(quiver, root / "build" / "test-plugins", tmp_path_factory.mktemp("acting"))
    request.addfinalizer(host.close)  # also if this fails
    made = Server(host)
    host.cli("pause", "idle")
    return made


@pytest.fixture
def gone(server):
    """Nothing dead is left for the next test."""
    yield server
    time = server.get("/v1/dead")["time_ms"] + 1
    wait_until(lambda: act(server, f"/v1/dead/drop?all=1&before={time}")[1]["more"] is False, "all are dropped")


def act(server, path, body=b""):
    status, _, answer = server.post(path, body)
    return status, json.loads(answer)


def kill(server, count, word="reject", handler="mail"):
    """So many dead tasks; the time after which none of them died."""
    before = server.get("/v1/dead")["total"]
    server.host.submit([{"handler": handler, "key": f"{word}-{i}", "payload": f"{i} {word}"} for i in range(count)])
    wait_until(lambda: server.get("/v1/dead")["total"] == before + count, "they are dead")
    # Store time has milliseconds: what died in this one is meant, too.
    return wait_until(lambda: server.get("/v1/dead")["time_ms"], "it is later") + 1


def test_a_bulk_action_leaves_alone_what_came_later(gone):
    time = kill(gone, 5)
    wait_until(lambda: gone.get("/v1/dead")["time_ms"] > time, "it is later")
    kill(gone, 3)
    status, told = act(gone, f"/v1/dead/drop?handler=mail&before={time}&dry_run=1")
    assert (status, told["chosen"], told["dropped"]) == (200, 5, 0)
    status, told = act(gone, f"/v1/dead/drop?handler=mail&before={time}")
    assert (status, told["dropped"], told["more"]) == (200, 5, False)
    assert gone.get("/v1/dead")["total"] == 3
    status, told = act(gone, f"/v1/dead/drop?handler=mail&before={time}")
    assert told["dropped"] == 0, "a repeat finds nothing: it touches what was there then"


def test_a_bulk_action_goes_on_in_steps_until_all_are_done(gone):
    time = kill(gone, 25)
    done, cursor, steps = 0, "", 0
    while True:
        status, told = act(gone, f"/v1/dead/requeue?reason=rejected&limit=4&before={time}{cursor}")
        assert status == 200 and told["requeued"] <= 4
        done, steps = done + told["requeued"], steps + 1
        if not told["more"]:
            break
        cursor = f"&cursor={told['cursor']}"
    assert (done, steps >= 7) == (25, True)
    # They are rejected again, each with a new number: none was requeued twice.
    wait_until(lambda: gone.get("/v1/dead")["total"] == 25, "they are dead again")
    history = gone.get("/v1/dead?handler=mail&limit=1000")["tasks"]
    assert all([e["kind"] for e in t["history"]].count("requeued") == 1 for t in history)


def test_a_group_of_the_dead_is_chosen_by_its_error_as_it_is(gone):
    gone.host.submit([{"handler": "mail", "key": f"g{i}", "payload": f"{i} {word}"} for i, word in enumerate(("odd", "odd", "odd?er"))])
    wait_until(lambda: gone.get("/v1/dead")["total"] == 3, "all are dead")
    groups = {g["error"]: g["tasks"] for g in gone.get("/v1/dead")["groups"]}
    assert groups == {"what is odd?": 2, "what is odd?er?": 1}
    assert len(gone.get("/v1/dead?error=what+is+odd?")["tasks"]) == 3
    assert [t["key"] for t in gone.get("/v1/dead?cause=what+is+odd?")["tasks"]] in (["g0", "g1"], ["g1", "g0"])
    assert gone.get("/v1/dead?cause=")["tasks"] == []
    path = f"/v1/dead/drop?cause=what+is+odd?&before={gone.get('/v1/dead')['time_ms']}"
    assert act(gone, path)[1]["dropped"] == 2
    assert [t["key"] for t in gone.get("/v1/dead?handler=mail")["tasks"]] == ["g2"]


def test_tasks_that_wait_are_cancelled_by_filter(gone):
    gone.host.submit([{"handler": "idle", "key": f"c{i}", "payload": str(i)} for i in range(12)])
    gone.host.submit([{"handler": "idle", "key": "c-late", "payload": "0", "delay": "1h"}])
    wait_until(lambda: gone.get("/v1/tasks?handler=idle")["time_ms"] and
               len(gone.get("/v1/tasks?handler=idle")["tasks"]) == 13, "they wait")
    time = gone.get("/v1/tasks?handler=idle")["time_ms"]
    gone.host.submit([{"handler": "idle", "key": "c-new", "payload": "0"}])
    path, told = f"/v1/cancel?handler=idle&limit=5&before={time}", {"more": True}
    cursor, cancelled = "", 0
    while told["more"]:
        status, told = act(gone, path + cursor)
        assert status == 200, told
        cancelled += told["cancelled"]
        cursor = f"&cursor={told['cursor']}" if told["more"] else ""
    wait_until(lambda: [t["key"] for t in gone.get("/v1/tasks?handler=idle")["tasks"]] == ["c-new"], "only the new one")
    assert cancelled >= 13
    assert act(gone, f"/v1/cancel?key=c-new&before={time + 10**6}")[1]["cancelled"] == 1


@pytest.mark.parametrize("path, text", [
    ("/v1/dead/drop?handler=mail", "before: is missing"),
    ("/v1/dead/drop?before=1", "which tasks?"),
    ("/v1/dead/requeue?before=1&all=0", "which tasks?"),
    ("/v1/cancel?handler=mail", "before: is missing"),
    ("/v1/cancel?reason=rejected", "no parameter reason"),
])
def test_an_action_says_what_it_is_about(server, path, text):
    answer = server.post(path)
    assert answer[0] == 400 and text in detail(answer)


def test_a_dead_task_goes_back_with_another_payload(gone):
    kill(gone, 1)
    dead = gone.get("/v1/dead?handler=mail")["tasks"][0]
    status, told = act(gone, f"/v1/tasks/{dead['id']}/requeue", b"77 result")
    assert (status, told["id"], told["done"]) == (200, dead["id"], "requeue")
    assert gone.get("/v1/dead")["total"] == 0
    wait_until(lambda: 77 in gone.host.starts("reject-0"), "the new one runs under the old one's key")
    assert act(gone, f"/v1/tasks/{dead['id']}/requeue", b"78 result")[0] == 404, "the old one is gone"


def test_an_edited_requeue_is_for_dead_tasks_that_can_be_read(gone):
    number = json.loads(gone.post("/v1/tasks/idle?key=edit", b"1")[2])["id"]
    status, _, _ = answer = gone.post(f"/v1/tasks/{number}/requeue", b"2")
    assert status == 409 and "not dead" in detail(answer)
    assert act(gone, f"/v1/tasks/{number}/cancel")[0] in (200, 202)
    wait_until(lambda: gone.get("/v1/dead")["total"] == 1, "it is dead")
    assert act(gone, f"/v1/tasks/{number}/requeue?edit=1")[0] == 200, "an empty payload is one"


def test_each_action_is_a_line_of_the_log(gone):
    time = kill(gone, 2)
    act(gone, f"/v1/dead/requeue?handler=mail&before={time}")
    wait_until(lambda: gone.get("/v1/dead")["total"] == 2, "they are dead again")
    gone.host.wait_for_log("event=action by=admin action=requeue")
    lines = [line for line in gone.host.log().splitlines() if "action=requeue on=" in line and "handler=mail" in line]
    assert lines[-1].endswith("tasks=2")


def test_a_reload_says_what_it_does_and_what_it_would_do(host):
    server = Server(host)
    text = host.config.read_text()
    host.config.write_text(text.replace('backoff = "20ms"', 'backoff = "30ms"'))
    status, dry = act(server, "/v1/reload?dry_run=1")
    assert status == 200 and dry["handlers"]
    assert "reload on=" not in host.log(), "nothing was done"
    status, told = act(server, "/v1/reload")
    assert status == 200 and [h["handler"] for h in told["handlers"]] == ["mail"]
    host.wait_for_log("action=reload on=taken")
    host.config.write_text(text.replace("attempts = 4", "attempts = 0"))
    status, told = act(server, "/v1/reload")
    assert status == 422 and "attempts" in told["problems"][0]
    host.wait_for_log("action=reload on=refused")
    assert server.ask("POST", "/v1/reload", b"", token="watcher-watcher-1")[0] == 403


# --- schedules ----------------------------------------------------------------------------------------------------------


def put(server, name, status=200, more="", **definition):
    answer = server.ask("PUT", f"/v1/schedules/{name}{more}", json.dumps(definition).encode(), token=server.token)
    assert answer[0] == status, answer
    return json.loads(answer[2])


def shown(server, name):
    return json.loads(server.host.cli("schedule", "show", name, "--json"))


def test_a_schedule_is_the_same_over_http_and_by_command(server):
    made = put(server, "night", cron="0 3 * * *", zone="Europe/Berlin", handler="mail", payload="1")
    assert made == server.get("/v1/schedules/night") == shown(server, "night")
    assert len(made["times"]) == len(made["local_times"]) == 10 and made["times"][0] == made["next_ms"]
    assert made["local_times"][0].endswith(("03:00:00 +01:00", "03:00:00 +02:00"))
    assert len(server.get("/v1/schedules/night?times=3")["times"]) == 3
    again = put(server, "night", **made["definition"])
    assert again["definition"] == made["definition"] and again["version"] > made["version"]
    listed, = [s for s in server.get("/v1/schedules")["schedules"] if s["name"] == "night"]
    assert listed["definition"] == made["definition"] and "times" not in listed
    wrong = put(server, "night", status=400, cron="0 3 * * *", handler="mail", hour=3)
    assert wrong["detail"] == "hour: a schedule has no such field"


def test_a_schedule_that_would_be_set_is_only_shown(server):
    told = put(server, "preview", more="?dry_run=1&times=2", cron="* 0 * * *", handler="mail")
    assert "every minute of these hours" in told["doubt"] and told["times"][1] - told["times"][0] in (60000, 23 * 3600000 + 60000)
    assert server.ask("GET", "/v1/schedules/preview", token=server.token)[0] == 404


def test_a_schedule_with_another_key_keeps_its_state_and_is_one(server):
    put(server, "moved", every_ms=3600000, handler="mail")
    assert act(server, "/v1/schedules/moved/pause") == (200, {"name": "moved", "changed": True})
    first = server.get("/v1/schedules/moved")
    keys = (f"k{i}" for i in range(100))
    second = next(s for key in keys if (s := put(server, "moved", every_ms=3600000, handler="mail", key=key))["shard"] != first["shard"])
    assert second["state"] == "paused"
    assert [s["shard"] for s in server.get("/v1/schedules")["schedules"] if s["name"] == "moved"] == [second["shard"]]


def test_a_backfill_in_steps_submits_each_time_once(server):
    put(server, "back", cron="0 3 * * *", handler="mail", payload="1")
    begin, tasks, steps = "2026-11-01", 0, 0
    while begin:
        status, told = act(server, f"/v1/schedules/back/backfill?to=2026-11-08&limit=3&from={begin.replace(' ', '%20')}")
        assert status == 200
        tasks, steps, begin = tasks + told["tasks"], steps + 1, told.get("from")
    assert (tasks, steps) == (7, 3)
    assert "7 tasks submitted" in server.host.cli("schedule", "backfill", "back", "--from", "2026-11-01", "--to", "2026-11-08")
    assert act(server, "/v1/schedules/back/backfill?from=2026-11-01&to=2099-01-01")[0] == 400
    assert act(server, "/v1/schedules/back/run")[0] == 202
    wait_until(lambda: len(server.host.starts("back")) >= 8, "the last of the key has run")
    assert len(server.host.starts("back")) == 8, "what HTTP had submitted was submitted again by the command"
    assert "action=schedule-run on=back" in server.host.log()


def test_metrics_tell_when_a_schedule_fires_and_what_it_has_fired(server):
    put(server, "tick", every_ms=1000, handler="mail", payload="1")
    put(server, "yearly", cron="0 0 1 1 *", handler="mail")

    def sample(name, schedule):
        text = server.ask("GET", "/metrics", token=server.token)[2].decode()
        found = re.findall(rf'^quiver_schedule_{name}{{schedule="{schedule}"}} (.*)$', text, re.MULTILINE)
        assert len(found) <= 1
        return float(found[0]) if found else None

    wait_until(lambda: (sample("fired", "tick") or 0) >= 1, "it fires")
    assert sample("skipped", "tick") is not None and sample("late_seconds", "yearly") == 0
    assert sample("next_timestamp_seconds", "yearly") * 1000 == server.get("/v1/schedules/yearly")["next_ms"]
    assert act(server, "/v1/schedules/tick/pause")[0] == 200
    wait_until(lambda: sample("next_timestamp_seconds", "tick") is None, "a paused one has no next time")
