/* plugin.h: everything a Quiver handler plugin needs.  Header only; C11 and C++17.
 *
 * A plugin is a shared object that exports one table, `quiver_plugin`.  Write init, handle and close, name them
 * with QV_PLUGIN(), build with sdk/plugin.mk (or `cc -shared -fPIC`), and try it: `quiver try ./mine.so`.
 *
 * Threads.  A runner process loads the plugin once and has one or more *seats*.  A seat is a thread with an
 * instance of its own: init, handle, handle_many and close of one instance are all called on that one thread,
 * one after the other, never at once.  Different seats call at the same time; a runner has more than one seat
 * only if the plugin's flags include QV_THREADS.  Setup that a library needs once per process (curl_global_init)
 * belongs into load, which runs before the first init; unload runs after the last close.
 *
 * Memory.  What the host passes is borrowed: a task and all it points to are valid until handle() returns, a
 * `struct qv_host` and the strings of config() until close() returns.  What the plugin passes to a service is
 * copied before the service returns.  All strings are NUL-terminated UTF-8 unless a size stands beside them.
 *
 * Growth.  Tables only grow at their end, and each begins with its size; a field that the other side does not
 * have reads as zero.  A plugin built against 1.x runs on every host that speaks 1.y.  Before you use a field of
 * `struct qv_host` or `struct qv_task` that came after 1.0, check QV_HAS().
 *
 * Services return 0, or a negative errno: -EINVAL (an argument is wrong), -EMSGSIZE (over a limit), -ENOTSUP (this
 * host does not provide it; the log names the service), others as documented. */
#ifndef QUIVER_PLUGIN_H
#define QUIVER_PLUGIN_H

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#define QV_NOEXCEPT noexcept /* part of the type: an exception calls terminate() and never reaches the host */
#else
#define QV_NOEXCEPT
#endif

#define QV_ABI_MAJOR 1u /* a host refuses a plugin with another major version */
#define QV_ABI_MINOR 0u /* a plugin's may be higher than the host's; the additions are then missing */

#if defined(__GNUC__)
#define QV_EXPORT        __attribute__((visibility("default")))
#define QV_PRINTF(f, va) __attribute__((format(printf, f, va)))
#else
#define QV_EXPORT
#define QV_PRINTF(f, va)
#endif

/* What handle() returns.  Any other number counts as QV_RETRY, with an error text that names it. */
enum {
        QV_DONE = 0,        /* finished: completion, result and follow-ups are committed together */
        QV_RETRY = 1,       /* failed; try again later, in place: the key's later tasks wait.  Costs one attempt */
        QV_REJECT = 2,      /* can never succeed: dead at once, kept with its error */
        QV_UNAVAILABLE = 3, /* a dependency is down: costs the task nothing, the handler pauses and probes */
        QV_PENDING = 4,     /* reserved for answering later; today it counts as QV_RETRY */
        /* Not now, and not the task's fault: only its key waits, for retry_after() or the handler's later.wait, and
         * other keys go on.  It costs no attempt, up to later.max times for one task; beyond that it is QV_RETRY. */
        QV_LATER = 5,
        /* A service that the handler uses is overloaded (HTTP 429): the limits of the handler (`limited_by`) are closed
         * on all hosts, for retry_after() or the handler's later.wait, at most an hour: its rates, or if it has none
         * its concurrencies, each only for the value of this task.  The task waits for that at no cost.  Without such a
         * limit it is QV_LATER.  A host of version 0.1 takes it for QV_RETRY. */
        QV_LIMITED = 6,
};

enum { QV_LOG_ERROR = 0, QV_LOG_WARN = 1, QV_LOG_INFO = 2, QV_LOG_DEBUG = 3 };

/* Flags of a plugin. */
#define QV_THREADS 0x1u /* the plugin is thread-safe, so several seats may share a process */

