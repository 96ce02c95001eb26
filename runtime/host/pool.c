#include "host/pool.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "host/pool_parts.h"

/* A runner's queue holds about this much work, so that it neither starves between two looks of the loop nor hoards
 * tasks that another could start. */
#define AHEAD_NS (2 * NS_PER_MS)

int pool_init(struct pool *pool, const struct pool_policy *policy, uint64_t seed)
{
        uint32_t count = policy->processes + 1;
        struct pool_runner *runners = calloc(count, sizeof(*runners));
        if (!runners)
                return -ENOMEM;
        for (uint32_t i = 0; i < count; i++)
                runners[i].slot = i;
        runners[policy->processes].is_solo = true;
        *pool = (struct pool){ .policy = *policy, .runners = runners, .runners_count = count, .random = seed | 1 };
        return 0;
}

void pool_free(struct pool *pool)
{
        free(pool->runners);
        pool->runners = NULL;
}

void pool_actions_free(struct pool_actions *actions)
{
        free(actions->list);
        free(actions->batch);
        *actions = (struct pool_actions){ 0 };
}

void pool_add_generation(struct pool *pool, struct generation *generation)
{
        generation->older = pool->generations;
        pool->generations = generation;
}

void pool_lift(struct pool *pool)
{
        if (pool->state == POOL_QUARANTINED)
                pool->state = POOL_OPEN;
        pool->failures = 0;
        pool->spawn_ms = 0;
}

bool pool_is_idle(const struct pool *pool)
{
        for (uint32_t i = 0; i < pool->runners_count; i++)
                if (pool->runners[i].in_flight)
                        return false;
        return !pool->waiting_count && !pool->suspects_count;
}

bool pool_is_empty(const struct pool *pool)
{
        for (uint32_t i = 0; i < pool->runners_count; i++)
                if (pool->runners[i].state != RUNNER_NONE)
                        return false;
        return pool_is_idle(pool);
}

/* --- actions and lists -----------------------------------------------------------------------------------------------
 */

struct pool_action *pool_act(struct pool_actions *actions, enum pool_action_kind kind, struct pool_runner *runner)
{
        if (actions->count == actions->room) {
                size_t room = actions->room ? actions->room * 2 : 64;
                struct pool_action *list = realloc(actions->list, room * sizeof(*list));
                if (!list)
                        abort();
                actions->list = list;
                actions->room = room;
        }
        struct pool_action *action = &actions->list[actions->count++];
        *action = (struct pool_action){ .kind = kind, .runner = runner };
        return action;
}

static void batch_put(struct pool_actions *actions, struct pool_task *task)
{
        if (actions->batch_count == actions->batch_room) {
                size_t room = actions->batch_room ? actions->batch_room * 2 : 256;
                struct pool_task **batch = realloc(actions->batch, room * sizeof(void *));
                if (!batch)
                        abort();
                actions->batch = batch;
                actions->batch_room = room;
        }
        actions->batch[actions->batch_count++] = task;
}

static void list_append(struct pool_task **first, struct pool_task **last, struct pool_task *task)
{
        task->next = NULL;
        task->prev = *last;
        if (*last)
                (*last)->next = task;
        else
                *first = task;
        *last = task;
}

static void list_prepend(struct pool_task **first, struct pool_task **last, struct pool_task *task)
{
        task->prev = NULL;
        task->next = *first;
        if (*first)
                (*first)->prev = task;
        else
                *last = task;
        *first = task;
}

static void list_remove(struct pool_task **first, struct pool_task **last, struct pool_task *task)
{
        if (task->prev)
                task->prev->next = task->next;
        else
                *first = task->next;
        if (task->next)
                task->next->prev = task->prev;
        else
                *last = task->prev;
        task->prev = task->next = NULL;
}

void pool_unhand(struct pool_task *task, uint64_t now_ms)
{
        struct pool_runner *runner = task->runner;
        list_remove(&runner->handed, &runner->handed_last, task);
        task->runner = NULL;
        task->ticket = 0;
        if (!--runner->in_flight)
                runner->idle_ms = now_ms;
}

