/* shard_schedules.h: the schedules of a shard, as its owner knows them.
 *
 * Schedules live in the store (store/schedules.h).  The owner reads them when it acquires a shard with one that will
 * fire, and when it is told that they have changed.  Each due time is a numbered call, which the store executes once.
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

/* Zero it, then call shard_schedules_clear(). */
struct shard_schedules {
        struct shard_schedule *list; /* the active schedules with a next time */
        uint32_t count;
        bool must_list;   /* the list is outdated: read it from the store */
        uint64_t next_ms; /* the earliest next time, by the wall clock; STORE_NEVER */

        /* The call under way, kept because it may have to be repeated unchanged. */
        struct store_fire fires[STORE_CALL_FIRES];
        uint32_t fires_count;
        uint64_t fires_at_ms; /* the tasks' submission time */
};

void shard_schedules_clear(struct shard_schedules *s);
/* The shard was granted; its first schedule fires at `next_ms` (STORE_NEVER: none). */
void shard_schedules_acquired(struct shard_schedules *s, uint64_t next_ms);

/* A new list was read: forgets the old one. */
void shard_schedules_begin(struct shard_schedules *s);
/* Takes ownership of `definition`. */
void shard_schedules_add(struct shard_schedules *s, const struct store_schedule *stored, struct schedule *definition);

/* Fills in `fires` for the schedules that are due.  `ret_replaced` gets the running tasks to stop, at most one per
 * fire. */
void shard_schedules_fill(struct shard_schedules *s, const struct window *window, uint64_t wall_ms,
        struct claimed *ret_replaced[STORE_CALL_FIRES], uint32_t *ret_replaced_count);
/* The schedules in `fires` no longer fire, until they are read again. */
void shard_schedules_drop_due(struct shard_schedules *s);
/* Takes over the store's answer to `fires`. */
void shard_schedules_fired(struct shard_schedules *s);

#endif
