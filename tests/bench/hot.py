"""One key that has most of the work: how fast it goes, and what the others notice."""
import statistics
import time

from place import opened, shard_of
from processes import wait_done
from rates import add_bare, best_rate
from table import share

HOT_TASKS = 20000  # of one key: more than are done while others are measured beside it
ROUNDS = 3


def measure_hot(table, options, kind):
    """Others' rate without it is measured first, each time.  No other key is in its shard, so that each can be counted."""
    hot_shard = shard_of("hot")
    with opened(kind) as place:
        place.start().warm()
        add_bare(table, place, options.tasks)
        alone = best_rate(place, options.tasks // 20, ROUNDS, key="hot")
        table.add("hot key: one key alone", alone, "tasks/s", how=f"{place.level}; best of {ROUNDS}")
        if kind.name == "redis":
            trip_ms = share(place.bare_latencies(options.singles), .5)
            table.add("hot key: one key alone, tasks in a bare round trip", alone * trip_ms / 1000, "", bar="hot.alone",
                      how=f"RPUSH to BLPOP takes {trip_ms:.3f} ms")

        def hot():
            return place.done_of()[hot_shard]

        ratios, beside = [], []
        for _ in range(ROUNDS):
            without = place.through(options.tasks, avoid="hot")
            goal = hot() + HOT_TASKS
            place.push(HOT_TASKS, key="hot")
            first, began = hot(), time.monotonic()
            ratios.append(without / place.through(options.tasks, avoid="hot"))
            beside.append((hot() - first) / (time.monotonic() - began))
            wait_done(hot, goal, pause=0.1)
        table.add("hot key: beside others", statistics.median(beside), "tasks/s", how=f"{place.level}; median of {ROUNDS}")
        table.add("hot key: beside others / alone", statistics.median(beside) / alone, "", bar="hot.beside",
                  how=f"{place.level}; median / best")
        table.add("hot key: others' rate beside it / without it", statistics.median(ratios), "", bar="hot.others",
                  how=f"{place.level}; median of {ROUNDS}")


def measure_ordered(table, options, kind):
    """One key alone, whose tasks come to handle_many in calls of up to 256."""
    with opened(kind, handler='batch = { max = 256; wait = "1ms"; same_key = true; };') as place:
        place.start().warm()
        rate = best_rate(place, options.tasks, ROUNDS, key="hot")
        table.add("hot key: one key alone, ordered batches of 256", rate, "tasks/s", bar="hot.ordered",
                  how=f"{place.level}; best of {ROUNDS}")
