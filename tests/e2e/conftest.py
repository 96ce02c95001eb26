"""What the end-to-end tests share."""
import os
import pathlib
import random
import sys
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e" / "support"))

from hosts import Host
from runs import Tries


@pytest.fixture(scope="session")
def root():
    """The top of the source tree."""
    return ROOT


@pytest.fixture(scope="session")
def quiver():
    """The binary under test; QUIVER names another one (a sanitizer's, say)."""
    path = pathlib.Path(os.environ.get("QUIVER", ROOT / "build" / "quiver"))
    assert path.exists(), f"{path} is not there; run make first"
    return path


@pytest.fixture
def tries(quiver, tmp_path):
    """Runs `quiver try`; at the end of the test neither a process nor a file of it may be left."""
    made = Tries(quiver, tmp_path)
    try:
        yield made
        made.assert_nothing_left()
    finally:
        made.close()


@pytest.fixture
def host(quiver, root, tmp_path):
    """A folder for `quiver run` with the handlers of tests/plugins."""
    plugins = root / "build" / "test-plugins"
    assert (plugins / "ledger.so").exists(), "run make test-binaries first"
    made = Host(quiver, plugins, tmp_path)
    yield made
    made.close()


@pytest.fixture
def chance():
    """Random numbers whose seed is printed; QUIVER_TEST_SEED gives the same again."""
    seed = int(os.environ.get("QUIVER_TEST_SEED", random.randrange(1 << 32)))
    print(f"QUIVER_TEST_SEED={seed}")
    return random.Random(seed)


@pytest.fixture
def redis_server():
    """Not started yet, so that a test may choose how."""
    pytest.importorskip("redis")
    from redis_hosts import RedisServer

    with tempfile.TemporaryDirectory(prefix="quiver-") as folder:  # a socket's path is short
        made = RedisServer(pathlib.Path(folder))
        yield made
        made.close()


@pytest.fixture
def redis_host(quiver, tmp_path, redis_server):
    """A host whose store is a Redis that keeps nothing."""
    from redis_hosts import RedisHost

    made = RedisHost(quiver, quiver.parent / "test-plugins", tmp_path, redis_server.start())
    yield made
    made.close()
