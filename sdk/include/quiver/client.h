/* client.h: submits tasks to Quiver, reads their outcomes, and works on tasks.  C11 and C++17; link with -lquiver.
 *
 *         struct qv_client *client;
 *         if (qv_client_open(NULL, &client) < 0)
 *                 die(qv_client_error());
 *         struct qv_client_task task = QV_CLIENT_TASK_INIT;
 *         task.handler = "mail";
 *         task.key = "user-17";
 *         task.payload = "hello";
 *         task.payload_size = 5;
 *         char id[QV_CLIENT_ID_SIZE];
 *         if (qv_client_submit(client, &task, id) < 0)
 *                 die(qv_client_error());
 *         qv_client_close(client);
 *
 * Calls block until the store has answered.  Any number of threads may share a handle; calls made at the same time are
 * written together.  A handle has threads of its own, which block all signals.  It does not survive fork(): open one in
 * the child.
 *
 * Errors.  Functions return 0 or more, or a negative errno; qv_client_error() then has the text.  Every call may
 * return: -EINVAL: an argument is wrong; -ENOSPC, -EROFS, -EACCES, -EIO: the store cannot write (nothing was changed,
 * try again later); -EBUSY: others held the store for too long; -ETIMEDOUT, -ECONNRESET: no answer, so it may or may
 * not have been done.
 *
 * Memory.  Arguments are only read, and only until the call returns.  The caller owns what a call returns, and frees it
 * with the function named there.  All strings are NUL-terminated unless a size stands beside them.  The
 * library ends the process when memory runs out.
 *
 * Growth.  Structs begin with their size and only grow at their end: start from the _INIT macro.  A program built
 * against an older header keeps running. */
#ifndef QUIVER_CLIENT_H
#define QUIVER_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QV_CLIENT_ID_SIZE 65u /* bytes of an id, with its NUL */

struct qv_client;

/* The error text of this thread's last failed call; "" if there was none.  Valid until the thread's next call. */
const char *qv_client_error(void);

/* --- opening ------------------------------------------------------------------------------------------------------ */

/* Either a configuration file, or store and app. */
struct qv_client_options {
        uint32_t size;
        uint32_t shards;    /* with `store`: refuse a store with another number of shards; 0: accept any */
        const char *config; /* runtime.cfg; NULL: searched in $QUIVER_CONFIG, ./etc, /etc/quiver */
        const char *store;  /* "sqlite:/srv/quiver.db"; if set, no file is read */
        const char *app;    /* required with `store` */
};
#define QV_CLIENT_OPTIONS_INIT                                                                                         \
        {                                                                                                              \
                sizeof(struct qv_client_options), 0, NULL, NULL, NULL                                                  \
        }

/* Opens an existing store; only a host creates one.  `options` may be NULL.  -ENOENT: no configuration, or no store
 * yet; -EINVAL: the configuration is wrong, or differs from what the store has recorded; -EPROTO: not a Quiver store,
 * or one of a newer Quiver. */
int qv_client_open(const struct qv_client_options *options, struct qv_client **ret_client);

/* No other call may be under way.  Accepts NULL. */
void qv_client_close(struct qv_client *client);

struct qv_client_info {
        uint32_t size;
        uint32_t shards;
        const char *app; /* all texts of this struct are valid until qv_client_close() */
        const char *driver;
        const char *durability; /* what a crash may lose, as a sentence */
};
#define QV_CLIENT_INFO_INIT                                                                                            \
        {                                                                                                              \
                sizeof(struct qv_client_info), 0, NULL, NULL, NULL                                                     \
        }

int qv_client_info(struct qv_client *client, struct qv_client_info *info);

/* --- submitting --------------------------------------------------------------------------------------------------- */

struct qv_client_header {
        const char *name;  /* [A-Za-z0-9_-]{1,64} */
        const char *value; /* at most 1024 bytes, no control characters */
};

/* A header whose value may be any bytes: at most 768, or 1024 if none is a control character. */
struct qv_client_header2 {
        const char *name; /* as above */
        const void *value;
        size_t value_size;
};

