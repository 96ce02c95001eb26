/* line_reader.h: a child's output, cut into lines, at a bounded rate. */
#ifndef QUIVER_HOST_POOL_LINE_READER_H
#define QUIVER_HOST_POOL_LINE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINE_READER_MAX 2048 /* bytes of one line; the rest of a longer one is replaced by "..." */

/* Initialise with zeroes and `rate`. */
struct line_reader {
        uint32_t rate;     /* lines per second, and the size of a burst; 0: no limit */
        uint64_t full_ms;  /* when the token bucket will be full again */
        uint64_t spent_us; /* the fraction of a millisecond to add to full_ms */
        uint32_t dropped;  /* lines dropped since the last one that passed */
        size_t size;
        bool is_cut;
        char line[LINE_READER_MAX + 8];
};

/* Called for each complete line, with the number of lines dropped before it.  NULs in it are replaced by spaces. */
typedef void line_reader_fn(void *arg, const char *line, uint32_t dropped);

void line_reader_feed(
        struct line_reader *l, const char *data, size_t size, uint64_t now_ms, line_reader_fn *fn, void *arg);
/* Ends the output: a rest without a newline counts as a line.  If the last lines were dropped, a line "(end of output)"
 * carries their count. */
void line_reader_end(struct line_reader *l, uint64_t now_ms, line_reader_fn *fn, void *arg);

#endif
