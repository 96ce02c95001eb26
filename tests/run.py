#!/usr/bin/python3
"""Builds and runs every test; the last line is "N passed, N failed".

    tests/run.py [--all] [--werror] [--only WORD]...

WORD is a suite (unit, asan, tsan, contract, sim, fuzz, e2e, lint, build) or a part of a file's name (ring).
First the program and its tests are built, with a job per core.  Then the test programs run, one per core and one more, since
most of them wait for something, and each suite is reported when its last program has ended.  Builds with sanitizers go on
beside the first of these, at a low priority; what needs a build waits for it.  Whatever a program wrote is in build/test/SUITE/PROGRAM.log.

Tests that start servers and kill processes share the machine with whatever else runs on it.  One of these that failed is
run once more, alone; if it passes then, it counts as passed and is named as unsteady, with its first failure in full, and
written down in build/test/unsteady.txt.  Three unsteady ones fail the run.  With --all there is no second try.

On a terminal the last line shows what runs; elsewhere there is a line of it every half minute.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOGS = ROOT / "build" / "test"
CORES = os.cpu_count() or 2
TAIL_LINES = 40

SANITIZER_OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
}


class Result:
    """What one program's tests came to.  `failed` has a name for each that did not pass."""

    def __init__(self, passed=0, failed=(), skipped=0):
        self.passed = passed
        self.failed = list(failed)
        self.skipped = skipped


# --- how a program tells what its tests came to: (log, exit status) -> Result -------------------------------------------


def read_tap(log, status):
    """cmocka's TAP.  A test that was announced and did not report is one that took the program down."""
    text = log.read_text(errors="replace")
    result = Result()
    for verdict, name in re.findall(r"^(ok|not ok) \d+ -? ?(.*)$", text, re.MULTILINE):
        if name.startswith("# SKIP"):
            result.skipped += 1
        elif verdict == "ok":
            result.passed += 1
        else:
            result.failed.append(name)
    announced = sum(int(n) for n in re.findall(r"^1\.\.(\d+)$", text, re.MULTILINE))
    missing = announced - result.passed - result.skipped - len(result.failed)
    if missing > 0 or not announced:
        result.failed.append(f"{status_text(status)}, {max(missing, 0)} of {announced} tests did not report")
    elif status != 0 and not result.failed:
        result.failed.append(f"{status_text(status)} after its last test")
    return result


def read_junit(log, status):
    """pytest's report.  Without one, pytest itself went down."""
    try:
        cases = list(xml.etree.ElementTree.parse(log.with_suffix(".xml")).iter("testcase"))
    except (OSError, xml.etree.ElementTree.ParseError):
        return Result(failed=[f"{status_text(status)}, no report"])
    result = Result()
    for case in cases:
        if case.find("failure") is not None or case.find("error") is not None:
            result.failed.append(case.get("name"))
        elif case.find("skipped") is not None:
            result.skipped += 1
        else:
            result.passed += 1
    if status != 0 and not result.failed:
        result.failed.append(status_text(status) if cases else "no tests in it")
    return result


def read_status(log, status):
    """The program is one test."""
    return Result(passed=1) if status == 0 else Result(failed=[status_text(status)])


def status_text(status):
    if status == "timeout":
        return "timed out"
    return f"died of {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"


# --- one program, and a suite of them -----------------------------------------------------------------------------------


