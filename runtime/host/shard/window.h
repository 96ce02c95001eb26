/* window.h: which claimed tasks may run now.
 *
 * Holds a shard's claimed tasks and hands them out so that a key's tasks keep their order and never overlap.  Plain
 * data, no I/O, no clock: the shard feeds it and asks it.
 *
 * A key is idle, busy (one of its tasks, or several in one call, run or have an outcome that is not durable yet) or
 * barred (its tasks have to go back to the store, because a retry or a person holds the key up).  Only the first task
 * of an idle key is ready; ready keys wait in a line per pool and lane, so that a handler without room holds up no
 * other. */
#ifndef QUIVER_HOST_SHARD_WINDOW_H
#define QUIVER_HOST_SHARD_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/blocks.h"
#include "host/limit/limit.h"
#include "host/pool/pool.h"
#include "host/shard/window_keys.h"
#include "store/store.h"

/* Most payload and checkpoint bytes of a task that another host's seat may run: with its head it fits into a mailbox
 * message. */
#define WINDOW_LEND_BYTES (STORE_CALL_BYTES + 32768u)
#define WINDOW_NO_POOL    UINT32_MAX       /* no handler of this host serves the task */
#define WINDOW_SHUT_POOL  (UINT32_MAX - 1) /* a handler serves it, but takes no tasks now */

enum claimed_state {
        CLAIMED_WAITING, /* for its turn */
        CLAIMED_RUNNING, /* taken with window_next() */
        CLAIMED_ENDED,   /* has an outcome that is not durable yet */
};

/* What is known about hosts that died while they had the task. */
enum trust {
        TRUST_FULL,
        TRUST_WAS_RUNNING, /* a previous owner recorded its start and no end: that host died meanwhile */
        TRUST_SUSPECT,     /* runs alone, after its start is recorded */
        TRUST_DIED_ALONE,  /* a suspect that was running alone when its last owner died */
};

/* One claimed task.  Owned by the window; its strings are copies in `texts`.  Fields that are used together stand
 * together: thousands of tasks are claimed at a time, so each cache line of one that is not touched counts. */
struct claimed {
        struct pool_task pool_task; /* first member: pools know the task by it */

        /* Its place, from the claim until its outcome is durable. */
        uint64_t seq;
        struct window_key *of;
        struct claimed *prev, *next;     /* the key's tasks, by seq */
        struct pending_outcome *pending; /* CLAIMED_ENDED: its outcome; owned */
        struct claimed *ended_next;      /* the shard's list of ended tasks */
        enum claimed_state state;
        uint32_t pool;
        bool holds_key;       /* counted in its key's `holders` */
        bool is_told_to_stop; /* it was told to stop because its lease or its share of a limit was lost */
        bool is_marked;       /* its start is recorded, so it may run */
        bool has_mark;        /* a suspect whose start is, or is being, recorded: counted in the `marks` of its pool */
        bool is_cancelled;    /* to be cancelled once the outcome under way is durable */
        bool is_diverted;     /* ended by window_divert() */
        bool is_limited;      /* waits for shares of limits (host/limit) */
        bool is_for_owner;    /* a borrowed seat failed with it: its next start is at its owner */
        bool may_merge;       /* may be merged with its neighbours: it asks for that and was never started */
        bool is_unrecorded;   /* it would be mergeable, but may have started, which the store does not know yet */
        bool is_debounced;    /* it has already waited in the store for others to join it */
        bool is_to_go_back;   /* must go back to the store after a merge: an earlier task of its key went back */
        bool has_saved;       /* the store does not have `checkpoint` yet */
        bool has_run_saved;   /* `saved` is set */
        bool is_save_waiting; /* `saved` waits for the next call (shard_checkpoints.h) */
        enum trust trust;
        uint32_t hosts_died;         /* deaths in a row of hosts that had the task */
        uint64_t lease_number;       /* the shard's when it was claimed: outcomes under an older one are dropped */
        uint64_t claimed_ms;         /* boot time, set by the shard */
        uint64_t started_ms;         /* CLAIMED_RUNNING: since when, boot time */
        uint64_t ran_ms;             /* duration of the last handle() call */
        struct lent *lent;           /* set while a worker or another host's seat runs it, or is about to */
        struct claimed *merges_into; /* CLAIMED_ENDED: ends with that task's MERGE; NULL: has an outcome of its own */

