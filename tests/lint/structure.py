#!/usr/bin/python3
"""Checks what no compiler checks about the source of runtime/; prints each breach as FILE:LINE: what is wrong.

    tests/lint/structure.py [FOLDER]        (default: the tree that this file is in)

- Who may include whom: the rooms and their allowed neighbours stand in MAY_INCLUDE.  A header NAME_private.h is for its
  own folder.  A host's parts do not know struct host.
- A struct, union or enum tag is defined once in all of runtime/, so that grep finds the one place.
- A test is in a room of tests/unit, tests/contract or tests/e2e, where make and run.py find it.
- A file that a comment names exists; so do the files and functions that the tour (runtime/README.md) names.
- A comment stands alone: none begins with "…".
- Words that stand for a thing that has another word in the design are not used.
"""
import pathlib
import re
import sys

# room: the folders whose headers it may include, besides its own.  A room is a folder; what is not listed belongs to the
# nearest folder above it that is.
CONTRACTS = {"store", "coord"}
MAY_INCLUDE = {
    ".": {"base", "cli", "runner", "guard", "backtrace"},
    "base": set(),
    "id": {"base"},
    "config": {"base", "id", "store", "coord", "schedule", "tls"},
    "task": {"base"},
    "ring": {"base"},
    "tls": {"base"},
    "backtrace": {"base"},
    "redis": {"base", "tls"},
    "store": {"base", "id", "task"},
    "store/sqlite": {"base", "id", "task", "store"},
    "store/redis": {"base", "id", "task", "store", "redis"},
    "schedule": {"base", "task", "store", "view"},
    "coord": {"base", "id"},
    "coord/local": {"base", "coord"},
    "coord/zookeeper": {"base", "coord"},
    "coord/redis": {"base", "coord", "redis"},
    "coord/etcd": {"base", "coord", "curl"},
    "curl": {"base"},
    "trace": {"base", "task", "curl"},
    "runner": {"base", "ring"},
    "guard": {"base", "ring", "store", "coord"},
    # host/ itself puts its rooms together; none of them knows it.
    "host": {"base", "id", "config", "task", "ring", "store", "coord", "guard", "http", "view", "look", "schedule", "host/shard", "host/handler", "host/pool",
             "host/confine", "host/limit", "host/lend", "host/membership", "host/remote", "host/report", "host/schedule", "host/service", "trace", "worker"},
    "host/service": {"base", "id", "coord", "ring", "store", "host/pool"},
    "host/report": {"trace", "base", "config", "task", "store", "http", "view", "host/shard", "host/handler", "host/limit", "host/pool",
                    "host/membership", "host/remote", "host/schedule"},
    "host/schedule": {"base", "config", "store", "look", "schedule"},
    "host/limit": {"base", "config", "task", "store"},
    "host/shard": {"trace", "base", "config", "task", "ring", "store", "schedule", "worker", "host/handler", "host/limit", "host/pool",
                   "host/membership"},
    "host/handler": {"trace", "base", "config", "task", "ring", "store", "host/limit", "host/shard", "host/pool", "host/membership",
                     "host/remote", "host/lend"},
    "host/remote": {"base", "config", "ring", "store", "worker", "host/shard", "host/handler", "host/lend"},
    "host/lend": {"base", "config", "task", "ring", "store", "worker", "host/shard", "host/handler", "host/pool", "host/remote"},
    "host/pool": {"base", "config", "task", "ring", "backtrace", "host/confine", "host/handler"},
    "host/confine": {"base", "config", "ring"},
    "host/membership": {"base", "config", "store", "coord"},
    "view": {"base", "id", "task", "store", "host/membership"},
    "look": {"base", "task", "store", "coord", "view", "schedule"},
    "client": {"base", "id", "config", "task", "store", "coord", "view", "worker"},
    "http": {"base", "config", "task", "store", "coord", "view", "look", "worker", "schedule"},
    "cli": {"trace", "base", "id", "config", "task", "ring", "coord", "client", "view", "look", "host", "runner", "guard", "schedule", "tls"},
    # It asks servers themselves, also those that no store could be opened on.
    "cli/doctor": {"base", "config", "coord", "client", "cli", "view", "look", "host", "runner", "redis", "store", "tls"},
    "worker": {"base", "task", "ring", "store", "view"},
}
# The files that put a host together out of its parts.
KNOW_THE_HOST = {f"host/{name}" for name in ("host_private.h", "host.c", "host_start.c", "host_stop.c", "host_events.c",
                                             "host_http.c", "control_verbs.c")}

