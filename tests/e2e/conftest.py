"""What the end-to-end tests share."""
import os
import pathlib

import pytest

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
