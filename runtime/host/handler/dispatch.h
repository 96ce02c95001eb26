/* dispatch.h: who gets the next seat.
 *
 * A machine without I/O over all shards and pools of a host.  In each turn of the loop every pool is asked for in turn:
 * dispatch_begin() says how the pool is, dispatch_next() names its next task until there is none or the pool is full.
 *
 *         the highest lane first, on whatever shard; of each lane
 *         urgent shards first, with a share of the room; then all shards that have something, round and round
 *
 * Of 64 tasks that a lane gives while a lower one has something, one is the lower one's: no lane waits for ever.
 *
 * A suspect starts once its start is recorded, one of a pool's at a time over all shards: if this host dies, it is
 * known which one did it.  A paused pool starts nothing.  Tasks that no pool takes wait in the store. */
#ifndef QUIVER_HOST_HANDLER_DISPATCH_H
#define QUIVER_HOST_HANDLER_DISPATCH_H

#include "host/shard/routes.h"
#include "host/shard/shard.h"
#include "host/shard/shard_set.h"

enum dispatch_state {
        DISPATCH_OPEN,
        DISPATCH_DOWN, /* The pool takes no tasks for now, or one at most, to see whether it can again. */
        DISPATCH_GONE, /* Its handler has no generation that serves. */
};

/* A pool, and how far it has come in the turn of the loop that is under way. */
struct dispatch_pool {
        uint32_t next_shard[LANES]; /* whose turn it is to feed it */
        uint32_t given[LANES];      /* tasks since a lower lane had a turn */
        bool was_urgent;            /* its latest task was an urgent shard's */
        bool is_paused;             /* a person wants it to start nothing */
        bool may_be_stored;         /* tasks for it may wait in the store (dispatch_has_stored()) */

        bool is_over;                  /* it gets nothing in this turn */
        bool is_dry[LANES];            /* no shard has anything of that lane for it */
        unsigned urgent_lane;          /* the lane for which urgent shards are asked */
        struct dispatch_shard *urgent; /* the next of these to feed it */
        uint32_t urgent_left;          /* tasks that they may still give */
        uint32_t burst_max;            /* tasks that a shard gives before it is another's turn; 0: not known yet */
        struct {
                uint32_t shard; /* that is asked now; SHARD_SET_NONE */
                enum lane lane; /* that it gives tasks of */
                enum lane turn; /* whose turn that is: the same, or a higher one */
                uint32_t left;  /* tasks that it may still give */
                bool is_urgent;
        } burst;
};

struct dispatch_shard {
        bool is_urgent;
        struct dispatch_shard *prev, *next; /* among those that are, in the order in which they became it */
};

struct dispatch {
        struct shard **shards;           /* by number */
        struct dispatch_shard *by_shard; /* what is only known here of each */
        uint32_t shards_count;
        struct dispatch_shard *urgent;
        struct shard_set ready[LANES]; /* may have one to start: those that are found to have none are taken out */
        struct shard_set suspects;     /* may have a suspect, or a marked one: the same */
        uint32_t next_limited;         /* whose tasks are looked at first, of those that wait for shares of limits */
        struct dispatch_pool *pools;
        struct routes routes; /* has as many pools */
};

/* Shards 0 to shards_count - 1 are added, in order, before the first turn. */
void dispatch_init(struct dispatch *d, uint32_t shards_count);
void dispatch_free(struct dispatch *d);
void dispatch_add_shard(struct dispatch *d, struct shard *shard);
/* One more pool, which serves nothing yet; its number. */
uint32_t dispatch_add_pool(struct dispatch *d);
/* A pool whose handler is gone is another handler's from now on. */
void dispatch_clear_pool(struct dispatch *d, uint32_t pool);

/* So many tasks of a key it wants at hand; 0: as many as others. */
void dispatch_set_per_key(struct dispatch *d, uint32_t pool, uint32_t per_key);
/* The pool serves tasks of these names from now on; NULL: none.  Those that wait are sorted anew. */
void dispatch_serve(struct dispatch *d, uint32_t pool, const struct strings *names, uint64_t now_ms);
void dispatch_pause(struct dispatch *d, uint32_t pool, bool is_paused, uint64_t now_ms);
/* The pool is down and wants one task to see whether it can take more, and none is here: the key of one that waits in
 * the store is woken. */
void dispatch_probe(struct dispatch *d, uint32_t pool);

/* A call has told of so many outcomes.  Few of them mean that a key waited for it, so that the shard's next tasks start
 * before others'. */
void dispatch_told(struct dispatch *d, uint32_t shard, uint32_t outcomes);
/* Something has happened to these shards: they may have something to start. */
void dispatch_look(struct dispatch *d, const struct shard_set *changed);

/* Whether a task of that pool waits, for a seat or for shares of limits. */
bool dispatch_has_waiting(const struct dispatch *d, uint32_t pool);
/* Whether tasks of that pool wait in the store, because it took none when they were claimed; of shards that are ours.
 * Cheap if nothing has changed since it was found that there are none. */
bool dispatch_has_stored(struct dispatch *d, uint32_t pool);
/* Looks at the tasks that wait for shares of limits, if something may have changed for them.  To be called before the
 * pools are fed. */
void dispatch_look_at_limits(struct dispatch *d, uint64_t now_ms);

/* A turn of the loop begins for that pool, which has room for so many tasks of each lane; what waits there in a lower
 * one takes no room from a higher one. */
void dispatch_begin(
        struct dispatch *d, uint32_t pool, enum dispatch_state state, const uint32_t room[LANES], uint64_t now_ms);
/* The next task to start there, counted as running; NULL: none, or no room.  Its pool_task.lane is the one whose turn
 * it is.  One that is TRUST_DIED_ALONE is not to be started, but ended (retry_died_alone()). */
struct claimed *dispatch_next(
        struct dispatch *d, uint32_t pool, const uint32_t room[LANES], uint64_t now_ms, struct shard **ret_shard);
/* The task that starts in the same call as `before`, right behind it: shard_follow().  Whatever the room is. */
struct claimed *dispatch_follow(
        struct dispatch *d, uint32_t pool, struct shard *shard, const struct claimed *before, uint64_t now_ms);

/* The next task of that pool that may run on another host's seat and has been here since `before_ms`, counted as
 * running: of the highest lane, from the shards in turn; NULL: none, or the pool is paused. */
struct claimed *dispatch_next_to_lend(
        struct dispatch *d, uint32_t pool, uint64_t before_ms, uint64_t now_ms, struct shard **ret_shard);
/* How many there are in the `lanes` highest lanes, at most `max`. */
uint32_t dispatch_count_to_lend(
        const struct dispatch *d, uint32_t pool, unsigned lanes, uint64_t before_ms, uint32_t max);

#endif
