/* pool_io.h: a pool with its processes: performs the pool's actions and posts events to it.
 *
 * The layer between a machine without I/O (pool.h) and the kernel.  All calls and callbacks are on the loop's thread. A
 * callback may offer more tasks, but must not free the pool_io. */
#ifndef QUIVER_HOST_POOL_POOL_IO_H
#define QUIVER_HOST_POOL_POOL_IO_H

#include <stdbool.h>
#include <uv.h>

#include "host/pool/ending.h"
#include "host/pool/explainer.h"
#include "host/pool/pool.h"
#include "host/pool/pool_call.h"
#include "host/pool/process.h"
#include "ring/leases.h"
#include "ring/message.h"

#define POOL_IO_WORDS_MAX (ERROR_TEXT_MAX + BLAME_TEXT_MAX)

struct trace_headers;

/* How a task ended in the pool. */
struct settled {
        enum outcome outcome;
        bool is_suspect;      /* the cause of a crash is unknown: offer the task again with is_suspect set */
        bool never_started;   /* the task was given back before it started */
        bool is_excused;      /* set by the owner: the handler's new generation is to blame, not the task */
        bool is_limit_closed; /* set by the owner: LIMITED, and a limit on the task is closed for it */
        bool is_later_off;    /* set by the owner: the app has no feature "later", so LATER counts as RETRY */
        enum blame_why why;
        const char *error;              /* "" if there is none */
        const struct ring_reply *reply; /* the handler's answer; NULL if there is none */
        const void *checkpoint;         /* the latest one, whatever the outcome; NULL: none */
        size_t checkpoint_size;
        const struct trace_headers *trace; /* set by the owner: the trace that follow-ups are part of; NULL: none */
        uint64_t at_ns;                    /* boot time; 0 in what a worker or another host's seat said */
};

/* Pointers passed to a callback are valid until it returns. */
struct pool_io_events {
        void (*settled)(void *owner, struct pool_task *task, const struct settled *settled);
        /* A running task has made a checkpoint; called at most once a second per task.  May be NULL. */
        void (*saved)(void *owner, struct pool_task *task, const void *checkpoint, size_t size);
        /* A log line of a handler; `task` is NULL if the line belongs to none. */
        void (*log)(void *owner, const struct runner_log *log, const struct pool_task *task);
        void (*ready)(void *owner, const struct runner_ready *ready, pid_t pid);
        /* spawned(): a process was started and has no task yet.  reaped(): it has ended.  Both may be NULL. */
        void (*spawned)(void *owner, pid_t pid);
        void (*reaped)(void *owner, pid_t pid, enum runner_exit exit);
        /* A runner could not be started, or ended before it was ready. */
        void (*refused)(void *owner, const char *text);
        /* A seat calls one of the services that start.can_call names, while it runs `task` (NULL: none);
         * pool_call_answer() follows, now or later.  NULL if can_call names none. */
        void (*call)(void *owner, struct pool_call *call, const struct pool_task *task);
        /* Too many runners in a row have failed: no more are started. */
        void (*quarantined)(void *owner, const char *text);
        /* pool_io_stop(), pool_io_retreat() or pool_io_cut() is complete: no process is left. */
        void (*stopped)(void *owner);
        /* pool_io_close() is complete: the memory may be freed.  May be NULL. */
        void (*closed)(void *owner);
};

struct pool_io {
        struct pool pool;
        struct pool_actions actions;
        struct runner_start start; /* its pointers belong to the caller and outlive the pool_io */
        struct ring_shape shape;
        const struct leases *leases;
        const struct pool_io_events *events;
        void *owner;

        struct pools *pools;
        struct pool_io *prev, *next; /* list of all pools of the loop */
        uv_timer_t timer;            /* the pool's next due time */
        uint64_t timer_ms;           /* when the timer is due; UINT64_MAX: not set */

        struct pool_event *queue; /* events that arose while actions were performed */
        size_t queue_count, queue_room, queue_at;
        bool is_stepping;
        bool has_saves;    /* a runner may have a new checkpoint */
        uint64_t saves_ms; /* checkpoints are not read before this time */
        bool is_stopping, has_stopped;
        char last_words[POOL_IO_WORDS_MAX]; /* why the latest runner failed to start; "": it did not */

