/* shard_checkpoints.h: checkpoints of running tasks, on their way to the store.
 *
 * Part of the shard (shard.h), which calls all of this but shard_save().  A running task's latest checkpoint goes with
 * the shard's next advance, fenced like the rest of that call. */
#ifndef QUIVER_HOST_SHARD_SHARD_CHECKPOINTS_H
#define QUIVER_HOST_SHARD_SHARD_CHECKPOINTS_H

struct shard;
struct claimed;

struct shard_saves {
        struct claimed *waiting; /* list of tasks with an unsaved checkpoint, by save_next */
};

/* Moves the waiting checkpoints into the advance that is being filled in. */
void saves_tell(struct shard *s);
/* The task has stopped running: its checkpoint goes with its outcome. */
void saves_stop(struct shard *s, struct claimed *c);
/* Forgets the waiting checkpoints: we no longer own the shard. */
void saves_drop(struct shard *s);

#endif
