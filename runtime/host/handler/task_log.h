/* task_log.h: the log lines about tasks that were given up, held, retried or put off, each with id, key, handler,
 * attempt and error.  Beyond TASK_LOG_LINES per second they are only counted, and the count is logged.  Plain data, no
 * clock. */
#ifndef QUIVER_HOST_HANDLER_TASK_LOG_H
#define QUIVER_HOST_HANDLER_TASK_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "host/shard/pending_outcome.h"
#include "host/shard/window.h"

#define TASK_LOG_LINES    20u    /* per handler and second */
#define TASK_LOG_LATER_MS 10000u /* between two lines about LATER */

enum task_log_kind { TASK_LOG_REJECTED, TASK_LOG_EXHAUSTED, TASK_LOG_DEAD, TASK_LOG_HELD, TASK_LOG_KINDS };

/* The state of one handler.  Zero-initialised is empty. */
struct task_log {
        uint64_t second_ms; /* when the current second began */
        uint32_t lines;     /* logged in the current second */
        uint64_t untold[TASK_LOG_KINDS];
        bool has_told_later;
        uint64_t told_later_ms; /* valid if has_told_later */
        uint64_t laters;        /* LATER outcomes since then */
};

/* What a line is about. */
struct task_log_line {
        const char *handler;
        const struct claimed *claimed;
        const char *trace; /* the field " trace=ID"; "": the task has no trace */
        const char *error; /* what the handler said */
};

/* Logs the outcome of a start. */
void task_log_outcome(
        struct task_log *log, const struct task_log_line *line, const struct pending_outcome *pending, uint64_t now_ms);
/* When task_log_flush() is due; UINT64_MAX: never. */
uint64_t task_log_due_ms(const struct task_log *log);
/* Logs the number of suppressed lines if the second is over. */
void task_log_flush(struct task_log *log, const char *handler, uint64_t now_ms);

#endif
