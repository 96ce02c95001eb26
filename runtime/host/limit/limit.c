#include "host/limit/limit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/buffer.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "host/limit/limit_private.h"
#include "task/envelope.h"

#define NAME_PREFIX "limit:"
#define LAG_MAX_MS  UINT64_C(1000)
#define WINDOW_MIN  2
#define WINDOW_MAX  64

/* --- definitions --- */

void limits_free(struct limits *l)
{
        while (l->buckets)
                limit_bucket_drop(l, l->buckets);
        for (uint32_t i = 0; i < l->count; i++)
                free(l->list[i]);
        free(l->list);
        free(l->pools);
        *l = (struct limits){ 0 };
}

struct limit *limits_find(const struct limits *l, const char *name)
{
        for (uint32_t i = 0; i < l->count; i++)
                if (!strcmp(l->list[i]->name, name))
                        return l->list[i];
        return NULL;
}

struct limit *limits_ensure(struct limits *l, const char *name)
{
        struct limit *limit = limits_find(l, name);
        if (limit)
                return limit;
        limit = memory_zero(1, sizeof(*limit));
        (void)snprintf(limit->name, sizeof(limit->name), "%s", name);
        l->list = array_grow(l->list, l->count, sizeof(struct limit *));
        l->list[l->count++] = limit;
        return limit;
}

static uint64_t in_time(uint64_t rate, uint64_t time_ms, uint64_t per_ms)
{
        return (rate * time_ms + per_ms - 1) / per_ms;
}

uint64_t limit_plan(const struct limit_amount *amount, uint64_t grace_ms, uint64_t values_max, struct store_limit *ret)
{
        *ret = (struct store_limit){ .name = ret->name,
                .version = amount->version,
                .concurrency = amount->concurrency,
                .grace_ms = amount->rate ? 0 : min_u64(grace_ms, STORE_LIMIT_LEASE_MS),
                .values_max = values_max };
        if (!amount->rate)
                return 0;
        ret->rate = amount->rate;
        ret->period_ms = amount->per_ms;
        uint64_t lag_ms = (amount->burst - 1) * amount->per_ms / amount->rate / 2;
        lag_ms = max_u64(LIMIT_LAG_MIN_MS, min_u64(lag_ms, LAG_MAX_MS));
        uint64_t less = in_time(amount->rate, lag_ms, amount->per_ms);
        if (less < amount->burst) {
                ret->burst = amount->burst - less;
                return lag_ms;
        }
        /* Tokens are granted one by one, with a period that is longer by the lag: starts that are up to lag_ms late
         * still keep the rate. */
        ret->burst = 1;
        ret->period_ms += amount->rate * LIMIT_LAG_MIN_MS;
        return LIMIT_LAG_MIN_MS;
}

void limit_define(
        struct limit *limit, const struct limit_amount *amount, const char *by, uint64_t grace_ms, uint64_t values_max)
{
        static const char header[] = "header.";
        limit->is_defined = true;
        limit->by = !by ? LIMIT_BY_NOTHING : !strcmp(by, "key") ? LIMIT_BY_KEY : LIMIT_BY_HEADER;
        if (limit->by == LIMIT_BY_HEADER)
                (void)snprintf(limit->header, sizeof(limit->header), "%s", by + sizeof(header) - 1);
        /* The home has a newer definition, which stays in use. */
        if (limit->store.version > amount->version)
                return;
        limit->amount = *amount;
        limit->store.name = (struct span){ limit->name, strlen(limit->name) };
        limit->lag_ms = limit_plan(amount, grace_ms, values_max, &limit->store);
}

/* Concurrencies come first: their shares do not expire while the task waits for a token. */
static bool is_before(const struct limit *a, const struct limit *b)
{
        if (!a->store.rate != !b->store.rate)
                return !a->store.rate;
        return strcmp(a->name, b->name) < 0;
}

void limits_serve(struct limits *l, uint32_t pool, const struct strings *names)
{
        while (l->pools_count <= pool)
                l->pools = array_grow(l->pools, l->pools_count++, sizeof(*l->pools));
        struct limits_pool *p = &l->pools[pool];
        for (uint32_t i = 0; i < p->count; i++)
                p->list[i]->pools--;
        p->count = 0;
        for (size_t i = 0; names && i < names->count && p->count < LIMITS_OF_HANDLER; i++) {
                struct limit *limit = limits_ensure(l, names->items[i]);
                uint32_t at = p->count++;
                for (; at && is_before(limit, p->list[at - 1]); at--)
                        p->list[at] = p->list[at - 1];
                p->list[at] = limit;
                limit->pools++;
        }
        l->is_stirred = true;
}

void limits_set_room(struct limits *l, uint32_t pool, uint32_t room)
{
        l->is_stirred |= room > l->pools[pool].room;
        l->pools[pool].room = room;
}

/* --- buckets --- */

