/* pool_watch.c: watches runners: deadlines of tasks, tasks that do not start, retirement and death. */
#include <signal.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "host/pool/pool_private.h"

static void earliest(uint64_t *due_ms, uint64_t at_ms)
{
        if (at_ms < *due_ms)
                *due_ms = at_ms;
}

void pool_kill(struct pool_runner *runner, enum blame_why why, uint64_t now_ms, struct pool_actions *actions)
{
        if (runner->state == RUNNER_NONE)
                return;
        if (runner->why == BLAME_NOTHING)
                runner->why = why;
        runner->state = RUNNER_DYING;
        runner->since_ms = now_ms;
        (void)pool_act(actions, ACTION_KILL, runner);
}

void pool_retire_done(struct pool *pool, struct pool_runner *runner, uint64_t now_ms, struct pool_actions *actions)
{
        if (runner->state != RUNNER_READY || runner->in_flight)
                return;
        const struct pool_policy *p = &pool->policy;
        bool is_used_up = p->max_tasks && runner->handed_total >= p->max_tasks;
        bool is_surplus = pool_is_surplus(pool, runner);
        bool has_run_alone = runner->is_solo && runner->handed_total;
        bool is_bored = p->idle_ms && now_ms >= runner->idle_ms + p->idle_ms;
        bool is_last = pool->is_draining && !pool->waiting && !pool->suspects;
        if (!is_used_up && !is_surplus && !has_run_alone && !is_bored && !is_last)
                return;
        runner->state = RUNNER_RETIRING;
        runner->since_ms = now_ms;
        (void)pool_act(actions, ACTION_RETIRE, runner);
}

/* --- deadlines --- */

/* When to raise the task's stop flag, and why; UINT64_MAX: never. */
static uint64_t stop_at(const struct pool *pool, const struct pool_view *s, enum blame_why *ret_why)
{
        uint64_t at_ms = UINT64_MAX;
        if (s->task->task.timeout_ms) {
                at_ms = s->started_ms + s->task->task.timeout_ms;
                *ret_why = BLAME_TIMEOUT;
        }
        uint64_t moved_ms = max_u64(s->progressed_ms, s->started_ms);
        if (pool->policy.stall_ms && moved_ms + pool->policy.stall_ms < at_ms) {
                at_ms = moved_ms + pool->policy.stall_ms;
                *ret_why = BLAME_STALL;
        }
        return at_ms;
}

/* Raises the stop flag of a running task when it is due, and updates *next_ms.  True if the grace period is over. */
static bool watch_task(
        struct pool *pool, const struct pool_view *s, uint64_t now_ms, struct pool_actions *actions, uint64_t *next_ms)
{
        struct pool_task *task = s->task;
        if (!task->stopped_ms) {
                enum blame_why why = task->why;
                bool is_told = why == BLAME_CANCEL || why == BLAME_SHUTDOWN;
                uint64_t at_ms = is_told ? now_ms : stop_at(pool, s, &why);
                if (now_ms < at_ms) {
                        earliest(next_ms, at_ms);
                        return false;
                }
                task->stopped_ms = now_ms;
                task->why = why;
                pool_act(actions, ACTION_STOP, task->runner)->task = task;
        }
        if (now_ms < task->stopped_ms + pool->policy.grace_ms) {
                earliest(next_ms, task->stopped_ms + pool->policy.grace_ms);
                return false;
        }
        return true;
}

/* Whether another runner could start a task taken from `stuck`. */
static bool has_elsewhere(const struct pool *pool, const struct pool_runner *stuck)
{
        for (uint32_t i = 0; i < pool->runners_count; i++) {
                const struct pool_runner *r = &pool->runners[i];
                if (r == stuck || r->is_solo || pool_is_surplus(pool, r))
                        continue;
                if (r->state == RUNNER_NONE || (r->state == RUNNER_READY && r->in_flight < pool->policy.threads))
                        return true;
        }
        return false;
}

/* Whether a seat is free, or its current task is recent. */
static bool has_moving_seat(const struct pool *pool, const struct pool_event *event, uint64_t now_ms)
{
        bool is_busy[RING_SEATS_MAX] = { false };
        uint32_t busy = 0;
        for (size_t i = 0; i < event->views_count; i++) {
                const struct pool_view *s = &event->views[i];
                if (!s->is_started || now_ms < s->started_ms + POOL_BEHIND_MS || s->seat >= RING_SEATS_MAX ||
                        is_busy[s->seat])
                        continue;
                is_busy[s->seat] = true;
                busy++;
        }
        return busy < pool->policy.threads;
}

/* Takes back tasks that no seat has started for a while, if another runner could start them, or if all seats here are
 * busy with long tasks.  The newest is taken first, so that they return to the head of the queue in their old order. */