class Program:
    def __init__(self, suite, name, command, timeout_s, read=read_status, env=None, needs=None):
        self.suite = suite
        self.name = name
        self.command = [str(word) for word in command]
        self.timeout_s = timeout_s
        self.read = read
        self.env = env or {}
        self.needs = needs  # a file that the build should have made
        self.log = LOGS / suite / f"{name}.log"
        self.seconds = 0.0
        self.result = None
        self.is_running = False

    def doing(self):
        """Its name, and for a build how far it has come."""
        if self.suite != "build":
            return f"{self.suite}/{self.name}"
        steps = self.log.read_bytes().splitlines() if self.log.exists() else []
        return f"{self.name}, {len(steps)} steps"

    def run(self):
        if self.needs:
            wait_for_build(self.needs)
        self.is_running = True
        try:
            return self.run_once()
        finally:
            self.is_running = False

    def run_once(self):
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.log.with_suffix(".xml").unlink(missing_ok=True)
        started = time.monotonic()
        if self.needs and not self.needs.exists():
            self.log.write_text(f"{self.needs.relative_to(ROOT)} was not built\n")
            self.result = Result(failed=["was not built"])
        else:
            status = self.start_and_wait()
            self.result = self.read(self.log, status)
        self.seconds = time.monotonic() - started
        return self

    def start_and_wait(self):
        environment = {**os.environ, **SANITIZER_OPTIONS, **self.env}
        # A make above us has its own jobs and settings; ours are on the command line.
        for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES"):
            environment.pop(name, None)
        with open(self.log, "wb") as log:
            child = subprocess.Popen(self.command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log,
                                     stderr=subprocess.STDOUT, env=environment, start_new_session=True)
            running.add(child)
            try:
                return child.wait(self.timeout_s)
            except subprocess.TimeoutExpired:
                return "timeout"
            finally:
                # Also whatever it left behind: the next program wants the core.
                kill_group(child)
                child.wait()
                running.discard(child)


running = set()  # children, for whoever presses ^C
building = {}  # an event for each build that goes on beside tests, by its folder below build/


def wait_for_build(needed):
    if ended := building.get(needed.relative_to(ROOT / "build").parts[0]):
        ended.wait()


def build_beside(programs, report):
    """One after the other, on a thread of its own; a build that fails leaves files unmade, which those who need them tell."""
    for program in programs:
        building[program.name] = threading.Event()

    def build():
        for program in programs:
            report.add(program.run())
            building[program.name].set()

    thread = threading.Thread(target=build, daemon=True)
    thread.start()
    return thread


def kill_group(child):
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Progress:
    """Says what runs: on a terminal in one line that is written over, elsewhere a line every half minute."""

    EVERY_S = 1 if sys.stdout.isatty() else 30

    def __init__(self, what, programs):
        self.what = what
        self.programs = programs
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.show, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()
        clear_line()

    def show(self):
        started = time.monotonic()
        while not self.ended.wait(self.EVERY_S):
            done = sum(p.result is not None for p in self.programs)
            now = ", ".join(p.doing() for p in self.programs if p.is_running)
            line = f"{self.what} {done + 1} of {len(self.programs)}, {time.monotonic() - started:.0f} s: {now}"
            if sys.stdout.isatty():
                width = shutil.get_terminal_size().columns - 1
                print("\r\x1b[K" + line[:width], end="", flush=True)
            else:
                print("  " + line, flush=True)


def clear_line():
    if sys.stdout.isatty():
        print("\r\x1b[K", end="", flush=True)


class Report:
    """Prints a line per suite when its last program is done, and what failed right below it."""

    def __init__(self, programs):
        self.left = {}
        for program in programs:
            self.left.setdefault(program.suite, []).append(program)
        self.done = {}
        self.passed = 0
        self.failed = 0
        self.lock = threading.Lock()

    def add(self, program):
        with self.lock:
            self.left[program.suite].remove(program)
            self.done.setdefault(program.suite, []).append(program)
            if not self.left[program.suite]:
                self.print_suite(program.suite, self.done[program.suite])

    def take_back(self, program):
        """It is about to run again."""
        self.passed -= program.result.passed
        self.failed -= len(program.result.failed)

    def add_again(self, program):
        self.passed += program.result.passed
        self.failed += len(program.result.failed)
        if program.result.failed:
            print_failure(program)

    def print_suite(self, suite, programs):
        passed = sum(p.result.passed for p in programs)
        failed = sum(len(p.result.failed) for p in programs)
        skipped = sum(p.result.skipped for p in programs)
        self.passed += passed
        self.failed += failed
        clear_line()
        line = f"{suite:<9}{passed:>5} passed {failed:>4} failed"
        if skipped:
            line += f" {skipped:>4} skipped"
        print(f"{line}  {sum(p.seconds for p in programs):7.1f} s", flush=True)
        for program in sorted(programs, key=lambda p: p.name):
            if program.result.failed:
                print_failure(program)


