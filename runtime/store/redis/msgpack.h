/* msgpack.h: the subset of MessagePack in which the driver passes structured arguments to its scripts (cmsgpack reads
 * it), and reads stored records. */
#ifndef QUIVER_STORE_REDIS_MSGPACK_H
#define QUIVER_STORE_REDIS_MSGPACK_H

#include "task/envelope.h"

/* The caller appends the array's `count` values afterwards. */
void msgpack_array(struct buffer *to, uint32_t count);
/* `value` is at most 2^53, the range of exact integers in Lua. */
void msgpack_number(struct buffer *to, uint64_t value);
void msgpack_bytes(struct buffer *to, struct span bytes);

/* Each takes one value from the beginning of `from`.  False, with nothing taken, if the value has another type or is
 * truncated.  Bytes are borrowed. */
bool msgpack_take_array(struct span *from, uint32_t *ret_count);
/* Takes a non-negative integer. */
bool msgpack_take_number(struct span *from, uint64_t *ret_value);
bool msgpack_take_bytes(struct span *from, struct span *ret_bytes);

#endif
