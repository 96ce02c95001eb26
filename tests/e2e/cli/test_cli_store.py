"""The commands on a store: opening, submitting, waiting, status, tasks and the dead; what they say, what they refuse."""
import json
import os
import pty
import re
import select
import subprocess
import time

import pytest

from shops import bare, COMMANDS, CONFIG, owner_program, shop  # noqa: F401 (fixtures)


# --- opening ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("words", [["submit", "mail", "x"], ["status"], ["task", "a-1"], ["dead", "list"], ["key", "k"],
                                   ["pause"], ["resume"], ["results"], ["fsck"]])
def test_without_a_store_every_command_says_who_makes_one(bare, words):
    said = bare.err(*words, code=3)
    assert "quiver run -c" in said and str(bare.folder / "q.db") in said
    assert not (bare.folder / "q.db").exists(), "only a host makes a store"


def test_another_number_of_shards_is_refused_naming_both(shop):
    (shop.folder / "runtime.cfg").write_text(CONFIG.replace("shards = 8", "shards = 32"))
    said = shop.err("status", code=1)
    assert "32" in said and "8" in said


def test_another_app_is_refused_naming_both(shop):
    (shop.folder / "runtime.cfg").write_text(CONFIG.replace('"demo"', '"other"'))
    said = shop.err("status", code=1)
    assert "demo" in said and "other" in said


def test_a_producer_may_have_its_settings_elsewhere(shop):
    """Coordination is between hosts: its folder is another one for whoever has a copy of the file."""
    (shop.folder / "runtime.cfg").write_text(CONFIG.replace("local:var", "local:elsewhere"))
    shop.run("submit", "mail", "x")
    assert shop.json("status")["coordination"] is None, "no host has been here"


def test_a_file_that_is_no_store_is_not_touched(bare):
    (bare.folder / "q.db").write_bytes(b"these are my notes\n" * 100)
    bare.err("status", code=3)
    assert (bare.folder / "q.db").read_bytes().startswith(b"these are my notes")


def test_a_wrong_configuration_is_named_with_its_line(shop):
    (shop.folder / "runtime.cfg").write_text(CONFIG.replace("max_payload", "max_paylaod"))
    said = shop.err("submit", "mail", "x", code=1)
    assert "runtime.cfg:3:" in said and "max_payload" in said and "quiver check" in said


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples_and_wrong_words_are_usage_errors(bare, command):
    said = bare.out(command, "--help")
    assert f"usage: quiver {command}" in said and "examples:" in said and f"quiver {command}" in said.split("examples:")[1]
    assert "no option --bogus" in bare.err(command, "--bogus", code=2)


@pytest.mark.parametrize("words, hint", [
    (["submit"], "which handler"), (["submit", "mail", "a", "b"], "quotes"), (["submit", "mail", "--lane", "top"], "high"),
    (["submit", "mail", "--delay", "10"], "delay"), (["submit", "mail", "--attempts", "0"], "attempts"),
    (["submit", "mail", "--header64", "a=b", "x"], "is not base64 with its padding"),
    (["submit", "mail", "--header", "x"], "NAME=VALUE"), (["submit", "mail", "--lines", "--wait"], "quiver results"),
    (["submit", "mail", "--lines", "--json-lines"], "both"), (["submit", "mail", "--lines", "--batch", "0"], "batch"),
    (["submit", "mail", "--lines", "--batch", "5x"], "batch"), (["dead", "list", "--limit", "99999999999"], "limit"),
    (["submit", "mail", "x", "--skip-bad"], "--lines"), (["submit", "mail", "--wait-for", "soon"], "30s"),
    (["status", "x"], "x"), (["task"], "which task"), (["task", "cancel"], "which task"), (["task", "nonsense"], "id"),
    (["dead", "burn"], "requeue"), (["dead", "drop"], "--all"), (["dead", "drop", "a-1", "--all"], "only one of"),
    (["dead", "requeue", "zzz"], "id"), (["dead", "list", "a-1"], "quiver task"), (["dead", "list", "--limit", "0"], "limit"),
    (["key"], "which key"), (["key", "hold"], "which key"), (["key", "a", "b"], "which key"),
    (["key", "a\nb"], "key"), (["key", "k", "--reason", "x"], "hold"), (["pause", "a", "b"], "one handler"),
    (["pause", "not a name"], "handler"), (["results", "x"], "x"), (["results", "--max", "0"], "max"),
    (["results", "--lease", "x"], "lease"), (["fsck", "--shard", "x"], "number"), (["fsck", "x"], "x"),
    (["envelope", "--make"], "which handler"), (["envelope", "a", "b"], "one file"),
    (["envelope", "--make", "m", "--shards", "0"], "shards"),
])
def test_wrong_usage_says_what_was_meant(bare, words, hint):
    said = bare.err(*words, code=2)
    assert hint in said and f"quiver {words[0]} --help" in said


