/* id.h: a task's id.  It ends in `-` and the number of the task's shard, so any command can find the task.
 *
 * Order and identity inside a store go by seq, not by id.  If two producers use the same id, only a search for that id
 * is affected. */
#ifndef QUIVER_TASK_ID_H
#define QUIVER_TASK_ID_H

#include "task/envelope.h"

#define SHARDS_MAX 4096u

/* Checks an id: letters, digits, `.`, `_`, `-`, then `-` and a shard below SHARDS_MAX; at most TASK_ID_MAX bytes in
 * all. 0, or -EINVAL with the text set.  ret_shard may be NULL. */
int task_id_check(struct span id, uint32_t *ret_shard, struct error *error);
/* The shard that an id ends in, whatever stands before that: for ids that were checked already. 0 or -EINVAL. */
int task_id_shard(struct span id, uint32_t *ret_shard);

/* Makes a new id: 9 characters of time, 11 random ones (55 bits), the shard.  NUL-terminated; returns its length.  Any
 * thread. */
size_t task_id_make(char id[TASK_ID_MAX + 1], uint32_t shard);

/* An id from task_id_make() is 100 bits and the shard.  task_id_pack() packs one that ends in `shard` and returns when
 * it was made; false if it is an id of another form. */
#define TASK_ID_PACKED_SIZE 13u
#define TASK_ID_MADE_ROOM   32u /* for the text and its NUL */
bool task_id_pack(struct span id, uint32_t shard, uint8_t ret_packed[TASK_ID_PACKED_SIZE], uint64_t *ret_made_ms);
/* Writes the id as text again, NUL-terminated; returns its length. */
size_t task_id_unpack(
        const uint8_t packed[TASK_ID_PACKED_SIZE], uint32_t shard, char id[TASK_ID_MADE_ROOM], uint64_t *ret_made_ms);

/* A random shard, for a new task without a key. */
uint32_t task_id_any_shard(uint32_t shards);

#endif
