"""A PostgreSQL server of the tests' own: in a temporary folder, on a Unix socket, gone afterwards."""
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile

from hosts import wait_until

SETTINGS = """
listen_addresses = ''
unix_socket_directories = '{folder}'
fsync = {fsync}
max_connections = 40
shared_buffers = 16MB
"""
# Who has a password must give it; the tests themselves look as postgres.
ACCESS = """
local all writer   scram-sha-256
local all postgres trust
"""


def programs():
    """The newest version's folder: Debian keeps servers' programs out of PATH."""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[-3]))
    assert found, "PostgreSQL is not installed; run make test-deps"
    return found[-1].parent


class Postgres:
    def __init__(self, fsync="off"):
        self.bin = programs()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="quiver-pg-"))
        self.data = self.folder / "data"
        # A server refuses to run as root.
        self.who = {}
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            self.who = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        self.process = None
        subprocess.run([self.bin / "initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8",
                        "--locale=C", "--no-sync"], check=True, stdout=subprocess.DEVNULL, cwd=self.folder, **self.who)
        (self.data / "postgresql.auto.conf").write_text(SETTINGS.format(folder=self.folder, fsync=fsync))
        (self.data / "pg_hba.conf").write_text(ACCESS)

    def start(self):
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen([self.bin / "postgres", "-D", self.data], stdout=log, stderr=log,
                                            cwd=self.folder, **self.who)
        wait_until(self.is_ready, "PostgreSQL is ready")
        return self

    def is_ready(self):
        assert self.process.poll() is None, (self.folder / "log").read_text()
        return subprocess.run([self.bin / "pg_isready", "-q", "-h", self.folder]).returncode == 0

    def stop(self, number=signal.SIGINT):
        """SIGINT: whoever is connected is thrown out.  SIGQUIT: as if it had crashed."""
        self.process.send_signal(number)
        self.process.wait(60)

    def close(self):
        if self.process and self.process.poll() is None:
            self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder)

    def psql(self, database):
        """The words of a psql that stops at the first error and shows bare rows."""
        return ["psql", "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", "-h", str(self.folder), "-U", "postgres", database]

    def sql(self, text, database="app"):
        """Rows as lists of texts."""
        done = subprocess.run([*self.psql(database), "-F", "\x1f"], input=text, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return [line.split("\x1f") for line in done.stdout.splitlines()]

    def value(self, text):
        rows = self.sql(text)
        return rows[0][0] if rows else None

    def fresh(self, ddl):
        """An empty database `app`, and these tables in it."""
        self.sql("DROP DATABASE IF EXISTS app WITH (FORCE)", "postgres")
        self.sql("CREATE DATABASE app", "postgres")
        self.sql(ddl)

    def url(self, user="postgres", more=""):
        return f"postgres:///app?host={self.folder}&user={user}{more}"
