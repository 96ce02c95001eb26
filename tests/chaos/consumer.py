"""A consumer of results: takes some, writes them down, commits them; at times it is too slow and loses its hold.

    consumer.py CONFIG BOOK SEED

Ends on SIGTERM.
"""
import random
import signal
import sys
import time

from book import Book, now_ns
from client import Client

LEASE_MS = 1000

is_over = False


def end(*_):
    global is_over
    is_over = True


def work(client, book, chance):
    """Returns how many there were."""
    asked_ns = now_ns()
    found, results = client.consume(chance.randrange(1, 64), LEASE_MS)
    try:
        book.write({"what": "taken", "asked_ns": asked_ns, "shard": r.shard, "serial": r.serial, "id": r.id,
                    "data": r.data} for r in found)
        if not found:
            return 0
        if chance.random() < 0.02:
            time.sleep(LEASE_MS / 1000 * 1.5)
        # Until the answer is there it is open whether they are gone.
        commits = [{"what": "commit", "shard": r.shard, "serial": r.serial} for r in found]
        book.write({**c, "status": "unknown"} for c in commits)
        refused = client.commit(results)
        book.write({**c, "status": "refused" if no else "accepted"} for c, no in zip(commits, refused))
        return len(found)
    finally:
        client.free(results)


def main():
    config, path, seed = sys.argv[1:]
    signal.signal(signal.SIGTERM, end)
    chance, book, client = random.Random(seed), Book(path), Client(config)
    while not is_over:
        try:
            if work(client, book, chance):
                continue
        except OSError as error:
            print(error, flush=True)
        time.sleep(0.05)
    client.close()


if __name__ == "__main__":
    main()