/* Zero means "not set": the handler's settings apply. */
struct qv_client_task {
        uint32_t size;
        int32_t lane;        /* -1 low, 0 normal, 1 high */
        const char *handler; /* required */
        const char *key;     /* tasks of one key run in order: 1 to 255 bytes, no control characters.  NULL: none */
        const void *payload;
        size_t payload_size;
        uint64_t delay_ms;   /* the task is not started before this time has passed */
        uint64_t unique_ms;  /* refuse the task if one of the same handler and key came within this time; needs a key */
        uint64_t timeout_ms; /* the longest time of one start */
        uint64_t reply_ms;   /* how long to keep the outcome for qv_client_wait(), apart from the results */
        const struct qv_client_header *headers;
        size_t headers_count; /* at most 32, with headers2_count */
        uint32_t attempts;
        uint32_t reserved;
        /* Makes the submit safe to repeat: a name of your choice, 1 to 255 bytes, no control characters.  A repetition
         * with the same name and key stores nothing and returns the first task's id, even if that task is done.  NULL:
         * none */
        const char *idempotency_key;
        uint64_t idempotency_ms;                  /* how long the name is remembered; 0: a day */
        const struct qv_client_header2 *headers2; /* more headers */
        size_t headers2_count;
        /* The task may be merged with waiting neighbours of the same handler and key that were also submitted with
         * `merge`: the first keeps its place and gets the last one's payload and headers, the others are not run.  A
         * wait for one of those returns the first one's outcome.  Needs a key */
        bool merge;
        uint64_t debounce_ms;   /* how long the first one waits for others to merge, at most a day; implies `merge` */
        uint64_t not_before_ms; /* not started before this unix time in milliseconds, nor before delay_ms */
};
#define QV_CLIENT_TASK_INIT                                                                                            \
        {                                                                                                              \
                sizeof(struct qv_client_task), 0, NULL, NULL, NULL, 0, 0, 0, 0, 0, NULL, 0, 0, 0, NULL, 0, NULL, 0,    \
                        false, 0, 0                                                                                    \
        }

/* Submits one task.  After 0 the task is stored, as durably as the store is configured; or, with `idempotency_key`, it
 * was stored before and its id is in ret_id.  -ENOTUNIQ: another handler, payload or option was stored under that
 * idempotency key; the id of that task is in ret_id.  -ENOBUFS: the shard has no room for another idempotency key.
 * -EEXIST: with `unique_ms`, there is such a task already; its id is in ret_id.  -EINVAL, -EMSGSIZE: the text names the
 * field.  -EDQUOT: the shard's backlog is full.  ret_id may be NULL. */
int qv_client_submit(struct qv_client *client, const struct qv_client_task *task, char ret_id[QV_CLIENT_ID_SIZE]);

/* The result for one task of many.  If the call failed: 0 means stored, -ECANCELED not sent; a task with any other
 * status may or may not be stored. */
struct qv_client_submitted {
        int32_t status; /* what qv_client_submit() would return */
        char id[QV_CLIENT_ID_SIZE];
        unsigned char is_repeat; /* 1: stored before, under its idempotency key.  Uses former padding */
};

/* Submits many tasks in the given order, a thousand at a time.  All `tasks` have the struct size of the first.  Returns
 * how many were not stored (the text is that of the first of them), or a negative errno if the store did not answer.
 * `ret_submitted` has room for `count` elements, or is NULL. */
int qv_client_submit_many(struct qv_client *client, const struct qv_client_task *tasks, size_t count,
        struct qv_client_submitted *ret_submitted);

/* --- waiting for one task ----------------------------------------------------------------------------------------- */

/* Something that happened to a task, oldest first. */
struct qv_client_event {
        uint64_t at_ms;   /* unix time */
        const char *kind; /* "attempt", "crash", "interruption", "later", "waited", "dead", "requeued", "held" */
        const char *text;
};

enum { QV_CLIENT_DONE = 0, QV_CLIENT_DEAD = 1 };

struct qv_client_outcome {
        uint32_t size;
        int32_t state;      /* QV_CLIENT_DONE or QV_CLIENT_DEAD */
        const void *result; /* followed by a NUL that is not counted; NULL: none */
        size_t result_size;
        const char *reason; /* dead: one word ("rejected", "exhausted", "crashed", "cancelled"); else "" */
        const char *error;  /* dead: the handler's last error; else "" */
        const struct qv_client_event *events; /* also for a done task: its earlier failures */
        size_t events_count;
        uint32_t attempts; /* failed attempts that were charged to the task */
        uint32_t crashes;
        uint32_t interruptions;
        uint32_t laters; /* how often its handler answered LATER */
        uint32_t merged; /* number of tasks merged into the one that ended */
};