def print_failure(program):
    print(f"\n  FAILED {program.suite}/{program.name}: {', '.join(program.result.failed)}")
    lines = program.log.read_text(errors="replace").splitlines()
    if len(lines) > TAIL_LINES:
        print(f"    … the last {TAIL_LINES} of {len(lines)} lines of {program.log.relative_to(ROOT)}")
    for line in lines[-TAIL_LINES:]:
        print(f"    {line}")
    print(flush=True)


# --- what there is to build and to run ----------------------------------------------------------------------------------


def make(*words, werror=False):
    return ["make", "--no-print-directory", "-k", f"-j{CORES}", *(["WERROR=1"] if werror else []), *words]


def first_build(suites, werror):
    """What most tests wait for."""
    if suites & {"unit", "contract", "sim", "e2e", "chaos", "build"}:
        yield Program("build", "gcc", make("build", "test-binaries", "villains", werror=werror), 600)


def later_builds(suites, werror):
    """One make per folder, and what reads all sources, beside the first tests.  These come before them: a test that kills
    and waits is not slowed."""
    behind = ["nice", "-n", "15"]
    if suites & {"asan", "contract", "sim"}:
        yield Program("build", "asan", [*behind, *make("SAN=asan", "test-binaries", werror=werror)], 900)
    if "tsan" in suites:
        targets = [f"build/tsan/tests/unit/{source.stem}" for source in unit_sources("test_ring*.c")]
        yield Program("build", "tsan", [*behind, *make("SAN=tsan", *targets, werror=werror)], 900)
    if "fuzz" in suites:
        yield Program("build", "fuzz", [*behind, *make("SAN=fuzz", "fuzz-binaries", werror=werror)], 900)
    if "build" in suites:
        yield Program("build", "clang", [*behind, *make("syntax")], 900)


def unit_sources(pattern="test_*.c"):
    return sorted((ROOT / "tests" / "unit").glob(f"*/{pattern}"))


def cmocka(suite, sources, folder, timeout_s, prefix=(), label="", env=None):
    for source in sources:
        binary = ROOT / folder / "tests" / source.relative_to(ROOT / "tests").parts[0] / source.stem
        yield Program(suite, source.stem + label, [*prefix, binary], timeout_s, read_tap,
                      {"CMOCKA_MESSAGE_OUTPUT": "TAP", **(env or {})}, needs=binary)


# What holds for every coordination: local as it is, and these with a server that the tests start.
ANY_COORDINATION = ("test_coord", "test_coord_client", "test_coord_processes", "test_coord_recipes")
SERVED = ("zookeeper", "redis", "etcd")


def contract_runs(sources, folder, timeout_s, label="", served=ANY_COORDINATION, drivers=SERVED):
    yield from cmocka("contract", sources, folder, timeout_s, label=label)
    for driver in drivers:
        yield from cmocka("contract", [s for s in sources if s.stem in served], folder, timeout_s,
                          label=f"-{driver}{label}", env={"QUIVER_COORD_DRIVER": driver})


def lint(is_long):
    """clang-tidy and cppcheck look at each file for seconds: `make lint` and the long run have them."""
    for target in ("format-check", "structure", *(["tidy", "cppcheck"] if is_long else [])):
        yield Program("lint", target, ["make", "--no-print-directory", "-k", target], 1800 if is_long else 600)
    for source in sorted((ROOT / "tests" / "lint").glob("test_*.py")):
        yield pytest("lint", source, 60)


def pytest(suite, source, timeout_s, env=None):
    report = LOGS / suite / f"{source.stem}.xml"
    return Program(suite, source.stem, ["/usr/bin/python3", "-m", "pytest", "-q", "-p", "no:cacheprovider",
                                        f"--junitxml={report}", source.relative_to(ROOT)], timeout_s, read_junit, env)


def end_to_end(is_long):
    sources = [*(ROOT / "tests" / "e2e").glob("*/test_*.py"), *(ROOT / "tests" / "page").glob("test_*.py")]
    for source in sorted(sources, key=lambda source: source.name):
        yield pytest("e2e", source, 1800 if is_long else 330, {"QUIVER_TEST_LONG": "1"} if is_long else {})


