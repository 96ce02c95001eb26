/* ending.h: all that is known about how a runner ended, from when its process is reaped until its tasks are settled.
 *
 * In between its backtraces may be made readable (explainer.h).  Only the tasks that the runner was running wait for
 * that. */
#ifndef QUIVER_HOST_POOL_ENDING_H
#define QUIVER_HOST_POOL_ENDING_H

#include "base/span.h"
#include "host/pool/blame_text.h"
#include "host/pool/process.h"

#define ENDING_CORE_NOTE 320

/* A task that is to be settled with the ending's text. */
struct ending_task {
        struct pool_task *task;
        enum outcome outcome;
        enum blame_why why;
        bool is_suspect;
        uint32_t seat;
        uint64_t since_ms;
        struct buffer checkpoint;
        bool has_checkpoint;
};

struct ending {
        struct ending *prev, *next; /* list of endings that wait for an explanation */
        void *owner;
        struct death death;             /* its pointers point to the other fields */
        struct ring_fault_view *faults; /* one per seat, then one for a plugin's own thread */
        char **traces;
        char *trace_note;
        char core_note[ENDING_CORE_NOTE];
        size_t lines_asked; /* lines of all backtraces in the request */
        size_t traces_asked;
        struct stderr_tail tail;
        struct ending_task *tasks;
        size_t tasks_count;
        struct process *process; /* set if the runner was never ready: its end is reported once it is explained */
        bool is_init_timeout;
};

/* Copies fault records, standard error and exit status of a reaped process. */
struct ending *ending_new(const struct process *p, uint32_t seats, const struct runner_start *start);
void ending_free(struct ending *e);

/* Adds a task for the caller to fill in; valid until the next call. */
struct ending_task *ending_add_task(struct ending *e);

/* Writes the request that explains its backtraces (backtrace/backtrace.h); false: it has none. */
bool ending_put_request(struct ending *e, const char *plugin, struct buffer *request);
/* Takes the answer to that request.  An answer that does not match the request is ignored. */
void ending_explain(struct ending *e, struct span answer);

#endif
