/* claimed.h: a claimed task in memory: copied from what the store gave, and freed with all that it owns. */
#ifndef QUIVER_HOST_SHARD_CLAIMED_H
#define QUIVER_HOST_SHARD_CLAIMED_H

#include "host/shard/window.h"

/* A task of its own memory that `pool` is to run, in no window yet. */
struct claimed *claimed_copy(const struct store_task *task, uint32_t pool);
/* Of a task that is in no window any more. */
void claimed_free(struct claimed *c);

#endif