/* Waits for the outcome of a task that was submitted with reply_ms; for a task that was merged into another, the
 * outcome of that one.  -EAGAIN: it has not ended within timeout_ms (0: do not wait; UINT64_MAX: wait for ever), or
 * there is no such task, or its reply_ms have passed.  May be called again: the outcome stays. */
int qv_client_wait(
        struct qv_client *client, const char *id, uint64_t timeout_ms, struct qv_client_outcome **ret_outcome);
void qv_client_outcome_free(struct qv_client_outcome *outcome);

/* --- working ------------------------------------------------------------------------------------------------------ */

/* A program can be a worker of a handler with plugin = "remote": it takes a task, keeps it by heartbeats, and reports
 * its outcome.  Hosts of this machine are asked over their Unix sockets (STATE/NAME.http), which need no token for root
 * and for the host's own user; on other machines a worker uses HTTP (etc/HTTP.md).  The handle must have been opened
 * with a configuration, which names the state folder.
 *
 *         struct qv_client_take take = QV_CLIENT_TAKE_INIT;
 *         struct qv_client_work *work;
 *         take.handler = "mail";
 *         take.wait_ms = 30000;
 *         if (qv_client_take(client, &take, &work) == 0) {
 *                 struct qv_client_finish finish = QV_CLIENT_FINISH_INIT;
 *                 finish.outcome = send_mail(work) ? QV_CLIENT_FINISH_DONE : QV_CLIENT_FINISH_RETRY;
 *                 if (qv_client_finish(client, work, &finish) == -ESTALE)
 *                         undo(work);
 *                 qv_client_work_free(work);
 *         }
 *
 * Besides the errors that every call may return, these return -ECONNREFUSED: no host runs here; -EACCES: the host
 * belongs to another user; -EBUSY: the host stops, or its store cannot write, and nothing was recorded: try again;
 * -EBADMSG: another program answers on the host's socket. */

struct qv_client_take {
        uint32_t size;
        uint32_t reserved;
        const char *handler; /* required */
        const char *worker;  /* this worker's name: 1 to 64 letters, digits or . _ : @ -; NULL: HOST-PID */
        uint64_t wait_ms;    /* how long to wait for a task; 0: do not wait; UINT64_MAX: for ever */
};
#define QV_CLIENT_TAKE_INIT                                                                                            \
        {                                                                                                              \
                sizeof(struct qv_client_take), 0, NULL, NULL, 0                                                        \
        }

/* A task that this worker owns until its time is over.  A worker that was restarted may make one itself from
 * QV_CLIENT_WORK_INIT: handler, id and fence are enough for qv_client_heartbeat() and qv_client_finish(). */
struct qv_client_work {
        uint32_t size;
        uint32_t attempt; /* 1: the first */
        const char *handler;
        const char *id;
        const char *fence;   /* identifies this start of the task */
        const char *key;     /* "": none */
        const void *payload; /* followed by a NUL that is not counted */
        size_t payload_size;
        const struct qv_client_header2 *headers;
        size_t headers_count;
        const void *checkpoint; /* the checkpoint of an earlier start; NULL: none */
        size_t checkpoint_size;
        /* Both grow with every start of a task: compare the epoch, then the start, to fence your own writes. */
        uint64_t fence_epoch;
        uint64_t fence_start;
        uint64_t submitted_ms; /* unix time; 0: unknown */
        /* Counted from the return of qv_client_take(): the worker must have stopped by itself when this time is over,
         * because another worker may then get the task.  A heartbeat extends it. */
        uint64_t remaining_ms;
        uint64_t ttl_ms;       /* the time that a heartbeat gives; send one every third of it */
        uint32_t attempts_max; /* 0: unknown */
        uint32_t crashes;
        const char *host;          /* the host that handed it out; NULL: unknown */
        size_t headers_text_count; /* the first this many headers were submitted as texts, the rest as bytes */
};
#define QV_CLIENT_WORK_INIT                                                                                            \
        {                                                                                                              \
                sizeof(struct qv_client_work), 0, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0, NULL, 0, 0, 0, 0, 0, 0, 0, \
                        0, NULL, 0                                                                                     \
        }

