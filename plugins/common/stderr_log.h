/* stderr_log.h: a child's standard error: each line goes to the log, and the last lines are kept for the error text. */
#ifndef QUIVER_PLUGINS_STDERR_LOG_H
#define QUIVER_PLUGINS_STDERR_LOG_H

#include <stdbool.h>
#include <stddef.h>

#include <quiver/plugin.h>

#define STDERR_TAIL_MAX 800 /* leaves room in QV_ERROR_MAX for the rest of the error text */

struct stderr_log {
        const struct qv_host *host;
        char line[QV_LOG_MAX];
        size_t line_size;
        char tail[STDERR_TAIL_MAX]; /* the last complete lines, each with its newline */
        size_t tail_size;
};

/* Starts again with an empty tail, for another child or another task. */
void stderr_log_begin(struct stderr_log *l, const struct qv_host *host);

/* Reads what has arrived, up to a limit.  False at the end of the file or after an error. */
bool stderr_log_read(struct stderr_log *l, int fd);

/* Logs the last line even if it lacks its newline. */
void stderr_log_end(struct stderr_log *l);

/* The last lines as ": LINE | LINE", for the end of an error text; "" if there are none. */
const char *stderr_log_tail(struct stderr_log *l, char text[STDERR_TAIL_MAX + 2]);

#endif
