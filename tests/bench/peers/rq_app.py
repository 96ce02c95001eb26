"""The same work on RQ:  python3 rq_app.py work  works, without a fork per task;  python3 rq_app.py TASKS  produces.

REDIS: the server.  DONE: a file that grows by a byte with each task."""
import os
import sys

import redis
from rq import Queue, SimpleWorker

fd = os.open(os.environ["DONE"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)


def noop(payload):
    os.write(fd, b"x")


def main():
    import rq_app  # under the name that the other process knows
    queue = Queue("bench", connection=redis.Redis.from_url(os.environ["REDIS"]))
    if sys.argv[1] == "work":
        SimpleWorker([queue], connection=queue.connection).work(logging_level="WARNING")
        return
    for _ in range(int(sys.argv[1]) // 100):
        queue.enqueue_many([Queue.prepare_data(rq_app.noop, ("0" * 100,), result_ttl=0) for _ in range(100)])


if __name__ == "__main__":
    main()
