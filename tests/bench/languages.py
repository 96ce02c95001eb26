#!/usr/bin/env python3
"""Tasks per second through exec and pipe, by language, in one run:  tests/bench/languages.py [TASKS]"""
import json
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
QUIVER = os.environ.get("QUIVER", str(ROOT / "build" / "quiver"))
PYTHON = "/usr/bin/python3"
EXEC = "import sys; sys.stdout.buffer.write(b'hello, ' + sys.stdin.buffer.read())"
SDK = ROOT / "sdk" / "pipe"
CASES = [
    ("exec  /bin/cat", "exec", 1, ["/bin/cat"]),
    ("exec  python3", "exec", 1, [PYTHON, "-c", EXEC]),
    ("pipe  python3", "pipe", 50, [PYTHON, SDK / "python/echo.py"]),
    ("pipe  node", "pipe", 50, [shutil.which("node"), SDK / "node/echo.js"]),
    ("pipe  ruby", "pipe", 50, [shutil.which("ruby"), SDK / "ruby/echo.rb"]),
]


def measure(plugin, tasks, command):
    words = [QUIVER, "try", str(ROOT / "plugins" / f"{plugin}.so"), "--json", "--quiet", "--bench", str(tasks)]
    for index, word in enumerate(command):
        words += ["--set", f"command.{index}={word}"]
    out = subprocess.run(words, check=True, stdout=subprocess.PIPE, timeout=300).stdout
    return json.loads(out)


def main():
    tasks = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    rates = {}
    print(f"{'100-byte payloads, one seat':32} {'tasks/s':>9} {'us/task':>9} {'first, ms':>10}")
    for name, plugin, factor, command in CASES:
        if not command[0]:
            print(f"{name:32} not installed")
            continue
        said = measure(plugin, tasks * factor, command)
        rates[name] = said["tasks_per_second"]
        print(f"{name:32} {rates[name]:9.0f} {said['us_per_task']:9.0f} {said['first_task_ms']:10.1f}")
    print(f"pipe / exec with python3: {rates['pipe  python3'] / rates['exec  python3']:.0f} x")


if __name__ == "__main__":
    main()
