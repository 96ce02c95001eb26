/* error.h: the text that goes with a negative errno, and the known name nearest to a misspelt one. */
#ifndef QUIVER_BASE_ERROR_H
#define QUIVER_BASE_ERROR_H

#include <stddef.h>

#define ERROR_TEXT_MAX 768

/* The function that fails fills it in; the caller that handles the failure prints it.  It lives on the caller's stack
 * and is empty if nothing went wrong. */
struct error {
        char text[ERROR_TEXT_MAX];
};

/* Writes the text (cut if too long) and returns `r`, so that a failure takes one line:
 *         return error_set(error, -EINVAL, "%s: not an ELF file", path);
 * `error` may be NULL. */
__attribute__((format(printf, 3, 4))) int error_set(struct error *error, int r, const char *format, ...);

/* Puts "PREFIX: " before the existing text and returns `r`. */
__attribute__((format(printf, 3, 4))) int error_prefix(struct error *error, int r, const char *format, ...);

/* The known name closest to `word`, or NULL if none is close enough to be a likely misspelling.
 * `known` is an array of `count` names. */
const char *error_nearest(const char *word, const char *const *known, size_t count);

#endif
