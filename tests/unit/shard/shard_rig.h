/* shard_rig.h: a shard without a store, for tests: the test plays the store, one reply at a time. */
#ifndef QUIVER_TESTS_SHARD_RIG_H
#define QUIVER_TESTS_SHARD_RIG_H

/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/shard/shard.h"

#define RIG_TTL_MS   10000
#define RIG_DRAIN_MS 5000
#define RIG_PER_KEY  4
#define RIG_WINDOW   64
/* The first seq of the lowest lane; those from 1 on are of the highest. */
#define LOW_FIRST     ((UINT64_C(1) << STORE_SEQ_LANE_SHIFT) * LANE_LOW + 1)
#define RIG_LANE_ROOM 16 /* so many of each lane find room whatever the others have */

struct rig {
        struct shard shard;
        struct shard_limits limits;
        struct routes routes; /* pools 0 and 1 serve handlers a and b; nobody serves others */
        uint64_t now_ms;
        struct store_acquire acquire;
        struct store_in_flight page;
        struct store_advance advance;
        struct store_release release;
        struct store_task tasks[STORE_CALL_TASKS]; /* what the next reply hands out */
        uint32_t tasks_count;
};

/* The pool serves that handler's tasks and no others; NULL: none at all. */
static inline void rig_serve(struct routes *routes, uint32_t pool, const char *handler)
{
        char *items[] = { (char *)handler };
        routes_serve(routes, pool, &(struct strings){ items, handler ? 1 : 0 });
}

static inline struct span rig_span(const char *text)
{
        return (struct span){ text, strlen(text) };
}

static inline void rig_open(struct rig *g)
{
        static const uint8_t nonce[STORE_NONCE_SIZE] = { 1, 2, 3 };
        *g = (struct rig){ .now_ms = 100000 };
        g->limits = (struct shard_limits){ .ttl_ms = RIG_TTL_MS,
                .drain_ms = RIG_DRAIN_MS,
                .gather_ms = 10,
                .ring_costs = true,
                .window_tasks = RIG_WINDOW,
                .window_bytes = 1u << 20 };
        rig_serve(&g->routes, routes_add_pool(&g->routes), "a");
        rig_serve(&g->routes, routes_add_pool(&g->routes), "b");
        shard_init(&g->shard, 7, &g->limits, &g->routes, RIG_PER_KEY);
        shard_assign(&g->shard, nonce, 40, false);
}

static inline void rig_close(struct rig *g)
{
        shard_free(&g->shard);
        routes_free(&g->routes);
}

/* One more task for the next reply. */
static inline struct store_task *hand(struct rig *g, uint64_t seq, const char *key, const char *handler)
{
        struct store_task *t = &g->tasks[g->tasks_count++];
        *t = (struct store_task){ .seq = seq,
                .key = rig_span(key),
                .envelope = { .id = SPAN_TEXT("t-7"), .handler = rig_span(handler), .payload = SPAN_TEXT("x") } };
        return t;
}

static inline enum shard_call next_call(const struct rig *g)
{
        return shard_next_call(&g->shard, true, g->now_ms);
}

/* --- acquire and pages -----------------------------------------------------------------------------------------------
 */

static inline void send_acquire(struct rig *g)
{
        assert_int_equal(next_call(g), SHARD_CALL_ACQUIRE);
        shard_fill_acquire(&g->shard, &g->acquire, g->now_ms);
        assert_int_equal(next_call(g), SHARD_CALL_NONE);
}

static inline void reply_acquire(struct rig *g, enum store_grant grant, bool has_more)
{
        g->acquire.grant = grant;
        g->acquire.call = 100;
        g->acquire.left_ms = RIG_TTL_MS;
        g->acquire.next_due_ms = STORE_NEVER;
        g->acquire.page = (struct store_page){ g->tasks, g->tasks_count, has_more };
        shard_acquired(&g->shard, &g->acquire, g->now_ms);
        g->tasks_count = 0;
}

static inline void own(struct rig *g)
{
        send_acquire(g);
        reply_acquire(g, STORE_GRANTED, false);
        assert_int_equal(g->shard.state, SHARD_OWNED);
}

static inline void send_page(struct rig *g)
{
        assert_int_equal(next_call(g), SHARD_CALL_PAGE);
        shard_fill_page(&g->shard, &g->page, g->now_ms);
}

static inline void reply_page(struct rig *g, enum store_verdict verdict, bool has_more)
{
        g->page.verdict = verdict;
        g->page.page = (struct store_page){ g->tasks, g->tasks_count, has_more };
        shard_paged(&g->shard, &g->page);
        g->tasks_count = 0;
}

/* --- advance and release ---------------------------------------------------------------------------------------------
 */

static inline void send_advance(struct rig *g)
{
        assert_int_equal(shard_next_call(&g->shard, false, g->now_ms), SHARD_CALL_ADVANCE);
        shard_fill_advance(&g->shard, &g->advance, g->now_ms);
}

static inline void reply_advance(struct rig *g, enum store_verdict verdict)
{
        g->advance.verdict = verdict;
        g->advance.tasks = g->tasks;
        g->advance.tasks_count = g->tasks_count;
        g->advance.left_ms = RIG_TTL_MS;
        g->advance.next_due_ms = STORE_NEVER;
        shard_advanced(&g->shard, &g->advance, g->now_ms);
        g->tasks_count = 0;
}

static inline void send_release(struct rig *g)
{
        assert_int_equal(next_call(g), SHARD_CALL_RELEASE);
        shard_fill_release(&g->shard, &g->release, g->now_ms);
}

/* Rings the bell, so that the next call brings what was handed out. */
static inline void claim(struct rig *g)
{
        g->shard.has_work = true;
        send_advance(g);
        reply_advance(g, STORE_OK);
}

/* What the call under way says about a task; NULL: nothing. */
static inline const struct store_outcome *said(const struct rig *g, uint64_t seq)
{
        for (uint32_t i = 0; i < g->advance.outcomes_count; i++)
                if (g->advance.outcomes[i].task.seq == seq)
                        return &g->advance.outcomes[i];
        return NULL;
}

static inline void assert_said(const struct rig *g, uint64_t seq, enum store_outcome_kind kind)
{
        const struct store_outcome *o = said(g, seq);
        assert_non_null(o);
        assert_int_equal(o->kind, kind);
}

/* --- running ---------------------------------------------------------------------------------------------------------
 */

/* The next for that pool, of the highest lane that has one. */
static inline struct claimed *next_of(struct shard *s, uint32_t pool, uint64_t now_ms)
{
        struct claimed *c = NULL;
        for (unsigned lane = 0; lane < LANES && !c; lane++)
                c = shard_next(s, pool, (enum lane)lane, now_ms);
        return c;
}

static inline struct claimed *next(struct rig *g)
{
        if (!window_marks(&g->shard.window, 0))
                (void)shard_mark_next(&g->shard, 0, g->now_ms);
        return next_of(&g->shard, 0, g->now_ms);
}

/* The next task of pool 0 must be this one. */
static inline struct claimed *start(struct rig *g, uint64_t seq)
{
        struct claimed *c = next(g);
        assert_non_null(c);
        assert_int_equal(c->seq, seq);
        g->shard.starts++; /* as who takes it does */
        return c;
}

static inline void end_as(struct rig *g, struct claimed *c, enum store_outcome_kind kind)
{
        shard_ended(&g->shard, c, pending_outcome_new(kind, COST_NONE, ""), g->now_ms);
}

static inline void run(struct rig *g, uint64_t seq)
{
        end_as(g, start(g, seq), STORE_DONE);
}

#endif
