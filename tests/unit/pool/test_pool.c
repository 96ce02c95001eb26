/* Who gets which task, when runners come and go, and when a pool takes nothing. */
#include "pool_rig.h"

static void nothing_is_spawned_before_it_is_needed(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        rig_open(&g, &policy);
        tick(&g);
        assert_int_equal(count_wanted(&g, ACTION_SPAWN), 0);
        assert_true(due_ms(&g) == UINT64_MAX);
        assert_true(pool_is_empty(&g.pool));

        offer(&g, 0);
        assert_int_equal(count_wanted(&g, ACTION_SPAWN), 1);
        assert_int_equal(count_wanted(&g, ACTION_HAND), 0);
        ready(&g, runner(&g, 0));
        assert_true(was_handed(&g, 0, runner(&g, 0)));
        rig_close(&g);
}

static void no_more_runners_than_processes(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        policy.processes = 3;
        rig_open(&g, &policy);
        uint32_t spawned = 0;
        for (size_t i = 0; i < 20; i++) {
                offer(&g, i);
                spawned += count_wanted(&g, ACTION_SPAWN);
        }
        assert_int_equal(spawned, 3);
        rig_close(&g);
}

static void one_task_needs_one_runner(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        policy.processes = 3;
        policy.threads = 4;
        rig_open(&g, &policy);
        offer_range(&g, 0, 4); /* one runner's seats are enough */
        assert_int_equal(runner(&g, 1)->state, RUNNER_NONE);
        offer(&g, 4);
        assert_int_equal(count_wanted(&g, ACTION_SPAWN), 1);
        rig_close(&g);
}

/* An idle runner that waits for its batch to fill is as good as a new one. */
static void a_batch_that_fills_up_spawns_nobody(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        policy.processes = 2;
        policy.batch_max = 8;
        policy.batch_wait_ms = 10;
        rig_open(&g, &policy);
        offer(&g, 0);
        g.now_ms += 20;
        ready_for_batches(&g, runner(&g, 0));
        start(&g, 0, 0);
        answer(&g, 0, OUTCOME_DONE);
        offer(&g, 1);
        assert_int_equal(count_wanted(&g, ACTION_HAND), 0);
        assert_int_equal(count_wanted(&g, ACTION_SPAWN), 0);
        rig_close(&g);
}

static void the_least_busy_runner_gets_the_task(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        policy.processes = 2;
        policy.threads = 2;
        rig_open(&g, &policy);
        offer_range(&g, 0, 3);
        ready(&g, runner(&g, 0));
        ready(&g, runner(&g, 1));
        assert_int_equal(runner(&g, 0)->in_flight, 2);
        assert_int_equal(runner(&g, 1)->in_flight, 1);
        answer(&g, 0, OUTCOME_DONE);
        answer(&g, 1, OUTCOME_DONE);
        offer(&g, 3);
        assert_true(was_handed(&g, 3, runner(&g, 0)));
        rig_close(&g);
}

/* --- back-pressure --- */

static void a_full_pool_has_no_room(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        policy.processes = 2;
        policy.threads = 2;
        rig_open(&g, &policy);
        size_t offered = 0;
        while (pool_has_room(&g.pool) && offered < RIG_TASKS)
                offer(&g, offered++);
        assert_int_equal(offered, 4);
        ready(&g, runner(&g, 0));
        assert_true(pool_has_room(&g.pool));
        rig_close(&g);
}

static void what_waits_in_lower_lanes_is_handed_over_later_and_takes_no_room(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        rig_open(&g, &policy);
        static const enum lane lanes[] = { LANE_LOW, LANE_NORMAL, LANE_HIGH };
        for (size_t i = 0; i < 3; i++) {
                assert_int_equal(pool_room(&g.pool, lanes[i]), 1);
                g.tasks[i].lane = lanes[i];
                offer(&g, i);
                assert_int_equal(pool_room(&g.pool, lanes[i]), 0);
        }
        ready(&g, runner(&g, 0));
        for (size_t i = 3; i--;) {
                assert_true(was_handed(&g, i, runner(&g, 0)));
                answer(&g, i, OUTCOME_DONE);
        }
        rig_close(&g);
}

