"""The users of `quiver check --acl`, made exactly as printed on a real server: what each command does as each of them.

A command works, or it is refused by a text that names the right and the command that prints the rules."""
import json
import pathlib
import subprocess
import tempfile

import pytest

redis = pytest.importorskip("redis")

from redis_hosts import RedisHost, RedisServer  # noqa: E402
from hosts import wait_until  # noqa: E402

# In this order: what is done, and by which of the two producers ("" for none); an operator can do it all.
COMMANDS = [
    ("submit work --key k 1", "producer producer+"),
    ("submit work --key k --lane high 1", "producer producer+"),
    ("submit work --key w --wait-for 30s 1", "producer producer+"),
    ("submit work --key later --delay 1h 1", "producer+"),
    ("submit work --key later --at 2999-01-01T00:00:00Z 1", "producer+"),
    ("submit work --key u --unique 1ms 1", "producer+"),
    ("submit work --key i --idempotency-key ROLE 1", "producer+"),
    ("submit nobody --key wait 1", "producer producer+"),
    ("status", ""),
    ("status --json", ""),
    ("top --once", ""),
    ("tasks", ""),
    ("task x-0", ""),
    ("task cancel x-0", ""),
    ("task reschedule x-0 --at 2999-01-01T00:00:00Z", ""),
    ("dead list", ""),
    ("dead groups", ""),
    ("dead requeue --reason never", ""),
    ("dead drop --reason never", ""),
    ("key k", ""),
    ("key hold held", ""),
    ("key unhold held", ""),
    ("pause nobody", ""),
    ("resume nobody", ""),
    ("results", ""),
    ("results --commit", ""),
    ("schedule", ""),
    ("schedule set nightly --cron '0 0 1 1 *' --handler work", ""),
    ("schedule pause nightly", ""),
    ("schedule resume nightly", ""),
    ("schedule run nightly", ""),
    ("schedule delete nightly", ""),
    ("limit", ""),
    ("room r append hello", ""),
    ("room r read", ""),
    ("room r truncate 1", ""),
    ("room list", ""),
    ("app show", "producer producer+"),
    ("app set max_members=0", ""),
    ("members", ""),
    ("id", ""),
    ("lock list", ""),
    ("lock l -- true", ""),
    ("elect e --who", ""),
    ("fsck", ""),
    ("dump", ""),
]
# Of these it is no refusal that they fail: there is no such task, hosts work on the store.
FAILS = ("task x-0", "task cancel", "task reschedule", "dump", "elect e --who")


def users_of(quiver, config):
    said = subprocess.run([quiver, "check", "--acl", "--json", "-c", config], capture_output=True, text=True, check=True)
    return {user["role"]: user for user in json.loads(said.stdout)["users"]}


def make(client, user):
    rules = [rule.replace(">PASSWORD", ">secret") for rule in user["rules"]]
    client.execute_command("ACL", "SETUSER", user["user"], *rules)


@pytest.fixture(scope="module")
def host(quiver, tmp_path_factory):
    """A host that runs as its printed user, with the coordination on the same server."""
    folder = tmp_path_factory.mktemp("rights")
    with tempfile.TemporaryDirectory(prefix="quiver-") as place:
        server = RedisServer(pathlib.Path(place)).start()
        made = RedisHost(quiver, quiver.parent / "test-plugins", folder, server)
        made.configure(work="", change=lambda text: text.replace(f'"local:{folder}/state"', '"redis"'))
        secret = folder / "secret"
        secret.write_text("secret\n")
        secret.chmod(0o600)
        made.users = users_of(quiver, made.config)
        with server.client() as client:
            for user in made.users.values():
                make(client, user)
        bare = made.config.read_text()
        for role, user in made.users.items():
            (folder / f"{role}.cfg").write_text(
                bare.replace("store = {", f'store = {{ user = "{user["user"]}"; password_file = "{secret}";'))
        made.config = folder / "host.cfg"
        made.start()
        yield made
        made.close()
        server.close()


def run_as(host, role, words):
    import shlex
    return subprocess.run([host.quiver, *shlex.split(words.replace("ROLE", role)), "-c", host.folder / f"{role}.cfg"]
                          if " -- " not in words else
                          [host.quiver, words.split()[0], "-c", host.folder / f"{role}.cfg", *words.split()[1:]],
                          capture_output=True, text=True, timeout=30)


