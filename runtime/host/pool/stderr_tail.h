/* stderr_tail.h: the last lines that a runner wrote to standard error, for whoever asks why it died.  Plain data. */
#ifndef QUIVER_HOST_POOL_STDERR_TAIL_H
#define QUIVER_HOST_POOL_STDERR_TAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STDERR_TAIL_LINES 8
#define STDERR_TAIL_BYTES 240 /* of a line; the rest of a longer one is left out */

struct stderr_line {
        uint64_t at_ms;                   /* when it was read; 0: no line */
        char text[STDERR_TAIL_BYTES + 1]; /* without control characters */
};

/* Starts with zeroes. */
struct stderr_tail {
        struct stderr_line lines[STDERR_TAIL_LINES]; /* a ring: the oldest is overwritten */
        uint64_t count;                              /* of all lines so far */
        /* The latest line that names a cause ("terminate called after throwing an instance of …"), with what it says in
         * the line after it: what follows may push it out of the ring, as a sanitizer's report does. */
        struct stderr_line cause;
        bool is_report; /* a sanitizer reports: of that the first lines are kept, and its tables are not */
};

void stderr_tail_add(struct stderr_tail *tail, const char *line, uint64_t now_ms);

/* The line that names a cause, if it was written at that time or later; "": there is none. */
const char *stderr_tail_cause(const struct stderr_tail *tail, uint64_t since_ms);

/* The i-th of the kept lines, the oldest first, that were written at that time or later; NULL: no more. */
const char *stderr_tail_line(const struct stderr_tail *tail, uint64_t since_ms, size_t i);

#endif