def chaos(is_long):
    """The checker's own tests, and a while of everything that can break; `make chaos` is the same, longer."""
    folder = ROOT / "tests" / "chaos"
    for name in ("test_checker.py", "test_amounts.py"):
        yield pytest("chaos", folder / name, 60)
    every = [(on, over) for on in ("sqlite", "redis+zookeeper", "redis+etcd", "redis", "sentinel", "cluster") for over in ("client", "http")]
    for on, over in every if is_long else (("sqlite", "http"), ("redis", "client")):
        seconds = 120 if is_long else 15
        yield Program("chaos", f"{on}, {over}", ["/usr/bin/python3", folder / "chaos.py", "--on", on, "--over", over, "--for",
                                                 f"{seconds}s"], seconds + 600)


def fuzzers(seconds):
    for source in sorted((ROOT / "tests" / "fuzz").glob("fuzz_*.c")):
        binary = ROOT / "build" / "fuzz" / "tests" / "fuzz" / source.stem
        corpus = ROOT / "build" / "fuzz" / "corpus" / source.stem
        corpus.mkdir(parents=True, exist_ok=True)
        kept = source.parent / "corpus" / source.stem.removeprefix("fuzz_")  # only read: what is found goes to build/
        yield Program("fuzz", source.stem, [binary, "-seed=1", f"-max_total_time={seconds}", "-timeout=10",
                                            "-rss_limit_mb=1024", "-print_final_stats=1",
                                            f"-artifact_prefix={corpus.parent}/{source.stem}-", corpus,
                                            *([kept] if kept.is_dir() else [])],
                      seconds + 60, needs=binary)


def simulations(is_long):
    """Steps are events with trouble; each run prints its seed.  The short run has the same seeds everywhere, so that what it
    finds is the change's doing; the long one draws new ones."""
    for folder, label, steps in (("build", "", 1_000_000), ("build/asan", "-asan", 200_000)):
        binary = ROOT / folder / "tests" / "sim" / "test_sim"
        yield Program("sim", "sim" + label, [binary], 3600 if is_long else 300,
                      env={"QUIVER_SIM_STEPS": str(steps * (50 if is_long else 1)), **({} if is_long else {"QUIVER_SIM_SEED": "1"})},
                      needs=binary)
    # A large fleet: seconds, and with as many hosts as it was made for in the long run.
    yield Program("sim", "scale", [ROOT / "build" / "tests" / "scale" / "scale", *(["1000", "4096"] if is_long else ["60", "512"])],
                  1200 if is_long else 120)


def without_aslr():
    """TSan's shadow memory and a kernel that scatters mappings widely do not get along."""
    prefix = ["setarch", "-R"]
    can = shutil.which("setarch") and subprocess.run([*prefix, "true"], stderr=subprocess.DEVNULL).returncode == 0
    return prefix if can else []


def runs(suites, is_long):
    """In the order in which they should start: what takes long first."""
    contract = sorted((ROOT / "tests" / "contract").glob("*/test_*.c"))
    patience = 10 if is_long else 1
    if "lint" in suites:
        yield from lint(is_long)
    if "e2e" in suites:
        yield from end_to_end(is_long)
    if "chaos" in suites:
        yield from chaos(is_long)
    if "tsan" in suites:
        yield from cmocka("tsan", unit_sources("test_ring*.c"), "build/tsan", 240 * patience, without_aslr())
    if "asan" in suites:
        yield from cmocka("asan", unit_sources(), "build/asan", 180 * patience)
    if "unit" in suites:
        yield from cmocka("unit", unit_sources(), "build", 120 * patience)
    if "contract" in suites:
        yield from contract_runs(contract, "build", 150 * patience)
        # What mostly waits for servers to die, and does it in the plain build too, is for the long run.
        waits = "outage|ensemble|sentinel|cluster|storm|sites|kill|processes|model|login"
        yield from contract_runs([s for s in contract if is_long or not re.search(waits, s.stem)], "build/asan",
                                 300 * patience, "-asan", ANY_COORDINATION if is_long else ANY_COORDINATION[:1],
                                 SERVED if is_long else SERVED[:2])
    if "sim" in suites:
        yield from simulations(is_long)
    if "fuzz" in suites:
        yield from fuzzers(int(os.environ.get("FUZZ_SECONDS", "60" if is_long else "2")))


SUITES = ("build", "lint", "unit", "asan", "tsan", "contract", "sim", "fuzz", "e2e", "chaos")


