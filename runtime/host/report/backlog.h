/* backlog.h: what the store counts of the shards that this host speaks for: its own, and, if it leads, those that no
 * member holds.
 *
 * A store is asked only when somebody wants to know, and not again while its last answer is fresh: many who ask at once
 * cost one look.  The work is one count of each shard looked at (store_count()), a range of neighbouring shards at a
 * time; looking takes at most a tenth of the time.  What becomes old is not shown. */
#ifndef QUIVER_HOST_REPORT_BACKLOG_H
#define QUIVER_HOST_REPORT_BACKLOG_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/waiter.h"
#include "host/membership/membership.h"
#include "host/shard/shard_io.h"
#include "store/admin.h"

#define BACKLOG_FRESH_MS    500u  /* an answer is as good as a new one for so long */
#define BACKLOG_PATIENCE_MS 1000u /* who waits is told after this long what there is */
#define BACKLOG_OLD_MS      10000u

/* A shard as the store counted it. */
struct backlog_shard {
        struct store_counts counts;
        uint64_t counted_ms;   /* boot time; 0: not in the last look */
        uint64_t lease_number; /* the shard's at that time: what was counted under another lease is another's to show */
        bool is_unowned;       /* no member held it */
};

struct backlog {
        const struct membership *membership; /* set by the caller, like the next */
        const struct shards *shards;

        struct backlog_shard *list; /* one per shard */
        uint32_t count;
        struct store_count ask;
        struct store_counts *answer;
        bool is_asking;
        bool is_leading; /* at the beginning of this look */
        uint64_t began_ms;
        uint64_t answered_ms; /* the end of the last look that was answered; 0: none */
        uint64_t fresh_ms;    /* until then no new look is needed */
        uv_timer_t timer;     /* of those who wait */
        struct waiter *waiters;
};

/* What a host exports of all these shards. */
struct backlog_sum {
        struct store_counts counts; /* queued, delayed, parked, dead, results, … added up */
        uint64_t unowned_in_flight; /* of shards that no member holds */
        uint32_t owned;             /* shards that we hold, before our own deadline */
        uint32_t unowned;           /* shards that no member holds; of a leader */
        bool is_recent;             /* the store has answered lately; else nothing of this is known */
};

void backlog_init(struct backlog *b, uv_loop_t *loop);
/* Calls waiter->done() once what is known is fresh, or cannot be had soon; never inside this call. */
void backlog_want(struct backlog *b, struct waiter *waiter);
/* Adds up what this host exports now.  A shard of ours counts until our own deadline of its lease. */
struct backlog_sum backlog_sum(const struct backlog *b, uint64_t now_ms);
/* Who waits is told.  Then the loop closes the timer; backlog_free() after it. */
void backlog_close(struct backlog *b);
void backlog_free(struct backlog *b);

#endif
