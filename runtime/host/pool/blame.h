/* blame.h: whose fault a runner's death was, and how to say it.
 *
 * A crash costs the task that caused it one crash and nobody else anything.  Where it cannot be told who did it, all
 * that ran are suspects: interrupted at no cost, and run alone the next time.  So is a single one whose runner was
 * ended by a SIGKILL that is not ours; if that happens again while it runs alone, it is its own. */
#ifndef QUIVER_HOST_POOL_BLAME_H
#define QUIVER_HOST_POOL_BLAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring/host_side.h"
#include "ring/pack.h"

/* Why a task ended otherwise than by its handler's word. */
enum blame_why {
        BLAME_NOTHING,
        BLAME_CRASH,     /* the handler's process died */
        BLAME_TIMEOUT,   /* it ran past its timeout and did not stop */
        BLAME_STALL,     /* no progress for too long */
        BLAME_SCRIBBLE,  /* it wrote over the shared memory */
        BLAME_NEIGHBOUR, /* another task took the process down */
        BLAME_UNSURE,    /* nobody can say who did it */
        BLAME_SHUTDOWN,  /* we ended it */
        BLAME_CANCEL,    /* a person ended it */
        BLAME_INIT,      /* init did not return in time */
};

/* How a runner ended. */
struct death {
        int exit_status; /* if signal is 0 */
        int signal;
        uint32_t seats;
        const struct ring_fault_view *faults; /* one per seat; kind FAULT_NONE where there is none */
};

/* One task that was running when the runner died. */
struct blamed {
        uint32_t seat;
        enum blame_why stopped; /* BLAME_TIMEOUT, BLAME_STALL, BLAME_CANCEL: its stop flag was raised for that */

        /* out */
        enum outcome outcome;
        enum blame_why why;
        bool is_suspect;
};

/* Decides for all that were running.  `killed` is why we killed the runner, BLAME_NOTHING if we did not; `is_solo`: it
 * ran a suspect, alone. */
void blame(struct blamed *running, size_t count, const struct death *death, enum blame_why killed, bool is_solo);

/* The error text of a task that ended so: "crashed: SIGSEGV at 0x0 …" with the backtrace behind it.  Returns `text`. */
const char *blame_text(char *text, size_t size, enum blame_why why, uint32_t seat, const struct death *death);

#endif