# --- submit -----------------------------------------------------------------------------------------------------------

def test_a_task_arrives_with_all_that_was_said(shop):
    task = shop.out("submit", "mail", "--key", "user-1", "--lane", "high", "--attempts", 9, "--timeout", "90s",
                    "--header", "traceparent=00-ab", "--header", "a=b=c", "hello")
    found = shop.json("task", task)
    assert (found["stored"], found["key"], found["handler"], found["lane"]) == ("queued", "user-1", "mail", "high")
    assert (found["attempts_max"], found["timeout_ms"], found["payload"]) == (9, 90000, "hello")
    assert found["headers"] == {"traceparent": "00-ab", "a": "b=c"}
    assert shop.host("work", "done") == ["mail user-1 hello"]
    assert shop.totals()["done"] == 1


def test_a_payload_is_kept_byte_for_byte(shop):
    payload = b"nul \x00, newline\n, tab\t, \xff\xfe and \xc3\xa4"
    task = shop.out("submit", "mail", "-", stdin=payload)
    assert shop.run("task", task, "--payload").stdout == payload
    assert "payload_base64" in shop.json("task", task)
    text = shop.run("task", task).stdout
    assert b"\\x00" in text and b"\xff" not in text and "ä".encode() in text


def test_unknown_handlers_are_warned_about_and_taken(shop):
    done = shop.run("submit", "mial", "x")
    assert b"did you mean mail?" in done.stderr
    assert shop.totals()["queued"] == 1


@pytest.mark.parametrize("words, field", [
    (["submit", "not a name", "x"], "handler"), (["submit", "mail", "--key", "a\tb", "x"], "key"),
    (["submit", "mail", "--key", "k" * 256, "x"], "key"), (["submit", "mail", "--unique", "1h", "x"], "unique"),
    (["submit", "mail", "x" * 65537], "payload"), (["submit", "mail", "--header", "a b=c", "x"], "header"),
])
def test_a_bad_task_is_refused_and_the_field_named(shop, words, field):
    assert field in shop.err(*words, code=1)
    assert shop.totals()["submitted"] == 0


def test_a_delayed_task_is_not_started(shop):
    task = shop.out("submit", "mail", "--delay", "1h", "x")
    assert shop.host("work", "done") == []
    found = shop.json("task", task)
    assert found["state"] == "delayed" and 3500000 < found["due_in_ms"] <= 3600000


def test_a_second_unique_task_prints_the_first_one_s_id(shop):
    words = ["submit", "mail", "--key", "k", "--unique", "1h", "x"]
    first = shop.out(*words)
    second = shop.run(*words)
    assert second.stdout.decode().strip() == first and b"have this task already" in second.stderr
    assert shop.json(*words) == {"id": first, "duplicate": True}
    shop.run(*words, "--wait", code=1)
    assert shop.totals()["queued"] == 1


def test_ten_thousand_lines_arrive_in_order(shop):
    lines = b"".join(b"user-%d\t%05d\n" % (i % 7, i) for i in range(10000))
    assert shop.out("submit", "mail", "--lines", stdin=lines) == "10000 submitted"
    assert shop.totals()["queued"] == 10000
    seen = {}
    for line in shop.host("work", "done"):
        _, key, payload = line.split(" ")
        seen.setdefault(key, []).append(payload)
    assert seen == {f"user-{k}": [f"{i:05}" for i in range(10000) if i % 7 == k] for k in range(7)}
    assert shop.out("fsck").endswith("sound")


