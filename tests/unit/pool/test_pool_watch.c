/* Deadlines, the stuck and the cancelled: who is stopped, when, and what goes elsewhere. */
#include <signal.h>

#include "pool_rig.h"

/* Sleeps until due and looks, as pool does, until the time is reached. */
static void run_until(struct rig *g, uint64_t until_ms)
{
        while (due_ms(g) <= until_ms) {
                tick_when_due(g);
                const struct pool_action *look = wanted(g, ACTION_LOOK, 0);
                if (look)
                        seen(g, look->runner);
                if (count_wanted(g, ACTION_STOP) || count_wanted(g, ACTION_ABORT) || count_wanted(g, ACTION_KILL))
                        return;
        }
        g->now_ms = until_ms;
}

/* --- deadlines --- */

static void stop_at_the_timeout_abort_after_the_grace_kill_after_that(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        open_running(&g, &policy, 1);
        uint64_t started_ms = g.now_ms;
        run_until(&g, UINT64_MAX - 1);
        assert_true(g.now_ms == started_ms + 1000);
        assert_true(wanted(&g, ACTION_STOP, 0)->task == &g.tasks[0]);
        run_until(&g, UINT64_MAX - 1);
        assert_true(g.now_ms == started_ms + 1500);
        assert_true(wanted(&g, ACTION_ABORT, 0)->runner == runner(&g, 0));
        run_until(&g, UINT64_MAX - 1);
        assert_true(g.now_ms == started_ms + 1600);
        assert_true(wanted(&g, ACTION_KILL, 0)->runner == runner(&g, 0));
        assert_unsettled(&g, 0);
        assert_true(due_ms(&g) == UINT64_MAX);

        gone(&g, runner(&g, 0), SIGKILL);
        assert_settled(&g, 0, OUTCOME_TIMED_OUT, BLAME_TIMEOUT);
        assert_int_equal(g.pool.failures, 0);
        rig_close(&g);
}

static void a_task_that_stops_when_told_keeps_its_runner(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        open_running(&g, &policy, 1);
        run_until(&g, UINT64_MAX - 1);
        assert_int_equal(count_wanted(&g, ACTION_STOP), 1);
        answer(&g, 0, OUTCOME_RETRY);
        assert_settled(&g, 0, OUTCOME_RETRY, BLAME_NOTHING);
        run_until(&g, g.now_ms + 10000);
        assert_int_equal(runner(&g, 0)->state, RUNNER_READY);
        rig_close(&g);
}

static void time_counts_from_the_start_not_from_the_queue(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        policy.init_ms = 0;
        rig_open(&g, &policy);
        g.tasks[0].task.timeout_ms = 1000;
        offer(&g, 0);
        ready(&g, runner(&g, 0));
        run_until(&g, g.now_ms + 5000); /* no seat has come to it */
        assert_int_equal(count_wanted(&g, ACTION_STOP), 0);
        start(&g, 0, 0);
        uint64_t started_ms = g.now_ms;
        run_until(&g, g.now_ms + 100000);
        assert_int_equal(count_wanted(&g, ACTION_STOP), 1);
        assert_true(g.now_ms == started_ms + 1000);
        rig_close(&g);
}

static void progress_resets_the_stall_timer(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        policy.stall_ms = 200;
        open_running(&g, &policy, 1);
        uint64_t started_ms = g.now_ms;
        run_until(&g, started_ms + 199);
        g.views[0].progressed_ms = g.now_ms;
        run_until(&g, started_ms + 398);
        assert_int_equal(count_wanted(&g, ACTION_STOP), 0);
        run_until(&g, started_ms + 10000);
        assert_int_equal(count_wanted(&g, ACTION_STOP), 1);
        assert_true(g.now_ms == started_ms + 399);
        run_until(&g, UINT64_MAX - 1);
        assert_int_equal(count_wanted(&g, ACTION_ABORT), 1);
        gone(&g, runner(&g, 0), SIGABRT);
        assert_settled(&g, 0, OUTCOME_TIMED_OUT, BLAME_STALL);
        rig_close(&g);
}

