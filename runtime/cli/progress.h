/* progress.h: the progress of a long command on one line of a terminal: a bar, a rate and the remaining time.  Prints
 * nothing elsewhere. */
#ifndef QUIVER_CLI_PROGRESS_H
#define QUIVER_CLI_PROGRESS_H

#include <stdint.h>

/* Zero it and set the first three fields. */
struct cli_progress {
        const char *what; /* "load" */
        const char *unit; /* "tasks" */
        uint64_t all;     /* 0: unknown, so neither bar nor remaining time is shown */
        uint64_t began_ms, shown_ms;
        uint64_t began_at; /* number done at the first call */
};

/* Shows that `done` of `all` are done. */
void progress_show(struct cli_progress *p, uint64_t done);
/* Like progress_show(), but the remaining time is computed from `part` of `whole`. */
void progress_show_part(struct cli_progress *p, uint64_t done, uint64_t part, uint64_t whole);
/* Erases the line; call it before any other output. */
void progress_end(struct cli_progress *p);

#endif
