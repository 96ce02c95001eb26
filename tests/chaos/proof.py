#!/usr/bin/python3
"""Proves that chaos bites: builds Quiver with one check removed, and shows that a run goes red.

Each mutant is a few replacements in a copy of the tree (tests/mutants has more of them, for the other tests); runs of
chaos.py in it, with one seed after the other, have to find it.  The copy as it is must keep every promise.

usage: proof.py [--for 20s] [--runs 6] [WORD …]      only those whose name contains one of the words
"""
import argparse
import collections
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
COPY = ROOT / "build" / "chaos-proof"
STORY_LINES = 72

# on: where chaos is to find it; edits: (file, what stands there, what stands there in the mutant); only: the faults that it
# takes, where they are rare ("": any).
Mutant = collections.namedtuple("Mutant", "name on edits only", defaults=("",))

ADVANCE = "runtime/store/redis/lua/shard/advance.lua"
LEASE = "runtime/store/sqlite/shard/lease.c"
FIRES = "runtime/store/redis/lua/records/fires.lua"

MUTANTS = [
    Mutant("redis: advance is not fenced", "redis", [
        (ADVANCE, "if fields[1] ~= ARGV[1] then\n", "if not fields[1] then\n"),
        (ADVANCE, "if call ~= last_call + 1 and call ~= last_call then\n", "if false then\n")]),
    Mutant("sqlite: advance is not fenced", "sqlite", [
        (LEASE, "        if (!lease_is_ours(shard, lease))\n                return FENCE_FENCED;\n        if (call == shard->call + 1)",
         "        if (!lease_is_ours(shard, lease))\n                return FENCE_OK;\n        if (call == shard->call + 1)")]),
    Mutant("redis: any call number", "redis", [
        (ADVANCE, "if call ~= last_call + 1 and call ~= last_call then\n", "if false then\n"),
        (ADVANCE, "if call > last_call and ARGV[7]", "if call ~= last_call and ARGV[7]")], "late,pause host,slow"),
    Mutant("redis: a repeated call is done again", "redis", [
        (ADVANCE, "local call, last_call = tonumber(ARGV[2]), counted('call', fields[2])\n",
         "local call, last_call = tonumber(ARGV[2]), tonumber(ARGV[2]) - 1\n")]),
    Mutant("redis: what was in flight is taken up in any order", "redis", [
        ("runtime/store/redis/lua/lib/page.lua", "\ttable.sort(seqs)\n", ""),
        ("runtime/host/shard/window.c", "while (after && after->seq > c->seq)", "while (false)")]),
    Mutant("sqlite: what was in flight is taken up in any order", "sqlite", [
        (LEASE, "        ret_page->tasks = claim.tasks;\n",
         "        for (uint32_t i = 0; i < claim.count / 2; i++) {\n"
         "                struct store_task other = claim.tasks[i];\n"
         "                claim.tasks[i] = claim.tasks[claim.count - 1 - i];\n"
         "                claim.tasks[claim.count - 1 - i] = other;\n"
         "        }\n"
         "        ret_page->tasks = claim.tasks;\n"),
        ("runtime/host/shard/window.c", "while (after && after->seq > c->seq)", "while (false)")]),
    Mutant("runner: no look at the lease before a call", "sqlite", [
        ("runtime/runner/seat.c", "if (!leases_allow(&s->runner->leases, task->lease, task->fence_epoch, now_ns))",
         "if (!task->lease && !now_ns)")]),
    Mutant("window: a busy key is ready", "sqlite", [
        ("runtime/host/shard/window.c", "bool can_run = c && !key->is_busy && ", "bool can_run = c && ")]),
    Mutant("redis: a follow-up is taken whatever its number", "redis", [
        ("runtime/store/redis/lua/shard/take.lua", "elseif entry[2] > taken then", "elseif true then")]),
    Mutant("limits: a task starts without a share", "redis", [
        ("runtime/host/limit/limit.c", "        if (now_ms >= b->until_ms || now_ms < b->closed_ms)\n                return 0;\n",
         "        if (now_ms)\n                return 100;\n")]),
    Mutant("limits: what others hold does not count", "sqlite", [
        ("runtime/store/limit_share.c", "held->others = min_u64(held->others + h.shares, TASK_NUMBER_MAX);", "held->others = 0;")]),
    Mutant("limits: a token is not used up", "sqlite", [
        ("runtime/store/limit_share.c", "b.level -= s->granted * limit->period_ms;", "")]),
    Mutant("schedules: any time fires, whoever owns the shard", "redis", [
        (FIRES, "if fields[1] ~= ARGV[1] then\n", "if not fields[1] then\n"),
        (FIRES, "if call ~= last_call + 1 and call ~= last_call then\n", "if false then\n"),
        (FIRES, "if call == last_call then\n", "if false then\n"),
        (FIRES, " or s[3] ~= expected then\n", " then\n")]),
    Mutant("schedules: a repeated call fires again", "redis", [
        (FIRES, "if call == last_call then\n", "if false then\n"),
        (FIRES, " or s[3] ~= expected then\n", " then\n")], "lose replies,kill clients,reset"),
    Mutant("merge: what is merged is not counted", "redis", [
        ("runtime/store/redis/lua/lib/outcomes.lua", "redis.call('HINCRBY', shard, 'merged', #merged)", "redis.call('HINCRBY', shard, 'merged', 0)")]),
]


