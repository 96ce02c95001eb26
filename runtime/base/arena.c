#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"

#define CHUNK_ROOM 16384u

struct arena_chunk {
        struct arena_chunk *next;
        size_t room;
        size_t used;
        max_align_t data[];
};

void *arena_room(struct arena_chunk **arena, size_t size)
{
        size = (size + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
        struct arena_chunk *chunk = *arena;
        if (!chunk || chunk->room - chunk->used < size) {
                size_t room = max_u64(size, CHUNK_ROOM);
                chunk = memory_alloc(sizeof(*chunk) + room);
                *chunk = (struct arena_chunk){ .next = *arena, .room = room };
                *arena = chunk;
        }
        void *at = (char *)chunk->data + chunk->used;
        chunk->used += size;
        return at;
}

void *arena_take(struct arena_chunk **arena, size_t size)
{
        return memset(arena_room(arena, size), 0, size);
}

struct span arena_copy(struct arena_chunk **arena, struct span bytes)
{
        char *to = arena_room(arena, bytes.size + 1);
        if (bytes.size)
                memcpy(to, bytes.data, bytes.size);
        to[bytes.size] = 0;
        return (struct span){ to, bytes.size };
}

void arena_reset(struct arena_chunk **arena)
{
        struct arena_chunk *kept = NULL;
        for (struct arena_chunk *chunk = *arena, *next; chunk; chunk = next) {
                next = chunk->next;
                if (!kept && chunk->room == CHUNK_ROOM)
                        kept = chunk;
                else
                        free(chunk);
        }
        *arena = kept;
        if (!kept)
                return;
        kept->next = NULL;
        kept->used = 0;
}

void arena_free(struct arena_chunk *arena)
{
        while (arena) {
                struct arena_chunk *next = arena->next;
                free(arena);
                arena = next;
        }
}