void pool_requeue(struct pool *pool, struct pool_task *task)
{
        task->stopped_ms = 0;
        if (task->is_suspect) {
                list_prepend(&pool->suspects, &pool->suspects_last, task);
                pool->suspects_count++;
        } else {
                list_prepend(&pool->waiting, &pool->waiting_last, task);
                pool->waiting_count++;
        }
}

static void unqueue(struct pool *pool, struct pool_task *task)
{
        if (task->is_suspect) {
                list_remove(&pool->suspects, &pool->suspects_last, task);
                pool->suspects_count--;
        } else {
                list_remove(&pool->waiting, &pool->waiting_last, task);
                pool->waiting_count--;
        }
}

struct pool_action *pool_settle(struct pool_actions *actions, struct pool_task *task, enum outcome outcome)
{
        struct pool_action *action = pool_act(actions, ACTION_SETTLE, NULL);
        action->task = task;
        action->outcome = outcome;
        return action;
}

/* xorshift64*: jitter only. */
static uint64_t jitter(struct pool *pool, uint64_t ms)
{
        pool->random ^= pool->random >> 12;
        pool->random ^= pool->random << 25;
        pool->random ^= pool->random >> 27;
        uint64_t share = (pool->random * UINT64_C(2685821657736338717)) >> 54;
        return ms / 2 + ms * share / 2048;
}

uint64_t pool_backoff_ms(struct pool *pool, uint32_t failures)
{
        uint64_t ms = pool->policy.backoff_ms << (failures < 20 ? failures : 20);
        return jitter(pool, ms < pool->policy.backoff_max_ms ? ms : pool->policy.backoff_max_ms);
}

/* --- handing over ----------------------------------------------------------------------------------------------------
 */

static uint32_t batch_max(const struct pool *pool)
{
        bool has_many = pool->generations && pool->generations->has_many;
        return has_many && pool->policy.batch_max > 1 ? pool->policy.batch_max : 1;
}

/* Tasks that one runner may hold. */
static uint32_t depth(const struct pool *pool)
{
        uint64_t per_seat = pool->average_ns ? AHEAD_NS / pool->average_ns : 1;
        if (per_seat < batch_max(pool))
                per_seat = batch_max(pool);
        if (per_seat < 1)
                per_seat = 1;
        uint64_t tasks = per_seat * pool->policy.threads;
        return tasks < pool->policy.ring_entries ? (uint32_t)tasks : pool->policy.ring_entries;
}

bool pool_has_room(const struct pool *pool)
{
        if (pool->is_draining || pool->state == POOL_PAUSED || pool->state == POOL_QUARANTINED)
                return false;
        return pool->waiting_count < depth(pool) * pool->policy.processes && pool->suspects_count < 16;
}

static bool takes_tasks(const struct pool *pool, const struct pool_runner *runner)
{
        const struct pool_policy *p = &pool->policy;
        return runner->state == RUNNER_READY && runner->generation == pool->generations && !runner->shut_ms &&
               !(p->max_tasks && runner->handed_total >= p->max_tasks);
}

/* The least busy runner that has room, or NULL. */
static struct pool_runner *choose(const struct pool *pool, uint32_t limit)
{
        struct pool_runner *best = NULL;
        for (uint32_t i = 0; i < pool->runners_count; i++) {
                struct pool_runner *r = &pool->runners[i];
                if (r->is_solo || !takes_tasks(pool, r) || r->in_flight >= limit)
                        continue;
                if (!best || r->in_flight < best->in_flight)
                        best = r;
        }
        return best;
}

/* The runner has to be looked at again at `at_ms`, or earlier. */
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
                unqueue(pool, task);
                task->runner = runner;
                task->handed_ms = now_ms;
                list_append(&runner->handed, &runner->handed_last, task);
                runner->in_flight++;
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

/* After a pause one task goes first, to see whether it was long enough. */
static bool may_hand(const struct pool *pool)
{
        return pool->state != POOL_PROBING || !in_flight(pool);
}

static void hand_waiting(struct pool *pool, uint64_t now_ms, struct pool_actions *actions)
{
        uint32_t limit = depth(pool);
        uint32_t most = batch_max(pool);
        while (pool->waiting && batch_is_due(pool, now_ms) && may_hand(pool)) {
                struct pool_runner *runner = choose(pool, limit);
                if (!runner)
                        return;
                uint32_t room = limit - runner->in_flight;
                uint32_t count = pool->waiting_count < most ? pool->waiting_count : most;
                if (pool->state == POOL_PROBING)
                        count = 1;
                hand(pool, runner, count < room ? count : room, now_ms, actions);
        }
}

