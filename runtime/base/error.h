/* error.h: the text that goes with a negative errno, and the nearest known name for a misspelt one. */
#ifndef QUIVER_BASE_ERROR_H
#define QUIVER_BASE_ERROR_H

#include <stddef.h>

#define ERROR_TEXT_MAX 768

/* Filled by whoever fails, printed by whoever decides.  Lives on the caller's stack; empty if nothing went wrong. */
struct error {
        char text[ERROR_TEXT_MAX];
};

/* Writes the text (cut if too long) and returns `r`, so that a failure is one line:
 *         return error_set(error, -EINVAL, "%s: not an ELF file", path);
 * `error` may be NULL. */
__attribute__((format(printf, 3, 4))) int error_set(struct error *error, int r, const char *format, ...);

/* Puts "PREFIX: " before the text that is there, and returns `r`. */
__attribute__((format(printf, 3, 4))) int error_prefix(struct error *error, int r, const char *format, ...);

/* The known name closest to `word`, or NULL if none is close enough to be what was meant.
 * `known` is an array of `count` names. */
const char *error_nearest(const char *word, const char *const *known, size_t count);

#endif