static void quick_tasks_are_handed_over_ahead(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        rig_open(&g, &policy);
        offer(&g, 0);
        ready(&g, runner(&g, 0));
        answer_after(&g, 0, OUTCOME_DONE, 100000); /* 0.1 ms: twenty of them are 2 ms of work */
        offer_range(&g, 1, 40);
        assert_int_equal(runner(&g, 0)->in_flight, 20);
        rig_close(&g);
}

static void no_more_than_the_ring_holds_is_handed_over(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        policy.ring_entries = 8;
        rig_open(&g, &policy);
        offer(&g, 0);
        ready(&g, runner(&g, 0));
        answer_after(&g, 0, OUTCOME_DONE, 10);
        offer_range(&g, 1, 40);
        assert_int_equal(runner(&g, 0)->in_flight, 8);
        rig_close(&g);
}

/* A ring has room for few of them, and trying costs as much as handing over. */
static void no_more_large_tasks_are_handed_over_than_the_ring_has_room_for(void **state)
{
        (void)state;
        static char large[4096];
        struct rig g;
        struct pool_policy policy = rig_policy();
        policy.processes = 2;
        rig_open(&g, &policy);
        offer(&g, 0);
        ready(&g, runner(&g, 0));
        answer_after(&g, 0, OUTCOME_DONE, 10);
        for (size_t i = 1; i < 50; i++) {
                g.tasks[i].task.payload = large;
                g.tasks[i].task.payload_size = sizeof(large);
        }
        offer_range(&g, 1, 49);
        assert_int_equal(runner(&g, 0)->in_flight, RING_SPILLS);
        assert_int_equal(count_wanted(&g, ACTION_SPAWN), 0); /* one is starting already */
        assert_int_equal(runner(&g, 1)->state, RUNNER_STARTING);
        answer(&g, 1, OUTCOME_DONE);
        assert_int_equal(count_wanted(&g, ACTION_HAND), 1);
        assert_true(was_handed(&g, RING_SPILLS + 1, runner(&g, 0)));
        ready(&g, runner(&g, 1));
        assert_int_equal(runner(&g, 1)->in_flight, 49 - 1 - RING_SPILLS);
        offer(&g, 50); /* a small one finds room */
        assert_true(was_handed(&g, 50, runner(&g, 1)));
        rig_close(&g);
}

static void slow_tasks_are_not_hoarded(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        policy.threads = 2;
        rig_open(&g, &policy);
        offer(&g, 0);
        ready(&g, runner(&g, 0));
        answer_after(&g, 0, OUTCOME_DONE, UINT64_C(5000000000));
        offer_range(&g, 1, 10);
        assert_int_equal(runner(&g, 0)->in_flight, 2);
        rig_close(&g);
}

static void a_full_ring_is_tried_again_soon(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        rig_open(&g, &policy);
        offer(&g, 0);
        ready(&g, runner(&g, 0));
        step(&g, &(struct pool_event){ .kind = POOL_FULL, .runner = runner(&g, 0), .task = &g.tasks[0] });
        assert_int_equal(count_wanted(&g, ACTION_HAND), 0);
        assert_unsettled(&g, 0);
        tick_when_due(&g);
        assert_true(was_handed(&g, 0, runner(&g, 0)));
        rig_close(&g);
}

/* --- runners that fail --- */