static void progress_never_moves_the_deadline(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        policy.stall_ms = 200;
        open_running(&g, &policy, 1);
        uint64_t started_ms = g.now_ms;
        for (uint64_t at_ms = started_ms; at_ms < started_ms + 1000; at_ms += 50) {
                run_until(&g, at_ms);
                assert_int_equal(count_wanted(&g, ACTION_STOP), 0);
                g.views[0].progressed_ms = g.now_ms;
        }
        run_until(&g, UINT64_MAX - 1);
        assert_int_equal(count_wanted(&g, ACTION_STOP), 1);
        assert_true(g.now_ms == started_ms + 1000);
        rig_close(&g);
}

static void siblings_of_one_that_hangs_are_interrupted_at_no_cost(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        policy.threads = 3;
        open_running(&g, &policy, 2);
        g.now_ms += 900;
        offer(&g, 2);
        start(&g, 2, 2);
        run_until(&g, UINT64_MAX - 1);
        answer(&g, 1, OUTCOME_DONE); /* this one listened */
        run_until(&g, UINT64_MAX - 1);
        assert_int_equal(count_wanted(&g, ACTION_ABORT), 1);
        gone(&g, runner(&g, 0), SIGABRT);
        assert_settled(&g, 0, OUTCOME_TIMED_OUT, BLAME_TIMEOUT);
        assert_settled(&g, 1, OUTCOME_DONE, BLAME_NOTHING);
        assert_settled(&g, 2, OUTCOME_INTERRUPTED, BLAME_NEIGHBOUR);
        assert_false(g.settled[2].is_suspect);
        rig_close(&g);
}

/* One of them hangs, and all share its call. */
static void a_batch_that_hangs_is_made_of_suspects(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        policy.batch_max = 3;
        policy.threads = 2;
        rig_open(&g, &policy);
        for (size_t i = 0; i < 3; i++) {
                g.tasks[i].task.timeout_ms = 1000;
                offer(&g, i);
        }
        ready_for_batches(&g, runner(&g, 0));
        for (size_t i = 0; i < 3; i++)
                start(&g, i, 0);
        run_until(&g, UINT64_MAX - 1);
        assert_int_equal(count_wanted(&g, ACTION_STOP), 3);
        run_until(&g, UINT64_MAX - 1);
        assert_int_equal(count_wanted(&g, ACTION_ABORT), 1);
        gone(&g, runner(&g, 0), SIGABRT);
        for (size_t i = 0; i < 3; i++) {
                assert_settled(&g, i, OUTCOME_INTERRUPTED, BLAME_UNSURE);
                assert_true(g.settled[i].is_suspect);
        }
        rig_close(&g);
}

/* --- the stuck --- */

static void what_is_stuck_goes_elsewhere_if_there_is_an_elsewhere(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        policy.processes = 2;
        rig_open(&g, &policy);
        offer(&g, 0);
        ready(&g, runner(&g, 0));
        answer_after(&g, 0, OUTCOME_DONE, 500000); /* four are handed ahead */
        offer_range(&g, 1, 4);
        assert_int_equal(runner(&g, 0)->in_flight, 4);
        start(&g, 1, 0);
        tick_when_due(&g);
        assert_int_equal(count_wanted(&g, ACTION_LOOK), 1);
        seen(&g, runner(&g, 0));
        assert_int_equal(count_wanted(&g, ACTION_TAKE_BACK), 3);
        assert_true(wanted(&g, ACTION_TAKE_BACK, 0)->task == &g.tasks[4]);
        for (size_t i = 4; i > 1; i--)
                taken_back(&g, i);
        assert_true(g.pool.waiting == NULL || g.pool.waiting_count + runner(&g, 0)->in_flight == 4);
        assert_int_equal(runner(&g, 1)->state, RUNNER_STARTING);
        rig_close(&g);
}

