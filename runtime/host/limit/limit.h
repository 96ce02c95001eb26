/* limit.h: which tasks may start under the app's limits, and what to ask the limits' homes for.
 *
 * A machine without I/O.  A handler names limits (`limited_by`); a limit has a bucket for each value of what it is
 * `by`.  A host holds shares of buckets (store/limits.h) with a local deadline, and a task starts only if each of its
 * buckets has a free one: it takes all of them or none.  A task that cannot start waits in its window, on a list of its
 * own.  A task that could not start soon, or would fill the window, is returned to the store and waits there for the
 * name `limit:NAME/VALUE`.
 *
 * A pass looks at all limited tasks that wait in windows: those with enough shares may start, the others are counted as
 * demand.  A task is demand on the first bucket that it lacks, concurrencies before rates, and only if its handler has
 * a free seat; shares that no task can use are given back.  So no two hosts wait for each other's shares.
 *
 * Rate.  A token is used at once or within lag_ms, so starts lag behind grants by at most that.  The definition sent to
 * the home has a burst that is smaller by what is granted in lag_ms, or a longer period: the starts themselves never
 * exceed rate × t / per + burst in any time t.
 *
 * Concurrency.  A share lasts longer than the lease of its task's shard.  If it ends while the task runs, because it
 * could not be renewed, the task is told to stop and killed after its handler's grace; the home gives the share to
 * nobody before that (limits_has_lost()).  So only the call of a host that stands still can run on.  A running task
 * that is taken over is counted at once, whether or not there is a share for it.  A share that is being given back is
 * not used while the call is under way, nor after it failed: the store may have done it.  While other hosts wait
 * without a share, a holder gives one up each second. */
#ifndef QUIVER_HOST_LIMIT_LIMIT_H
#define QUIVER_HOST_LIMIT_LIMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "config/config.h"
#include "config/names.h"
#include "store/limits.h"
#include "store/names.h"

/* One value of a limit: what this host holds of it, and what it wants. */
struct limit_bucket {
        UT_hash_handle hh; /* in its limit, by value */
        struct limit *of;
        struct limit_bucket *prev, *next; /* list of all buckets of a host */
        uint64_t granted;                 /* rate: unused tokens; concurrency: all shares */
        uint64_t until_ms;                /* deadline of what was granted */
        uint64_t in_use;                  /* concurrency: running tasks */
        uint64_t stopping;                /* concurrency: running tasks told to stop, their share being lost */
        uint64_t adopted;                 /* concurrency: ran when we got their shard, unknown to the home */
        uint64_t adopted_asked;           /* concurrency, while is_asking: how many of `adopted` the call reports */
        uint64_t passed_on;               /* concurrency: run on at workers under the next owner */
        uint64_t pass_on_ms;              /* passed_on: by then the next owners have adopted them */
        uint64_t kept;                    /* concurrency, while is_asking: shares that the call does not give back */
        uint64_t ask_ms;                  /* when to ask for more */
        uint64_t renew_ms;                /* concurrency: when to renew the shares */
        uint64_t pace_ms;                 /* concurrency: the last pause after the home had none */
        uint64_t since_ms;                /* concurrency: since when it has held shares, or when it last gave one up */
        uint64_t spare_ms;                /* concurrency: since when there are unused shares; 0: there are none */
        uint64_t closed_ms;               /* no starts before this time */
        uint64_t tell_ms;                 /* the home is not told of `closed_ms` before this time */
        bool is_close_told;               /* the home knows `closed_ms` */
        bool is_asking;                   /* a call about it is under way */
        bool has_waiting;                 /* another holder has no share and wants one */
        bool is_stored;                   /* keys wait for it in the store */
        bool is_over;                     /* the app holds more shares than allowed: those that end are not replaced */
        bool is_giving_up;                /* one share is being given up for another holder */
        int64_t wake_left;                /* while is_stored: how many more keys may be woken */
        uint64_t lately;                  /* concurrency: starts per LIMIT_LATELY_MS, as of measured_ms */
        uint64_t started;                 /* concurrency: starts since measured_ms */
        uint64_t measured_ms;
        uint64_t pass;     /* the pass in which the following were counted */
        uint32_t waiting;  /* tasks in windows that lack a share of it */
        uint32_t lacking;  /* of `waiting`: tasks that could start at once with one */
        uint32_t backed;   /* tasks that have a share of it and lack another that may come soon */
        uint32_t promised; /* tasks that may start in this turn */
        size_t size;
        char value[];
};