        /* What its envelope and its note say. */
        struct span id, key, handler, headers, payload; /* copies; texts are NUL-terminated too */
        uint64_t reply_ms;
        uint64_t submitted_ms; /* store time; 0: unknown */
        uint64_t timeout_ms;   /* 0: the handler's timeout */
        uint32_t attempts_max; /* 0: the handler's setting */
        uint32_t attempts, crashes, interruptions, laters;
        uint32_t silences;              /* silences in a row of workers that had the task */
        uint32_t generation, file_hash; /* of the pool that it was offered to last (done_tasks.h) */

        /* What few tasks have. */
        struct buffer checkpoint;
        struct buffer saved;          /* latest checkpoint while it runs: the runner still uses `checkpoint` */
        struct buffer headers_packed; /* the headers in the runner's format */
        size_t size_bytes;            /* of its memory, texts included */
        struct claimed *donor;        /* merged task whose texts hold our payload and headers; owned */
        struct limit_hold hold;       /* the shares of limits that it runs with */
        struct claimed *save_next;    /* the shard's list of tasks with is_save_waiting */
        struct span needs;            /* header that only a newer Quiver understands (envelope_needs()); empty: none */
        uint64_t worker_epoch, worker_start; /* fence of its latest start at a worker; 0: none */
        uint64_t debounce_ms;                /* may_merge: how long it waits for others to join; 0: not at all */
        uint64_t merge_call;                 /* number of the call that committed the last merge */
        uint32_t merge_rounds;               /* merges into it in a row without a chance to start */
        char texts[];                        /* memory of the spans */
};

struct window_key {
        struct window_key *bucket_next; /* this and `hash` belong to window_keys */
        uint32_t hash;
        struct claimed *first, *last; /* by seq: higher lanes first, then in order of arrival */
        uint32_t count;
        uint32_t live;     /* tasks that have not ended */
        uint32_t diverted; /* tasks on their way back to the store */
        uint32_t holders;  /* tasks that run, or whose outcome is not durable: more than one in a batch of one key */
        bool is_busy;      /* holders > 0 */
        bool is_barred;
        bool is_run_over;   /* a task of the current run ended other than DONE (shard_run.c) */
        bool is_halving;    /* the first suspect has run alone and is done */
        uint32_t suspected; /* one of that many tasks, from the first on, ended a process; 0: unknown */
        bool is_ready;      /* is in a line */
        bool is_unkeyed;    /* its one task has no key of its own: the key is the task's id */
        struct window_key *ready_prev, *ready_next;
        struct window_line *line;
        bool is_emptied; /* is in the window's list of emptied keys */
        struct window_key *emptied_next;
        size_t size;
        char key[];
};

struct window_line {
        struct window_key *first, *last;
        /* Bit fields: a window has 65536 tasks at most, and a host has thousands of lines. */
        uint64_t keys : 21;
        uint64_t unkeyed : 21; /* keys of tasks without a key: only those may be lent */
        uint64_t marks : 21;   /* LINE_SUSPECTS: suspects whose start is, or is being, recorded */
};

/* A pool's lines: one per lane, and one for suspects, whose starts are recorded one by one. */
enum { LINE_SUSPECTS = LANES, WINDOW_LINES };

/* Beginning of a note's event for the death of a host, whether the task ran alone or not. */
#define HOST_DIED "its host died"
/* A task is a suspect after this many deaths in a row of hosts that had it (store/README.md says why so many). */
#define HOST_DEATHS_MAX 4

struct window {
        struct blocks *blocks; /* where memory of tasks and keys comes from, shared by all windows; NULL: malloc() */
        struct window_keys keys;
        struct window_line *lines;         /* [pool][WINDOW_LINES] */
        struct window_line limited[LANES]; /* keys whose first task waits for shares of limits, all pools */
        uint32_t *pool_tasks;              /* [pool]: tasks of the window that it runs */
        uint32_t pools;
        uint64_t first_epoch; /* the first epoch of this process: starts recorded under older ones are another host's */
        struct window_key *emptied; /* keys without tasks, freed by window_prune() */
        uint32_t count;             /* tasks */
        uint32_t lanes[LANES];      /* tasks per lane */
        uint32_t ready[LANES];      /* keys in the lines of each lane, all pools */
        uint64_t bytes;             /* payload bytes of all tasks */
        uint32_t per_key;           /* tasks that a key may have; 0: any number.  Set with window_set_per_key() */
        uint32_t large_keys;        /* keys with more live tasks than that */
};

void window_init(struct window *w, uint32_t pools, uint32_t per_key);
void window_free(struct window *w);
/* Sets the number of pools, which never shrinks. */
void window_set_pools(struct window *w, uint32_t pools);
void window_set_per_key(struct window *w, uint32_t per_key);

