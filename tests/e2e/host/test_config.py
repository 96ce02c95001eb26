"""quiver check: which file, everything that is wrong with it, and what it means."""
import json
import os
import re
import subprocess

import pytest

MINIMAL = 'app = "demo";\nstore = { url = "sqlite:q.db"; };\n'


@pytest.fixture
def check(quiver, tmp_path):
    """Runs quiver check in an empty folder, without a configuration of its own; the files' plugins are not there."""

    def run(*words, **environment):
        env = {k: v for k, v in os.environ.items() if k != "QUIVER_CONFIG"}
        env.update(environment)
        return subprocess.run(
            [quiver, "check", "--config-only", *map(str, words)], cwd=tmp_path, env=env, capture_output=True,
            text=True, timeout=60
        )

    return run


@pytest.fixture
def write(tmp_path):
    def put(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return put


def test_the_default_file_is_valid(check, root):
    done = check("-c", root / "etc/runtime.cfg")
    assert (done.returncode, done.stderr) == (0, "")
    assert "ok" in done.stdout.splitlines()[0]
    assert re.search(r"^  echo +echo\.so, 1 process of 1 thread", done.stdout, re.M)


def test_the_default_file_states_the_defaults_as_they_are(check, root, write):
    """Every `//= setting` taken at its word changes nothing; every `//? example` is valid as well."""
    text = (root / "etc/runtime.cfg").read_text()
    shown = check("-c", write("etc/a.cfg", text), "--json", "--show")
    stated = check("-c", write("etc/a.cfg", text.replace("//= ", "")), "--json", "--show")
    assert json.loads(stated.stdout) == json.loads(shown.stdout)
    examples = text.replace("//= ", "").replace("//? ", "")
    examples = re.sub(r"\n *password_(file|env).*| password_file = \"sentinel.password\";", "", examples)
    examples = examples.replace("sqlite:../var/quiver.db", "rediss+sentinel://h/m").replace('local:../var"', 'etcd+tls://h"')
    said = check("-c", write("etc/a.cfg", examples)).stderr
    assert "coordination.user needs password_file" in said
    assert "etc/redis-ca.pem (the certificates of authorities): No such file" in said
    assert "store.sentinel.user needs password_file" in said and "3 errors" in said


def test_the_default_file_names_every_setting(check, root):
    text = (root / "etc/runtime.cfg").read_text()
    reference = check("--reference").stdout
    names = set(re.findall(r"^\| `(\w+)` \|", reference, re.M))
    assert len(names) > 50
    assert [n for n in sorted(names) if not re.search(rf"\b{n}\b +=", text)] == []


def test_the_reference_in_the_manual_is_the_one_of_the_program(check, root):
    manual = (root / "etc/README.md").read_text()
    assert manual.endswith("check --reference -->\n\n" + check("--reference").stdout)


def test_the_file_is_looked_for_in_order(check, write, tmp_path):
    if not os.path.exists("/etc/quiver/runtime.cfg"):
        nothing = check()
        assert nothing.returncode == 1
        assert "./etc/runtime.cfg" in nothing.stderr and "/etc/quiver/runtime.cfg" in nothing.stderr
    write("etc/runtime.cfg", MINIMAL)
    assert check().stdout.startswith("./etc/runtime.cfg (in the working directory): ok")
    write("other.cfg", MINIMAL)
    assert check(QUIVER_CONFIG="other.cfg").stdout.startswith("other.cfg ($QUIVER_CONFIG): ok")
    write("third.cfg", MINIMAL)
    assert check("-c", "third.cfg", QUIVER_CONFIG="other.cfg").stdout.startswith("third.cfg (-c): ok")
    (tmp_path / "third.cfg").unlink()
    gone = check("-c", "third.cfg")
    assert gone.returncode == 1
    assert "third.cfg: cannot open: No such file or directory" in gone.stderr


def test_paths_start_at_the_folder_of_the_file(check, write, tmp_path):
    write("conf/runtime.cfg", MINIMAL + '@include "more/plugins.cfg"\n')
    write("conf/more/plugins.cfg", 'plugins = "here";\n')
    shown = json.loads(check("-c", "conf/runtime.cfg", "--json", "--show").stdout)["settings"]
    real = tmp_path.resolve()
    assert shown["store"]["url"] == f"sqlite:{real}/conf/q.db"
    assert shown["plugins"] == f"{real}/conf/more/here"
    assert shown["state"] == f"{real}/var"


def test_every_problem_is_printed_with_file_and_line(check, write):
    write("bad.cfg", MINIMAL + "shard = 3;\nlease = { ttl = 10; };\nshards = 5000000000;\n")
    done = check("-c", "bad.cfg")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        'bad.cfg:3: no setting "shard" in the file; did you mean "shards"?',
        'bad.cfg:4: lease.ttl wants a duration in quotes, with its unit; did you mean "10s"?',
        "bad.cfg:5: 5000000000 does not fit into 32 bits and would be cut; write 5000000000L, or a size or duration as a"
        " text with its unit",
        "bad.cfg (-c): 3 errors",
    ]


