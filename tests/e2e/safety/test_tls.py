"""TLS to Redis: hosts, their guards and commands speak nothing else, and certificates are renewed under them.  And the
tunnel for ZooKeeper, whose client speaks none."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess

import pytest

from hosts import Host, check_ledger, wait_until
from proxy import Proxy
from servers import RedisServer, Server, die_with_parent, free_port

pytest.importorskip("redis")

KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
NAMES = "DNS:redis-1,DNS:zk-1,IP:127.0.0.1"


def openssl(*words):
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


def certify(folder):
    """ca.pem, and by it server.pem and host.pem, each with its .key."""
    folder.mkdir(exist_ok=True)
    openssl("req", "-x509", *KEY, "-subj", f"/CN=ca-{folder.name}", "-keyout", folder / "ca.key", "-out", folder / "ca.pem")
    for name in ("server", "host"):
        openssl("req", "-x509", "-CA", folder / "ca.pem", "-CAkey", folder / "ca.key", *KEY, "-subj", f"/CN={name}",
                "-addext", f"subjectAltName={NAMES}", "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.pem")
    for key in folder.glob("*.key"):
        key.chmod(0o600)
    return folder


class TlsServer(RedisServer):
    """Its plain port is for the test alone."""

    def __init__(self, folder, certificates, *options):
        self.tls_port = free_port()
        super().__init__(folder, "--tls-port", self.tls_port, "--tls-auth-clients", "yes", "--tls-cert-file",
                         certificates / "server.pem", "--tls-key-file", certificates / "server.key", "--tls-ca-cert-file",
                         certificates / "ca.pem", "--appendonly", "yes", *options)
        self.tls_url = f"rediss://127.0.0.1:{self.tls_port}"

    def take_up(self, certificates):
        self.do("CONFIG", "SET", "tls-cert-file", str(certificates / "server.pem"), "tls-key-file",
                str(certificates / "server.key"), "tls-ca-cert-file", str(certificates / "ca.pem"))


class TlsSentinel(Server):
    """One that watches one server, and speaks nothing but TLS, to it and to us."""

    def __init__(self, folder, certificates, master):
        super().__init__(folder)
        self.certificates = certificates
        self.url = f"rediss+sentinel://127.0.0.1:{self.port}/main"
        (self.folder / "sentinel.conf").write_text(
            f"port 0\ntls-port {self.port}\nbind 127.0.0.1\ndir {self.folder}\nlogfile log\ntls-replication yes\n"
            f"tls-cert-file {certificates}/server.pem\ntls-key-file {certificates}/server.key\n"
            f"tls-ca-cert-file {certificates}/ca.pem\nsentinel monitor main 127.0.0.1 {master.tls_port} 1\n")

    def command(self):
        return ["redis-sentinel", str(self.folder / "sentinel.conf")]

    def client(self, **options):
        return super().client(ssl=True, ssl_ca_certs=str(self.certificates / "ca.pem"),
                              ssl_certfile=str(self.certificates / "host.pem"),
                              ssl_keyfile=str(self.certificates / "host.key"), **options)


class TlsHost(Host):
    def configure(self, url, name="a", ttl="1s", certificates="certificates"):
        self.config = self.folder / f"{name}.cfg"

        def over_tls(text):
            text = text.replace(f'url = "sqlite:{self.folder}/q.db"; synchronous = "normal";',
                                f'url = "{url}"; tls = {{ ca_file = "{certificates}/ca.pem"; '
                                f'cert_file = "{certificates}/host.pem"; key_file = "{certificates}/host.key"; }};')
            text = text.replace(f"{self.folder}/state", f"{self.folder}/state-{name}").replace('ttl = "1s"', f'ttl = "{ttl}"')
            return text + f'coordination = {{ url = "redis"; session = "{ttl}"; }};\nhost = {{ name = "{name}"; }};\n'

        return super().configure(shards=8, change=over_tls, work="threads = 2;")

    def wait_empty(self):
        def is_empty():
            totals = json.loads(self.cli("status", "--json"))["totals"]
            return not any(totals[state] for state in ("queued", "delayed", "in_flight", "parked"))

        wait_until(is_empty, "nothing is left")

    def ends(self):
        return sum(e.what == "end" for e in self.ledger())


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    certify(folder / "certificates")
    with TlsServer(folder / "redis", folder / "certificates") as made:
        made.certificates = folder / "certificates"
        yield made


@pytest.fixture
def make_host(quiver, root, tmp_path, server):
    hosts = []
    server.do("FLUSHALL")
    shutil.copytree(server.certificates, tmp_path / "certificates")

    def make():
        hosts.append(TlsHost(quiver, root / "build" / "test-plugins", tmp_path))
        return hosts[-1]

    yield make
    for host in hosts:
        host.close()


def lock(host):
    return subprocess.run([host.quiver, "lock", "-c", host.config, "nightly", "--", "echo", "mine"], capture_output=True,
                          text=True, timeout=120).stdout


def tasks(count):
    return [{"handler": "work", "key": f"k{n % 10}", "payload": f"{n} us:2000"} for n in range(count)]


def expected(count):
    return {f"k{k}": list(range(k, count, 10)) for k in range(10)}


def test_a_host_works_over_tls_and_cut_connections_cost_nothing(make_host, server):
    wire = Proxy(server.tls_port)
    host = make_host().configure(f"rediss://127.0.0.1:{wire.port}").start()
    assert "TLSv1.3" in host.log()
    host.submit(tasks(300))
    for _ in range(3):
        before = host.ends()
        wait_until(lambda: host.ends() >= before + 20, "20 more tasks end")
        wire.cut()
    host.wait_empty()
    assert lock(host) == "mine\n"  # the coordination's TLS is the store's
    assert host.stop() == 0
    check_ledger(host.ledger(), expected(300))
    assert wire.accepted > 3 and wire.requests.passed_bytes > 0
    wire.close()


def test_check_says_whom_it_trusts_and_until_when_it_is_trusted(make_host, server, tmp_path):
    host = make_host().configure(server.tls_url)
    said = host.cli("check", "--config-only")
    assert re.search(r"TLS, servers verified by .*/ca.pem, our certificate is /CN=host until 20\d\d-.* UTC", said)
    assert "/CN=host" in json.loads(host.cli("check", "--config-only", "--json"))["tls"]["store"]
    # A build without the library says what is missing: here it finds one that is none.
    (tmp_path / "libssl.so.3").write_bytes(b"")
    done = subprocess.run([host.quiver, "check", "--config-only", "-c", host.config], capture_output=True, text=True,
                          env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)})
    assert done.returncode == 1 and "apt-get install libssl3" in done.stderr
    # What cannot work is an error before anything is started.
    (tmp_path / "certificates" / "ca.pem").write_text("no certificate\n")
    done = subprocess.run([host.quiver, "run", "-c", host.config], capture_output=True, text=True)
    assert done.returncode and "certificates/ca.pem: nothing in PEM form" in done.stderr


def test_renewed_certificates_are_checked_by_a_reload_and_used_from_then_on(make_host, server, tmp_path):
    certificates = tmp_path / "certificates"
    host = make_host().configure(server.tls_url).start()
    host.submit(tasks(50))
    # Half of a renewal: the key is another's.
    renewed = certify(tmp_path / "renewed")
    shutil.copy(renewed / "host.key", certificates / "host.key")
    done = subprocess.run([host.quiver, "reload", "--wait", "-c", host.config], capture_output=True, text=True)
    assert done.returncode == 1 and "host.key is not the key of the certificate in" in done.stdout + done.stderr
    # All of it, here and on the server, which then drops its clients.
    for name in ("host.pem", "ca.pem"):
        shutil.copy(renewed / name, certificates / name)
    host.signal(signal.SIGHUP)
    wait_until(lambda: host.log().count("event=reload") >= 2, "the reload is over")
    server.take_up(renewed)
    try:
        server.do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        host.wait_for_log("event=certificates")
        host.submit([{"handler": "work", "key": "k0", "payload": "50"}])
        host.wait_empty()
        assert host.stop() == 0
        check_ledger(host.ledger(), {**expected(50), "k0": [*range(0, 50, 10), 50]})
    finally:
        server.take_up(server.certificates)


def take_over(make_host, url, before_the_end=lambda host: None):
    """Two hosts work, one is killed, and the other does all of it.  The leases would last for minutes."""
    first, second = make_host().configure(url, ttl="5m"), make_host().configure(url, "b", ttl="5m")
    first.start()
    second.start()
    first.submit(tasks(100))
    wait_until(lambda: first.ends() >= 10, "it works")
    before_the_end(first)
    first.kill()
    second.wait_empty()
    assert lock(second) == "mine\n"
    assert second.stop() == 0
    check_ledger(second.ledger(), expected(100), may_repeat=True)


def test_a_guard_over_tls_gives_back_what_its_host_had(make_host, server):
    take_over(make_host, server.tls_url)


def test_a_guard_that_has_lost_its_connection_takes_up_renewed_certificates(make_host, server, tmp_path):
    """Those that it was started with would not be accepted any more, and those of the server not by it."""
    renewed = certify(tmp_path / "renewed")

    def renew(host):
        for name in ("host.pem", "host.key", "ca.pem"):
            shutil.copy(renewed / name, tmp_path / "certificates" / name)
        server.take_up(renewed)
        server.do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        host.wait_for_log("event=certificates")

    try:
        take_over(make_host, server.tls_url, renew)
    finally:
        server.take_up(server.certificates)


def test_hosts_guards_and_commands_go_through_sentinels_that_speak_tls(make_host, server, tmp_path):
    with TlsSentinel(tmp_path / "sentinel", server.certificates, server) as sentinel:
        take_over(make_host, sentinel.url)


def test_hosts_guards_and_commands_work_with_a_cluster_that_speaks_tls(make_host, server, tmp_path):
    with TlsServer(tmp_path / "cluster", server.certificates, "--tls-cluster", "yes", "--cluster-enabled", "yes") as node:
        node.do("CLUSTER ADDSLOTSRANGE", 0, 16383)
        wait_until(lambda: node.do("CLUSTER INFO")["cluster_state"] == "ok", "it has all slots")
        take_over(make_host, f"rediss+cluster://127.0.0.1:{node.tls_port}")


def test_every_call_of_the_client_library_goes_over_tls(make_host, server, root, tmp_path):
    """Those that ask the store, the coordination and a host's socket, in a program of somebody's own."""
    program = tmp_path / "caller"
    subprocess.run(["gcc", "-Wall", "-Werror", f"-I{root}/sdk/include", "-o", program, root / "tests/e2e/support/rights.c",
                    root / "build/libquiver.so.1", f"-Wl,-rpath,{root}/build"], check=True)
    host = make_host().configure(server.tls_url).start()
    server.do("CONFIG", "RESETSTAT")
    done = subprocess.run([program, host.config], capture_output=True, text=True, timeout=100)
    said = [line.split(" ", 2) for line in done.stdout.splitlines()]
    assert len(said) > 15 and [line for line in said if int(line[1]) < 0] == [], done.stderr
    (tmp_path / "certificates" / "ca.pem").write_bytes((certify(tmp_path / "stranger") / "ca.pem").read_bytes())
    refused = subprocess.run([program, host.config], capture_output=True, text=True, timeout=100).stdout
    assert "signed by nobody whom we trust" in refused


class Tunnel:
    """stunnel with both halves of etc/stunnel-zookeeper.conf, names, ports and paths aside."""

    def __init__(self, root, folder, certificates, zookeeper_port, trusted):
        self.port, tls_port = free_port(), free_port()
        text = (root / "etc" / "stunnel-zookeeper.conf").read_text()
        for number in (2, 3):
            text = re.sub(rf"\[zk-{number}\].*?\n\n", "", text, flags=re.S)
        for old, new in ((" 127.0.0.1:12181\n", f" 127.0.0.1:{self.port}\n"), (" zk-1:2281\n", f" 127.0.0.1:{tls_port}\n"),
                         (" 2281\n", f" 127.0.0.1:{tls_port}\n"), (" 127.0.0.1:2181\n", f" 127.0.0.1:{zookeeper_port}\n"),
                         ("/etc/stunnel/zookeeper-ca.pem", f"{trusted}/ca.pem"),
                         ("/etc/stunnel/zk-1.pem", f"{certificates}/server.pem"),
                         ("/etc/stunnel/zk-1.key", f"{certificates}/server.key")):
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        (folder / "stunnel.conf").write_text(text)
        self.log = folder / f"stunnel-{self.port}.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(["stunnel4", folder / "stunnel.conf"], stdout=log, stderr=log,
                                            preexec_fn=die_with_parent)
        wait_until(self.listens, "stunnel listens")

    def listens(self):
        assert self.process.poll() is None, self.log.read_text()
        try:
            socket.create_connection(("127.0.0.1", self.port), 5).close()
        except OSError:
            return False
        return True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def test_zookeeper_is_reached_through_stunnel_if_it_is_the_right_one(quiver, root, tmp_path, server):
    pytest.importorskip("kazoo")
    from zookeepers import ZooKeeper
    host = Host(quiver, root / "build" / "test-plugins", tmp_path)
    with ZooKeeper(tmp_path / "zookeeper") as zookeeper:
        with Tunnel(root, tmp_path, server.certificates, zookeeper.port, server.certificates) as tunnel:
            host.configure(change=lambda text: text + 'coordination = { url = "zookeeper://127.0.0.1:%d"; session = "10s"; };'
                           % tunnel.port, work="")
            host.start()
            assert lock(host) == "mine\n"
            assert host.stop() == 0
        stranger = certify(tmp_path / "stranger")
        with Tunnel(root, tmp_path, server.certificates, zookeeper.port, stranger) as tunnel:
            with socket.create_connection(("127.0.0.1", tunnel.port), 5) as one:
                one.sendall(b"ruok")
                wait_until(lambda: "verify failed" in tunnel.log.read_text(), "the certificate is refused")
