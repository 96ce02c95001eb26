"""What the end-to-end tests share."""
import os
import pathlib

import pytest

from runs import Tries

ROOT = pathlib.Path(__file__).resolve().parents[2]


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
