"""Which tests of test_fleet.py run on every coordination.

Those marked `whatever_coordination` are about the host's own patience with calls and leases: in the short run they run
on the local coordination alone, in the long one (QUIVER_TEST_LONG) on each.
"""
import os


def pytest_configure(config):
    config.addinivalue_line("markers", "whatever_coordination: in the short run on the local coordination alone")


def pytest_collection_modifyitems(config, items):
    if os.environ.get("QUIVER_TEST_LONG"):
        return
    left_out = [item for item in items
                if item.get_closest_marker("whatever_coordination") and item.path.name != "test_fleet.py"]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
