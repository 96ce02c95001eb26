/* stderr_tail.h: the last lines that a runner wrote to standard error, to explain its death.  Plain data. */
#ifndef QUIVER_HOST_POOL_STDERR_TAIL_H
#define QUIVER_HOST_POOL_STDERR_TAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STDERR_TAIL_LINES 8
#define STDERR_TAIL_BYTES 240 /* kept per line; the rest is cut */

struct stderr_line {
        uint64_t at_ms;                   /* when it was read; 0: no line */
        char text[STDERR_TAIL_BYTES + 1]; /* without control characters */
};

/* Initialise with zeroes. */
struct stderr_tail {
        struct stderr_line lines[STDERR_TAIL_LINES]; /* a ring: the oldest is overwritten */
        uint64_t count;                              /* lines added so far */
        /* The latest line that names a cause ("terminate called after throwing an instance of …"), joined with the line
         * after it if that has the message.  Kept apart, because later output such as a sanitizer's report may push it
         * out of the ring. */
        struct stderr_line cause;
        bool is_report; /* within a sanitizer's report: its first lines are kept, its tables are not */
};

void stderr_tail_add(struct stderr_tail *tail, const char *line, uint64_t now_ms);

/* The line that names a cause, if written at `since_ms` or later; "": none. */
const char *stderr_tail_cause(const struct stderr_tail *tail, uint64_t since_ms);

/* The i-th line, oldest first, of those written at `since_ms` or later; NULL: no more. */
const char *stderr_tail_line(const struct stderr_tail *tail, uint64_t since_ms, size_t i);

#endif
