/* pool.h: decides which runner gets which task, and what happens to the tasks of a runner that dies.
 *
 * A machine without I/O: events and the time go in, actions come out.  The pool_io files perform the actions
 * (processes, rings, signals) and turn what happens into events; nothing here deals with processes.
 *
 *         offered → waiting → handed to a runner's ring → (started by a seat) → settled
 *
 * A pool serves one generation of a handler: all its runners have the same plugin and settings.  Offered tasks may run
 * at once and in any order: the window has already ensured the order per key.  Only a *run*, a task and its followers,
 * stays together: it is handed over as a part of one batch, and taken back from its end, so that what has started is
 * always its beginning.  A follower that has not started is given back: it starts in no other call. */
#ifndef QUIVER_HOST_POOL_POOL_H
#define QUIVER_HOST_POOL_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/pool/blame.h"
#include "ring/pack.h"
#include "task/envelope.h"

/* How a pool behaves.  0 turns off stall_ms, init_ms, idle_ms, max_tasks and quarantine_after. */
struct pool_policy {
        uint32_t processes; /* the most runners, without the one for suspects */
        uint32_t threads;   /* seats per runner */
        uint32_t batch_max; /* tasks per handle_many(); 1: no batches */
        bool is_same_key;   /* several tasks of one key may be in a batch: ordered batches */
        uint64_t batch_wait_ms;
        uint64_t grace_ms;  /* from the stop flag to SIGABRT */
        uint64_t abort_ms;  /* from SIGABRT to SIGKILL */
        uint64_t stall_ms;  /* longest time without progress() */
        uint64_t init_ms;   /* from spawn to READY; also the longest time in which an idle runner starts no task */
        uint64_t idle_ms;   /* a runner without tasks for this long is retired */
        uint64_t max_tasks; /* a runner is replaced after so many tasks, not counting those taken back */
        uint64_t backoff_ms,
                backoff_max_ms;    /* pause before a failed runner is replaced; doubles with each failure in a row */
        uint32_t quarantine_after; /* failures in a row after which nothing starts until pool_lift() */
        uint32_t ring_entries;     /* tasks that a runner's ring holds */
};

struct pool_io;

/* A task in the pool, embedded in the caller's record of it.  It must not move until it is settled. */
struct pool_task {
        struct ring_task task; /* set by the caller; valid until the task is settled */
        bool is_suspect;       /* set by the caller: run the task alone in a new runner */
        bool is_follower;      /* set by the caller: it runs in the same call as the task before it, or not at all */
        bool is_borrowed;      /* set by the caller: the task is another host's; it is not part of a struct claimed */
        bool is_urgent; /* set by the caller: its key has waited for the store, so others of its lane let it pass */
        enum lane lane; /* set by the caller: runners get those of higher lanes first */
        struct pool_task *run_next; /* set by the caller: the next task of its run; read when it is offered */
        void *owner;
        struct pool_io *pool_io; /* set by pool_io: the pool that has the task */

        /* The following fields belong to the pool unless they name another owner. */
        struct pool_task *prev, *next;
        bool is_large;              /* in a runner's ring it needs a spill (ring_task_is_small()) */
        struct pool_runner *runner; /* NULL: the task waits */
        uint64_t ticket;            /* set by pool_io when the task was submitted to the ring */
        bool is_ending;             /* set by pool_io: its runner is gone; it is settled once the ending is explained */
        int32_t pid;                /* set by pool_io: the runner that it was submitted to last; 0: none yet */
        uint32_t saved_version;     /* set by pool_io: version of the checkpoint that was passed on last */
        uint64_t offered_ms, handed_ms;
        uint64_t stopped_ms; /* when the stop flag was raised; 0: not raised */
        enum blame_why why;  /* why the task is to stop; BLAME_NOTHING: it is not */
        bool is_recalled;    /* also set by the owner: the task is wanted back unless it has started */
};

enum runner_state { RUNNER_NONE, RUNNER_STARTING, RUNNER_READY, RUNNER_RETIRING, RUNNER_DYING };

