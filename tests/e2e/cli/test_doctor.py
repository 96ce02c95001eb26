"""`quiver doctor` on real servers, well and badly set up: what it finds, with which level, and that it always ends.

A finding is looked for by its name; what it says is looked at where a figure is the point."""
import json
import os
import socket
import subprocess
import time

import pytest

pytest.importorskip("redis")

from etcds import Etcd  # noqa: E402
from hosts import wait_until  # noqa: E402
from servers import RedisCluster, RedisServer, SentinelGroup, free_port  # noqa: E402
from zookeepers import ZooKeeper  # noqa: E402

SOON_S = 40  # a probe has 3 s; there are a few of them


class Examined:
    """What it said, and its exit code."""

    def __init__(self, quiver, config, *options, environment=None):
        started = time.monotonic()
        done = subprocess.run([quiver, "doctor", "-c", config, "--json", *options], capture_output=True, text=True,
                              timeout=120, env=environment)
        self.seconds = time.monotonic() - started
        assert done.stdout, done.stderr
        self.said = json.loads(done.stdout)
        self.code = done.returncode
        assert self.said["exit"] == self.code

    def __getitem__(self, check):
        """(level, text) of the worst finding of that name."""
        order = ["ok", "note", "warning", "error"]
        found = [f for f in self.said["findings"] if f["check"] == check]
        assert found, f"nothing about {check}: {json.dumps(self.said, indent=1)}"
        worst = max(found, key=lambda f: order.index(f["level"]))
        assert worst["level"] in ("ok", "note") or worst["advice"] or "chmod" in worst["text"], worst
        return worst["level"], worst["text"]

    def level(self, check):
        return self[check][0]

    def has(self, check):
        return any(f["check"] == check for f in self.said["findings"])


@pytest.fixture
def examine(quiver, root, tmp_path):
    """Settings for a store and a coordination, and what doctor says of them."""
    def configure(store, coordination="", more="", name="runtime.cfg"):
        config = tmp_path / name
        config.write_text(f"""
app = "test"; shards = 4; state = "{tmp_path}/state"; plugins = "{root}/build/test-plugins";
store = {{ {store} }};
{f'coordination = {{ {coordination} }};' if coordination else ''}
lease = {{ ttl = "2s"; }};
handlers = {{ work = {{ plugin = "ledger.so"; config = {{ path = "{tmp_path}/ledger"; }}; }}; }};
{more}
""")
        return config

    def run(*args, options=(), environment=None, **more):
        return Examined(quiver, configure(*args, **more), *options, environment=environment)

    run.configure = configure
    return run


def test_a_badly_set_up_redis_is_named_setting_by_setting(examine, tmp_path):
    bad = ("--appendonly", "no", "--maxmemory", "2mb", "--maxmemory-policy", "allkeys-lru", "--timeout", "10")
    with RedisServer(tmp_path / "redis", *bad) as server:
        found = examine(f'url = "{server.url}";')
        assert found.code == 1
        assert found["redis-persistence"] == ("error", f"127.0.0.1:{server.port} keeps nothing on disk (appendonly no, "
                                              'save ""): a crash or restart loses every task.')
        assert found.level("redis-eviction") == "error"
        assert found.level("redis-timeout") == "warning" and "10 s" in found["redis-timeout"][1]
        assert found.level("redis-password") == "note"
        assert found.level("store") == "error"  # no store can be opened there
        assert found.level("redis-version") == "ok" and found.level("clock") == "ok"
        assert server.do("DBSIZE") == 0  # it writes nothing