static void backoff_grows_with_each_failure_in_a_row(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        policy.quarantine_after = 0;
        rig_open(&g, &policy);
        offer(&g, 0);
        uint64_t before_ms = 0;
        for (int i = 0; i < 8; i++) {
                gone(&g, runner(&g, 0), SIGKILL);
                assert_int_equal(count_wanted(&g, ACTION_SPAWN), 0);
                uint64_t wait_ms = due_ms(&g) - g.now_ms;
                uint64_t full_ms = UINT64_C(100) << i < 1600 ? UINT64_C(100) << i : 1600;
                assert_in_range(wait_ms, full_ms / 2, full_ms);
                assert_true(i > 4 || wait_ms >= before_ms);
                before_ms = wait_ms;
                tick_when_due(&g);
                assert_int_equal(count_wanted(&g, ACTION_SPAWN), 1);
        }
        assert_unsettled(&g, 0);
        rig_close(&g);
}

/* The loop may be late: what fell due while nobody looked is due still. */
static void a_backoff_that_is_over_is_still_due(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        rig_open(&g, &policy);
        offer(&g, 0);
        gone(&g, runner(&g, 0), SIGKILL);
        g.now_ms += 10000;
        assert_true(due_ms(&g) <= g.now_ms);
        tick(&g);
        assert_int_equal(count_wanted(&g, ACTION_SPAWN), 1);
        rig_close(&g);
}

static void an_answer_resets_the_backoff(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        rig_open(&g, &policy);
        offer_range(&g, 0, 3);
        for (int i = 0; i < 3; i++) {
                gone(&g, runner(&g, 0), SIGKILL);
                tick_when_due(&g);
        }
        ready(&g, runner(&g, 0));
        answer(&g, 0, OUTCOME_DONE);
        /* A runner that had answered something died: replaced at once, and not counted. */
        gone(&g, runner(&g, 0), SIGKILL);
        assert_int_equal(count_wanted(&g, ACTION_SPAWN), 1);
        assert_int_equal(g.pool.failures, 0);
        rig_close(&g);
}

static void fruitless_runners_end_in_quarantine_until_it_is_lifted(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        rig_open(&g, &policy);
        offer(&g, 0);
        for (int i = 0; i < 4; i++) {
                assert_int_equal(g.pool.state, POOL_OPEN);
                gone(&g, runner(&g, 0), SIGSEGV);
                assert_int_equal(count_wanted(&g, ACTION_QUARANTINE), i == 3);
                if (i < 3)
                        tick_when_due(&g);
        }
        assert_false(pool_has_room(&g.pool));
        tick_at(&g, g.now_ms + 3600000);
        assert_int_equal(g.actions.count, 0);
        assert_true(due_ms(&g) == UINT64_MAX);
        assert_unsettled(&g, 0);

        pool_lift(&g.pool);
        tick(&g);
        assert_int_equal(count_wanted(&g, ACTION_SPAWN), 1);
        ready(&g, runner(&g, 0));
        assert_true(was_handed(&g, 0, runner(&g, 0)));
        rig_close(&g);
}

static void a_runner_that_is_not_ready_in_time_is_killed(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        rig_open(&g, &policy);
        offer(&g, 0);
        tick_at(&g, g.now_ms + 999);
        assert_int_equal(count_wanted(&g, ACTION_KILL), 0);
        tick_when_due(&g);
        assert_int_equal(count_wanted(&g, ACTION_KILL), 1);
        assert_int_equal(runner(&g, 0)->why, BLAME_INIT);
        /* Too late. */
        ready(&g, runner(&g, 0));
        assert_int_equal(count_wanted(&g, ACTION_HAND), 0);
        gone(&g, runner(&g, 0), SIGKILL);
        assert_int_equal(g.pool.failures, 1);
        assert_unsettled(&g, 0);
        rig_close(&g);
}

/* --- runners that have had their share --- */

static void a_runner_is_replaced_after_max_tasks(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        policy.max_tasks = 2;
        rig_open(&g, &policy);
        offer_range(&g, 0, 3);
        ready(&g, runner(&g, 0));
        answer(&g, 0, OUTCOME_DONE);
        assert_true(was_handed(&g, 1, runner(&g, 0)));
        answer(&g, 1, OUTCOME_DONE);
        assert_int_equal(count_wanted(&g, ACTION_RETIRE), 1);
        assert_int_equal(count_wanted(&g, ACTION_HAND), 0);
        gone(&g, runner(&g, 0), 0);
        assert_int_equal(count_wanted(&g, ACTION_SPAWN), 1);
        assert_int_equal(g.pool.failures, 0);
        ready(&g, runner(&g, 0));
        assert_true(was_handed(&g, 2, runner(&g, 0)));
        rig_close(&g);
}

