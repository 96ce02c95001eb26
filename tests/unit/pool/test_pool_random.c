/* Random events against a tiny fake world of runners that answer, die, stall, lie and come back: whatever happens,
 * every task that was offered is settled exactly once, and none is ever in two places.
 *
 *         test_pool_random [SEED [STEPS]]            prints its seed; the same seed is the same run */
#include "pool_rig.h"

#include <stdio.h>
#include <time.h>

static uint64_t seed;
static uint32_t steps = 20000;

struct world {
        struct rig g;
        uint64_t random;
        bool is_offered[RIG_TASKS]; /* offered, and not settled yet */
        struct pool_runner *held_by[RIG_TASKS];
        uint64_t offered, settled, suspected;
        /* Events that pool would post after the current one. */
        struct pool_event queue[4096];
        size_t queue_count;
};

static uint32_t dice(struct world *w, uint32_t sides)
{
        w->random ^= w->random << 13;
        w->random ^= w->random >> 7;
        w->random ^= w->random << 17;
        return (uint32_t)(w->random >> 33) % sides;
}

static void later(struct world *w, struct pool_event event)
{
        assert_true(w->queue_count < sizeof(w->queue) / sizeof(w->queue[0]));
        w->queue[w->queue_count++] = event;
}

static void on_hand(struct world *w, const struct pool_action *a)
{
        assert_int_equal(a->runner->state, RUNNER_READY);
        assert_true(a->count >= 1 && a->count <= w->g.pool.policy.batch_max);
        for (uint32_t i = 0; i < a->count; i++) {
                size_t task = index_of(&w->g, w->g.actions.batch[a->first + i]);
                assert_true(w->is_offered[task]);
                assert_null(w->held_by[task]);
                /* Suspects are alone. */
                assert_true(w->g.tasks[task].is_suspect == a->runner->is_solo);
                if (a->runner->is_solo)
                        assert_int_equal(a->runner->in_flight, 1);
                w->held_by[task] = a->runner;
                w->g.views[task].is_started = false;
                w->g.views[task].progressed_ms = 0;
        }
        assert_true(a->runner->in_flight <= w->g.pool.policy.ring_entries);
        /* Now and then the ring has no room after all. */
        if (dice(w, 50) != 0)
                return;
        for (uint32_t i = a->count; i-- > 0;) {
                struct pool_task *task = w->g.actions.batch[a->first + i];
                w->held_by[index_of(&w->g, task)] = NULL;
                later(w, (struct pool_event){ .kind = POOL_FULL, .runner = a->runner, .task = task });
        }
}

static void on_take_back(struct world *w, const struct pool_action *a)
{
        size_t task = index_of(&w->g, a->task);
        if (w->held_by[task] != a->runner || w->g.views[task].is_started)
                return;
        w->held_by[task] = NULL;
        later(w, (struct pool_event){ .kind = POOL_TAKEN_BACK, .task = a->task });
}

static void on_settle(struct world *w, const struct pool_action *a)
{
        size_t task = index_of(&w->g, a->task);
        assert_true(w->is_offered[task]);
        w->held_by[task] = NULL;
        w->g.views[task].is_started = false;
        w->is_offered[task] = false;
        w->settled++;
        a->task->is_suspect = false;
        if (!a->is_suspect)
                return;
        /* As a host does: once more, alone. */
        assert_int_equal(a->outcome, OUTCOME_INTERRUPTED);
        w->suspected++;
        w->offered++;
        w->is_offered[task] = true;
        a->task->is_suspect = true;
        later(w, (struct pool_event){ .kind = POOL_OFFERED, .task = a->task });
}

static void perform(struct world *w, const struct pool_action *a)
{
        switch (a->kind) {
        case ACTION_SPAWN:
                assert_int_equal(a->runner->state, RUNNER_STARTING);
                assert_int_equal(a->runner->in_flight, 0);
                assert_null(a->runner->process);
                a->runner->process = w;
                break;
        case ACTION_HAND:
                on_hand(w, a);
                break;
        case ACTION_TAKE_BACK:
                on_take_back(w, a);
                break;
        case ACTION_LOOK:
                later(w, (struct pool_event){ .kind = POOL_SEEN, .runner = a->runner });
                break;
        case ACTION_SETTLE:
                on_settle(w, a);
                break;
        case ACTION_QUARANTINE:
                pool_lift(&w->g.pool);
                break;
        case ACTION_RETIRE:
                assert_int_equal(a->runner->in_flight, 0);
                break;
        case ACTION_STOP:
        case ACTION_ABORT:
        case ACTION_KILL:
                assert_non_null(a->runner->process);
                break;
        }
}

