/* pool.h: which runner gets which task, and what becomes of the tasks of one that dies.
 *
 * A machine without I/O: events and the time go in, actions come out.  pool_io.c performs the actions (processes,
 * rings, signals) and turns what happens into events; nothing here knows what a process is.
 *
 *         offered → waiting → handed to a runner's ring → (started by a seat) → settled
 *
 * A pool is one generation of a handler: its runners all have the same plugin and settings.  Tasks that are offered may
 * run at once and in any order: order per key is the window's business, before a task comes here. */
#ifndef QUIVER_HOST_POOL_POOL_H
#define QUIVER_HOST_POOL_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/pool/blame.h"
#include "ring/pack.h"

/* How a pool behaves.  Times in milliseconds; 0 turns a limit off unless it says otherwise. */
struct pool_policy {
        uint32_t processes; /* runners at most */
        uint32_t threads;   /* seats per runner */
        uint32_t batch_max; /* tasks per handle_many; 1: none */
        uint64_t batch_wait_ms;
        uint64_t grace_ms;  /* from the stop flag to SIGABRT */
        uint64_t abort_ms;  /* from SIGABRT to SIGKILL */
        uint64_t stall_ms;  /* longest time without progress() */
        uint64_t init_ms;   /* from spawn to READY; also the longest time without a start while nothing runs */
        uint64_t idle_ms;   /* a runner without work for this long is retired */
        uint64_t max_tasks; /* a runner that was handed so many, without those taken back, is replaced */
        uint64_t backoff_ms,
                backoff_max_ms;    /* before a failed runner is replaced; doubles with each failure in a row */
        uint32_t quarantine_after; /* failures in a row; then nothing starts until pool_lift() */
        uint32_t ring_entries;     /* tasks a runner's ring holds */
};

struct pool_io;

/* A task in the pool's care.  Embedded in whatever the caller keeps about it; it must not move until it is settled. */
struct pool_task {
        struct ring_task task; /* the caller's; valid until settled */
        bool is_suspect;       /* run it alone in a fresh runner */
        void *owner;
        struct pool_io *pool_io; /* pool_io's: the one that has it */

        /* The pool's own. */
        struct pool_task *prev, *next;
        struct pool_runner *runner; /* NULL: waiting */
        uint64_t ticket;            /* set by pool_io when it was handed over */
        uint32_t saved_version;     /* pool_io's: the checkpoint of it that was passed on last */
        uint64_t offered_ms, handed_ms;
        uint64_t stopped_ms; /* when the stop flag was raised; 0: not */
        enum blame_why why;  /* … and for what */
};

enum runner_state { RUNNER_NONE, RUNNER_STARTING, RUNNER_READY, RUNNER_RETIRING, RUNNER_DYING };

/* One place for a runner.  `state` and counts are the pool's; `process` is pool_io's. */
struct pool_runner {
        enum runner_state state;
        uint32_t slot;
        bool is_solo;             /* the place where suspects run */
        struct pool_task *handed; /* list through prev/next, oldest first */
        struct pool_task *handed_last;
        uint32_t in_flight;
        uint64_t shut_ms; /* hand it nothing until then, or until its next answer */
        uint64_t handed_total, answered_total;
        uint64_t since_ms;    /* entered this state */
        uint64_t idle_ms;     /* in_flight became 0 */
        uint64_t answered_ms; /* its last answer, or READY */
        uint64_t look_ms;     /* next time to look at its seats; 0: no need */
        uint64_t aborted_ms;  /* SIGABRT was sent */
        enum blame_why why;   /* why we kill it; BLAME_NOTHING: we do not */
        void *process;
};

enum pool_state { POOL_OPEN, POOL_PAUSED, POOL_PROBING, POOL_QUARANTINED };

struct pool {
        struct pool_policy policy;
        bool has_many;               /* the plugin has handle_many: known once a runner said READY */
        struct pool_runner *runners; /* as many as there ever were processes, and a last one for suspects */
        uint32_t runners_count;
        struct pool_task *waiting, *waiting_last;
        struct pool_task *suspects, *suspects_last;
        uint32_t waiting_count, suspects_count;
        enum pool_state state;
        bool is_draining;    /* take nothing new, retire what is idle */
        bool is_retreating;  /* … and start nothing of what was offered: it is given back */
        uint64_t paused_ms;  /* until */
        uint32_t pauses;     /* in a row */
        uint32_t failures;   /* runners that died without having answered anything, in a row */
        uint64_t spawn_ms;   /* not before */
        uint64_t stepped_ms; /* time of the latest event: what fell due after it has not been looked at */
        uint64_t average_ns; /* of a task's time in handle(), moving */
        uint64_t random;     /* state of the jitter */
};

