/* shard.h: one shard as its owner sees it: lease, window, and the one call to the store that may be under way.
 *
 * A machine without I/O: the host passes in events and asks for the next call.  shard_next_call() names it,
 * shard_fill_*() fills it in, the host makes it and passes back the reply.  A call without an answer is repeated
 * unchanged: calls are numbered, so the store does nothing twice. */
#ifndef QUIVER_HOST_SHARD_SHARD_H
#define QUIVER_HOST_SHARD_SHARD_H

#include <stdbool.h>
#include <stdint.h>

#include "host/shard/done_tasks.h"
#include "host/shard/lent.h"
#include "host/shard/pending_outcome.h"
#include "host/shard/routes.h"
#include "host/shard/shard_checkpoints.h"
#include "host/shard/shard_load.h"
#include "host/shard/shard_names.h"
#include "host/shard/shard_schedules.h"
#include "host/shard/shard_set.h"
#include "host/shard/shard_telling.h"
#include "host/shard/window.h"
#include "store/store.h"

enum shard_state {
        SHARD_AWAY,    /* not ours, and not assigned to us */
        SHARD_SEEKING, /* assigned to us, not granted yet */
        SHARD_PARTING, /* no longer assigned to us, but an acquire is unanswered and may be granted */
        SHARD_READING, /* granted; the rest of the in-flight table has yet to be read */
        SHARD_OWNED,
        SHARD_LEAVING, /* claims and starts nothing; released once no task runs and all outcomes are durable */
};

enum shard_call {
        SHARD_CALL_NONE,
        SHARD_CALL_ACQUIRE,
        SHARD_CALL_PAGE,
        SHARD_CALL_NAMES,
        SHARD_CALL_SCHEDULES,
        SHARD_CALL_ADVANCE,
        SHARD_CALL_WAKE,
        SHARD_CALL_FIRES,
        SHARD_CALL_RELEASE
};
#define SHARD_CALLS (SHARD_CALL_RELEASE + 1u)

/* With short tasks, how many a shard claims ahead at most. */
#define SHARD_STOCK_MAX 256u

struct shard_limits {
        uint64_t ttl_ms;
        uint64_t drain_ms;  /* how long a planned move waits for running calls; a longer call keeps the shard here */
        uint64_t gather_ms; /* how long an outcome may wait for others while the host has other work */
        uint32_t window_tasks;
        uint64_t window_bytes;
        bool can_merge;  /* the app has the feature "merge" switched on */
        bool ring_costs; /* see struct store_info */
        uint32_t seats;  /* the most tasks a host runs at once, so as many of a dead owner's may have been running */
};

struct shard {
        uint32_t number;
        enum shard_state state;
        const struct shard_limits *limits;
        struct routes *routes;        /* which pools serve its tasks; shared, borrowed */
        struct shard_set *changed;    /* set that the shard adds itself to when something happens to it; may be NULL */
        struct done_tasks *done;      /* where done tasks are remembered; may be NULL */
        const int64_t *wall_ahead_ms; /* wall clock minus boot clock; NULL: unknown */
        struct store_lease lease;
        struct window window;
        uint64_t lease_number; /* grows each time we lose or release the shard */
        uint64_t starts;  /* second half of the handlers' fence; never reset, because an epoch may be granted twice */
        uint32_t running; /* tasks in the hands of pools */
        uint32_t lent;    /* tasks in the hands of workers; they do not delay leaving the shard */

        bool is_firm;                     /* SEEKING: its last owner is no longer a member */
        bool has_holder;                  /* SEEKING: `holder` is set */
        uint8_t holder[STORE_NONCE_SIZE]; /* who holds the lease according to the store; need not be its last owner */
        bool is_moving;       /* assigned to another host; OWNED: a long call delays the move (a pending move) */
        bool is_to_leave;     /* is_moving: leaves once the calls that ran at leave_ms have ended */
        bool is_forced;       /* LEAVING: does not go back to OWNED because of a long call */
        bool must_recall;     /* tasks that a pool has but has not started are to be taken back */
        bool is_refused;      /* the store no longer renews the lease: running tasks must be stopped */
        uint64_t leave_ms;    /* LEAVING, is_to_leave: since when */
        uint64_t epoch;       /* assigned by coordination; 0: not assigned to us.  lease.epoch may be older */
        uint64_t next_epoch;  /* epoch to acquire under once the release is answered; 0: none */
        uint64_t stale_epoch; /* AWAY: the store's epoch, which is above our assigned one; 0: none */
        uint32_t busy_count;  /* SEEKING: number of BUSY replies */

        bool is_calling;
        enum shard_call last_call; /* the call under way, or the previous one */
        bool is_repeat;            /* last_call got no answer and has to be repeated */
        uint64_t call;             /* number of the last numbered call that the store answered */
        uint64_t sent_ms;          /* when the call under way was first sent: the lease it renews counts from here */
        uint64_t not_before_ms;
        uint32_t failures;
        uint64_t after_seq; /* READING */
        bool must_reread;   /* read the in-flight table from the start: the store has tasks that we have forgotten */
        uint32_t recovered; /* how many more of a dead owner's tasks may have been running */
        bool is_recovery;   /* the previous owner did not release the shard: what it had in flight may have started */
        bool has_lost;      /* we had it once and lost its lease: what we find in flight may have started here */
        bool passes_on;     /* one of both, and it was granted while leaving: the next owner has to know, too */

