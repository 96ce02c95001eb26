/* client.h: submitting tasks to Quiver and getting at what became of them.  C11 and C++17; link with -lquiver.
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
 * Calls are plain and block until the store has answered.  Any number of threads may share a handle; calls made at the
 * same time are written together.  A handle has threads of its own, which see no signals.  It does not survive fork():
 * open one in the child.
 *
 * Errors.  Functions return 0 or more, or a negative errno; qv_client_error() then has the text.  Those of every call:
 * -EINVAL called wrongly; -ENOSPC, -EROFS, -EACCES, -EIO the store cannot write (nothing was changed, try again later);
 * -EBUSY others held the store for too long; -ETIMEDOUT, -ECONNRESET no answer: it may or may not have happened.
 *
 * Memory.  What is handed in is only read, and only until the call returns.  What is handed out is the caller's, and is
 * freed with the function named there.  All strings are NUL-terminated unless a size stands beside them.
 *
 * Growth.  Structs begin with their size and only grow at their end: start from the _INIT macro.  A program built
 * against an older header keeps running. */
#ifndef QUIVER_CLIENT_H
#define QUIVER_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QV_CLIENT_ID_SIZE 65u /* bytes of an id, with its NUL */

struct qv_client;

/* The text of this thread's last call that failed; "" if there was none.  Valid until the thread's next call. */
const char *qv_client_error(void);

/* --- opening ------------------------------------------------------------------------------------------------------ */

/* Either a configuration file, or store and app. */
struct qv_client_options {
        uint32_t size;
        uint32_t shards;    /* with `store`: refuse the store if it has another number; 0: take what is recorded */
        const char *config; /* runtime.cfg; NULL: as the command line finds it ($QUIVER_CONFIG, ./etc, /etc/quiver) */
        const char *store;  /* "sqlite:/srv/quiver.db"; then no file is read */
        const char *app;    /* with `store` */
};
#define QV_CLIENT_OPTIONS_INIT                                                                                         \
        {                                                                                                              \
                sizeof(struct qv_client_options), 0, NULL, NULL, NULL                                                  \
        }

/* Opens a store that is there; only a host makes one.  `options` may be NULL.  -ENOENT: no configuration, or no store
 * yet; -EINVAL: the configuration is wrong, or disagrees with what the store has recorded; -EPROTO: not a Quiver store,
 * or a newer one. */
int qv_client_open(const struct qv_client_options *options, struct qv_client **ret_client);

/* No other call may be under way.  NULL is fine. */
void qv_client_close(struct qv_client *client);

