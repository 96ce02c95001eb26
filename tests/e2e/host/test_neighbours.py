"""Handlers and keys that are trouble, and their neighbours who must not notice.  QUIVER_TEST_LONG: the full figures."""
import os

from hosts import wait_until

IS_LONG = "QUIVER_TEST_LONG" in os.environ
KEYS = 100_000 if IS_LONG else 10_000
HOT = 100_000 if IS_LONG else 4_000
GROWTH_KIB = 48 * 1024  # far less than so many tasks or keys would take


def task(handler, key, payload):
    return {"handler": handler, "key": key, "payload": payload}


def memory_kib(pid):
    with open(f"/proc/{pid}/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def test_a_handler_that_fails_for_every_key_slows_nobody_down(host):
    host.configure(shards=4, bad="threads = 4;", good="threads = 4;").start()
    before = memory_kib(host.process.pid)
    host.submit([task("bad", f"b{n}", f"{n} later:600000 retry:9") for n in range(KEYS)])
    host.submit([task("good", f"g{n % 50}", str(KEYS + n)) for n in range(1000)])
    # The good ones were behind all of the bad ones in every shard.
    host.wait_done(1000, 300)
    wait_until(lambda: host.sum("parked") == KEYS, "every key waits for its retry", 600)
    assert memory_kib(host.process.pid) - before < GROWTH_KIB
    host.submit([task("good", f"g{n % 50}", str(KEYS + 1000 + n)) for n in range(1000)])
    host.wait_done(2000, 300)
    assert host.rows("dead") == []


def test_one_key_with_many_tasks_leaves_the_others_alive(host):
    host.configure(shards=1, work="threads = 4;").start()
    before = memory_kib(host.process.pid)
    host.submit([task("work", "hot", f"{n} us:1000") for n in range(HOT)])
    others = [task("work", f"k{n}", str(HOT + n)) for n in range(300)]
    host.submit(others)
    wait_until(lambda: sum(n >= HOT for n in host.starts()) == len(others), "the others have run", 300)
    assert len(host.starts("hot")) < HOT, "the hot key was not through: they did not wait for it"
    assert memory_kib(host.process.pid) - before < GROWTH_KIB
    if not IS_LONG:
        host.wait_done(HOT + len(others), 120)
        assert host.starts("hot") == list(range(HOT))


def test_a_key_that_comes_later_does_not_wait_for_those_who_have_plenty(host):
    """One seat for 40 keys that never run dry: whoever comes has its turn among them."""
    busy, each = 40, 150
    host.configure(shards=20, work="").start()
    host.submit([task("work", f"busy{n % busy}", f"{n} us:1000") for n in range(busy * each)])
    wait_until(lambda: len(host.starts()) > 2 * busy, "they are at work")
    late = [f"late{n}" for n in range(5)]
    host.submit([task("work", key, str(busy * each + n)) for n, key in enumerate(late)])
    before = len(host.starts())
    wait_until(lambda: all(host.starts(key) for key in late), "the late ones have run", 120)
    assert len(host.starts()) - before < busy * each // 2, "they waited until the others were through"
