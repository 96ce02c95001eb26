/* msgpack.h: the little of MessagePack that the driver and its scripts speak with each other (cmsgpack). */
#ifndef QUIVER_STORE_REDIS_MSGPACK_H
#define QUIVER_STORE_REDIS_MSGPACK_H

#include "task/envelope.h"

/* The values of an array follow it. */
void msgpack_array(struct buffer *to, uint32_t count);
/* Up to 2^53, which is what Lua counts exactly. */
void msgpack_number(struct buffer *to, uint64_t value);
void msgpack_bytes(struct buffer *to, struct span bytes);

/* Reads what cmsgpack.pack() made of a list of texts.  The list's length, or -EBADMSG; *packed moves past it. */
int64_t msgpack_take_array(struct span *packed);
/* The next text, borrowed; false if there is none. */
bool msgpack_take_bytes(struct span *packed, struct span *ret_bytes);

#endif
