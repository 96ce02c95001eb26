"""What others on the machine could have written is not run: refused with the command that mends it, and taken after it."""
import os
import re
import subprocess

import pytest

from private_hosts import NEEDS_ROOT, PrivateHost

SPIES = 'plugin = "spies.so";'
STRANGER = 12345


@pytest.fixture
def private(quiver, root):
    villains = quiver.parent / "villains"
    made = PrivateHost(quiver, villains if villains.exists() else root / "build/villains")
    yield made
    made.close()


def refused(private):
    """Does not start; returns what it said."""
    private.start("--strict", is_ready=False)
    assert private.wait() == 1
    return private.log()


def mend(said):
    """Does exactly what the message says."""
    (command,) = set(re.findall(r"; (ch(?:mod|own) [^,\n]*)", said))
    subprocess.run(command, shell=True, check=True)
    return command


def refused_until_mended(private, path, *, checks=True):
    said = refused(private)
    assert str(path) in said
    if checks:
        assert str(path) in private.cli("check", code=1)
    mend(said)
    private.start()
    assert private.ask("spies", "who").split()[0] == str(os.geteuid())
    assert private.stop() == 0
    assert "everybody" not in private.cli("check")


@pytest.mark.parametrize("what", ["state", "plugins", "plugins/spies.so", "runtime.cfg", "."])
def test_what_everybody_can_write_is_refused_with_the_remedy(private, what):
    private.configure(spies=SPIES)
    (private.folder / "state").mkdir(mode=0o700)
    (private.folder / what).chmod(0o777)
    refused_until_mended(private, private.folder / what)


def test_a_state_folder_that_everybody_can_write_is_refused_on_redis_too(private, redis_server):
    redis_server.start()
    private.configure(store=f'url = "redis+unix:{redis_server.socket}";', spies=SPIES)
    (private.folder / "state").mkdir()
    (private.folder / "state").chmod(0o777)
    refused_until_mended(private, private.folder / "state")


def test_a_state_folder_like_tmp_is_refused(private):
    """Others could not replace what is there, but put a store or a socket there first."""
    private.configure(spies=SPIES)
    (private.folder / "state").mkdir()
    (private.folder / "state").chmod(0o1777)
    refused_until_mended(private, private.folder / "state")


def test_an_included_file_that_everybody_can_write_is_refused(private):
    more = private.folder / "more.cfg"
    more.write_text('log = { level = "debug"; };\n')
    more.chmod(0o666)
    private.configure(spies=SPIES, change=lambda text: text + '@include "more.cfg"\n')
    refused_until_mended(private, more)


def test_a_password_file_that_everybody_can_write_is_refused(private, redis_server):
    redis_server.start()
    secret = private.folder / "secret"
    secret.write_text("sesame\n")
    secret.chmod(0o666)
    with redis_server.client() as client:
        client.config_set("requirepass", "sesame")
    store = f'url = "redis+unix:{redis_server.socket}"; password_file = "{secret}";'
    private.configure(store=store, spies=SPIES)
    refused_until_mended(private, secret)


@NEEDS_ROOT
@pytest.mark.parametrize("what", ["state", "plugins", "plugins/spies.so", "runtime.cfg", "."])
def test_what_belongs_to_another_user_is_refused_with_the_remedy(private, what):
    private.configure(spies=SPIES)
    (private.folder / "state").mkdir(mode=0o700)
    os.chown(private.folder / what, STRANGER, 0)
    refused_until_mended(private, private.folder / what, checks=False)


@NEEDS_ROOT
def test_what_a_strange_group_can_write_is_refused_with_the_remedy(private):
    private.configure(spies=SPIES)
    private.plugins.chmod(0o775)  # root's own group
    private.start()
    assert private.stop() == 0
    os.chown(private.plugins, 0, STRANGER)
    refused_until_mended(private, private.plugins)


@NEEDS_ROOT
def test_whoever_checks_for_another_user_is_warned(private):
    """Root checks what a host of that user is going to use: to that host it is sound."""
    private.configure(spies=SPIES)
    state = private.folder / "state"
    state.mkdir(mode=0o700)
    os.chown(state, STRANGER, 0)
    said = private.cli("check")
    assert f"warning: state folder {state}: it belongs to user {STRANGER}" in said and ": ok" in said


@NEEDS_ROOT
def test_a_link_of_another_user_is_refused_with_the_remedy(private):
    private.configure(spies=SPIES)
    (private.plugins / "spies.so").rename(private.plugins / "real.so")
    link = private.plugins / "spies.so"
    link.symlink_to("real.so")
    os.chown(link, STRANGER, 0, follow_symlinks=False)
    refused_until_mended(private, link, checks=False)


def test_producers_need_not_trust_the_settings(private):
    """Who submits runs nothing of what the file says."""
    private.configure(spies=SPIES).start()
    private.config.chmod(0o666)
    assert private.ask("spies", "who").split()[0] == str(os.geteuid())
    assert "everybody on this machine can write to it" in private.cli("reload", code=1)
