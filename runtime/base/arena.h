/* arena.h: memory that is given piece by piece and freed at once: the reply of one request. */
#ifndef QUIVER_BASE_ARENA_H
#define QUIVER_BASE_ARENA_H

#include <stddef.h>

#include "base/span.h"

/* NULL is an empty arena. */
struct arena_chunk;

/* Zeroed memory, aligned for anything, valid until arena_free().  Running out of memory ends the process. */
void *arena_take(struct arena_chunk **arena, size_t size);
/* The same, but not zeroed: for what is filled in at once. */
void *arena_room(struct arena_chunk **arena, size_t size);
/* A copy of `bytes`, followed by a NUL that is not counted. */
struct span arena_copy(struct arena_chunk **arena, struct span bytes);
void arena_free(struct arena_chunk *arena);

#endif