/* Four are handed to the only runner, which has `threads` seats; so many of them start, and run for long. */
static void open_behind(struct rig *g, uint32_t threads, size_t started)
{
        struct pool_policy policy = rig_policy();
        policy.threads = threads;
        rig_open(g, &policy);
        offer(g, 0);
        ready(g, runner(g, 0));
        answer_after(g, 0, OUTCOME_DONE, 500000);
        offer_range(g, 1, 4);
        assert_int_equal(runner(g, 0)->in_flight, 4);
        for (size_t i = 1; i <= started; i++)
                start(g, i, (uint32_t)i - 1);
}

/* Higher lanes pass it there, and other hosts find it. */
static void what_stands_behind_a_long_task_goes_back_to_those_that_wait(void **state)
{
        (void)state;
        struct rig g;
        open_behind(&g, 1, 1);
        uint64_t handed_ms = g.now_ms;
        do {
                tick_when_due(&g);
                if (count_wanted(&g, ACTION_LOOK))
                        seen(&g, runner(&g, 0));
        } while (!count_wanted(&g, ACTION_TAKE_BACK) && g.now_ms < handed_ms + 1000);
        assert_in_range(g.now_ms, handed_ms + 50, handed_ms + 100);
        assert_int_equal(count_wanted(&g, ACTION_TAKE_BACK), 3);
        for (size_t i = 4; i > 1; i--)
                taken_back(&g, i);
        assert_int_equal(g.pool.waiting_count, 3);
        assert_true(g.pool.waiting == &g.tasks[2]);
        assert_int_equal(pool_free_seats(&g.pool), 0);
        /* Nothing goes there before the seat is free, however long that takes. */
        for (int i = 0; i < 20; i++) {
                g.now_ms += 1000;
                tick(&g);
                if (count_wanted(&g, ACTION_LOOK))
                        seen(&g, runner(&g, 0));
                assert_int_equal(count_wanted(&g, ACTION_HAND), 0);
        }
        answer(&g, 1, OUTCOME_DONE);
        assert_true(was_handed(&g, 2, runner(&g, 0)));
        rig_close(&g);
}

/* It starts there in a moment. */
static void what_has_a_free_seat_before_it_stays(void **state)
{
        (void)state;
        struct rig g;
        open_behind(&g, 2, 1);
        for (int i = 0; i < 20; i++) {
                tick_when_due(&g);
                if (count_wanted(&g, ACTION_LOOK))
                        seen(&g, runner(&g, 0));
                assert_int_equal(count_wanted(&g, ACTION_TAKE_BACK), 0);
                assert_int_equal(count_wanted(&g, ACTION_KILL), 0);
        }
        rig_close(&g);
}

/* Stopped from outside, or all its threads are lost: nothing runs there that could time out. */
static void a_runner_that_starts_nothing_is_killed_and_its_tasks_run_again(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        rig_open(&g, &policy);
        offer(&g, 0);
        ready(&g, runner(&g, 0));
        uint64_t handed_ms = g.now_ms;
        run_until(&g, handed_ms + 60000);
        assert_int_equal(count_wanted(&g, ACTION_KILL), 1);
        assert_in_range(g.now_ms, handed_ms + policy.init_ms, handed_ms + 2 * policy.init_ms);
        gone(&g, runner(&g, 0), SIGKILL);
        assert_unsettled(&g, 0);
        ready(&g, runner(&g, 0));
        assert_true(was_handed(&g, 0, runner(&g, 0)));
        rig_close(&g);
}

/* --- cancel --- */

static void a_waiting_task_is_cancelled_at_once(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        rig_open(&g, &policy);
        offer_range(&g, 0, 2);
        cancel(&g, 0);
        assert_settled(&g, 0, OUTCOME_INTERRUPTED, BLAME_CANCEL);
        ready(&g, runner(&g, 0));
        assert_true(was_handed(&g, 1, runner(&g, 0)));
        rig_close(&g);
}

static void an_unstarted_task_is_taken_back_and_cancelled(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        rig_open(&g, &policy);
        offer(&g, 0);
        ready(&g, runner(&g, 0));
        cancel(&g, 0);
        assert_true(wanted(&g, ACTION_TAKE_BACK, 0)->task == &g.tasks[0]);
        taken_back(&g, 0);
        assert_settled(&g, 0, OUTCOME_INTERRUPTED, BLAME_CANCEL);
        assert_true(pool_is_idle(&g.pool));
        rig_close(&g);
}

