/* task_trace.h: the traces that tasks are part of: their headers, what handlers and follow-ups get, and the spans of
 * starts.
 *
 *         wait     from submission to the first start; the parent of the attempts if the trace begins here
 *         attempt  one per start, of kind CONSUMER; its id is in the `traceparent` that the handler gets
 *
 * The owner of the shard records the spans, wherever the task ran, so each is recorded once.  With traces off, a trace
 * that came with a task is passed on unchanged to its handler and its follow-ups.  No I/O, no clock. */
#ifndef QUIVER_HOST_HANDLER_TASK_TRACE_H
#define QUIVER_HOST_HANDLER_TASK_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "host/pool/pool_io.h"
#include "host/shard/pending_outcome.h"
#include "host/shard/window.h"
#include "trace/headers.h"
#include "trace/traces.h"

struct shard;

/* One start of a task. */
struct task_start {
        const struct claimed *claimed;
        uint64_t fence_epoch, fence_start;
};

struct task_trace {
        bool is_known;                /* false: traces are off, and the task came without one */
        bool is_recorded;             /* its spans are sent to the receiver */
        enum trace_found found;       /* what the task's headers contain */
        struct trace_context parent;  /* parent of the attempt; its span is zero: there is none */
        struct trace_context wait;    /* the span of the wait */
        struct trace_headers attempt; /* what the handler and follow-ups get */
};

void task_trace_of(const struct traces *traces, const struct task_start *start, struct task_trace *ret);
/* The headers of a task as its handler gets them; points into the task or into `room`.  Counts malformed headers. */
struct span task_trace_headers(struct traces *traces, const struct task_start *start, struct buffer *room);

/* How a start ended; times are of clock_boot_ns(). */
struct task_attempt {
        const struct shard *shard;
        const char *handler, *host; /* where it ran */
        const char *worker;         /* NULL: a seat of a host */
        const char *generation;     /* the plugin's version; "": unknown */
        bool is_borrowed;
        const struct settled *settled;
        const struct pending_outcome *pending; /* the resulting outcome; NULL: the task runs again at once */
        uint64_t started_ns, ended_ns;
        uint64_t wall_ahead_ns; /* how far the wall clock is ahead of boot time */
};
void task_trace_record(
        struct traces *traces, const struct task_start *start, const struct task_attempt *attempt, uint64_t now_ms);

/* The log field " trace=ID", or "" if the task has no trace. */
#define TASK_TRACE_FIELD (sizeof(" trace=") + TRACE_ID_TEXT)
const char *task_trace_field(
        char to[static TASK_TRACE_FIELD], const struct traces *traces, const struct claimed *claimed);
/* The same for headers in the form that a runner gets. */
const char *task_trace_field_packed(char to[static TASK_TRACE_FIELD], const struct ring_task *task);
#define TASK_TRACE_LOGGED(traces, claimed) task_trace_field((char[TASK_TRACE_FIELD]){ 0 }, (traces), (claimed))

#endif
