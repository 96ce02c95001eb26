/* worker.h: a seat's child that stays: started, greeted, heard, and replaced when it fails.
 *
 * Nothing here knows what a task is, but for the stop flag; pipe.c says what frames mean. */
#ifndef QUIVER_PIPE_WORKER_H
#define QUIVER_PIPE_WORKER_H

#include "../common/child.h"
#include "../common/stderr_log.h"
#include "frame.h"

struct worker {
        const struct qv_host *host;
        struct command command;
        struct guard guard;
        uint64_t start_timeout_ms, kill_after_ms, max_frame;

        struct child child; /* pid 0: none */
        bool has_ended;     /* it is dead, or deaf, or mute; what it sent before can still be heard */
        struct bytes in, out;
        size_t heard; /* of `in`: the frame handed out last */
        size_t sent;  /* of `out` */
        size_t told;  /* bytes that it was sent since worker_start() */
        struct stderr_log err;

        unsigned failures; /* in a row */
        uint64_t start_ms; /* not before */
        char breach[200];  /* what it did against the protocol; "": nothing */
        char why[QV_ERROR_MAX];
};

enum worker_event {
        WORKER_FRAME,   /* *ret_frame, valid until the next call */
        WORKER_NOTHING, /* the time is up */
        WORKER_FAILED,  /* it died, or broke the protocol: worker_fail() it */
};

/* Reads the settings.  0, or -1 after it has told the host why init fails. */
int worker_open(struct worker *w, const struct qv_host *host);
/* Closes the worker's stdin and gives it kill_after to leave. */
void worker_close(struct worker *w);

/* Makes sure that there is one that has said ready; gives up when `task`, which may be NULL, has to stop.  0; -EAGAIN:
 * it failed of late, and not before w->start_ms again; -ECANCELED: stopped; another -errno.  w->why tells what the
 * matter is, with -EAGAIN what it was. */
int worker_start(struct worker *w, const struct qv_task *task);

/* What is in w->out goes out, and what comes in is heard, for up to wait_ms.  Log frames go to the log at once. */
enum worker_event worker_next(struct worker *w, int wait_ms, struct frame *ret_frame);

/* After WORKER_FAILED: it has not read a byte since worker_start(), so nobody has seen what it was sent. */
bool worker_is_untouched(const struct worker *w);

/* Kills it: w->why tells how it broke the protocol (`breach`, or what worker_next() saw if that is NULL) or how it
 * ended, and its last words. */
void worker_fail(struct worker *w, const char *breach);

/* It answered: its past failures do not count any more. */
void worker_praise(struct worker *w);

/* Ends it without blame: it was told to stop. */
void worker_replace(struct worker *w);

#endif
