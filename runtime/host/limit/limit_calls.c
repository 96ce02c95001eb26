/* limit_calls.c: decides what to ask the limits' homes for, and applies their answers. */
#include <errno.h>

#include "base/numbers.h"
#include "host/limit/limit_private.h"

/* Rate: pause before the next call when not enough was granted. */
#define RATE_PACE_MIN_MS UINT64_C(2)
#define RATE_PACE_MAX_MS UINT64_C(100)
/* Concurrency: pause before the next call when not enough was granted; doubled each time. */
#define SHARE_PACE_MIN_MS UINT64_C(20)
#define SHARE_PACE_MAX_MS UINT64_C(200)
#define RENEW_MAX_MS      UINT64_C(1000)
/* While others wait without a share, a holder gives one up after SLICE_MS, and does not ask for another within
 * GAVE_UP_MS. */
#define SLICE_MS        UINT64_C(1000)
#define GAVE_UP_MS      UINT64_C(250)
#define FAILED_MS       UINT64_C(100)
#define SWITCHED_OFF_MS UINT64_C(5000)

uint64_t limit_lease_ms(const struct limits *l, const struct limit *limit)
{
        return limit_is_rate(limit) ? limit->lag_ms : min_u64(l->ttl_ms + l->ttl_ms / 2, STORE_LIMIT_LEASE_MS);
}

/* How many tokens to ask for now. */
static uint64_t tokens_wanted(const struct limit_bucket *b, uint64_t now_ms)
{
        if (now_ms < b->ask_ms || now_ms < b->closed_ms || b->lacking <= b->granted)
                return 0;
        return min_u64(b->lacking - b->granted, STORE_LIMIT_MAX);
}

/* How many shares this host should have. */
static uint64_t shares_wanted(const struct limits *l, const struct limit_bucket *b, uint64_t now_ms)
{
        uint64_t want = b->in_use + (l->is_leaving ? 0 : b->backed + b->lacking);
        if (now_ms < b->ask_ms || now_ms < b->closed_ms)
                want = min_u64(want, max_u64(b->granted, b->in_use));
        if (b->is_giving_up && b->granted)
                want = min_u64(want, max_u64(b->in_use, b->granted - 1));
        /* The app holds more shares than allowed: unused ones are given back first. */
        bool is_excess = b->is_over && b->in_use < b->granted;
        if (is_excess)
                want = b->in_use;
        bool is_to_go = l->is_leaving || is_excess || b->has_waiting || b->is_giving_up || now_ms < b->closed_ms ||
                        (b->spare_ms && now_ms >= b->spare_ms + LIMIT_SPARE_MS);
        if (!is_to_go)
                want = max_u64(want, b->granted);
        return min_u64(want, STORE_LIMIT_MAX);
}

/* Whether to ask the home about this bucket now, and for what. */
static bool is_to_ask(
        const struct limits *l, const struct limit_bucket *b, uint64_t now_ms, struct store_limit_item *item)
{
        if (b->is_asking)
                return false;
        bool is_to_close = now_ms < b->closed_ms && !b->is_close_told && now_ms >= b->tell_ms;
        *item = (struct store_limit_item){ .value = { b->value, b->size },
                .close_ms = is_to_close ? b->closed_ms - now_ms : 0 };
        if (limit_is_rate(b->of)) {
                item->want = tokens_wanted(b, now_ms);
                return item->want || is_to_close;
        }
        item->want = shares_wanted(l, b, now_ms);
        /* Shares that the call does not give back stay usable until its answer. */
        uint64_t granted = now_ms < b->until_ms ? b->granted : 0;
        item->keep = min_u64(item->want, max_u64(b->in_use, granted));
        bool is_to_renew = (b->granted || b->in_use) && now_ms >= b->renew_ms;
        return (item->want != b->granted && now_ms >= b->ask_ms) || is_to_renew || is_to_close;
}

struct limit *limits_next_call(
        struct limits *l, uint64_t now_ms, struct store_limit_item items[STORE_LIMIT_ITEMS], uint32_t *ret_count)
{
        for (uint32_t i = 0; i < l->count; i++) {
                struct limit *limit = l->list[i];
                uint32_t count = 0;
                if (limit->is_asking || !limit->store.version)
                        continue;
                for (struct limit_bucket *b = limit->buckets; b && count < STORE_LIMIT_ITEMS; b = b->hh.next) {
                        limit_stamp(l, b);
                        if (is_to_ask(l, b, now_ms, &items[count])) {
                                b->is_asking = true;
                                b->kept = items[count].keep;
                                b->adopted_asked = b->adopted;
                                count++;
                        }
                }
                if (!count)
                        continue;
                limit->is_asking = true;
                limit->sent_ms = now_ms;
                limit->counts.calls++;
                *ret_count = count;
                return limit;
        }
        return NULL;
}

