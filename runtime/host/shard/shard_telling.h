/* shard_telling.h: what one advance tells the store: outcomes of tasks that have ended, checkpoints, and starts at
 * workers.
 *
 * Part of the shard (shard.h).  It is large, so a shard has one only while such a call is under way or to be repeated.
 * Those that are not needed wait in a list of the call schedule, which is never longer than the calls that were under
 * way at once. */
#ifndef QUIVER_HOST_SHARD_SHARD_TELLING_H
#define QUIVER_HOST_SHARD_SHARD_TELLING_H

#include <stdint.h>

#include "host/shard/lent.h"
#include "store/store.h"

#define SHARD_SAVES_MAX 64u /* checkpoints of one call: they are up to 4 KiB each */

struct shard;
struct claimed;
struct pending_outcome;

struct shard_telling {
        struct shard_telling *next;              /* in the list of those that are not needed */
        struct claimed *tasks[STORE_CALL_TASKS]; /* that have ended */
        uint32_t tasks_count;
        struct pending_outcome *saves[SHARD_SAVES_MAX]; /* owned */
        uint32_t saves_count;
        struct lent *starts[SHARD_STARTS_MAX];                    /* at workers */
        struct pending_outcome *start_outcomes[SHARD_STARTS_MAX]; /* owned */
        uint32_t starts_count;
        struct store_outcome
                outcomes[STORE_CALL_TASKS]; /* one or two for each task, one for each checkpoint and start */
        uint32_t outcomes_count;
};

/* Moves what ended, in order, and the checkpoints that wait, into the call that is being filled in. */
void shard_gather(struct shard *s);
/* One more outcome for that call; the task is filled in too. */
struct store_outcome *shard_add_outcome(struct shard *s, const struct claimed *c, const struct store_outcome *outcome);
/* The call is over, or nothing of it counts any more. */
void shard_drop_telling(struct shard *s);
/* Frees a list of those that are not needed. */
void shard_tellings_free(struct shard_telling **list);

#endif
