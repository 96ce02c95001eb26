#include "host/handler/dispatch.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "host/limit/limit.h"

/* An advance that committed at most this many outcomes makes its shard urgent; an urgent shard gives at most as many
 * tasks. */
#define URGENT_TASKS_MAX 4u
/* A pool's room is divided among at least this many shards; urgent shards together get one share. */
#define SHARDS_AT_LEAST 4
/* One in this many tasks that a lane gives is a lower lane's, if that lane has one. */
#define LANE_TURNS 64u

void dispatch_init(struct dispatch *d, uint32_t shards_count)
{
        *d = (struct dispatch){ .shards_count = shards_count };
        d->shards = memory_zero(shards_count, sizeof(struct shard *));
        d->by_shard = memory_zero(shards_count, sizeof(*d->by_shard));
        for (unsigned lane = 0; lane < LANES; lane++)
                shard_set_init(&d->ready[lane], shards_count);
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
        d->routes.per_key[pool] = 0;
}

void dispatch_set_per_key(struct dispatch *d, uint32_t pool, uint32_t per_key)
{
        d->routes.per_key[pool] = per_key;
}

void dispatch_serve(struct dispatch *d, uint32_t pool, const struct strings *names, uint64_t now_ms)
{
        routes_serve(&d->routes, pool, names);
        for (uint32_t i = 0; i < d->shards_count; i++)
                shard_reroute(d->shards[i], now_ms);
}

/* Wakes the keys that wait for the pool in the store if it opens. */
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
        /* The next turn finds out whether the pool is open again. */
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
        bool has_names = false;
        shard_set_join(&d->suspects, changed);
        for (uint32_t i = 0; (i = shard_set_from(changed, i)) != SHARD_SET_NONE; i++) {
                has_names |= d->shards[i]->names.count > 0;
                for (unsigned lane = 0; lane < LANES; lane++)
                        if (window_has_ready_of(&d->shards[i]->window, (enum lane)lane))
                                shard_set_add(&d->ready[lane], i);
        }
        for (uint32_t pool = 0; has_names && pool < d->routes.pools; pool++)
                d->pools[pool].may_be_stored = true;
}

/* --- tasks that cannot start here --- */

static void return_from(struct dispatch *d, const struct shard_set *set, uint32_t pool, uint64_t now_ms)
{
        for (uint32_t i = 0; (i = shard_set_from(set, i)) != SHARD_SET_NONE; i++) {
                const struct window *w = &d->shards[i]->window;
                if (window_has_next(w, pool) || window_has_suspect(w, pool))
                        shard_reroute(d->shards[i], now_ms);
        }
}

/* No generation serves this pool any more: its tasks wait in the store or go to another pool. */
static void return_unserved(struct dispatch *d, uint32_t pool, uint64_t now_ms)
{
        for (unsigned lane = 0; lane < LANES; lane++)
                return_from(d, &d->ready[lane], pool, now_ms);
        return_from(d, &d->suspects, pool, now_ms);
}

/* The pool takes no tasks for now.  In full windows its tasks are returned to the store, so that other pools find
 * theirs. */
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

/* Has the start of one suspect recorded, unless another suspect of the pool has its start recorded or requested on any
 * shard. */
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

bool dispatch_has_waiting(const struct dispatch *d, uint32_t pool)
{
        for (uint32_t i = 0; i < d->shards_count; i++) {
                const struct window *w = &d->shards[i]->window;
                if (!w->count)
                        continue;
                if (window_has_next(w, pool) || window_has_suspect(w, pool))
                        return true;
                for (unsigned lane = 0; lane < LANES; lane++)
                        for (const struct window_key *key = w->limited[lane].first; key; key = key->ready_next)
                                if (key->first->pool == pool)
                                        return true;
        }
        return false;
}

