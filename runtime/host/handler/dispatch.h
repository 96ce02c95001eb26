/* dispatch.h: decides which task gets the next seat.
 *
 * A machine without I/O over all shards and pools of a host.  In each turn of the loop, dispatch_begin() is called for
 * every pool, then dispatch_next() names its next task until there is none or the pool is full:
 *
 *         the highest lane first, across all shards; within a lane
 *         urgent shards first, with a share of the room; then all shards with ready tasks, round robin
 *
 * One in 64 tasks that a lane gives is a lower lane's, if there is one: no lane starves.
 *
 * A suspect starts only after its start was recorded, and a pool has at most one such start at a time over all shards:
 * if this host dies, the record names the task that killed it.  A paused pool starts nothing.  Tasks that no pool takes
 * wait in the store. */
#ifndef QUIVER_HOST_HANDLER_DISPATCH_H
#define QUIVER_HOST_HANDLER_DISPATCH_H

#include "host/shard/routes.h"
#include "host/shard/shard.h"
#include "host/shard/shard_set.h"

enum dispatch_state {
        DISPATCH_OPEN,
        DISPATCH_DOWN, /* the pool takes no tasks for now, or one at most to probe whether it can again */
        DISPATCH_GONE, /* the handler has no generation that serves */
};

/* A pool, and its progress in the current turn of the loop. */
struct dispatch_pool {
        uint32_t next_shard[LANES]; /* the shard that feeds it next */
        uint32_t given[LANES];      /* tasks given since a lower lane had a turn */
        bool was_urgent;            /* its latest task came from an urgent shard */
        bool is_paused;             /* a person paused it */
        bool may_be_stored;         /* tasks for it may wait in the store (dispatch_has_stored()) */

        bool is_over;                  /* it gets nothing more in this turn */
        bool is_dry[LANES];            /* no shard has a ready task of that lane for it */
        unsigned urgent_lane;          /* the lane for which urgent shards are asked */
        struct dispatch_shard *urgent; /* the next urgent shard to ask */
        uint32_t urgent_left;          /* tasks that urgent shards may still give */
        uint32_t burst_max;            /* tasks per turn of a shard; 0: not computed yet */
        struct {
                uint32_t shard; /* the shard that gives tasks now; SHARD_SET_NONE: none */
                enum lane lane; /* the lane of the tasks that it gives */
                enum lane turn; /* the lane whose turn it is: `lane` or a higher one */
                uint32_t left;  /* tasks that it may still give */
                bool is_urgent;
        } burst;
};

struct dispatch_shard {
        bool is_urgent;
        struct dispatch_shard *prev, *next; /* list of urgent shards, in the order in which they became urgent */
};

struct dispatch {
        struct shard **shards;           /* by number */
        struct dispatch_shard *by_shard; /* the dispatch's own state of each shard */
        uint32_t shards_count;
        struct dispatch_shard *urgent;
        struct shard_set ready[LANES]; /* shards that may have a ready task; removed when found to have none */
        struct shard_set suspects;     /* shards that may have a suspect or a marked task; likewise */
        uint32_t next_limited;         /* the shard at which the next look at limited tasks begins */
        struct dispatch_pool *pools;
        struct routes routes; /* as many pools as here */
};

/* All shards, 0 to shards_count - 1, must be added in order before the first turn. */
void dispatch_init(struct dispatch *d, uint32_t shards_count);
void dispatch_free(struct dispatch *d);
void dispatch_add_shard(struct dispatch *d, struct shard *shard);
/* Adds a pool that serves no name yet; returns its number. */
uint32_t dispatch_add_pool(struct dispatch *d);
/* The pool's handler is gone: the pool may be reused for another one. */
void dispatch_clear_pool(struct dispatch *d, uint32_t pool);

/* How many tasks of one key the pool wants in a window; 0: the default. */
void dispatch_set_per_key(struct dispatch *d, uint32_t pool, uint32_t per_key);
/* The pool serves tasks of these names from now on; NULL: none.  Claimed tasks that wait are routed again. */
void dispatch_serve(struct dispatch *d, uint32_t pool, const struct strings *names, uint64_t now_ms);
void dispatch_pause(struct dispatch *d, uint32_t pool, bool is_paused, uint64_t now_ms);
/* The pool is down and wants one task as a probe, but no window has one: wakes the key of one that waits in the
 * store. */
void dispatch_probe(struct dispatch *d, uint32_t pool);

/* A call to the store has committed this many outcomes.  If they are few, a key was blocked on it, and the shard
 * becomes urgent. */
void dispatch_told(struct dispatch *d, uint32_t shard, uint32_t outcomes);
/* These shards have changed: they may have ready tasks. */
void dispatch_look(struct dispatch *d, const struct shard_set *changed);

/* Whether a claimed task of the pool waits for a seat or for a share of a limit. */
bool dispatch_has_waiting(const struct dispatch *d, uint32_t pool);
/* Whether tasks of the pool wait in the store on our shards, because it took none when they were claimed.  Cheap if the
 * last answer was no and nothing has changed. */
bool dispatch_has_stored(struct dispatch *d, uint32_t pool);
/* Looks at the tasks that wait for shares of limits, if something may have changed for them.  Call it before the pools
 * are fed. */
void dispatch_look_at_limits(struct dispatch *d, uint64_t now_ms);

/* Begins a turn of the loop for the pool, which has `room` for so many tasks of each lane.  Tasks of a lower lane that
 * wait in the pool take no room from a higher lane. */
void dispatch_begin(
        struct dispatch *d, uint32_t pool, enum dispatch_state state, const uint32_t room[LANES], uint64_t now_ms);
/* The next task to start in the pool, counted as running; NULL: none, or no room.  Its pool_task.lane is the lane whose
 * turn it is.  A task that is TRUST_DIED_ALONE must not be started but ended (retry_died_alone()). */
struct claimed *dispatch_next(
        struct dispatch *d, uint32_t pool, const uint32_t room[LANES], uint64_t now_ms, struct shard **ret_shard);
/* The task that starts in the same call right after `before` (shard_follow()).  Ignores the room. */
struct claimed *dispatch_follow(
        struct dispatch *d, uint32_t pool, struct shard *shard, const struct claimed *before, uint64_t now_ms);

/* The next task of the pool that may run on another host's seat and was claimed before `before_ms`, counted as running:
 * of the highest lane, from the shards in turn; NULL: none, or the pool is paused. */
struct claimed *dispatch_next_to_lend(
        struct dispatch *d, uint32_t pool, uint64_t before_ms, uint64_t now_ms, struct shard **ret_shard);
/* How many such tasks the `lanes` highest lanes have, at most `max`. */
uint32_t dispatch_count_to_lend(
        const struct dispatch *d, uint32_t pool, unsigned lanes, uint64_t before_ms, uint32_t max);

#endif