struct qv_client_info {
        uint32_t size;
        uint32_t shards;
        const char *app; /* these live until qv_client_close() */
        const char *driver;
        const char *durability; /* in plain words, what a crash may lose */
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

/* Zero means "not said": the handler's settings hold. */
struct qv_client_task {
        uint32_t size;
        int32_t lane;        /* -1 low, 0 normal, 1 high */
        const char *handler; /* the only field that must be set */
        const char *key;     /* what order is kept for: 1 to 255 bytes, no control characters.  NULL: none */
        const void *payload;
        size_t payload_size;
        uint64_t delay_ms;   /* not started sooner than this from now */
        uint64_t unique_ms;  /* not taken if one for the same handler and key was within this time; needs a key */
        uint64_t timeout_ms; /* what one start may take */
        uint64_t reply_ms;   /* keep the outcome this long for qv_client_wait(), apart from the results */
        const struct qv_client_header *headers;
        size_t headers_count; /* at most 32 */
        uint32_t attempts;
};
#define QV_CLIENT_TASK_INIT                                                                                            \
        {                                                                                                              \
                sizeof(struct qv_client_task), 0, NULL, NULL, NULL, 0, 0, 0, 0, 0, NULL, 0, 0                          \
        }

/* Submits one task.  When this returns 0 the task is kept, as durably as the store keeps anything.
 * -EEXIST: `unique_ms`, and one is there already: its id is in ret_id.  -EINVAL, -EMSGSIZE: the text names the field.
 * -EDQUOT: the shard's backlog is full.  ret_id may be NULL. */
int qv_client_submit(struct qv_client *client, const struct qv_client_task *task, char ret_id[QV_CLIENT_ID_SIZE]);

/* What became of one of many.  After an error: 0 is stored; -ECANCELED was not sent; any other may or may not be. */
struct qv_client_submitted {
        int32_t status; /* as qv_client_submit() returns */
        char id[QV_CLIENT_ID_SIZE];
};

/* Submits many, in the order given, a thousand at a time in one step.  `tasks` all have the size of the first.  Returns
 * how many were not stored (the text is about the first of them), or a negative errno if the store did not answer.
 * `ret_submitted` has room for `count`; NULL if all that matters is the number. */
int qv_client_submit_many(struct qv_client *client, const struct qv_client_task *tasks, size_t count,
        struct qv_client_submitted *ret_submitted);

/* --- waiting for one task ----------------------------------------------------------------------------------------- */

/* Something that happened to a task, oldest first. */
struct qv_client_event {
        uint64_t at_ms;   /* unix time */
        const char *kind; /* "attempt", "crash", "interruption", "waited", "dead", "requeued", "held" */
        const char *text;
};

enum { QV_CLIENT_DONE = 0, QV_CLIENT_DEAD = 1 };

struct qv_client_outcome {
        uint32_t size;
        int32_t state;      /* QV_CLIENT_DONE or QV_CLIENT_DEAD */
        const void *result; /* followed by a NUL that is not counted; NULL: it returned none */
        size_t result_size;
        const char *reason; /* dead: one word ("rejected", "exhausted", "crashed", "cancelled"); else "" */
        const char *error;  /* dead: what the handler said last; else "" */
        const struct qv_client_event *events;
        size_t events_count;
        uint32_t attempts; /* that were charged to it */
        uint32_t crashes;
        uint32_t interruptions;
};

/* Waits for the outcome of a task that was submitted with reply_ms.  -EAGAIN: it has not ended within timeout_ms (0:
 * only look; UINT64_MAX: for ever); so too if there is no such task or its reply_ms are over.  May be asked again; the
 * outcome stays. */
int qv_client_wait(
        struct qv_client *client, const char *id, uint64_t timeout_ms, struct qv_client_outcome **ret_outcome);
void qv_client_outcome_free(struct qv_client_outcome *outcome);

/* --- results ------------------------------------------------------------------------------------------------------ */

/* What a task without reply_ms returned. */
struct qv_client_result {
        uint32_t size;
        uint32_t shard;  /* shard and number name the result */
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

/* Takes up to `max` results that nobody holds, a shard's in order, for lease_ms: those not committed by then come back,
 * for this consumer or another.  None is not an error. */
int qv_client_consume(struct qv_client *client, uint32_t max, uint64_t lease_ms, struct qv_client_results *ret_results);
void qv_client_results_free(struct qv_client_results *results);

/* Done with these: they are gone from the store.  Only the handle that consumed them can.  Returns how many were
 * refused, because the lease was over and another has taken them.  ret_refused, if not NULL, has room for `count` and
 * gets a 1 for each of those, else 0. */
int qv_client_commit(
        struct qv_client *client, const struct qv_client_result *items, size_t count, unsigned char *ret_refused);

/* --- looking ------------------------------------------------------------------------------------------------------ */

#define QV_CLIENT_ALL_SHARDS UINT32_MAX

struct qv_client_counts {
        uint32_t size;
        uint32_t shards; /* how many were counted */
        uint64_t queued; /* in all lanes */
        uint64_t delayed;
        uint64_t in_flight;
        uint64_t parked; /* wait for their key: its head's retry, a person, or its turn */
        uint64_t dead;
        uint64_t results;
        uint64_t submitted; /* since the store was made */
        uint64_t done;
        uint64_t dropped;   /* dead ones that someone dropped */
        uint64_t oldest_ms; /* the age of the task that was queued first */
};
#define QV_CLIENT_COUNTS_INIT                                                                                          \
        {                                                                                                              \
                sizeof(struct qv_client_counts), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                                       \
        }

/* Of one shard, or of all. */
int qv_client_count(struct qv_client *client, uint32_t shard, struct qv_client_counts *counts);

/* --- desired state ------------------------------------------------------------------------------------------------ */

/* What people want of the hosts: "pause" or "pause.HANDLER", set to a reason, stops all or one handler's tasks from
 * being started.  A host that was away finds it when it comes back. */

/* Sets a name, or takes it back (value = NULL).  -E2BIG: too many names; -EMSGSIZE: over 1024 bytes. */
int qv_client_set_desired(struct qv_client *client, const char *name, const char *value);

/* *ret_value is the caller's to free().  -ENOENT: not set. */
int qv_client_get_desired(struct qv_client *client, const char *name, char **ret_value);

#ifdef __cplusplus
}
#endif

#endif
