#include "host/handler/dispatch.h"

#include <stdlib.h>
#include <utlist.h>

#include "base/memory.h"
#include "base/numbers.h"

/* A call that told of no more outcomes than this makes its shard urgent, which then gives as many tasks at most. */
#define URGENT_TASKS_MAX 4u
/* A pool's room is for this many shards at least; urgent ones have one share of it. */
#define SHARDS_AT_LEAST 4

void dispatch_init(struct dispatch *d, uint32_t shards_count)
{
        *d = (struct dispatch){ .shards_count = shards_count };
        d->shards = memory_zero(shards_count, sizeof(struct shard *));
        d->by_shard = memory_zero(shards_count, sizeof(*d->by_shard));
        shard_set_init(&d->ready, shards_count);
        shard_set_init(&d->suspects, shards_count);
}

void dispatch_free(struct dispatch *d)
{
        free(d->shards);
        free(d->by_shard);
        free(d->pools);
        routes_free(&d->routes);
        *d = (struct dispatch){ 0 };
}

void dispatch_add_shard(struct dispatch *d, struct shard *shard)
{
        d->shards[shard->number] = shard;
}

uint32_t dispatch_add_pool(struct dispatch *d)
{
        uint32_t pool = routes_add_pool(&d->routes);
        d->pools = array_grow(d->pools, pool, sizeof(*d->pools));
        for (uint32_t i = 0; i < d->shards_count; i++)
                window_set_pools(&d->shards[i]->window, d->routes.pools);
        return pool;
}

void dispatch_clear_pool(struct dispatch *d, uint32_t pool)
{
        d->pools[pool] = (struct dispatch_pool){ 0 };
        d->routes.states[pool] = ROUTE_OPEN;
        routes_forget_calls(&d->routes, pool);
}

void dispatch_serve(struct dispatch *d, uint32_t pool, const struct strings *names, uint64_t now_ms)
{
        routes_serve(&d->routes, pool, names);
        for (uint32_t i = 0; i < d->shards_count; i++)
                shard_reroute(d->shards[i], now_ms);
}

/* Keys that wait for the pool in the store are to be woken if it opens. */
static void set_state(struct dispatch *d, uint32_t pool, enum route_state state)
{
        enum route_state before = d->routes.states[pool];
        d->routes.states[pool] = state;
        for (uint32_t i = 0; before != state && i < d->shards_count; i++)
                shard_look_at_names(d->shards[i]);
}

void dispatch_pause(struct dispatch *d, uint32_t pool, bool is_paused, uint64_t now_ms)
{
        d->pools[pool].is_paused = is_paused;
        /* Whether it is open again the next turn finds out. */
        set_state(d, pool, is_paused ? ROUTE_SHUT : ROUTE_DOWN);
        for (uint32_t i = 0; is_paused && i < d->shards_count; i++)
                shard_return_pool(d->shards[i], pool, now_ms);
}

/* --- urgent shards --- */

void dispatch_told(struct dispatch *d, uint32_t shard, uint32_t outcomes)
{
        struct dispatch_shard *u = &d->by_shard[shard];
        if (u->is_urgent || !outcomes || outcomes > URGENT_TASKS_MAX)
                return;
        u->is_urgent = true;
        DL_APPEND(d->urgent, u);
}

static void end_urgency(struct dispatch *d, uint32_t shard)
{
        struct dispatch_shard *u = &d->by_shard[shard];
        if (!u->is_urgent)
                return;
        u->is_urgent = false;
        DL_DELETE(d->urgent, u);
}

void dispatch_look(struct dispatch *d, const struct shard_set *changed)
{
        shard_set_join(&d->ready, changed);
        shard_set_join(&d->suspects, changed);
}

/* --- what cannot start here --- */

/* Nobody serves here any more: what was put back since then waits in the store, or goes to another pool. */
static void return_unserved(struct dispatch *d, uint32_t pool, uint64_t now_ms)
{
        const struct shard_set *const sets[] = { &d->ready, &d->suspects };
        for (unsigned set = 0; set < 2; set++)
                for (uint32_t i = 0; (i = shard_set_from(sets[set], i)) != SHARD_SET_NONE; i++) {
                        const struct window *w = &d->shards[i]->window;
                        if (window_has_next(w, pool) || window_has_suspect(w, pool))
                                shard_reroute(d->shards[i], now_ms);
                }
}

/* The pool takes no tasks for now, and those that it was meant to take fill windows: they wait in the store instead, so
 * that other pools find theirs. */
static void return_waiting(struct dispatch *d, uint32_t pool, uint64_t now_ms)
{
        for (uint32_t i = 0; i < d->shards_count; i++) {
                if (shard_is_full(d->shards[i]))
                        shard_return_pool(d->shards[i], pool, now_ms);
        }
}

void dispatch_probe(struct dispatch *d, uint32_t pool)
{
        for (uint32_t i = 0; i < d->shards_count; i++)
                if (shard_probe(d->shards[i], pool))
                        return;
}