def choose(words):
    """The suites to run, and the parts of file names to keep (none: all)."""
    words = [word for several in words for word in re.split(r"[ ,]+", several) if word]
    suites = {word for word in words if word in SUITES}
    names = [re.sub(r"\.(c|py)$", "", pathlib.Path(word).name) for word in words if word not in SUITES]
    if not suites:
        suites = set(SUITES) - ({"build", "lint"} if names else set())
    return suites, names


def run_all(programs, report, workers):
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        try:
            for done in concurrent.futures.as_completed([pool.submit(program.run) for program in programs]):
                report.add(done.result())
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in list(running):
                kill_group(child)
            raise


# Whose verdict depends on real servers and processes; how many of these run again; and how many may need it.
MAY_BE_UNSTEADY = ("contract", "e2e")
AGAIN_MAX = 3
UNSTEADY_MAX = 2


def choose_failed(program):
    """Of pytest's tests only those that failed run again; returns how many have passed already."""
    source, failed = program.command[-1], program.result.failed
    if not source.endswith(".py") or not all(name.startswith("test_") for name in failed):
        return 0
    program.command = [*program.command[:-1], *(f"{source}::{name}" for name in failed)]
    return program.result.passed


def run_unsteady_again(programs, report):
    """Returns the names of those that then passed."""
    failed = [p for p in programs if p.result.failed]
    if len(failed) > AGAIN_MAX or any(p.suite not in MAY_BE_UNSTEADY for p in failed):
        return []
    steady = []
    for program in failed:
        names = ", ".join(program.result.failed)
        print(f"again, alone: {program.suite}/{program.name}", flush=True)
        report.take_back(program)
        program.log.replace(program.log.with_suffix(".first.log"))
        passed = choose_failed(program)
        program.run().result.passed += passed
        report.add_again(program)
        if not program.result.failed:
            steady.append(f"{program.suite}/{program.name}: {names}")
    return steady


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--all", action="store_true", help="the long runs too")
    options.add_argument("--werror", action="store_true", help="gcc's warnings are errors")
    options.add_argument("--only", action="append", default=[], metavar="WORD", help="a suite, or part of a file's name")
    chosen = options.parse_args()
    if chosen.all:
        os.environ["QUIVER_TEST_ALL"] = "1"
    suites, names = choose(chosen.only)
    first, later = list(first_build(suites, chosen.werror)), list(later_builds(suites, chosen.werror))
    programs = [p for p in runs(suites, chosen.all) if not names or any(n in p.name for n in names)]
    report = Report(first + later + programs)
    started = time.monotonic()
    with Progress("building", first):
        run_all(first, report, 1)
    builds = build_beside(later, report)
    with Progress("testing", later + programs):
        run_all(programs, report, CORES + 1)
        builds.join()
    unsteady = [] if chosen.all else run_unsteady_again(programs, report)
    note_unsteady(unsteady)
    if len(unsteady) > UNSTEADY_MAX:
        report.failed += len(unsteady)
        report.passed -= len(unsteady)
    print(f"{report.passed + report.failed} tests in {time.monotonic() - started:.0f} s, {len(unsteady)} unsteady")
    print(f"{report.passed} passed, {report.failed} failed")
    return 1 if report.failed or not report.passed else 0


def note_unsteady(unsteady):
    """What needed a second try is told, and kept for whoever looks into it."""
    for name in unsteady:
        print(f"UNSTEADY {name}")
    LOGS.mkdir(parents=True, exist_ok=True)
    (LOGS / "unsteady.txt").write_text("".join(name + "\n" for name in unsteady))


def on_signal(number, _):
    raise KeyboardInterrupt(signal.Signals(number).name)


def take_signals():
    """Under `nohup … &` some are ignored, and an ignored signal stays so in every child: tests would send it in vain.
    One that has a function here is reset in children."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
        is_ignored = signal.getsignal(number) == signal.SIG_IGN
        signal.signal(number, (lambda *_: None) if is_ignored else on_signal)


if __name__ == "__main__":
    take_signals()
    try:
        sys.exit(main())
    except KeyboardInterrupt as why:
        sys.exit(f"interrupted {why}".rstrip())
