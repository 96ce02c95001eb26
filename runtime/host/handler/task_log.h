/* task_log.h: the log's lines about tasks that were given up, held, retried or put off: each with id, key, handler,
 * attempt and error.  Beyond TASK_LOG_LINES in a second they are counted, and the count is told.  Plain data, no clock.
 */
#ifndef QUIVER_HOST_HANDLER_TASK_LOG_H
#define QUIVER_HOST_HANDLER_TASK_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "host/shard/pending_outcome.h"
#include "host/shard/window.h"

#define TASK_LOG_LINES    20u    /* of one handler in a second */
#define TASK_LOG_LATER_MS 10000u /* from a line about LATER to the next one */

enum task_log_kind { TASK_LOG_REJECTED, TASK_LOG_EXHAUSTED, TASK_LOG_DEAD, TASK_LOG_HELD, TASK_LOG_KINDS };

/* Of one handler.  Starts with zeroes. */
struct task_log {
        uint64_t second_ms; /* when the current second began */
        uint32_t lines;     /* in it */
        uint64_t untold[TASK_LOG_KINDS];
        bool has_told_later;
        uint64_t told_later_ms; /* has_told_later */
        uint64_t laters;        /* since then */
};

/* What a line is about. */
struct task_log_line {
        const char *handler;
        const struct claimed *claimed;
        const char *trace; /* its field, " trace=ID"; "": it has none */
        const char *error; /* what the handler said */
};

/* What follows for a task that has ended a start so. */
void task_log_outcome(
        struct task_log *log, const struct task_log_line *line, const struct pending_outcome *pending, uint64_t now_ms);
/* When there is something to tell; UINT64_MAX: nothing. */
uint64_t task_log_due_ms(const struct task_log *log);
/* Tells what was counted, if a second is over. */
void task_log_flush(struct task_log *log, const char *handler, uint64_t now_ms);

#endif