/* Limits that hold on every host. */
#define QV_CHECKPOINT_MAX   4096u /* bytes of one checkpoint */
#define QV_ERROR_MAX        1024u /* bytes of one error text; longer is cut */
#define QV_LOG_MAX          2048u /* bytes of one log line; longer is cut */
#define QV_SUBMITS_MAX      256u  /* follow-ups of one task */
#define QV_LOCK_NAME_MAX    200u  /* bytes of a lock's name: letters, digits and . _ : @ % + -, not beginning with . */
#define QV_LOCK_TTL_MAX_MS  86400000u /* the longest ttl of trylock: a day */
#define QV_ROOM_ENTRY_MAX   65536u    /* bytes of one entry for room_append */
#define QV_HEADERS_MAX      32u       /* headers of one task */
#define QV_HEADER_MAX       1024u     /* bytes of a header's value without control characters */
#define QV_HEADER_BYTES_MAX 768u      /* bytes of any other header's value; a task has at most 16 of these */

struct qv_host;

struct qv_header {
        const char *name;
        const char *value;
};

/* A header whose value may be any bytes. */
struct qv_header2 {
        const char *name;  /* [A-Za-z0-9_-]{1,64} */
        const void *value; /* in a task, followed by a NUL that is not counted */
        size_t value_size;
        uint32_t is_bytes; /* in a task: it was submitted as bytes, and is not among its `headers`; otherwise ignored */
        uint32_t reserved;
};

/* One claimed task.  Read-only, valid until handle() returns. */
struct qv_task {
        uint32_t size;    /* of this struct, as the host knows it */
        uint32_t attempt; /* 1 at the first start; grows only with QV_RETRY */

        const struct qv_host *host; /* the seat's services */
        const char *id;
        const char *key;
        const char *handler; /* the name that the task carries; one plugin may serve several */

        const void *payload; /* followed by a NUL that is not counted, so text can be used in place */
        size_t payload_size;

        /* The pair (epoch, start) grows with every start of a task of this shard, over all hosts.  Store it beside the
         * data that you change elsewhere, and refuse a write with a lower pair.  See "Fencing your own writes" in
         * sdk/README.md. */
        uint64_t fence_epoch;
        uint64_t fence_start;

        uint64_t deadline_ns; /* CLOCK_BOOTTIME at which stop is raised; 0: no timeout */

        const struct qv_header *headers; /* only headers that are texts; headers2 has all */
        size_t headers_count;

        const void *checkpoint; /* the latest checkpoint of an earlier attempt; NULL: none */
        size_t checkpoint_size;

        const uint32_t *stop_word; /* private: see qv_stop() */
        uint32_t stop_value;

        uint32_t attempts_max; /* the last attempt is attempt == attempts_max: a QV_RETRY then ends the task */
        uint64_t submitted_ms; /* unix time; 0: unknown */
        int32_t lane;          /* -1 low, 0 normal, 1 high */
        uint32_t crashes;      /* earlier starts that ended in a crash or a timeout of this task */

        /* All headers, in order.  A newer host may have larger elements: read them with qv_header_at() or
         * qv_find_header(). */
        const struct qv_header2 *headers2;
        size_t headers2_count;
        size_t headers2_stride; /* bytes from one element to the next */
};

/* A follow-up task.  Start from QV_SUBMIT_INIT and set at least `handler`. */
struct qv_submit {
        uint32_t size;
        int32_t lane; /* -1 low, 0 normal, 1 high */
        const char *handler;
        const char *key; /* NULL: none; then the new task's id is its key */
        const void *payload;
        size_t payload_size;
        uint64_t delay_ms;
        const struct qv_header *headers;
        size_t headers_count;
        /* More headers, whose values may be any bytes.  Both together are at most QV_HEADERS_MAX. */
        const struct qv_header2 *headers2;
        size_t headers2_count;
        size_t headers2_stride; /* QV_SUBMIT_INIT sets it */
        /* 1: the task may be merged with waiting neighbours of the same handler and key that were also submitted with
         * `merge`: the first keeps its place and gets the last one's payload.  Needs a key. */
        uint32_t merge;
        uint32_t reserved;
        uint64_t debounce_ms; /* how long the first one waits for others to merge, at most a day; implies `merge` */
};
#define QV_SUBMIT_INIT                                                                                                 \
        {                                                                                                              \
                sizeof(struct qv_submit), 0, NULL, NULL, NULL, 0, 0, NULL, 0, NULL, 0, sizeof(struct qv_header2), 0,   \
                        0, 0                                                                                           \
        }

/* The services of one seat.  Call them on the seat's own thread, unless the comment says otherwise.
 * A service that takes a task may only be called while that task is being handled. */