static void a_running_task_is_stopped_when_cancelled(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        open_running(&g, &policy, 1);
        g.now_ms += 10;
        cancel(&g, 0);
        assert_int_equal(count_wanted(&g, ACTION_LOOK), 1);
        seen(&g, runner(&g, 0));
        assert_int_equal(count_wanted(&g, ACTION_STOP), 1);
        assert_unsettled(&g, 0);
        run_until(&g, UINT64_MAX - 1);
        assert_int_equal(count_wanted(&g, ACTION_ABORT), 1);
        gone(&g, runner(&g, 0), SIGABRT);
        assert_settled(&g, 0, OUTCOME_INTERRUPTED, BLAME_CANCEL);
        rig_close(&g);
}

static void a_cancelled_task_that_was_done_first_is_done(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        open_running(&g, &policy, 1);
        cancel(&g, 0);
        answer(&g, 0, OUTCOME_DONE);
        assert_settled(&g, 0, OUTCOME_DONE, BLAME_NOTHING);
        rig_close(&g);
}

static void a_cancelled_task_that_gives_up_is_cancelled(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        open_running(&g, &policy, 1);
        cancel(&g, 0);
        answer(&g, 0, OUTCOME_RETRY);
        assert_settled(&g, 0, OUTCOME_INTERRUPTED, BLAME_CANCEL);
        rig_close(&g);
}

/* It was told to stop for its timeout already; who comes later does not change why. */
static void cancelling_what_has_timed_out_does_not_excuse_it(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        open_running(&g, &policy, 1);
        run_until(&g, UINT64_MAX - 1);
        cancel(&g, 0);
        seen(&g, runner(&g, 0));
        run_until(&g, UINT64_MAX - 1);
        gone(&g, runner(&g, 0), SIGABRT);
        assert_settled(&g, 0, OUTCOME_TIMED_OUT, BLAME_TIMEOUT);
        rig_close(&g);
}

static void a_cancelled_suspect_does_not_block_the_next(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        rig_open(&g, &policy);
        offer_suspect(&g, 0);
        offer_suspect(&g, 1);
        ready(&g, solo(&g));
        cancel(&g, 0);
        taken_back(&g, 0);
        assert_true(was_handed(&g, 1, solo(&g)));
        rig_close(&g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(stop_at_the_timeout_abort_after_the_grace_kill_after_that),
                cmocka_unit_test(a_task_that_stops_when_told_keeps_its_runner),
                cmocka_unit_test(time_counts_from_the_start_not_from_the_queue),
                cmocka_unit_test(progress_resets_the_stall_timer),
                cmocka_unit_test(progress_never_moves_the_deadline),
                cmocka_unit_test(siblings_of_one_that_hangs_are_interrupted_at_no_cost),
                cmocka_unit_test(a_batch_that_hangs_is_made_of_suspects),
                cmocka_unit_test(what_is_stuck_goes_elsewhere_if_there_is_an_elsewhere),
                cmocka_unit_test(what_stands_behind_a_long_task_goes_back_to_those_that_wait),
                cmocka_unit_test(what_has_a_free_seat_before_it_stays),
                cmocka_unit_test(a_runner_that_starts_nothing_is_killed_and_its_tasks_run_again),
                cmocka_unit_test(a_waiting_task_is_cancelled_at_once),
                cmocka_unit_test(an_unstarted_task_is_taken_back_and_cancelled),
                cmocka_unit_test(a_running_task_is_stopped_when_cancelled),
                cmocka_unit_test(a_cancelled_task_that_was_done_first_is_done),
                cmocka_unit_test(a_cancelled_task_that_gives_up_is_cancelled),
                cmocka_unit_test(cancelling_what_has_timed_out_does_not_excuse_it),
                cmocka_unit_test(a_cancelled_suspect_does_not_block_the_next),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
