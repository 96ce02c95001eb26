/* pool_hand.c: decides which runner gets the next task, and when another runner is started. */
#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "host/pool/pool_private.h"

/* A runner's ring holds about this much work: enough not to run dry between two iterations of the loop, and not so much
 * that tasks wait which another runner could start. */
#define AHEAD_NS (2 * NS_PER_MS)

static void batch_put(struct pool_actions *actions, struct pool_task *task)
{
        if (actions->batch_count == actions->batch_room) {
                size_t room = actions->batch_room ? actions->batch_room * 2 : 256;
                struct pool_task **batch = memory_resize(actions->batch, room * sizeof(void *));
                actions->batch = batch;
                actions->batch_room = room;
        }
        actions->batch[actions->batch_count++] = task;
}

static uint32_t batch_max(const struct pool *pool)
{
        return pool->has_many && pool->policy.batch_max > 1 ? pool->policy.batch_max : 1;
}

uint32_t pool_run_max(const struct pool *pool)
{
        return pool->policy.is_same_key && pool->state != POOL_PROBING ? batch_max(pool) : 1;
}

/* How many tasks one runner may hold. */
static uint32_t depth(const struct pool *pool)
{
        uint64_t per_seat = pool->average_ns ? AHEAD_NS / pool->average_ns : 1;
        if (per_seat < batch_max(pool))
                per_seat = batch_max(pool);
        if (per_seat < 1)
                per_seat = 1;
        uint64_t tasks = per_seat * pool->policy.threads;
        return (uint32_t)min_u64(tasks, pool->policy.ring_entries);
}

uint32_t pool_room(const struct pool *pool, enum lane lane)
{
        if (pool->is_draining || pool->state == POOL_PAUSED || pool->state == POOL_QUARANTINED)
                return 0;
        uint32_t most = depth(pool) * pool->policy.processes;
        uint32_t before = 0;
        for (unsigned i = 0; i <= lane; i++)
                before += pool->waiting_of[i];
        return before < most && pool->suspects_count < 15 + batch_max(pool) ? most - before : 0;
}

bool pool_has_room(const struct pool *pool)
{
        return pool_room(pool, LANE_HIGH) > 0;
}

static bool takes_tasks(const struct pool *pool, const struct pool_runner *runner)
{
        const struct pool_policy *p = &pool->policy;
        return runner->state == RUNNER_READY && !runner->shut_ms && !pool_is_surplus(pool, runner) &&
               !(p->max_tasks && runner->handed_total >= p->max_tasks);
}

uint32_t pool_free_seats(const struct pool *pool)
{
        uint32_t seats = 0;
        if (!pool_has_room(pool))
                return 0;
        for (uint32_t i = 0; i < pool->runners_count; i++) {
                const struct pool_runner *r = &pool->runners[i];
                uint32_t most = pool->policy.threads * batch_max(pool);
                if (!r->is_solo && takes_tasks(pool, r) && r->in_flight < most)
                        seats += most - r->in_flight;
        }
        return seats > pool->waiting_count ? seats - pool->waiting_count : 0;
}

uint32_t pool_spare_seats(const struct pool *pool)
{
        uint32_t seats = 0;
        if (pool->state != POOL_OPEN || pool->is_draining)
                return 0;
        for (uint32_t i = 0; i < pool->runners_count; i++) {
                const struct pool_runner *r = &pool->runners[i];
                bool is_to_come = r->state == RUNNER_NONE || r->state == RUNNER_STARTING;
                if (r->is_solo || pool_is_surplus(pool, r) || !(is_to_come || takes_tasks(pool, r)))
                        continue;
                if (r->in_flight < pool->policy.threads)
                        seats += pool->policy.threads - r->in_flight;
        }
        return seats > pool->waiting_count ? seats - pool->waiting_count : 0;
}

uint32_t pool_runners_for_more(const struct pool *pool)
{
        uint32_t started = 0;
        if (!pool_has_room(pool))
                return 0;
        for (uint32_t i = 0; i < pool->runners_count; i++) {
                if (pool->runners[i].state == RUNNER_STARTING && !pool->runners[i].is_solo)
                        return 0;
                started += pool->runners[i].state != RUNNER_NONE && !pool->runners[i].is_solo;
        }
        return started < pool->policy.processes ? started + 1 : 0;
}

