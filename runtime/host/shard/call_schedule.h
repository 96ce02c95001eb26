/* call_schedule.h: decides which of a host's shards calls the store next.
 *
 * Plain data, no I/O.  A shard adds itself to `changed` when something happens to it (shard_stir()), so the cost of a
 * turn of the loop depends on what happened and not on the number of shards.
 *
 * A call costs the store about as much as twenty tasks in it do, and calls that are under way at once queue there.  So
 * at most calls_max are under way, more if the round trip is long, fewer if they are costly (store_advance.is_costly);
 * the other shards wait here, and meanwhile their outcomes and new tasks gather, which makes their calls fuller.  The
 * more shards have work, the longer each of them gathers; with little work nobody waits.
 *
 * While few tasks are claimed, a turn of the loop makes at most calls_group calls: a store may answer calls that came
 * together only after the last of them, and until then no seat has anything to do.  With such a store fewer calls are
 * under way the more tasks are claimed in a second: those who submit wait for that last answer, too.
 *
 * Shards where tasks keep coming space their claims only as far as the store's load demands.  The load is the share of
 * time in which some shard waits for its turn, so it covers whatever makes the store slow.  A call without an answer
 * counts against calls_max for LATE_MS only: one server of several may be down. */
#ifndef QUIVER_HOST_SHARD_CALL_SCHEDULE_H
#define QUIVER_HOST_SHARD_CALL_SCHEDULE_H

#include "host/shard/shard.h"
#include "host/shard/shard_set.h"

struct call_schedule {
        struct shard **shards; /* borrowed */
        uint64_t *due_ms;      /* per shard: when to ask it even if nothing happens; STORE_NEVER */
        uint32_t count;
        struct shard_telling *spare;  /* unused buffers for the next advances (shard_telling.h); owned */
        uint32_t calls_max;           /* the most calls under way at once while round trips are short; 0: no limit */
        uint32_t calls_group;         /* the most calls of a turn while few tasks are claimed; 0: no limit */
        uint32_t turn_calls;          /* counted calls that were made in this turn */
        uint32_t *claimed;            /* per shard: tasks in its window when it was looked at last */
        uint64_t claimed_all;         /* the sum of these */
        struct shard_set changed;     /* shards that something has happened to since they were asked */
        struct shard_set to_ask;      /* shards to be asked what they want to call */
        struct shard_set is_busy;     /* shards that run tasks, or where tasks keep coming */
        struct shard_set is_calling;  /* shards with a counted call (advance or wake) under way */
        struct shard_set is_costly;   /* those of them whose last advance cost the store much */
        struct shard_set waiting;     /* shards that wait for their turn to make such a call */
        struct shard_set blocked;     /* like `waiting`, but no task of the shard can start before the call */
        struct shard_set was_blocked; /* shards that were blocked when they called last */
        uint64_t hot_until_ms;        /* until then a shard counts as hot: calls_group does not apply */
        uint32_t next_waiting, next_blocked; /* where the round robin through each set goes on */
        uint32_t blocked_in_a_row;           /* successive calls given to blocked shards */
        bool can_wait;                       /* the host has other work, so calls may wait to become fuller */
        uint64_t trip_ms;                    /* the shortest call since trip_since_ms */
        uint64_t trip_before_ms;             /* the shortest call of the period before that */
        uint64_t trip_since_ms;              /* start of trip_ms's period */
        uint64_t next_due_ms;                /* lower bound of due_ms[] */
        uint64_t pace_max_ms;                /* the longest time between two claims of a shard, by the store's load */
        uint64_t brought;                    /* work that was claimed in the load's period (shard.h) */
        uint64_t rate;                       /* work claimed in a second, lately */
        uint32_t stock_max;                  /* short tasks that a shard claims ahead, by the number of busy shards */
        uint64_t looked_ms;                  /* when call_schedule_look() was called last */
        uint64_t load_since_ms;              /* start of waiting_ms's period */
        uint64_t waiting_ms;                 /* time in which at least one shard waited for its turn */
        uint64_t bound_ms;                   /* time in which most busy shards waited for the store */
        bool is_store_busy;                  /* that was most of the last period: the store is what limits this host */
};

/* The caller adds shards 0 to count-1 with call_schedule_add(). */
void call_schedule_init(struct call_schedule *t, uint32_t count, uint32_t calls_max, uint32_t calls_group);
void call_schedule_free(struct call_schedule *t);
void call_schedule_add(struct call_schedule *t, struct shard *shard);

/* Called once per turn of the loop, after tasks were handed to the pools and before call_schedule_next(). */
void call_schedule_look(struct call_schedule *t, uint64_t now_ms);
/* The next shard to call the store, and the call; NULL: no more in this turn.  The caller must make the call. */
struct shard *call_schedule_next(struct call_schedule *t, uint64_t now_ms, enum shard_call *ret_call);
/* Whether the calls of this turn probably bring an idle host its next task at once: nothing is claimed, and calls are
 * answered within a millisecond. */
bool call_schedule_expects_task(const struct call_schedule *t);
/* Whether any shard runs a task, or has tasks coming in steadily. */
bool call_schedule_is_busy(const struct call_schedule *t);
/* When to call call_schedule_look() again even if nothing happens; STORE_NEVER. */
uint64_t call_schedule_due_ms(const struct call_schedule *t);

#endif
