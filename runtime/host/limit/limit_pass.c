/* limit_pass.c: a pass over the limited tasks that wait in windows: which may start, and which shares are lacking. */
#include "base/numbers.h"
#include "host/limit/limit_private.h"

/* Pause between two looks at the names that keys wait for in the store. */
#define NAMES_PACE_MS UINT64_C(20)
/* Passes are one millisecond further apart for every this many buckets, because each takes longer. */
#define PASS_BUCKETS 1000u

static uint64_t next_pass_ms(const struct limits *l)
{
        return l->passed_ms + 1 + l->buckets_count / PASS_BUCKETS;
}

uint64_t limits_due_ms(const struct limits *l)
{
        if (!l->count)
                return UINT64_MAX;
        if (l->is_stirred)
                return next_pass_ms(l);
        uint64_t look_ms = l->must_look ? l->looked_ms + NAMES_PACE_MS : UINT64_MAX;
        return max_u64(min_u64(l->due_ms, look_ms), next_pass_ms(l));
}

bool limits_pass_is_due(const struct limits *l, uint64_t now_ms)
{
        return now_ms >= limits_due_ms(l);
}

void limits_pass_begin(struct limits *l)
{
        l->pass++;
        l->is_stirred = false;
}

static bool is_slow(const struct limit_bucket *b, uint64_t now_ms)
{
        return !b->is_asking && max_u64(b->ask_ms, b->closed_ms) > now_ms + LIMIT_SOON_MS;
}

enum limit_verdict limits_look(struct limits *l, const struct limit_task *task, uint64_t now_ms)
{
        if (!limits_has(l, task->pool))
                return LIMIT_START;
        struct limits_pool *p = &l->pools[task->pool];
        struct limit_bucket *buckets[LIMITS_OF_HANDLER];
        struct limit_bucket *lacking = NULL;
        uint32_t count = 0;
        if (p->pass != l->pass)
                p->counted = 0;
        p->pass = l->pass;
        for (uint32_t i = 0; i < p->count && !lacking; i++) {
                struct limit_bucket *b = limit_bucket_ensure(l, p->list[i], task);
                limit_stamp(l, b);
                if (limit_available(b, task, now_ms) > b->promised)
                        buckets[count++] = b;
                else
                        lacking = b;
        }
        bool has_seat = p->counted < p->room;
        p->counted += has_seat;
        for (uint32_t i = 0; i < count && has_seat; i++)
                if (!lacking)
                        buckets[i]->promised++;
                else if (!is_slow(lacking, now_ms))
                        buckets[i]->backed++;
        if (!lacking)
                return has_seat ? LIMIT_START : LIMIT_WAIT;
        lacking->waiting++;
        lacking->lacking += has_seat;
        return limit_is_away(lacking, now_ms) ? LIMIT_AWAY : LIMIT_WAIT;
}

static void expire(struct limit_bucket *b, uint64_t now_ms)
{
        if (b->passed_on && now_ms >= b->pass_on_ms) {
                b->in_use -= b->passed_on;
                b->passed_on = 0;
        }
        if (now_ms < b->until_ms)
                return;
        if (limit_is_rate(b->of))
                b->of->counts.lost += b->granted;
        b->granted = 0;
}

static void measure(struct limit_bucket *b, uint64_t now_ms)
{
        uint64_t passed_ms = now_ms - b->measured_ms;
        if (passed_ms < LIMIT_LATELY_MS)
                return;
        b->lately = b->started * LIMIT_LATELY_MS / passed_ms;
        b->started = 0;
        b->measured_ms = now_ms;
}

static uint64_t bucket_due_ms(const struct limits *l, const struct limit_bucket *b)
{
        uint64_t due_ms = UINT64_MAX;
        if (b->lacking || b->is_stored)
                due_ms = max_u64(b->ask_ms, b->closed_ms);
        if (b->is_stored && b->wake_left > 0)
                due_ms = max_u64(due_ms, l->looked_ms + NAMES_PACE_MS);
        if (b->granted && (limit_is_rate(b->of) || b->in_use))
                due_ms = min_u64(due_ms, b->until_ms);
        /* A bucket with a call under way is renewed by that call. */
        if (!limit_is_rate(b->of) && (b->granted || b->in_use) && !b->is_asking)
                due_ms = min_u64(due_ms, b->renew_ms);
        if (!b->is_close_told && b->closed_ms > l->passed_ms)
                due_ms = min_u64(due_ms, b->tell_ms);
        if (b->passed_on)
                due_ms = min_u64(due_ms, b->pass_on_ms);
        if (b->spare_ms)
                due_ms = min_u64(due_ms, b->spare_ms + LIMIT_SPARE_MS);
        return due_ms;
}

/* Whether the bucket holds nothing that a new one would not have. */
static bool is_at_rest(const struct limit_bucket *b, uint64_t now_ms)
{
        return !b->granted && !b->in_use && !b->waiting && !b->backed && !b->is_stored && !b->is_asking &&
               max_u64(b->ask_ms, b->closed_ms) <= now_ms;
}

bool limits_pass_end(struct limits *l, uint64_t now_ms)
{
        bool has_open = l->must_look;
        l->due_ms = UINT64_MAX;
        l->passed_ms = now_ms;
        l->has_lost = false;
        for (struct limit_bucket *b = l->buckets, *next; b; b = next) {
                next = b->next;
                limit_stamp(l, b);
                expire(b, now_ms);
                measure(b, now_ms);
                l->has_lost |= limit_is_lost(b);
                bool is_spare = !limit_is_rate(b->of) && b->granted > b->in_use + b->backed + b->lacking + b->promised;
                if (!is_spare)
                        b->spare_ms = 0;
                else if (!b->spare_ms)
                        b->spare_ms = now_ms;
                b->wake_left = (int64_t)limit_window(b) - b->waiting;
                has_open |= b->is_stored && b->wake_left > 0 && max_u64(b->ask_ms, b->closed_ms) <= now_ms;
                if (is_at_rest(b, now_ms))
                        limit_bucket_drop(l, b);
                else
                        l->due_ms = min_u64(l->due_ms, bucket_due_ms(l, b));
        }
        if (!has_open || now_ms < l->looked_ms + NAMES_PACE_MS)
                return false;
        l->looked_ms = now_ms;
        l->must_look = false;
        /* Buckets whose name some shard still has are marked again during the look. */
        for (struct limit_bucket *b = l->buckets; b; b = b->next)
                b->is_stored = false;
        return true;
}

struct limit_sums limit_sum(const struct limits *l, const struct limit *limit, uint64_t now_ms)
{
        struct limit_sums sums = { 0 };
        for (const struct limit_bucket *b = limit->buckets; b; b = b->hh.next) {
                sums.granted += now_ms < b->until_ms ? b->granted : 0;
                sums.in_use += b->in_use;
                sums.waiting += b->pass == l->pass ? b->waiting : 0;
                sums.closed += now_ms < b->closed_ms;
                sums.stored += b->is_stored;
                sums.buckets++;
        }
        return sums;
}
