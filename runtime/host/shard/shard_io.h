/* shard_io.h: a host's shards and the store: makes the calls that the shards want, and hands the replies back.
 *
 * Everything is on the loop's thread.  A shard has one call under way at most; the leases of all are renewed together.
 */
#ifndef QUIVER_HOST_SHARD_SHARD_IO_H
#define QUIVER_HOST_SHARD_SHARD_IO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/histogram.h"
#include "host/handler/dispatch.h"
#include "host/membership/assign.h"
#include "host/shard/call_schedule.h"
#include "host/shard/shard.h"
#include "ring/leases.h"
#include "store/store.h"

struct shards;

/* A shard and the one call that it may have under way.  Handing over what waits in its outbox is no part of the shard's
 * protocol: it may be repeated at any time, and goes on beside it. */
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

/* What the shards need their host for. */
struct shards_events {
        uint64_t (*now_ms)(void *self);
        /* A task that a pool has is to stop: its lease is lost, or a person cancelled it.  It is settled either way,
         * at once if it had not started. */
        void (*stop)(void *self, struct claimed *claimed);
        /* A task that a pool has is wanted back, for its shard is left: settled at once, unless it has started. */
        void (*recall)(void *self, struct claimed *claimed);
        /* A worker said something about a task of that shard, through another host. */
        void (*reported)(void *self, struct shard *shard, const struct store_control *control);
        /* A shard's call failed, and the one before had not.  It is made again. */
        void (*failed)(void *self, const struct shard *shard, int status, const char *text);
        /* So many tasks were merged into that one. */
        void (*merged)(void *self, const struct claimed *into, uint32_t count);
        /* The store knows an epoch above the one that a shard was given: coordination has to hear of it. */
        void (*stale)(void *self);
        /* The renewal of all leases was answered (or not: why), before the shards hear of it. */
        void (*renewed)(void *self, const char *failure, uint64_t desired_version);
};

/* What a host's shards have done since it started. */
struct shards_counts {
        uint64_t acquired;
        uint64_t takeovers; /* of these, from an owner that neither was us nor released */
        uint64_t released;
        uint64_t failed; /* calls that the store did not answer, or could not do */
        struct histogram calls[SHARD_CALLS];
        struct histogram renewals;
};

/* The shards of one host. */
struct shards {
        struct shard_io *list;
        uint32_t count;
        struct store *store;
        struct call_schedule schedule;
        struct dispatch *dispatch;
        struct done_tasks *done;             /* what was done; NULL: nobody asks */
        struct leases *leases;               /* what runners may start */
        const struct assignment *assignment; /* who should own what */
        const uint8_t *nonce;                /* which of its owners we are */
        const char *host;                    /* our name, for the leases' records; NULL: none */
        const struct shard_limits *limits;
        const struct shards_events *events;
        void *self; /* theirs */

        struct shards_counts counts;
        bool is_standing_by; /* Nothing is ours, whatever the assignment says. */
        struct store_renew renew;
        struct store_renewal *renewals;
        uint64_t renew_sent_ms, renew_sent_ns;
        int64_t wall_ahead_ms; /* how far the wall clock is ahead of the boot clock: schedules go by it */
        bool is_renewing;
        uint64_t sampled_ms; /* when the loads were looked at last */
};

/* Makes as many shards as the dispatch has.  All but list, count, schedule and the renewal is set by the caller. */
void shards_init(struct shards *all, uint32_t calls_max, uint32_t per_key);
/* Accepts what was never initialised, but zeroed. */
void shards_free(struct shards *all);

/* The assignment was read: seeks the shards that it gives to us, and leaves the others.  `is_standing_by`: what stands
 * in the tree is from a newer Quiver, and the assignment is an older one: leaves all, until it is called again. */
void shards_assign(struct shards *all, bool is_standing_by, uint64_t now_ms);
/* A shard that should be ours and is not, though nothing is known to stand in the way, is sought again. */
void shards_reconcile(struct shards *all);
/* The host stops: leaves all, each once what it has claimed is settled. */
void shards_leave(struct shards *all, uint64_t now_ms);
/* Shards that are not left yet. */
uint32_t shards_count_held(const struct shards *all);
/* The store may have something for them. */
void shards_rang(struct shards *all);
/* Tasks whose shares of limits have ended are told to stop.  Called once a turn. */
void shards_look_at_shares(struct shards *all);

/* The wall clock was set, or may have been: schedules are looked at anew.  Called at least once a turn. */
void shards_see_clock(struct shards *all, uint64_t wall_ms, uint64_t now_ms);

/* Makes the calls that are due; the replies come back to the shards. */
void shards_call(struct shards *all, uint64_t now_ms);
/* Renews every lease that is held, unless the renewal before has got no answer yet. */
void shards_renew(struct shards *all, uint64_t now_ms);

/* Takes a sample of every shard's load, if the last one is long enough ago.  False: it is not, and *ret_load is as it
 * was.
 */
bool shards_sample_load(struct shards *all, uint64_t now_ms, struct load_summary *ret_load);

#endif
