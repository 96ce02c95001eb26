/* limit.h: which tasks may start under the app's limits, and what to ask the limits' homes for.
 *
 * A machine without I/O.  A handler names limits (`limited_by`); a limit has a bucket for each value of what it is
 * `by`. A host holds shares of buckets (store/limits.h) with a local deadline, and a task starts only if each of its
 * buckets has one to spare: all are taken, or none.  What cannot start waits in its window, in a line of its own; what
 * could not start soon, or would fill the window, goes back to the store and waits there for the name
 * `limit:NAME/VALUE`.
 *
 * In a pass, all tasks that wait in windows are looked at: those for which there are shares go on, the others are
 * counted as demand.  A task is demand on the first bucket that it lacks, concurrencies before rates, and only if its
 * handler has a free seat; shares that nothing can use go back.  So no two hosts wait for each other's.
 *
 * A rate.  A token is used at once or within lag_ms, so starts lag behind grants by at most that.  The definition that
 * the home gets has a burst that is less by what is granted in that time, or a longer period: the starts themselves
 * never exceed rate × t / per + burst in any time t.
 *
 * Concurrency.  A share lasts longer than the lease of the shard whose task it is for.  Should it end all the same
 * while the task runs, since it could not be renewed, the task is told to stop and killed after its handler's grace:
 * its home gives the share to nobody before that (limits_has_lost()).  So only the call of a host that stands still
 * runs on.  A task that is taken over while it runs is counted at once, whether or not there is a share for it.  A
 * share that is being given back is not used while the call is under way, nor if it fails: it may have been done. Where
 * others wait and have none, a holder gives one up each second. */
#ifndef QUIVER_HOST_LIMIT_LIMIT_H
#define QUIVER_HOST_LIMIT_LIMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "config/config.h"
#include "config/names.h"
#include "store/limits.h"
#include "store/names.h"

/* What a bucket has of its value, and what is wanted of it. */
struct limit_bucket {
        UT_hash_handle hh; /* of its limit, by value */
        struct limit *of;
        struct limit_bucket *prev, *next; /* among all of a host */
        uint64_t granted;                 /* tokens that are not used; shares in all */
        uint64_t until_ms;                /* what was granted lasts until then */
        uint64_t in_use;                  /* concurrency: tasks that run with a share */
        uint64_t stopping;                /* concurrency: of these, were told to stop since it is lost */
        uint64_t adopted;                 /* concurrency: of these, ran when we got them, and its home has not heard */
        uint64_t adopted_asked;           /* concurrency, is_asking: so many of these it hears of */
        uint64_t passed_on;               /* concurrency: of these, run on at workers, for the next owners */
        uint64_t pass_on_ms;              /* passed_on: the next owners have taken them up by then */
        uint64_t kept;                    /* concurrency, is_asking: so many are not given back */
        uint64_t ask_ms;                  /* more is asked for then, and not before */
        uint64_t renew_ms;                /* concurrency: the shares are renewed then */
        uint64_t pace_ms;                 /* concurrency: so long it was waited for the last time that there was none */
        uint64_t since_ms;                /* concurrency: it has had some since then, or gave one up */
        uint64_t spare_ms;                /* concurrency: since then there are more than are used; 0: there are not */
        uint64_t closed_ms;               /* it is closed until then */
        uint64_t tell_ms;                 /* its home is not told so before then */
        bool is_close_told;               /* its home knows that, or said so */
        bool is_asking;                   /* a call that is under way has it */
        bool has_waiting;                 /* another holder has none and wants some */
        bool is_stored;                   /* keys of some shard wait for it in the store */
        bool is_over;                     /* the app holds more than there is: what ends here is not replaced */
        bool is_giving_up;                /* one share less is to be had */
        int64_t wake_left;                /* is_stored: so many more of its keys may be woken */
        uint64_t lately;                  /* concurrency: starts in LIMIT_LATELY_MS, as of measured_ms */
        uint64_t started;                 /* concurrency: since measured_ms */
        uint64_t measured_ms;
        uint64_t pass;     /* what follows was counted in that pass */
        uint32_t waiting;  /* tasks in windows that lack it */
        uint32_t lacking;  /* of these, could start at once */
        uint32_t backed;   /* tasks that have it, and lack another that may come soon */
        uint32_t promised; /* tasks that were told that they may start */
        size_t size;
        char value[];
};

enum limit_by { LIMIT_BY_NOTHING, LIMIT_BY_KEY, LIMIT_BY_HEADER };

struct limit_counts {
        uint64_t started; /* tasks that started under it */
        uint64_t granted; /* tokens or shares that its home gave */
        uint64_t lost;    /* tokens that were not used in time */
        uint64_t refused; /* asked for, and nothing was granted */
        uint64_t closed;  /* times that a handler here closed one of its buckets */
        uint64_t calls;   /* that is the number of the last one, too */
};

/* How much is allowed, as people say it. */
struct limit_amount {
        uint64_t version;
        uint64_t rate; /* 0: it is a concurrency */
        uint64_t per_ms;
        uint64_t burst;
        uint64_t concurrency;
};

struct limit {
        char name[NAME_HANDLER_MAX + 1];
        bool is_defined;            /* the configuration has it */
        struct limit_amount amount; /* what is in force here */
        struct store_limit store;   /* what its home is told */
        uint64_t lag_ms;            /* a rate: how long tokens last */
        enum limit_by by;
        char header[NAME_HANDLER_MAX + 1]; /* LIMIT_BY_HEADER */
        struct limit_bucket *buckets;      /* by value */
        bool is_asking;
        uint64_t sent_ms;    /* is_asking: since */
        uint32_t pools;      /* that are under it */
        uint64_t measured;   /* counts.started, when started_rate was measured */
        double started_rate; /* per second */
        struct limit_counts counts;
};