def test_lines_may_have_no_key_no_end_and_any_bytes(shop):
    assert shop.json("submit", "mail", "--lines", stdin=b"\tno key\nk\t\nk\t\x00\t\xff") == {
        "submitted": 3, "duplicates": 0, "skipped": 0, "refused": 0}
    shop.run("submit", "mail", "--lines", "--key", "all", stdin=b"a\tb\n")
    assert "mail all a\tb" in shop.host("work", "done")


@pytest.mark.parametrize("bad, why", [(b"no tab here", "tab"), (b"k" * 256 + b"\tx", "key"), (b"a\x01b\tx", "key"),
                                      (b"k\t" + b"x" * 70000, "max_payload")])
def test_a_bad_line_is_named_and_its_batch_refused(shop, bad, why):
    lines = [b"k\t%d" % i for i in range(10)]
    lines[7] = bad
    said = shop.err("submit", "mail", "--lines", "--batch", 3, stdin=b"\n".join(lines), code=1)
    assert "line 8:" in said and why in said and "lines 1 to 6 are done" in said and "from line 7" in said
    assert shop.totals()["queued"] == 6


def test_bad_lines_are_skipped_if_asked(shop):
    lines = [b"k\t%d" % i for i in range(10)]
    lines[2], lines[6], lines[8] = b"no tab here", b"a\x00b\tx", b"k\t" + b"x" * 70000
    done = shop.run("submit", "mail", "--lines", "--skip-bad", stdin=b"\n".join(lines))
    assert done.stdout == b"7 submitted, 3 bad lines skipped\n"
    assert [int(n) for n in re.findall(rb"line (\d+):", done.stderr)] == [3, 7, 9]
    assert shop.totals()["queued"] == 7


def test_json_lines_have_every_option(shop):
    lines = [
        {"handler": "echo", "key": "a", "payload": {"n": [1, "x"]}, "lane": "low", "attempts": 2, "timeout": "5s",
         "headers": {"h": "v"}},
        {"payload": "text\u0000nul", "key": "ü"},
        {"payload_base64": "AP8=", "delay": "1h"},
        {"key": "b"},
    ]
    stdin = b"\n".join(json.dumps(line).encode() for line in lines)
    assert shop.out("submit", "mail", "--json-lines", stdin=stdin) == "4 submitted"
    seen = shop.host("own", "keep")
    assert 'echo a {"n":[1,"x"]}' in seen and "mail ü text\0nul" in seen and len(seen) == 3
    assert shop.totals()["delayed"] == 1


def test_a_submit_with_an_idempotency_key_may_be_repeated(shop):
    words = ["submit", "mail", "--key", "user-1", "--idempotency-key", "order 1", "hello"]
    first = shop.out(*words)
    again = shop.run(*words)
    assert again.stdout.decode().strip() == first and b"taken before" in again.stderr
    assert shop.json(*words) == {"id": first, "duplicate": True}
    said = shop.err(*words[:-1], "good bye", code=1)
    assert "order 1" in said and first in said and "payload" in said
    other = shop.out("submit", "mail", "--key", "user-2", "--idempotency-key", "order 1", "hello")
    assert other != first and shop.totals()["queued"] == 2
    assert "1 to 255" in shop.err("submit", "mail", "--idempotency-key", "", "x", code=1)
    assert "idempotency_key" in shop.err("submit", "mail", "--lines", "--idempotency-key", "x", code=2)


def test_json_lines_with_idempotency_keys_may_be_sent_again(shop):
    lines = b"\n".join(b'{"payload": %d, "idempotency_key": "line-%d"}' % (i, i) for i in range(5))
    assert shop.out("submit", "mail", "--json-lines", stdin=lines) == "5 submitted"
    assert shop.json("submit", "mail", "--json-lines", stdin=lines + b'\n{"payload": 7, "idempotency_key": "line-1"}',
                     code=1) == {"submitted": 0, "duplicates": 5, "skipped": 0, "refused": 1}
    assert shop.totals()["queued"] == 5


