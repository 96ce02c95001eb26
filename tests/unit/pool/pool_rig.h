/* pool_rig.h: a pool without processes, for tests: what it is told, and what it wants done. */
#ifndef QUIVER_TESTS_POOL_RIG_H
#define QUIVER_TESTS_POOL_RIG_H

/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "host/pool/pool.h"

#define RIG_TASKS 64
#define RIG_SEATS 8

struct rig {
        struct pool pool;
        struct pool_actions actions;
        uint64_t now_ms;
        struct pool_task tasks[RIG_TASKS];
        struct pool_view views[RIG_TASKS]; /* what the runner would show of each task */
        struct pool_action settled[RIG_TASKS];
        uint32_t settled_count[RIG_TASKS];
        struct ring_fault_view faults[RIG_SEATS]; /* of the next runner that dies */
};

/* A pool with one process of one seat, no limits but these. */
static inline struct pool_policy rig_policy(void)
{
        return (struct pool_policy){ .processes = 1,
                .threads = 1,
                .batch_max = 1,
                .grace_ms = 500,
                .abort_ms = 100,
                .init_ms = 1000,
                .backoff_ms = 100,
                .backoff_max_ms = 1600,
                .quarantine_after = 4,
                .ring_entries = 64 };
}

static inline void rig_open(struct rig *g, const struct pool_policy *policy)
{
        *g = (struct rig){ .now_ms = 10000 };
        for (size_t i = 0; i < RIG_TASKS; i++)
                g->tasks[i].task = (struct ring_task){ .id = "", .key = "", .handler = "" };
        pool_init(&g->pool, policy, 42);
}

static inline void rig_close(struct rig *g)
{
        pool_actions_free(&g->actions);
        pool_free(&g->pool);
}

static inline size_t index_of(const struct rig *g, const struct pool_task *task)
{
        return (size_t)(task - g->tasks);
}

static inline struct pool_runner *runner(struct rig *g, uint32_t slot)
{
        return &g->pool.runners[slot];
}

/* Where suspects run. */
static inline struct pool_runner *solo(struct rig *g)
{
        return runner(g, g->pool.runners_count - 1);
}

/* One event; remembers what was settled. */
static inline void step(struct rig *g, const struct pool_event *event)
{
        pool_step(&g->pool, event, g->now_ms, &g->actions);
        for (size_t i = 0; i < g->actions.count; i++) {
                const struct pool_action *a = &g->actions.list[i];
                if (a->kind != ACTION_SETTLE)
                        continue;
                g->settled[index_of(g, a->task)] = *a;
                g->settled_count[index_of(g, a->task)]++;
        }
}

/* What the last step wants: the n-th action of that kind, NULL if there are fewer. */
static inline const struct pool_action *wanted(const struct rig *g, enum pool_action_kind kind, uint32_t n)
{
        for (size_t i = 0; i < g->actions.count; i++)
                if (g->actions.list[i].kind == kind && !n--)
                        return &g->actions.list[i];
        return NULL;
}

static inline uint32_t count_wanted(const struct rig *g, enum pool_action_kind kind)
{
        uint32_t n = 0;
        while (wanted(g, kind, n))
                n++;
        return n;
}

/* The last step handed exactly this task to that runner, alone. */
static inline bool was_handed(const struct rig *g, size_t task, const struct pool_runner *to)
{
        const struct pool_action *a;
        for (uint32_t n = 0; (a = wanted(g, ACTION_HAND, n)); n++)
                if (a->runner == to && a->count == 1 && g->actions.batch[a->first] == &g->tasks[task])
                        return true;
        return false;
}

static inline void offer(struct rig *g, size_t task)
{
        struct pool_task *t = &g->tasks[task];
        g->views[task] = (struct pool_view){ .task = t };
        step(g, &(struct pool_event){ .kind = POOL_OFFERED, .task = t });
}

static inline void offer_range(struct rig *g, size_t first, size_t count)
{
        for (size_t i = first; i < first + count; i++)
                offer(g, i);
}

static inline void offer_suspect(struct rig *g, size_t task)
{
        g->tasks[task].is_suspect = true;
        offer(g, task);
}

static inline void ready(struct rig *g, struct pool_runner *r)
{
        step(g, &(struct pool_event){ .kind = POOL_READY, .runner = r });
}