/* A pool and its limits: concurrencies first, each by name. */
struct limits_pool {
        struct limit *list[LIMITS_OF_HANDLER];
        uint32_t count;
        uint32_t room; /* seats that are free */
        uint64_t pass;
        uint32_t counted; /* in that pass: tasks that are demand */
};

/* The shares that a task runs with.  Zero-initialised: none. */
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
        uint64_t due_ms;    /* when the next one is due, unless something happens */
        uint64_t looked_ms; /* when the names that keys wait for were last looked at */
        bool is_stirred;    /* something has happened that may let a task start */
        bool has_lost;      /* tasks run whose shares have ended */
        bool must_look;     /* the names that keys wait for are to be looked at, whatever is known of their buckets */
        bool is_leaving;    /* nothing more is to start: shares are given back at once */
        uint64_t ttl_ms;    /* of a shard's lease */
};

void limits_free(struct limits *l);
/* The limit of that name, a new one without a definition if there is none; or NULL. */
struct limit *limits_ensure(struct limits *l, const char *name);
struct limit *limits_find(const struct limits *l, const char *name);

/* What the home of a limit is told so that starts never exceed the amount, and how long a token may be used; grace_ms
 * is a concurrency's. */
uint64_t limit_plan(const struct limit_amount *amount, uint64_t grace_ms, uint64_t values_max, struct store_limit *ret);
/* The limit is defined so from now on. */
void limit_define(
        struct limit *limit, const struct limit_amount *amount, const char *by, uint64_t grace_ms, uint64_t values_max);

/* The pool's tasks are under these limits from now on. */
void limits_serve(struct limits *l, uint32_t pool, const struct strings *names);
void limits_set_room(struct limits *l, uint32_t pool, uint32_t room);
static inline bool limits_has(const struct limits *l, uint32_t pool)
{
        return l && pool < l->pools_count && l->pools[pool].count;
}

/* --- tasks --- */

enum limit_verdict {
        LIMIT_START,
        LIMIT_WAIT, /* in the window */
        LIMIT_AWAY, /* in the store */
};

struct limit_task {
        uint32_t pool;
        struct span key, headers;
        uint64_t until_ms; /* the lease of its shard */
        bool is_to_go;     /* there is no room for it to wait in its window */
};

/* It is about to start.  LIMIT_START: the shares are taken, limits_end() gives them back.  LIMIT_AWAY: it is to wait
 * for `ret_name`. */
enum limit_verdict limits_start(struct limits *l, const struct limit_task *task, uint64_t now_ms,
        struct limit_hold *ret_hold, char ret_name[STORE_NAME_MAX + 1]);
/* It runs already, at a worker that another owner of its shard gave it to: it is counted, whether or not there is a
 * share for it. */
void limits_adopt(struct limits *l, const struct limit_task *task, struct limit_hold *ret_hold);
/* It runs on at a worker, and its shard has another owner now: it counts here until that one has surely adopted it. */
void limits_pass_on(struct limits *l, struct limit_hold *hold, uint64_t now_ms);
/* It runs no more. */
void limits_end(struct limits *l, struct limit_hold *hold);
/* A running task with a share that has ended is to be stopped: the home may give it to another soon.  True: its caller
 * stops it. */
bool limits_stop(struct limits *l, struct limit_hold *hold);
/* Whether there may be such tasks, since the last pass. */
static inline bool limits_has_lost(const struct limits *l)
{
        return l && l->has_lost;
}

/* Whether a pass is due, and when the next is. */
bool limits_pass_is_due(const struct limits *l, uint64_t now_ms);
void limits_pass_begin(struct limits *l);
/* A task that waits in a window: counted.  Not LIMIT_WAIT: it is to be asked about with limits_start() again. */
enum limit_verdict limits_look(struct limits *l, const struct limit_task *task, uint64_t now_ms);
/* True: the shards' names are to be looked at, since keys in the store may be woken. */
bool limits_pass_end(struct limits *l, uint64_t now_ms);
uint64_t limits_due_ms(const struct limits *l);

/* Whether keys that wait for that name are to be woken; counts a page of `keys` of them. */
bool limits_name_opens(struct limits *l, struct span name, uint32_t keys);
/* Keys were woken, and more wait for the same name: a pass soon says that the names are to be looked at. */
void limits_look_again(struct limits *l);

/* The handler of a task says that it is too much: the rates that the task is under are closed for a while, each for its
 * value; if there is none, the concurrencies.  False: it is under no limit. */
bool limits_close(struct limits *l, const struct limit_task *task, uint64_t close_ms, uint64_t now_ms);

/* --- calls --- */

/* The next call to make: a limit and what to ask for.  NULL: none now.  The values stay until limits_answered() or
 * limits_failed(). */
struct limit *limits_next_call(
        struct limits *l, uint64_t now_ms, struct store_limit_item items[STORE_LIMIT_ITEMS], uint32_t *ret_count);
uint64_t limit_lease_ms(const struct limits *l, const struct limit *limit);
void limits_answered(struct limits *l, struct limit *limit, const struct store_limit_take *take, uint64_t now_ms);
void limits_failed(struct limits *l, struct limit *limit, const struct store_limit_take *take, uint64_t now_ms);

/* What is held of a limit here, in sum. */
struct limit_sums {
        uint64_t granted, in_use, waiting, buckets, closed, stored;
};
struct limit_sums limit_sum(const struct limits *l, const struct limit *limit, uint64_t now_ms);

#endif
