/* shard.h: one shard as its owner sees it: lease, window, and the one call to the store that may be under way.
 *
 * A machine without I/O: the host tells it what happened and asks what to do next.  shard_next_call() names the call to
 * make and fills it in; the host makes it, and hands back the reply.  A call that got no answer is made again as it
 * was: the store numbers calls, so the repeat does nothing twice. */
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
        SHARD_AWAY,    /* not ours, nor should it be */
        SHARD_SEEKING, /* ours to acquire */
        SHARD_PARTING, /* no longer ours to acquire, but an acquire is not answered yet: it may be granted */
        SHARD_READING, /* granted; the rest of the in-flight table is still to come */
        SHARD_OWNED,
        SHARD_LEAVING, /* claims and starts nothing more; released once nothing runs and all is told */
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

struct shard_limits {
        uint64_t ttl_ms;
        uint64_t drain_ms; /* a planned move waits so long for calls that run; one that runs longer keeps the shard here
                            */
        uint64_t gather_ms; /* how long an outcome may wait for others while there is other work */
        uint32_t window_tasks;
        uint64_t window_bytes;
        bool can_merge;  /* the app has that switched on */
        bool ring_costs; /* as in store_info */
        uint32_t seats;  /* tasks that a host runs at once, at most: so many of a dead one's may have been running */
};

struct shard {
        uint32_t number;
        enum shard_state state;
        const struct shard_limits *limits;
        struct routes *routes;        /* which pools serve its tasks */
        struct shard_set *changed;    /* where it is noted that something has happened to it; NULL: nowhere */
        struct done_tasks *done;      /* where it is noted what was done; NULL: nowhere */
        const int64_t *wall_ahead_ms; /* how far the wall clock is ahead of the boot clock; NULL: it is not known */
        struct store_lease lease;
        struct window window;
        uint64_t lease_number; /* grows each time the shard is lost */
        uint64_t starts;  /* the second half of a handler's fence: never goes back, an epoch may be granted twice */
        uint32_t running; /* tasks that pools have */
        uint32_t lent;    /* tasks that workers outside have: they keep nobody from leaving the shard */

        bool is_firm;                     /* SEEKING: its last owner is no member any more */
        bool has_holder;                  /* SEEKING: the store has said whose it is */
        uint8_t holder[STORE_NONCE_SIZE]; /* if it has: need not be its last owner */
        bool is_moving;       /* another should have it; OWNED: not yet, a call runs for too long (a pending move) */
        bool is_to_leave;     /* is_moving: once the calls that ran at leave_ms have ended */
        bool is_forced;       /* LEAVING: whatever runs */
        bool must_recall;     /* what a pool has and has not started is to come back */
        bool is_refused;      /* the store renews it no more: what runs has to be cut */
        uint64_t leave_ms;    /* LEAVING, is_to_leave: since */
        uint64_t epoch;       /* what coordination gave it; 0: it is not to be ours.  The lease's may be an older one */
        uint64_t next_epoch;  /* to be sought once it is released; 0: not */
        uint64_t stale_epoch; /* AWAY: the store knows this one, which is above the one we were given; 0: no */
        uint32_t busy_count;  /* SEEKING: so often it was another's */

        bool is_calling;
        enum shard_call last_call; /* the one under way, or the one before */
        bool is_repeat;            /* that one got no answer */
        uint64_t call;             /* number of the last one that the store answered */
        uint64_t sent_ms;          /* when the one under way was first sent: what it renews counts from here */
        uint64_t not_before_ms;
        uint32_t failures;
        uint64_t after_seq; /* READING */
        bool must_reread;   /* READING starts anew: the store has something that we have forgotten */
        uint32_t recovered; /* of a dead owner's: how many more may have been running */

        struct claimed *ended, *ended_last; /* have a pending, wait to be told */
        uint32_t ended_count;
        uint64_t ended_ms;             /* when the first of them ended */
        bool tasks_are_short;          /* recent tasks were short, so waiting a moment fills the next call */
        bool is_urgent;                /* one of them keeps a waiting task of its key from starting */
        struct shard_telling *telling; /* what the advance under way says; NULL: nothing */
        struct shard_telling **spare;  /* where those that are not needed wait; NULL: nowhere, they are freed */

