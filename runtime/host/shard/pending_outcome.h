/* pending_outcome.h: a task's outcome until an advance has committed it, in memory of its own.
 *
 * A handler's answer is borrowed from the ring and only valid while it is judged; its outcome waits for the next
 * advance or the one after that.  So it is copied here, once. */
#ifndef QUIVER_HOST_SHARD_PENDING_OUTCOME_H
#define QUIVER_HOST_SHARD_PENDING_OUTCOME_H

#include "ring/pack.h"
#include "store/store.h"
#include "trace/headers.h"

struct pending_outcome {
        struct store_outcome outcome; /* its spans point into `bytes`, `follow_ups` and `merged` */
        struct store_follow_up *follow_ups;
        struct store_ref *merged; /* MERGE; their spans point into the merged tasks (struct claimed) */
        size_t room, size;        /* allocated and used, of `bytes` */
        char bytes[];
};

/* An outcome of that kind, with a copy of `error`. */
struct pending_outcome *pending_outcome_new(enum store_outcome_kind kind, enum task_cost cost, const char *error);
/* DONE, with the result and follow-ups of an answer; the caller changes nothing in it.  Follow-ups join the trace
 * `trace` (NULL: none) unless the handler set another one.  NULL if a follow-up is not a valid task; `error` says
 * which. */
struct pending_outcome *pending_outcome_done(
        const struct ring_reply *reply, const struct trace_headers *trace, struct error *error);
/* DIVERT: the key waits in the store for `name` (store/names.h). */
struct pending_outcome *pending_outcome_divert(const char *reason, const char *name);
/* START, recorded with that holder. */
struct pending_outcome *pending_outcome_start(const char *holder);
/* CHECKPOINT, with a copy of `data`. */
struct pending_outcome *pending_outcome_checkpoint(const void *data, size_t size);
/* MERGE of `count` tasks; the caller fills in `merged`. */
struct pending_outcome *pending_outcome_merge(uint32_t count);
/* Accepts NULL. */
void pending_outcome_free(struct pending_outcome *pending);

#endif
