#!/usr/bin/python3
"""Removes one check at a time and says which test noticed.

A check that can be removed without any test turning red protects nobody: somebody will remove it.  Each mutant is one
replacement in one file of a copy of the tree; the tests named for it run in order, until one of them fails.

usage: mutants.py [NAME …]      only those whose name contains one of the words
"""
import importlib
import os
import pathlib
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
COPY = ROOT / "build" / "mutants"
SAME_RUNS = {"QUIVER_SIM_SEED": "1", "QUIVER_SIM_STEPS": "600000"}  # the first runs of the simulation that make test has

# Each is: name, file, what stands there, what stands there in the mutant, the tests that should notice.  They are in
# of_*.py beside this file, by the folder that they change.
MUTANTS = [mutant for source in sorted(pathlib.Path(__file__).parent.glob("of_*.py"))
           for mutant in importlib.import_module(source.stem).MUTANTS]


def problems(mutants, root):
    """What is wrong with mutants of a tree, one line each.  Nothing is built for it: tests/lint asks it too."""
    names = set()
    for name, path, old, new, tests in mutants:
        file = root / path
        places = file.read_text().count(old) if file.is_file() else 0
        if places != 1:
            yield f"{name}: its text stands in {places} places of {path}, and should stand in one"
        if old == new:
            yield f"{name}: it changes nothing"
        if name in names:
            yield f"{name}: another mutant has this name"
        if not tests:
            yield f"{name}: it names no test that should notice"
        for test in tests:
            folder, _, program = test.rpartition("/")
            if not any((root / "tests" / folder).rglob(f"{program}.c")):
                yield f"{name}: it should be noticed by {program}.c in tests/{folder}, which does not exist"
        names.add(name)


def prepare():
    """The tree as it is now, without what was built."""
    shutil.rmtree(COPY, ignore_errors=True)
    shutil.copytree(ROOT, COPY, symlinks=True, ignore=shutil.ignore_patterns("build", ".git"))


def binary(test):
    return f"build/tests/{test}"


def is_red(test):
    """Runs one test in the copy."""
    made = subprocess.run(["make", "-sj2", binary(test)], cwd=COPY, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    try:
        done = subprocess.run([COPY / binary(test)], cwd=COPY, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300,
                              env={**os.environ, **SAME_RUNS})
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def try_mutant(_name, path, old, new, tests):
    file = COPY / path
    text = file.read_text()
    file.write_text(text.replace(old, new))
    try:
        return next((test for test in tests if is_red(test)), None)
    finally:
        file.write_text(text)


def main(words):
    wrong = list(problems(MUTANTS, ROOT))
    if wrong:
        print(*wrong, "Nothing was tried: mend tests/mutants/of_*.py first.", sep="\n", file=sys.stderr)
        return 1
    chosen = [m for m in MUTANTS if not words or any(word in m[0] for word in words)]
    prepare()
    survivors = 0
    for mutant in chosen:
        began = time.monotonic()
        test = try_mutant(*mutant)
        survivors += test is None
        print(f"{'SURVIVED' if test is None else 'noticed':9} {mutant[0]:45} {test or '-':25} "
              f"{time.monotonic() - began:4.0f} s", flush=True)
    shutil.rmtree(COPY, ignore_errors=True)
    print(f"{len(chosen)} mutants, {survivors} survived")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