/* The start of a suspect is recorded, unless one of the pool's is or is about to be, on whatever shard. */
static void mark_suspect(struct dispatch *d, uint32_t pool, uint64_t now_ms)
{
        bool has_suspect = false;
        for (uint32_t i = 0; (i = shard_set_from(&d->suspects, i)) != SHARD_SET_NONE; i++) {
                const struct window *w = &d->shards[i]->window;
                if (window_marks(w, pool))
                        return;
                has_suspect |= window_has_suspect(w, pool);
                if (!window_has_suspects(w))
                        shard_set_remove(&d->suspects, i);
        }
        for (uint32_t i = 0; has_suspect && (i = shard_set_from(&d->suspects, i)) != SHARD_SET_NONE; i++)
                if (shard_mark_next(d->shards[i], pool, now_ms))
                        return;
}

/* --- a turn of the loop --- */

/* An urgent shard is one where each round trip to the store is one task of a key: if it came after all the others, most
 * of that time would be waiting.  Where there is hardly any room, urgent shards have every other place: the rest must
 * not wait until they have nothing left. */
static uint32_t urgent_share(const struct dispatch_pool *p, uint32_t room)
{
        if (room >= SHARDS_AT_LEAST)
                return room / SHARDS_AT_LEAST;
        return p->was_urgent ? 0 : 1;
}

void dispatch_begin(struct dispatch *d, uint32_t pool, enum dispatch_state state, uint32_t room, uint64_t now_ms)
{
        struct dispatch_pool *p = &d->pools[pool];
        *p = (struct dispatch_pool){ .next_shard = p->next_shard,
                .was_urgent = p->was_urgent,
                .is_paused = p->is_paused,
                .shard = SHARD_SET_NONE };
        set_state(d, pool, p->is_paused ? ROUTE_SHUT : state == DISPATCH_OPEN ? ROUTE_OPEN : ROUTE_DOWN);
        if (state == DISPATCH_GONE)
                return_unserved(d, pool, now_ms);
        else if (state == DISPATCH_DOWN)
                return_waiting(d, pool, now_ms);
        p->is_round = p->is_paused || state == DISPATCH_GONE;
        if (p->is_round || !room)
                return;
        mark_suspect(d, pool, now_ms);
        p->urgent = d->urgent;
        p->urgent_left = urgent_share(p, room);
}

/* The shard has had its turn: it has given what it may, or has nothing for this pool. */
static void end_burst(struct dispatch *d, struct dispatch_pool *p)
{
        uint32_t shard = p->shard;
        if (shard == SHARD_SET_NONE)
                return;
        bool has_ready = window_has_ready(&d->shards[shard]->window);
        p->shard = SHARD_SET_NONE;
        if (!p->is_round) {
                /* What it has may be another pool's. */
                if (!has_ready || !shard_is_held(d->shards[shard]))
                        end_urgency(d, shard);
        } else if (p->fed) {
                p->left = shard_set_count(&d->ready);
        } else {
                p->left--;
                if (!has_ready)
                        shard_set_remove(&d->ready, shard);
        }
}

/* Whose turn it is to give tasks.  A shard gives one at a time where few fit, so that all get their turn; where many
 * fit it gives several, for what starts together ends together and is one call to the store. */
static bool begin_burst(struct dispatch *d, struct dispatch_pool *p, uint32_t room)
{
        end_burst(d, p);
        p->fed = 0;
        if (!p->is_round && p->urgent && p->urgent_left) {
                p->shard = (uint32_t)(p->urgent - d->by_shard);
                p->burst_left = min_u64(p->urgent_left, URGENT_TASKS_MAX);
                p->urgent = p->urgent->next;
                return true;
        }
        if (!p->is_round) {
                p->is_round = true;
                p->burst_max = 1 + room / SHARDS_AT_LEAST;
                p->left = shard_set_count(&d->ready);
        }
        if (!p->left)
                return false;
        p->shard = shard_set_round(&d->ready, p->next_shard);
        p->burst_left = p->burst_max;
        p->next_shard = p->shard + 1;
        return true;
}

/* The shard's next task for that pool. */
static struct claimed *take(struct dispatch *d, struct shard *s, uint32_t pool, uint64_t now_ms)
{
        struct claimed *c = NULL;
        while (s->window.count && (c = shard_next(s, pool, now_ms)) && !routes_serves(&d->routes, pool, c->handler)) {
                /* It waited through a reload that gave its name to another. */
                shard_again(s, c, now_ms);
                shard_reroute(s, now_ms);
                c = NULL;
        }
        return c;
}

struct claimed *dispatch_next(
        struct dispatch *d, uint32_t pool, uint32_t room, uint64_t now_ms, struct shard **ret_shard)
{
        struct dispatch_pool *p = &d->pools[pool];
        for (;;) {
                struct shard *s = p->shard == SHARD_SET_NONE ? NULL : d->shards[p->shard];
                struct claimed *c = s && p->burst_left ? take(d, s, pool, now_ms) : NULL;
                if (!c) {
                        if (!begin_burst(d, p, room))
                                return NULL;
                        continue;
                }
                p->burst_left--;
                p->fed++;
                p->was_urgent = !p->is_round;
                if (!p->is_round) {
                        p->urgent_left--;
                        end_urgency(d, s->number);
                }
                *ret_shard = s;
                return c;
        }
}
