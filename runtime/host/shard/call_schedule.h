/* call_schedule.h: which of a host's shards are asked what they want, and whose turn it is to call the store.
 *
 * Plain data, no I/O.  A shard says by itself that something happened to it (shard.h, `changed`), so a turn of the loop
 * costs as much as there is to do, however many shards there are.
 *
 * A call costs the store about as much as twenty tasks in it do, and all calls that are under way at once stand in line
 * there.  So there are only as many as keep the store busy, more where the way there is long; the other shards wait for
 * their turn here, where what ends and what comes in meanwhile makes their calls fuller: the more shards have work, the
 * longer each of them gathers, and nobody waits while there is little to do.  For the same reason shards
 * where tasks keep coming space their claims only as far as the store's load asks for it: that is the share of the time
 * in which some wait for their turn, to which all counts that makes the store slow.  A call without an answer
 * holds its place for a moment only: one server of several may be away. */
#ifndef QUIVER_HOST_SHARD_CALL_SCHEDULE_H
#define QUIVER_HOST_SHARD_CALL_SCHEDULE_H

#include "host/shard/shard.h"
#include "host/shard/shard_set.h"

struct call_schedule {
        struct shard **shards; /* borrowed */
        uint64_t *due_ms;      /* of each shard: when to ask it though nothing has happened; STORE_NEVER */
        uint32_t count;
        struct shard_telling *spare;         /* for the shards' next advances (shard_telling.h); owned */
        uint32_t calls_max;                  /* advances under way at once, to a store next door; 0: any number */
        struct shard_set changed;            /* something has happened to them */
        struct shard_set to_ask;             /* they are about to be asked what they want */
        struct shard_set is_busy;            /* something runs there, or tasks keep coming */
        struct shard_set is_calling;         /* an advance is under way */
        struct shard_set waiting;            /* for their turn to make one */
        struct shard_set blocked;            /* the same, and nothing goes on there until it is made */
        uint32_t next_waiting, next_blocked; /* whose turn it is */
        uint32_t blocked_in_a_row;           /* calls in a row that were those of blocked shards */
        bool can_wait;                       /* there is other work */
        uint64_t trip_ms;                    /* the shortest call of late */
        uint64_t trip_before_ms;             /* the shortest call of the time before that */
        uint64_t trip_since_ms;              /* since when trip_ms is counted */
        uint64_t next_due_ms;                /* none is due earlier */
        uint64_t pace_max_ms;                /* so long shards may wait from one claim to the next */
        uint64_t looked_ms;                  /* when call_schedule_look() was called last */
        uint64_t load_since_ms;              /* since when waiting_ms is counted */
        uint64_t waiting_ms;                 /* so long shards waited for their turn */
};

/* Shards 0 to count-1 are told with call_schedule_add(). */
void call_schedule_init(struct call_schedule *t, uint32_t count, uint32_t calls_max);
void call_schedule_free(struct call_schedule *t);
void call_schedule_add(struct call_schedule *t, struct shard *shard);

/* In a turn of the loop, once tasks are handed out: calls are to be made. */
void call_schedule_look(struct call_schedule *t, uint64_t now_ms);
/* The next shard that is to call the store, and what; NULL: no more in this turn.  The call has to be made. */
struct shard *call_schedule_next(struct call_schedule *t, uint64_t now_ms, enum shard_call *ret_call);
/* Something runs, or tasks keep coming. */
bool call_schedule_is_busy(const struct call_schedule *t);
/* When to look again though nothing happens; STORE_NEVER. */
uint64_t call_schedule_due_ms(const struct call_schedule *t);

#endif