/* Takes a task.  If several hosts run here, each is asked in turn.  -EAGAIN: none came within wait_ms; -ENOENT: no host
 * here has a handler of that name with plugin = "remote".  After -ETIMEDOUT or -ECONNRESET a task may have been handed
 * out that nobody got: it is interrupted when its time is over, at no cost. */
int qv_client_take(struct qv_client *client, const struct qv_client_take *take, struct qv_client_work **ret_work);
/* Frees what qv_client_take() returned; the task itself is not affected.  Accepts NULL. */
void qv_client_work_free(struct qv_client_work *work);

struct qv_client_heartbeat {
        uint32_t size;
        bool has_progress;
        uint64_t progress_done, progress_total; /* valid with has_progress */
        const void *checkpoint;                 /* kept for the next start, if there is one; NULL: unchanged */
        size_t checkpoint_size;
};
#define QV_CLIENT_HEARTBEAT_INIT                                                                                       \
        {                                                                                                              \
                sizeof(struct qv_client_heartbeat), false, 0, 0, NULL, 0                                               \
        }

struct qv_client_kept {
        uint32_t size;
        bool stop;             /* the task was cancelled, or its timeout has passed: it gets no more time */
        uint64_t remaining_ms; /* counted from the return of the call */
};
#define QV_CLIENT_KEPT_INIT                                                                                            \
        {                                                                                                              \
                sizeof(struct qv_client_kept), false, 0                                                                \
        }

/* Keeps a task.  `heartbeat` may be NULL.  -ESTALE: the start is over, and the task may run elsewhere: stop at once.
 * -EINVAL: the text names the field.  May be called from another thread while the task is being worked on. */
int qv_client_heartbeat(struct qv_client *client, const struct qv_client_work *work,
        const struct qv_client_heartbeat *heartbeat, struct qv_client_kept *kept);

enum {
        QV_CLIENT_FINISH_DONE = 0,
        QV_CLIENT_FINISH_RETRY = 1,
        QV_CLIENT_FINISH_LATER = 2,       /* like RETRY at no cost, up to the handler's later.max times */
        QV_CLIENT_FINISH_REJECT = 3,      /* no attempt will help: the task is dead */
        QV_CLIENT_FINISH_UNAVAILABLE = 4, /* the handler cannot work now at all: it pauses */
        QV_CLIENT_FINISH_LIMITED = 5      /* overload: closes the task's limits for retry_after_ms, at no cost */
};

struct qv_client_finish {
        uint32_t size;
        int32_t outcome;    /* QV_CLIENT_FINISH_... */
        const void *result; /* DONE: the result; NULL: none */
        size_t result_size;
        const char *error;       /* not DONE: for the task's history; NULL: none */
        uint64_t retry_after_ms; /* RETRY, LATER, UNAVAILABLE, LIMITED: 0: the handler's settings apply */
        const void *checkpoint;  /* not DONE: kept for the next start; NULL: unchanged */
        size_t checkpoint_size;
        /* DONE: tasks that are submitted in the same step that records the outcome.  Only handler, key, lane,
         * payload, delay_ms, headers and headers2 may be set; anything else is refused.  All have the struct size of
         * the first. */
        const struct qv_client_task *follow_ups;
        size_t follow_ups_count;
};
#define QV_CLIENT_FINISH_INIT                                                                                          \
        {                                                                                                              \
                sizeof(struct qv_client_finish), 0, NULL, 0, NULL, 0, NULL, 0, NULL, 0                                 \
        }

/* Reports the outcome of a task.  After 0 the outcome is recorded, or is queued for the host that owns the task, which
 * applies it unless the start is over by then.  -ESTALE: refused, the start is over: the outcome came too late, or an
 * earlier call recorded it.  -EMSGSIZE: the result is too large.  -EINVAL: the text names the field.  May be called
 * again after -ETIMEDOUT, -ECONNRESET, -ECONNREFUSED and -EBUSY. */
int qv_client_finish(
        struct qv_client *client, const struct qv_client_work *work, const struct qv_client_finish *finish);

/* --- results ------------------------------------------------------------------------------------------------------ */

/* The result of a task without reply_ms. */
struct qv_client_result {
        uint32_t size;
        uint32_t shard;  /* shard and number identify the result */
        uint64_t number; /* grows within the shard */
        uint64_t at_ms;  /* unix time */
        const char *id;
        const char *key;
        const char *handler;
        const void *data; /* followed by a NUL that is not counted */
        size_t data_size;
};

