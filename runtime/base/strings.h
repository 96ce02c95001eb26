/* strings.h: copies of strings, single and in lists.
 *
 * Running out of memory ends the process, as everywhere in Quiver. */
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
/* Overwrites the text before it frees it.  NULL: nothing to do. */
void text_free_secret(char *text);

/* Appends a zeroed element to `items`, an array of `count` elements of `size` bytes each.  Returns the array, which may
 * have moved. */
void *array_grow(void *items, size_t count, size_t size);

/* Appends a copy of `text`. */
void strings_add(struct strings *t, const char *text);
bool strings_has(const struct strings *t, const char *text);
void strings_free(struct strings *t);

/* The size of the UTF-8 character at `at`, where `left` bytes (at least one) are left; 0 if it is not valid. */
size_t utf8_size(const unsigned char *at, size_t left);

#endif
