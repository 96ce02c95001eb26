/* crew.h: a pool and its processes: performs what the pool decides, and tells it what happened.
 *
 * The thin layer between a machine without I/O (pool.h) and the kernel.  All calls and callbacks are on the loop's
 * thread. A callback may offer more tasks, but must not free the crew. */
#ifndef QUIVER_HOST_CREW_H
#define QUIVER_HOST_CREW_H

#include <stdbool.h>
#include <uv.h>

#include "host/pool.h"
#include "host/process.h"
#include "ring/leases.h"
#include "ring/message.h"

/* What became of a task. */
struct settled {
        enum outcome outcome;
        bool is_suspect; /* nobody knows who crashed: offer it again with is_suspect set */
        enum blame_why why;
        const char *error;              /* "" if there is nothing to say */
        const struct ring_reply *reply; /* the handler's answer; NULL if it gave none */
        const void *checkpoint;         /* the last one, whatever happened; NULL: none */
        size_t checkpoint_size;
};

/* Pointers handed to a callback are valid until it returns. */
struct crew_events {
        void (*settled)(void *owner, struct pool_task *task, const struct settled *settled);
        /* A line from a handler; `task` is NULL if none was running there. */
        void (*log)(void *owner, const struct runner_log *log, const struct pool_task *task);
        void (*ready)(void *owner, const struct runner_ready *ready, pid_t pid);
        /* A runner could not be started, or gave up before it was ready. */
        void (*refused)(void *owner, const char *text);
        /* A service only the host can do, asked for by one seat (`holder` tells them apart).  0 or -errno, with *number
         * updated. */
        int (*call)(void *owner, enum ring_service service, uint64_t holder, const char *name, uint64_t *number);
        /* Nothing more will start: too many failures in a row. */
        void (*quarantined)(void *owner, const char *text);
        /* crew_stop() is done: no process is left. */
        void (*stopped)(void *owner);
};

struct crew {
        uv_loop_t *loop;
        struct pool pool;
        struct pool_actions actions;
        struct generation generation;
        struct runner_start start; /* borrowed pointers: the caller's, for the crew's life */
        struct ring_shape shape;
        const struct leases *leases;
        const struct crew_events *events;
        void *owner;

        uv_prepare_t prepare; /* before the loop sleeps: arm the rings' bells */
        uv_check_t check;     /* after it woke: drain the rings */
        uv_idle_t busy;       /* running while an answer is there already: do not sleep */
        uv_timer_t timer;     /* the pool's next due time */
        uint64_t timer_ms;    /* what it is set to; UINT64_MAX: nothing */
        unsigned handles;

        struct pool_event *queue; /* events that arose while actions were performed */
        size_t queue_count, queue_room, queue_at;
        bool is_stepping;
        bool is_stopping, has_stopped;
        char last_words[ERROR_TEXT_MAX]; /* why the latest runner failed to start */
};

int crew_init(struct crew *crew, uv_loop_t *loop, const struct pool_policy *policy, const struct runner_start *start,
        const struct leases *leases, const struct crew_events *events, void *owner);

/* Whether to offer more. */
bool crew_has_room(const struct crew *crew);
/* The task must stay where it is until settled() names it. */
void crew_offer(struct crew *crew, struct pool_task *task);
/* To be called after the last offer of a turn of the loop, before it sleeps: wakes the runners. */
void crew_flush(struct crew *crew);
/* Stops a task that waits or runs; it is settled either way. */
void crew_cancel(struct crew *crew, struct pool_task *task);

/* Stops all that wait or run; each is settled. */
void crew_cancel_all(struct crew *crew);

/* Takes nothing new; retires every runner once what was offered is settled, then calls stopped(). */
void crew_stop(struct crew *crew);
/* The same at once: kills every runner, and settles what it had and what waits as interrupted. */
void crew_cut(struct crew *crew);
/* After stopped(): closes the handles.  Run the loop once more before freeing the memory. */
void crew_close(struct crew *crew);

#endif
