/* mock.h: a fake host, to unit-test a handler without a runner, a store or a server.  C11 and C++17.
 *
 * Link the plugin's own source with the test and with libquiver-mock, and pass its table:
 *
 *         struct qv_mock *mock = qv_mock_new(&quiver_plugin);
 *         qv_mock_config(mock, "greeting", "hi");
 *         QV_EXPECT_INT(qv_mock_init(mock), 0);
 *         struct qv_mock_task *task = qv_mock_new_task(mock, "user-7", "world");
 *         qv_mock_handle(mock, task);
 *         QV_EXPECT_OUTCOME(task, QV_DONE);
 *         QV_EXPECT_TEXT(task->result, "hi, world");
 *         qv_mock_free(mock);
 *         return qv_mock_failures() != 0;
 *
 * The services work in memory as plugin.h describes them, limits included.  The mock has a clock of its own: it starts
 * at CLOCK_BOOTTIME and moves only with qv_mock_step_ms().
 *
 * Build the test with a sanitizer or run it under valgrind: everything that the plugin borrows (a task and all it
 * points to, the settings) is allocated apart and freed when it is no longer valid, so that a pointer kept for too long
 * is found.
 *
 * A mock is one seat: call it from one thread, except where a comment says otherwise (qv_mock_run_seats() has several).
 * Everything that it returns is valid until qv_mock_free().  A wrong call of the *mock* prints a message on standard
 * error and calls abort(); a wrong call of a *service* returns the documented error and logs a line. */
#ifndef QUIVER_MOCK_H
#define QUIVER_MOCK_H

#include <quiver/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The plugin under test, linked from its own source. */
extern const struct qv_plugin quiver_plugin;

/* The largest payload and result, in bytes: a host's defaults. */
#define QV_MOCK_PAYLOAD_MAX 1048576u

/* The outcome of a start that qv_mock_crash() ended. */
#define QV_MOCK_CRASHED (-2)

struct qv_mock;

/* A task, before, between and after its attempts. */
struct qv_mock_task {
        const char *id;      /* unique within the mock; qv_mock_set_id() */
        const char *key;     /* the id, if the task was made without a key */
        const char *handler; /* the plugin's name; may be set before a start if one plugin serves several names */
        uint64_t timeout_ms; /* may be set before a start; 0: none.  Stop is raised when the clock steps past it */

        uint32_t attempt; /* number of the next attempt; grows with QV_RETRY only */
        uint32_t starts;  /* how often the task was started */

        /* The outcome of the last start.  Result and follow-ups are NULL or 0 after any other outcome than QV_DONE. */
        int32_t outcome;    /* QV_DONE, QV_RETRY, QV_REJECT, QV_UNAVAILABLE, QV_LATER, QV_LIMITED, QV_MOCK_CRASHED; -1:
                             * never started */
        const char *error;  /* NULL: none was given, or the task is done */
        const char *result; /* followed by a NUL that is not counted; NULL: none */
        size_t result_size;
        const struct qv_submit *submits; /* follow-ups, in order; they point to the mock's copies */
        size_t submits_count;
        int64_t retry_after_ms;                 /* -1: not set, or the outcome does not wait */
        uint64_t progress_done, progress_total; /* the latest report */

        const char *checkpoint; /* the latest one, for the next start; followed by a NUL; NULL: none */
        size_t checkpoint_size;

        /* What the plugin sees under the same name; may be set before a start. */
        uint32_t attempts_max; /* 4 by default */
        uint32_t crashes;
        uint64_t submitted_ms;
        int32_t lane;

        uint64_t fence_epoch, fence_start; /* of the latest start; 0: never started */

        uint32_t laters; /* how often it ended with QV_LATER. The mock has no later.max, so it never becomes QV_RETRY */
};

/* One line that the plugin logged, or that a service logged about it. */
struct qv_mock_log {
        int32_t level;
        const char *text;
        const char *task_id; /* NULL: no task was running, or several (a batch) */
};

/* Checks the table as a host does. */
struct qv_mock *qv_mock_new(const struct qv_plugin *plugin);

/* Closes the instance, if there is one, and frees everything.  Accepts NULL. */
void qv_mock_free(struct qv_mock *mock);