struct qv_host {
        uint32_t size;
        uint32_t seat;       /* this seat's number within its runner, from 0 */
        const char *handler; /* the name in runtime.cfg */

        /* Writes one line to the host's log, with the id of the running task.  Never blocks; beyond the rate limit
         * lines are dropped and their count is logged.  Any thread. */
        void (*log)(const struct qv_host *host, int32_t level, const char *text) QV_NOEXCEPT;

        /* A setting of the handler's `config = { … }` as text; nested groups with dots ("db.url"), list elements by
         * number ("tables.0").  NULL if it is not set.  Read all settings in init: unread ones are reported as likely
         * misspellings. */
        const char *(*config)(const struct qv_host *host, const char *name)QV_NOEXCEPT;

        /* Sets the error text, which is kept in the task's history.  With task = NULL, inside init: why init fails.
         * The last call wins.  0 or -EINVAL. */
        int32_t (*error)(const struct qv_host *host, const struct qv_task *task, const char *text) QV_NOEXCEPT;

        /* Stages the task's result; committed with QV_DONE, dropped otherwise.  The last call wins.  0, -EMSGSIZE. */
        int32_t (*result)(
                const struct qv_host *host, const struct qv_task *task, const void *data, size_t size) QV_NOEXCEPT;

        /* Stages a follow-up task; committed with QV_DONE, dropped otherwise.  0, -EINVAL (the log names the field),
         * -EMSGSIZE, -E2BIG (too many), -ENOTSUP. */
        int32_t (*submit)(
                const struct qv_host *host, const struct qv_task *task, const struct qv_submit *submit) QV_NOEXCEPT;

        /* With QV_RETRY, QV_LATER or QV_LIMITED: replaces the configured delay.  Returns 0. */
        int32_t (*retry_after)(const struct qv_host *host, const struct qv_task *task, uint64_t delay_ms) QV_NOEXCEPT;

        /* Reports progress: resets the handler's stall timer, but not its deadline; status shows the numbers.  A total
         * of 0 is unknown.  Costs two writes to memory.  Returns 0. */
        int32_t (*progress)(
                const struct qv_host *host, const struct qv_task *task, uint64_t done, uint64_t total) QV_NOEXCEPT;

        /* Saves up to QV_CHECKPOINT_MAX bytes, which the next attempt gets in task->checkpoint, also after a crash.
         * The last call wins; a checkpoint is fenced like an outcome.  0, -EMSGSIZE. */
        int32_t (*checkpoint)(
                const struct qv_host *host, const struct qv_task *task, const void *data, size_t size) QV_NOEXCEPT;

        /* Takes a lock of the app, the same that `quiver lock NAME` takes.  It does not wait for the holder.  The lock
         * is held until unlock, or until the end of the task that took it (of the process, if it was taken outside a
         * task), but no longer than ttl_ms after the last trylock: call trylock again to renew it.  A lock may also be
         * lost with the host's session: a renewal then returns another token, or -EBUSY.  Code that the lock protects
         * should compare tokens: each holder's token is larger than all before.  0: held, *ret_token is its fencing
         * token; -EBUSY: another task or process holds it; -EINVAL: the name or ttl is invalid; -EAGAIN: this host
         * holds too many locks; -EIO: the coordination refused it, and the host's log says why; -ENOTSUP; -ETIMEDOUT:
         * the coordination did not answer within seconds; the lock is not held. */
        int32_t (*trylock)(
                const struct qv_host *host, const char *name, uint64_t ttl_ms, uint64_t *ret_token) QV_NOEXCEPT;

        /* Releases a lock that this task has taken.  0: released; -ENOENT: it is no longer held with that token;
         * -ETIMEDOUT: it is being released. */
        int32_t (*unlock)(const struct qv_host *host, const char *name, uint64_t token) QV_NOEXCEPT;

        /* Gives a number below 2^63 that is unique in the app and grows within this process.  The time in it is at most
         * 100 ms older than the call: the host gives a runner many ids at once, so most calls need no host.  0; -EBUSY:
         * no slot is free, or another process has the configured one; -EDOM: the clock was set back by more than a
         * second; -EOVERFLOW: the clock is outside the range of ids; -ENOTSUP; -ETIMEDOUT. */
        int32_t (*next_id)(const struct qv_host *host, uint64_t *ret_id) QV_NOEXCEPT;