def test_a_well_set_up_redis_with_a_host_needs_nothing(examine, host, tmp_path):
    with RedisServer(tmp_path / "redis", "--appendonly", "yes", "--maxmemory", "1gb", password="secret") as server:
        secret = tmp_path / "secret"
        secret.write_text("secret\n")
        secret.chmod(0o600)
        host.config = examine.configure(f'url = "{server.url}"; password_file = "{secret}";')
        host.start()
        try:
            found = wait_until(lambda: (f := Examined(host.quiver, host.config)).has("versions") and f, "the host has said it")
            wrong = [f for f in found.said["findings"] if f["level"] in ("warning", "error") and f["check"] != "disk"]
            assert wrong == [] and found.code == (1 if found.level("disk") != "ok" else 0)
            assert found.level("redis-password") == "ok" and found.level("redis-rights") == "ok"
            assert "The host may open" in found["open-files"][1]  # the limits are those of the host itself
            assert any(f["text"].startswith("The clock of host") for f in found.said["findings"])
        finally:
            host.close()


def test_rights_that_a_role_lacks_are_named(examine, quiver, tmp_path):
    with RedisServer(tmp_path / "redis", "--appendonly", "yes") as server:
        secret = tmp_path / "secret"
        secret.write_text("secret\n")
        secret.chmod(0o600)
        config = examine.configure(f'url = "{server.url}";')
        users = json.loads(subprocess.run([quiver, "check", "--acl", "--json", "-c", config], check=True,
                                          capture_output=True, text=True).stdout)["users"]
        for user in users:
            server.do("ACL", "SETUSER", user["role"], *[rule.replace(">PASSWORD", ">secret") for rule in user["rules"]])

        def level_as(user):
            found = examine(f'url = "{server.url}"; user = "{user}"; password_file = "{secret}";')
            return found["redis-rights"]

        assert level_as("host")[0] == "ok"
        assert level_as("operator")[0] == "note"
        level, text = level_as("producer")
        assert level == "error" and "eval" in text
        server.do("ACL", "SETUSER", "host", "-hset")
        level, text = level_as("host")
        assert level == "error" and "lacks rights that a host needs: hset." in text
        # An operator may not look at settings: that is said, and is no fault.
        found = examine(f'url = "{server.url}"; user = "operator"; password_file = "{secret}";')
        assert "CONFIG GET" in found["redis-untold"][1] and found.level("redis-untold") == "note"


def test_a_redis_with_another_clock_is_noticed(examine, root, tmp_path):
    clock = root / "build" / "tests" / "preload" / "clock.so"
    if not clock.exists():
        pytest.skip("build/tests/preload/clock.so is not built")
    shown = tmp_path / "clock"
    shown.write_bytes(int((time.time() - 3600) * 1000).to_bytes(8, "little"))
    server = RedisServer(tmp_path / "redis", "--appendonly", "yes")
    server.environment = {**os.environ, "LD_PRELOAD": str(clock), "QUIVER_TEST_CLOCK": str(shown)}
    with server:
        level, text = examine(f'url = "{server.url}";')["clock"]
        assert level == "error" and "1h behind" in text


def test_certificates_that_ended_are_named(examine, tmp_path):
    def openssl(*words):
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days"]
    openssl("req", "-x509", *key, "30", "-subj", "/CN=ca", "-keyout", tmp_path / "ca.key", "-out", tmp_path / "ca.pem")

    def certify(name, *days):
        openssl("req", *key[:-1], "-subj", f"/CN={name}", "-keyout", tmp_path / f"{name}.key", "-out", tmp_path / "csr")
        (tmp_path / "names").write_text("subjectAltName=IP:127.0.0.1\n")
        openssl("x509", "-req", "-in", tmp_path / "csr", "-CA", tmp_path / "ca.pem", "-CAkey", tmp_path / "ca.key",
                "-extfile", tmp_path / "names", "-out", tmp_path / f"{name}.pem", "-days", *days)

    certify("ended", "-1")
    certify("good", "29")
    for name, levels in (("good", ("ok",)), ("ended", ("error",))):
        port = free_port()
        options = ("--tls-port", port, "--tls-auth-clients", "no", "--tls-cert-file", tmp_path / f"{name}.pem",
                   "--tls-key-file", tmp_path / f"{name}.key", "--tls-ca-cert-file", tmp_path / "ca.pem")
        with RedisServer(tmp_path / name, *options) as server:
            found = examine(f'url = "rediss://127.0.0.1:{port}"; tls = {{ ca_file = "{tmp_path}/ca.pem"; }};')
            assert found.level("tls") in levels, found["tls"]
            assert ("days" if name == "good" else "ended" if "ended" in found["tls"][1] else "expired") in found["tls"][1]
            assert found.code == (1 if name == "good" else 3)
            assert server.process.poll() is None