/* --- the instance --- */

/* Sets a setting of `config = { … }`; nested names have dots ("db.url").  Only before init.  The last call wins. */
void qv_mock_config(struct qv_mock *mock, const char *name, const char *value);

/* Calls the plugin's init and returns its result: 0, or another number if it failed.  The first call calls load before;
 * unload follows in qv_mock_free(). */
int32_t qv_mock_init(struct qv_mock *mock);

/* The reason that a failed init gave; NULL: none. */
const char *qv_mock_init_error(const struct qv_mock *mock);

/* The index-th setting that init did not read, which a host reports as a likely misspelling; NULL: no more. */
const char *qv_mock_unread(const struct qv_mock *mock, size_t index);

/* Calls the plugin's close.  Another init may follow. */
void qv_mock_close(struct qv_mock *mock);

/* Runs several seats of one process at once, as a host with `threads` does: calls `run` for each of `count` seats, at
 * the same time, each on its own thread.  `run` calls qv_mock_init(), makes tasks and handles them; the seat is closed
 * after it.  The first seat is `mock` itself; the others have its settings, and are freed, with everything that they
 * returned, when this returns. load, the clock, locks, ids and the failures of expectations are shared, everything else
 * belongs to the seat.  Build the test with -fsanitize=thread.  Returns what load returned: not 0 if it failed. */
int32_t qv_mock_run_seats(
        struct qv_mock *mock, uint32_t count, void (*run)(struct qv_mock *seat, uint32_t number, void *arg), void *arg);

/* --- tasks --- */

/* A new task.  The key is 1 to 255 bytes without control characters, or NULL for none; the payload is copied. */
struct qv_mock_task *qv_mock_new_task(struct qv_mock *mock, const char *key, const char *payload);
struct qv_mock_task *qv_mock_new_task_bytes(struct qv_mock *mock, const char *key, const void *payload, size_t size);
void qv_mock_header(struct qv_mock *mock, struct qv_mock_task *task, const char *name, const char *value);
/* The same for a value of any bytes; with a control character it is only in the task's headers2. */
void qv_mock_header_bytes(
        struct qv_mock *mock, struct qv_mock_task *task, const char *name, const void *value, size_t size);

/* Gives the task another id, before its first start; a task without a key gets it as its key, too. */
void qv_mock_set_id(struct qv_mock *mock, struct qv_mock_task *task, const char *id);

/* Starts the task once and returns task->outcome.  A task that ended with QV_RETRY, QV_UNAVAILABLE or QV_LATER can be
 * started again, with its latest checkpoint; one that is done or rejected cannot. */
int32_t qv_mock_handle(struct qv_mock *mock, struct qv_mock_task *task);

/* As qv_mock_handle(), for a batch of different keys in one call of handle_many.  Returns how many are done.
 *
 * After qv_mock_set_same_key(mock, 1), as with batch.same_key, the batch may have several tasks of one key, side by
 * side.  Tasks after the first one of their key that is not done keep their outcome and count of starts, as if they had
 * not been in the call; a plugin that returns QV_DONE for such a task is wrong, and the test ends with a text that says
 * so. */
void qv_mock_set_same_key(struct qv_mock *mock, int is_same_key);
uint32_t qv_mock_handle_many(struct qv_mock *mock, struct qv_mock_task *const *tasks, uint32_t count);

/* --- events on the host's side --- */

/* Raises stop for the running tasks; if none runs, for the next start.  Any thread. */
void qv_mock_stop(struct qv_mock *mock);

/* Moves the clock forward: locks expire, deadlines pass, ids grow. */
void qv_mock_step_ms(struct qv_mock *mock, uint64_t ms);
uint64_t qv_mock_now_ms(const struct qv_mock *mock);

/* Simulates a move of the shard: later starts have a higher fence_epoch and count fence_start from 1 again. */
void qv_mock_takeover(struct qv_mock *mock);

/* Gives the next start this fence; later ones continue from it.  A fence only grows: the pair must be higher than that
 * of every earlier start. */
void qv_mock_set_fence(struct qv_mock *mock, uint64_t epoch, uint64_t start);

