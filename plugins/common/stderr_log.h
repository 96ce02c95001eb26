/* stderr_log.h: what a child writes to stderr: line by line into the log, its last lines kept for the error text. */
#ifndef QUIVER_PLUGINS_STDERR_LOG_H
#define QUIVER_PLUGINS_STDERR_LOG_H

#include <stdbool.h>
#include <stddef.h>

#include <quiver/plugin.h>

#define STDERR_TAIL_MAX 800 /* leaves room in QV_ERROR_MAX for what else there is to say */

struct stderr_log {
        const struct qv_host *host;
        char line[QV_LOG_MAX];
        size_t line_size;
        char tail[STDERR_TAIL_MAX]; /* whole lines, each with its newline */
        size_t tail_size;
};

/* Forgets everything: another child, or another task. */
void stderr_log_begin(struct stderr_log *l, const struct qv_host *host);

/* Reads what is there now, a bounded amount of it.  False: the end of the file, or an error. */
bool stderr_log_read(struct stderr_log *l, int fd);

/* The last line may lack its newline. */
void stderr_log_end(struct stderr_log *l);

/* ": last line | but one" for the end of an error text; "" if it wrote nothing. */
const char *stderr_log_tail(struct stderr_log *l, char text[STDERR_TAIL_MAX + 2]);

#endif
