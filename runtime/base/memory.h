/* memory.h: allocation that never fails.
 *
 * The one rule of all of runtime/: running out of memory ends the process.  A host that cannot allocate a few bytes
 * cannot keep its promises either; its guard returns its leases, and uncommitted tasks run elsewhere.  Sizes that come
 * from outside (a payload, a reply, a document) are bounded where they are read. */
#ifndef QUIVER_BASE_MEMORY_H
#define QUIVER_BASE_MEMORY_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* The struct that contains `pointer` as its `member`. */
#define container_of(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

static inline void *memory_or_abort(void *memory)
{
        if (!memory)
                abort();
        return memory;
}

/* The caller frees the result.  A size of 0 gives a pointer that may be freed. */
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