def prepare():
    """The tree as it is now, with what is built: only what a mutant touches is built again."""
    shutil.rmtree(COPY, ignore_errors=True)

    def is_left_out(folder, names):
        if pathlib.Path(folder) == ROOT:
            return {".git", "var"} & set(names)
        if pathlib.Path(folder) == ROOT / "build":
            return set(names) & {"asan", "tsan", "fuzz", "test", "bench", "mutants", "chaos-proof", "model"}
        return set()

    shutil.copytree(ROOT, COPY, symlinks=True, ignore=is_left_out)


def build():
    made = subprocess.run(["make", "-sj2", "build/quiver", "build/libquiver.so.1", "build/test-plugins/ledger.so",
                           "build/test-plugins/ledger-two.so", "build/tests/preload/world.so"], cwd=COPY,
                          capture_output=True, text=True)
    assert made.returncode == 0, made.stderr


def run_chaos(on, seconds, seed, only=""):
    """Returns (whether it was well, what it printed)."""
    done = subprocess.run([sys.executable, COPY / "tests" / "chaos" / "chaos.py", "--on", on, "--for", f"{seconds}s",
                           "--seed", str(seed), *(["--only", only] if only else [])], cwd=COPY, capture_output=True, text=True, timeout=seconds + 600)
    kept = re.search(r"the run's folder is kept: (/\S+/quiver-chaos-\w+)", done.stdout)
    if kept:
        shutil.rmtree(kept[1], ignore_errors=True)
    return done.returncode == 0, done.stdout + done.stderr


def first_story(text):
    """The first violation with a key's history, as far as it is worth reading here."""
    blocks = re.split(r"\n(?=VIOLATION: )", text)[1:]
    block = next((b for b in blocks if "\n    key " in b), blocks[0] if blocks else text[-2000:])
    lines = block.split("\n\n")[0].splitlines()
    story = next((i for i, line in enumerate(lines) if line.startswith("    key ")), len(lines))
    return [lines[0], *lines[1:min(story, 4)], *lines[story:][:STORY_LINES]]


def try_mutant(mutant, seconds, runs):
    """Returns after how many runs it was noticed (None: it was not), and what chaos said."""
    texts = {path: (COPY / path).read_text() for path, _, _ in mutant.edits}
    try:
        for path, old, new in mutant.edits:
            file = COPY / path
            file.write_text(file.read_text().replace(old, new))
        build()
        for seed in range(1, runs + 1):
            is_well, text = run_chaos(mutant.on, seconds, seed, mutant.only)
            if not is_well:
                return seed, text
        return None, ""
    finally:
        for path, text in texts.items():
            (COPY / path).write_text(text)


def prove(mutants, seconds, runs):
    survivors = 0
    for mutant in mutants:
        began = time.monotonic()
        seed, text = try_mutant(mutant, seconds, runs)
        survivors += seed is None
        took = f"{time.monotonic() - began:4.0f} s"
        if seed is None:
            print(f"\nSURVIVED  {mutant.name}: {runs} runs of {seconds} s on {mutant.on} saw nothing, {took}", flush=True)
            continue
        rules = ", ".join(f"{rule} {count}" for rule, count in re.findall(r"^VIOLATION: (.+), (\d+) times$", text, re.M))
        print(f"\nnoticed   {mutant.name}: on {mutant.on}, seed {seed}, {took}: {rules}", flush=True)
        print("\n".join(f"    {line}" for line in first_story(text)), flush=True)
    return survivors


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--for", dest="seconds", type=lambda text: int(text.rstrip("s")), default=20, metavar="TIME")
    options.add_argument("--runs", type=int, default=6, help="with as many seeds, at most")
    options.add_argument("words", nargs="*")
    chosen = options.parse_args()
    mutants = [m for m in MUTANTS if not chosen.words or any(word in m.name for word in chosen.words)]
    for mutant in mutants:
        for path, old, _ in mutant.edits:
            places = (ROOT / path).read_text().count(old)
            assert places == 1, f"{mutant.name}: {path} has {places} places like that; mend proof.py"
    prepare()
    build()
    is_red = False
    for on in sorted({mutant.on for mutant in mutants}):
        is_well, text = run_chaos(on, chosen.seconds, 1)
        is_red = is_red or not is_well
        print(f"as it is, on {on}: {'every promise was kept' if is_well else text}", flush=True)
    survivors = prove(mutants, chosen.seconds, chosen.runs)
    shutil.rmtree(COPY, ignore_errors=True)
    print(f"\n{len(mutants)} mutants, {survivors} survived")
    return 1 if survivors or is_red else 0


if __name__ == "__main__":
    sys.exit(main())