/* Adds a copy of a claimed task that `pool` is to run; it takes its place in its key's order by seq.  Returns it, or
 * NULL and changes nothing if that seq is here already or is out of range.  The caller then checks
 * window_must_return(). */
struct claimed *window_add(struct window *w, const struct store_task *task, uint32_t pool);

/* Whether an earlier task of its key is on its way back to the store. */
bool window_is_behind_diverted(const struct claimed *c);
/* Whether the task must go back to the store: its key is barred or has an earlier task on the way back, or no handler
 * here serves the task. */
bool window_must_return(const struct window *w, const struct claimed *c);

/* The next task of that lane for that pool whose key is idle; marks the key busy; NULL if none.  No suspect before its
 * start is recorded.  Borrowed: the window owns it until window_drop(). */
struct claimed *window_next(struct window *w, uint32_t pool, enum lane lane);
/* Lets a waiting task run in the same call as the one before it, which was just handed out (shard_run.c). */
void window_follow(struct claimed *c);
/* Whether a task may run on another host's seat: it has no key, no host or seat has failed with it, it was claimed at
 * before_ms or earlier, and it fits into a message. */
bool window_may_lend(const struct claimed *c, uint64_t before_ms);
/* Like window_next(), but the first task of the line that may be lent.  Cheap if the line has no task without a key. */
struct claimed *window_next_to_lend(struct window *w, uint32_t pool, enum lane lane, uint64_t before_ms);
/* How many tasks window_next_to_lend() would find, at most `max`. */
uint32_t window_count_to_lend(const struct window *w, uint32_t pool, enum lane lane, uint64_t before_ms, uint32_t max);
/* Whether window_next() would find a task, in any lane for that pool; in any lane for any pool; in that lane for any
 * pool. */
bool window_has_next(const struct window *w, uint32_t pool);
bool window_has_ready(const struct window *w);
bool window_has_ready_of(const struct window *w, enum lane lane);

/* A task from window_next() has to wait for shares of limits: its key is idle again, but not ready. */
void window_limit(struct window *w, struct claimed *c);
/* The task no longer waits for shares of limits: its key is ready. */
void window_unlimit(struct window *w, struct claimed *c);
/* Number of tasks that wait for shares of limits, or behind such a task. */
uint32_t window_count_limited(const struct window *w);

/* A task that already runs at a worker makes its key busy.  The key must be idle. */
void window_adopt(struct window *w, struct claimed *c);

/* The pool's next suspect whose start is to be recorded, with its key busy.  Counts as marked until window_unmark() or
 * window_drop(). */
struct claimed *window_mark_next(struct window *w, uint32_t pool);
/* Whether window_mark_next() would find one; how many are marked. */
bool window_has_suspect(const struct window *w, uint32_t pool);
uint32_t window_marks(const struct window *w, uint32_t pool);
/* Whether some pool has a suspect or a mark. */
bool window_has_suspects(const struct window *w);
/* The recorded start of a suspect is over, or was undone. */
void window_unmark(struct window *w, struct claimed *c);

/* The task did not run, or will run again: its key is idle, with the task first in it again. */
void window_put_back(struct window *w, struct claimed *c);

/* The task has an outcome.  Its key stays busy until that is durable: no later task of the key is ready before. */
void window_end(struct window *w, struct claimed *c);

/* Assigns a waiting task to another pool. */
void window_move(struct window *w, struct claimed *c, uint32_t pool);

/* The task goes back to the store without having run. */
void window_divert(struct window *w, struct claimed *c);

/* Bars the key: none of its tasks is handed out until all that are here have been dropped. */
void window_bar(struct window *w, struct window_key *key);

/* Frees the task: its outcome is durable, or it was never ours.  The key's next task, if any, becomes ready. */
void window_drop(struct window *w, struct claimed *c);

/* `last` was durably merged into `c`: drops `last`, and gives its payload, headers and options to `c`. */
void window_merge(struct window *w, struct claimed *c, struct claimed *last);

/* Frees keys without tasks.  They are kept until then, because one reply may both end a key's tasks and bring more of
 * them. */
void window_prune(struct window *w);

/* Drops all tasks that are not running, and lifts all bars: the lease was lost. */
void window_drop_idle(struct window *w);

/* Finds a task by key and seq; NULL.  O(tasks of the key). */
struct claimed *window_find(const struct window *w, struct span key, uint64_t seq);
struct window_key *window_key(const struct window *w, struct span key);

#endif
