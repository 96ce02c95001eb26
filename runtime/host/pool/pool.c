#include "host/pool/pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "host/pool/pool_private.h"

void pool_init(struct pool *pool, const struct pool_policy *policy, uint64_t seed)
{
        uint32_t count = policy->processes + 1;
        struct pool_runner *runners = memory_zero(count, sizeof(*runners));
        for (uint32_t i = 0; i < count; i++)
                runners[i].slot = i;
        runners[policy->processes].is_solo = true;
        *pool = (struct pool){ .policy = *policy, .runners = runners, .runners_count = count, .random = seed | 1 };
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

/* Adds runners; the last element stays the runner for suspects. */
static void grow(struct pool *pool, uint32_t processes)
{
        uint32_t count = processes + 1;
        uint32_t before = pool->runners_count - 1;
        struct pool_runner *runners = memory_zero(count, sizeof(*runners));
        memcpy(runners, pool->runners, before * sizeof(*runners));
        runners[processes] = pool->runners[before];
        for (uint32_t i = 0; i < count; i++) {
                runners[i].slot = i;
                for (struct pool_task *task = runners[i].handed; task; task = task->next)
                        task->runner = &runners[i];
        }
        free(pool->runners);
        pool->runners = runners;
        pool->runners_count = count;
}

void pool_set_policy(struct pool *pool, const struct pool_policy *policy)
{
        if (policy->processes >= pool->runners_count)
                grow(pool, policy->processes);
        struct pool_policy next = *policy;
        next.threads = pool->policy.threads;
        next.batch_max = pool->policy.batch_max;
        next.is_same_key = pool->policy.is_same_key;
        next.ring_entries = pool->policy.ring_entries;
        pool->policy = next;
}

bool pool_is_surplus(const struct pool *pool, const struct pool_runner *runner)
{
        return !runner->is_solo && runner->slot >= pool->policy.processes;
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

/* --- actions and lists --- */

struct pool_action *pool_act(struct pool_actions *actions, enum pool_action_kind kind, struct pool_runner *runner)
{
        if (actions->count == actions->room) {
                size_t room = actions->room ? actions->room * 2 : 64;
                struct pool_action *list = memory_resize(actions->list, room * sizeof(*list));
                actions->list = list;
                actions->room = room;
        }
        struct pool_action *action = &actions->list[actions->count++];
        *action = (struct pool_action){ .kind = kind, .runner = runner };
        return action;
}

void pool_append(struct pool_task **first, struct pool_task **last, struct pool_task *task)
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
        runner->large -= task->is_large;
        if (!--runner->in_flight)
                runner->idle_ms = now_ms;
}

/* The last waiting task of the lanes before `end`; NULL. */
static struct pool_task *last_before(const struct pool *pool, unsigned end)
{
        struct pool_task *last = NULL;
        while (end && !last)
                last = pool->waiting_last[--end];
        return last;
}

static void wait_behind(struct pool *pool, struct pool_task *before, struct pool_task *task)
{
        task->prev = before;
        task->next = before ? before->next : pool->waiting;
        if (task->next)
                task->next->prev = task;
        if (before)
                before->next = task;
        else
                pool->waiting = task;
        if (before == pool->waiting_last[task->lane] || !pool->waiting_last[task->lane])
                pool->waiting_last[task->lane] = task;
        pool->waiting_of[task->lane]++;
        pool->waiting_count++;
}

static void requeue(struct pool *pool, struct pool_task *task)
{
        task->stopped_ms = 0;
        if (task->is_suspect) {
                list_prepend(&pool->suspects, &pool->suspects_last, task);
                pool->suspects_count++;
        } else {
                wait_behind(pool, last_before(pool, task->lane), task);
        }
}

void pool_unqueue(struct pool *pool, struct pool_task *task)
{
        if (task->is_suspect) {
                list_remove(&pool->suspects, &pool->suspects_last, task);
                pool->suspects_count--;
                return;
        }
        struct pool_task **last = &pool->waiting_last[task->lane];
        struct pool_task *end; /* end of the whole list, which is not tracked */
        pool->waiting_of[task->lane]--;
        pool->waiting_count--;
        if (*last == task)
                *last = pool->waiting_of[task->lane] ? task->prev : NULL;
        list_remove(&pool->waiting, &end, task);
}

struct pool_action *pool_settle(struct pool_actions *actions, struct pool_task *task, enum outcome outcome)
{
        struct pool_action *action = pool_act(actions, ACTION_SETTLE, NULL);
        action->task = task;
        action->outcome = outcome;
        return action;
}

void pool_give_back(struct pool_actions *actions, struct pool_task *task, enum blame_why why)
{
        struct pool_action *action = pool_settle(actions, task, OUTCOME_INTERRUPTED);
        action->why = why;
        action->never_started = true;
}

void pool_put_back(struct pool *pool, struct pool_task *task, struct pool_actions *actions)
{
        if (task->why == BLAME_CANCEL)
                pool_give_back(actions, task, BLAME_CANCEL);
        else if (pool->is_retreating || task->is_recalled || task->is_follower)
                pool_give_back(actions, task, BLAME_SHUTDOWN);
        else
                requeue(pool, task);
}

/* xorshift64*, good enough for jitter. */
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
        uint64_t ms = pool->policy.backoff_ms << min_u64(failures, 20);
        return jitter(pool, min_u64(ms, pool->policy.backoff_max_ms));
}

static void take_back_all(struct pool *pool, struct pool_actions *actions)
{
        for (uint32_t i = 0; i < pool->runners_count; i++)
                for (struct pool_task *t = pool->runners[i].handed_last; t; t = t->prev)
                        pool_act(actions, ACTION_TAKE_BACK, t->runner)->task = t;
}

