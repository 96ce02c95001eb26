/* worker.h: a seat's worker process: starts it, exchanges frames with it, replaces it when it fails.
 *
 * This file does not know tasks, except for the stop flag; pipe.c interprets the frames. */
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

        struct child child; /* pid 0: there is none */
        bool has_ended;     /* it is dead or has closed a pipe; frames that it sent before can still be read */
        struct bytes in, out;
        size_t heard; /* bytes of `in` that belong to the frame returned last */
        size_t sent;  /* bytes of `out` that were written */
        size_t told;  /* bytes written since worker_start() */
        struct stderr_log err;

        unsigned failures; /* consecutive failures */
        uint64_t start_ms; /* no start before this time */
        char breach[200];  /* how it broke the protocol; "": it did not */
        char why[QV_ERROR_MAX];
};

enum worker_event {
        WORKER_FRAME,   /* *ret_frame is set and valid until the next call */
        WORKER_NOTHING, /* nothing arrived in time */
        WORKER_FAILED,  /* it died or broke the protocol; call worker_fail() */
};

/* Reads the settings.  0, or -1 after setting the reason why init fails. */
int worker_open(struct worker *w, const struct qv_host *host);
/* Closes the worker's stdin and waits up to kill_after for its end. */
void worker_close(struct worker *w);

/* Makes sure that a worker has sent `ready`; stops waiting when `task`, which may be NULL, has to stop.  0; -EAGAIN: it
 * failed recently and is not started before w->start_ms; -ECANCELED: the task had to stop; or another -errno.  w->why
 * has the reason, with -EAGAIN that of the last failure. */
int worker_start(struct worker *w, const struct qv_task *task);

/* Writes w->out and waits up to wait_ms for a frame.  Log frames go to the log and are not returned. */
enum worker_event worker_next(struct worker *w, int wait_ms, struct frame *ret_frame);

/* After WORKER_FAILED: whether the worker has read nothing since worker_start(), so that it has not seen the task. */
bool worker_is_untouched(const struct worker *w);

/* Kills the worker.  w->why says how it broke the protocol (`breach`, or what worker_next() found if that is NULL) or
 * how it ended, with the last lines of its standard error. */
void worker_fail(struct worker *w, const char *breach);

/* The worker answered: resets the count of failures. */
void worker_praise(struct worker *w);

/* Ends the worker without counting a failure, after the task had to stop. */
void worker_replace(struct worker *w);

#endif
