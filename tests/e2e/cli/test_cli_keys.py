"""The commands on a store: keys, pause, results, fsck and envelopes; what they say, what they refuse."""
import json
import subprocess

import pytest

from shops import bare, owner_program, shop  # noqa: F401 (fixtures)


# --- keys -------------------------------------------------------------------------------------------------------------

def test_a_key_says_what_it_waits_for_and_what_to_do(shop):
    assert shop.json("key", "user 1")["state"] == "free"
    first = shop.out("submit", "mail", "--key", "user 1", "a")
    shop.run("submit", "mail", "--key", "user 1", "b")
    shop.host("work", "retry")
    told = shop.json("key", "user 1")
    assert (told["state"], told["reason"], told["tasks"], told["head"]) == ("parked", "connection refused", 2, first)
    text = shop.out("key", "show", "user 1")
    for words in ("parked", "connection refused", "2 tasks", "ago", "quiver key retry  'user 1'", "quiver key skip   'user 1'"):
        assert words in text
    assert [key["key"] for key in shop.lines("key", "list")] == ["user 1"]


def test_a_parked_key_is_retried_or_skipped(shop):
    task = shop.out("submit", "mail", "--key", "k", "a")
    shop.run("submit", "mail", "--key", "k", "b")
    shop.host("work", "retry")
    assert shop.host("work", "done") == []
    assert "is tried again now" in shop.out("key", "retry", "k")
    assert shop.host("work", "retry") == ["mail k a"]
    assert shop.json("key", "skip", "k") == {"key": "k", "verb": "skip", "pending": False}
    assert shop.host("work", "done") == ["mail k b"]
    assert shop.json("task", task)["state"] == "dead"
    assert shop.out("key", "list").startswith("no key waits")


def test_a_held_key_waits_for_a_person(shop):
    shop.run("key", "hold", "k", "--reason", "being migrated")
    shop.run("submit", "mail", "--key", "k", "a")
    assert shop.host("work", "done") == []
    text = shop.out("key", "k")
    assert "held" in text and "being migrated" in text and "quiver key unhold k" in text
    shop.run("key", "unhold", "k")
    assert shop.host("work", "done") == ["mail k a"]


def test_an_owner_is_told(shop):
    shop.host("own", "done")
    assert "owner has been told to hold it" in shop.out("key", "hold", "k")


@pytest.mark.parametrize("verb", ["unhold", "retry", "skip"])
def test_there_is_nothing_to_do_for_a_free_key(shop, verb):
    assert f"nothing to {verb}" in shop.err("key", verb, "k", code=1)


def test_a_key_may_have_the_name_of_a_verb(shop):
    shop.run("key", "hold", "--", "hold")
    assert shop.json("key", "show", "hold")["state"] == "held"
    shop.run("key", "hold", "--", "-x'y")
    assert "'-x'\\''y'" in shop.out("key", "show", "--", "-x'y")


# --- pause, results, fsck ---------------------------------------------------------------------------------------------

def test_pause_and_resume_are_remembered_by_the_store(shop):
    assert "quiver resume mail" in shop.out("pause", "mail", "--reason", "provider is down")
    shop.run("pause")
    paused = shop.json("status")["totals"]["paused"]
    assert paused["mail"] == "provider is down" and "" in paused
    assert "PAUSED    mail: provider is down" in shop.out("status")
    assert shop.out("resume", "mail") == "mail goes on"
    assert shop.json("resume") == {"handler": None, "paused": False, "changed": True}
    assert shop.json("status")["totals"]["paused"] == {}
    assert shop.out("resume") == "everything was not paused"


def make_results(shop, count):
    shop.run("submit", "echo", "--lines", "--key", "k", stdin=b"".join(b"r%d\ttab\n" % i for i in range(count)))
    assert len(shop.host("work", "echo")) == count


