/* vet_random.h: many random payloads through a real runner, and what became of them.
 *
 * A crash is tried again, alone in a fresh runner: one that happens there too is the payload's, one that does not is
 * what went before.  Ends early once enough is known, or the time is over. */
#ifndef QUIVER_CLI_VET_VET_RANDOM_H
#define QUIVER_CLI_VET_VET_RANDOM_H

#include "cli/vet/vet.h"
#include "ring/pack.h"

#define CROWD_CRASHES_MAX 3     /* more say nothing new */
#define CROWD_STOP_MS     1000  /* a task that runs so long is told to stop, and has as long again to obey */
#define CROWD_MS          60000 /* for one run */
#define CROWD_IDLE_MAX    20    /* answers in a row, from the first on, that the service behind it is not there */

/* One task that went wrong. */
struct random_tasks_case {
        uint64_t number;
        struct buffer payload;
        char *error;
        bool is_alone; /* it happens in a fresh runner too */
};

struct random_tasks {
        uint64_t outcomes[OUTCOME_INTERRUPTED + 1];
        uint64_t settled;
        struct random_tasks_case crashes[CROWD_CRASHES_MAX];
        size_t crashes_count;
        uint64_t suspects; /* that ran while a process died, and nobody knows whose fault it was */
        struct random_tasks_case
                deaf;             /* the first that went on when it was told to stop; error is NULL if there is none */
        uint64_t obeyed, ignored; /* tasks that were told to stop */
        uint64_t obeyed_ms_max;   /* the slowest of those that did */
        bool is_late, is_unavailable;
        char *refusal; /* a later runner did not get ready, and why */
};

/* 0, or -errno with the text set.  *ret is for random_tasks_free() either way. */
int random_tasks_run(const struct vet_request *request, uint32_t seats, uint32_t batch_max, struct random_tasks *ret,
        struct error *error);
void random_tasks_free(struct random_tasks *random_tasks);

#endif