uint32_t limit_window(const struct limit_bucket *b)
{
        const struct limit *limit = b->of;
        uint64_t tasks = limit_is_rate(limit) ? in_time(2 * limit->store.rate, 1000, limit->store.period_ms)
                                              : max_u64(2 * limit->store.concurrency, 2 * b->lately);
        return (uint32_t)max_u64(WINDOW_MIN, min_u64(tasks, WINDOW_MAX));
}

struct limit_bucket *limit_bucket_find(const struct limit *limit, struct span value)
{
        struct limit_bucket *b = NULL;
        HASH_FIND(hh, limit->buckets, value.data, value.size, b);
        return b;
}

/* A value that is too long for a bucket or for a name is replaced by its hash. */
static struct span hashed(struct span value, char to[20])
{
        (void)snprintf(to, 20, "#%016" PRIx64, hash_bytes(HASH_START, (const uint8_t *)value.data, value.size));
        return span_of_text(to);
}

static void put_value(const struct limit *limit, const struct limit_task *task, struct buffer *to)
{
        struct span lines = task->headers;
        struct task_header header;
        if (limit->by == LIMIT_BY_KEY)
                buffer_put(to, task->key.data, task->key.size);
        while (limit->by == LIMIT_BY_HEADER && header_next(&lines, &header)) {
                if (!span_is(header.name, span_of_text(limit->header)))
                        continue;
                header_put_value(to, &header);
                break;
        }
}

struct limit_bucket *limit_bucket_ensure(struct limits *l, struct limit *limit, const struct limit_task *task)
{
        struct buffer bytes = { 0 };
        char hash[20];
        put_value(limit, task, &bytes);
        struct span value = { bytes.size ? (const char *)bytes.data : "", bytes.size };
        if (value.size > STORE_LIMIT_VALUE_MAX)
                value = hashed(value, hash);
        struct limit_bucket *b = limit_bucket_find(limit, value);
        if (!b) {
                b = memory_zero(1, sizeof(*b) + value.size + 1);
                b->of = limit;
                b->size = value.size;
                memcpy(b->value, value.data, value.size);
                HASH_ADD_KEYPTR(hh, limit->buckets, b->value, b->size, b);
                DL_APPEND(l->buckets, b);
                l->buckets_count++;
        }
        buffer_free(&bytes);
        return b;
}

void limit_bucket_drop(struct limits *l, struct limit_bucket *b)
{
        HASH_DELETE(hh, b->of->buckets, b);
        DL_DELETE(l->buckets, b);
        l->buckets_count--;
        free(b);
}

/* `limit:NAME`, followed by `/VALUE` if the limit is `by` something. */
static void bucket_name(const struct limit_bucket *b, char to[STORE_NAME_MAX + 1])
{
        const struct limit *limit = b->of;
        char hash[20];
        if (limit->by == LIMIT_BY_NOTHING) {
                (void)snprintf(to, STORE_NAME_MAX + 1, NAME_PREFIX "%s", limit->name);
                return;
        }
        int size = snprintf(to, STORE_NAME_MAX + 1, NAME_PREFIX "%s/%s", limit->name, b->value);
        bool is_whole = strlen(b->value) == b->size && size <= (int)STORE_NAME_MAX;
        if (!is_whole || *b->value == '#' || !store_name_is_good(span_of_text(to)))
                (void)snprintf(to, STORE_NAME_MAX + 1, NAME_PREFIX "%s/%s", limit->name,
                        hashed((struct span){ b->value, b->size }, hash).data);
}

/* NULL: this host has no such bucket. */
static struct limit_bucket *bucket_named(const struct limit *limit, struct span name, struct span value)
{
        char text[STORE_NAME_MAX + 1];
        struct limit_bucket *b = NULL;
        if (!value.size || value.data[0] != '#')
                return limit_bucket_find(limit, value);
        for (b = limit->buckets; b; b = b->hh.next) {
                bucket_name(b, text);
                if (span_is(name, span_of_text(text)))
                        break;
        }
        return b;
}

uint64_t limit_available(const struct limit_bucket *b, const struct limit_task *task, uint64_t now_ms)
{
        if (now_ms >= b->until_ms || now_ms < b->closed_ms)
                return 0;
        if (limit_is_rate(b->of))
                return b->granted;
        /* A running task is stopped when the lease of its shard ends, so the share must last as long as the lease. */
        if (b->until_ms < task->until_ms || b->is_over)
                return 0;
        uint64_t used = b->in_use + b->is_giving_up;
        uint64_t kept = b->is_asking ? min_u64(b->granted, b->kept) : b->granted;
        return kept > used ? kept - used : 0;
}

/* --- tasks --- */