enum limit_by { LIMIT_BY_NOTHING, LIMIT_BY_KEY, LIMIT_BY_HEADER };

struct limit_counts {
        uint64_t started; /* tasks that started under it */
        uint64_t granted; /* tokens or shares that the home granted */
        uint64_t lost;    /* tokens that expired unused */
        uint64_t refused; /* calls that were granted nothing */
        uint64_t closed;  /* how often a handler here closed one of its buckets */
        uint64_t calls;   /* also the number of the last call */
};

/* An amount as people write it. */
struct limit_amount {
        uint64_t version;
        uint64_t rate; /* 0: a concurrency */
        uint64_t per_ms;
        uint64_t burst;
        uint64_t concurrency;
};

struct limit {
        char name[NAME_HANDLER_MAX + 1];
        bool is_defined;            /* the configuration defines it */
        struct limit_amount amount; /* in force here */
        struct store_limit store;   /* the definition that the home gets */
        uint64_t lag_ms;            /* rate: how long a token may be used */
        enum limit_by by;
        char header[NAME_HANDLER_MAX + 1]; /* LIMIT_BY_HEADER */
        struct limit_bucket *buckets;      /* by value */
        bool is_asking;
        uint64_t sent_ms;    /* while is_asking: since when */
        uint32_t pools;      /* number of pools under it */
        uint64_t measured;   /* counts.started when started_rate was measured */
        double started_rate; /* per second */
        struct limit_counts counts;
};

/* The limits of a pool: concurrencies first, each kind by name. */
struct limits_pool {
        struct limit *list[LIMITS_OF_HANDLER];
        uint32_t count;
        uint32_t room; /* free seats */
        uint64_t pass;
        uint32_t counted; /* tasks counted as demand in the current pass */
};

/* The shares that a running task holds.  Zero-initialised: none. */
struct limit_hold {
        struct limit_bucket *buckets[LIMITS_OF_HANDLER]; /* concurrencies */
        uint32_t count;
        bool is_stopping; /* limits_stop() */
};

/* Zero-initialised is empty. */
struct limits {
        struct limit **list;
        uint32_t count;
        struct limits_pool *pools;
        uint32_t pools_count;
        struct limit_bucket *buckets; /* of all limits */
        uint32_t buckets_count;
        uint64_t pass;
        uint64_t passed_ms; /* when the last pass ended */
        uint64_t due_ms;    /* when the next pass is due unless something happens before */
        uint64_t looked_ms; /* when the names that keys wait for were last looked at */
        bool is_stirred;    /* something has happened that may let a task start */
        bool has_lost;      /* tasks run whose shares have ended */
        bool must_look;     /* look at the names that keys wait for even if no bucket changed */
        bool is_leaving;    /* nothing more starts here: shares are given back at once */
        uint64_t ttl_ms;    /* of a shard's lease */
};

void limits_free(struct limits *l);
/* The limit of that name.  limits_ensure() makes one without a definition; limits_find() may return NULL. */
struct limit *limits_ensure(struct limits *l, const char *name);
struct limit *limits_find(const struct limits *l, const char *name);

/* The definition that the home gets so that starts never exceed the amount; returns how long a token may be used.
 * grace_ms applies to a concurrency. */
uint64_t limit_plan(const struct limit_amount *amount, uint64_t grace_ms, uint64_t values_max, struct store_limit *ret);
/* Sets or replaces the definition of the limit. */
void limit_define(
        struct limit *limit, const struct limit_amount *amount, const char *by, uint64_t grace_ms, uint64_t values_max);

