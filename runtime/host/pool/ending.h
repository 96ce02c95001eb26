/* ending.h: all that is known about how a runner ended, from the moment when its process was reaped until the tasks
 * that it concerns have been told.
 *
 * In between its backtraces may be made readable (explainer.h).  The tasks wait for that; nothing else does. */
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
        struct ending *prev, *next; /* of those that wait for an explanation */
        void *owner;
        struct death death;             /* what of it is a pointer points to the rest */
        struct ring_fault_view *faults; /* one per seat, and that of a thread which is no seat's */
        char **traces;
        char *trace_note;
        char core_note[ENDING_CORE_NOTE];
        size_t lines_asked; /* of all backtraces that were asked about */
        size_t traces_asked;
        struct stderr_tail tail;
        struct ending_task *tasks;
        size_t tasks_count;
        struct process *process; /* a runner that was never ready: its end is told when it is explained; else NULL */
        bool is_init_timeout;
};

/* Copies what the process left behind. */
struct ending *ending_new(const struct process *p, uint32_t seats, const struct runner_start *start);
void ending_free(struct ending *e);

/* A place for one more task; valid until the next one. */
struct ending_task *ending_add_task(struct ending *e);

/* A request about its backtraces (backtrace/backtrace.h); false: there is nothing to ask. */
bool ending_put_request(struct ending *e, const char *plugin, struct buffer *request);
/* Takes the answer to that request.  One that does not fit is ignored. */
void ending_explain(struct ending *e, struct span answer);

#endif
