"""quiver help: the manual and the completion of shells say what --help says, and completion knows what there is."""
import re
import shutil
import subprocess

import pytest

COMMAND = re.compile(r"^  ([a-z]+) +\S", re.MULTILINE)
OPTION = re.compile(r"^  (?:-[a-zA-Z], |    )(--[a-z0-9-]+)", re.MULTILINE)


@pytest.fixture(scope="module")
def run(quiver):
    def run(*words):
        return subprocess.run([quiver, *words], capture_output=True, text=True, timeout=60)

    return run


@pytest.fixture(scope="module")
def commands(run):
    found = COMMAND.findall(run("--help").stdout.split("commands:")[1].split("\n\n")[0])
    assert len(found) > 30 and "submit" in found
    return found


def letters(text):
    return re.sub(r"[^A-Za-z0-9]", "", text)


def completed(run, *words):
    return [line.split("\t")[0] for line in run("complete", "--", *words).stdout.splitlines()]


def test_help_of_a_command_is_its_own_help(run, commands):
    for name in commands:
        assert run("help", name).stdout == run(name, "--help").stdout != ""
    assert run("help").stdout == run("--help").stdout
    assert run("help", "sumbit").returncode == 2


def test_completion_offers_every_command_and_every_option_of_the_help(run, commands):
    assert completed(run, "") == commands
    for name in commands:
        options = OPTION.findall(run(name, "--help").stdout)
        assert completed(run, name, "-") == options, name


def test_the_manual_has_every_command_and_every_option_of_the_help(run, commands):
    if not shutil.which("scdoc"):
        pytest.skip("scdoc is not installed")

    def page(*words):
        made = subprocess.run(["scdoc"], input=run("help", *words, "--man").stdout, capture_output=True, text=True)
        assert made.returncode == 0, f"{words}: {made.stderr}"
        return re.sub(r"\\f[BRI]|\\&|\\(?=-)", "", made.stdout)

    whole = page()
    for name in commands:
        assert f"quiver-{name}(1)" in whole
        text = page(name)
        shown = run(name, "--help").stdout
        for option in OPTION.findall(shown):
            assert re.search(rf"^(-[a-zA-Z], )?{option}( |$)", text, re.MULTILINE), f"{name}: {option}"
        for example in shown.partition("examples:\n")[2].splitlines():
            assert letters(example) in letters(text.replace("\\e", "\\")), example


@pytest.mark.parametrize("words, expected", [
    (["dead", ""], {"list", "groups", "requeue", "drop"}),
    (["dead", "re"], {"requeue"}),
    (["room", "x", "app"], {"append"}),
    (["members", ""], {"drain", "activate"}),
    (["submit", "--lane", ""], {"high", "normal", "low"}),
    (["check", "-c", ""], {":files"}),
    (["lock", "name", "--", ""], {":files"}),
    (["help", "sub"], {"submit"}),
    (["nothing", ""], set()),
])
def test_words_come_from_the_usage_line(run, words, expected):
    assert set(completed(run, *words)) == expected


def test_handlers_hosts_and_keys_are_asked(run, host):
    host.configure(shards=2, work="", other="").start()
    host.submit([{"handler": "nobody", "key": "a key", "payload": "1"}])
    at = ("-c", str(host.config))
    assert set(completed(run, "submit", *at, "")) == {"work", "other", "nobody"}
    assert set(completed(run, "dead", *at, "--handler", "w")) == {"work"}
    assert set(completed(run, "key", *at, "hold", "")) == {"a key"}
    assert len(completed(run, "members", *at, "drain", "")) == 1
    assert completed(run, "tasks", *at, "--host", "") == completed(run, "members", *at, "drain", "")


SHELLS = {
    "bash": """source <(quiver help --completion bash); COMP_WORDS=({words}); COMP_CWORD={last}; _quiver
               printf '%s\\n' "${{COMPREPLY[@]}}" """,
    "zsh": """autoload -Uz compinit; compinit -D -u; source <(quiver help --completion zsh)
              _describe() {{ print -l -- "${{(@P)2%%:*}}" }}; words=({words}); CURRENT={last}+1; _quiver""",
    "fish": """quiver help --completion fish | source; complete -C '{line}' | string split -f1 \\t""",
}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes(quiver, shell, tmp_path):
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    for words, expected in ((["quiver", "dea"], {"dead"}), (["quiver", "dead", "re"], {"requeue"})):
        script = SHELLS[shell].format(words=" ".join(words), last=len(words) - 1, line=" ".join(words))
        done = subprocess.run([shell, "-c", script], capture_output=True, text=True, timeout=60,
                              env={"PATH": f"{quiver.parent}:/usr/bin:/bin", "HOME": str(tmp_path), "TERM": "dumb"})
        assert set(done.stdout.split()) == expected, done.stdout + done.stderr


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes_what_the_host_knows(quiver, shell, host, tmp_path):
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    host.configure(shards=2, work="", other="").start()
    words = ["quiver", "submit", "-c", str(host.config), "wo"]
    script = SHELLS[shell].format(words=" ".join(words), last=len(words) - 1, line=" ".join(words))
    done = subprocess.run([shell, "-c", script], capture_output=True, text=True, timeout=60,
                          env={"PATH": f"{quiver.parent}:/usr/bin:/bin", "HOME": str(tmp_path), "TERM": "dumb"})
    assert set(done.stdout.split()) == {"work"}, done.stdout + done.stderr
