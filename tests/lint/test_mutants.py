"""Every mutant still fits the tree, and who changes a line that a mutant replaces hears of it without `make mutants`."""
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "mutants"))
import mutants  # noqa: E402

SOUND = ("lease: any epoch", "runtime/lease.c", "epoch == 7", "true", ["unit/test_lease"])

BREACHES = {
    "the text is gone": ("lease: any", "runtime/lease.c", "epoch == 8", "true", ["unit/test_lease"], "stands in 0 places"),
    "the text is there twice": ("lease: any", "runtime/lease.c", "return", "", ["unit/test_lease"], "stands in 2 places"),
    "the file is gone": ("lease: any", "runtime/nowhere.c", "epoch", "true", ["unit/test_lease"], "stands in 0 places"),
    "nothing changes": ("lease: any", "runtime/lease.c", "epoch == 7", "epoch == 7", ["unit/test_lease"], "changes nothing"),
    "the name is another's": (*SOUND, "another mutant has this name"),
    "no test is named": ("lease: any", "runtime/lease.c", "epoch == 7", "true", [], "names no test"),
    "a test is gone": ("lease: any", "runtime/lease.c", "epoch == 7", "true", ["sim/test_lease"], "which does not exist"),
}


@pytest.fixture
def tree(tmp_path):
    for name, text in (("runtime/lease.c", "if (epoch == 7)\n        return 1;\nreturn 0;\n"), ("tests/unit/shard/test_lease.c", "")):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_every_mutant_fits_the_tree():
    assert mutants.MUTANTS
    assert list(mutants.problems(mutants.MUTANTS, ROOT)) == []


def test_a_sound_mutant_has_no_problem(tree):
    assert list(mutants.problems([SOUND], tree)) == []


@pytest.mark.parametrize("breach", BREACHES)
def test_a_breach_is_found(tree, breach):
    *mutant, expected = BREACHES[breach]
    found = list(mutants.problems([SOUND, mutant], tree))
    assert len(found) == 1 and expected in found[0], found
