#include "host/report/backlog.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/numbers.h"

/* Two of our shards with at most this many others between them are counted in one request. */
#define GAP_MAX 3u

static void ask_from(struct backlog *b, uint32_t first);

static void tell_all(struct backlog *b)
{
        struct waiter *waiters = b->waiters;
        b->waiters = NULL;
        (void)uv_timer_stop(&b->timer);
        while (waiters) {
                struct waiter *waiter = waiters;
                DL_DELETE(waiters, waiter);
                waiter->done(waiter);
        }
}

static void on_timer(uv_timer_t *timer)
{
        tell_all(timer->data);
}

/* --- looking --- */

static bool is_ours(const struct shard *s, uint64_t now_ms)
{
        return shard_is_held(s) && now_ms < s->until_ms;
}

static bool is_wanted(const struct backlog *b, uint32_t shard, uint64_t now_ms)
{
        return b->is_leading || is_ours(&b->shards->list[shard].shard, now_ms);
}

static void finish(struct backlog *b, bool is_answered)
{
        uint64_t now_ms = clock_boot_ms();
        uint64_t took_ms = now_ms - b->began_ms;
        b->is_asking = false;
        if (is_answered)
                b->answered_ms = now_ms;
        b->fresh_ms = is_answered ? now_ms + max_u64(BACKLOG_FRESH_MS, 9 * took_ms) : 0;
        if (b->waiters)
                (void)uv_timer_start(&b->timer, on_timer, 0, 0);
}

/* A member that is gone may still hold the lease until it expires; nobody else reports such a shard. */
static bool is_unowned(const struct backlog *b, const struct store_counts *c)
{
        if (!c->is_held || !c->left_ms)
                return true;
        return !assignment_lists(&b->membership->assignment, c->holder);
}

static void on_counted(struct store_request *request)
{
        struct backlog *b = container_of(request, struct backlog, ask.request);
        if (request->status < 0) {
                finish(b, false);
                return;
        }
        uint64_t now_ms = clock_boot_ms();
        for (uint32_t i = 0; i < b->ask.counted && i < b->ask.shards; i++) {
                uint32_t shard = b->ask.first_shard + i;
                if (!is_wanted(b, shard, now_ms))
                        continue;
                b->list[shard] = (struct backlog_shard){ .counts = b->answer[i],
                        .counted_ms = now_ms,
                        .lease_number = b->shards->list[shard].shard.lease_number,
                        .is_unowned = b->is_leading && is_unowned(b, &b->answer[i]) };
        }
        ask_from(b, b->ask.first_shard + b->ask.shards);
}

/* Asks for the next range of wanted shards, or ends the look if there is none. */
static void ask_from(struct backlog *b, uint32_t first)
{
        uint64_t now_ms = clock_boot_ms();
        while (first < b->count && !is_wanted(b, first, now_ms))
                first++;
        if (first >= b->count) {
                finish(b, true);
                return;
        }
        uint32_t last = first;
        for (uint32_t i = first + 1; i < b->count && i <= last + GAP_MAX + 1; i++)
                if (is_wanted(b, i, now_ms))
                        last = i;
        b->ask = (struct store_count){
                .request.done = on_counted, .first_shard = first, .shards = last - first + 1, .counts = b->answer
        };
        store_count(b->shards->store, &b->ask);
}

static void look(struct backlog *b)
{
        if (!b->list) {
                b->count = b->shards->count;
                b->list = memory_zero(b->count, sizeof(*b->list));
                b->answer = memory_zero(b->count, sizeof(*b->answer));
        }
        b->is_asking = true;
        b->is_leading = leader_is_leading(&b->membership->leader);
        b->began_ms = clock_boot_ms();
        ask_from(b, 0);
}

void backlog_want(struct backlog *b, struct waiter *waiter)
{
        bool is_fresh = clock_boot_ms() < b->fresh_ms || !b->shards->store;
        DL_APPEND(b->waiters, waiter);
        if (!b->waiters->next)
                (void)uv_timer_start(&b->timer, on_timer, is_fresh && !b->is_asking ? 0 : BACKLOG_PATIENCE_MS, 0);
        if (!is_fresh && !b->is_asking)
                look(b);
}

/* --- adding up --- */

struct backlog_sum backlog_sum(const struct backlog *b, uint64_t now_ms)
{
        struct backlog_sum sum = { .is_recent = b->answered_ms && now_ms < b->answered_ms + BACKLOG_OLD_MS };
        bool is_leading = leader_is_leading(&b->membership->leader);
        for (uint32_t i = 0; i < b->shards->count; i++) {
                const struct shard *s = &b->shards->list[i].shard;
                const struct backlog_shard *found = i < b->count ? &b->list[i] : NULL;
                bool is_recent = found && found->counted_ms && now_ms < found->counted_ms + BACKLOG_OLD_MS;
                bool is_owned = is_ours(s, now_ms);
                bool is_left = !is_owned && is_leading && is_recent && found->is_unowned && !shard_is_held(s);
                sum.owned += is_owned;
                sum.unowned += is_left;
                if (is_left)
                        sum.unowned_in_flight += found->counts.in_flight;
                if (is_left || (is_owned && is_recent && found->lease_number == s->lease_number))
                        store_counts_add(&sum.counts, &found->counts);
        }
        return sum;
}

/* --- start and end --- */

void backlog_init(struct backlog *b, uv_loop_t *loop)
{
        (void)uv_timer_init(loop, &b->timer);
        b->timer.data = b;
}

void backlog_close(struct backlog *b)
{
        tell_all(b);
        uv_close((uv_handle_t *)&b->timer, NULL);
}

void backlog_free(struct backlog *b)
{
        free(b->list);
        free(b->answer);
}
