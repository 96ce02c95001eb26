/* shard_checkpoints.h: checkpoints of tasks that still run, on their way to the store.
 *
 * Part of the shard (shard.h), which calls all of this but shard_save().  A running task's latest checkpoint waits
 * until the shard's next call and goes with it, fenced like all that the call says. */
#ifndef QUIVER_HOST_SHARD_SHARD_CHECKPOINTS_H
#define QUIVER_HOST_SHARD_SHARD_CHECKPOINTS_H

struct shard;
struct claimed;

struct shard_saves {
        struct claimed *waiting; /* list of those whose checkpoint is to be told */
};

/* Puts what waits into the call that is being filled in. */
void saves_tell(struct shard *s);
/* It does not run any more: what it saved goes with how it ended. */
void saves_stop(struct shard *s, struct claimed *c);
/* Forgets all that waits: the shard is not ours any more. */
void saves_drop(struct shard *s);

#endif