@pytest.mark.parametrize("line, word", [
    ('{"idempotency_key": 1}', "idempotency_key"), ('{"idempotency_key": ""}', "idempotency"),
    ("{", "JSON"), ("[1]", "object"), ('{"kye": "a"}', "did you mean key"), ('{"lane": "x"}', "lane"),
    ('{"key": 7}', "key"), ('{"key": "a\\u0000b"}', "key"), ('{"payload_base64": "?"}', "base64"), ('{"headers": []}', "headers"), ('{"headers_base64": {"a": "?"}}', "base64"),
    ('{"headers": {"a": 1}}', "headers.a"), ('{"attempts": -1}', "attempts"), ('{"handler": null}', "handler"),
])
def test_a_bad_json_line_is_named_with_its_field(shop, line, word):
    said = shop.err("submit", "mail", "--json-lines", stdin=b'{"payload": 1}\n' + line.encode(), code=1)
    assert "line 2:" in said and word in said
    assert shop.totals()["submitted"] == 0


def test_json_lines_need_a_handler_from_somewhere(shop):
    assert "handler" in shop.err("submit", "--json-lines", stdin=b'{"payload": 1}', code=1)
    shop.run("submit", "--json-lines", stdin=b'{"handler": "mail", "payload": 1}')


def test_a_full_backlog_is_refused_line_by_line(shop):
    (shop.folder / "runtime.cfg").write_text(CONFIG.replace("max_backlog = 100000", "max_backlog = 5"))
    done = shop.run("submit", "mail", "--lines", "--key", "one", stdin=b"x\n" * 8, code=1)
    assert done.stdout == b"5 submitted, 3 refused\n"
    assert b"line 6:" in done.stderr and b"max_backlog" in done.stderr
    assert "max_backlog" in shop.err("submit", "mail", "--key", "one", "x", code=1)
    assert shop.totals()["queued"] == 5


def says_on_a_terminal(shop, *words, line, text):
    """Whether the text appears on the command's terminal while it gets one line after the other."""
    master, slave = pty.openpty()
    process = subprocess.Popen([shop.quiver, *words], cwd=shop.folder, env=shop.env, stdin=subprocess.PIPE,
                               stdout=subprocess.DEVNULL, stderr=slave)
    os.close(slave)
    said, end = b"", time.monotonic() + 60
    while text not in said and time.monotonic() < end:
        process.stdin.write(line)
        process.stdin.flush()
        if select.select([master], [], [], 0.01)[0]:
            said += os.read(master, 65536)
    process.communicate(timeout=60)
    os.close(master)
    return text in said


def test_progress_is_shown_on_a_terminal_only(shop):
    lines = b"k\tx\n" * 100
    assert says_on_a_terminal(shop, "submit", "mail", "--lines", line=lines, text=b"\033[K")
    assert shop.run("submit", "mail", "--lines", stdin=lines).stderr == b""


# --- waiting ----------------------------------------------------------------------------------------------------------

