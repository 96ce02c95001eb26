/* reply_memory.h: memory for a socket's replies: hiredis parses, we allocate.
 *
 * hiredis allocates two pieces per element of a reply and frees them one by one, which took a sixth of a host's time
 * under load.  Here a reply is in one arena, which is reused for the next one. */
#ifndef QUIVER_REDIS_REPLY_MEMORY_H
#define QUIVER_REDIS_REPLY_MEMORY_H

#include <hiredis/hiredis.h>
#include <stdint.h>

struct arena_chunk;

/* All zero is valid and empty.  Holds one reply at a time: the one being read, or the one read last. */
struct reply_memory {
        struct arena_chunk *arena;
        uint32_t elements; /* elements announced so far in the reply being read */
        uint32_t elements_max;
};

/* A reader whose replies are in `memory`, which must outlive it.  A reply with more than `elements_max` elements fails
 * with REDIS_ERR_OOM, because a few bytes can announce any number. */
redisReader *reply_memory_reader(struct reply_memory *memory, uint32_t elements_max);

/* Frees the last reply for reuse. */
void reply_memory_reset(struct reply_memory *memory);
/* Frees the memory, when the reader is gone. */
void reply_memory_free(struct reply_memory *memory);

#endif