static void spawn(struct pool *pool, struct pool_runner *runner, uint64_t now_ms, struct pool_actions *actions)
{
        runner->state = RUNNER_STARTING;
        runner->generation = pool->generations;
        runner->in_flight = 0;
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
        /* What still waits although a runner has room (for its batch to fill, for a probe) needs no other. */
        bool has_room = choose(pool, depth(pool));
        uint32_t starting = 0;
        for (uint32_t i = 0; i < pool->runners_count; i++)
                starting += pool->runners[i].state == RUNNER_STARTING && !pool->runners[i].is_solo;
        for (uint32_t i = 0; i < pool->runners_count; i++) {
                struct pool_runner *r = &pool->runners[i];
                if (r->state != RUNNER_NONE)
                        continue;
                if (r->is_solo && pool->suspects)
                        spawn(pool, r, now_ms, actions);
                if (r->is_solo || has_room || pool->waiting_count <= starting * pool->policy.threads)
                        continue;
                spawn(pool, r, now_ms, actions);
                starting++;
        }
}

/* Nothing will run here, and whoever drains the pool waits for what it was offered. */
static void give_up(struct pool *pool, struct pool_actions *actions)
{
        struct pool_task *task;
        while ((task = pool->waiting ? pool->waiting : pool->suspects)) {
                unqueue(pool, task);
                pool_settle(actions, task, OUTCOME_INTERRUPTED)->why = BLAME_SHUTDOWN;
        }
}

static void dispatch(struct pool *pool, uint64_t now_ms, struct pool_actions *actions)
{
        if (pool->state == POOL_QUARANTINED && pool->is_draining)
                give_up(pool, actions);
        if (pool->state == POOL_QUARANTINED || !pool->generations)
                return;
        if (pool->state == POOL_PAUSED) {
                if (now_ms < pool->paused_ms)
                        return;
                pool->state = POOL_PROBING;
        }
        struct pool_runner *solo = &pool->runners[pool->runners_count - 1];
        if (pool->suspects && takes_tasks(pool, solo) && !solo->handed_total && may_hand(pool))
                hand(pool, solo, 1, now_ms, actions);
        if (pool->waiting)
                hand_waiting(pool, now_ms, actions);
        if (pool->waiting || pool->suspects)
                spawn_needed(pool, now_ms, actions);
}

/* --- events ----------------------------------------------------------------------------------------------------------
 */

static void on_offered(struct pool *pool, struct pool_task *task, uint64_t now_ms)
{
        task->runner = NULL;
        task->ticket = 0;
        task->offered_ms = now_ms;
        task->stopped_ms = 0;
        task->why = BLAME_NOTHING;
        if (task->is_suspect) {
                list_append(&pool->suspects, &pool->suspects_last, task);
                pool->suspects_count++;
        } else {
                list_append(&pool->waiting, &pool->waiting_last, task);
                pool->waiting_count++;
        }
}

static void pause(struct pool *pool, uint64_t now_ms, struct pool_actions *actions)
{
        if (pool->state == POOL_PAUSED)
                return;
        pool->state = POOL_PAUSED;
        pool->paused_ms = now_ms + pool_backoff_ms(pool, pool->pauses++);
        for (uint32_t i = 0; i < pool->runners_count; i++)
                for (struct pool_task *t = pool->runners[i].handed_last; t; t = t->prev)
                        pool_act(actions, ACTION_TAKE_BACK, t->runner)->task = t;
}