enum pool_event_kind {
        POOL_OFFERED,    /* task */
        POOL_READY,      /* runner; has_many */
        POOL_ANSWERED,   /* runner, task, reply */
        POOL_TAKEN_BACK, /* task: it never started */
        POOL_FULL,       /* runner, task: there was no room in its ring after all */
        POOL_SEEN,       /* runner, views: the answer to LOOK */
        POOL_GONE,       /* runner, views, death: the process is reaped, its last answers were posted before */
        POOL_BROKEN,     /* runner: what it wrote to shared memory is impossible */
        POOL_CANCELLED,  /* task; why (BLAME_CANCEL or BLAME_SHUTDOWN): raise its stop flag, or settle it if it waits */
        POOL_TICK,
        POOL_WARM,    /* count: so many runners are wanted before there are tasks for them */
        POOL_RETREAT, /* give back what has not started, end when the rest has */
        POOL_RESUME,  /* the opposite of draining and retreating */
        POOL_CUT,     /* end now: kill every runner, give everything back */
};

/* One handed task as pool_io sees it in shared memory. */
struct pool_view {
        struct pool_task *task;
        bool is_started;
        uint32_t seat;
        uint64_t started_ms; /* not before it was handed over, not in the future */
        uint64_t progressed_ms;
};

struct pool_event {
        enum pool_event_kind kind;
        struct pool_runner *runner;
        struct pool_task *task;
        const struct ring_reply *reply;
        const struct pool_view *views;
        size_t views_count;
        const struct death *death;
        bool has_many;
        uint32_t count;
        enum blame_why why;
};

enum pool_action_kind {
        ACTION_SPAWN,      /* runner */
        ACTION_HAND,       /* runner, first, count: one batch */
        ACTION_TAKE_BACK,  /* runner, task */
        ACTION_LOOK,       /* runner */
        ACTION_STOP,       /* runner, task: raise its stop flag */
        ACTION_ABORT,      /* runner: SIGABRT, for a backtrace */
        ACTION_KILL,       /* runner: SIGKILL */
        ACTION_RETIRE,     /* runner */
        ACTION_SETTLE,     /* task, outcome, is_suspect; reply or why + death + seat */
        ACTION_QUARANTINE, /* the pool has given up until pool_lift() */
};

struct pool_action {
        enum pool_action_kind kind;
        struct pool_runner *runner;
        struct pool_task *task;
        size_t first; /* ACTION_HAND: tasks are actions->batch[first .. first + count) */
        uint32_t count;
        enum outcome outcome;
        bool is_suspect; /* settled without blame: offer it again with is_suspect set */
        bool never_started;
        enum blame_why why;
        uint32_t seat;
        uint64_t ticket; /* ACTION_SETTLE without a reply: under which the runner knew it */
        const struct ring_reply *reply;
        const struct death *death;
};

/* What a step wants done, in order.  Zero-initialised; kept between steps, so that nothing is allocated in the long
 * run. */
struct pool_actions {
        struct pool_action *list;
        size_t count, room;
        struct pool_task **batch; /* for ACTION_HAND */
        size_t batch_count, batch_room;
};

int pool_init(struct pool *pool, const struct pool_policy *policy, uint64_t seed);
void pool_free(struct pool *pool);
void pool_actions_free(struct pool_actions *actions);

/* Other times and another number of processes from now on; what the rings were made for (threads, batch_max,
 * ring_entries) stays as it was.  Not from within a step: runners may move.  0 or -ENOMEM, and nothing has changed. */
int pool_set_policy(struct pool *pool, const struct pool_policy *policy);

/* How many more to offer: a little more than what the runners can take at once, so that none waits for the loop. */
uint32_t pool_room(const struct pool *pool);
bool pool_has_room(const struct pool *pool);

/* Actions are appended to `actions` (cleared first). */
void pool_step(struct pool *pool, const struct pool_event *event, uint64_t now_ms, struct pool_actions *actions);

/* When POOL_TICK is due next; UINT64_MAX: never. */
uint64_t pool_due_ms(const struct pool *pool);

/* Ends a quarantine. */
void pool_lift(struct pool *pool);

/* No task waits or runs. */
bool pool_is_idle(const struct pool *pool);
/* … and no runner is left. */
bool pool_is_empty(const struct pool *pool);

#endif
