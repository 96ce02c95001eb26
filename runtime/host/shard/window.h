/* window.h: which claimed tasks may run now.
 *
 * Holds a shard's claimed tasks and hands them out so that a key's tasks keep their order and never overlap.  Plain
 * data, no I/O, no clock: the shard feeds it and asks it.
 *
 * A key is idle, busy (one of its tasks runs, or several in one call, or has run and that is not durable yet) or barred
 * (a person or a retry stands before it: its tasks here have to go back to the store).  Only the first task of an idle
 * key is ready; ready keys wait in a line per pool and lane, so that a handler without room holds up nobody else's. */
#ifndef QUIVER_HOST_SHARD_WINDOW_H
#define QUIVER_HOST_SHARD_WINDOW_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "host/limit/limit.h"
#include "host/pool/pool.h"
#include "store/store.h"

/* Payload and checkpoint of a task that another host's seat may run: with its head it fits into a mailbox's message. */
#define WINDOW_LEND_BYTES (STORE_CALL_BYTES + 32768u)
#define WINDOW_NO_POOL    UINT32_MAX       /* no handler here serves it */
#define WINDOW_SHUT_POOL  (UINT32_MAX - 1) /* one does, but takes nothing now */

enum claimed_state {
        CLAIMED_WAITING, /* for its turn */
        CLAIMED_RUNNING, /* taken with window_next() */
        CLAIMED_ENDED,   /* has an outcome that is not durable yet */
};

/* What is known of hosts that died with it. */
enum trust {
        TRUST_FULL,
        TRUST_WAS_RUNNING, /* Its start was recorded by an owner before us, and no end: that one died meanwhile. */
        TRUST_SUSPECT,     /* It runs alone, once its start is recorded. */
        TRUST_DIED_ALONE,  /* A suspect that was running: its last owner died of it, or with it. */
};

/* One claimed task.  Owned by the window; the strings are copies, in its own memory. */
struct claimed {
        struct pool_task pool_task; /* first: what a pool settles is this */
        uint64_t seq;
        struct span id, key, handler, headers, payload; /* copies; texts are NUL-terminated too */
        struct span needs; /* the same: what only a newer Quiver understands (envelope_needs()); empty: nothing */
        uint64_t reply_ms;
        uint64_t submitted_ms; /* store time; 0: unknown */
        uint64_t claimed_ms;   /* boot time; set by the shard */
        uint64_t timeout_ms;   /* 0: the handler's */
        uint32_t attempts_max; /* 0: the handler's */
        uint64_t lease_number; /* the shard's, when it was claimed: work of an older one does not count */
        uint64_t started_ms;   /* CLAIMED_RUNNING: since */
        uint32_t attempts, crashes, interruptions, laters;
        uint32_t generation, file_hash; /* of what it was offered to last (done_tasks.h) */
        uint64_t ran_ms;                /* inside handle(), the last time */
        enum trust trust;
        uint32_t hosts_died; /* while they had it, one after the other and nothing else in between */
        uint32_t silences;   /* of workers that had it, the same */
        struct lent *lent;   /* a worker outside, or another host's seat, runs it, or is about to; NULL: it does not */
        bool is_for_owner;   /* a borrowed seat that had it failed: its next start is at its owner */
        uint64_t worker_epoch, worker_start; /* the fence of its latest start at a worker; 0: none */
        struct buffer checkpoint;
        bool has_saved;               /* the store does not have the checkpoint yet */
        struct buffer saved;          /* the latest while it runs: a runner still has the one before */
        bool has_run_saved;           /* `saved` is set */
        bool is_save_waiting;         /* `saved` is to be told (shard_checkpoints.h) */
        struct claimed *save_next;    /* the shard's list of those */
        struct buffer headers_packed; /* as a runner gets them */
        enum claimed_state state;
        bool holds_key; /* it is why its key is busy */
        uint32_t pool;
        struct window_key *of;
        struct claimed *prev, *next;     /* within the key, by seq */
        struct pending_outcome *pending; /* CLAIMED_ENDED: what to tell the store; owned (pending_outcome.h) */
        struct claimed *ended_next;      /* the shard's list of those */
        bool is_told_to_stop;            /* it runs under a lease, or with a share of a limit, that was lost */
        bool is_marked;                  /* its start is recorded: it may run */
        bool has_mark;                   /* a suspect's is, or is being: counted in its pool's line of suspects */
        bool is_cancelled;               /* dead, once what is being told about it is told */
        bool is_diverted;                /* ended by window_divert() */
        bool is_limited;                 /* it waits for shares of limits (host/limit) */
        struct limit_hold hold;          /* the shares that it runs with */
        bool may_merge;                  /* it, or others into it: it asks for that, and nobody has it started */
        bool is_debounced;               /* it has waited for others to join it */
        uint64_t debounce_ms;            /* may_merge: it waits so long for that; 0: not */
        uint32_t merge_rounds;           /* so many merges into it one after the other, without a chance to start */
        uint64_t merge_call;             /* the shard's call that told of the last one */
        bool is_to_go_back;              /* a merge into it is being told, and one before it went back to the store */
        struct claimed *merges_into;     /* CLAIMED_ENDED: ends with what is told about that one; NULL: has its own */
        struct claimed *donor;           /* whose payload and headers it has since that was merged into it; owned */
        char texts[];                    /* what the spans point to */
};