static void watch_unstarted(struct pool *pool, const struct pool_event *event, uint64_t now_ms,
        struct pool_actions *actions, uint64_t *next_ms)
{
        struct pool_runner *runner = event->runner;
        bool can_move = has_elsewhere(pool, runner);
        bool is_behind = !can_move && !runner->is_solo && !has_moving_seat(pool, event, now_ms);
        for (size_t i = event->views_count; i-- > 0;) {
                const struct pool_view *s = &event->views[i];
                if (s->is_started || (!can_move && !is_behind) || now_ms < s->task->handed_ms + POOL_STUCK_MS)
                        continue;
                pool_act(actions, ACTION_TAKE_BACK, runner)->task = s->task;
                /* Shut, because the task must not return to this runner while the other one is being spawned, or before
                 * one of its seats is free. */
                runner->shut_ms = can_move ? now_ms + POOL_SHUT_MS : UINT64_MAX;
        }
        /* The other tasks may start at any moment, and their timeouts count from then. */
        earliest(next_ms, now_ms + (can_move ? POOL_STUCK_MS : POOL_BEHIND_MS));
}

/* Whether a runner runs nothing and starts nothing for too long: it was stopped (SIGSTOP), or its threads are lost.  No
 * deadline of a task would notice. */
static bool is_deaf(const struct pool *pool, const struct pool_event *event, uint64_t now_ms)
{
        uint64_t since_ms = event->runner->answered_ms;
        if (event->views[0].task->handed_ms > since_ms)
                since_ms = event->views[0].task->handed_ms;
        return pool->policy.init_ms && now_ms >= since_ms + pool->policy.init_ms;
}

void pool_on_seen(struct pool *pool, const struct pool_event *event, uint64_t now_ms, struct pool_actions *actions)
{
        struct pool_runner *runner = event->runner;
        if (runner->state != RUNNER_READY && runner->state != RUNNER_RETIRING)
                return;
        uint64_t next_ms = UINT64_MAX;
        uint32_t started = 0;
        for (size_t i = 0; i < event->views_count; i++) {
                const struct pool_view *s = &event->views[i];
                if (!s->is_started)
                        continue;
                started++;
                if (watch_task(pool, s, now_ms, actions, &next_ms) && !runner->aborted_ms) {
                        runner->why = s->task->why;
                        runner->aborted_ms = now_ms;
                        runner->state = RUNNER_DYING;
                        runner->since_ms = now_ms;
                        (void)pool_act(actions, ACTION_ABORT, runner);
                }
        }
        if (runner->state == RUNNER_DYING)
                return;
        if (!started && event->views_count && is_deaf(pool, event, now_ms)) {
                pool_kill(runner, BLAME_SHUTDOWN, now_ms, actions);
                return;
        }
        if (started < event->views_count)
                watch_unstarted(pool, event, now_ms, actions, &next_ms);
        runner->look_ms = next_ms == UINT64_MAX ? 0 : next_ms;
}

void pool_on_tick(struct pool *pool, uint64_t now_ms, struct pool_actions *actions)
{
        const struct pool_policy *p = &pool->policy;
        for (uint32_t i = 0; i < pool->runners_count; i++) {
                struct pool_runner *r = &pool->runners[i];
                if (now_ms >= r->shut_ms)
                        r->shut_ms = 0;
                if (r->state == RUNNER_STARTING && p->init_ms && now_ms >= r->since_ms + p->init_ms)
                        pool_kill(r, BLAME_INIT, now_ms, actions);
                else if (r->state == RUNNER_RETIRING && now_ms >= r->since_ms + p->grace_ms)
                        pool_kill(r, BLAME_SHUTDOWN, now_ms, actions);
                else if (r->state == RUNNER_DYING && r->aborted_ms && now_ms >= r->aborted_ms + p->abort_ms) {
                        r->aborted_ms = 0;
                        (void)pool_act(actions, ACTION_KILL, r);
                } else if (r->state == RUNNER_READY && r->in_flight && r->look_ms && now_ms >= r->look_ms) {
                        r->look_ms = 0;
                        (void)pool_act(actions, ACTION_LOOK, r);
                }
                pool_retire_done(pool, r, now_ms, actions);
        }
}

static uint64_t runner_due_ms(const struct pool *pool, const struct pool_runner *r)
{
        const struct pool_policy *p = &pool->policy;
        uint64_t due_ms = UINT64_MAX;
        switch (r->state) {
        case RUNNER_STARTING:
                return p->init_ms ? r->since_ms + p->init_ms : UINT64_MAX;
        case RUNNER_RETIRING:
                return r->since_ms + p->grace_ms;
        case RUNNER_DYING:
                return r->aborted_ms ? r->aborted_ms + p->abort_ms : UINT64_MAX;
        case RUNNER_READY:
                if (r->shut_ms)
                        due_ms = r->shut_ms;
                if (r->in_flight && r->look_ms)
                        earliest(&due_ms, r->look_ms);
                else if (!r->in_flight && p->idle_ms)
                        earliest(&due_ms, r->idle_ms + p->idle_ms);
                return due_ms;
        case RUNNER_NONE:
                break;
        }
        return due_ms;
}

