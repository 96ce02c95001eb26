/* pool_io.h: a pool and its processes: performs what the pool decides, and tells it what happened.
 *
 * The thin layer between a machine without I/O (pool.h) and the kernel.  All calls and callbacks are on the loop's
 * thread. A callback may offer more tasks, but must not free the io. */
#ifndef QUIVER_HOST_POOL_POOL_IO_H
#define QUIVER_HOST_POOL_POOL_IO_H

#include <stdbool.h>
#include <uv.h>

#include "host/pool/pool.h"
#include "host/pool/process.h"
#include "ring/leases.h"
#include "ring/message.h"

/* What became of a task. */
struct settled {
        enum outcome outcome;
        bool is_suspect;    /* nobody knows who crashed: offer it again with is_suspect set */
        bool never_started; /* it was given back */
        bool is_excused;    /* by the pool_io's owner: the handler's version is the suspect, not the task */
        enum blame_why why;
        const char *error;              /* "" if there is nothing to say */
        const struct ring_reply *reply; /* the handler's answer; NULL if it gave none */
        const void *checkpoint;         /* the last one, whatever happened; NULL: none */
        size_t checkpoint_size;
};

/* Pointers handed to a callback are valid until it returns. */
struct pool_io_events {
        void (*settled)(void *owner, struct pool_task *task, const struct settled *settled);
        /* A running task has made a checkpoint; at most one a second and task.  May be NULL. */
        void (*saved)(void *owner, struct pool_task *task, const void *checkpoint, size_t size);
        /* A line from a handler; `task` is NULL if none was running there. */
        void (*log)(void *owner, const struct runner_log *log, const struct pool_task *task);
        void (*ready)(void *owner, const struct runner_ready *ready, pid_t pid);
        /* May be NULL.  A process was started, and has no task yet; it is gone and reaped. */
        void (*spawned)(void *owner, pid_t pid);
        void (*reaped)(void *owner, pid_t pid);
        /* A runner could not be started, or gave up before it was ready. */
        void (*refused)(void *owner, const char *text);
        /* A service only the host can do, asked for by one seat (`holder` tells them apart).  0 or -errno, with *number
         * updated. */
        int (*call)(void *owner, enum ring_service service, uint64_t holder, const char *name, uint64_t *number);
        /* Nothing more will start: too many failures in a row. */
        void (*quarantined)(void *owner, const char *text);
        /* pool_io_stop() or its like is done: no process is left. */
        void (*stopped)(void *owner);
        /* pool_io_close() is done: the memory may go.  May be NULL. */
        void (*closed)(void *owner);
};

struct pool_io {
        struct pool pool;
        struct pool_actions actions;
        struct runner_start start; /* borrowed pointers: the caller's, for the pool_io's life */
        struct ring_shape shape;
        const struct leases *leases;
        const struct pool_io_events *events;
        void *owner;

        struct pools *pools;
        struct pool_io *prev, *next; /* among those */
        uv_timer_t timer;            /* the pool's next due time */
        uint64_t timer_ms;           /* what it is set to; UINT64_MAX: nothing */

        struct pool_event *queue; /* events that arose while actions were performed */
        size_t queue_count, queue_room, queue_at;
        bool is_stepping;
        bool has_saves;    /* some runner may have a new checkpoint */
        uint64_t saves_ms; /* look for them no sooner */
        bool is_stopping, has_stopped;
        char last_words[ERROR_TEXT_MAX]; /* why the latest runner failed to start */
};

/* The pools of one loop.  Whoever runs it calls pools_flush() before it sleeps and pools_collect() after it woke. */
struct pools {
        uv_loop_t *loop;
        struct pool_io *list;
        uv_idle_t busy; /* runs while an answer is there already, so that the loop does not sleep */
};

void pools_init(struct pools *pools, uv_loop_t *loop);
/* After the last offer of a turn of the loop: wakes runners, arms the rings' bells, hands out new checkpoints. */
void pools_flush(struct pools *pools);
/* Takes the runners' answers. */
void pools_collect(struct pools *pools);
/* No pool is left in it, or none is used any more.  Run the loop once more before freeing the memory. */
void pools_close(struct pools *pools);

int pool_io_init(struct pool_io *io, struct pools *pools, const struct pool_policy *policy,
        const struct runner_start *start, const struct leases *leases, const struct pool_io_events *events,
        void *owner);

/* How many more to offer. */
uint32_t pool_io_room(const struct pool_io *io);
bool pool_io_has_room(const struct pool_io *io);
/* The task must stay where it is until settled() names it. */
void pool_io_offer(struct pool_io *io, struct pool_task *task);
/* Hands out new checkpoints of what runs, if it is time (pool_checkpoints.c); the pool_io's own.  When it will be;
 * UINT64_MAX: there are none. */
uint64_t pool_io_pass_on_saves(struct pool_io *io, uint64_t now_ms);
/* Stops a task that waits or runs; it is settled either way. */
void pool_io_cancel(struct pool_io *io, struct pool_task *task);

/* Stops all that wait or run; each is settled. */
void pool_io_cancel_all(struct pool_io *io);

/* The same; those that do not stop in time are killed, as interrupted, not cancelled. */
void pool_io_interrupt(struct pool_io *io);

/* Runners that are up or on their way. */
uint32_t pool_io_size(const struct pool_io *io);
/* Starts that many before there are tasks for them; each is heard of in ready() or refused(). */
void pool_io_warm(struct pool_io *io, uint32_t runners);
/* As pool_set_policy(); not from a callback. */
int pool_io_set_policy(struct pool_io *io, const struct pool_policy *policy);

/* What its runners are started with, from now on: only what does not matter to those that are up, but for the log
 * level, which they are told. */
void pool_io_set_start(struct pool_io *io, const struct runner_start *start);

/* Gives back what has not started (settled as interrupted, never_started); the rest ends here, then stopped() is
 * called. Once this returns nothing starts any more, unless it was called from a callback: then, once that has
 * returned. */
void pool_io_retreat(struct pool_io *io);
/* On duty again, in the middle of a retreat or after it. */
void pool_io_resume(struct pool_io *io);

/* Takes nothing new; retires every runner once what was offered is settled, then calls stopped(). */
void pool_io_stop(struct pool_io *io);
/* The same at once: kills every runner, and settles what it had and what waits as interrupted. */
void pool_io_cut(struct pool_io *io);
/* After stopped(): leaves its pools and closes the timer.  Run the loop once more before freeing the memory. */
void pool_io_close(struct pool_io *io);

#endif
