"""Hosts as another user would start them, in a folder that this user can reach: pytest's own is for root alone."""
import os
import pathlib
import pwd
import shutil
import subprocess
import tempfile

import pytest

from hosts import Host

CONFIG = """
app = "test";
shards = 2;
state = "{folder}/state";
plugins = "{folder}/plugins";
store = {{ {store} }};
lease = {{ ttl = "1s"; }};
reload = {{ probation = "0"; }};
handlers = {{
{handlers}
}};
"""

NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run something as another user")


class PrivateHost(Host):
    """With the villains as plugins, in copies of its own, so that all its parents are what a test makes of them."""

    def __init__(self, quiver, villains):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="quiver-private-"))
        folder.chmod(0o755)
        super().__init__(shutil.copy(quiver, folder / "quiver"), folder / "plugins", folder)
        self.plugins.mkdir()
        for name in ("spies", "segv", "spin"):
            shutil.copy(villains / f"{name}.so", self.plugins)
        self.env, self.user = {}, None

    def configure(self, store=None, change=lambda text: text, **handlers):
        """A handler per name; its value is its settings, as text."""
        self.store = store or f'url = "sqlite:{self.folder}/q.db"; synchronous = "normal";'
        texts = [f"  {name} = {{ {settings} }};\n" for name, settings in handlers.items()]
        self.config.write_text(change(CONFIG.format(folder=self.folder, store=self.store, handlers="".join(texts))))
        return self

    def as_user(self, name):
        """From now on `run` is started by that user, who can make what it needs."""
        who = pwd.getpwnam(name)
        self.user = {"user": who.pw_uid, "group": who.pw_gid, "extra_groups": []}
        os.chown(self.folder, who.pw_uid, who.pw_gid)
        return self

    def start(self, *options, is_ready=True):
        self.logs.append(self.folder / f"log-{len(self.logs)}")
        with open(self.logs[-1], "wb") as log:
            self.process = subprocess.Popen([self.quiver, "run", *options, "-c", self.config], stderr=log, stdout=log,
                                            cwd=self.folder, env={**os.environ, **self.env}, **(self.user or {}))
        if is_ready:
            self.wait_for_log("event=running")
        return self

    def ask(self, handler, payload):
        """What the handler answers."""
        return self.cli("submit", handler, "--wait-for", "60s", payload).strip()

    def cli(self, *words, text=None, code=0):
        done = subprocess.run([self.quiver, *map(str, words), "-c", self.config], input=text, capture_output=True,
                              text=True, timeout=120, env={**os.environ, **self.env})
        assert done.returncode == code, done.stderr + done.stdout
        return done.stdout + done.stderr

    def close(self):
        super().close()
        shutil.rmtree(self.folder, ignore_errors=True)  # a guard may be removing things, too
