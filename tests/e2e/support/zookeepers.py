"""Real ZooKeeper servers for the end-to-end tests: one, or an ensemble of three.

Each is a Java process of its own (no shell script between, so its pid is its own) on free loopback ports, with its data
in a folder of its own.
"""
import contextlib
import socket
import struct

import kazoo.client

from ensembles import Member, Members
from hosts import wait_until
from servers import free_port

TICK_MS = 500  # sessions may be as short as two of them
CLASSES = "/usr/share/java/zookeeper.jar"
MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"


class ZooKeeper(Member):
    scheme = "zookeeper"
    data = "version-2"

    def __init__(self, folder, number=1):
        super().__init__(folder, number, (free_port(), free_port()))
        self.configure([])

    def configure(self, servers):
        lines = [f"dataDir={self.folder}", f"clientPort={self.port}", "clientPortAddress=127.0.0.1",
                 "admin.enableServer=false", "4lw.commands.whitelist=*", f"tickTime={TICK_MS}", "initLimit=20",
                 "syncLimit=4", "maxClientCnxns=0", "maxSessionTimeout=300000"]
        if len(servers) > 1:
            lines += [f"server.{s.number}=127.0.0.1:{s.peer_ports[0]}:{s.peer_ports[1]}" for s in servers]
        (self.folder / "zoo.cfg").write_text("\n".join(lines) + "\n")
        (self.folder / "myid").write_text(f"{self.number}\n")

    def command(self):
        return ["java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
                "-Dzookeeper.forceSync=no", "-cp", CLASSES, MAIN, str(self.folder / "zoo.cfg")]

    def ask(self, word):
        """A four-letter word, or None if nobody answers."""
        try:
            with contextlib.closing(socket.create_connection(("127.0.0.1", self.port), 1)) as one:
                one.settimeout(1)
                one.sendall(word.encode())
                answer = b""
                while piece := one.recv(65536):
                    answer += piece
                return answer.decode()
        except OSError:
            return None

    def mode(self):
        """standalone, leader, follower, or None: it does not serve."""
        answer = self.ask("srvr") or ""
        return answer.partition("Mode: ")[2].split("\n")[0] or None

    def answers(self):
        assert self.process.poll() is None, f"it ended:\n{self.log()}"
        return self.mode() is not None

    def end_session(self, session):
        """Somebody else's, as if its owner had not been heard of."""
        hello = struct.pack(">iqiqi16s", 0, 0, 10000, session, 16, password(session))
        goodbye = struct.pack(">ii", 1, -11)
        words = b"".join(struct.pack(">i", len(word)) + word for word in (hello, goodbye))

        def is_gone():
            """Its owner may be quick to come back, and then takes it from us before it is closed."""
            with contextlib.closing(socket.create_connection(("127.0.0.1", self.port), 10)) as one:
                one.sendall(words)
                answer = b""
                while piece := one.recv(4096):
                    answer += piece
            return len(answer) >= 12 and struct.unpack_from(">i", answer, 8)[0] == 0  # the timeout of no session

        wait_until(is_gone, "the session is over")

    @contextlib.contextmanager
    def client(self, **options):
        """An independent client (kazoo)."""
        client = kazoo.client.KazooClient(f"127.0.0.1:{self.port}", timeout=10, **options)
        client.start(20)
        try:
            yield client
        finally:
            client.stop()
            client.close()


def password(session):
    """Of a session: the server makes it from its number, with Java's Random."""
    state, words = (session ^ 0xB3415C00 ^ 0x5DEECE66D) & (1 << 48) - 1, b""
    while len(words) < 16:
        state = (state * 0x5DEECE66D + 0xB) & (1 << 48) - 1
        words += (state >> 16).to_bytes(4, "little")
    return words


class Ensemble(Members):
    kind = ZooKeeper

    def leader(self):
        return wait_until(lambda: next((s for s in self.servers if s.process and s.mode() == "leader"), None),
                          "a server leads")

    def client(self, **options):
        return next(s for s in self.servers if s.process).client(**options)
