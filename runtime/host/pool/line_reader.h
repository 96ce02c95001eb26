/* line_reader.h: a child's output, cut into lines, at a bounded rate. */
#ifndef QUIVER_HOST_POOL_LINE_READER_H
#define QUIVER_HOST_POOL_LINE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINE_READER_MAX 2048 /* bytes of one line; the rest of a longer one is dropped and "..." stands for it */

/* Zero-initialised plus `rate` is ready. */
struct line_reader {
        uint32_t rate;     /* lines per second, and the burst */
        uint64_t full_ms;  /* when the bucket will be full again, */
        uint64_t spent_us; /* and the part of a millisecond beyond that */
        uint32_t dropped;  /* lines lost since the last one that got through */
        size_t size;
        bool is_cut;
        char line[LINE_READER_MAX + 8];
};

/* Called for each whole line, with how many were dropped before it.  NULs in it have become spaces. */
typedef void line_reader_fn(void *arg, const char *line, uint32_t dropped);

void line_reader_feed(
        struct line_reader *l, const char *data, size_t size, uint64_t now_ms, line_reader_fn *fn, void *arg);
/* The end: what is left without a newline counts as a line; should the last ones have been dropped, a line that says
 * "(end of output)" brings their count. */
void line_reader_end(struct line_reader *l, uint64_t now_ms, line_reader_fn *fn, void *arg);

#endif