bool dispatch_has_stored(struct dispatch *d, uint32_t pool)
{
        if (!d->pools[pool].may_be_stored)
                return false;
        for (uint32_t i = 0; i < d->shards_count; i++) {
                const struct shard *s = d->shards[i];
                if (s->names.count && s->state == SHARD_OWNED && shard_names_has(&s->names, s->routes, pool))
                        return true;
        }
        d->pools[pool].may_be_stored = false;
        return false;
}

void dispatch_look_at_limits(struct dispatch *d, uint64_t now_ms)
{
        struct limits *limits = d->routes.limits;
        if (!limits || !d->shards_count || !limits_pass_is_due(limits, now_ms))
                return;
        limits_pass_begin(limits);
        /* Each pass begins at another shard, so that no shard always comes last. */
        for (unsigned lane = 0; lane < LANES; lane++)
                for (uint32_t i = 0; i < d->shards_count; i++) {
                        struct shard *s = d->shards[(d->next_limited + i) % d->shards_count];
                        if (!s->window.limited[lane].first)
                                continue;
                        shard_look_at_limits(s, lane, now_ms);
                        /* These tasks start in this turn, because their tokens expire soon. */
                        if (window_has_ready_of(&s->window, (enum lane)lane))
                                shard_set_add(&d->ready[lane], s->number);
                }
        d->next_limited = (d->next_limited + 1) % d->shards_count;
        if (!limits_pass_end(limits, now_ms))
                return;
        for (uint32_t i = 0; i < d->shards_count; i++) {
                struct shard *s = d->shards[(d->next_limited + i) % d->shards_count];
                if (s->names.count || s->names.is_partial)
                        shard_look_at_names(s);
        }
}

/* --- a turn of the loop --- */

/* On an urgent shard a key runs one task per round trip to the store, so it goes first: otherwise the key would mostly
 * wait for its turn.  With hardly any room, urgent shards get only every other place, so that the other shards are
 * served too. */
static uint32_t urgent_share(const struct dispatch_pool *p, uint32_t room)
{
        if (room >= SHARDS_AT_LEAST)
                return room / SHARDS_AT_LEAST;
        return p->was_urgent ? 0 : 1;
}

void dispatch_begin(
        struct dispatch *d, uint32_t pool, enum dispatch_state state, const uint32_t room[LANES], uint64_t now_ms)
{
        struct dispatch_pool *p = &d->pools[pool];
        struct dispatch_pool turn = {
                .was_urgent = p->was_urgent, .is_paused = p->is_paused, .may_be_stored = p->may_be_stored
        };
        memcpy(turn.next_shard, p->next_shard, sizeof(turn.next_shard));
        memcpy(turn.given, p->given, sizeof(turn.given));
        *p = turn;
        p->burst.shard = SHARD_SET_NONE;
        set_state(d, pool, p->is_paused ? ROUTE_SHUT : state == DISPATCH_OPEN ? ROUTE_OPEN : ROUTE_DOWN);
        if (state == DISPATCH_GONE)
                return_unserved(d, pool, now_ms);
        else if (state == DISPATCH_DOWN)
                return_waiting(d, pool, now_ms);
        /* The highest lane has the most room. */
        p->is_over = p->is_paused || state == DISPATCH_GONE || !room[LANE_HIGH];
        if (p->is_over)
                return;
        mark_suspect(d, pool, now_ms);
        p->urgent = d->urgent;
        p->urgent_left = urgent_share(p, room[LANE_HIGH]);
}

/* The shard's next task of `lane` for `pool`. */
static struct claimed *take(struct dispatch *d, uint32_t shard, uint32_t pool, enum lane lane, uint64_t now_ms)
{
        struct shard *s = d->shards[shard];
        struct claimed *c = NULL;
        while (s->window.count && (c = shard_next(s, pool, lane, now_ms)) &&
                !routes_serves(&d->routes, pool, c->handler)) {
                /* A reload gave the task's name to another pool while it waited. */
                shard_again(s, c, now_ms);
                shard_reroute(s, now_ms);
                c = NULL;
        }
        return c;
}