/* What was only lent to a runner does not count. */
static void tasks_taken_back_do_not_use_a_runner_up(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        policy.max_tasks = 3;
        rig_open(&g, &policy);
        offer(&g, 0);
        ready(&g, runner(&g, 0));
        answer_after(&g, 0, OUTCOME_DONE, 100000);
        offer_range(&g, 1, 2);
        assert_int_equal(runner(&g, 0)->in_flight, 2);
        start(&g, 1, 0);
        answer(&g, 1, OUTCOME_UNAVAILABLE);
        assert_int_equal(count_wanted(&g, ACTION_TAKE_BACK), 1);
        taken_back(&g, 2);
        tick_when_due(&g);
        assert_true(was_handed(&g, 2, runner(&g, 0)));
        rig_close(&g);
}

static void an_idle_runner_is_retired(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        policy.idle_ms = 5000;
        rig_open(&g, &policy);
        offer(&g, 0);
        ready(&g, runner(&g, 0));
        g.now_ms += 60000; /* busy is not idle */
        tick(&g);
        assert_int_equal(count_wanted(&g, ACTION_RETIRE), 0);
        answer(&g, 0, OUTCOME_DONE);
        tick_at(&g, g.now_ms + 4999);
        assert_int_equal(count_wanted(&g, ACTION_RETIRE), 0);
        tick_when_due(&g);
        assert_int_equal(count_wanted(&g, ACTION_RETIRE), 1);
        gone(&g, runner(&g, 0), 0);
        assert_true(pool_is_empty(&g.pool));
        assert_int_equal(g.pool.failures, 0);
        rig_close(&g);
}

static void a_retired_runner_that_stays_is_killed(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        policy.idle_ms = 10;
        rig_open(&g, &policy);
        offer(&g, 0);
        ready(&g, runner(&g, 0));
        answer(&g, 0, OUTCOME_DONE);
        tick_when_due(&g);
        assert_int_equal(runner(&g, 0)->state, RUNNER_RETIRING);
        tick_at(&g, g.now_ms + 499);
        assert_int_equal(count_wanted(&g, ACTION_KILL), 0);
        tick_when_due(&g);
        assert_int_equal(count_wanted(&g, ACTION_KILL), 1);
        rig_close(&g);
}

/* --- draining --- */

static void draining_retires_every_runner(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        policy.processes = 2;
        rig_open(&g, &policy);
        offer_range(&g, 0, 3);
        ready(&g, runner(&g, 0));
        ready(&g, runner(&g, 1));
        g.pool.is_draining = true;
        tick(&g);
        assert_false(pool_has_room(&g.pool));
        assert_int_equal(count_wanted(&g, ACTION_RETIRE), 0);
        answer(&g, 0, OUTCOME_DONE); /* what was offered is still done */
        assert_true(was_handed(&g, 2, runner(&g, 0)));
        answer(&g, 1, OUTCOME_DONE);
        answer(&g, 2, OUTCOME_DONE);
        assert_int_equal(runner(&g, 0)->state, RUNNER_RETIRING);
        assert_int_equal(runner(&g, 1)->state, RUNNER_RETIRING);
        gone(&g, runner(&g, 0), 0);
        gone(&g, runner(&g, 1), 0);
        assert_true(pool_is_empty(&g.pool));
        rig_close(&g);
}