        struct claimed *ended, *ended_last; /* list of tasks with an outcome that no call has taken yet */
        uint32_t ended_count;
        uint64_t ended_ms;    /* when the first task on that list ended */
        bool tasks_are_short; /* recent tasks were short, so waiting a moment fills the next call */
        bool is_urgent;       /* an outcome on that list blocks a waiting task of its key, a person or a timer */
        struct shard_telling *telling; /* contents of the advance under way, or to be repeated; NULL: none */
        struct shard_telling **spare;  /* list of unused ones; NULL: they are freed */

        uint64_t excess_ms; /* when to look again whether keys have too many tasks; STORE_NEVER */

        struct shard_saves saves;
        struct lent *starts_waiting; /* lent tasks whose start has to be recorded (lent.h) */
        struct lent *adopted;        /* tasks that a previous owner lent; see shard_take_adopted() */
        struct shard_names names;
        struct shard_schedules *schedules; /* NULL: no schedule of the shard fires */

        bool has_work;               /* the store may have something for us, in an unknown lane */
        bool has_more[LANES];        /* the store has more tasks of that lane than the last claim took */
        uint64_t pace_ms;            /* tasks keep coming: time between two claims; 0: claim as they come */
        const uint64_t *pace_max_ms; /* upper bound of pace_ms, by the store's load; NULL: limits->gather_ms */
        uint64_t brought;            /* work claimed since the schedule of calls looked: large tasks are several */
        const uint32_t *stock_max;   /* short tasks to claim ahead, by the host's work; NULL: SHARD_STOCK_MAX */
        const bool *is_store_busy;   /* the store is what limits the host (call_schedule.h); NULL: it is not */
        bool is_costly;              /* the last advance cost the store as much as a dozen others */
        bool is_unrung;    /* the last advance asked not to be rung: another must follow (shard_look_due_ms()) */
        bool has_rung;     /* the doorbell rang after the call under way was sent, which may have looked too early */
        uint64_t due_ms;   /* when the store will have a task that is due; STORE_NEVER */
        uint64_t until_ms; /* our own deadline: start nothing after it; 0: no lease */
        uint64_t fenced;   /* how often the store refused a call because another host has the lease */
        struct shard_load load;
};

/* `limits` and `routes` are shared by all shards of a host. */
void shard_init(
        struct shard *s, uint32_t number, const struct shard_limits *limits, struct routes *routes, uint32_t per_key);
void shard_free(struct shard *s);

/* --- the lease: shard_lease.c --- */

/* The shard is assigned to us under that epoch.  `is_firm`: its last owner is no longer a member.  A shard that we hold
 * stays; one that is leaving stays too, unless a release is under way. */
void shard_assign(struct shard *s, const uint8_t nonce[STORE_NONCE_SIZE], uint64_t epoch, bool is_firm);
/* The shard is assigned to another host: a planned move, which interrupts no task.  We leave once the calls that run
 * now have ended; if one runs longer than drain_ms, the shard goes on serving and tries again when that call has ended.
 * Until then tasks of handlers with short calls still start. */
void shard_unassign(struct shard *s, uint64_t now_ms);
/* The host stops: starts nothing more, and releases the shard once nothing runs. */
void shard_leave(struct shard *s, uint64_t now_ms);
/* Call it before shard_next_call(): a deadline may have passed that no event reports. */
void shard_tick(struct shard *s, uint64_t now_ms);
/* The shard's schedules in the store have changed. */
void shard_schedules_changed(struct shard *s);
/* Whether we hold the lease, as far as we know. */
bool shard_is_held(const struct shard *s);
/* The doorbell rang: there may be tasks to claim, or the lease may be free. */
void shard_rang(struct shard *s);
/* Whether it is assigned to another host and still ours. */
bool shard_is_move_pending(const struct shard *s);
/* Whether an acquire is unanswered: the store may have granted it. */
bool shard_may_be_held(const struct shard *s);

/* --- calls --- */

/* The call to make now; `can_wait`: the host has other work, so calls may wait a moment to be fuller.  shard_fill_*()
 * then sets is_calling. */
enum shard_call shard_next_call(const struct shard *s, bool can_wait, uint64_t now_ms);
/* When shard_next_call() may return something else without any event; STORE_NEVER. */
uint64_t shard_due_ms(const struct shard *s);

/* Never firm while the holder is unknown; the caller checks whether s->holder is still a member. */
void shard_fill_acquire(struct shard *s, struct store_acquire *acquire, uint64_t now_ms);
void shard_fill_page(struct shard *s, struct store_in_flight *page, uint64_t now_ms);
void shard_fill_advance(struct shard *s, struct store_advance *advance, uint64_t now_ms);
void shard_fill_names(struct shard *s, struct store_names *names, uint64_t now_ms);
void shard_fill_wake(struct shard *s, struct store_wake *wake, uint64_t now_ms);
void shard_fill_schedules(struct shard *s, struct store_schedule_list *list, uint64_t now_ms);
/* `ret_replaced` gets the running tasks that a due schedule replaces: the caller stops them. */
void shard_fill_fires(struct shard *s, struct store_fires *fires, uint64_t now_ms,
        struct claimed *ret_replaced[STORE_CALL_FIRES], uint32_t *ret_replaced_count);
