/* blame.h: decides which task caused the death of a runner.
 *
 * A crash costs the task that caused it one crash, and costs other tasks nothing.  If the cause is unknown, all running
 * tasks become suspects: they are interrupted at no cost and run alone the next time.  A single running task whose
 * runner died of a SIGKILL that the host did not send becomes a suspect too; if it happens again while the task runs
 * alone, the task is charged. */
#ifndef QUIVER_HOST_POOL_BLAME_H
#define QUIVER_HOST_POOL_BLAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/pool/oom.h"
#include "host/pool/stderr_tail.h"
#include "ring/host_side.h"
#include "ring/pack.h"

/* Why a task ended without an answer of its handler. */
enum blame_why {
        BLAME_NOTHING,
        BLAME_CRASH,     /* the handler's process died */
        BLAME_TIMEOUT,   /* it ran past its timeout and did not stop */
        BLAME_STALL,     /* it reported no progress for too long and did not stop */
        BLAME_SCRIBBLE,  /* its process overwrote the shared memory */
        BLAME_NEIGHBOUR, /* another task of the same process crashed or hung */
        BLAME_UNSURE,    /* the task that caused the death is unknown */
        BLAME_SHUTDOWN,  /* the host ended it */
        BLAME_CANCEL,    /* a person cancelled it */
        BLAME_INIT,      /* init did not return in time */
};

/* How a runner ended, and what is known about it. */
struct death {
        int exit_status; /* if signal is 0 */
        int signal;
        uint32_t seats;
        const struct ring_fault_view *faults; /* one per seat; kind FAULT_NONE if the seat has no record */

        /* For the text only (blame_text.h); all may be NULL. */
        const struct ring_fault_view *thread_fault; /* record of a plugin's own thread; kind FAULT_NONE: none */
        const char *const *traces; /* backtraces that were made readable: one per seat, and that of thread_fault; an
                                    * element is NULL if the backtrace stays as the runner wrote it */
        const char *trace_note;    /* what the traces lack */
        const char *core_note;     /* where a core dump may be */
        const struct stderr_tail *tail; /* what the process wrote last */
        const char *label;              /* the plugin's file, whose frames matter more than others */
        enum oom_finding oom;           /* after a SIGKILL: whether the kernel had no memory left */
};

/* One task that was running when the runner died. */
struct blamed {
        uint32_t seat;
        enum blame_why stopped; /* why its stop flag was raised: BLAME_TIMEOUT, BLAME_STALL, BLAME_CANCEL */

        /* out */
        enum outcome outcome;
        enum blame_why why;
        bool is_suspect;
};

/* Whether the record is the backtrace that a seat wrote on the host's SIGABRT (runner/fault.h): not a crash. */
bool blame_was_told(const struct ring_fault_view *fault);

/* Decides for all tasks that were running.  `killed` is why the host killed the runner, BLAME_NOTHING if it did not;
 * `is_solo`: the runner ran a suspect alone, or several of one key (batch.same_key). */
void blame(struct blamed *running, size_t count, const struct death *death, enum blame_why killed, bool is_solo);

#endif
