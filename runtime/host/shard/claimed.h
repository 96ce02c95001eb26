/* claimed.h: a claimed task in memory: copied from what the store gave, and freed with all that it owns. */
#ifndef QUIVER_HOST_SHARD_CLAIMED_H
#define QUIVER_HOST_SHARD_CLAIMED_H

#include "host/shard/window.h"

/* A task that `pool` is to run, in no window yet; its memory is from `blocks`, which may be NULL. */
struct claimed *claimed_copy(struct blocks *blocks, const struct store_task *task, uint32_t pool);
/* Of a task that is in no window any more. */
void claimed_free(struct blocks *blocks, struct claimed *c);
/* The memory of a task alone: what else it owned is gone, or has another owner.  NULL: nothing. */
void claimed_free_memory(struct blocks *blocks, struct claimed *c);

#endif
