/* memory.h: memory that is there.
 *
 * The one rule of all of runtime/: running out of memory ends the process.  A host that cannot allocate a few bytes
 * cannot keep its promises either; its guard returns its leases, and what was not committed runs elsewhere.  What is
 * large because somebody else said so (a payload, a reply, a document) is bounded where it is read, before this. */
#ifndef QUIVER_BASE_MEMORY_H
#define QUIVER_BASE_MEMORY_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* The struct that `pointer` is the member `member` of. */
#define container_of(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

static inline void *memory_or_abort(void *memory)
{
        if (!memory)
                abort();
        return memory;
}

/* Each is the caller's: free().  A size of 0 gives a pointer that may be freed. */
static inline void *memory_alloc(size_t size)
{
        return memory_or_abort(malloc(size ? size : 1));
}

static inline void *memory_zero(size_t count, size_t size)
{
        return memory_or_abort(calloc(count ? count : 1, size ? size : 1));
}

static inline void *memory_resize(void *memory, size_t size)
{
        return memory_or_abort(realloc(memory, size ? size : 1));
}

static inline char *memory_text(const char *text)
{
        return (char *)memory_or_abort(strdup(text));
}

#endif