        /* An extension by name, or NULL.  Version 1.0 defines none. */
        const void *(*ext)(const struct qv_host *host, const char *name)QV_NOEXCEPT;

        /* Appends one entry to a room of the app, at once, whatever the outcome of the task; *ret_number is the entry's
         * number.  Check QV_HAS() first.  0; -EINVAL; -EMSGSIZE: longer than QV_ROOM_ENTRY_MAX or the largest payload;
         * -E2BIG: the app has too many rooms; -EIO: the store refused it, and the host's log says why; -ENOTSUP;
         * -ETIMEDOUT: it may or may not have been appended. */
        int32_t (*room_append)(const struct qv_host *host, const char *room, const void *data, size_t size,
                uint64_t *ret_number) QV_NOEXCEPT;
};

/* Whether the other side's table or struct reaches to the end of `field`: QV_HAS(task->host, next_id). */
#define QV_HAS(pointer, field)                                                                                         \
        ((size_t)((const char *)&(pointer)->field - (const char *)(pointer)) + sizeof((pointer)->field) <=             \
                (pointer)->size)

/* The table that a plugin exports.  Use QV_PLUGIN() or QV_PLUGIN_EX() rather than filling it in by hand. */
struct qv_plugin {
        uint32_t size;
        uint32_t abi_major;
        uint32_t abi_minor;
        uint32_t flags;
        const char *name;
        const char *version;

        /* Creates one instance.  0: *ret_self, which may be NULL, is passed to every later call.  Any other number: the
         * runner does not start; call qv_init_errorf() first.  close() is not called after a failed init. */
        int32_t (*init)(const struct qv_host *host, void **ret_self) QV_NOEXCEPT;

        /* Handles one task and returns QV_DONE, QV_RETRY, QV_REJECT, QV_UNAVAILABLE, QV_LATER or QV_LIMITED.  A long
         * task must check qv_stop() from time to time: the process is killed `grace` after the flag was raised. */
        int32_t (*handle)(void *self, const struct qv_task *task) QV_NOEXCEPT;

        /* Undoes init.  Optional. */
        void (*close)(void *self) QV_NOEXCEPT;

        /* Handles `count` tasks of different keys in one call and writes one outcome for each.  Optional; used when the
         * handler's batch.max is above 1.  outcomes[] is filled with QV_RETRY before the call.
         *
         * If the handler has batch.same_key, a key may have several tasks: they stand side by side, in order.  The
         * first of them whose outcome is not QV_DONE ends its key's part of the call: do not start the following ones;
         * qv_is_over() tells.  Whatever is written for those, the host takes them as not started; they cost nothing and
         * come again.  Nothing of the call is durable before it returns: if the process ends, all of its tasks run
         * again. */
        void (*handle_many)(
                void *self, const struct qv_task *const *tasks, uint32_t count, int32_t *outcomes) QV_NOEXCEPT;

        /* Prepares the process, before the first init and on a thread of its own.  0; any other number: the runner does
         * not start; call qv_init_errorf() first.  It may use the services log, config and error; `host` is valid until
         * unload returns.  Optional. */
        int32_t (*load)(const struct qv_host *host) QV_NOEXCEPT;

        /* Undoes load, after the last close.  It is not called after a crash, nor if a seat did not end in time.
         * Optional. */
        void (*unload)(void) QV_NOEXCEPT;
};

/* Defines the exported table, at file scope:  QV_PLUGIN("echo", "1.0", QV_THREADS, my_init, my_handle, my_close, NULL)
 * init, close and handle_many may be NULL. */
#define QV_PLUGIN(name, version, flags, init, handle, close, handle_many)                                              \
        QV_EXTERN QV_EXPORT const struct qv_plugin quiver_plugin;                                                      \
        const struct qv_plugin quiver_plugin = { sizeof(struct qv_plugin), QV_ABI_MAJOR, QV_ABI_MINOR, (flags),        \
                (name), (version), (init), (handle), (close), (handle_many), NULL, NULL };

/* Defines the table by field names, for a plugin with load and unload; fields that are not named are zero.  C, and
 * C++20 in the order of the struct: QV_PLUGIN_EX(.flags = QV_THREADS, .name = "http", .version = "1.0", .init =
 * my_init, .handle = my_handle, .close = my_close, .load = my_load, .unload = my_unload) */
