#include "host/shard/shard_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "host/limit/limit.h"

#define HANDLER_PREFIX "handler:"
#define LIMIT_PREFIX   "limit:"

void shard_names_clear(struct shard_names *n)
{
        free(n->list);
        *n = (struct shard_names){ 0 };
}

/* The pool that a name refers to; ROUTES_NONE. */
static uint32_t pool_of(const struct routes *routes, struct span name)
{
        size_t prefix = sizeof(HANDLER_PREFIX) - 1;
        if (name.size <= prefix || memcmp(name.data, HANDLER_PREFIX, prefix) != 0)
                return ROUTES_NONE;
        return routes_look(routes, (struct span){ name.data + prefix, name.size - prefix });
}

static bool is_of_limit(struct span name)
{
        size_t prefix = sizeof(LIMIT_PREFIX) - 1;
        return name.size > prefix && !memcmp(name.data, LIMIT_PREFIX, prefix);
}

static bool is_open(const struct routes *routes, struct span name)
{
        if (is_of_limit(name))
                return routes->limits && limits_name_opens(routes->limits, name, SHARD_NAMES_PAGE);
        uint32_t pool = pool_of(routes, name);
        return pool != ROUTES_NONE && routes->states[pool] == ROUTE_OPEN;
}

static struct span text_of(const struct shard_name *name)
{
        return (struct span){ name->text, name->size };
}

static struct shard_name *find(const struct shard_names *n, struct span name)
{
        for (uint32_t i = 0; i < n->count; i++)
                if (span_is(text_of(&n->list[i]), name))
                        return &n->list[i];
        return NULL;
}

void shard_names_add(struct shard_names *n, struct routes *routes, struct span name)
{
        if (name.size > STORE_NAME_MAX || find(n, name))
                return;
        bool opens = is_open(routes, name);
        if (n->count == SHARD_NAMES_MAX) {
                n->is_partial = true;
                n->must_read |= opens;
                return;
        }
        n->list = array_grow(n->list, n->count, sizeof(*n->list));
        struct shard_name *added = &n->list[n->count++];
        *added = (struct shard_name){ .size = (uint32_t)name.size, .page = SHARD_NAMES_PAGE, .is_open = opens };
        memcpy(added->text, name.data, name.size);
}

void shard_names_read(struct shard_names *n, struct routes *routes, const struct store_names *page)
{
        n->must_read = false;
        for (uint32_t i = 0; i < page->names_count; i++)
                shard_names_add(n, routes, page->names[i]);
        /* Names beyond SHARD_NAMES_MAX are read again once open names are woken and removed. */
        bool goes_on = page->has_more && page->names_count;
        n->after[0] = 0;
        n->must_read |= goes_on;
        if (goes_on) {
                struct span last = page->names[page->names_count - 1];
                memcpy(n->after, last.data, last.size);
                n->after[last.size] = 0;
        }
}

bool shard_names_look(struct shard_names *n, struct routes *routes)
{
        for (uint32_t i = 0; i < n->count; i++) {
                n->list[i].is_open = is_open(routes, text_of(&n->list[i]));
                n->list[i].is_probe &= !n->list[i].is_open;
                if (!n->list[i].is_open)
                        n->list[i].page = SHARD_NAMES_PAGE;
        }
        n->must_read |= n->is_partial;
        return n->must_read || shard_names_next(n) != SHARD_NAME_NONE;
}

static struct shard_name *find_of_pool(const struct shard_names *n, const struct routes *routes, uint32_t pool)
{
        for (uint32_t i = 0; i < n->count; i++)
                if (pool_of(routes, text_of(&n->list[i])) == pool)
                        return &n->list[i];
        return NULL;
}

bool shard_names_has(const struct shard_names *n, const struct routes *routes, uint32_t pool)
{
        return find_of_pool(n, routes, pool);
}

bool shard_names_probe(struct shard_names *n, struct routes *routes, uint32_t pool)
{
        struct shard_name *name = find_of_pool(n, routes, pool);
        if (name)
                name->is_probe = true;
        return name;
}

uint32_t shard_names_next(const struct shard_names *n)
{
        for (uint32_t i = 1; i <= n->count && !n->has_woken; i++) {
                uint32_t at = (n->waking + i) % n->count;
                if (n->list[at].is_open || n->list[at].is_probe)
                        return at;
        }
        return SHARD_NAME_NONE;
}

void shard_names_woken(struct shard_names *n, struct routes *routes, uint32_t woken, bool has_more)
{
        n->has_woken = woken > 0;
        if (n->waking >= n->count)
                return;
        struct shard_name *name = &n->list[n->waking];
        name->is_probe = false;
        /* A limit lets few tasks start, so the next look at the limits decides how many more keys to wake. */
        if (is_of_limit(text_of(name))) {
                name->is_open = false;
                if (has_more && routes->limits)
                        limits_look_again(routes->limits);
        } else
                name->page = (uint32_t)min_u64(UINT64_C(2) * name->page, STORE_CALL_TASKS);
        if (!has_more)
                n->list[n->waking] = n->list[--n->count];
}
