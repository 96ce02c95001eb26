/* logger.h: log lines on their way to the host.  Never blocks; any thread.
 *
 * What is over the rate, or does not fit into the socket, is dropped and counted; the next line that passes carries the
 * count. */
#ifndef QUIVER_RUNNER_LOGGER_H
#define QUIVER_RUNNER_LOGGER_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "runner/rate_limit.h"

#define LOGGER_NO_SEAT UINT32_MAX

struct logger {
        int fd;                     /* control socket, borrowed */
        _Atomic uint32_t level_max; /* enum log_level; finer lines are not sent, nor counted */
        struct rate_limit bucket;
        _Atomic uint32_t dropped;
};

void logger_init(struct logger *l, int fd, uint32_t level_max, uint32_t lines_per_second);

/* `seat` may be LOGGER_NO_SEAT, `ticket` 0.  A level that does not exist counts as the nearest one. */
void logger_line(struct logger *l, int level, uint32_t seat, uint64_t ticket, const char *text);

/* Copies `from` as one line: at most `size` - 1 bytes, never ending inside a UTF-8 character, control characters as
 * spaces, no white space at the end. */
void logger_clean(char *to, size_t size, const char *from);

#endif