        struct shard_saves saves;
        struct lent *starts_waiting; /* starts at workers that the store has to hear of (lent.h) */
        struct lent *adopted;        /* that an owner before us made; taken with shard_take_adopted() */
        struct shard_names names;
        struct shard_schedules *schedules; /* NULL: it has none that fire */

        bool has_work;               /* the store has something for us, of which lane is not known */
        bool has_more[LANES];        /* the store has more of that lane than there was room for */
        uint64_t pace_ms;            /* tasks keep coming: so long from one claim to the next; 0: as they come */
        const uint64_t *pace_max_ms; /* no longer than this, by the store's load; NULL: gather_ms of the limits */
        bool is_unrung;              /* the last advance asked for no ring: another one follows (shard_look_due_ms) */
        bool has_rung;               /* since the call under way was sent: that may have looked too early */
        uint64_t due_ms;             /* the store will have something for us then; STORE_NEVER */
        uint64_t until_ms;           /* our own deadline: start nothing after it.  0: no lease */
        uint64_t fenced;             /* how often another had taken it */
        struct shard_load load;
};

/* `limits` and `routes` are shared by all shards of a host. */
void shard_init(
        struct shard *s, uint32_t number, const struct shard_limits *limits, struct routes *routes, uint32_t per_key);
void shard_free(struct shard *s);

/* --- the lease: shard_lease.c --- */

/* It is to be ours, under that epoch; `is_firm`: its last owner is no member any more.  If it is ours already, or on
 * its way out, it stays. */
void shard_assign(struct shard *s, const uint8_t nonce[STORE_NONCE_SIZE], uint64_t epoch, bool is_firm);
/* It is to be another's: a planned move, which interrupts nobody.  It is left once the calls that run have ended; if
 * one runs for longer than the drain time the shard goes on serving, and tries again when that call has ended.  Until
 * they have ended, tasks of handlers whose calls are short still start. */
void shard_unassign(struct shard *s, uint64_t now_ms);
/* We go: starts nothing more, and is released once nothing runs. */
void shard_leave(struct shard *s, uint64_t now_ms);
/* A moment may have come that no event tells of. */
void shard_tick(struct shard *s, uint64_t now_ms);
/* The store has other schedules of the shard than are known here. */
void shard_schedules_changed(struct shard *s);
/* We hold the lease, as far as we know. */
bool shard_is_held(const struct shard *s);
/* The store has something new about it: for us to claim, or that it is free. */
void shard_rang(struct shard *s);
/* It should be another's and is still ours. */
bool shard_is_move_pending(const struct shard *s);
/* It was asked for, and no answer has come: the store may think that it is ours. */
bool shard_may_be_held(const struct shard *s);

/* --- calls --- */

/* What to ask the store now; `can_wait`: there is other work, so calls may wait for a moment to be fuller.  The host
 * sets is_calling by making the call. */
enum shard_call shard_next_call(const struct shard *s, bool can_wait, uint64_t now_ms);
/* When shard_next_call() may change its mind without any event; STORE_NEVER. */
uint64_t shard_due_ms(const struct shard *s);

/* Not firm before it is known whose the shard is; whether s->holder is a member is for the caller to say. */
void shard_fill_acquire(struct shard *s, struct store_acquire *acquire, uint64_t now_ms);
void shard_fill_page(struct shard *s, struct store_in_flight *page, uint64_t now_ms);
void shard_fill_advance(struct shard *s, struct store_advance *advance, uint64_t now_ms);
void shard_fill_names(struct shard *s, struct store_names *names, uint64_t now_ms);
void shard_fill_wake(struct shard *s, struct store_wake *wake, uint64_t now_ms);
void shard_fill_schedules(struct shard *s, struct store_schedule_list *list, uint64_t now_ms);
/* What runs and is to be stopped for one of them comes back in `ret_replaced`. */
void shard_fill_fires(struct shard *s, struct store_fires *fires, uint64_t now_ms,
        struct claimed *ret_replaced[STORE_CALL_FIRES], uint32_t *ret_replaced_count);
void shard_fill_release(struct shard *s, struct store_release *release, uint64_t now_ms);

