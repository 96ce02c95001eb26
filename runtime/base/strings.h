/* strings.h: copies of strings, one by one and in lists.
 *
 * As everywhere in Quiver, running out of memory ends the process: a configuration is a few kilobytes. */
#ifndef QUIVER_BASE_STRINGS_H
#define QUIVER_BASE_STRINGS_H

#include <stdbool.h>
#include <stddef.h>

/* Zero-initialised is empty. */
struct strings {
        char **items;
        size_t count;
};

/* Owned by the caller: free().  NULL gives NULL. */
char *text_copy(const char *text);
char *text_copy_part(const char *text, size_t size);
__attribute__((format(printf, 1, 2))) char *text_printf(const char *format, ...);

/* One more element at the end of `items`, which holds `count` of `size` bytes each and may move: returns the new array,
 * with the new element zeroed. */
void *array_grow(void *items, size_t count, size_t size);

/* Adds a copy. */
void strings_add(struct strings *t, const char *text);
bool strings_has(const struct strings *t, const char *text);
void strings_free(struct strings *t);

#endif
