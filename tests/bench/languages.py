#!/usr/bin/python3
"""Tasks per second through exec and pipe, by language, in one run:  tests/bench/languages.py [TASKS]"""
import json
import shutil
import sys

from processes import QUIVER, ROOT, output
from table import Table

TASKS = 300
PYTHON = "/usr/bin/python3"
EXEC = "import sys; sys.stdout.buffer.write(b'hello, ' + sys.stdin.buffer.read())"
SDK = ROOT / "sdk" / "pipe"
CASES = [
    ("exec /bin/cat", "exec", 1, ["/bin/cat"]),
    ("exec python3", "exec", 1, [PYTHON, "-c", EXEC]),
    ("pipe python3", "pipe", 50, [PYTHON, SDK / "python/echo.py"]),
    ("pipe node", "pipe", 50, [shutil.which("node"), SDK / "node/echo.js"]),
    ("pipe ruby", "pipe", 50, [shutil.which("ruby"), SDK / "ruby/echo.rb"]),
]


def try_out(plugin, tasks, command):
    """What `quiver try --bench` says."""
    words = [QUIVER, "try", ROOT / "plugins" / f"{plugin}.so", "--json", "--quiet", "--bench", tasks]
    for index, word in enumerate(command):
        words += ["--set", f"command.{index}={word}"]
    return json.loads(output(words, 300))


def measure(table, tasks):
    rates = {}
    for name, plugin, factor, command in CASES:
        if not command[0]:
            table.note(f"{name}: not installed")
            continue
        said = try_out(plugin, tasks * factor, command)
        rates[name] = said["tasks_per_second"]
        table.add(name, rates[name], "tasks/s",
                  how=f"100-byte payloads, one seat; {said['us_per_task']:.0f} us a task, the first after "
                      f"{said['first_task_ms']:.1f} ms")
    table.add("pipe / exec, python3", rates["pipe python3"] / rates["exec python3"], "x")


PARTS = {"languages": lambda table, options: measure(table, TASKS)}

if __name__ == "__main__":
    measure(Table("languages"), int(sys.argv[1]) if len(sys.argv) > 1 else TASKS)