struct qv_client_results {
        struct qv_client_result *items;
        size_t count;
};

/* What happened to a result's task before it was done. */
struct qv_client_history {
        uint32_t size;
        uint32_t attempts; /* failed attempts that were charged to the task */
        uint32_t crashes;
        uint32_t interruptions;
        const struct qv_client_event *events; /* borrowed until qv_client_results_free() */
        size_t events_count;
        uint32_t laters; /* how often its handler answered LATER */
        uint32_t reserved;
};
#define QV_CLIENT_HISTORY_INIT                                                                                         \
        {                                                                                                              \
                sizeof(struct qv_client_history), 0, 0, 0, NULL, 0, 0, 0                                               \
        }

/* Takes up to `max` results that no consumer holds, for lease_ms; those of one shard are in order.  Results that are
 * not committed by then can be taken again, by this consumer or another.  No results is not an error. */
int qv_client_consume(struct qv_client *client, uint32_t max, uint64_t lease_ms, struct qv_client_results *ret_results);
void qv_client_results_free(struct qv_client_results *results);

/* The history of the task whose result is items[index].  -EINVAL: there is no such item, or history->size is wrong. */
int qv_client_result_history(const struct qv_client_results *results, size_t index, struct qv_client_history *history);

/* Removes consumed results from the store.  Only the handle that consumed them can do this.  Returns how many were
 * refused, because their lease was over and another consumer has taken them.  ret_refused, if not NULL, has room for
 * `count` elements and is set to 1 for each refused one, else to 0. */
int qv_client_commit(
        struct qv_client *client, const struct qv_client_result *items, size_t count, unsigned char *ret_refused);

/* --- ids ---------------------------------------------------------------------------------------------------------- */

/* A number below 2^63 that is unique in the app, whatever crashes and whatever clocks do, and larger than all that
 * this handle gave before.  The first call opens a session with the coordination and takes a slot; later calls only
 * read the clock.  The layout is the app's (`quiver id decode` takes an id apart).  If the ids of one unit of time are
 * used up, the call waits.  -ENOTSUP: the handle was opened without a configuration; -EBUSY: no slot is free; -EDOM:
 * the clock was set back by more than a second, and is behind the last id; -EOVERFLOW: the clock is outside the
 * layout's times. */
int qv_client_next_id(struct qv_client *client, uint64_t *ret_id);

/* --- rooms -------------------------------------------------------------------------------------------------------- */

/* A room is a named log of messages in the store.  Its entries are numbered from 1, without gaps, in the order of
 * arrival; any number of readers replay it from any number on and follow it.  The kept entries are bounded by count,
 * bytes and age (quiver room NAME set); a reader that asks for removed entries is told so.
 *
 *         struct qv_client_follow *follow;
 *         struct qv_client_room_page *page;
 *         qv_client_room_follow(client, "news", 0, &follow);
 *         while (qv_client_follow_next(follow, UINT64_MAX, &page) == 0) {
 *                 for (size_t i = 0; i < page->entries_count; i++)
 *                         show(page->entries[i].data, page->entries[i].data_size);
 *                 qv_client_room_page_free(page);
 *         }
 *
 * A room's name is 1 to 255 bytes without control characters: -EINVAL. */

struct qv_client_room_entry {
        uint64_t number;
        uint64_t at_ms;   /* unix time, by the store's clock */
        const void *data; /* followed by a NUL that is not counted */
        size_t data_size;
};

struct qv_client_room_page {
        uint32_t size;
        bool is_gap;    /* requested entries before this page are gone, or the room was made again */
        bool has_more;  /* there are entries after this page */
        uint64_t first; /* the first number that exists; last + 1: the room is empty */
        uint64_t last;  /* the last number given; 0: none yet */
        const struct qv_client_room_entry *entries;
        size_t entries_count;
};
void qv_client_room_page_free(struct qv_client_room_page *page);

/* Appends one entry and wakes the followers.  A missing room is made.  ret_number may be NULL.  -EMSGSIZE: larger than
 * the largest payload; -E2BIG: the app has too many rooms.  After -ETIMEDOUT and -ECONNRESET it may or may not have
 * been appended. */