void shard_fill_release(struct shard *s, struct store_release *release, uint64_t now_ms);

/* Replies.  shard_failed() is for requests whose status is negative. */
void shard_acquired(struct shard *s, const struct store_acquire *acquire, uint64_t now_ms);
void shard_paged(struct shard *s, const struct store_in_flight *page);
void shard_advanced(struct shard *s, const struct store_advance *advance, uint64_t now_ms);
void shard_named(struct shard *s, const struct store_names *names);
void shard_woken(struct shard *s, const struct store_wake *wake);
/* The schedules were read: the caller then calls shard_schedules_begin() and _add() on s->schedules. */
void shard_listed(struct shard *s);
void shard_fired(struct shard *s, const struct store_fires *fires);
/* The store refuses these fires for good: drops them until the schedules are read again. */
void shard_fires_refused(struct shard *s);
void shard_released(struct shard *s);
void shard_renewed(struct shard *s, const struct store_renewal *renewal, uint64_t sent_ms, uint64_t now_ms);
void shard_failed(struct shard *s, uint64_t now_ms);

/* A task that a pool had has ended; takes ownership of `pending`. */
void shard_ended(struct shard *s, struct claimed *c, struct pending_outcome *pending, uint64_t now_ms);
/* A task that a pool had is to run again; nothing is recorded. */
void shard_again(struct shard *s, struct claimed *c, uint64_t now_ms);

/* A running task has made a checkpoint, which goes with the next call. */
void shard_save(struct shard *s, struct claimed *c, const void *data, size_t size);

/* The routes have changed: looks up the pool of each waiting task again. */
void shard_reroute(struct shard *s, uint64_t now_ms);

/* The pool takes no more tasks: returns those that wait for it to the store, so that they do not fill the window. */
void shard_return_pool(struct shard *s, uint32_t pool, uint64_t now_ms);

/* A pool or a limit has opened or shut: decides again which keys that wait in the store are to be woken. */
void shard_look_at_names(struct shard *s);
/* The pool wants one task to test whether it works again.  False if no key of the shard waits for it. */
bool shard_probe(struct shard *s, uint32_t pool);

/* Carries out a control about tasks that wait here, a key, or the schedules. */
void shard_obey(struct shard *s, const struct store_control *control, uint64_t now_ms);

/* The next task of that lane for that pool, counted as running; NULL if none may start.  The caller must end a task
 * with TRUST_DIED_ALONE (retry_died_alone()), not run it.  A task that a host has died with is returned only once its
 * start is recorded. */
struct claimed *shard_next(struct shard *s, uint32_t pool, enum lane lane, uint64_t now_ms);
/* How many tasks of its key, itself included, may run in one call with `head`, which was just handed out; at most
 * `max`. */
uint32_t shard_run_max(const struct claimed *head, uint32_t max);
/* The task right behind `before`, to run in the same call, counted as running; `before` was just handed out.  NULL:
 * none may follow. */
struct claimed *shard_follow(struct shard *s, const struct claimed *before, uint64_t now_ms);
/* Refuses the answer of a task that follows another in its call if that one is not done: the task counts as not
 * started.  False: the answer counts. */
bool shard_refuse_answer(struct shard *s, struct claimed *c, uint64_t now_ms);
/* Like shard_next(), but only tasks that may be lent (window_may_lend()). */
struct claimed *shard_next_to_lend(struct shard *s, uint32_t pool, enum lane lane, uint64_t before_ms, uint64_t now_ms);
/* Makes tasks of that lane ready again that waited for shares of limits and may start now. */
void shard_look_at_limits(struct shard *s, unsigned lane, uint64_t now_ms);
/* Records the start of the pool's next suspect; shard_next() hands it out once that is durable.  Only call it while the
 * pool has no marked suspect on any shard (window_marks()): if the host dies, the marked one did it.  False: there is
 * no suspect. */
bool shard_mark_next(struct shard *s, uint32_t pool, uint64_t now_ms);

/* Notes that what the shard wants may have changed.  The functions above call it themselves. */
static inline void shard_stir(struct shard *s)
{
        if (s->changed)
                shard_set_add(s->changed, s->number);
}

/* Whether no task of the shard can start before the next advance: nothing runs, and an outcome blocks its key. */
bool shard_is_blocked(const struct shard *s);

/* Number of tasks whose outcome the call under way carries. */
static inline uint32_t shard_telling_count(const struct shard *s)
{
        return s->telling ? s->telling->tasks_count : 0;
}

/* Whether some lane has no room for another task. */
bool shard_is_full(const struct shard *s);

/* Whether nothing runs, no outcome waits and no call is under way. */
bool shard_is_quiet(const struct shard *s);

#endif
