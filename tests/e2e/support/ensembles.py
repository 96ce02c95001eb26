"""What etcd and ZooKeeper have in common for the end-to-end tests: servers that replicate, one or three."""
import pathlib
import shutil

from hosts import wait_until
from servers import Server


class Member(Server):
    """One server; a kind of it says how it is configured, started and asked."""

    scheme = None  # of its URL
    data = None  # the folder of its data, below its own

    def __init__(self, folder, number, peer_ports):
        super().__init__(folder)
        self.number = number
        self.peer_ports = peer_ports
        self.url = f"{self.scheme}://127.0.0.1:{self.port}/quiver"

    def configure(self, servers):
        """Tells it who replicates with it."""
        raise NotImplementedError

    def launch(self):
        """Starts it without waiting: alone, a server of three never serves."""
        answers, self.answers = self.answers, lambda: True
        try:
            return self.start()
        finally:
            self.answers = answers

    def wipe(self):
        """Killed, emptied and started again."""
        self.kill9()
        shutil.rmtree(self.folder / self.data, ignore_errors=True)
        return self.start()


class Members:
    """Three servers; one leads."""

    kind = None  # of the servers

    def __init__(self, folder, count=3):
        scheme = self.kind.scheme
        self.servers = [self.kind(pathlib.Path(folder) / f"{scheme}-{n}", n) for n in range(1, count + 1)]
        for server in self.servers:
            server.configure(self.servers)
        self.url = f"{scheme}://" + ",".join(f"127.0.0.1:{s.port}" for s in self.servers) + "/quiver"

    def start(self):
        for server in self.servers:
            server.launch()
        return self.wait()

    def wait(self):
        """Until every server that runs serves."""
        for server in self.servers:
            if server.process:
                wait_until(server.answers, f"server {server.number} serves")
        return self

    def close(self):
        for server in self.servers:
            server.close()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.close()