/* A slot for a runner.  `process` belongs to pool_io, everything else to the pool. */
struct pool_runner {
        enum runner_state state;
        uint32_t slot;
        bool is_solo;             /* the slot for suspects, which run alone */
        struct pool_task *handed; /* tasks in the runner's ring, the oldest first */
        struct pool_task *handed_last;
        uint32_t in_flight;
        uint32_t large;   /* of these, tasks that need a spill */
        uint64_t shut_ms; /* gets no task until then or until its next answer; 0: not shut */
        uint64_t handed_total, answered_total;
        uint64_t since_ms;    /* when it entered its state */
        uint64_t idle_ms;     /* when in_flight became 0 */
        uint64_t answered_ms; /* when its last answer came, or READY */
        uint64_t look_ms;     /* when to examine its seats next; 0: not needed */
        uint64_t aborted_ms;  /* when SIGABRT was sent; 0: not sent */
        enum blame_why why;   /* why the host kills it; BLAME_NOTHING: it does not */
        void *process;
};

/* Why a runner has ended. */
enum runner_exit {
        EXIT_RETIRED, /* it was idle, or had run max_tasks */
        EXIT_HOST,    /* the host ended it: to stop, to reload, or to interrupt a task */
        EXIT_START,   /* it did not become ready */
        EXIT_TIMEOUT, /* a task ran past its timeout or stalled, and did not stop */
        EXIT_CRASHED, /* a signal ended it, or it overwrote the shared memory */
        EXIT_KILLED,  /* a SIGKILL that the host did not send */
        EXIT_EXITED,  /* the plugin called exit() */
        RUNNER_EXITS
};

enum pool_state { POOL_OPEN, POOL_PAUSED, POOL_PROBING, POOL_QUARANTINED };

struct pool {
        struct pool_policy policy;
        bool has_many;               /* the plugin has handle_many(); known after the first READY */
        struct pool_runner *runners; /* one slot per process, and a last one for suspects; never shrinks */
        uint32_t runners_count;
        struct pool_task *waiting;             /* waiting tasks, higher lanes first, then in order of arrival */
        struct pool_task *waiting_last[LANES]; /* the last waiting task of each lane; may be NULL */
        uint32_t waiting_of[LANES];            /* waiting tasks per lane */
        struct pool_task *suspects, *suspects_last;
        uint32_t waiting_count, suspects_count;
        enum pool_state state;
        bool is_draining;    /* the pool takes no new tasks and retires idle runners */
        bool is_retreating;  /* is_draining, and tasks that have not started are given back */
        uint64_t paused_ms;  /* end of the current pause */
        uint32_t pauses;     /* consecutive pauses */
        uint32_t failures;   /* consecutive runners that died without having answered a task */
        uint64_t spawn_ms;   /* no runner is started before this time */
        uint64_t stepped_ms; /* time of the latest step; what fell due later has not been handled */
        uint64_t average_ns; /* moving average of a task's time in handle() */
        uint64_t random;     /* state of the random numbers for jitter */
};

enum pool_event_kind {
        POOL_OFFERED,    /* task, with the run behind it */
        POOL_READY,      /* runner; has_many */
        POOL_ANSWERED,   /* runner, task, reply */
        POOL_TAKEN_BACK, /* task: taken back from the ring before it started */
        POOL_FULL,       /* runner, task: the ring had no room for it */
        POOL_SEEN,       /* runner, views: the result of ACTION_LOOK */
        POOL_GONE,       /* runner, views, death: the process is reaped; its last answers were posted before */
        POOL_BROKEN,     /* runner: the shared memory holds an impossible value */
        POOL_RECALLED,   /* task: give it back, unless it has started */
        POOL_CANCELLED,  /* task; why (BLAME_CANCEL or BLAME_SHUTDOWN): stop it, or settle it if it waits */
        POOL_TICK,
        POOL_WARM,    /* count: start so many runners before there are tasks for them */
        POOL_RETREAT, /* give back tasks that have not started, and end when the others have ended */
        POOL_RESUME,  /* stop draining and retreating */
        POOL_CUT,     /* end now: kill every runner and give back every task */
};

