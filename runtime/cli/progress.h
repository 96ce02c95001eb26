/* progress.h: how far a long command has come: a bar, a rate and the time that is left, on one line of a terminal;
 * anywhere else nothing. */
#ifndef QUIVER_CLI_PROGRESS_H
#define QUIVER_CLI_PROGRESS_H

#include <stdint.h>

/* Zero it and set the first three. */
struct cli_progress {
        const char *what; /* "load" */
        const char *unit; /* "tasks" */
        uint64_t all;     /* 0: not known, so that there is neither a bar nor a time */
        uint64_t began_ms, shown_ms;
        uint64_t began_at; /* what was done when it began */
};

/* So many of them are done. */
void progress_show(struct cli_progress *p, uint64_t done);
/* The same where what is left is measured otherwise: `part` of `whole` is done. */
void progress_show_part(struct cli_progress *p, uint64_t done, uint64_t part, uint64_t whole);
/* Takes the line away, as before any other output. */
void progress_end(struct cli_progress *p);

#endif