enum limit_verdict limits_start(struct limits *l, const struct limit_task *task, uint64_t now_ms,
        struct limit_hold *ret_hold, char ret_name[STORE_NAME_MAX + 1])
{
        const struct limits_pool *p = &l->pools[task->pool];
        struct limit_bucket *buckets[LIMITS_OF_HANDLER];
        for (uint32_t i = 0; i < p->count; i++) {
                struct limit_bucket *b = buckets[i] = limit_bucket_ensure(l, p->list[i], task);
                if (limit_available(b, task, now_ms))
                        continue;
                limit_stamp(l, b);
                l->is_stirred = true;
                if (!task->is_to_go && !limit_is_away(b, now_ms) && b->waiting < limit_window(b)) {
                        b->waiting++;
                        return LIMIT_WAIT;
                }
                b->is_stored = true;
                bucket_name(b, ret_name);
                return LIMIT_AWAY;
        }
        *ret_hold = (struct limit_hold){ 0 };
        for (uint32_t i = 0; i < p->count; i++) {
                buckets[i]->of->counts.started++;
                if (limit_is_rate(buckets[i]->of)) {
                        buckets[i]->granted--;
                        continue;
                }
                buckets[i]->in_use++;
                buckets[i]->started++;
                ret_hold->buckets[ret_hold->count++] = buckets[i];
        }
        return LIMIT_START;
}

void limits_adopt(struct limits *l, const struct limit_task *task, struct limit_hold *ret_hold)
{
        const struct limits_pool *p = &l->pools[task->pool];
        *ret_hold = (struct limit_hold){ 0 };
        for (uint32_t i = 0; i < p->count; i++) {
                if (limit_is_rate(p->list[i]))
                        continue;
                struct limit_bucket *b = limit_bucket_ensure(l, p->list[i], task);
                b->in_use++;
                b->adopted++;
                ret_hold->buckets[ret_hold->count++] = b;
        }
        l->is_stirred = true;
}

void limits_pass_on(struct limits *l, struct limit_hold *hold, uint64_t now_ms)
{
        for (uint32_t i = 0; i < hold->count; i++) {
                struct limit_bucket *b = hold->buckets[i];
                b->stopping -= hold->is_stopping;
                b->passed_on++;
                b->pass_on_ms = now_ms + l->ttl_ms;
        }
        l->is_stirred = true;
        *hold = (struct limit_hold){ 0 };
}

void limits_end(struct limits *l, struct limit_hold *hold)
{
        for (uint32_t i = 0; i < hold->count; i++) {
                struct limit_bucket *b = hold->buckets[i];
                b->in_use--;
                b->stopping -= hold->is_stopping;
                b->adopted = min_u64(b->adopted, b->in_use);
        }
        l->is_stirred |= hold->count > 0;
        *hold = (struct limit_hold){ 0 };
}

bool limits_stop(struct limits *l, struct limit_hold *hold)
{
        bool is_lost = false;
        for (uint32_t i = 0; i < hold->count; i++)
                is_lost |= limit_is_lost(hold->buckets[i]);
        if (!is_lost || hold->is_stopping)
                return false;
        hold->is_stopping = true;
        for (uint32_t i = 0; i < hold->count; i++)
                hold->buckets[i]->stopping++;
        l->is_stirred = true;
        return true;
}

bool limits_name_opens(struct limits *l, struct span name, uint32_t keys)
{
        size_t prefix = sizeof(NAME_PREFIX) - 1;
        char limit_name[NAME_HANDLER_MAX + 1];
        if (name.size <= prefix || memcmp(name.data, NAME_PREFIX, prefix) != 0)
                return false;
        struct span rest = { name.data + prefix, name.size - prefix };
        const char *slash = memchr(rest.data, '/', rest.size);
        size_t size = slash ? (size_t)(slash - rest.data) : rest.size;
        (void)snprintf(limit_name, sizeof(limit_name), "%.*s", (int)size, rest.data);
        const struct limit *limit = limits_find(l, limit_name);
        /* A limit that no handler uses any more blocks nothing. */
        if (!limit || !limit->pools)
                return true;
        struct span value = slash ? (struct span){ slash + 1, rest.size - size - 1 } : SPAN_TEXT("");
        struct limit_bucket *b = bucket_named(limit, name, value);
        if (!b)
                return true; /* woken keys show whether they may start */
        b->is_stored = true;
        /* The bucket may have no task in a window: without a pass nobody would look at the name again. */
        l->due_ms = min_u64(l->due_ms, max_u64(b->ask_ms, b->closed_ms));
        if (limit_is_away(b, l->looked_ms) || b->wake_left <= 0)
                return false;
        b->wake_left -= keys;
        return true;
}

void limits_look_again(struct limits *l)
{
        l->must_look = true;
}

bool limits_close(struct limits *l, const struct limit_task *task, uint64_t close_ms, uint64_t now_ms)
{
        if (!limits_has(l, task->pool))
                return false;
        const struct limits_pool *p = &l->pools[task->pool];
        bool has_rate = limit_is_rate(p->list[p->count - 1]);
        for (uint32_t i = 0; i < p->count; i++) {
                if (limit_is_rate(p->list[i]) != has_rate)
                        continue;
                struct limit_bucket *b = limit_bucket_ensure(l, p->list[i], task);
                uint64_t until_ms = now_ms + max_u64(1, min_u64(close_ms, STORE_LIMIT_LEASE_MS));
                if (until_ms > b->closed_ms) {
                        b->closed_ms = until_ms;
                        b->is_close_told = false;
                }
                p->list[i]->counts.closed++;
        }
        l->is_stirred = true;
        return true;
}