static void run_one(struct world *w, struct pool_event event)
{
        struct pool_view views[RIG_TASKS];
        if (event.kind == POOL_SEEN && !event.runner->process)
                return;
        if (event.kind == POOL_SEEN) {
                size_t count = 0;
                for (struct pool_task *t = event.runner->handed; t; t = t->next)
                        if (w->held_by[index_of(&w->g, t)] == event.runner)
                                views[count++] = w->g.views[index_of(&w->g, t)];
                event.views = views;
                event.views_count = count;
        }
        pool_step(&w->g.pool, &event, w->g.now_ms, &w->g.actions);
        for (size_t i = 0; i < w->g.actions.count; i++)
                perform(w, &w->g.actions.list[i]);
}

/* One event and all that follow from it, as pool_io's post(). */
static void post(struct world *w, struct pool_event event)
{
        run_one(w, event);
        for (size_t i = 0; i < w->queue_count; i++)
                run_one(w, w->queue[i]);
        w->queue_count = 0;
}

/* --- what may happen --- */

static void offer_some(struct world *w)
{
        size_t task = dice(w, RIG_TASKS);
        if (w->is_offered[task] || (!pool_has_room(&w->g.pool) && dice(w, 10)))
                return;
        w->is_offered[task] = true;
        w->offered++;
        w->g.tasks[task].task.timeout_ms = dice(w, 2) ? 50 : 0;
        w->g.tasks[task].lane = (enum lane)dice(w, LANES);
        w->g.views[task] = (struct pool_view){ .task = &w->g.tasks[task] };
        post(w, (struct pool_event){ .kind = POOL_OFFERED, .task = &w->g.tasks[task] });
}

static void start_some(struct world *w, const struct pool_runner *r)
{
        if (r->state != RUNNER_READY)
                return;
        uint32_t seat = dice(w, w->g.pool.policy.threads);
        for (struct pool_task *t = r->handed; t; t = t->next) {
                struct pool_view *s = &w->g.views[index_of(&w->g, t)];
                if (s->is_started)
                        continue;
                s->is_started = true;
                s->seat = seat;
                s->started_ms = w->g.now_ms;
                return;
        }
}

static void answer_some(struct world *w, const struct pool_runner *r)
{
        static const enum outcome outcomes[] = { OUTCOME_DONE, OUTCOME_DONE, OUTCOME_DONE, OUTCOME_RETRY,
                OUTCOME_REJECT, OUTCOME_UNAVAILABLE, OUTCOME_INTERRUPTED };
        for (struct pool_task *t = r->handed; t; t = t->next) {
                if (!w->g.views[index_of(&w->g, t)].is_started || dice(w, 3) == 0)
                        continue;
                struct ring_reply reply = { .outcome = outcomes[dice(w, 7)], .error = "", .started_ns = 1 };
                reply.ended_ns = 1 + dice(w, 10000000);
                post(w, (struct pool_event){ .kind = POOL_ANSWERED, .task = t, .reply = &reply });
                return;
        }
}

static void die(struct world *w, struct pool_runner *r)
{
        struct pool_view views[RIG_TASKS];
        struct death death = {
                .signal = dice(w, 2) ? SIGKILL : 0, .seats = w->g.pool.policy.threads, .faults = w->g.faults
        };
        if (dice(w, 2))
                w->g.faults[dice(w, death.seats)].kind = FAULT_SIGNAL;
        size_t count = collect(&w->g, r, views);
        for (size_t i = 0; i < count; i++)
                w->held_by[index_of(&w->g, views[i].task)] = NULL;
        r->process = NULL;
        post(w, (struct pool_event){
                        .kind = POOL_GONE, .runner = r, .views = views, .views_count = count, .death = &death });
        memset(w->g.faults, 0, sizeof(w->g.faults));
}

static void something_with(struct world *w, struct pool_runner *r)
{
        if (!r->process)
                return;
        if (r->state == RUNNER_STARTING && dice(w, 2))
                post(w, (struct pool_event){ .kind = POOL_READY, .runner = r, .has_many = dice(w, 2) });
        else if (dice(w, 20) == 0 || (r->state == RUNNER_DYING && dice(w, 2)) || r->state == RUNNER_RETIRING)
                die(w, r);
        else if (dice(w, 40) == 0)
                post(w, (struct pool_event){ .kind = POOL_BROKEN, .runner = r });
        else if (dice(w, 2))
                start_some(w, r);
        else
                answer_some(w, r);
}

static void something(struct world *w)
{
        struct pool_runner *r = runner(&w->g, dice(w, w->g.pool.runners_count));
        size_t task = dice(w, RIG_TASKS);
        w->g.now_ms += dice(w, 4) ? 0 : dice(w, 30);
        switch (dice(w, 8)) {
        case 0:
        case 1:
                offer_some(w);
                break;
        case 2:
                if (w->is_offered[task] && dice(w, 4) == 0)
                        post(w, (struct pool_event){ .kind = POOL_CANCELLED, .task = &w->g.tasks[task] });
                break;
        case 3:
                post(w, (struct pool_event){ .kind = POOL_TICK });
                break;
        default:
                something_with(w, r);
        }
}

