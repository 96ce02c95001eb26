#include "host/shard/routes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A pool's calls count as short while at most this many of the last 32 were long. */
#define LONG_CALLS_MAX 2

void routes_free(struct routes *r)
{
        free(r->list);
        free(r->states);
        free(r->long_calls);
        free(r->finished);
        free(r->per_key);
        *r = (struct routes){ 0 };
}

uint32_t routes_add_pool(struct routes *r)
{
        r->states = array_grow(r->states, r->pools, sizeof(*r->states));
        r->long_calls = array_grow(r->long_calls, r->pools, sizeof(*r->long_calls));
        r->finished = array_grow(r->finished, r->pools, sizeof(*r->finished));
        r->per_key = array_grow(r->per_key, r->pools, sizeof(*r->per_key));
        r->long_calls[r->pools] = UINT32_MAX;
        return r->pools++;
}

static void drop_pool(struct routes *r, uint32_t pool)
{
        size_t kept = 0;
        for (size_t i = 0; i < r->count; i++)
                if (r->list[i].pool != pool)
                        r->list[kept++] = r->list[i];
        r->count = kept;
}

static void add_route(struct routes *r, uint32_t pool, const char *name)
{
        r->list = array_grow(r->list, r->count, sizeof(*r->list));
        size_t at = r->count++;
        for (; at && r->list[at - 1].pool > pool; at--)
                r->list[at] = r->list[at - 1];
        r->list[at] = (struct route){ .pool = pool, .size = (uint32_t)strlen(name) };
        (void)snprintf(r->list[at].name, sizeof(r->list[at].name), "%s", name);
}

void routes_serve(struct routes *r, uint32_t pool, const struct strings *names)
{
        drop_pool(r, pool);
        for (size_t i = 0; names && i < names->count; i++)
                add_route(r, pool, names->items[i]);
        routes_forget_unserved(r);
}

void routes_forget_unserved(struct routes *r)
{
        r->unserved_count = r->unserved_told = 0;
}

static bool is_named(const struct route *route, struct span name)
{
        return span_is(name, (struct span){ route->name, route->size });
}

static void note_unserved(struct routes *r, struct span name)
{
        for (uint32_t i = 0; i < r->unserved_count; i++)
                if (span_is(name, (struct span){ r->unserved[i], strlen(r->unserved[i]) }))
                        return;
        if (r->unserved_count == ROUTES_UNSERVED_MAX || name.size > NAME_HANDLER_MAX)
                return;
        (void)snprintf(r->unserved[r->unserved_count++], sizeof(r->unserved[0]), "%.*s", (int)name.size, name.data);
}

uint32_t routes_look(const struct routes *r, struct span name)
{
        for (size_t i = 0; i < r->count; i++)
                if (is_named(&r->list[i], name))
                        return r->list[i].pool;
        return ROUTES_NONE;
}

uint32_t routes_find(struct routes *r, struct span name)
{
        uint32_t pool = routes_look(r, name);
        if (pool == ROUTES_NONE)
                note_unserved(r, name);
        return pool;
}

bool routes_serves(const struct routes *r, uint32_t pool, struct span name)
{
        for (size_t i = 0; i < r->count; i++)
                if (r->list[i].pool == pool && is_named(&r->list[i], name))
                        return true;
        return false;
}

void routes_call_ended(struct routes *r, uint32_t pool, uint64_t took_ms)
{
        if (pool < r->pools)
                r->long_calls[pool] = r->long_calls[pool] << 1 | (took_ms > ROUTES_MOMENT_MS);
}

/* Any other reason means that the task's budget was used up. */
static enum finished finished_as(struct span reason)
{
        static const struct span reasons[FINISHED_KINDS] = {
                [FINISHED_REJECTED] = SPAN_TEXT("rejected"),
                [FINISHED_CRASHED] = SPAN_TEXT("crashed"),
                [FINISHED_TIMED_OUT] = SPAN_TEXT("timed-out"),
                [FINISHED_CANCELLED] = SPAN_TEXT("cancelled"),
        };
        for (unsigned i = 0; i < FINISHED_KINDS; i++)
                if (reasons[i].size && span_is(reason, reasons[i]))
                        return (enum finished)i;
        return FINISHED_EXHAUSTED;
}

void routes_task_finished(struct routes *r, uint32_t pool, bool is_done, struct span reason)
{
        if (pool < r->pools)
                r->finished[pool].counts[is_done ? FINISHED_DONE : finished_as(reason)]++;
}

void routes_forget_calls(struct routes *r, uint32_t pool)
{
        r->long_calls[pool] = UINT32_MAX;
        r->finished[pool] = (struct finished_counts){ 0 };
}

bool routes_is_short(const struct routes *r, uint32_t pool)
{
        return pool < r->pools && __builtin_popcount(r->long_calls[pool]) <= LONG_CALLS_MAX;
}

bool routes_has_short(const struct routes *r)
{
        for (uint32_t pool = 0; pool < r->pools; pool++)
                if (routes_is_short(r, pool))
                        return true;
        return false;
}