static void got_tokens(struct limit_bucket *b, const struct store_limit_item *item, uint64_t now_ms)
{
        struct limit *limit = b->of;
        uint64_t until_ms = limit->sent_ms + min_u64(item->left_ms, limit->lag_ms);
        uint64_t fill_ms = limit->store.burst * limit->store.period_ms / limit->store.rate;
        uint64_t pace_ms = max_u64(RATE_PACE_MIN_MS, min_u64(fill_ms / 4, RATE_PACE_MAX_MS));
        if (item->granted && now_ms < until_ms) {
                /* Older tokens end earlier: all of the bucket's tokens get the earliest deadline. */
                b->until_ms = b->granted ? min_u64(b->until_ms, until_ms) : until_ms;
                b->granted += item->granted;
        } else {
                limit->counts.lost += item->granted;
        }
        b->ask_ms = item->granted == item->want ? now_ms : now_ms + max_u64(item->retry_ms, pace_ms);
}

static void got_shares(
        const struct limits *l, struct limit_bucket *b, const struct store_limit_item *item, uint64_t now_ms)
{
        uint64_t before = b->granted;
        b->granted = item->granted;
        b->adopted -= min_u64(b->adopted, b->adopted_asked);
        b->until_ms = b->of->sent_ms + item->left_ms;
        b->renew_ms = b->of->sent_ms + min_u64(l->ttl_ms / 3, RENEW_MAX_MS);
        b->has_waiting = item->has_waiting;
        b->is_over = item->is_over;
        if (item->granted == item->want) {
                b->pace_ms = 0;
                b->ask_ms = max_u64(b->ask_ms, now_ms);
        } else {
                b->pace_ms = max_u64(SHARE_PACE_MIN_MS, min_u64(2 * b->pace_ms, SHARE_PACE_MAX_MS));
                b->ask_ms = now_ms + max_u64(1, min_u64(b->pace_ms, item->retry_ms));
        }
        if (item->granted && !before)
                b->since_ms = now_ms;
        if (b->is_giving_up && item->granted < before) {
                b->is_giving_up = false;
                b->since_ms = now_ms;
                b->ask_ms = now_ms + GAVE_UP_MS;
        }
        b->is_giving_up = item->has_waiting && item->granted && now_ms >= b->since_ms + SLICE_MS;
}

/* The home has a newer definition than ours: we use it too.  Its lag is unknown, so we use the smallest that any
 * has. */
static void adopt(struct limit *limit, const struct store_limit *used)
{
        struct span name = limit->store.name;
        limit->store = *used;
        limit->store.name = name;
        limit->lag_ms = LIMIT_LAG_MIN_MS;
        limit->amount = (struct limit_amount){ .version = used->version,
                .rate = used->rate,
                .per_ms = used->period_ms,
                .burst = used->burst,
                .concurrency = used->concurrency };
}

void limits_answered(struct limits *l, struct limit *limit, const struct store_limit_take *take, uint64_t now_ms)
{
        bool is_newer = take->used.version > limit->store.version;
        bool is_other = !take->used.rate != !limit->store.rate;
        if (is_newer)
                adopt(limit, &take->used);
        limit->is_asking = false;
        l->is_stirred = true;
        for (uint32_t i = 0; i < take->items_count; i++) {
                const struct store_limit_item *item = &take->items[i];
                struct limit_bucket *b = limit_bucket_find(limit, item->value);
                if (!b)
                        continue;
                b->is_asking = false;
                b->is_close_told |= item->close_ms > 0;
                limit->counts.granted += item->granted;
                limit->counts.refused += item->want && !item->granted;
                if (is_newer && is_other)
                        b->granted = 0; /* the limit has changed between rate and concurrency, so the grant is void */
                else if (limit_is_rate(limit))
                        got_tokens(b, item, now_ms);
                else
                        got_shares(l, b, item, now_ms);
                if (item->closed_ms) {
                        b->closed_ms = max_u64(b->closed_ms, now_ms + item->closed_ms);
                        b->is_close_told = true;
                }
                if (item->is_full)
                        b->ask_ms = now_ms + max_u64(SHARE_PACE_MAX_MS, item->retry_ms);
        }
}

void limits_failed(struct limits *l, struct limit *limit, const struct store_limit_take *take, uint64_t now_ms)
{
        limit->is_asking = false;
        l->is_stirred = true;
        for (uint32_t i = 0; i < take->items_count; i++) {
                struct limit_bucket *b = limit_bucket_find(limit, take->items[i].value);
                if (!b)
                        continue;
                b->is_asking = false;
                if (!limit_is_rate(limit))
                        b->granted = min_u64(b->granted, b->kept);
                b->ask_ms = now_ms + (take->request.status == -ENOTSUP ? SWITCHED_OFF_MS : FAILED_MS);
                b->renew_ms = max_u64(b->renew_ms, now_ms + FAILED_MS);
                b->tell_ms = now_ms + FAILED_MS;
        }
}
