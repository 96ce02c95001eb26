/* id.h: a task's id, which says where the task is: it ends in `-` and its shard's number.
 *
 * Ids are for people and for finding things again.  Order and identity inside a store go by seq; two producers that
 * give the same id harm only whoever looks for it. */
#ifndef QUIVER_TASK_ID_H
#define QUIVER_TASK_ID_H

#include "task/envelope.h"

#define SHARDS_MAX 4096u

/* Letters, digits, `.`, `_`, `-`, at most TASK_ID_MAX in all; then `-` and a shard below SHARDS_MAX.  0 or -EINVAL.
 * ret_shard may be NULL. */
int task_id_check(struct span id, uint32_t *ret_shard, struct error *error);

/* A new id: 9 letters of time, 11 of chance (55 bits), the shard.  NUL-terminated; returns its length.  Any thread. */
size_t task_id_make(char id[TASK_ID_MAX + 1], uint32_t shard);

/* An id as task_id_make() makes them is 100 bits and the shard.  Packs one that ends in `shard`, and says when it was
 * made; false if it is another kind of id. */
#define TASK_ID_PACKED_SIZE 13u
#define TASK_ID_MADE_ROOM   32u /* for the text and its NUL */
bool task_id_pack(struct span id, uint32_t shard, uint8_t ret_packed[TASK_ID_PACKED_SIZE], uint64_t *ret_made_ms);
/* The text again, NUL-terminated; returns its length. */
size_t task_id_unpack(
        const uint8_t packed[TASK_ID_PACKED_SIZE], uint32_t shard, char id[TASK_ID_MADE_ROOM], uint64_t *ret_made_ms);

/* The shard a new task without a key goes to: any will do. */
uint32_t task_id_any_shard(uint32_t shards);

#endif
