"""structure.py says what is wrong with a small tree that breaks one rule at a time."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import structure  # noqa: E402

SOUND = {
    "runtime/README.md": "`base/`, `store/`, `host/`, `runner/`, `cli/`\n",
    "runtime/base/span.h": "/* span.h: bytes. */\nstruct span {\n        int size;\n};\n",
    "runtime/store/store.h": '/* store.h: the contract. */\n#include "base/span.h"\nstruct store {\n        int shards;\n};\n',
    "runtime/host/shard/shard.c": '#include "store/store.h"\n/* See store.h. */\nstatic int x;\n',
    "runtime/runner/seat.h": "/* seat.h: a thread. */\nstruct seat {\n        int number;\n};\n",
}

BREACHES = {
    "a host includes a runner": ("runtime/host/shard/shard.c", '#include "runner/seat.h"\n', "may not include runner/seat.h"),
    "a store includes a host": ("runtime/store/store.c", '#include "host/host.h"\n', "may not include host/host.h"),
    "a contract includes a driver": ("runtime/store/store.c", '#include "store/redis/redis_store.h"\n', "may not include"),
    "base includes a neighbour": ("runtime/base/url.c", '#include "config/config.h"\n', "may not include config/config.h"),
    "a runner includes a command": ("runtime/runner/runner.c", '#include "cli/command.h"\n', "may not include cli/command.h"),
    "a tag is defined twice": ("runtime/runner/other.h", "struct span {\n        int x;\n};\n", "'span' is defined at"),
    "a comment names no file": ("runtime/base/a.c", "/* See nowhere.c. */\n", "nowhere.c, which does not exist"),
    "a comment goes on": ("runtime/base/a.c", "int a; /* \N{HORIZONTAL ELLIPSIS} and so on */\n", "a comment begins with"),
    "a private header is included elsewhere": ("runtime/cli/run.c", '#include "host/host_private.h"\n', "is private to host/"),
    "a part knows its host": ("runtime/host/shard/other.c", "struct host;\n", "struct host is known to its own files only"),
    "the tour names no file": ("runtime/README.md", "Read `host/nowhere.c`.\n", "names host/nowhere.c"),
    "the tour names no function": ("runtime/README.md", "Then `nothing_at_all()`.\n", "names nothing_at_all()"),
    "the tour leaves a room out": ("runtime/view/status.h", "int a;\n", "the tour does not name view/"),
    "a unit test without a room": ("tests/unit/test_a.c", "int a;\n", "tests are in rooms, tests/unit/ROOM/"),
    "a contract test without a room": ("tests/contract/test_a.c", "int a;\n", "tests are in rooms, tests/contract/ROOM/"),
    "an end-to-end test without a room": ("tests/e2e/test_a.py", "", "tests are in rooms, tests/e2e/ROOM/"),
    "an old word": ("runtime/base/a.c", "struct berth_list;\n", "has another word in the design"),
}


def problems(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return list(structure.check_tree(root))


def test_a_sound_tree_is_clean(tmp_path):
    assert problems(tmp_path, SOUND) == []


@pytest.mark.parametrize("name", BREACHES)
def test_a_breach_is_named_with_its_place(tmp_path, name):
    path, text, said = BREACHES[name]
    found = problems(tmp_path, {**SOUND, path: SOUND.get(path, "") + text})
    assert len(found) == 1 and found[0].startswith(path.split("/")[0]) and said in found[0], found