def test_results_come_back_unless_they_are_committed(shop):
    make_results(shop, 5)
    taken = shop.out("results", "--max", 2, "--lease", "1ms").splitlines()
    assert [line.split("\t")[1:] for line in taken] == [["k", "echo", "r0\\ttab"], ["k", "echo", "r1\\ttab"]]
    again = shop.lines("results", "--max", 2, "--commit")
    assert [result["data"] for result in again] == ["r0\ttab", "r1\ttab"]
    assert [result["data"] for result in shop.lines("results", "--commit")] == [f"r{i}\ttab" for i in (2, 3, 4)]
    assert shop.out("results") == ""
    assert shop.totals()["results"] == 0


def test_another_consumer_does_not_get_what_is_held(shop):
    make_results(shop, 3)
    assert len(shop.lines("results", "--max", 2, "--lease", "1h")) == 2
    assert [result["data"] for result in shop.lines("results")] == ["r2\ttab"]


def test_results_that_could_not_be_written_are_not_committed(shop):
    make_results(shop, 3)
    with open("/dev/full", "wb") as full:
        done = subprocess.run([shop.quiver, "results", "--commit"], stdout=full, stderr=subprocess.PIPE, cwd=shop.folder,
                              env=shop.env, timeout=60)
    assert done.returncode == 1 and b"cannot write" in done.stderr
    assert shop.totals()["results"] == 3


def test_following_results_ends_when_interrupted(shop):
    process = subprocess.Popen([shop.quiver, "results", "--follow", "--commit", "--json"], cwd=shop.folder, env=shop.env,
                               stdout=subprocess.PIPE)
    try:
        make_results(shop, 2)
        assert json.loads(process.stdout.readline())["data"] == "r0\ttab"
        assert json.loads(process.stdout.readline())["data"] == "r1\ttab"
        process.terminate()
        assert process.wait(timeout=60) == 0
    finally:
        process.kill()


def test_fsck_finds_a_counter_that_is_off(shop):
    shop.run("submit", "mail", "--lines", stdin=b"\tx\n" * 100)
    assert shop.json("fsck")["tasks"] == 100
    assert shop.out("fsck", "--shard", 3).startswith("1 shard,")
    assert "0 to 7" in shop.err("fsck", "--shard", 8, code=1)
    import sqlite3
    with sqlite3.connect(shop.folder / "q.db") as database:
        row, = database.execute("select id from log limit 1").fetchone()
        database.execute("delete from log where id = ?", (row,))
    done = shop.run("fsck", code=1)
    assert b"problem" in done.stdout and done.stderr


# --- envelope ---------------------------------------------------------------------------------------------------------

def test_an_envelope_made_by_hand_is_read_back(bare):
    made = bare.run("envelope", "--make", "mail", "--key", "user-17", "--lane", "low", "--header", "a=b", "--shards", 64,
                    "--unique", "1m", "hello\nyou").stdout
    assert made.startswith(b"qv1\nkey:user-17\nhandler:mail\n") and made.endswith(b"header.a:b\n\nhello\nyou")
    (bare.folder / "t.qv1").write_bytes(made)
    shown = bare.json("envelope", "t.qv1", "--shards", 64)
    assert (shown["key"], shown["handler"], shown["lane"], shown["payload"]) == ("user-17", "mail", "low", "hello\nyou")
    assert shown["unique_ms"] == 60000 and shown["headers"] == {"a": "b"}
    assert shown["id"].endswith(f"-{shown['shard']}")
    assert "user-17 (shard" in bare.out("envelope", "--shards", 64, stdin=made)


def test_the_golden_envelopes_are_read_or_refused(bare, root):
    vectors = list((root / "tests/envelopes").glob("*.qv1"))
    assert len(vectors) > 10
    for vector in vectors:
        bad = vector.name.startswith("bad")
        done = bare.run("envelope", vector, code=1 if bad else 0)
        assert (b"is not an envelope" in done.stderr) == bad


def test_an_envelope_that_would_be_refused_is_not_made(bare):
    assert "key" in bare.err("envelope", "--make", "mail", "--key", "a\nb", code=1)
    assert "handler" in bare.err("envelope", "--make", "no name", code=1)
    assert "No such file" in bare.err("envelope", "not-there.qv1", code=1)
