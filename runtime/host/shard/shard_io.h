/* shard_io.h: makes the store calls that a host's shards want, and hands the replies back.
 *
 * Runs on the loop's thread.  A shard has one call under way at most; one request renews the leases of all shards. */
#ifndef QUIVER_HOST_SHARD_SHARD_IO_H
#define QUIVER_HOST_SHARD_SHARD_IO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/blocks.h"
#include "base/histogram.h"
#include "host/handler/dispatch.h"
#include "host/membership/assign.h"
#include "host/shard/call_schedule.h"
#include "host/shard/shard.h"
#include "ring/leases.h"
#include "store/store.h"

struct shards;

/* A shard and the one call that it may have under way.  Forwarding the shard's outbox is not part of the shard's
 * protocol: it is idempotent, and runs beside the call. */
struct shard_io {
        struct shards *all;
        struct shard shard;
        struct store_forward forward;
        bool is_forwarding;
        uint64_t sent_ns; /* when the call under way was made */
        union {
                struct store_request request;
                struct store_acquire acquire;
                struct store_in_flight page;
                struct store_names names;
                struct store_schedule_list schedules;
                struct store_fires fires;
                struct store_advance advance;
                struct store_wake wake;
                struct store_release release;
        };
};

/* Callbacks to the host. */
struct shards_events {
        uint64_t (*now_ms)(void *self);
        /* Stop a task that a pool has: its lease is lost, or a person cancelled it.  The pool settles it in any case,
         * at once if it had not started. */
        void (*stop)(void *self, struct claimed *claimed);
        /* Take a task back from its pool because we leave its shard: the pool settles it at once unless it has
         * started. */
        void (*recall)(void *self, struct claimed *claimed);
        /* A worker's report about a task of that shard arrived through another host. */
        void (*reported)(void *self, struct shard *shard, const struct store_control *control);
        /* A shard's call failed and the one before had not.  It will be repeated. */
        void (*failed)(void *self, const struct shard *shard, int status, const char *text);
        /* `count` tasks were merged into that one. */
        void (*merged)(void *self, const struct claimed *into, uint32_t count);
        /* The store's epoch is above the assigned one: coordination has to learn of it. */
        void (*stale)(void *self);
        /* The renewal of all leases was answered, or failed (`failure`).  Called before the shards get the answer. */
        void (*renewed)(void *self, const char *failure, uint64_t desired_version);
};

/* Counts since the host started. */
struct shards_counts {
        uint64_t acquired;
        uint64_t takeovers; /* of these, from another host that had not released the shard */
        uint64_t released;
        uint64_t failed; /* calls without an answer or with an error */
        struct histogram calls[SHARD_CALLS];
        struct histogram renewals;
};

/* The shards of one host. */
struct shards {
        struct shard_io *list;
        uint32_t count;
        struct store *store;
        struct call_schedule schedule;
        struct blocks blocks; /* of what the windows hold */
        struct dispatch *dispatch;
        struct done_tasks *done;             /* where done tasks are remembered; may be NULL */
        struct leases *leases;               /* the lease page that runners read */
        const struct assignment *assignment; /* who should own which shard */
        const uint8_t *nonce;                /* our nonce */
        const char *host;                    /* our host name, recorded in leases; may be NULL */
        const struct shard_limits *limits;
        const struct shards_events *events;
        void *self; /* passed to events */

        struct shards_counts counts;
        bool is_standing_by; /* we own nothing, whatever the assignment says */
        struct store_renew renew;
        struct store_renewal *renewals;
        uint64_t renew_sent_ms, renew_sent_ns;
        int64_t wall_ahead_ms; /* wall clock minus boot clock: schedules go by it */
        bool is_renewing;
        uint64_t sampled_ms; /* when the loads were sampled last */
};

/* Makes as many shards as the dispatch has.  The caller has set all fields but list, count, schedule, blocks and the
 * renewal's. */
void shards_init(struct shards *all, uint32_t calls_max, uint32_t calls_group, uint32_t per_key);
/* Accepts a zeroed struct that was never initialised. */
void shards_free(struct shards *all);

/* The assignment was read: acquires the shards that it gives to us, and leaves the others.  `is_standing_by`: the
 * tree's documents are from a newer Quiver and `assignment` is outdated, so we leave all shards until the next call. */
void shards_assign(struct shards *all, bool is_standing_by, uint64_t now_ms);
/* Tries again to acquire shards that are assigned to us but not held, unless the store is known to have a higher
 * epoch. */
void shards_reconcile(struct shards *all);
/* The host stops: leaves every shard once its claimed tasks are settled. */
void shards_leave(struct shards *all, uint64_t now_ms);
/* Number of shards that are not left yet. */
uint32_t shards_count_held(const struct shards *all);
/* The doorbell rang for all shards. */
void shards_rang(struct shards *all);
/* Stops the tasks that have lost their share of a limit.  Called once a turn. */
void shards_look_at_shares(struct shards *all);

/* Compares the wall clock with the boot clock, so that schedules notice when it is set.  Called at least once a
 * turn. */
void shards_see_clock(struct shards *all, uint64_t wall_ms, uint64_t now_ms);

/* Makes the calls that are due. */
void shards_call(struct shards *all, uint64_t now_ms);
/* Renews every lease that is held, unless the last renewal is still unanswered. */
void shards_renew(struct shards *all, uint64_t now_ms);

/* Samples every shard's load, if the last sample is old enough.  False: it is not, and *ret_load is unchanged. */
bool shards_sample_load(struct shards *all, uint64_t now_ms, struct load_summary *ret_load);

#endif