/* The runners sit idle while the last suspect runs elsewhere; nothing happens to them that would remind the pool. */
static void draining_retires_those_that_were_idle_all_along(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        rig_open(&g, &policy);
        offer(&g, 0);
        ready(&g, runner(&g, 0));
        answer(&g, 0, OUTCOME_DONE);
        offer_suspect(&g, 1);
        g.pool.is_draining = true;
        tick(&g);
        ready(&g, solo(&g));
        answer(&g, 1, OUTCOME_DONE);
        assert_int_equal(runner(&g, 0)->state, RUNNER_RETIRING);
        assert_int_equal(solo(&g)->state, RUNNER_RETIRING);
        rig_close(&g);
}

/* Nothing will ever run there, and whoever drains waits for the tasks. */
static void draining_a_quarantined_pool_gives_its_tasks_back(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        policy.quarantine_after = 1;
        rig_open(&g, &policy);
        offer_range(&g, 0, 2);
        offer_suspect(&g, 2);
        gone(&g, runner(&g, 0), SIGSEGV);
        assert_int_equal(g.pool.state, POOL_QUARANTINED);
        gone(&g, solo(&g), SIGSEGV);
        g.pool.is_draining = true;
        tick(&g);
        for (size_t i = 0; i < 3; i++)
                assert_settled(&g, i, OUTCOME_INTERRUPTED, BLAME_SHUTDOWN);
        assert_true(pool_is_empty(&g.pool));
        rig_close(&g);
}

static void cutting_short_kills_every_runner_and_gives_everything_back(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        policy.processes = 2;
        policy.threads = 2;
        rig_open(&g, &policy);
        offer_range(&g, 0, 5);
        ready(&g, runner(&g, 0));
        start(&g, 0, 0);
        offer_suspect(&g, 5);
        step(&g, &(struct pool_event){ .kind = POOL_CUT });
        assert_int_equal(count_wanted(&g, ACTION_KILL), 3);
        gone(&g, runner(&g, 0), SIGKILL);
        gone(&g, runner(&g, 1), SIGKILL);
        gone(&g, solo(&g), SIGKILL);
        for (size_t i = 0; i < 6; i++)
                assert_settled(&g, i, OUTCOME_INTERRUPTED, BLAME_SHUTDOWN);
        assert_true(pool_is_empty(&g.pool));
        rig_close(&g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(nothing_is_spawned_before_it_is_needed),
                cmocka_unit_test(no_more_runners_than_processes),
                cmocka_unit_test(one_task_needs_one_runner),
                cmocka_unit_test(a_batch_that_fills_up_spawns_nobody),
                cmocka_unit_test(the_least_busy_runner_gets_the_task),
                cmocka_unit_test(a_full_pool_has_no_room),
                cmocka_unit_test(what_waits_in_lower_lanes_is_handed_over_later_and_takes_no_room),
                cmocka_unit_test(quick_tasks_are_handed_over_ahead),
                cmocka_unit_test(no_more_than_the_ring_holds_is_handed_over),
                cmocka_unit_test(no_more_large_tasks_are_handed_over_than_the_ring_has_room_for),
                cmocka_unit_test(slow_tasks_are_not_hoarded),
                cmocka_unit_test(a_full_ring_is_tried_again_soon),
                cmocka_unit_test(backoff_grows_with_each_failure_in_a_row),
                cmocka_unit_test(a_backoff_that_is_over_is_still_due),
                cmocka_unit_test(an_answer_resets_the_backoff),
                cmocka_unit_test(fruitless_runners_end_in_quarantine_until_it_is_lifted),
                cmocka_unit_test(a_runner_that_is_not_ready_in_time_is_killed),
                cmocka_unit_test(a_runner_is_replaced_after_max_tasks),
                cmocka_unit_test(tasks_taken_back_do_not_use_a_runner_up),
                cmocka_unit_test(an_idle_runner_is_retired),
                cmocka_unit_test(a_retired_runner_that_stays_is_killed),
                cmocka_unit_test(draining_retires_every_runner),
                cmocka_unit_test(draining_retires_those_that_were_idle_all_along),
                cmocka_unit_test(draining_a_quarantined_pool_gives_its_tasks_back),
                cmocka_unit_test(cutting_short_kills_every_runner_and_gives_everything_back),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
