/* msgpack.h: the little of MessagePack in which the driver tells its scripts what has parts (cmsgpack reads it), and
 * reads what they have stored. */
#ifndef QUIVER_STORE_REDIS_MSGPACK_H
#define QUIVER_STORE_REDIS_MSGPACK_H

#include "task/envelope.h"

/* The values of an array follow it. */
void msgpack_array(struct buffer *to, uint32_t count);
/* Up to 2^53, which is what Lua counts exactly. */
void msgpack_number(struct buffer *to, uint64_t value);
void msgpack_bytes(struct buffer *to, struct span bytes);

/* Each takes one value from the beginning of `from`; false, with nothing taken, if another stands there or it is cut
 * short.  Bytes are borrowed. */
bool msgpack_take_array(struct span *from, uint32_t *ret_count);
/* A whole number, not negative. */
bool msgpack_take_number(struct span *from, uint64_t *ret_value);
bool msgpack_take_bytes(struct span *from, struct span *ret_bytes);

#endif
