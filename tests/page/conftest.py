"""What the tests of the page share: a browser, and two hosts with everything there is to see."""
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e" / "support"))


@pytest.fixture(scope="session")
def quiver():
    path = ROOT / "build" / "quiver"
    assert path.exists(), f"{path} is not there; run make first"
    return path


@pytest.fixture(scope="module")
def browser():
    from browser import Browser

    made = Browser()
    yield made
    made.close()


@pytest.fixture(scope="module")
def shown(quiver, tmp_path_factory, browser):
    from rig import Shown

    made = Shown(quiver, tmp_path_factory.mktemp("page"), browser)
    try:
        made.start()
        yield made
    finally:
        made.close()
