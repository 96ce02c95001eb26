/* pending_outcome.h: what the store will be told about a task, in memory of its own.
 *
 * A handler's answer is only borrowed while it is looked at; its outcome waits for the next advance, and perhaps for
 * the one after that.  So it is copied once, here. */
#ifndef QUIVER_HOST_SHARD_PENDING_OUTCOME_H
#define QUIVER_HOST_SHARD_PENDING_OUTCOME_H

#include "ring/pack.h"
#include "store/store.h"
#include "trace/headers.h"

struct pending_outcome {
        struct store_outcome outcome; /* its spans point into `bytes`, `follow_ups` and `merged` */
        struct store_follow_up *follow_ups;
        struct store_ref *merged; /* MERGE; what they point to is the tasks' own */
        size_t room, size;        /* of bytes */
        char bytes[];
};

/* An outcome of that kind with a copy of `error`. */
struct pending_outcome *pending_outcome_new(enum store_outcome_kind kind, enum task_cost cost, const char *error);
/* DONE, with the result and the follow-ups of an answer, which are part of that trace (NULL: of none) unless the
 * handler has put them into another.  NULL if one of the follow-ups is not a task: the text says which. */
struct pending_outcome *pending_outcome_done(
        const struct ring_reply *reply, const struct trace_headers *trace, struct error *error);
/* DIVERT: its key waits for `name`, for that reason. */
struct pending_outcome *pending_outcome_divert(const char *reason, const char *name);
/* START, at that holder. */
struct pending_outcome *pending_outcome_start(const char *holder);
/* CHECKPOINT. */
struct pending_outcome *pending_outcome_checkpoint(const void *data, size_t size);
/* MERGE, of so many tasks: the caller fills in `merged`. */
struct pending_outcome *pending_outcome_merge(uint32_t count);
/* Accepts NULL. */
void pending_outcome_free(struct pending_outcome *pending);

#endif
