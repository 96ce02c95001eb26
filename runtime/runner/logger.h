/* logger.h: sends log lines to the host.  Never blocks; any thread.
 *
 * Lines over the rate, and lines that do not fit into the socket, are dropped and counted; the next line that is sent
 * carries the count. */
#ifndef QUIVER_RUNNER_LOGGER_H
#define QUIVER_RUNNER_LOGGER_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "runner/rate_limit.h"

#define LOGGER_NO_SEAT UINT32_MAX

struct logger {
        int fd;                     /* control socket, borrowed */
        _Atomic uint32_t level_max; /* enum log_level; more detailed lines are neither sent nor counted as dropped */
        struct rate_limit bucket;
        _Atomic uint32_t dropped;
};

void logger_init(struct logger *l, int fd, uint32_t level_max, uint32_t lines_per_second);

/* `seat` may be LOGGER_NO_SEAT, `ticket` 0.  A level that does not exist counts as the nearest one. */
void logger_line(struct logger *l, int level, uint32_t seat, uint64_t ticket, const char *text);

/* Copies `from` as one line: at most `size` - 1 bytes, not cut inside a UTF-8 character, control characters replaced by
 * spaces, no white space at the end. */
void logger_clean(char *to, size_t size, const char *from);

#endif
