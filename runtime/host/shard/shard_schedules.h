/* shard_schedules.h: the schedules of a shard, as its owner knows them: which fires next, and what it fires.
 *
 * They stand in the store (store/schedules.h); the owner reads them when it acquires the shard, if one is to fire, and
 * when it is told that they have changed.  A time that has come is a call of its own, which the store executes once.
 * Times go by the wall clock.  Without I/O: the shard asks what to fire. */
#ifndef QUIVER_HOST_SHARD_SHARD_SCHEDULES_H
#define QUIVER_HOST_SHARD_SHARD_SCHEDULES_H

#include "host/shard/window.h"
#include "schedule/schedule.h"
#include "store/schedules.h"

struct shard_schedule {
        char name[STORE_SCHEDULE_NAME_MAX + 1];
        uint64_t version, next_ms, last_seq, fired, skipped;
        struct schedule *definition;
};

/* Zero-initialised has none. */
struct shard_schedules {
        struct shard_schedule *list; /* those that may fire */
        uint32_t count;
        bool must_list;   /* The store has some that are not known here, or others. */
        uint64_t next_ms; /* the first of them, by the wall clock; STORE_NEVER: none fires */

        /* Of the call under way: it may have to be made again as it was. */
        struct store_fire fires[STORE_CALL_FIRES];
        uint32_t fires_count;
        uint64_t fires_at_ms; /* what their tasks say that they were submitted at */
};

void shard_schedules_clear(struct shard_schedules *s);
/* A shard was granted, one of whose schedules fires then. */
void shard_schedules_acquired(struct shard_schedules *s, uint64_t next_ms);

/* They were read.  Forgets those before. */
void shard_schedules_begin(struct shard_schedules *s);
/* Takes the definition. */
void shard_schedules_add(struct shard_schedules *s, const struct store_schedule *stored, struct schedule *definition);

/* Fills in the fires of those whose time has come.  `ret_replaced` gets what runs and is to be stopped for one of them;
 * at most one per fire. */
void shard_schedules_fill(struct shard_schedules *s, const struct window *window, uint64_t wall_ms,
        struct claimed *ret_replaced[STORE_CALL_FIRES], uint32_t *ret_replaced_count);
/* Those that the call was about are forgotten. */
void shard_schedules_drop_due(struct shard_schedules *s);
/* What became of them. */
void shard_schedules_fired(struct shard_schedules *s);

#endif
