"""Handlers that take their time, on 64 seats; and handlers that take many tasks in one call."""
import os

from place import opened
from processes import tool
from rates import add_bare, add_cpu, best_rate

SEATS = 64
BATCHES = (1, 10, 100)
CALL_US = 1000  # what a call takes that is worth a batch: about a transaction


def threads_alone(ms, tasks):
    """As many threads that sleep as long, with one queue under a mutex between them: (tasks/s, CPU seconds)."""
    seconds, cpu = map(float, tool("thread_queue", SEATS, ms * 1000, tasks).split())
    return tasks / seconds, cpu


def measure_handlers(table, options, kind):
    processes = max(count for count in (1, 2, 4, 8, 16) if count <= (os.cpu_count() or 1))
    for ms in (1, 20):
        ideal = SEATS / ms * 1000
        tasks = int(ideal * options.handler_s)
        with opened(kind, handler=f"processes = {processes}; threads = {SEATS // processes};",
                    settings=f"sleep_us = {ms * 1000};") as place:
            place.start().warm(2000)
            if ms == 1:
                add_bare(table, place, options.tasks)
            how = f"{place.how()}, {processes} runners of {SEATS // processes} seats; best of 2"
            rounds = [(threads_alone(ms, tasks), best_rate(place, tasks, 1)) for _ in range(2)]
            (alone, cpu), rate = max(one for one, _ in rounds), max(rate for _, rate in rounds)
            what = f"{SEATS} threads that sleep {ms} ms on one mutex queue"
            table.add(what, alone, "tasks/s", how="no Quiver; best of 2")
            table.add(f"CPU of {what}", cpu / tasks * 1e6, "us/task", how="no Quiver")
            table.add(f"handler of {ms} ms, {SEATS} seats", rate, "tasks/s", how=how)
            table.add(f"handler of {ms} ms, {SEATS} seats / {SEATS} threads", rate / alone, "", bar="handlers" if ms == 1 else None,
                      how=f"of {what}; best / best, in turns")
            table.add(f"handler of {ms} ms, {SEATS} seats / ideal", rate / ideal, "", how=f"ideal: {ideal:.0f} tasks/s")
            add_cpu(table, place, tasks, f"handler of {ms} ms")


def measure_batch(table, options, kind):
    for what, settings, counts in (("no-op", "", [options.tasks] * len(BATCHES)),
                                   (f"{CALL_US // 1000} ms a call", f"sleep_us = {CALL_US};",
                                    [2000 * batch for batch in BATCHES])):
        alone = None
        for batch, tasks in zip(BATCHES, counts):
            tasks = min(tasks, options.tasks)
            with opened(kind, handler=f"batch = {{ max = {batch}; }};", settings=settings) as place:
                place.start().warm(1000)
                if batch == BATCHES[0] and not settings:
                    add_bare(table, place, options.tasks)
                rate = best_rate(place, tasks, 2)
                alone = alone or rate
                at = (batch, "a call")
                table.add(f"batches, {what}", rate, "tasks/s", at=at, how=f"{place.how()}, one seat; best of 2")
                table.add(f"batches, {what} / one by one", rate / alone, "x", at=at)