def test_a_redis_that_is_away_or_silent_delays_nothing_else(examine, tmp_path):
    away = examine(f'url = "redis://127.0.0.1:{free_port()}";')
    assert away.code == 3 and away.said["reachable"] is False
    assert away.level("redis-answers") == "error" and away.has("open-files") and away.has("plugins")
    with RedisServer(tmp_path / "redis") as server:
        server.pause()
        silent = examine(f'url = "{server.url}";')
        server.cont()
    assert silent.code == 3 and silent.level("redis-answers") == "error" and silent.has("disk")
    assert away.seconds < SOON_S and silent.seconds < SOON_S


def test_a_coordination_that_is_away_or_silent_delays_nothing_else(examine, tmp_path):
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen(8)
        for port in (free_port(), mute.getsockname()[1]):
            for scheme in ("zookeeper", "etcd"):
                found = examine(f'url = "sqlite:{tmp_path}/q.db";', f'url = "{scheme}://127.0.0.1:{port}"; session = "2s";')
                assert found.code == 3, found.said
                assert found.level("coordination-answers") == "error" and found.has("disk")
                assert found.seconds < SOON_S


def test_sqlite_and_local_with_and_without_a_host(examine, host):
    host.configure(work="")
    before = Examined(host.quiver, host.config)
    assert not (host.folder / "state").exists() and not (host.folder / "q.db").exists()  # it makes nothing
    assert before.level("coordination-answers") == "note"
    assert before["store"][0] == "note" and before.level("sqlite-synchronous") == "note"
    host.start()
    during = wait_until(lambda: (f := Examined(host.quiver, host.config)).has("versions") and f, "the host has said it")
    assert during["versions"][1].startswith("1 host, all of version")
    assert not during.has("leader")
    host.cli("submit", "nobody", "--key", "k", "1")
    host.close()
    after = Examined(host.quiver, host.config)
    assert after.code == 1 and "No host is running" in after["status"][1]


def test_modes_and_plugins_are_looked_at_and_no_plugin_runs(examine, root, tmp_path):
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    made = bytearray((root / "build" / "test-plugins" / "ledger.so").read_bytes())
    (plugins / "ledger.so").write_bytes(made)
    (plugins / "ledger.so").chmod(0o666)
    state = tmp_path / "state"
    state.mkdir(mode=0o777)
    state.chmod(0o777)
    config = f'plugins = "{plugins}";'
    text = examine.configure(f'url = "sqlite:{tmp_path}/q.db";').read_text()
    text = text.replace(f'plugins = "{root}/build/test-plugins";', config)
    (tmp_path / "modes.cfg").write_text(text)
    found = Examined(root / "build" / "quiver", tmp_path / "modes.cfg")
    assert found.level("settings") == "error" and "state folder" in found["settings"][1]
    assert found.level("plugin-mode") == "error"
    assert not (tmp_path / "ledger").exists()
    (plugins / "ledger.so").unlink()
    assert Examined(root / "build" / "quiver", tmp_path / "modes.cfg").level("plugin") == "error"
    (tmp_path / "broken.cfg").write_text(text.replace("shards", "shrads"))
    broken = Examined(root / "build" / "quiver", tmp_path / "broken.cfg")
    assert broken.code == 1 and "did you mean" in broken["settings"][1]


