"""A wall clock that a test steps, for one program: tests/preload/world.c reads the step from a file."""
import os
import struct


class SteppedClock:
    """`variables` are for the program's environment."""

    def __init__(self, path, root):
        self.path = path
        path.write_bytes(struct.pack("q", 0))
        self.variables = {"LD_PRELOAD": str(root / "build" / "tests" / "preload" / "world.so"), "QUIVER_TEST_STEP": str(path)}

    def step(self, ms):
        """In place: the program has mapped the file, and one that is cut short would end it with SIGBUS."""
        with open(self.path, "r+b", buffering=0) as file:
            os.pwrite(file.fileno(), struct.pack("q", ms), 0)
