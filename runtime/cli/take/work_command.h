/* work_command.h: runs a command for one task that a worker has: the payload on its standard input, its output as the
 * result, its exit code as the outcome; and keeps the task by heartbeats meanwhile.
 *
 * The command is killed before the worker's time is over, since another may get the task then. */
#ifndef QUIVER_CLI_TAKE_WORK_COMMAND_H
#define QUIVER_CLI_TAKE_WORK_COMMAND_H

#include <quiver/client.h>
#include <stdbool.h>

#include "base/buffer.h"
#include "base/error.h"

/* What became of it.  Freed with worked_free(). */
struct worked {
        int32_t outcome; /* QV_CLIENT_FINISH_... */
        struct buffer result;
        struct buffer error;
        uint64_t retry_after_ms;
        uint64_t deadline_ms;  /* clock_boot_ms() at which the task is another's */
        bool is_over;          /* the host said that the start is over: there is nothing to finish */
        bool cannot_start;     /* the command cannot be run at all */
        int stopped_by_signal; /* this process was told to end; 0: it was not */
};

/* SIGTERM, SIGINT and SIGHUP are blocked by the caller, and read here.  `deadline_ms`: see above, as it is now. */
void work_command(
        const char *state, char **argv, const struct qv_client_work *work, uint64_t deadline_ms, struct worked *ret);
void worked_free(struct worked *worked);

/* Whether there is such a program, in PATH unless it has a slash: asked before a task is taken. */
bool work_command_is_there(const char *program);

#endif
