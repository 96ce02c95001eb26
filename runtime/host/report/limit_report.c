#include "host/report/limit_report.h"

#include <stdio.h>

void limit_report_measure(struct limits *limits, uint64_t ms)
{
        for (uint32_t i = 0; limits && ms && i < limits->count; i++) {
                struct limit *limit = limits->list[i];
                limit->started_rate = (double)(limit->counts.started - limit->measured) * 1000.0 / (double)ms;
                limit->measured = limit->counts.started;
        }
}

static void put_number(json_t *o, const char *name, uint64_t value)
{
        if (value)
                (void)json_object_set_new(o, name, json_integer((json_int_t)value));
}

/* The names of the handlers under the limit. */
static json_t *handlers_of(const struct handlers *all, const struct limit *limit)
{
        const struct limits *limits = all->dispatch->routes.limits;
        json_t *names = json_array();
        for (uint32_t i = 0; i < all->count && i < limits->pools_count; i++)
                for (uint32_t k = 0; k < limits->pools[i].count; k++)
                        if (limits->pools[i].list[k] == limit)
                                (void)json_array_append_new(names, json_string(all->list[i]->name));
        return names;
}

static json_t *make(const struct handlers *all, const struct limit *limit, uint64_t now_ms)
{
        static const char *const by[] = { [LIMIT_BY_KEY] = "key" };
        struct limit_sums sums = limit_sum(all->dispatch->routes.limits, limit, now_ms);
        char header[sizeof(limit->header) + sizeof("header.")];
        json_t *o = json_object();
        (void)json_object_set_new(o, "name", json_string(limit->name));
        put_number(o, "version", limit->store.version);
        put_number(o, "rate", limit->amount.rate);
        put_number(o, "per_ms", limit->amount.rate ? limit->amount.per_ms : 0);
        put_number(o, "burst", limit->amount.burst);
        put_number(o, "concurrency", limit->amount.concurrency);
        (void)snprintf(header, sizeof(header), "header.%s", limit->header);
        if (limit->by)
                (void)json_object_set_new(o, "by", json_string(limit->by == LIMIT_BY_HEADER ? header : by[limit->by]));
        (void)json_object_set_new(o, "handlers", handlers_of(all, limit));
        put_number(o, "granted", sums.granted);
        put_number(o, "in_use", sums.in_use);
        put_number(o, "waiting", sums.waiting);
        put_number(o, "closed", sums.closed);
        put_number(o, "buckets", sums.buckets);
        put_number(o, "started", limit->counts.started);
        put_number(o, "refused", limit->counts.refused);
        put_number(o, "lost", limit->counts.lost);
        (void)json_object_set_new(o, "started_rate", json_real(limit->started_rate));
        return o;
}

void limit_report_put(json_t *document, const struct handlers *all, uint64_t now_ms)
{
        const struct limits *limits = all->dispatch->routes.limits;
        json_t *list = json_array();
        for (uint32_t i = 0; limits && i < limits->count && json_array_size(list) < LIMIT_REPORT_MAX; i++)
                if (limits->list[i]->is_defined)
                        (void)json_array_append_new(list, make(all, limits->list[i], now_ms));
        if (json_array_size(list))
                (void)json_object_set(document, "limits", list);
        json_decref(list);
}