/* A task in a runner's ring, as the shared memory shows it. */
struct pool_view {
        struct pool_task *task;
        bool is_started;
        uint32_t seat;
        uint64_t started_ms; /* limited to the time between submission to the ring and now */
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
        ACTION_HAND,       /* runner, first, count: submit one batch to the ring */
        ACTION_TAKE_BACK,  /* runner, task */
        ACTION_LOOK,       /* runner: post POOL_SEEN */
        ACTION_STOP,       /* runner, task: raise its stop flag */
        ACTION_ABORT,      /* runner: SIGABRT, for a backtrace */
        ACTION_KILL,       /* runner: SIGKILL */
        ACTION_RETIRE,     /* runner */
        ACTION_SETTLE,     /* task, outcome, is_suspect; reply, or why and death and seat */
        ACTION_QUARANTINE, /* report that nothing starts until pool_lift() */
};

struct pool_action {
        enum pool_action_kind kind;
        struct pool_runner *runner;
        struct pool_task *task;
        size_t first; /* ACTION_HAND: tasks are actions->batch[first .. first + count) */
        uint32_t count;
        enum outcome outcome;
        bool is_suspect; /* settled without blame; its owner offers it again with is_suspect set */
        bool never_started;
        enum blame_why why;
        uint32_t seat;
        uint64_t ticket;   /* ACTION_SETTLE without a reply: the ticket that the task had in the ring */
        uint64_t since_ms; /* and when it was started */
        const struct ring_reply *reply;
        const struct death *death;
};

/* The actions of a step, in order.  Initialise with zeroes and keep it between steps: its memory is reused. */
struct pool_actions {
        struct pool_action *list;
        size_t count, room;
        struct pool_task **batch; /* the tasks of all ACTION_HANDs */
        size_t batch_count, batch_room;
};

void pool_init(struct pool *pool, const struct pool_policy *policy, uint64_t seed);
void pool_free(struct pool *pool);
void pool_actions_free(struct pool_actions *actions);

/* Changes the times and the number of processes; threads, batch_max and ring_entries, which the rings depend on, stay
 * as they are.  Must not be called within a step, because `runners` may move. */
void pool_set_policy(struct pool *pool, const struct pool_policy *policy);

/* How many more tasks of that lane to offer: somewhat more than the runners can start at once, so that no seat waits
 * for the loop.  Tasks that wait in lower lanes take no room from it. */
uint32_t pool_room(const struct pool *pool, enum lane lane);
bool pool_has_room(const struct pool *pool);
/* How many tasks of one key may be offered as one run. */
uint32_t pool_run_max(const struct pool *pool);
/* How many more tasks would start at once if they were offered. */
uint32_t pool_free_seats(const struct pool *pool);
/* How many seats are idle, including those of runners that can still be started: what other hosts may borrow. */
uint32_t pool_spare_seats(const struct pool *pool);
/* How many runners are needed in total for one more seat; 0: all are started, or one is starting. */
uint32_t pool_runners_for_more(const struct pool *pool);
/* Whether tasks wait or run. */
bool pool_has_tasks(const struct pool *pool);

/* Why a runner has ended.  Call it before POOL_GONE is posted. */
enum runner_exit pool_exit_of(const struct pool_runner *runner, int signal);

/* Handles one event.  Clears `actions`, then fills it. */
void pool_step(struct pool *pool, const struct pool_event *event, uint64_t now_ms, struct pool_actions *actions);

/* When POOL_TICK is due next; UINT64_MAX: never. */
uint64_t pool_due_ms(const struct pool *pool);

/* Ends a quarantine. */
void pool_lift(struct pool *pool);

/* Whether no task waits or runs. */
bool pool_is_idle(const struct pool *pool);
/* Whether no task waits or runs, and no runner is left. */
bool pool_is_empty(const struct pool *pool);

#endif
