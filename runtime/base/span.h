/* span.h: a borrowed range of bytes: a pointer and a size. */
#ifndef QUIVER_BASE_SPAN_H
#define QUIVER_BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Does not own the bytes; they are not NUL-terminated. */
struct span {
        const char *data;
        size_t size;
};

#define SPAN_TEXT(text) ((struct span){ (text), sizeof(text) - 1 })

static inline struct span span_of_text(const char *text)
{
        return (struct span){ text, strlen(text) };
}

static inline bool span_is(struct span a, struct span b)
{
        return a.size == b.size && (!a.size || !__builtin_memcmp(a.data, b.data, a.size));
}

#endif
