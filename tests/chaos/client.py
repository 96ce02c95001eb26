"""The client library, as a producer in another language uses it (client.h is the reference)."""
import collections
import ctypes
import errno
import os
import pathlib

LIBRARY = pathlib.Path(os.environ.get("QUIVER_LIBRARY",
                                      pathlib.Path(__file__).resolve().parents[2] / "build" / "libquiver.so.1"))
ID_SIZE = 65
LANES = {"low": -1, "normal": 0, "high": 1}

Result = collections.namedtuple("Result", "item shard serial id data")


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("shards", ctypes.c_uint32), ("config", ctypes.c_char_p),
                ("store", ctypes.c_char_p), ("app", ctypes.c_char_p)]


class Task(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("lane", ctypes.c_int32), ("handler", ctypes.c_char_p),
                ("key", ctypes.c_char_p), ("payload", ctypes.c_char_p), ("payload_size", ctypes.c_size_t),
                ("delay_ms", ctypes.c_uint64), ("unique_ms", ctypes.c_uint64), ("timeout_ms", ctypes.c_uint64),
                ("reply_ms", ctypes.c_uint64), ("headers", ctypes.c_void_p), ("headers_count", ctypes.c_size_t),
                ("attempts", ctypes.c_uint32), ("reserved", ctypes.c_uint32), ("idempotency_key", ctypes.c_char_p),
                ("idempotency_ms", ctypes.c_uint64), ("headers2", ctypes.c_void_p),
                ("headers2_count", ctypes.c_size_t), ("merge", ctypes.c_bool), ("debounce_ms", ctypes.c_uint64)]


class Submitted(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int32), ("id", ctypes.c_char * ID_SIZE)]


class ResultItem(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("shard", ctypes.c_uint32), ("number", ctypes.c_uint64),
                ("at_ms", ctypes.c_uint64), ("id", ctypes.c_char_p), ("key", ctypes.c_char_p),
                ("handler", ctypes.c_char_p), ("data", ctypes.c_void_p), ("data_size", ctypes.c_size_t)]


class Results(ctypes.Structure):
    _fields_ = [("items", ctypes.POINTER(ResultItem)), ("count", ctypes.c_size_t)]


# After these the store has certainly not taken it; any other error leaves it open.
REFUSALS = {-errno.EINVAL, -errno.EMSGSIZE, -errno.EDQUOT, -errno.ECANCELED, -errno.ENOSPC, -errno.EROFS, -errno.EACCES,
            -errno.EIO, -errno.EBUSY}


def status_name(status):
    return "kept" if status == 0 else "refused" if status in REFUSALS else "unknown"


class Client:
    def __init__(self, config):
        self.library = ctypes.CDLL(str(LIBRARY))
        self.library.qv_client_error.restype = ctypes.c_char_p
        options = Options(ctypes.sizeof(Options), 0, str(config).encode(), None, None)
        self.handle = ctypes.c_void_p()
        self.check(self.library.qv_client_open(ctypes.byref(options), ctypes.byref(self.handle)))

    def check(self, status):
        if status < 0:
            raise OSError(-status, (self.library.qv_client_error() or b"").decode(errors="replace"))
        return status

    def submit(self, handler, tasks):
        """tasks: dicts with key, payload, lane, delay_ms, merge; free: it has no key; handler: another one's.  Returns
        (status, id) of each."""
        items = (Task * len(tasks))()
        for item, task in zip(items, tasks):
            payload = task["payload"].encode()
            item.size, item.lane = ctypes.sizeof(Task), LANES[task["lane"]]
            item.handler = task.get("handler", handler).encode()
            key = None if task.get("free") else task["key"].encode()
            item.key, item.payload, item.payload_size = key, payload, len(payload)
            item.delay_ms, item.merge = task["delay_ms"], task.get("merge", False)
        answers = (Submitted * len(tasks))()
        for answer in answers:
            answer.status = -errno.ETIMEDOUT
        self.library.qv_client_submit_many(self.handle, items, ctypes.c_size_t(len(tasks)), answers)
        return [(status_name(a.status), a.id.decode()) for a in answers]

    def consume(self, most, lease_ms):
        """Returns what it was given, and the list itself, to be freed."""
        results = Results()
        self.check(self.library.qv_client_consume(self.handle, ctypes.c_uint32(most), ctypes.c_uint64(lease_ms),
                                                  ctypes.byref(results)))
        found = [Result(i, r.shard, r.number, r.id.decode(), ctypes.string_at(r.data, r.data_size).decode())
                 for i, r in enumerate(results.items[:results.count])]
        return found, results

    def commit(self, results):
        """Whether each was refused."""
        refused = (ctypes.c_ubyte * results.count)()
        self.check(self.library.qv_client_commit(self.handle, results.items, ctypes.c_size_t(results.count), refused))
        return [bool(one) for one in refused]

    def free(self, results):
        self.library.qv_client_results_free(ctypes.byref(results))

    def close(self):
        self.library.qv_client_close(self.handle)