def denials(host):
    with host.redis.client() as client:
        log = client.execute_command("ACL", "LOG")
        client.execute_command("ACL", "LOG", "RESET")
    return [(entry[b"username"], entry[b"object"]) for entry in
            (dict(zip(row[::2], row[1::2])) if isinstance(row, list) else row for row in log)]


def test_a_host_as_printed_is_refused_nothing(host):
    host.cli("submit", "work", "--key", "first", "--wait-for", "30s", "1")
    assert "no doorbell" not in host.log() and "lacks the right" not in host.log()
    assert "NOPERM" not in host.log()
    assert denials(host) == []


@pytest.mark.parametrize("role", ["operator", "producer", "producer+"])
def test_each_command_works_or_is_refused_by_name(host, role):
    wrong = []
    for words, producers in COMMANDS:
        done = run_as(host, role, words)
        may = role == "operator" or role in producers.split()
        is_refused = "lacks the right to" in done.stderr and "quiver check --acl" in done.stderr
        is_good = not is_refused and (done.returncode == 0 or words.startswith(FAILS)) if may else \
            is_refused and done.returncode in (1, 3)
        if not is_good:
            wrong.append(f"{role}: {words}: exit code {done.returncode}: {done.stderr}{done.stdout[:200]}")
    assert not wrong, "\n".join(wrong)


# The calls of the client library, as support/rights.c makes them, and which of the two producers may.
CALLS = {"open": "producer producer+", "info": "producer producer+", "submit": "producer producer+",
         "submit_many": "producer producer+", "wait": "producer producer+", "submit.delay": "producer+"}
CALLS_OF_OPERATORS = ("count set_desired get_desired consume room_append room_read room_follow room_truncate next_id "
                      "trylock lock elect members").split()


@pytest.fixture(scope="module")
def caller(root, tmp_path_factory):
    program = tmp_path_factory.mktemp("caller") / "rights"
    subprocess.run(["gcc", "-Wall", "-Werror", f"-I{root}/sdk/include", "-o", program, root / "tests/e2e/support/rights.c",
                    root / "build/libquiver.so.1", f"-Wl,-rpath,{root}/build"], check=True)
    return program


@pytest.mark.parametrize("role", ["operator", "producer", "producer+"])
def test_each_call_of_the_library_works_or_is_refused_by_name(host, caller, role):
    done = subprocess.run([caller, host.folder / f"{role}.cfg"], capture_output=True, text=True, timeout=100)
    said = {line.split()[0]: line.split(" ", 2) for line in done.stdout.splitlines()}
    wrong = []
    for name in [*CALLS, *CALLS_OF_OPERATORS]:
        status, text = int(said[name][1]), said[name][2]
        if role == "operator" or role in CALLS.get(name, "").split():
            is_good = status == 0
        else:
            is_good = status < 0 and "lacks the right to" in text and "quiver check --acl" in text
        if not is_good:
            wrong.append(f"{role}: {' '.join(said[name])}")
    assert not wrong, "\n".join(wrong) + done.stderr


def test_the_lines_are_pasted_into_redis_cli_as_they_are(host, quiver):
    said = subprocess.run([quiver, "check", "--acl", "-c", host.config], capture_output=True, text=True, check=True).stdout
    lines = [line.replace("PASSWORD", "other") for line in said.splitlines() if line.startswith("ACL SETUSER")]
    assert len(lines) == 4
    with host.redis.client() as client:
        before = {role: client.execute_command("ACL", "GETUSER", user["user"]) for role, user in host.users.items()}
        out = subprocess.run(["redis-cli", "-s", host.redis.socket], input="\n".join(lines) + "\n", text=True,
                             capture_output=True, check=True).stdout
        assert out.split() == ["OK"] * 4
        for role, user in host.users.items():
            after = client.execute_command("ACL", "GETUSER", user["user"])
            assert after != before[role]  # another password
            assert [after[at] for at in (b"commands", b"keys", b"selectors")] if isinstance(after, dict) else \
                after[4:] == before[role][4:]
            make(client, user)


def test_without_redis_there_are_no_users(quiver, tmp_path):
    config = tmp_path / "runtime.cfg"
    config.write_text('app = "demo"; store = { url = "sqlite:q.db"; }; coordination = { url = "local:var"; };\n')
    said = subprocess.run([quiver, "check", "--acl", "-c", config], capture_output=True, text=True)
    assert said.returncode == 1 and "is a Redis" in said.stderr
