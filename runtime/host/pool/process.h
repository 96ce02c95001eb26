/* process.h: one runner as a child process: starts it, receives its messages and output, signals it, reaps it.
 *
 * A runner leads a process group of its own; the children that it leaves there are killed when it ends, and those that
 * are elsewhere by strays.h and cgroups.h.
 *
 * This file handles descriptors, messages and libuv; it decides nothing.  Every callback comes from the loop.  gone()
 * is called exactly once, after the process was reaped and its last messages and output were delivered. */
#ifndef QUIVER_HOST_POOL_PROCESS_H
#define QUIVER_HOST_POOL_PROCESS_H

#include <stdbool.h>
#include <uv.h>

#include "base/error.h"
#include "host/confine/cgroups.h"
#include "host/confine/strays.h"
#include "host/pool/line_reader.h"
#include "host/pool/oom.h"
#include "host/pool/stderr_tail.h"
#include "ring/host_side.h"
#include "ring/leases.h"
#include "ring/message.h"

struct process;

struct process_events {
        void (*ready)(struct process *p, const struct runner_ready *ready);
        void (*refused)(struct process *p, const char *text);
        void (*log)(struct process *p, const struct runner_log *log);
        void (*rang)(struct process *p); /* the runner wrote the eventfd: p->ring has news */
        void (*gone)(struct process *p); /* exit_status and term_signal are set; the owner calls process_close() */
};

struct process {
        const struct process_events *events;
        void *owner;
        struct ring_host ring;
        int64_t exit_status;
        int term_signal;
        bool has_saves;          /* for pool_io: a seat may have a new checkpoint */
        struct pool_call *calls; /* for pool_io: its seats' unanswered calls (pool_call.h) */
        pid_t pid;               /* 0: not started, or reaped */
        const struct process_host *host;
        char cgroup[CGROUP_PATH_MAX]; /* its control group's folder; "": none */

        uv_process_t handle;
        uv_poll_t polls[4]; /* by enum process_channel */
        int fds[4];
        struct line_reader out, err;
        struct stderr_tail tail;
        struct oom_count oom_before; /* when it was started */
        enum oom_finding oom;        /* after a SIGKILL: whether the OOM killer was active */
        unsigned handles;            /* libuv handles that are not closed yet */
};

enum process_channel { CHANNEL_CONTROL, CHANNEL_BELL, CHANNEL_OUT, CHANNEL_ERR };

/* What every runner gets from its host.  Commands that try a plugin without a host have none of it. */
struct process_host {
        int alive_fd;            /* a file on which each runner holds a shared lock as long as it lives; -1: none */
        struct strays *strays;   /* NULL: processes that leave the runner's process group are not tracked */
        struct cgroups *cgroups; /* NULL: no control groups */
};

/* Starts this program as a runner and sends it `start`.  0 with *ret, or -errno with the text set. */
int process_start(uv_loop_t *loop, const struct ring_shape *shape, const struct leases *leases,
        const struct process_host *host, const struct runner_start *start, const struct process_events *events,
        void *owner, struct process **ret, struct error *error);

/* Sends the runner a new log level; ignored if its socket is full or closed. */
void process_set_level(struct process *p, uint32_t level);

/* Sends a signal; does nothing if the process is already reaped. */
void process_kill(struct process *p, int signal);

/* Call after gone().  Frees everything; `p` itself is freed when the loop has closed its handles. */
void process_close(struct process *p);

#endif
