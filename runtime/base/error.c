#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

int error_set(struct error *error, int r, const char *format, ...)
{
        if (error) {
                va_list args;
                va_start(args, format);
                (void)vsnprintf(error->text, sizeof(error->text), format, args);
                va_end(args);
        }
        return r;
}

int error_prefix(struct error *error, int r, const char *format, ...)
{
        if (error) {
                char prefix[ERROR_TEXT_MAX];
                char old[ERROR_TEXT_MAX];
                va_list args;
                va_start(args, format);
                (void)vsnprintf(prefix, sizeof(prefix), format, args);
                va_end(args);
                memcpy(old, error->text, sizeof(old));
                int n = snprintf(error->text, sizeof(error->text), "%s: ", prefix);
                if (n > 0 && (size_t)n < sizeof(error->text))
                        (void)snprintf(error->text + n, sizeof(error->text) - (size_t)n, "%s", old);
        }
        return r;
}

#define NEAREST_MAX 64

/* The number of edits (insert, delete, replace, swap of neighbours) that turn `a` into `b`; case is ignored. */
static size_t edit_distance(const char *a, const char *b)
{
        size_t rows[3][NEAREST_MAX + 1];
        size_t a_len = strnlen(a, NEAREST_MAX);
        size_t b_len = strnlen(b, NEAREST_MAX);
        for (size_t j = 0; j <= b_len; j++)
                rows[0][j] = j;
        for (size_t i = 1; i <= a_len; i++) {
                size_t *row = rows[i % 3];
                const size_t *above = rows[(i - 1) % 3];
                row[0] = i;
                for (size_t j = 1; j <= b_len; j++) {
                        int same = strncasecmp(a + i - 1, b + j - 1, 1) == 0;
                        size_t best = above[j - 1] + (same ? 0 : 1);
                        if (above[j] + 1 < best)
                                best = above[j] + 1;
                        if (row[j - 1] + 1 < best)
                                best = row[j - 1] + 1;
                        if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                                size_t swapped = rows[(i - 2) % 3][j - 2] + 1;
                                if (swapped < best)
                                        best = swapped;
                        }
                        row[j] = best;
                }
        }
        return rows[a_len % 3][b_len];
}

const char *error_nearest(const char *word, const char *const *known, size_t count)
{
        const char *nearest = NULL;
        size_t allowed = strlen(word) / 3 + 1;
        for (size_t i = 0; i < count; i++) {
                size_t distance = edit_distance(word, known[i]);
                /* An abbreviation ("stat" for "status") is one edit away, however long the rest of the name is. */
                if (distance > 0 && strlen(word) >= 3 && !strncasecmp(word, known[i], strlen(word)))
                        distance = 1;
                if (distance <= allowed && distance < strlen(known[i])) {
                        allowed = distance ? distance - 1 : 0;
                        nearest = known[i];
                        if (!distance)
                                break;
                }
        }
        return nearest;
}
