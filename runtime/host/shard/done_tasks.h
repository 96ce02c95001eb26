/* done_tasks.h: the last tasks that a host has done, in memory, so that one can be asked for by its id.
 *
 * A ring of a fixed number of records, which is all that a done task leaves behind.  A task is added when its outcome
 * is durable.  Plain data, no I/O, no clock.  Times are boot time; of what was done before this boot they are
 * negative. */
#ifndef QUIVER_HOST_SHARD_DONE_TASKS_H
#define QUIVER_HOST_SHARD_DONE_TASKS_H

#include <stdbool.h>
#include <stdint.h>

#include "task/envelope.h"
#include "worker/fence.h"

struct done_task {
        int64_t at_ms;    /* when its outcome was durable */
        uint64_t ran_ms;  /* inside handle(), the last time */
        uint32_t attempt; /* the one that was done: 1 if none failed before */
        uint32_t generation;
        uint32_t hash; /* of the plugin's file: the first eight of its hexadecimal digits */
        int32_t pid;
        bool has_result;
        bool is_seat; /* `worker` is a host, on whose seat it ran */
        uint32_t result_bytes;
        uint8_t id_size, handler_size, worker_size;
        char id[TASK_ID_MAX];
        char handler[TASK_HANDLER_MAX];
        char worker[WORKER_NAME_MAX]; /* who did it, if no runner did */
};

struct done_tasks {
        struct done_task *list;
        uint32_t keep;    /* 0: none are remembered */
        uint32_t count;   /* ≤ keep */
        uint32_t next;    /* the place of the next one */
        uint64_t added;   /* so many in all: another number means that there is news */
        int64_t since_ms; /* all that was done after this is remembered */
};

/* Remembers the last `keep`, from now on. */
void done_tasks_init(struct done_tasks *done, uint32_t keep, uint64_t now_ms);
void done_tasks_free(struct done_tasks *done);

/* The place of the next record, which takes that of the oldest if there is no other; NULL if none are kept.  The caller
 * fills it in at once. */
struct done_task *done_tasks_add(struct done_tasks *done);
/* Copies id and handler, cut to what fits. */
void done_task_name(struct done_task *task, struct span id, struct span handler);
/* Empty: a runner did it.  `is_seat`: it is the name of a host. */
void done_task_set_worker(struct done_task *task, struct span worker, bool is_seat);

/* The one that was done `back` tasks before the latest; NULL: so many are not remembered. */
const struct done_task *done_tasks_get(const struct done_tasks *done, uint32_t back);
/* The latest of that id; NULL: not remembered. */
const struct done_task *done_tasks_find(const struct done_tasks *done, struct span id);

#endif