/* The pool's own counts, against what the world knows. */
static void check_counts(struct world *w)
{
        size_t waiting = 0;
        size_t held = 0;
        size_t alive = 0;
        uint32_t lanes[LANES] = { 0 };
        for (const struct pool_task *t = w->g.pool.waiting; t; t = t->next) {
                waiting += w->is_offered[index_of(&w->g, t)] && !t->runner;
                lanes[t->lane]++;
                assert_true(!t->next || t->lane <= t->next->lane);
        }
        assert_int_equal(waiting, w->g.pool.waiting_count);
        assert_memory_equal(lanes, w->g.pool.waiting_of, sizeof(lanes));
        for (const struct pool_task *t = w->g.pool.suspects; t; t = t->next)
                waiting += w->is_offered[index_of(&w->g, t)] && !t->runner;
        assert_int_equal(waiting, w->g.pool.waiting_count + w->g.pool.suspects_count);
        for (uint32_t i = 0; i < w->g.pool.runners_count; i++) {
                struct pool_view views[RIG_TASKS];
                size_t count = collect(&w->g, runner(&w->g, i), views);
                assert_int_equal(count, runner(&w->g, i)->in_flight);
                held += count;
        }
        for (size_t i = 0; i < RIG_TASKS; i++)
                alive += w->is_offered[i];
        assert_int_equal(alive, waiting + held);
        assert_int_equal(w->offered, w->settled + alive);
}

/* From now on everything works, as slowly as the pool allows; the time it asked to be woken at is all it gets. */
static void let_it_drain(struct world *w)
{
        w->g.pool.is_draining = true;
        post(w, (struct pool_event){ .kind = POOL_TICK });
        for (int round = 0; round < 100000 && !pool_is_empty(&w->g.pool); round++) {
                bool has_moved = false;
                for (uint32_t i = 0; i < w->g.pool.runners_count; i++) {
                        struct pool_runner *r = runner(&w->g, i);
                        if (!r->process)
                                continue;
                        has_moved |= r->state == RUNNER_STARTING || r->state == RUNNER_RETIRING || r->in_flight;
                        if (r->state == RUNNER_STARTING)
                                post(w, (struct pool_event){ .kind = POOL_READY, .runner = r, .has_many = true });
                        else if (r->state == RUNNER_RETIRING || r->state == RUNNER_DYING)
                                die(w, r);
                        start_some(w, r);
                        answer_some(w, r);
                }
                uint64_t at_ms = due_ms(&w->g);
                if (has_moved)
                        continue;
                assert_true(at_ms != UINT64_MAX || pool_is_empty(&w->g.pool));
                w->g.now_ms = at_ms > w->g.now_ms ? at_ms : w->g.now_ms;
                post(w, (struct pool_event){ .kind = POOL_TICK });
        }
        assert_true(pool_is_empty(&w->g.pool));
}

static void run_world(uint64_t world_seed)
{
        struct world *w = calloc(1, sizeof(*w));
        assert_non_null(w);
        w->random = world_seed;
        struct pool_policy policy = rig_policy();
        policy.processes = 1 + dice(w, 3);
        policy.threads = 1 + dice(w, RIG_SEATS);
        policy.batch_max = 1 + dice(w, 4);
        policy.batch_wait_ms = dice(w, 10);
        policy.stall_ms = dice(w, 2) ? 40 : 0;
        policy.idle_ms = dice(w, 2) ? 100 : 0;
        policy.max_tasks = dice(w, 2) ? 1 + dice(w, 20) : 0;
        policy.grace_ms = dice(w, 20);
        policy.ring_entries = 1u << (3 + dice(w, 3));
        rig_open(&w->g, &policy);
        for (uint32_t i = 0; i < steps; i++) {
                something(w);
                check_counts(w);
        }
        let_it_drain(w);
        check_counts(w);
        assert_true(w->offered == w->settled);
        assert_true(w->settled > steps / 100);
        rig_close(&w->g);
        free(w);
}

static void every_offered_task_is_settled_exactly_once(void **state)
{
        (void)state;
        for (uint64_t i = 0; i < 20; i++) {
                print_message("seed %llu\n", (unsigned long long)(seed + i));
                run_world(seed + i);
        }
}

int main(int argc, char **argv)
{
        seed = argc > 1 ? strtoull(argv[1], NULL, 10) : (uint64_t)time(NULL) * 1000;
        if (argc > 2)
                steps = (uint32_t)strtoul(argv[2], NULL, 10);
        const struct CMUnitTest tests[] = { cmocka_unit_test(every_offered_task_is_settled_exactly_once) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
