/* msgpack.h: the little of MessagePack in which the driver tells its scripts what has parts (cmsgpack reads it). */
#ifndef QUIVER_STORE_REDIS_MSGPACK_H
#define QUIVER_STORE_REDIS_MSGPACK_H

#include "task/envelope.h"

/* The values of an array follow it. */
void msgpack_array(struct buffer *to, uint32_t count);
/* Up to 2^53, which is what Lua counts exactly. */
void msgpack_number(struct buffer *to, uint64_t value);
void msgpack_bytes(struct buffer *to, struct span bytes);

#endif