/* Calls handle like a host that was stopped, lost the shard and goes on: with this older fence, after a newer start.  A
 * real host's store would refuse the outcome, so the task stays as it was, even done.  Returns what the plugin
 * returned; check what it did to your own data. */
int32_t qv_mock_handle_zombie(
        struct qv_mock *mock, struct qv_mock_task *task, uint64_t fence_epoch, uint64_t fence_start);

/* Only inside a hook, while a task is handled: ends the start there, like a crash of the process, and does not return.
 * The handler goes no further and nothing is cleaned up, so a leak checker reports what it held.  The instance is gone
 * without close: call qv_mock_init() again.  The running tasks get the outcome QV_MOCK_CRASHED and one more crash;
 * their next start has their latest checkpoint and the same attempt. */
__attribute__((noreturn)) void qv_mock_crash(struct qv_mock *mock);

/* Makes the service of this name ("submit", "trylock", …) do nothing and return `result`, for instance -ENOTSUP;
 * "config" and "ext" return NULL.  With `result` 0 it works again.  log cannot fail. */
void qv_mock_fail(struct qv_mock *mock, const char *service, int32_t result);

/* An entry of a room, by its number; NULL: there is none.  Borrowed until qv_mock_free().  ret_size may be NULL. */
const void *qv_mock_room(struct qv_mock *mock, const char *room, uint64_t number, size_t *ret_size);

/* The number of calls of the service so far, failed ones included. */
size_t qv_mock_calls(struct qv_mock *mock, const char *service);

/* `hook` runs at the start of every service call from the seat's thread, except log.  It may call qv_mock_stop(),
 * qv_mock_crash(), qv_mock_step_ms(), qv_mock_fail() and qv_mock_lock_elsewhere(), so that a test can make something
 * happen in the middle of a handler.  NULL: none. */
void qv_mock_on_call(
        struct qv_mock *mock, void (*hook)(struct qv_mock *mock, const char *service, void *arg), void *arg);

/* --- locks --- */

/* Lets another holder take the lock for ttl_ms; if the plugin holds it, the plugin loses it. */
void qv_mock_lock_elsewhere(struct qv_mock *mock, const char *name, uint64_t ttl_ms);

/* The token with which the plugin holds the lock; 0: it does not hold it. */
uint64_t qv_mock_lock_token(const struct qv_mock *mock, const char *name);

/* --- logs (any thread) --- */

/* The index-th line; NULL: no more. */
const struct qv_mock_log *qv_mock_log_at(struct qv_mock *mock, size_t index);

/* The first line of that level with `part` in it; NULL: none. */
const struct qv_mock_log *qv_mock_logged(struct qv_mock *mock, int32_t level, const char *part);

/* --- expectations: each prints place, expression and both values if it fails, and goes on.  They return whether they
 * held, and evaluate each argument once.  Any thread. --- */

#define QV_EXPECT(condition) qv_mock_expect(__FILE__, __LINE__, #condition, (condition) ? 1 : 0)
#define QV_EXPECT_INT(actual, expected)                                                                                \
        qv_mock_expect_int(__FILE__, __LINE__, #actual, (int64_t)(actual), (int64_t)(expected))
/* NULL equals only NULL. */
#define QV_EXPECT_TEXT(actual, expected) qv_mock_expect_text(__FILE__, __LINE__, #actual, (actual), (expected), 0)
/* `part` must be a substring. */
#define QV_EXPECT_PART(actual, part) qv_mock_expect_text(__FILE__, __LINE__, #actual, (actual), (part), 1)
/* The outcome of the task's latest start; prints its error, too. */
#define QV_EXPECT_OUTCOME(task, expected) qv_mock_expect_outcome(__FILE__, __LINE__, (task), (expected))

/* The number of failed expectations in this process. */
int qv_mock_failures(void);

int qv_mock_expect(const char *file, int line, const char *expression, int is_true);
int qv_mock_expect_int(const char *file, int line, const char *expression, int64_t actual, int64_t expected);
int qv_mock_expect_text(
        const char *file, int line, const char *expression, const char *actual, const char *expected, int is_part);
int qv_mock_expect_outcome(const char *file, int line, const struct qv_mock_task *task, int32_t expected);

#ifdef __cplusplus
}
#endif

#endif