#define QV_PLUGIN_EX(...)                                                                                              \
        QV_EXTERN QV_EXPORT const struct qv_plugin quiver_plugin;                                                      \
        const struct qv_plugin quiver_plugin = {                                                                       \
                .size = sizeof(struct qv_plugin), .abi_major = QV_ABI_MAJOR, .abi_minor = QV_ABI_MINOR, __VA_ARGS__    \
        };
#ifdef __cplusplus
#define QV_EXTERN extern "C"
#else
#define QV_EXTERN extern
#endif
#define QV_PLUGIN_SYMBOL "quiver_plugin"

/* Nonzero once the task must end: its timeout passed, it was cancelled, its lease was lost, or the host shuts down.
 * One atomic load; call it as often as you like, from any thread while the task is being handled. */
static inline int qv_stop(const struct qv_task *task)
{
        return __atomic_load_n(task->stop_word, __ATOMIC_ACQUIRE) == task->stop_value;
}

/* Whether both tasks have the same key. */
static inline int qv_same_key(const struct qv_task *a, const struct qv_task *b)
{
        return strcmp(a->key, b->key) == 0;
}

/* In handle_many() with batch.same_key: whether task `i` must not be started, because the previous task of its key is
 * not done.  Then leave its outcome unchanged, so that the tasks behind it are over, too. */
static inline int qv_is_over(const struct qv_task *const *tasks, uint32_t i, const int32_t *outcomes)
{
        return i && outcomes[i - 1] != QV_DONE && qv_same_key(tasks[i - 1], tasks[i]);
}

/* The index-th header; NULL: there are no more, or the host is too old to have headers2. */
static inline const struct qv_header2 *qv_header_at(const struct qv_task *task, size_t index)
{
        if (!QV_HAS(task, headers2_stride) || index >= task->headers2_count)
                return NULL;
        return (const struct qv_header2 *)(const void *)((const char *)task->headers2 + index * task->headers2_stride);
}

/* The first header of that name; NULL: none. */
static inline const struct qv_header2 *qv_find_header(const struct qv_task *task, const char *name)
{
        const struct qv_header2 *header;
        size_t i;
        for (i = 0; (header = qv_header_at(task, i)); i++)
                if (!strcmp(header->name, name))
                        return header;
        return NULL;
}

/* Logs with printf() formatting. */
QV_PRINTF(3, 4) static inline void qv_logf(const struct qv_host *host, int32_t level, const char *format, ...)
{
        char text[QV_LOG_MAX];
        va_list args;
        va_start(args, format);
        (void)vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        host->log(host, level, text);
}

/* Sets the task's error text.  Typical use: return qv_errorf(task, "no such user: %s", name), QV_REJECT; */
QV_PRINTF(2, 3) static inline void qv_errorf(const struct qv_task *task, const char *format, ...)
{
        char text[QV_ERROR_MAX];
        va_list args;
        va_start(args, format);
        (void)vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        (void)task->host->error(task->host, task, text);
}

/* Sets the reason why init fails, and returns -1, so that init can return it. */
QV_PRINTF(2, 3) static inline int32_t qv_init_errorf(const struct qv_host *host, const char *format, ...)
{
        char text[QV_ERROR_MAX];
        va_list args;
        va_start(args, format);
        (void)vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        (void)host->error(host, NULL, text);
        return -1;
}

/* --- settings that must be right: each returns 0, or -1 with the reason set, so that init can say
 *         if (qv_config_duration(host, "timeout", 5000, 1, 60000, &ms)) return -1; */

/* A required setting. */
static inline int32_t qv_config_need(const struct qv_host *host, const char *name, const char **ret_text)
{
        const char *text = host->config(host, name);
        if (!text) {
                (void)qv_init_errorf(host, "setting %s is missing", name);
                return -1;
        }
        *ret_text = text;
        return 0;
}

