/* process.h: one runner, as a child process: start it, hear it, signal it, reap it.
 *
 * A runner leads a process group of its own; what it has forked and left there is killed when it ends.
 *
 * Knows descriptors, messages and libuv; decides nothing.  Every callback comes from the loop.  The owner gets exactly
 * one gone(), after the process was reaped and its last words were delivered. */
#ifndef QUIVER_HOST_POOL_PROCESS_H
#define QUIVER_HOST_POOL_PROCESS_H

#include <stdbool.h>
#include <uv.h>

#include "base/error.h"
#include "host/pool/line_reader.h"
#include "ring/host_side.h"
#include "ring/leases.h"
#include "ring/message.h"

struct process;

struct process_events {
        void (*ready)(struct process *p, const struct runner_ready *ready);
        void (*refused)(struct process *p, const char *text);
        void (*log)(struct process *p, const struct runner_log *log);
        void (*rang)(struct process *p); /* look at p->ring */
        void (*gone)(struct process *p); /* p->exit_status and p->term_signal are set; process_close() it */
};

struct process {
        const struct process_events *events;
        void *owner;
        struct ring_host ring;
        int64_t exit_status;
        int term_signal;
        bool has_saves; /* a seat may have a new checkpoint; pool_io's */
        pid_t pid;      /* 0: not started, or reaped */

        uv_process_t handle;
        uv_poll_t polls[4]; /* by enum process_channel */
        int fds[4];
        struct line_reader out, err;
        unsigned handles; /* not yet closed */
};

enum process_channel { CHANNEL_CONTROL, CHANNEL_BELL, CHANNEL_OUT, CHANNEL_ERR };

/* Starts a runner of this same program and sends it `start`.  0 with *ret, or -errno with the text set. */
int process_start(uv_loop_t *loop, const struct ring_shape *shape, const struct leases *leases,
        const struct runner_start *start, const struct process_events *events, void *owner, struct process **ret,
        struct error *error);

/* Its runner logs up to that level from now on, unless it does not listen. */
void process_set_level(struct process *p, uint32_t level);

/* Nothing if it is reaped already. */
void process_kill(struct process *p, int signal);

/* After gone(): lets go of everything; `p` is freed once the loop has closed its handles. */
void process_close(struct process *p);

#endif
