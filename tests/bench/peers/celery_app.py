"""The same work on Celery:  python3 -m celery -A celery_app worker  works;  python3 celery_app.py TASKS  produces.

REDIS: the server.  DONE: a file that grows by a byte with each task."""
import os
import sys

from celery import Celery

app = Celery("bench", broker=os.environ["REDIS"])
app.conf.update(task_ignore_result=True, worker_prefetch_multiplier=128, task_acks_late=False, worker_send_task_events=False,
                task_serializer="json", broker_pool_limit=2, worker_enable_remote_control=False)
fd = os.open(os.environ["DONE"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)


@app.task(name="noop")
def noop(payload):
    os.write(fd, b"x")


if __name__ == "__main__":
    with app.producer_pool.acquire(block=True) as producer:
        for _ in range(int(sys.argv[1])):
            noop.apply_async(("0" * 100,), producer=producer)