/* Takes a task from an urgent shard.  Each urgent shard is asked once per lane and turn. */
static struct claimed *take_urgent(struct dispatch *d, uint32_t pool, enum lane lane, uint64_t now_ms)
{
        struct dispatch_pool *p = &d->pools[pool];
        if (p->urgent_lane != lane) {
                p->urgent_lane = lane;
                p->urgent = d->urgent;
        }
        while (p->urgent && p->urgent_left) {
                uint32_t shard = (uint32_t)(p->urgent - d->by_shard);
                p->urgent = p->urgent->next;
                struct claimed *c = take(d, shard, pool, lane, now_ms);
                /* What it has ready may all be for another pool. */
                if (c || !window_has_ready(&d->shards[shard]->window) || !shard_is_held(d->shards[shard]))
                        end_urgency(d, shard);
                if (!c)
                        continue;
                p->burst.shard = shard;
                p->burst.left = min_u64(p->urgent_left, URGENT_TASKS_MAX);
                p->burst.is_urgent = true;
                return c;
        }
        return NULL;
}

/* Takes a task from the shards in turn.  With little room a shard gives one task at a time, so that all shards get a
 * turn.  With much room it gives several: tasks that start together end together, and take one call to the store. */
static struct claimed *take_round(
        struct dispatch *d, uint32_t pool, enum lane lane, const uint32_t room[LANES], uint64_t now_ms)
{
        struct dispatch_pool *p = &d->pools[pool];
        struct shard_set *ready = &d->ready[lane];
        if (!p->burst_max)
                p->burst_max = 1 + room[lane] / SHARDS_AT_LEAST;
        for (uint32_t left = shard_set_count(ready); left; left--) {
                uint32_t shard = shard_set_round(ready, p->next_shard[lane]);
                p->next_shard[lane] = shard + 1;
                struct claimed *c = take(d, shard, pool, lane, now_ms);
                if (!window_has_ready_of(&d->shards[shard]->window, lane))
                        shard_set_remove(ready, shard);
                if (!c)
                        continue;
                p->burst.shard = shard;
                p->burst.left = p->burst_max;
                p->burst.is_urgent = false;
                return c;
        }
        p->is_dry[lane] = true;
        return NULL;
}

/* Takes a task of a lower lane if its turn has come.  The lanes in between have turns of their own. */
static struct claimed *take_lower(
        struct dispatch *d, uint32_t pool, enum lane lane, const uint32_t room[LANES], uint64_t now_ms)
{
        struct dispatch_pool *p = &d->pools[pool];
        struct claimed *c = NULL;
        if (p->given[lane] < LANE_TURNS - 1)
                return NULL;
        for (unsigned lower = lane + 1; lower < LANES && !c; lower++) {
                if (!room[lower] || p->is_dry[lower])
                        continue;
                c = take_lower(d, pool, (enum lane)lower, room, now_ms);
                if (c)
                        break;
                c = take_round(d, pool, (enum lane)lower, room, now_ms);
                if (!c)
                        continue;
                p->burst.lane = (enum lane)lower;
                p->burst.left = 1;
                p->given[lower]++;
        }
        if (c)
                p->given[lane] = 0;
        return c;
}

static bool has_lower(const struct dispatch *d, const struct dispatch_pool *p, enum lane lane)
{
        for (unsigned lower = lane + 1; lower < LANES; lower++)
                if (!p->is_dry[lower] && shard_set_count(&d->ready[lower]))
                        return true;
        return false;
}

