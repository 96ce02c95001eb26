"""Work for hosts that come, go and reload: so much of it that no key ever waits for a producer."""
import sys
import threading

from processes import ROOT

sys.path.append(str(ROOT / "tests" / "e2e" / "support"))
from hosts import wait_until  # noqa: E402


class Supply(threading.Thread):
    """Keeps every key supplied: one without tasks would seem to pause.  Each task takes a little time.

    submit(tasks) and done() are those of a host or of a fleet."""

    def __init__(self, submit, done, keys, task_us, waiting):
        super().__init__(daemon=True)
        self.submit, self.done, self.keys, self.task_us, self.waiting = submit, done, keys, task_us, waiting
        self.is_over, self.count = threading.Event(), 0

    def run(self):
        while not self.is_over.is_set():
            batch = [{"handler": "work", "key": self.keys[n % len(self.keys)],
                      "payload": f"{self.count + n} us:{self.task_us}"} for n in range(self.waiting)]
            self.submit(batch)
            self.count += len(batch)
            wait_until(lambda: self.count - self.done() < self.waiting or self.is_over.is_set(), "it keeps up")

    def begin(self):
        """Started, and the first tasks are done."""
        self.start()
        wait_until(lambda: self.done() > 1000, "it has begun")

    def finish(self):
        if self.is_alive():
            self.is_over.set()
            self.join()
