/* lines.h: a child's output, cut into lines, at a bounded rate. */
#ifndef QUIVER_HOST_LINES_H
#define QUIVER_HOST_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINES_MAX 2048 /* bytes of one line; the rest of a longer one is dropped and "..." stands for it */

/* Zero-initialised plus `rate` is ready. */
struct lines {
        uint32_t rate;     /* lines per second, and the burst */
        uint64_t full_ms;  /* when the bucket will be full again, */
        uint64_t spent_us; /* and the part of a millisecond beyond that */
        uint32_t dropped;  /* lines lost since the last one that got through */
        size_t size;
        bool is_cut;
        char line[LINES_MAX + 8];
};

/* Called for each whole line, with how many were dropped before it.  NULs in it have become spaces. */
typedef void lines_fn(void *arg, const char *line, uint32_t dropped);

void lines_feed(struct lines *l, const char *data, size_t size, uint64_t now_ms, lines_fn *fn, void *arg);
/* The end: what is left without a newline counts as a line; should the last ones have been dropped, a line that says
 * "(end of output)" brings their count. */
void lines_end(struct lines *l, uint64_t now_ms, lines_fn *fn, void *arg);

#endif