/* The least busy runner that holds fewer than `limit` tasks and has room for so many large ones, or NULL. */
static struct pool_runner *choose(const struct pool *pool, uint32_t limit, uint32_t large)
{
        struct pool_runner *best = NULL;
        for (uint32_t i = 0; i < pool->runners_count; i++) {
                struct pool_runner *r = &pool->runners[i];
                if (r->is_solo || !takes_tasks(pool, r) || r->in_flight >= limit || r->large + large > RING_SPILLS)
                        continue;
                if (!best || r->in_flight < best->in_flight)
                        best = r;
        }
        return best;
}

/* Makes the pool examine the runner's seats at `at_ms` or earlier. */
static void look_by(struct pool_runner *runner, uint64_t at_ms)
{
        if (!runner->look_ms || at_ms < runner->look_ms)
                runner->look_ms = at_ms;
}

static void hand(
        struct pool *pool, struct pool_runner *runner, uint32_t count, uint64_t now_ms, struct pool_actions *actions)
{
        struct pool_action *action = pool_act(actions, ACTION_HAND, runner);
        action->first = actions->batch_count;
        action->count = count;
        for (uint32_t i = 0; i < count; i++) {
                struct pool_task *task = runner->is_solo ? pool->suspects : pool->waiting;
                assert(task); /* the caller has counted them */
                pool_unqueue(pool, task);
                task->runner = runner;
                task->handed_ms = now_ms;
                pool_append(&runner->handed, &runner->handed_last, task);
                runner->in_flight++;
                runner->large += task->is_large;
                runner->handed_total++;
                batch_put(actions, task);
                if (task->task.timeout_ms)
                        look_by(runner, now_ms + task->task.timeout_ms);
        }
        if (pool->policy.stall_ms)
                look_by(runner, now_ms + pool->policy.stall_ms);
        if (pool->policy.init_ms)
                look_by(runner, now_ms + pool->policy.init_ms);
        if (runner->in_flight > pool->policy.threads)
                look_by(runner, now_ms + POOL_STUCK_MS);
}

/* Number of tasks in the first suspect's run.  POOL_FULL gives back what does not fit into the ring. */
static uint32_t suspects_count(const struct pool *pool)
{
        uint32_t count = 1;
        const struct pool_task *task = pool->suspects;
        while ((task = task->next) && task->is_follower)
                count++;
        return count;
}

static bool batch_is_due(const struct pool *pool, uint64_t now_ms)
{
        return pool->waiting_count >= batch_max(pool) ||
               now_ms >= pool->waiting->offered_ms + pool->policy.batch_wait_ms;
}

static uint32_t in_flight(const struct pool *pool)
{
        uint32_t sum = 0;
        for (uint32_t i = 0; i < pool->runners_count; i++)
                sum += pool->runners[i].in_flight;
        return sum;
}

bool pool_has_tasks(const struct pool *pool)
{
        return pool->waiting_count || pool->suspects_count || in_flight(pool);
}

/* After a pause a single task runs first, as a probe. */
static bool may_hand(const struct pool *pool)
{
        return pool->state != POOL_PROBING || !in_flight(pool);
}

/* How many waiting tasks make the next batch: at most `most`, no more large ones than the ring has room for, and whole
 * runs only, unless one run alone is too large. */
static uint32_t batch_count(const struct pool *pool, uint32_t most)
{
        uint32_t count = 0;
        uint32_t whole = 0;
        uint32_t large = 0;
        const struct pool_task *task = pool->waiting;
        for (; task && count < most; task = task->next, count++) {
                large += task->is_large;
                if (large > RING_SPILLS)
                        break;
                if (!task->is_follower)
                        whole = count;
        }
        return task && task->is_follower && whole ? whole : count;
}

/* How many of the first `count` waiting tasks need a spill. */
static uint32_t large_count(const struct pool *pool, uint32_t count)
{
        uint32_t large = 0;
        for (const struct pool_task *task = pool->waiting; count; task = task->next, count--)
                large += task->is_large;
        return large;
}

