/* shard_telling.h: the contents of one advance: outcomes of ended tasks, checkpoints, and starts at workers.
 *
 * Part of the shard (shard.h).  The struct is large, so a shard has one only while an advance is under way or to be
 * repeated.  Unused ones are kept in a list of the call schedule, which never holds more than the most calls that were
 * under way at once. */
#ifndef QUIVER_HOST_SHARD_SHARD_TELLING_H
#define QUIVER_HOST_SHARD_SHARD_TELLING_H

#include <stdint.h>

#include "host/shard/lent.h"
#include "store/store.h"

#define SHARD_SAVES_MAX 64u /* checkpoints per advance: each is up to 4 KiB */

struct shard;
struct claimed;
struct pending_outcome;

struct shard_telling {
        struct shard_telling *next;              /* in the list of unused ones */
        struct claimed *tasks[STORE_CALL_TASKS]; /* tasks that have ended; borrowed from the window */
        uint32_t tasks_count;
        struct pending_outcome *saves[SHARD_SAVES_MAX]; /* owned */
        uint32_t saves_count;
        struct lent *starts[SHARD_STARTS_MAX];                    /* starts at workers; borrowed */
        struct pending_outcome *start_outcomes[SHARD_STARTS_MAX]; /* owned */
        uint32_t starts_count;
        struct store_outcome outcomes[STORE_CALL_TASKS]; /* up to two per task, one per checkpoint and per start */
        uint32_t outcomes_count;
};

/* Moves outcomes, in order, checkpoints and starts into a new s->telling, as much as one advance may carry. */
void shard_gather(struct shard *s);
/* Appends a copy of the outcome to s->telling, with `c` as its task. */
struct store_outcome *shard_add_outcome(struct shard *s, const struct claimed *c, const struct store_outcome *outcome);
/* Frees s->telling: the call is over, or void because the lease was lost. */
void shard_drop_telling(struct shard *s);
/* Frees a list of unused ones. */
void shard_tellings_free(struct shard_telling **list);

#endif