def test_problems_as_json(check, write):
    write("bad.cfg", MINIMAL + "shard = 3;\n")
    done = check("-c", "bad.cfg", "--json")
    assert done.returncode == 1
    said = json.loads(done.stdout)
    assert (said["file"], said["found"], said["ok"], said["errors"]) == ("bad.cfg", "-c", False, 1)
    assert said["problems"][0] == {
        "file": "bad.cfg",
        "line": 3,
        "severity": "error",
        "text": 'no setting "shard" in the file; did you mean "shards"?',
    }


def test_a_warning_does_not_fail(check, write):
    write("pw", "hunter2\n").chmod(0o644)
    write("a.cfg", 'app = "a"; store = { url = "redis://h"; password_file = "pw"; };')
    done = check("-c", "a.cfg")
    assert done.returncode == 0
    assert "a.cfg:1: warning: store.password_file: " in done.stderr and "chmod 600" in done.stderr
    assert json.loads(check("-c", "a.cfg", "--json").stdout)["problems"][0]["severity"] == "warning"


def test_no_secret_is_ever_printed(check, write):
    write("pw", "hunter2\n").chmod(0o600)
    write("a.cfg", 'app = "a"; store = { url = "redis://h"; password_file = "pw"; };\n'
                   'handlers = { h = { plugin = "h.so"; config = { db = { url = "pg://u:hunter2@h"; password = "hunter2"; }; }; }; };')
    write("b.cfg", 'app = "a"; store = { url = "redis://u:hunter2@h"; };')
    for words in (["-c", "a.cfg"], ["-c", "a.cfg", "--show"], ["-c", "a.cfg", "--show", "--json"], ["-c", "b.cfg"]):
        done = check(*words)
        assert "hunter2" not in done.stdout + done.stderr


def test_what_is_shown_can_be_used(check, root, write):
    shown = check("-c", root / "etc/runtime.cfg", "--show")
    again = check("-c", write("again.cfg", shown.stdout), "--show")
    assert again.returncode == 0
    assert again.stdout.splitlines()[1:] == shown.stdout.splitlines()[1:]


def test_the_summary_fits_a_screen(check, write):
    handlers = "".join(f'h{i} = {{ plugin = "h.so"; }};\n' for i in range(300))
    write("many.cfg", MINIMAL + "handlers = {\n" + handlers + "};\n")
    lines = check("-c", "many.cfg").stdout.splitlines()
    assert len(lines) <= 24
    assert "and 288 more" in lines[-1]


HOSTILE = {
    "zeros": (b"\x00" * 100, "a NUL byte"),
    "a program": (b"\x7fELF\x02\x01\x01", "no meaning here"),
    "deep": (b"a = " + b"(" * 100000, "nested deeper"),
    "10 MB": (b"\n" * (10 << 20), "larger than 1 MiB"),
    "includes itself": (b'@include "hostile.cfg"\n', "include each other without end"),
    "includes a device": (b'@include "/dev/zero"\n', "not a regular file"),
    "long list": (b"x = [" + b"1," * 100000, "more than 4096 members"),
    "truncated": (b'app = "a', "no closing quote"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_file_gets_an_answer(check, tmp_path, kind):
    text, said = HOSTILE[kind]
    (tmp_path / "hostile.cfg").write_bytes(text)
    done = check("-c", "hostile.cfg")
    assert done.returncode == 1
    assert "hostile.cfg:" in done.stderr and said in done.stderr


def test_usage(check):
    assert check("--help").returncode == 0
    assert check("--shwo").returncode == 2
    assert check("file.cfg").returncode == 2
    assert check("-c").returncode == 2


def test_a_command_does_not_need_handlers_to_be_right(quiver, write, tmp_path):
    write("etc/runtime.cfg", MINIMAL + "handlers = { };\n")
    subprocess.run([quiver, "load", "/dev/null"], cwd=tmp_path, capture_output=True, timeout=60)
    write("etc/runtime.cfg", MINIMAL + "handlers = { mail = { plugn = \"mail.so\"; timeout = 5; }; };\n")
    run = subprocess.run([quiver, "run"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert run.returncode == 1 and "did you mean \"plugin\"" in run.stderr
    done = subprocess.run([quiver, "status"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert "plugn" not in done.stderr and "is not valid" not in done.stderr