def test_a_full_disk_is_noticed(examine, tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m,mode=700", "none", small],
                                           capture_output=True).returncode != 0:
        pytest.skip("only root can mount a small file system")
    try:
        (small / "filler").write_bytes(bytes(20 << 20))
        found = examine(f'url = "sqlite:{small}/q.db";')
        level, text = found["disk"]
        assert level == "error" and "4 MiB of 24 MiB free" in text and found.code == 1
    finally:
        subprocess.run(["umount", small], check=True)


def test_zookeeper_says_who_leads_and_what_it_grants(examine, tmp_path):
    server = ZooKeeper(tmp_path / "zk")
    settings = server.folder / "zoo.cfg"
    settings.write_text(settings.read_text().replace("tickTime=500", "tickTime=2000"))
    server.start()
    try:
        found = examine(f'url = "sqlite:{tmp_path}/q.db";', f'url = "zookeeper://127.0.0.1:{server.port}"; session = "1s";')
        assert found.level("zookeeper-server") == "ok" and "standalone" in found["zookeeper-server"][1]
        # It grants two ticks at least.
        assert found["session"][0] == "warning" and "sessions of 4s, not 1s" in found["session"][1]
        assert found.level("coordination-round-trip") == "ok" and found.code == 1
        with server.client() as client:
            assert client.get_children("/") == ["zookeeper"]  # it writes nothing
    finally:
        server.close()


def test_etcd_says_its_version_and_its_time(examine, tmp_path):
    server = Etcd(tmp_path / "etcd")
    server.start()
    try:
        found = examine(f'url = "sqlite:{tmp_path}/q.db";', f'url = "etcd://127.0.0.1:{server.port}"; session = "2s";')
        assert found["etcd"][0] == "ok" and found["etcd"][1].startswith("etcd 3.")
        assert any("clock of etcd" in f["text"] for f in found.said["findings"])
        assert not server.kvs("/")  # it writes nothing
    finally:
        server.close()


def test_sentinels_and_replicas_are_looked_at(examine, tmp_path):
    group = SentinelGroup(tmp_path)
    group.start()
    try:
        found = examine(f'url = "{group.url}";')
        assert found["redis-sentinels"] == ("ok", "3 of 3 Sentinels answer.")
        assert found.level("redis-replicas") == "ok" and "1 replica" in found["redis-replicas"][1]
        group.sentinels[0].kill9()
        group.sentinels[1].kill9()
        found = examine(f'url = "{group.url}";')
        assert found.level("redis-sentinels") == "warning" and found.level("redis-quorum") == "error"
    finally:
        group.close()


def test_every_master_of_a_cluster_is_looked_at(examine, tmp_path):
    cluster = RedisCluster(tmp_path, replicas=False)
    cluster.start()
    try:
        found = examine(f'url = "{cluster.url}";')
        assert found.level("redis-cluster") == "ok" and found.level("redis-cluster-replicas") == "warning"
        asked = {f["text"].split(" at ")[1].split(" ")[0] for f in found.said["findings"] if f["check"] == "redis-version"}
        assert len(asked) == 3
    finally:
        cluster.close()


def test_people_get_one_line_for_what_is_ok(quiver, examine, tmp_path):
    config = examine.configure(f'url = "sqlite:{tmp_path}/q.db";')
    short = subprocess.run([quiver, "doctor", "-c", config], capture_output=True, text=True)
    whole = subprocess.run([quiver, "doctor", "-c", config, "--all"], capture_output=True, text=True)
    assert " ok (--all shows them)\n" in short.stdout and "\n  ok " not in short.stdout
    assert "\n  ok " in whole.stdout and len(whole.stdout) > len(short.stdout)
    assert "\033" not in short.stdout and short.returncode == whole.returncode == 0 or short.returncode == 1
    assert subprocess.run([quiver, "doctor", "--bogus"], capture_output=True).returncode == 2