OLD_WORDS = "berth|station|crew|lineage|succession|chair|guardian|keeper|scout"

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
TAG = re.compile(r"^(?:typedef |static const |static |const )*(?:struct|union|enum) (\w+)\s*\{", re.MULTILINE)
FILE_NAME = re.compile(r"(?<![\w./-])((?:[\w-]+/)*[\w-]+\.(?:c|h|lua|py|mk|md))(?!\w)")


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def room_of(path):
    """The longest room that the file lies in."""
    folder = str(path.parent)
    while folder not in MAY_INCLUDE and folder != ".":
        folder = str(pathlib.PurePosixPath(folder).parent)
    return folder


def is_below(room, other):
    return room == other or room.startswith(other + "/")


def check_includes(path, text):
    room = room_of(path)
    for match in INCLUDE.finditer(text):
        header = pathlib.PurePosixPath(match[1])
        other = room_of(header)
        folder = str(header.parent)
        if header.name.endswith("_private.h") and header.parent != path.parent:
            yield line_of(text, match.start()), f"{match[1]} is private to {folder}/"
            continue
        if other == room or any(is_below(folder, allowed) and (other == allowed or allowed not in CONTRACTS)
                                for allowed in MAY_INCLUDE[room]):
            continue
        yield line_of(text, match.start()), f"{room}/ may not include {match[1]}"


def check_comments(path, text, known):
    for match in COMMENT.finditer(text):
        at = line_of(text, match.start())
        if re.match(r"/[*/]+\s*…", match[0]):
            yield at, "a comment begins with … instead of standing alone"
        for name in FILE_NAME.findall(match[0]):
            if name.rsplit("/", 1)[-1] not in known:
                yield at, f"a comment names {name}, which does not exist"


def check_tour(text, known, code):
    """`FILE.c` and `function()` in the tour; a single letter stands for any name."""
    for match in re.finditer(r"`([^`\n]+)`", text):
        name = match[1]
        if FILE_NAME.fullmatch(name) and not re.match(r"\w(_\w+)?\.", name) and name.rsplit("/", 1)[-1] not in known:
            yield line_of(text, match.start()), f"the tour names {name}, which does not exist"
        function = re.fullmatch(r"(\w+)\(\)", name)
        if function and not re.search(rf"\b{function[1]}\(", code):
            yield line_of(text, match.start()), f"the tour names {name}, which does not exist"


def check_host(path, text):
    """A host's parts do not know their host: those files do that put it together."""
    for match in re.finditer(r"\bstruct host\b", text) if str(path) not in KNOW_THE_HOST else ():
        yield line_of(text, match.start()), "struct host is known to its own files only"


def check_words(text):
    for match in re.finditer(rf"\b(?:{OLD_WORDS})s?\b|(?<![a-z])(?:{OLD_WORDS})s?_|_(?:{OLD_WORDS})s?(?![a-z])", text,
                             re.IGNORECASE):
        yield line_of(text, match.start()), f"'{match[0].strip('_')}' has another word in the design"


def check_tree(root):
    runtime = root / "runtime"
    sources = sorted(p for p in runtime.rglob("*") if p.suffix in (".c", ".h"))
    known = {p.name for p in root.rglob("*") if p.is_file() and "build" not in p.relative_to(root).parts[:1]}
    # The libraries' own headers, and what users write.
    known |= {"hiredis.h", "zookeeper.h", "uv.h", "sqlite3.h", "curl.h", "libconfig.h", "plugin.h", "my-plugin.c"}
    tags = {}
    for source in sources:
        path = pathlib.PurePosixPath(source.relative_to(runtime))
        text = source.read_text()
        found = [*check_includes(path, text), *check_host(path, text), *check_comments(path, text, known),
                 *check_words(text)]
        for match in TAG.finditer(text):
            where = f"runtime/{path}:{line_of(text, match.start())}"
            if match[1] in tags:
                found.append((line_of(text, match.start()), f"'{match[1]}' is defined at {tags[match[1]]}, too"))
            tags.setdefault(match[1], where)
        for line, problem in sorted(found):
            yield f"runtime/{path}:{line}: {problem}"
    tour = runtime / "README.md"
    if tour.exists():
        code = "".join(source.read_text() for source in sources)
        for line, problem in check_tour(tour.read_text(), known, code):
            yield f"runtime/README.md:{line}: {problem}"
        for room in sorted(p.name for p in runtime.iterdir() if p.is_dir()):
            if f"`{room}/" not in tour.read_text():
                yield f"runtime/README.md:1: the tour does not name {room}/"
    for suite in ("unit", "contract", "e2e"):
        for test in sorted((root / "tests" / suite).glob("test_*")):
            yield f"tests/{suite}/{test.name}:1: nobody runs it here: tests are in rooms, tests/{suite}/ROOM/"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()
    problems = list(check_tree(root))
    print("\n".join(problems) if problems else "structure: clean")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