static inline int32_t qv_config_number(
        const struct qv_host *host, const char *name, int64_t fallback, int64_t min, int64_t max, int64_t *ret_value)
{
        const char *text = host->config(host, name);
        char *end = NULL;
        long long value = fallback;
        if (text) {
                errno = 0;
                value = strtoll(text, &end, 10);
                if (end == text || *end || errno == ERANGE) {
                        (void)qv_init_errorf(host, "setting %s = \"%s\" is no whole number", name, text);
                        return -1;
                }
        }
        if (value < min || value > max) {
                (void)qv_init_errorf(host, "setting %s = %lld is not from %lld to %lld", name, value, (long long)min,
                        (long long)max);
                return -1;
        }
        *ret_value = value;
        return 0;
}

struct qv_unit {
        const char *name;
        double factor;
};

/* Private: a decimal number and one of the units. */
static inline int32_t qv_config_in_units(const struct qv_host *host, const char *name, const struct qv_unit *units,
        const char *example, const char *base, uint64_t fallback, uint64_t min, uint64_t max, uint64_t *ret_value)
{
        const char *text = host->config(host, name);
        char *end = NULL;
        double value = (double)fallback;
        if (text) {
                double number = strtod(text, &end);
                while (units->name && strcmp(units->name, end) != 0)
                        units++;
                if (end == text || !units->name) {
                        (void)qv_init_errorf(host, "setting %s = \"%s\" is not a number with a unit, such as \"%s\"",
                                name, text, example);
                        return -1;
                }
                value = number * units->factor;
        }
        if (!(value >= (double)min && value <= (double)max)) {
                (void)qv_init_errorf(host, "setting %s = %s is out of range: from %llu to %llu %s", name,
                        text ? text : "its default", (unsigned long long)min, (unsigned long long)max, base);
                return -1;
        }
        *ret_value = (uint64_t)value;
        return 0;
}

/* A duration in the units of runtime.cfg ("250ms", "1.5s", "10m", "2h", "1d"), in milliseconds. */
static inline int32_t qv_config_duration(const struct qv_host *host, const char *name, uint64_t fallback_ms,
        uint64_t min_ms, uint64_t max_ms, uint64_t *ret_ms)
{
        static const struct qv_unit units[] = { { "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 },
                { "d", 86400000 }, { NULL, 0 } };
        return qv_config_in_units(host, name, units, "1.5s", "ms", fallback_ms, min_ms, max_ms, ret_ms);
}

/* A size in the units of runtime.cfg ("512", "64KiB", "10MB", all powers of 1024), in bytes. */
static inline int32_t qv_config_size(const struct qv_host *host, const char *name, uint64_t fallback, uint64_t min,
        uint64_t max, uint64_t *ret_bytes)
{
        static const struct qv_unit units[] = { { "", 1 }, { "B", 1 }, { "K", 1024 }, { "KB", 1024 }, { "KiB", 1024 },
                { "M", 1048576 }, { "MB", 1048576 }, { "MiB", 1048576 }, { "G", 1073741824 }, { "GB", 1073741824 },
                { "GiB", 1073741824 }, { NULL, 0 } };
        return qv_config_in_units(host, name, units, "64KiB", "bytes", fallback, min, max, ret_bytes);
}

/* A setting with a default.  The number forms return the default, with a warning in the log, if the text is no
 * number. */
static inline const char *qv_config(const struct qv_host *host, const char *name, const char *fallback)
{
        const char *text = host->config(host, name);
        return text ? text : fallback;
}

static inline int64_t qv_config_int(const struct qv_host *host, const char *name, int64_t fallback)
{
        const char *text = host->config(host, name);
        char *end = NULL;
        long long value;
        if (!text)
                return fallback;
        errno = 0;
        value = strtoll(text, &end, 10);
        if (end == text || *end || errno == ERANGE) {
                qv_logf(host, QV_LOG_WARN, "setting %s = \"%s\" is not a 64-bit integer; using %lld", name, text,
                        (long long)fallback);
                return fallback;
        }
        return value;
}

static inline int qv_config_bool(const struct qv_host *host, const char *name, int fallback)
{
        const char *text = host->config(host, name);
        if (!text)
                return fallback;
        if (!strcmp(text, "true") || !strcmp(text, "1"))
                return 1;
        if (!strcmp(text, "false") || !strcmp(text, "0"))
                return 0;
        qv_logf(host, QV_LOG_WARN, "setting %s = \"%s\" is neither true nor false; using %s", name, text,
                fallback ? "true" : "false");
        return fallback;
}

#ifdef __cplusplus
}
#endif

#endif