uint64_t pool_due_ms(const struct pool *pool)
{
        uint64_t due_ms = UINT64_MAX;
        for (uint32_t i = 0; i < pool->runners_count; i++)
                earliest(&due_ms, runner_due_ms(pool, &pool->runners[i]));
        /* The end of a pause is due even if no task waits: a paused pool is offered none. */
        if (pool->state == POOL_PAUSED)
                earliest(&due_ms, pool->paused_ms);
        if (!pool->waiting && !pool->suspects)
                return due_ms;
        /* Compared with the latest step and not with the current time: what fell due since then still needs a tick. */
        if (pool->state != POOL_QUARANTINED && pool->spawn_ms > pool->stepped_ms)
                earliest(&due_ms, pool->spawn_ms);
        uint64_t batch_ms = pool->waiting ? pool->waiting->offered_ms + pool->policy.batch_wait_ms : 0;
        if (batch_ms > pool->stepped_ms)
                earliest(&due_ms, batch_ms);
        return due_ms;
}

/* --- deaths --- */

/* Tasks that never started go back to the head of the queue, in their old order. */
static void rescue_unstarted(
        struct pool *pool, const struct pool_event *event, uint64_t now_ms, struct pool_actions *actions)
{
        for (size_t i = event->views_count; i-- > 0;) {
                struct pool_task *task = event->views[i].task;
                if (event->views[i].is_started)
                        continue;
                pool_unhand(task, now_ms);
                pool_put_back(pool, task, actions);
        }
}

static void settle_started(const struct pool_event *event, uint64_t now_ms, struct pool_actions *actions)
{
        struct pool_runner *runner = event->runner;
        struct blamed *running = memory_zero(event->views_count + 1, sizeof(*running));
        size_t count = 0;
        for (size_t i = 0; i < event->views_count; i++)
                if (event->views[i].is_started)
                        running[count++] = (struct blamed){ .seat = event->views[i].seat,
                                .stopped =
                                        event->views[i].task->stopped_ms ? event->views[i].task->why : BLAME_NOTHING };
        blame(running, count, event->death, runner->why, runner->is_solo);
        count = 0;
        for (size_t i = 0; i < event->views_count; i++) {
                struct pool_task *task = event->views[i].task;
                if (!event->views[i].is_started)
                        continue;
                const struct blamed *b = &running[count++];
                uint64_t ticket = task->ticket;
                pool_unhand(task, now_ms);
                struct pool_action *action = pool_settle(actions, task, b->outcome);
                action->runner = runner;
                action->ticket = ticket;
                action->since_ms = event->views[i].started_ms;
                action->why = b->why;
                action->is_suspect = b->is_suspect;
                action->seat = b->seat;
                action->death = event->death;
        }
        free(running);
}

enum runner_exit pool_exit_of(const struct pool_runner *runner, int signal)
{
        switch (runner->why) {
        case BLAME_INIT:
                return EXIT_START;
        case BLAME_TIMEOUT:
        case BLAME_STALL:
                return EXIT_TIMEOUT;
        case BLAME_SHUTDOWN:
        case BLAME_CANCEL:
                return EXIT_HOST;
        case BLAME_CRASH:
        case BLAME_SCRIBBLE:
                return EXIT_CRASHED;
        case BLAME_NOTHING:
        case BLAME_NEIGHBOUR:
        case BLAME_UNSURE:
                break;
        }
        if (runner->state == RUNNER_STARTING)
                return EXIT_START;
        if (runner->state == RUNNER_RETIRING)
                return EXIT_RETIRED;
        return signal == SIGKILL ? EXIT_KILLED : signal ? EXIT_CRASHED : EXIT_EXITED;
}

void pool_on_gone(struct pool *pool, const struct pool_event *event, uint64_t now_ms, struct pool_actions *actions)
{
        struct pool_runner *runner = event->runner;
        bool is_our_doing = runner->state == RUNNER_RETIRING || runner->why == BLAME_SHUTDOWN ||
                            runner->why == BLAME_TIMEOUT || runner->why == BLAME_STALL || runner->why == BLAME_CANCEL;
        /* A suspect that crashes alone is charged for it: that is no failure of the plugin. */
        bool was_fruitless = !runner->answered_total && !(runner->is_solo && runner->handed_total);
        settle_started(event, now_ms, actions);
        rescue_unstarted(pool, event, now_ms, actions);
        runner->state = RUNNER_NONE;
        if (is_our_doing || !was_fruitless)
                return;
        pool->failures++;
        pool->spawn_ms = now_ms + pool_backoff_ms(pool, pool->failures - 1);
        if (pool->policy.quarantine_after && pool->failures >= pool->policy.quarantine_after &&
                pool->state != POOL_QUARANTINED) {
                pool->state = POOL_QUARANTINED;
                (void)pool_act(actions, ACTION_QUARANTINE, runner);
        }
}