/* Takes back a task, after all tasks that follow it in its run: they must not start without it. */
static void take_back(struct pool_task *task, struct pool_actions *actions)
{
        struct pool_task *last = task;
        while (last->next && last->next->is_follower)
                last = last->next;
        for (struct pool_task *t = last;; t = t->prev) {
                pool_act(actions, ACTION_TAKE_BACK, t->runner)->task = t;
                if (t == task)
                        return;
        }
}

void pool_give_back_followers(struct pool *pool, struct pool_task *behind, struct pool_actions *actions)
{
        while (behind && behind->is_follower) {
                struct pool_task *next = behind->next;
                pool_unqueue(pool, behind);
                pool_give_back(actions, behind, BLAME_SHUTDOWN);
                behind = next;
        }
}

static void retreat(struct pool *pool, struct pool_actions *actions)
{
        pool->is_draining = pool->is_retreating = true;
        pool_give_up(pool, actions);
        take_back_all(pool, actions);
}

static void resume(struct pool *pool)
{
        pool->is_draining = pool->is_retreating = false;
        pool_lift(pool);
}

/* --- events --- */

static void offer_one(struct pool *pool, struct pool_task *before, struct pool_task *task, uint64_t now_ms)
{
        task->runner = NULL;
        task->ticket = 0;
        task->is_large = !ring_task_is_small(&task->task);
        task->offered_ms = now_ms;
        task->stopped_ms = 0;
        task->why = BLAME_NOTHING;
        task->is_recalled = false;
        if (task->is_suspect) {
                pool_append(&pool->suspects, &pool->suspects_last, task);
                pool->suspects_count++;
        } else {
                wait_behind(pool, before, task);
        }
}

/* The waiting task that `task` belongs behind: the last of its lane, or the last urgent one of its lane if it is
 * urgent. */
static struct pool_task *place_of(const struct pool *pool, const struct pool_task *task)
{
        if (!task->is_urgent)
                return last_before(pool, task->lane + 1);
        struct pool_task *before = last_before(pool, task->lane);
        struct pool_task *next = before ? before->next : pool->waiting;
        /* Followers of an urgent task are urgent, too. */
        for (; next && next->lane == task->lane && next->is_urgent; next = next->next)
                before = next;
        return before;
}

static void on_offered(struct pool *pool, struct pool_task *task, uint64_t now_ms)
{
        struct pool_task *before = task->is_suspect ? NULL : place_of(pool, task);
        while (task) {
                struct pool_task *next = task->run_next;
                task->run_next = NULL;
                offer_one(pool, before, task, now_ms);
                before = task;
                task = next;
        }
}

static void pause(struct pool *pool, uint64_t now_ms, struct pool_actions *actions)
{
        if (pool->state == POOL_PAUSED)
                return;
        pool->state = POOL_PAUSED;
        pool->paused_ms = now_ms + pool_backoff_ms(pool, pool->pauses++);
        take_back_all(pool, actions);
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
        /* A task that was cancelled or interrupted may still be DONE.  Any other outcome is a result of the stop flag
         * and is not charged to the task. */
        bool is_told = task->why == BLAME_CANCEL || task->why == BLAME_SHUTDOWN;
        bool is_cancelled = is_told && reply->outcome != OUTCOME_DONE;
        struct pool_action *action =
                pool_settle(actions, task, is_cancelled ? OUTCOME_INTERRUPTED : (enum outcome)reply->outcome);
        action->reply = reply;
        action->why = is_cancelled ? task->why : BLAME_NOTHING;
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
        /* A task that never started does not count towards max_tasks, nor as the one task of a suspect's runner. */
        task->runner->handed_total--;
        pool_unhand(task, now_ms);
        pool_put_back(pool, task, actions);
}

static void on_cancelled(struct pool *pool, const struct pool_event *event, struct pool_actions *actions)
{
        struct pool_task *task = event->task;
        /* Its stop flag is already raised, for another reason. */
        if (task->stopped_ms)
                return;
        task->why = event->why == BLAME_SHUTDOWN ? BLAME_SHUTDOWN : BLAME_CANCEL;
        if (!task->runner) {
                pool_give_back_followers(pool, task->next, actions);
                pool_unqueue(pool, task);
                pool_give_back(actions, task, task->why);
                return;
        }
        take_back(task, actions);
        (void)pool_act(actions, ACTION_LOOK, task->runner);
}

static void on_recalled(struct pool *pool, struct pool_task *task, struct pool_actions *actions)
{
        task->is_recalled = true;
        if (task->runner) {
                take_back(task, actions);
                return;
        }
        pool_give_back_followers(pool, task->next, actions);
        pool_unqueue(pool, task);
        pool_put_back(pool, task, actions);
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
                pool->has_many = event->has_many;
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
        case POOL_RECALLED:
                on_recalled(pool, event->task, actions);
                break;
        case POOL_CANCELLED:
                on_cancelled(pool, event, actions);
                break;
        case POOL_TICK:
                pool_on_tick(pool, now_ms, actions);
                break;
        case POOL_WARM:
                pool_warm(pool, event->count, now_ms, actions);
                break;
        case POOL_RETREAT:
                retreat(pool, actions);
                break;
        case POOL_RESUME:
                resume(pool);
                break;
        case POOL_CUT:
                pool->is_draining = true;
                pool->state = POOL_QUARANTINED;
                for (uint32_t i = 0; i < pool->runners_count; i++)
                        pool_kill(&pool->runners[i], BLAME_SHUTDOWN, now_ms, actions);
                break;
        }
        pool_dispatch(pool, now_ms, actions);
        /* The last task ends on one runner only; runners that are idle get no event of their own. */
        for (uint32_t i = 0; pool->is_draining && i < pool->runners_count; i++)
                pool_retire_done(pool, &pool->runners[i], now_ms, actions);
}
