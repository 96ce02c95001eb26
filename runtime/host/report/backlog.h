/* backlog.h: what the store counts of the shards that this host reports: its own, and those that no member holds if it
 * leads.
 *
 * The store is asked only on demand, and not again while its last answer is fresh: many callers at once cost one look.
 * A look counts each shard once (store_count()), a range of neighbouring shards at a time, and takes at most a tenth of
 * the time.  Old counts are not shown. */
#ifndef QUIVER_HOST_REPORT_BACKLOG_H
#define QUIVER_HOST_REPORT_BACKLOG_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/waiter.h"
#include "host/membership/membership.h"
#include "host/shard/shard_io.h"
#include "store/admin.h"

#define BACKLOG_FRESH_MS    500u  /* how long an answer is reused */
#define BACKLOG_PATIENCE_MS 1000u /* after this long, callers get what is known */
#define BACKLOG_OLD_MS      10000u

/* A shard as the store counted it. */
struct backlog_shard {
        struct store_counts counts;
        uint64_t counted_ms;   /* boot time; 0: not counted in the last look */
        uint64_t lease_number; /* the shard's at that time; counts of another lease are not ours to report */
        bool is_unowned;       /* no member held it */
};

struct backlog {
        const struct membership *membership; /* set by the caller, like the next field */
        const struct shards *shards;

        struct backlog_shard *list; /* one per shard */
        uint32_t count;
        struct store_count ask;
        struct store_counts *answer;
        bool is_asking;
        bool is_leading; /* whether this host led when the look began */
        uint64_t began_ms;
        uint64_t answered_ms; /* end of the last look that succeeded; 0: none */
        uint64_t fresh_ms;    /* no new look is needed before this time */
        uv_timer_t timer;     /* for callers that wait */
        struct waiter *waiters;
};

/* The sums that a host exports of these shards. */
struct backlog_sum {
        struct store_counts counts; /* queued, delayed, parked, dead, results, … summed up */
        uint64_t unowned_in_flight; /* of shards that no member holds */
        uint32_t owned;             /* shards that we hold, before our own deadline */
        uint32_t unowned;           /* shards that no member holds; 0 unless we lead */
        bool is_recent;             /* the store has answered lately; otherwise the sums are unknown */
};

void backlog_init(struct backlog *b, uv_loop_t *loop);
/* Calls waiter->done() when the counts are fresh or cannot be had soon; never from inside this call. */
void backlog_want(struct backlog *b, struct waiter *waiter);
/* The sums that this host exports now.  A shard of ours counts until our own deadline of its lease. */
struct backlog_sum backlog_sum(const struct backlog *b, uint64_t now_ms);
/* Answers the callers that wait.  The loop then closes the timer, and backlog_free() may follow. */
void backlog_close(struct backlog *b);
void backlog_free(struct backlog *b);

#endif
