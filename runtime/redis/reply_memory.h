/* reply_memory.h: where a socket's replies are put together: hiredis parses, the objects are ours.
 *
 * hiredis allocates two pieces for each element of a reply and frees them one by one, which was a sixth of what a host
 * used under load.  Here a reply is in one arena, which is emptied and used again for the next one. */
#ifndef QUIVER_REDIS_REPLY_MEMORY_H
#define QUIVER_REDIS_REPLY_MEMORY_H

#include <hiredis/hiredis.h>
#include <stdint.h>

struct arena_chunk;

/* Zero-initialised is empty.  One reply at a time: the one that is being read, or the one that was read last. */
struct reply_memory {
        struct arena_chunk *arena;
        uint32_t elements; /* announced so far in the reply that is being read */
        uint32_t elements_max;
};

/* A reader whose replies are in `memory`, which must live as long as it.  A reply of more elements than `elements_max`
 * fails with REDIS_ERR_OOM: a few bytes announce any number of them. */
redisReader *reply_memory_reader(struct reply_memory *memory, uint32_t elements_max);

/* The last reply is not needed any more. */
void reply_memory_reset(struct reply_memory *memory);
/* Neither is the reader. */
void reply_memory_free(struct reply_memory *memory);

#endif