/* The replies.  `failed` is for requests whose status is negative. */
void shard_acquired(struct shard *s, const struct store_acquire *acquire, uint64_t now_ms);
void shard_paged(struct shard *s, const struct store_in_flight *page);
void shard_advanced(struct shard *s, const struct store_advance *advance, uint64_t now_ms);
void shard_named(struct shard *s, const struct store_names *names);
void shard_woken(struct shard *s, const struct store_wake *wake);
/* They were read: shard_schedules_begin() and _add() of s->schedules are called after this. */
void shard_listed(struct shard *s);
void shard_fired(struct shard *s, const struct store_fires *fires);
/* They cannot be: nothing was sent, and what was due is forgotten until the schedules are read again. */
void shard_fires_refused(struct shard *s);
void shard_released(struct shard *s);
void shard_renewed(struct shard *s, const struct store_renewal *renewal, uint64_t sent_ms, uint64_t now_ms);
void shard_failed(struct shard *s, uint64_t now_ms);

/* A task that a pool had has ended so; `pending` is taken. */
void shard_ended(struct shard *s, struct claimed *c, struct pending_outcome *pending, uint64_t now_ms);
/* A task that a pool had is to run again. */
void shard_again(struct shard *s, struct claimed *c, uint64_t now_ms);

/* A task that a pool has, has made that checkpoint: it is told with the next call. */
void shard_save(struct shard *s, struct claimed *c, const void *data, size_t size);

/* The routes have changed: those that wait are sorted anew. */
void shard_reroute(struct shard *s, uint64_t now_ms);

/* That pool takes no tasks any more: those that wait for it go back to the store, so that they do not fill the window.
 */
void shard_return_pool(struct shard *s, uint32_t pool, uint64_t now_ms);

/* A pool has opened or shut: keys that wait for it in the store are to be woken, or no more. */
void shard_look_at_names(struct shard *s);
/* The pool wants one task, to see whether it can take more.  False if no key of the shard waits for it. */
bool shard_probe(struct shard *s, uint32_t pool);

/* A control that is about tasks which wait here, or about a key. */
void shard_obey(struct shard *s, const struct store_control *control, uint64_t now_ms);

/* The next task of that lane for that pool, counted as running; NULL if none may start.  One that is TRUST_DIED_ALONE
 * is to be ended (retry_died_alone), not run.  One that a host has died with is told to the store before it is handed
 * out. */
struct claimed *shard_next(struct shard *s, uint32_t pool, enum lane lane, uint64_t now_ms);
/* How many tasks of its key, itself included, may run in the call of a task that was handed out just now, if that takes
 * `max` of them. */
uint32_t shard_run_max(const struct claimed *head, uint32_t max);
/* The task that runs in the same call as `before`, which was handed out just now, right behind it; counted as running.
 * NULL: none may. */
struct claimed *shard_follow(struct shard *s, const struct claimed *before, uint64_t now_ms);
/* A task that follows another in a call has an answer, but the one before it is not done: that answer does not count,
 * and the task counts as not started.  False: it does count. */
bool shard_refuse_answer(struct shard *s, struct claimed *c, uint64_t now_ms);
/* The same, of those that may be lent (window_may_lend()). */
struct claimed *shard_next_to_lend(struct shard *s, uint32_t pool, enum lane lane, uint64_t before_ms, uint64_t now_ms);
/* Tasks of that lane that wait for shares of limits: those that may go on are ready again. */
void shard_look_at_limits(struct shard *s, unsigned lane, uint64_t now_ms);
/* A suspect's start is told to the store first.  Begins that for the pool's next suspect; once it is told, shard_next()
 * hands it out.  Only while the pool has no other marked suspect, on whatever shard (window_marks()): if the host dies,
 * the one that is marked did it.  False: there is none. */
bool shard_mark_next(struct shard *s, uint32_t pool, uint64_t now_ms);

/* Something has happened to it that may change what it wants.  All that is declared here says so itself. */
static inline void shard_stir(struct shard *s)
{
        if (s->changed)
                shard_set_add(s->changed, s->number);
}

/* What ended keeps tasks of its keys from starting, and nothing else runs here: all stands until that is told. */
bool shard_is_blocked(const struct shard *s);

/* Tasks whose end the call under way tells of. */
static inline uint32_t shard_telling_count(const struct shard *s)
{
        return s->telling ? s->telling->tasks_count : 0;
}

/* Some lane has no room for another task. */
bool shard_is_full(const struct shard *s);

/* Nothing here runs or waits to be told. */
bool shard_is_quiet(const struct shard *s);

#endif
