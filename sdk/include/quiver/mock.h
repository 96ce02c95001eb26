/* mock.h: a fake host, to unit-test a handler without a runner, a store or a server.  C11 and C++17.
 *
 * Link the plugin's own source with the test and with libquiver-mock, and hand the table over:
 *
 *         struct qv_mock *mock = qv_mock_new(&quiver_plugin);
 *         qv_mock_config(mock, "greeting", "hi");
 *         assert(qv_mock_init(mock) == 0);
 *         struct qv_mock_task *task = qv_mock_new_task(mock, "user-7", "world");
 *         assert(qv_mock_handle(mock, task) == QV_DONE);
 *         assert(!strcmp(task->result, "hi, world"));
 *         qv_mock_free(mock);
 *
 * The services do in memory what plugin.h says of them, limits included.  Time is the mock's own: it starts at
 * CLOCK_BOOTTIME and moves only with qv_mock_step_ms().
 *
 * Build the test with a sanitizer or run it under valgrind: what the plugin only borrows (a task and all it points to,
 * the settings) is a block of its own, freed when the loan ends, so a pointer kept for too long is found.
 *
 * A mock is one seat: call it from one thread, except where it says otherwise.  Everything it hands out lives until
 * qv_mock_free().  Whoever calls the *mock* wrongly gets a message on standard error and abort(); whoever calls a
 * *service* wrongly gets the documented error and a line in the log. */
#ifndef QUIVER_MOCK_H
#define QUIVER_MOCK_H

#include <quiver/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The plugin under test, linked from its own source. */
extern const struct qv_plugin quiver_plugin;

/* Bytes of a payload or a result: what a host takes unless it is configured otherwise. */
#define QV_MOCK_PAYLOAD_MAX 1048576u

struct qv_mock;

/* A task, before, between and after its attempts. */
struct qv_mock_task {
        const char *id;      /* unique within the mock */
        const char *key;     /* the id, if it was made without one */
        const char *handler; /* the plugin's name; set another before a start if one plugin serves several */
        uint64_t timeout_ms; /* 0: none; set it before a start.  Stop is raised when the clock steps past it */

        uint32_t attempt; /* that the next start gets: grows with QV_RETRY only */
        uint32_t starts;  /* how often it was handled */

        /* Of the last start.  What is committed with QV_DONE is NULL or 0 after any other outcome. */
        int32_t outcome;    /* QV_DONE, QV_RETRY, QV_REJECT, QV_UNAVAILABLE; -1: never started */
        const char *error;  /* NULL: none was given, or it is done */
        const char *result; /* followed by a NUL that is not counted; NULL: none */
        size_t result_size;
        const struct qv_submit *submits; /* follow-ups, in order; all they point to is the mock's copy */
        size_t submits_count;
        int64_t retry_after_ms;                 /* -1: not asked for, or not QV_RETRY */
        uint64_t progress_done, progress_total; /* as reported last */

        const char *checkpoint; /* the last saved, which the next start gets; NUL as with result; NULL: none */
        size_t checkpoint_size;
};

/* One line that the plugin logged, or that a service logged about it. */
struct qv_mock_log {
        int32_t level;
        const char *text;
        const char *task_id; /* NULL: no task was running, or several (a batch) */
};

/* Checks the table as a host does. */
struct qv_mock *qv_mock_new(const struct qv_plugin *plugin);

/* Closes the instance, if there is one, and frees everything.  NULL is fine. */
void qv_mock_free(struct qv_mock *mock);

/* --- the instance --- */

/* A setting, as it would stand in `config = { … }`; "db.url" for nested ones.  Only before init.  The last one wins. */
void qv_mock_config(struct qv_mock *mock, const char *name, const char *value);

/* Calls the plugin's init and returns what it did: 0, or the plugin refused. */
int32_t qv_mock_init(struct qv_mock *mock);

/* What a failed init gave as its reason; NULL: nothing. */
const char *qv_mock_init_error(const struct qv_mock *mock);

/* The index-th setting that init did not ask for, which a host reports as a likely misspelling; NULL: no more. */
const char *qv_mock_unread(const struct qv_mock *mock, size_t index);

/* Calls the plugin's close.  Another init may follow. */
void qv_mock_close(struct qv_mock *mock);

/* --- tasks --- */

/* A new task.  The key is 1 to 255 bytes without control characters, or NULL for none; the payload is copied. */
struct qv_mock_task *qv_mock_new_task(struct qv_mock *mock, const char *key, const char *payload);
struct qv_mock_task *qv_mock_new_task_bytes(struct qv_mock *mock, const char *key, const void *payload, size_t size);
void qv_mock_header(struct qv_mock *mock, struct qv_mock_task *task, const char *name, const char *value);

/* Starts the task once and settles it: returns task->outcome.  A task that came back with QV_RETRY or QV_UNAVAILABLE
 * can be started again, and gets its last checkpoint; one that is done or rejected is over. */
int32_t qv_mock_handle(struct qv_mock *mock, struct qv_mock_task *task);

/* The same for a batch of different keys, in one call of handle_many.  Returns how many are done. */
uint32_t qv_mock_handle_many(struct qv_mock *mock, struct qv_mock_task *const *tasks, uint32_t count);

/* --- what a host does to a handler --- */

/* Raises stop for the tasks that run now; if none does, for the next start.  Any thread. */
void qv_mock_stop(struct qv_mock *mock);

/* Moves the clock on: locks expire, deadlines pass, ids grow. */
void qv_mock_step_ms(struct qv_mock *mock, uint64_t ms);
uint64_t qv_mock_now_ms(const struct qv_mock *mock);

/* The shard moved: later starts have a higher fence_epoch and count fence_start from 1 again. */
void qv_mock_takeover(struct qv_mock *mock);

/* From now on the service of this name ("submit", "trylock", …) does nothing and returns `result`, for instance
 * -ENOTSUP; "config" and "ext" return NULL.  0: it works again.  log cannot fail. */
void qv_mock_fail(struct qv_mock *mock, const char *service, int32_t result);

/* Calls of the service so far, failed ones included. */
size_t qv_mock_calls(struct qv_mock *mock, const char *service);

/* `hook` runs at the start of every service call that comes from the seat's thread, log's excepted.  It may call
 * qv_mock_stop(), qv_mock_step_ms(), qv_mock_fail() and qv_mock_lock_elsewhere(): that is how a test makes something
 * happen in the middle of a handler.  NULL: none. */
void qv_mock_on_call(
        struct qv_mock *mock, void (*hook)(struct qv_mock *mock, const char *service, void *arg), void *arg);

/* --- locks --- */

/* Somebody else takes the lock for ttl_ms, even if the plugin holds it: it lost it. */
void qv_mock_lock_elsewhere(struct qv_mock *mock, const char *name, uint64_t ttl_ms);

/* The token with which the plugin holds the lock now; 0: it does not. */
uint64_t qv_mock_lock_token(const struct qv_mock *mock, const char *name);

/* --- logs (any thread) --- */

/* The index-th line; NULL: no more. */
const struct qv_mock_log *qv_mock_log_at(struct qv_mock *mock, size_t index);

/* The first line of that level with `part` in it; NULL: none. */
const struct qv_mock_log *qv_mock_logged(struct qv_mock *mock, int32_t level, const char *part);

#ifdef __cplusplus
}
#endif

#endif
