"""etc/stunnel-redis.conf as it is, names, ports and paths aside: a host whose every byte to Redis is encrypted."""
import socket
import subprocess

import pytest

from hosts import check_ledger, wait_until
from proxy import Proxy
from redis_sites import SiteHost
from servers import RedisServer, die_with_parent, free_port

pytest.importorskip("redis")


def certify(folder, name):
    """A certificate that signs itself, for redis-1."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", "-subj", "/CN=redis-1", "-addext", "subjectAltName=DNS:redis-1",
                    "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.pem"], check=True, capture_output=True)
    (folder / f"{name}.key").chmod(0o600)


class Tunnel:
    """stunnel with both halves of the example, and a proxy between them that sees what goes over the wire."""

    def __init__(self, root, folder, redis_port, trusted="redis-1"):
        self.port, tls_port = free_port(), free_port()
        self.wire = Proxy(tls_port)
        text = (root / "etc" / "stunnel-redis.conf").read_text()
        for old, new in ((" 127.0.0.1:6380\n", f" 127.0.0.1:{self.port}\n"),
                         (" redis-1:6390\n", f" 127.0.0.1:{self.wire.port}\n"),
                         (" 6390\n", f" 127.0.0.1:{tls_port}\n"), (" 127.0.0.1:6379\n", f" 127.0.0.1:{redis_port}\n"),
                         ("/etc/stunnel/redis-ca.pem", f"{folder}/{trusted}.pem"),
                         ("/etc/stunnel/redis-1", f"{folder}/redis-1")):
            assert text.count(old) in (1, 2), old
            text = text.replace(old, new)
        (folder / "stunnel.conf").write_text(text)
        self.log = folder / "stunnel.log"
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
        self.wire.close()


@pytest.fixture
def site(quiver, root, tmp_path):
    certify(tmp_path, "redis-1")
    certify(tmp_path, "stranger")
    host = SiteHost(quiver, root / "build" / "test-plugins", tmp_path)
    with RedisServer(tmp_path / "redis") as server:
        yield host, server
        host.close()


def test_a_host_works_through_stunnel_and_cut_tunnels_cost_nothing(site, root, tmp_path):
    host, server = site
    with Tunnel(root, tmp_path, server.port) as tunnel:
        host.configure(f"redis://127.0.0.1:{tunnel.port}").start()
        expected = {f"k{k}": list(range(k, 300, 10)) for k in range(10)}
        host.submit([{"handler": "work", "key": f"k{n % 10}", "payload": f"{n} us:2000"} for n in range(300)])
        for _ in range(3):
            host.wait_progress(20)
            tunnel.wire.cut()
        host.wait_empty()
        assert host.stop() == 0
        check_ledger(host.ledger(), expected)
        assert tunnel.wire.accepted > 3 and tunnel.wire.requests.passed_bytes > 0


def test_a_redis_with_another_certificate_is_not_spoken_to(site, root, tmp_path):
    host, server = site
    with Tunnel(root, tmp_path, server.port, trusted="stranger") as tunnel:
        host.configure(f"redis://127.0.0.1:{tunnel.port}").start(is_ready=False)
        wait_until(lambda: "verify failed" in tunnel.log.read_text(), "the certificate is refused")
        host.close()
    assert server.do("DBSIZE") == 0