def submit_and_serve(shop, verdict, *words):
    process = subprocess.Popen([shop.quiver, "submit", *words], cwd=shop.folder, env=shop.env, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        for _ in range(1000):
            if shop.host("work", verdict):
                break
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    return process.returncode, out, err


def test_wait_prints_the_result_and_nothing_else(shop):
    assert submit_and_serve(shop, "echo", "mail", "--key", "k", "--wait", "hello\nyou") == (0, b"hello\nyou", b"")
    code, out, _ = submit_and_serve(shop, "echo", "mail", "--wait", "--json", "hello")
    assert code == 0 and json.loads(out)["outcome"] == "done" and json.loads(out)["result"] == "hello"
    assert shop.totals()["results"] == 0, "a reply is no result"


def test_wait_tells_of_a_failure_with_its_history(shop):
    code, out, err = submit_and_serve(shop, "reject", "mail", "--wait", "hello")
    assert (code, out) == (1, b"")
    assert b"rejected" in err and b"no such user" in err and b"quiver dead requeue" in err
    code, out, _ = submit_and_serve(shop, "reject", "mail", "--wait", "--json", "hello")
    told = json.loads(out)
    assert (code, told["outcome"], told["reason"], told["error"]) == (1, "dead", "rejected", "no such user")
    assert told["history"]


def test_what_it_took_is_told_with_the_outcome_and_with_the_result(shop):
    code, out, _ = submit_and_serve(shop, "second", "mail", "--wait", "--json", "hello")
    told = json.loads(out)
    assert (code, told["outcome"], told["attempts"], told["crashes"]) == (0, "done", 1, 0)
    assert [(event["kind"], event["text"]) for event in told["history"]] == [("attempt", "connection refused")]
    shop.run("submit", "mail", "again")
    shop.host("work", "second")
    result, = shop.lines("results", "--commit")
    assert (result["data"], result["attempts"], result["history"][0]["text"]) == ("again", 1, "connection refused")


def test_wait_gives_up_and_the_task_stays(shop):
    said = shop.err("submit", "mail", "--wait-for", "50ms", "x", code=1)
    assert "has not ended within 50ms" in said and "quiver status" in said
    assert shop.totals()["queued"] == 1


# --- status, task -----------------------------------------------------------------------------------------------------

def test_status_counts_every_task_in_one_state(shop):
    for key in "abcdef":
        shop.run("submit", "mail", "--key", key, "x")
    shop.run("submit", "mail", "--delay", "1h", "x")
    shop.host("own", "retry")
    shop.run("submit", "mail", "--key", "g", "x")
    status = shop.json("status")
    totals = status["totals"]
    assert (status["app"], status["store"]) == ("demo", f"sqlite:{shop.folder}/q.db")
    assert (totals["queued"], totals["delayed"], totals["parked"], totals["submitted"]) == (1, 1, 6, 8)
    assert [shard["shard"] for shard in status["shards"]] == list(range(8))
    for state in ("queued", "delayed", "in_flight", "parked", "dead"):
        assert sum(shard[state] for shard in status["shards"]) == totals[state]
    assert {shard["owner"] for shard in status["shards"]} == {"07" * 16}
    assert all(shard["epoch"] == 1 for shard in status["shards"])


def test_status_for_people_fits_a_screen(shop):
    shop.run("submit", "mail", "--lines", stdin=b"\tx\n" * 500)
    text = shop.out("status")
    assert len(text.splitlines()) < 24 and "500" in text and "none is running" in text and "\033" not in text
    shop.host("announce", '{"name": "host-a", "state": "active"}')
    assert "host-a" in shop.out("status")
    member, = shop.json("status")["members"]
    assert (member["name"], member["nonce"]) == ("host-a", "07" * 16) and member["age_ms"] >= 0


def test_a_task_is_found_in_every_state(shop):
    task = shop.out("submit", "mail", "--key", "k", "hello")
    assert (lambda t: (t["state"], t["stored"]))(shop.json("task", task)) == ("waiting", "queued")
    shop.host("own", "keep")
    assert (lambda t: (t["state"], t["stored"]))(shop.json("task", task)) == ("waiting", "in flight")
    other = shop.out("submit", "mail", "--key", "other", "x")
    shop.host("work", "retry")
    found = shop.json("task", other)
    assert (found["state"], found["attempts"]) == ("parked", 1)
    assert found["history"][0]["text"] == "connection refused"
    assert "quiver key show other" in shop.out("task", other)
    third = shop.out("submit", "mail", "--key", "third", "x")
    shop.host("work", "reject")
    text = shop.out("task", third)
    assert "dead (rejected)" in text and "no such user" in text and f"quiver dead requeue {third}" in text
    said = shop.err("task", "1m7h39ctwaz2q77zdmb7-4", code=1)
    assert "it was dropped, or done too long ago" in said


def test_a_task_is_cancelled_in_every_state(shop):
    queued = shop.out("submit", "mail", "--key", "a", "x")
    delayed = shop.out("submit", "mail", "--delay", "1h", "x")
    assert "is cancelled" in shop.out("task", "cancel", queued)
    assert shop.json("task", "cancel", delayed) == {"id": delayed, "pending": False}
    running = shop.out("submit", "mail", "--key", "b", "x")
    assert shop.host("own", "keep") == ["mail b x"]
    assert "owner has been told" in shop.out("task", "cancel", running)
    for task in (queued, delayed):
        assert shop.json("task", task)["reason"] == "cancelled"
        assert "dead already" in shop.err("task", "cancel", task, code=1)
    shop.err("task", "cancel", "1m7h39ctwaz2q77zdmb7-4", code=1)


# --- dead -------------------------------------------------------------------------------------------------------------

@pytest.fixture
def graveyard(shop):
    """Six dead tasks: four of mail, two of echo."""
    shop.ids = [shop.out("submit", "mail" if i < 4 else "echo", "--key", f"k{i}", f"p{i}") for i in range(6)]
    assert len(shop.host("work", "reject")) == 6
    return shop


def test_dead_tasks_are_listed_with_their_error(graveyard):
    assert sorted(task["id"] for task in graveyard.lines("dead", "list")) == sorted(graveyard.ids)
    text = graveyard.out("dead")
    assert len(text.splitlines()) == 6 and text.count("no such user") == 6 and "rejected" in text
    assert {task["handler"] for task in graveyard.lines("dead", "list", "--handler", "echo")} == {"echo"}
    limited = graveyard.out("dead", "list", "--limit", 2).splitlines()
    assert len(limited) == 3 and "6 in all" in limited[2]


def test_dead_tasks_get_another_chance(graveyard):
    assert graveyard.out("dead", "requeue", *graveyard.ids[:2]) == "2 requeued"
    assert graveyard.json("dead", "requeue", "--handler", "echo") == {"seen": 4, "matched": 2, "chosen": 2,
                                                                         "requeued": 2}
    found = graveyard.json("task", graveyard.ids[0])
    assert (found["state"], found["attempts"]) == ("waiting", 0) and found["history"]
    assert graveyard.out("dead", "requeue", "--all") == "2 requeued: 2 dead, 2 of them matched"
    assert len(graveyard.host("work", "done")) == 6
    assert graveyard.out("dead") == "no dead tasks"
    assert graveyard.out("fsck").endswith("sound")


def test_dead_tasks_are_dropped_for_good(graveyard):
    assert graveyard.out("dead", "drop", graveyard.ids[5]) == "1 dropped"
    assert graveyard.json("dead", "drop", "--handler", "mail") == {"seen": 5, "matched": 4, "chosen": 4, "dropped": 4}
    graveyard.err("task", graveyard.ids[0], code=1)
    totals = graveyard.totals()
    assert (totals["dead"], totals["dropped"]) == (1, 5)
    assert graveyard.out("fsck").endswith("sound")


def test_more_dead_tasks_than_one_step_handles(shop):
    shop.run("submit", "mail", "--lines", "--key", "k", stdin=b"x\n" * 600)
    assert len(shop.host("work", "reject")) == 600
    assert len(shop.lines("dead", "list", "--limit", 550)) == 550
    assert shop.out("dead", "requeue", "--all").startswith("600 requeued")
    assert len(shop.host("work", "reject")) == 600
    assert shop.out("dead", "drop", "--handler", "mail").startswith("600 dropped")
    assert shop.out("fsck").endswith("sound")


def test_what_is_not_dead_is_named_and_the_rest_done(graveyard):
    alive = graveyard.out("submit", "mail", "x")
    done = graveyard.run("dead", "drop", alive, graveyard.ids[0], code=1)
    assert f"no dead task {alive}".encode() in done.stderr and done.stdout == b"1 dropped\n"
    assert graveyard.json("task", alive)["state"] == "waiting"