struct window_key {
        UT_hash_handle hh;
        struct claimed *first, *last; /* by seq: higher lanes first, then in order of arrival */
        uint32_t count;
        uint32_t live;     /* of these, not ended */
        uint32_t diverted; /* of these, on their way back to the store */
        uint32_t
                holders; /* of these, run, or have run and that is not durable yet: more than one in an ordered batch */
        bool is_busy;    /* there is such a one */
        bool is_barred;
        bool is_run_over;   /* one of the tasks that were handed out together ended other than DONE (shard_run.c) */
        bool is_halving;    /* the first of those under suspicion has run alone and is done */
        uint32_t suspected; /* so many, from the first on: one of them ended a process.  0: it is not known */
        bool is_ready;      /* stands in a line */
        bool is_unkeyed;    /* its name is the id of its task, which has no key */
        struct window_key *ready_prev, *ready_next;
        struct window_line *line;
        bool is_emptied; /* in the window's list of those */
        struct window_key *emptied_next;
        size_t size;
        char key[];
};

struct window_line {
        struct window_key *first, *last;
        /* A window has 65536 tasks at most; a host has thousands of lines. */
        uint64_t keys : 21;
        uint64_t unkeyed : 21; /* of these, of tasks without a key: the only ones that may be lent */
        uint64_t marks : 21;   /* LINE_SUSPECTS: suspects whose start is, or is being, recorded */
};

/* A pool's lines: one per lane, and one for suspects, which start one by one. */
enum { LINE_SUSPECTS = LANES, WINDOW_LINES };

/* How a note's events begin that say that a host died.  Also if the task ran alone then. */
#define HOST_DIED "its host died"
/* So many hosts that died with a task in hand, one after the other, make it a suspect (store/README.md says why so
 * many). */
#define HOST_DEATHS_MAX 4

struct window {
        struct window_key *keys;           /* hash */
        struct window_line *lines;         /* [pool][WINDOW_LINES] */
        struct window_line limited[LANES]; /* keys whose first task waits for shares of limits, of whatever pool */
        uint32_t pools;
        uint64_t first_epoch;       /* the first that this process had the shard under: marks before it are another's */
        struct window_key *emptied; /* keys without tasks: forgotten by window_prune() */
        uint32_t count;             /* tasks */
        uint32_t lanes[LANES];      /* of these, in each lane */
        uint32_t ready[LANES];      /* keys in the lines of each lane */
        uint64_t bytes;             /* of their payloads */
        uint32_t per_key;
};

void window_init(struct window *w, uint32_t pools, uint32_t per_key);
void window_free(struct window *w);
/* There are so many pools now; never fewer than before. */
void window_set_pools(struct window *w, uint32_t pools);

/* Takes a copy of a claimed task, of which `pool` is to run it.  Its key's order is by seq, whenever it comes.  Returns
 * it, or NULL if that seq is here already or of no lane (then nothing changed).  The caller looks at
 * window_is_excess(). */
struct claimed *window_add(struct window *w, const struct store_task *task, uint32_t pool);

