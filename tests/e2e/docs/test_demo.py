"""make demo: that it ends well, leaves nothing, and would notice if it did not end well."""
import os
import pathlib
import pty
import random
import subprocess
import sys
import types

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "demo"))
from demo import Records, Verdict, judge, judge_flaky  # noqa: E402
from fleet import Fleet  # noqa: E402

RIGHT = "Every record is as its last task left it: 0 order violations, 0 lost."
HISTORY = {"a": [(1, False), (2, False), (2, True)], "b": [(3, False)]}


def words(root):
    return ["/usr/bin/python3", root / "tests" / "demo" / "demo.py", "--tasks", "300", "--keys", "30"]


@pytest.fixture
def env(quiver, tmp_path):
    return {**os.environ, "QUIVER": str(quiver), "TMPDIR": str(tmp_path)}


def test_it_ends_well_and_leaves_nothing(root, env, tmp_path):
    done = subprocess.run(words(root), env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert RIGHT in done.stdout
    assert "\r" not in done.stdout and "\033" not in done.stdout
    assert os.listdir(tmp_path) == []


def test_on_a_terminal_its_progress_stays_on_one_line(root, env):
    ours, theirs = pty.openpty()
    child = subprocess.Popen(words(root), env=env, stdout=theirs, stderr=theirs)
    os.close(theirs)
    text = b""
    try:
        while chunk := os.read(ours, 65536):
            text += chunk
    except OSError:  # the end of a terminal
        pass
    os.close(ours)
    assert child.wait(60) == 0, text
    assert text.count(b"\r\033[K") > 5 and RIGHT.encode() in text


@pytest.mark.parametrize("journal, expected", [
    ([("a", 1, 0, "t1"), ("a", 2, 0, "t2"), ("b", 3, 0, "t3"), ("a", 2, 1, "t4")], (0, 0)),
    ([("a", 1, 0, "t1"), ("a", 1, 0, "t1"), ("a", 2, 0, "t2"), ("b", 3, 0, "t3"), ("a", 2, 1, "t4")], (0, 0)),
    ([("a", 1, 0, "t1"), ("a", 2, 1, "t4"), ("b", 3, 0, "t3"), ("a", 2, 0, "t2")], (2, 0)),
    ([("a", 1, 0, "t1"), ("a", 2, 0, "t2"), ("a", 1, 0, "t1"), ("a", 2, 1, "t4"), ("b", 3, 0, "t3")], (1, 0)),
    ([("a", 1, 0, "t1"), ("a", 2, 0, "t2"), ("a", 2, 1, "t4")], (0, 1)),
    ([], (0, 4)),
])
def test_what_is_wrong_is_counted(journal, expected):
    """In order; one run again; two swapped; an old one that came back; one missing; nothing at all."""
    assert judge(HISTORY, journal) == expected


@pytest.mark.parametrize("ledger, expected", [
    ("a 0\nb 0\na 1\n", (3, 0)), ("a 0\na 0\na 1\n", (2, 0)), ("a 1\na 0\n", (2, 1)), ("a 0\na 1\na 0\n", (2, 1)),
])
def test_a_retry_that_was_overtaken_is_counted(tmp_path, ledger, expected):
    (tmp_path / "ledger").write_text(ledger)
    assert judge_flaky(types.SimpleNamespace(folder=tmp_path)) == expected


def test_a_record_that_somebody_touched_is_found():
    records = Records(random.Random(1), 1)
    records.task()
    with Fleet() as fleet:
        with fleet.database() as db:
            db.execute("INSERT INTO record (id, step, text, fence_task) VALUES ('record-0', 1, 'text 1', 't')")
        assert (Verdict(records, fleet).right, Verdict(records, fleet).wrong) == (1, 0)
        with fleet.database() as db:
            db.execute("UPDATE record SET text = 'late'")
        assert (Verdict(records, fleet).right, Verdict(records, fleet).wrong) == (0, 1)