static void hand_waiting(struct pool *pool, uint64_t now_ms, struct pool_actions *actions)
{
        uint32_t limit = depth(pool);
        uint32_t most = batch_max(pool);
        if (most > limit)
                most = limit;
        while (pool->waiting && batch_is_due(pool, now_ms) && may_hand(pool)) {
                uint32_t count = batch_count(pool, pool->state == POOL_PROBING ? 1 : most);
                /* The runner must have room for the whole batch: a batch is answered task by task, and otherwise each
                 * answer would make room for a batch of one. */
                struct pool_runner *runner = choose(pool, limit - (count - 1), large_count(pool, count));
                if (!runner)
                        return;
                hand(pool, runner, count, now_ms, actions);
                /* The rest of a run that was too large, or of a probe, starts in no other call. */
                pool_give_back_followers(pool, pool->waiting, actions);
        }
}

static void spawn(struct pool_runner *runner, uint64_t now_ms, struct pool_actions *actions)
{
        runner->state = RUNNER_STARTING;
        runner->in_flight = runner->large = 0;
        runner->shut_ms = 0;
        runner->handed_total = runner->answered_total = 0;
        runner->since_ms = runner->idle_ms = now_ms;
        runner->look_ms = runner->aborted_ms = 0;
        runner->why = BLAME_NOTHING;
        (void)pool_act(actions, ACTION_SPAWN, runner);
}

static void spawn_needed(struct pool *pool, uint64_t now_ms, struct pool_actions *actions)
{
        if (now_ms < pool->spawn_ms)
                return;
        /* Tasks that wait although a runner has room (for a full batch, for a probe) need no further runner. */
        bool has_room = choose(pool, depth(pool), pool->waiting && pool->waiting->is_large);
        uint32_t starting = 0;
        for (uint32_t i = 0; i < pool->runners_count; i++)
                starting += pool->runners[i].state == RUNNER_STARTING && !pool->runners[i].is_solo;
        for (uint32_t i = 0; i < pool->runners_count; i++) {
                struct pool_runner *r = &pool->runners[i];
                if (r->state != RUNNER_NONE)
                        continue;
                if (r->is_solo && pool->suspects)
                        spawn(r, now_ms, actions);
                if (r->is_solo || has_room || pool_is_surplus(pool, r) ||
                        pool->waiting_count <= starting * pool->policy.threads)
                        continue;
                spawn(r, now_ms, actions);
                starting++;
        }
}

/* A quarantined pool that drains must give its tasks back, because it never runs them. */
void pool_give_up(struct pool *pool, struct pool_actions *actions)
{
        struct pool_task *task;
        while ((task = pool->waiting ? pool->waiting : pool->suspects)) {
                pool_unqueue(pool, task);
                pool_give_back(actions, task, BLAME_SHUTDOWN);
        }
}

void pool_warm(struct pool *pool, uint32_t count, uint64_t now_ms, struct pool_actions *actions)
{
        for (uint32_t i = 0; i < count && i < pool->policy.processes; i++)
                if (pool->runners[i].state == RUNNER_NONE)
                        spawn(&pool->runners[i], now_ms, actions);
}

void pool_dispatch(struct pool *pool, uint64_t now_ms, struct pool_actions *actions)
{
        if (pool->state == POOL_QUARANTINED && pool->is_draining)
                pool_give_up(pool, actions);
        if (pool->state == POOL_QUARANTINED)
                return;
        if (pool->state == POOL_PAUSED) {
                if (now_ms < pool->paused_ms)
                        return;
                pool->state = POOL_PROBING;
        }
        struct pool_runner *solo = &pool->runners[pool->runners_count - 1];
        if (pool->suspects && takes_tasks(pool, solo) && !solo->handed_total && may_hand(pool))
                hand(pool, solo, suspects_count(pool), now_ms, actions);
        if (pool->waiting)
                hand_waiting(pool, now_ms, actions);
        if (pool->waiting || pool->suspects)
                spawn_needed(pool, now_ms, actions);
}