/* The tasks of the pool are under these limits from now on. */
void limits_serve(struct limits *l, uint32_t pool, const struct strings *names);
void limits_set_room(struct limits *l, uint32_t pool, uint32_t room);
static inline bool limits_has(const struct limits *l, uint32_t pool)
{
        return l && pool < l->pools_count && l->pools[pool].count;
}

/* --- tasks --- */

enum limit_verdict {
        LIMIT_START,
        LIMIT_WAIT, /* wait in the window */
        LIMIT_AWAY, /* wait in the store */
};

struct limit_task {
        uint32_t pool;
        struct span key, headers;
        uint64_t until_ms; /* end of the lease of its shard */
        bool is_to_go;     /* its window has no room for it to wait */
};

/* The task is about to start.  LIMIT_START: it has taken its shares, and limits_end() gives them back.  LIMIT_AWAY: it
 * must wait in the store for the name `ret_name`. */
enum limit_verdict limits_start(struct limits *l, const struct limit_task *task, uint64_t now_ms,
        struct limit_hold *ret_hold, char ret_name[STORE_NAME_MAX + 1]);
/* The task already runs at a worker that a previous owner of its shard gave it to: counts it, whether or not there is a
 * share for it. */
void limits_adopt(struct limits *l, const struct limit_task *task, struct limit_hold *ret_hold);
/* The task runs on at a worker, but its shard has another owner now: it counts here until that owner has certainly
 * adopted it. */
void limits_pass_on(struct limits *l, struct limit_hold *hold, uint64_t now_ms);
/* The task has ended. */
void limits_end(struct limits *l, struct limit_hold *hold);
/* Whether to stop a running task because its share has ended: the home may soon give the share to another host.  The
 * caller stops it. */
bool limits_stop(struct limits *l, struct limit_hold *hold);
/* Whether the last pass found such tasks. */
static inline bool limits_has_lost(const struct limits *l)
{
        return l && l->has_lost;
}

/* Whether a pass is due; when the next one is. */
bool limits_pass_is_due(const struct limits *l, uint64_t now_ms);
void limits_pass_begin(struct limits *l);
/* Counts a task that waits in a window.  If the result is not LIMIT_WAIT, the caller tries limits_start() again. */
enum limit_verdict limits_look(struct limits *l, const struct limit_task *task, uint64_t now_ms);
/* True: look at the shards' names, because keys in the store may be woken. */
bool limits_pass_end(struct limits *l, uint64_t now_ms);
uint64_t limits_due_ms(const struct limits *l);

/* Whether to wake keys that wait for that name; a page of `keys` of them is counted as woken. */
bool limits_name_opens(struct limits *l, struct span name, uint32_t keys);
/* More keys wait for a name whose first page was woken: has the names looked at again soon. */
void limits_look_again(struct limits *l);

/* The handler answered LIMITED: closes the rates of the task, each for its value, or its concurrencies if it has no
 * rate.  False: the task is under no limit. */
bool limits_close(struct limits *l, const struct limit_task *task, uint64_t close_ms, uint64_t now_ms);

/* --- calls --- */

/* The next call to make: a limit and what to ask for.  NULL: none now.  The values stay valid until limits_answered()
 * or limits_failed(). */
struct limit *limits_next_call(
        struct limits *l, uint64_t now_ms, struct store_limit_item items[STORE_LIMIT_ITEMS], uint32_t *ret_count);
uint64_t limit_lease_ms(const struct limits *l, const struct limit *limit);
void limits_answered(struct limits *l, struct limit *limit, const struct store_limit_take *take, uint64_t now_ms);
void limits_failed(struct limits *l, struct limit *limit, const struct store_limit_take *take, uint64_t now_ms);

/* What this host holds of a limit, over all its buckets. */
struct limit_sums {
        uint64_t granted, in_use, waiting, buckets, closed, stored;
};
struct limit_sums limit_sum(const struct limits *l, const struct limit *limit, uint64_t now_ms);

#endif
