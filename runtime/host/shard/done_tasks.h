/* done_tasks.h: the last tasks that a host has done, in memory, so that a user can look one up by its id.
 *
 * A ring with a fixed number of records; a done task leaves nothing else behind.  A task is added when its outcome is
 * durable.  Plain data, no I/O, no clock.  Times are boot time; tasks that were done before this boot have negative
 * times. */
#ifndef QUIVER_HOST_SHARD_DONE_TASKS_H
#define QUIVER_HOST_SHARD_DONE_TASKS_H

#include <stdbool.h>
#include <stdint.h>

#include "task/envelope.h"
#include "worker/fence.h"

struct done_task {
        int64_t at_ms;    /* when the outcome became durable */
        uint64_t ran_ms;  /* duration of the last handle() call */
        uint32_t attempt; /* the attempt that succeeded; 1: the first */
        uint32_t generation;
        uint32_t hash; /* first eight hexadecimal digits of the plugin file's hash */
        int32_t pid;
        bool has_result;
        bool is_seat; /* the task ran on a seat of the host that `worker` names */
        uint32_t result_bytes;
        uint8_t id_size, handler_size, worker_size;
        char id[TASK_ID_MAX];
        char handler[TASK_HANDLER_MAX];
        char worker[WORKER_NAME_MAX]; /* the worker, or the host with the seat; empty: one of our runners */
};

struct done_tasks {
        struct done_task *list;
        uint32_t keep;    /* capacity; 0: nothing is remembered */
        uint32_t count;   /* ≤ keep */
        uint32_t next;    /* index of the next record */
        uint64_t added;   /* total number added, so that readers see whether there are new ones */
        int64_t since_ms; /* every task done after this time is still remembered */
};

/* Remembers the last `keep` tasks that are done after now_ms. */
void done_tasks_init(struct done_tasks *done, uint32_t keep, uint64_t now_ms);
void done_tasks_free(struct done_tasks *done);

/* A record to fill in at once, the oldest one if the ring is full; NULL if keep is 0. */
struct done_task *done_tasks_add(struct done_tasks *done);
/* Copies id and handler, truncated to the fields' sizes. */
void done_task_name(struct done_task *task, struct span id, struct span handler);
/* An empty `worker` means one of our runners.  `is_seat`: `worker` is the name of the host whose seat ran the task. */
void done_task_set_worker(struct done_task *task, struct span worker, bool is_seat);

/* The task that was done `back` tasks before the latest; NULL: not remembered that far back. */
const struct done_task *done_tasks_get(const struct done_tasks *done, uint32_t back);
/* The latest record with that id; NULL: not remembered. */
const struct done_task *done_tasks_find(const struct done_tasks *done, struct span id);

#endif