static inline void ready_for_batches(struct rig *g, struct pool_runner *r)
{
        step(g, &(struct pool_event){ .kind = POOL_READY, .runner = r, .has_many = true });
}

/* The seat says that it runs the task now. */
static inline void start(struct rig *g, size_t task, uint32_t seat)
{
        g->views[task].is_started = true;
        g->views[task].seat = seat;
        g->views[task].started_ms = g->now_ms;
}

static inline void answer(struct rig *g, size_t task, enum outcome outcome)
{
        struct ring_reply reply = { .outcome = outcome, .error = "" };
        step(g, &(struct pool_event){ .kind = POOL_ANSWERED, .task = &g->tasks[task], .reply = &reply });
}

/* The same for a task that took so long. */
static inline void answer_after(struct rig *g, size_t task, enum outcome outcome, uint64_t took_ns)
{
        struct ring_reply reply = { .outcome = outcome, .error = "", .started_ns = 1, .ended_ns = 1 + took_ns };
        step(g, &(struct pool_event){ .kind = POOL_ANSWERED, .task = &g->tasks[task], .reply = &reply });
}

static inline void taken_back(struct rig *g, size_t task)
{
        step(g, &(struct pool_event){ .kind = POOL_TAKEN_BACK, .task = &g->tasks[task] });
}

static inline void cancel(struct rig *g, size_t task)
{
        step(g, &(struct pool_event){ .kind = POOL_CANCELLED, .task = &g->tasks[task] });
}

/* What the runner holds, oldest first, as pool would see it. */
static inline size_t collect(const struct rig *g, const struct pool_runner *r, struct pool_view *views)
{
        size_t count = 0;
        for (struct pool_task *t = r->handed; t; t = t->next)
                views[count++] = g->views[index_of(g, t)];
        return count;
}

static inline void seen(struct rig *g, struct pool_runner *r)
{
        struct pool_view views[RIG_TASKS];
        size_t count = collect(g, r, views);
        step(g, &(struct pool_event){ .kind = POOL_SEEN, .runner = r, .views = views, .views_count = count });
}

/* It died of that signal; 0: it left by itself. */
static inline void gone(struct rig *g, struct pool_runner *r, int signal)
{
        struct pool_view views[RIG_TASKS];
        struct death death = { .signal = signal, .seats = g->pool.policy.threads, .faults = g->faults };
        size_t count = collect(g, r, views);
        step(g, &(struct pool_event){
                        .kind = POOL_GONE, .runner = r, .views = views, .views_count = count, .death = &death });
        memset(g->faults, 0, sizeof(g->faults));
        for (size_t i = 0; i < count; i++)
                g->views[index_of(g, views[i].task)].is_started = false;
}

static inline void tick(struct rig *g)
{
        step(g, &(struct pool_event){ .kind = POOL_TICK });
}

static inline void tick_at(struct rig *g, uint64_t now_ms)
{
        g->now_ms = now_ms;
        tick(g);
}

static inline uint64_t due_ms(const struct rig *g)
{
        return pool_due_ms(&g->pool);
}

/* As a host does: sleeps until the pool is due. */
static inline void tick_when_due(struct rig *g)
{
        uint64_t at_ms = due_ms(g);
        assert_true(at_ms != UINT64_MAX);
        tick_at(g, at_ms > g->now_ms ? at_ms : g->now_ms);
}

/* The task reached this, once. */
static inline void assert_settled(const struct rig *g, size_t task, enum outcome outcome, enum blame_why why)
{
        assert_int_equal(g->settled_count[task], 1);
        assert_int_equal(g->settled[task].outcome, outcome);
        assert_int_equal(g->settled[task].why, why);
}

static inline void assert_unsettled(const struct rig *g, size_t task)
{
        assert_int_equal(g->settled_count[task], 0);
}

/* A pool whose one runner has `count` tasks, handed over and started, one a seat, with a timeout of 1 s. */
static inline void open_running(struct rig *g, const struct pool_policy *policy, size_t count)
{
        rig_open(g, policy);
        for (size_t i = 0; i < count; i++) {
                g->tasks[i].task.timeout_ms = 1000;
                offer(g, i);
        }
        ready(g, runner(g, 0));
        for (size_t i = 0; i < count; i++)
                start(g, i, (uint32_t)i);
}

#endif
