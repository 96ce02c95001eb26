"""A producer: submits tasks of its own keys, a few at a time, and writes down what it asked and what it was told.

    producer.py CONFIG BOOK NAME SEED RATE FOLDER SAFE OVER

SAFE (0 or 1): whether its configuration has it wait for a replica.  OVER: "client", the client library, or "http".
Ends on SIGTERM after the submit that is under way.
"""
import itertools
import random
import signal
import sys
import time

from book import Book
from client import Client
from http_client import HttpClient

KEYS = 12
CLUMPS = {"few": (20, 80_000), "paced": (60, 1_000)}  # how many at a time for that handler, and µs that one takes
CLUMP_CHANCE = 0.05

is_over = False


def end(*_):
    global is_over
    is_over = True


def draw(chance, number, name, folder, is_free):
    """A task: mostly short and well behaved.  Those of the first key may be merged; some have none, take long and so run on
    whatever host has a free seat."""
    place = chance.randrange(KEYS)
    key = f"k{name}-{place}"
    if is_free and chance.random() < 0.06:
        words = [number, f"us:{chance.randrange(100_000, 900_000)}", "stamp"]
        return {"number": number, "key": f"free-{number}", "free": True, "lane": "normal", "follow_up": None, "merge": False,
                "delay_ms": 0, "payload": " ".join(map(str, words))}
    task = {"number": number, "key": key, "lane": "high" if chance.random() < 0.15 else "normal", "follow_up": None,
            "merge": place == 0, "delay_ms": chance.randrange(1, 800) if chance.random() < 0.05 and place else 0}
    words = [number, f"us:{int(chance.expovariate(1 / 3000))}"]
    luck = chance.random()
    if luck < 0.02:
        words.append(f"us:{chance.randrange(200_000, 1_500_000)}")  # longer than a lease, now and then
    elif luck < 0.05:
        words.append(f"retry:{chance.randrange(1, 4)}")
    elif luck < 0.06:
        words.append("reject")
    elif luck < 0.065:
        words.append("crash")
    elif luck < 0.08:
        words.append(f"{chance.choice(['crash', 'crash', 'lose', 'hang'])}-once:{folder}/once-{number}")
    if chance.random() < 0.3 and place:
        task["follow_up"] = f"f{key}"
        words.append(f"stamped:{task['follow_up']}")
    words.append("stamp")
    task["payload"] = " ".join(words)
    return task


def draw_clump(chance, numbers, name, is_free):
    """Tasks of a handler that is under a limit, far more than it allows at a time.  Some have no key."""
    handler = chance.choice(list(CLUMPS))
    count, us = CLUMPS[handler]
    tasks = []
    for number in (next(numbers) for _ in range(count)):
        words = [number, f"us:{int(chance.expovariate(1 / us))}"]
        luck = chance.random()
        if luck < 0.02:
            words.append(f"us:{chance.randrange(500_000, 1_500_000)}")
        elif luck < 0.05:
            words.append("retry:1")
        free = is_free and handler == "few" and chance.random() < 0.3
        tasks.append({"number": number, "key": f"free-{number}" if free else f"{handler}{name}-{chance.randrange(30)}",
                      "free": free, "lane": "normal", "follow_up": None, "merge": False, "delay_ms": 0, "handler": handler,
                      "payload": " ".join([*words, "stamp"])})
    return tasks


def main():
    config, path, name, seed, rate, folder, safe, over = sys.argv[1:]
    signal.signal(signal.SIGTERM, end)
    chance, book, own = random.Random(seed), Book(path), name.partition(".")[0]
    numbers = (f"{name}.{count}" for count in itertools.count(1))
    client = HttpClient(folder, random.Random(f"{seed}-http"), lambda: is_over) if over == "http" else Client(config)
    while not is_over:
        if chance.random() < CLUMP_CHANCE:
            tasks = draw_clump(chance, numbers, own, over == "client")
        else:
            tasks = [draw(chance, next(numbers), own, folder, over == "client") for _ in range(chance.randrange(1, 9))]
        book.write({"what": "ask", "number": t["number"], "key": t["key"], "lane": t["lane"],
                    "is_delayed": t["delay_ms"] > 0, "is_merge": t["merge"], "follow_up": t["follow_up"], "is_safe": safe == "1",
                    "handler": t.get("handler", "work")} for t in tasks)
        answers = client.submit("work", tasks)
        book.write({"what": "answer", "number": t["number"], "status": status, "id": task_id}
                   for t, (status, task_id) in zip(tasks, answers))
        time.sleep(min(len(tasks), 8) / float(rate) * chance.uniform(0.5, 1.5))
    client.close()


if __name__ == "__main__":
    main()