/* Chooses the shard and lane that give the next tasks, and returns the first of them. */
static struct claimed *begin_burst(struct dispatch *d, uint32_t pool, const uint32_t room[LANES], uint64_t now_ms)
{
        struct dispatch_pool *p = &d->pools[pool];
        for (unsigned i = 0; i < LANES; i++) {
                enum lane lane = (enum lane)i;
                if (!room[lane] || p->is_dry[lane])
                        continue;
                struct claimed *c = take_lower(d, pool, lane, room, now_ms);
                if (c) {
                        p->burst.turn = lane;
                        return c;
                }
                c = take_urgent(d, pool, lane, now_ms);
                if (!c)
                        c = take_round(d, pool, lane, room, now_ms);
                if (!c)
                        continue;
                p->burst.lane = p->burst.turn = lane;
                if (has_lower(d, p, lane))
                        p->burst.left =
                                min_u64(p->burst.left, LANE_TURNS - 1 - min_u64(p->given[lane], LANE_TURNS - 2));
                return c;
        }
        return NULL;
}

struct claimed *dispatch_next(
        struct dispatch *d, uint32_t pool, const uint32_t room[LANES], uint64_t now_ms, struct shard **ret_shard)
{
        struct dispatch_pool *p = &d->pools[pool];
        struct claimed *c = NULL;
        if (p->is_over)
                return NULL;
        if (p->burst.shard != SHARD_SET_NONE && p->burst.left && room[p->burst.lane])
                c = take(d, p->burst.shard, pool, p->burst.lane, now_ms);
        if (!c)
                c = begin_burst(d, pool, room, now_ms);
        if (!c)
                return NULL;
        p->burst.left--;
        p->given[p->burst.turn] += p->burst.turn == p->burst.lane;
        p->was_urgent = p->burst.is_urgent;
        p->urgent_left -= p->burst.is_urgent;
        c->pool_task.lane = p->burst.turn;
        c->pool_task.is_urgent = p->burst.is_urgent;
        *ret_shard = d->shards[p->burst.shard];
        return c;
}

struct claimed *dispatch_follow(
        struct dispatch *d, uint32_t pool, struct shard *shard, const struct claimed *before, uint64_t now_ms)
{
        struct dispatch_pool *p = &d->pools[pool];
        struct claimed *c = shard_follow(shard, before, now_ms);
        if (!c)
                return NULL;
        c->pool_task.lane = before->pool_task.lane;
        c->pool_task.is_urgent = before->pool_task.is_urgent;
        /* A run of several tasks counts as that many starts, for the lower lanes too. */
        p->given[p->burst.turn] += p->burst.turn == p->burst.lane;
        return c;
}

/* --- tasks for other hosts' seats --- */

struct claimed *dispatch_next_to_lend(
        struct dispatch *d, uint32_t pool, uint64_t before_ms, uint64_t now_ms, struct shard **ret_shard)
{
        struct dispatch_pool *p = &d->pools[pool];
        if (p->is_paused)
                return NULL;
        for (unsigned lane = 0; lane < LANES; lane++)
                for (uint32_t left = shard_set_count(&d->ready[lane]); left; left--) {
                        uint32_t number = shard_set_round(&d->ready[lane], p->next_shard[lane]);
                        struct shard *s = d->shards[number];
                        p->next_shard[lane] = number + 1;
                        struct claimed *c =
                                s->window.count ? shard_next_to_lend(s, pool, lane, before_ms, now_ms) : NULL;
                        if (!c)
                                continue;
                        c->pool_task.lane = (enum lane)lane;
                        *ret_shard = s;
                        return c;
                }
        return NULL;
}

uint32_t dispatch_count_to_lend(
        const struct dispatch *d, uint32_t pool, unsigned lanes, uint64_t before_ms, uint32_t max)
{
        uint32_t count = 0;
        if (d->pools[pool].is_paused)
                return 0;
        for (unsigned lane = 0; lane < lanes; lane++)
                for (uint32_t i = 0; (i = shard_set_from(&d->ready[lane], i)) != SHARD_SET_NONE && count < max; i++) {
                        const struct shard *s = d->shards[i];
                        if (s->window.count && s->state == SHARD_OWNED && !s->is_to_leave)
                                count +=
                                        window_count_to_lend(&s->window, pool, (enum lane)lane, before_ms, max - count);
                }
        return count;
}