int qv_client_room_append(
        struct qv_client *client, const char *room, const void *data, size_t size, uint64_t *ret_number);

/* Reads a page from a number on; 0: from the first entry that exists.  A missing room is empty. */
int qv_client_room_read(
        struct qv_client *client, const char *room, uint64_t from, struct qv_client_room_page **ret_page);

/* Removes all entries up to a number, for all readers; for instance after a checkpoint.  -ENOENT: no such room. */
int qv_client_room_truncate(struct qv_client *client, const char *room, uint64_t through);

struct qv_client_follow;
#define QV_CLIENT_ROOM_NEW UINT64_MAX /* only entries that are appended from now on */

/* Follows a room from a number on; 0: from the first entry that exists.  One handle can follow any number of rooms over
 * one connection; nothing is asked while nothing is appended.  It continues by itself after the store was down.
 * -EMFILE: no descriptor is left. */
int qv_client_room_follow(
        struct qv_client *client, const char *room, uint64_t from, struct qv_client_follow **ret_follow);

/* The next page; each entry comes once and in order.  -EAGAIN: nothing came within timeout_ms (0: do not wait;
 * UINT64_MAX: for ever).  -ECANCELED: the client was closed.  One thread at a time per follower. */
int qv_client_follow_next(struct qv_client_follow *follow, uint64_t timeout_ms, struct qv_client_room_page **ret_page);

/* A descriptor for poll() that is readable while a page is ready.  Do not read from it. */
int qv_client_follow_fd(const struct qv_client_follow *follow);

/* Accepts NULL. */
void qv_client_follow_close(struct qv_client_follow *follow);

/* --- locks, elections, members ---
 *
 * For handles that were opened with a configuration; -ENOTSUP otherwise.  All locks, elections and members of a handle
 * depend on one session with the coordination, which the first call opens.  If the session is lost (the machine hung,
 * or the coordination was down for longer than the session's timeout), locks and leaderships are lost with it, and each
 * loss is reported.  Free what these calls return before qv_client_close().  Names are 1 to 200 of A-Z a-z 0-9 . _ : @
 * % + -, and do not begin with a dot. */

#define QV_CLIENT_SHARED  0u         /* for `limit`: shared with any number of others that also share it */
#define QV_CLIENT_FOREVER UINT64_MAX /* for a time in milliseconds */

struct qv_client_lock_options {
        uint32_t size;
        uint32_t limit;     /* how many may hold it together with us: 1, QV_CLIENT_SHARED, or n: a semaphore */
        uint64_t wait_ms;   /* how long to wait for the holder; 0: do not wait */
        const char *reason; /* shown by `quiver lock list` as its command; NULL: the program's name */
};
#define QV_CLIENT_LOCK_OPTIONS_INIT                                                                                    \
        {                                                                                                              \
                sizeof(struct qv_client_lock_options), 1, UINT64_MAX, NULL                                             \
        }

struct qv_client_lock;

/* Takes the lock NAME of the app, the same that `quiver lock NAME` and a handler's trylock take, in order of arrival.
 * `options` NULL: exclusive, and wait for ever.  -EBUSY: not acquired within wait_ms; -ETIMEDOUT: the coordination did
 * not answer within that time, or, with wait_ms 0, within the session's timeout; -EIO: it refused. */
int qv_client_lock(struct qv_client *client, const char *name, const struct qv_client_lock_options *options,
        struct qv_client_lock **ret_lock);
/* The same, exclusive and without waiting. */
int qv_client_trylock(struct qv_client *client, const char *name, struct qv_client_lock **ret_lock);
/* The fencing token, larger for each holder: what the lock protects should refuse older ones. */
uint64_t qv_client_lock_token(const struct qv_client_lock *lock);
/* A descriptor for poll() that becomes readable when the lock is lost.  Do not read from it. */
int qv_client_lock_fd(const struct qv_client_lock *lock);
bool qv_client_lock_is_held(const struct qv_client_lock *lock);
/* Releases the lock and frees it, in every case; accepts NULL.  -ENOLCK: it had been lost before. */
int qv_client_unlock(struct qv_client_lock *lock);