static void on_answered(
        struct pool *pool, const struct pool_event *event, uint64_t now_ms, struct pool_actions *actions)
{
        const struct ring_reply *reply = event->reply;
        struct pool_task *task = event->task;
        struct pool_runner *runner = task->runner;
        pool_unhand(task, now_ms);
        runner->shut_ms = 0;
        runner->answered_total++;
        runner->answered_ms = now_ms;
        pool->failures = 0;
        if (reply->ended_ns > reply->started_ns) {
                uint64_t took_ns = reply->ended_ns - reply->started_ns;
                pool->average_ns = pool->average_ns ? pool->average_ns - pool->average_ns / 8 + took_ns / 8 : took_ns;
        }
        /* Told to stop by a person, it may still say DONE; anything else is the stop's doing, not the task's. */
        bool is_cancelled = task->why == BLAME_CANCEL && reply->outcome != OUTCOME_DONE;
        struct pool_action *action =
                pool_settle(actions, task, is_cancelled ? OUTCOME_INTERRUPTED : (enum outcome)reply->outcome);
        action->reply = reply;
        action->why = is_cancelled ? BLAME_CANCEL : BLAME_NOTHING;
        if (reply->outcome == OUTCOME_UNAVAILABLE) {
                pause(pool, now_ms, actions);
        } else if (pool->state == POOL_PROBING && reply->outcome != OUTCOME_INTERRUPTED) {
                pool->state = POOL_OPEN;
                pool->pauses = 0;
        }
        pool_retire_done(pool, runner, now_ms, actions);
}

static void on_taken_back(struct pool *pool, struct pool_task *task, uint64_t now_ms, struct pool_actions *actions)
{
        /* It was only lent: a runner is used up, and a suspect's runner stale, by what ran there. */
        task->runner->handed_total--;
        pool_unhand(task, now_ms);
        if (task->why == BLAME_CANCEL)
                pool_settle(actions, task, OUTCOME_INTERRUPTED)->why = BLAME_CANCEL;
        else
                pool_requeue(pool, task);
}

static void on_cancelled(struct pool *pool, const struct pool_event *event, struct pool_actions *actions)
{
        struct pool_task *task = event->task;
        /* Told to stop already, and for a reason of its own. */
        if (task->stopped_ms)
                return;
        task->why = BLAME_CANCEL;
        if (!task->runner) {
                unqueue(pool, task);
                pool_settle(actions, task, OUTCOME_INTERRUPTED)->why = BLAME_CANCEL;
                return;
        }
        pool_act(actions, ACTION_TAKE_BACK, task->runner)->task = task;
        (void)pool_act(actions, ACTION_LOOK, task->runner);
}

void pool_step(struct pool *pool, const struct pool_event *event, uint64_t now_ms, struct pool_actions *actions)
{
        actions->count = actions->batch_count = 0;
        pool->stepped_ms = now_ms;
        switch (event->kind) {
        case POOL_OFFERED:
                on_offered(pool, event->task, now_ms);
                break;
        case POOL_READY:
                event->runner->generation->has_many = event->has_many;
                if (event->runner->state == RUNNER_STARTING)
                        event->runner->state = RUNNER_READY;
                event->runner->since_ms = event->runner->idle_ms = event->runner->answered_ms = now_ms;
                pool_retire_done(pool, event->runner, now_ms, actions);
                break;
        case POOL_ANSWERED:
                on_answered(pool, event, now_ms, actions);
                break;
        case POOL_TAKEN_BACK:
                on_taken_back(pool, event->task, now_ms, actions);
                break;
        case POOL_FULL:
                event->runner->shut_ms = now_ms + POOL_FULL_MS;
                on_taken_back(pool, event->task, now_ms, actions);
                break;
        case POOL_SEEN:
                pool_on_seen(pool, event, now_ms, actions);
                break;
        case POOL_GONE:
                pool_on_gone(pool, event, now_ms, actions);
                break;
        case POOL_BROKEN:
                pool_kill(event->runner, BLAME_SCRIBBLE, now_ms, actions);
                break;
        case POOL_CANCELLED:
                on_cancelled(pool, event, actions);
                break;
        case POOL_TICK:
                pool_on_tick(pool, now_ms, actions);
                break;
        case POOL_CUT:
                pool->is_draining = true;
                pool->state = POOL_QUARANTINED;
                for (uint32_t i = 0; i < pool->runners_count; i++)
                        pool_kill(&pool->runners[i], BLAME_SHUTDOWN, now_ms, actions);
                break;
        }
        dispatch(pool, now_ms, actions);
        /* The last task ends on one runner; those that have been idle all along hear of nothing else. */
        for (uint32_t i = 0; pool->is_draining && i < pool->runners_count; i++)
                pool_retire_done(pool, &pool->runners[i], now_ms, actions);
}