/* One of its key that comes before it goes back to the store. */
bool window_is_behind_diverted(const struct claimed *c);
/* Whether it is beyond its key's share, which is `per_key` (0: no limit), barred, for no handler that is here, or
 * behind one that goes back: it should go back to the store. */
bool window_is_excess(const struct window *w, const struct claimed *c, uint32_t per_key);

/* The next task of that lane for that pool whose key is idle, marking the key busy; NULL if none.  Not a suspect before
 * its start is recorded.  Borrowed: the window owns it until window_drop(). */
struct claimed *window_next(struct window *w, uint32_t pool, enum lane lane);
/* A waiting task runs in the same call as the one before it, which was taken just now (shard_run.c). */
void window_follow(struct claimed *c);
/* A task that may run on another host's seat: it has no key, nothing has happened to hosts or seats that had it, it has
 * been here since `before_ms` or longer, and it fits into a message. */
bool window_may_lend(const struct claimed *c, uint64_t before_ms);
/* As window_next(), of those that may be lent, whatever stands before them.  A line without such a task costs nothing.
 */
struct claimed *window_next_to_lend(struct window *w, uint32_t pool, enum lane lane, uint64_t before_ms);
/* How many it would find so, at most `max`. */
uint32_t window_count_to_lend(const struct window *w, uint32_t pool, enum lane lane, uint64_t before_ms, uint32_t max);
/* Whether window_next() would find one of some lane for that pool, for some pool, for every pool; of that lane for some
 * pool. */
bool window_has_next(const struct window *w, uint32_t pool);
bool window_has_ready(const struct window *w);
bool window_is_stocked(const struct window *w);
bool window_has_ready_of(const struct window *w, enum lane lane);

/* It was taken with window_next(), and has to wait for shares of limits: its key is idle again, but not ready. */
void window_limit(struct window *w, struct claimed *c);
/* It waits for them no more: ready as any other. */
void window_unlimit(struct window *w, struct claimed *c);
/* Tasks that wait for them, or behind one that does. */
uint32_t window_count_limited(const struct window *w);

/* It runs already, at a worker: its key is busy.  Only if the key is idle. */
void window_adopt(struct window *w, struct claimed *c);

/* The next suspect for that pool whose start is to be recorded; the same otherwise, and counted as marked until
 * window_unmark() or window_drop(). */
struct claimed *window_mark_next(struct window *w, uint32_t pool);
/* Whether there is one, and how many are marked. */
bool window_has_suspect(const struct window *w, uint32_t pool);
uint32_t window_marks(const struct window *w, uint32_t pool);
/* Whether some pool has one, or a mark. */
bool window_has_suspects(const struct window *w);
/* Its start is over, or never was. */
void window_unmark(struct window *w, struct claimed *c);

/* It did not run after all, or is to run again: its key is idle, and it is the first in it once more. */
void window_put_back(struct window *w, struct claimed *c);

/* It has an outcome.  Its key stays as it is until that is durable: no later task of the key is ready before. */
void window_end(struct window *w, struct claimed *c);

/* Another pool is to run it; it waits. */
void window_move(struct window *w, struct claimed *c, uint32_t pool);

/* It goes back to the store without having run. */
void window_divert(struct window *w, struct claimed *c);

/* No more of the key's tasks are handed out until all that are here have been dropped. */
void window_bar(struct window *w, struct window_key *key);

/* The task's outcome is durable (or it was never ours): forgets it.  Its key's next task, if any, becomes ready. */
void window_drop(struct window *w, struct claimed *c);

/* `last` was merged into `c`, durably: forgets it, but what it was to do is now for `c` to do. */
void window_merge(struct window *w, struct claimed *c, struct claimed *last);

/* Forgets keys that have no tasks left.  Until then they are remembered, for a call may end a key's tasks here and hand
 * out more of them. */
void window_prune(struct window *w);

/* Drops all that is not running, and lifts the bars: they were about what was here. */
void window_drop_idle(struct window *w);

/* By seq; NULL if it is not here.  Walks the key. */
struct claimed *window_find(const struct window *w, struct span key, uint64_t seq);
struct window_key *window_key(const struct window *w, struct span key);

#endif