/* Events, reported in order and each once. */
enum qv_client_notice_kind {
        QV_CLIENT_ELECTED = 1, /* we lead; `token` is larger than that of every leader before */
        QV_CLIENT_LOST = 2,    /* we no longer lead: the session is gone or was broken.  We stand again */
        QV_CLIENT_ASKED = 3, /* somebody wants another leader (`quiver elect NAME --resign`): call qv_client_resign() */
        QV_CLIENT_RESIGNED = 4, /* we have resigned, and others may lead */
        QV_CLIENT_JOINED = 5,   /* the member `name` is there, with its data */
        QV_CLIENT_CHANGED = 6,  /* its data has changed */
        QV_CLIENT_LEFT = 7,     /* it has left */
};

struct qv_client_notice {
        uint32_t size;
        uint32_t kind;
        uint64_t token;   /* ELECTED: the fencing token; JOINED: unique to the member */
        const char *name; /* of a member; else "" */
        const void *data; /* followed by a NUL that is not counted */
        size_t data_size;
};
void qv_client_notice_free(struct qv_client_notice *notice);

struct qv_client_election;

/* Stands for election; the first candidate leads.  It remains a candidate when its session is lost. */
int qv_client_elect(struct qv_client *client, const char *name, struct qv_client_election **ret_election);
/* The next event.  -EAGAIN: nothing came within timeout_ms (0: do not wait; QV_CLIENT_FOREVER). */
int qv_client_election_next(
        struct qv_client_election *election, uint64_t timeout_ms, struct qv_client_notice **ret_notice);
/* A descriptor for poll() that is readable while there is an event.  Do not read from it. */
int qv_client_election_fd(const struct qv_client_election *election);
/* Gives up leadership, or stops being a candidate; RESIGNED follows.  `stands_again`: becomes the last candidate
 * again. */
int qv_client_resign(struct qv_client_election *election, bool stands_again);
/* Resigns if necessary, and frees it; accepts NULL. */
void qv_client_election_close(struct qv_client_election *election);

struct qv_client_members;

/* Follows a group.  `group` NULL: the hosts of the app, whose names are NAME.NONCE; else any group of that name, which
 * is made as needed.  With `name` we also join it (-EINVAL without a group); names must be unique.  The present members
 * are reported first, as JOINED, including us; after a lost session only changes are reported. */
int qv_client_members(struct qv_client *client, const char *group, const char *name, const void *data, size_t data_size,
        struct qv_client_members **ret_members);
int qv_client_members_next(
        struct qv_client_members *members, uint64_t timeout_ms, struct qv_client_notice **ret_notice);
int qv_client_members_fd(const struct qv_client_members *members);
/* Leaves the group, and frees it; accepts NULL. */
void qv_client_members_close(struct qv_client_members *members);

/* --- looking ------------------------------------------------------------------------------------------------------ */

#define QV_CLIENT_ALL_SHARDS UINT32_MAX

struct qv_client_counts {
        uint32_t size;
        uint32_t shards; /* number of shards counted */
        uint64_t queued; /* in all lanes */
        uint64_t delayed;
        uint64_t in_flight;
        uint64_t parked; /* tasks that wait for their key: for the retry of its first task, for a person, or for their
                          * turn */
        uint64_t dead;
        uint64_t results;
        uint64_t submitted; /* since the store was created */
        uint64_t done;
        uint64_t dropped;   /* dead tasks that a person dropped */
        uint64_t oldest_ms; /* the age of the task that was queued first */
        uint64_t merged;    /* tasks that were merged into others */
};
#define QV_CLIENT_COUNTS_INIT                                                                                          \
        {                                                                                                              \
                sizeof(struct qv_client_counts), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                                    \
        }

/* Counts the tasks of one shard, or of all. */
int qv_client_count(struct qv_client *client, uint32_t shard, struct qv_client_counts *counts);

/* --- desired state ------------------------------------------------------------------------------------------------ */

/* Settings that people change for all hosts: "pause" or "pause.HANDLER", set to a reason, keeps the tasks of all
 * handlers or of one from being started.  A host that was down reads them when it comes back. */

/* Sets a name, or removes it (value = NULL).  -E2BIG: too many names; -EMSGSIZE: over 1024 bytes. */
int qv_client_set_desired(struct qv_client *client, const char *name, const char *value);

/* The caller frees *ret_value with free().  -ENOENT: not set. */
int qv_client_get_desired(struct qv_client *client, const char *name, char **ret_value);

#ifdef __cplusplus
}
#endif

#endif
