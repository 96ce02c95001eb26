/* blame.h: decides which task caused the death of a runner, and writes the error text.
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

/* How a runner ended. */
struct death {
        int exit_status; /* if signal is 0 */
        int signal;
        uint32_t seats;
        const struct ring_fault_view *faults; /* one per seat; kind FAULT_NONE if the seat has no record */
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

/* Decides for all tasks that were running.  `killed` is why the host killed the runner, BLAME_NOTHING if it did not;
 * `is_solo` means that the runner ran a suspect alone. */
void blame(struct blamed *running, size_t count, const struct death *death, enum blame_why killed, bool is_solo);

/* Writes the error text of the task: "crashed: SIGSEGV at address 0x0", then the backtrace.  Returns `text`. */
const char *blame_text(char *text, size_t size, enum blame_why why, uint32_t seat, const struct death *death);

#endif