        struct ending *ending;  /* ending of the runner whose POOL_GONE is being handled; else NULL */
        struct ending *endings; /* endings that wait for an explanation */
        bool is_cut;            /* pool_io_cut() was called: backtraces are no longer explained */
};

/* The pools of one loop.  The loop's owner calls pools_flush() before it sleeps and pools_collect() after it wakes. */
struct pools {
        uv_loop_t *loop;
        struct pool_io *list;
        struct explainer explainer;
        struct process_host host;
        struct process *latest; /* the runner that got the last task; NULL: it has ended */
        uv_idle_t busy;         /* active while an answer is waiting, so that the loop does not sleep */
};

void pools_init(struct pools *pools, uv_loop_t *loop);
/* After the last offer of a turn of the loop: wakes runners, arms the rings' bells, hands out new checkpoints. */
void pools_flush(struct pools *pools);
/* An idle host is about to get a task: wakes the runner that had the last one, which probably gets this one, too. */
void pools_expect(struct pools *pools);
/* Takes the runners' answers. */
void pools_collect(struct pools *pools);
/* Call it when no pool is used any more.  Run the loop once more before freeing the memory. */
void pools_close(struct pools *pools);

int pool_io_init(struct pool_io *io, struct pools *pools, const struct pool_policy *policy,
        const struct runner_start *start, const struct leases *leases, const struct pool_io_events *events,
        void *owner);

/* How many more tasks to offer. */
uint32_t pool_io_room(const struct pool_io *io, enum lane lane);
bool pool_io_has_room(const struct pool_io *io);
/* Whether every task that was offered is settled. */
bool pool_io_is_idle(const struct pool_io *io);
/* Offers a task and the rest of its run (run_next); they must not move until settled() is called for them. */
void pool_io_offer(struct pool_io *io, struct pool_task *task, uint64_t now_ms);
/* For the pool_io files: passes on new checkpoints of running tasks if it is time (pool_checkpoints.c).  Returns when
 * to call again; UINT64_MAX: no checkpoint waits. */
uint64_t pool_io_pass_on_saves(struct pool_io *io, uint64_t now_ms);
/* The owner wants the task back: settled() is called for it at once, unless it has started. */
void pool_io_recall(struct pool_io *io, struct pool_task *task);
/* Cancels a task that waits or runs; settled() is called for it. */
void pool_io_cancel(struct pool_io *io, struct pool_task *task);

/* As pool_io_cancel(), but the task ends as interrupted by the host. */
void pool_io_interrupt_task(struct pool_io *io, struct pool_task *task);

/* Cancels all tasks. */
void pool_io_cancel_all(struct pool_io *io);

/* As pool_io_cancel_all(), but the tasks end as interrupted by the host and not as cancelled by a person. */
void pool_io_interrupt(struct pool_io *io);

/* Runners that are up or starting, without the one for suspects. */
uint32_t pool_io_size(const struct pool_io *io);
/* Starts runners before there are tasks for them; ready() or refused() is called for each. */
void pool_io_warm(struct pool_io *io, uint32_t runners);
/* As pool_set_policy().  Must not be called from a callback. */
void pool_io_set_policy(struct pool_io *io, const struct pool_policy *policy);

/* Replaces the settings for runners that start from now on.  The log level is also sent to the running ones; other
 * changes must not matter to them. */
void pool_io_set_start(struct pool_io *io, const struct runner_start *start);

/* Gives back tasks that have not started (settled as interrupted, never_started); the others end here, then stopped()
 * is called.  No task starts after this call has returned; if it is made from a callback, after that callback has
 * returned. */
void pool_io_retreat(struct pool_io *io);
/* Ends a retreat, complete or not: the pool takes tasks again. */
void pool_io_resume(struct pool_io *io);

/* Takes no new tasks; retires every runner when the offered tasks are settled, then calls stopped(). */
void pool_io_stop(struct pool_io *io);
/* Kills every runner at once and settles all tasks as interrupted, then calls stopped(). */
void pool_io_cut(struct pool_io *io);
/* Closes the handles, after stopped().  The memory may be freed after closed(). */
void pool_io_close(struct pool_io *io);

#endif
