"""A real Redis on a socket, and hosts whose store it is."""
import signal
import subprocess

import redis

from hosts import Host, wait_until


class RedisServer:
    """redis-server in a folder; the same data again after each start, if it keeps any."""

    def __init__(self, folder, *words):
        self.folder, self.words = folder, words
        self.socket = str(folder / "redis.sock")
        self.process = None

    def start(self):
        words = ["redis-server", "--port", "0", "--unixsocket", self.socket, "--dir", self.folder, "--save", "",
                 "--logfile", self.folder / "redis.log", *self.words]
        self.process = subprocess.Popen(list(map(str, words)))
        wait_until(self.answers, "redis-server answers")
        return self

    def client(self):
        return redis.Redis(unix_socket_path=self.socket, socket_timeout=30)

    def answers(self):
        try:
            with self.client() as client:
                return client.ping()
        except redis.exceptions.RedisError:
            return False

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def close(self):
        if self.process and self.process.poll() is None:
            self.kill()


class RedisHost(Host):
    def __init__(self, quiver, plugins, folder, server):
        super().__init__(quiver, plugins, folder)
        self.redis = server

    def configure(self, shards=8, change=lambda text: text, **handlers):
        self.shards = shards

        def on_redis(text):
            url = f'url = "sqlite:{self.folder}/q.db"'
            assert url in text
            text = text.replace(url, f'url = "redis+unix:{self.redis.socket}"')
            return change(text + f'coordination = {{ url = "local:{self.folder}/state"; }};\n')

        return super().configure(shards=shards, change=on_redis, **handlers)

    def sum(self, what):
        """Of a field of every shard, as an independent reader sees it."""
        with self.redis.client() as client:
            return sum(int(client.hget(f"quiver:{{test:{i}}}:shard", what) or 0) for i in range(self.shards))
