/* arena.h: memory that is allocated piece by piece and freed all at once, such as the reply to one request. */
#ifndef QUIVER_BASE_ARENA_H
#define QUIVER_BASE_ARENA_H

#include <stddef.h>

#include "base/span.h"

/* NULL is an empty arena. */
struct arena_chunk;

/* Zeroed memory, aligned for anything, valid until arena_free().  Running out of memory ends the process. */
void *arena_take(struct arena_chunk **arena, size_t size);
/* As arena_take(), but not zeroed: for memory that the caller overwrites at once. */
void *arena_room(struct arena_chunk **arena, size_t size);
/* A copy of `bytes`, followed by a NUL that is not counted. */
struct span arena_copy(struct arena_chunk **arena, struct span bytes);
/* Frees everything except one chunk, which the next use starts with. */
void arena_reset(struct arena_chunk **arena);
void arena_free(struct arena_chunk *arena);

#endif
