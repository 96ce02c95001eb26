"""A history that is made by hand, for the checker's own tests."""
from checker import check
from history import Ask, Commit, DONE, History, Line, Taken

MS = 10**6


class Made:
    """A history that is made by hand, a call at a time."""

    def __init__(self):
        self.h = History(shards=4, ttl_s=1.0, done_count=0, healed_ns=10_000 * MS, finished_ns=10_500 * MS)
        self.now = 0
        self.starts = 0
        self.serial = 0

    def tick(self):
        self.now += MS
        return self.now

    def ask(self, number, key="k", status="kept", **more):
        at = self.tick()
        self.h.asks.append(Ask(number, key, more.pop("lane", "normal"), status, at, at + 1, f"id{number}", **more))
        return self

    def start(self, number, key="k", epoch=7, start=None, **more):
        self.starts = start or self.starts + 1
        line = Line("start", self.tick(), key, more.pop("id", f"id{number}"), number, 1, epoch, self.starts, **more)
        self.h.lines.append(line)
        return line

    def end(self, line, outcome=DONE):
        self.h.lines.append(line._replace(what="end", at_ns=self.tick(), outcome=outcome))

    def result(self, line, shard=0):
        self.serial += 1
        self.h.taken.append(Taken("c", self.tick(), shard, self.serial, line.id, line.number, (line.epoch, line.start),
                                  self.now))
        self.h.commits.append(Commit("c", self.tick(), shard, self.serial, "accepted"))
        self.h.done_count += 1
        return self.h.taken[-1]

    def run(self, number, **more):
        """A whole life: started, ended, its result taken."""
        line = self.start(number, **more)
        self.end(line)
        self.result(line)
        return line

    def rules(self):
        return {v.rule for v in check(self.h).violations}
