/* A runner that dies: who pays, and who is run again. */
#include <signal.h>

#include "pool_rig.h"

static void unstarted_tasks_of_a_dead_runner_go_back_in_order(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        rig_open(&g, &policy);
        offer(&g, 0);
        ready(&g, runner(&g, 0));
        answer_after(&g, 0, OUTCOME_DONE, 500000);
        offer_range(&g, 1, 6); /* four are handed over, two wait */
        start(&g, 1, 0);
        gone(&g, runner(&g, 0), SIGSEGV);
        assert_settled(&g, 1, OUTCOME_CRASHED, BLAME_CRASH);
        size_t expected = 2;
        for (const struct pool_task *t = g.pool.waiting; t; t = t->next)
                assert_int_equal(index_of(&g, t), expected++);
        assert_int_equal(expected, 7);
        for (size_t i = 2; i < 7; i++)
                assert_unsettled(&g, i);
        rig_close(&g);
}

static void with_a_fault_record_only_the_guilty_seat_pays(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        policy.threads = 3;
        open_running(&g, &policy, 3);
        g.faults[1] = (struct ring_fault_view){ .kind = FAULT_SIGNAL, .signal = SIGSEGV };
        gone(&g, runner(&g, 0), SIGSEGV);
        assert_settled(&g, 0, OUTCOME_INTERRUPTED, BLAME_NEIGHBOUR);
        assert_settled(&g, 1, OUTCOME_CRASHED, BLAME_CRASH);
        assert_settled(&g, 2, OUTCOME_INTERRUPTED, BLAME_NEIGHBOUR);
        assert_int_equal(g.settled[1].seat, 1);
        assert_false(g.settled[0].is_suspect);
        rig_close(&g);
}

static void without_one_all_that_ran_are_suspects(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        policy.threads = 3;
        open_running(&g, &policy, 2);
        offer(&g, 2); /* handed over, not started */
        gone(&g, runner(&g, 0), SIGKILL);
        for (size_t i = 0; i < 2; i++) {
                assert_settled(&g, i, OUTCOME_INTERRUPTED, BLAME_UNSURE);
                assert_true(g.settled[i].is_suspect);
        }
        assert_unsettled(&g, 2);
        rig_close(&g);
}

static void a_crash_in_a_batch_makes_suspects_of_the_batch_alone(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        policy.threads = 2;
        policy.batch_max = 3;
        rig_open(&g, &policy);
        offer_range(&g, 0, 6);
        ready_for_batches(&g, runner(&g, 0));
        for (size_t i = 0; i < 6; i++)
                start(&g, i, i < 3 ? 0 : 1);
        g.faults[1] = (struct ring_fault_view){ .kind = FAULT_SIGNAL, .signal = SIGSEGV };
        gone(&g, runner(&g, 0), SIGSEGV);
        for (size_t i = 0; i < 3; i++) {
                assert_settled(&g, i, OUTCOME_INTERRUPTED, BLAME_NEIGHBOUR);
                assert_false(g.settled[i].is_suspect);
        }
        for (size_t i = 3; i < 6; i++) {
                assert_settled(&g, i, OUTCOME_INTERRUPTED, BLAME_UNSURE);
                assert_true(g.settled[i].is_suspect);
        }
        rig_close(&g);
}

static void suspects_run_one_at_a_time_each_in_a_fresh_runner(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        policy.threads = 4;
        rig_open(&g, &policy);
        offer(&g, 0);
        ready(&g, runner(&g, 0)); /* has room for three more, but is not for suspects */
        for (size_t i = 1; i < 4; i++)
                offer_suspect(&g, i);
        assert_int_equal(runner(&g, 0)->in_flight, 1);
        for (size_t i = 1; i < 4; i++) {
                assert_int_equal(solo(&g)->state, RUNNER_STARTING);
                ready(&g, solo(&g));
                assert_true(was_handed(&g, i, solo(&g)));
                assert_int_equal(solo(&g)->in_flight, 1);
                start(&g, i, 0);
                if (i == 2) {
                        gone(&g, solo(&g), SIGKILL);
                        assert_settled(&g, 2, OUTCOME_CRASHED, BLAME_CRASH);
                        continue;
                }
                answer(&g, i, OUTCOME_DONE);
                assert_true(wanted(&g, ACTION_RETIRE, 0)->runner == solo(&g));
                gone(&g, solo(&g), 0);
        }
        assert_unsettled(&g, 0);
        rig_close(&g);
}

/* It is the task's crash, and counted there. */
static void suspects_that_crash_alone_do_not_quarantine_the_pool(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        rig_open(&g, &policy);
        for (size_t i = 0; i < 8; i++)
                offer_suspect(&g, i);
        for (size_t i = 0; i < 8; i++) {
                ready(&g, solo(&g));
                start(&g, i, 0);
                gone(&g, solo(&g), SIGSEGV);
                assert_settled(&g, i, OUTCOME_CRASHED, BLAME_CRASH);
                assert_int_equal(count_wanted(&g, ACTION_QUARANTINE), 0);
        }
        assert_int_equal(g.pool.state, POOL_OPEN);
        rig_close(&g);
}

static void a_runner_that_scribbles_is_killed_and_blamed(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        open_running(&g, &policy, 1);
        step(&g, &(struct pool_event){ .kind = POOL_BROKEN, .runner = runner(&g, 0) });
        assert_int_equal(count_wanted(&g, ACTION_KILL), 1);
        gone(&g, runner(&g, 0), SIGKILL);
        assert_settled(&g, 0, OUTCOME_CRASHED, BLAME_SCRIBBLE);
        rig_close(&g);
}

static void a_runners_end_has_a_cause(void **state)
{
        (void)state;
        static const struct {
                enum runner_state state;
                enum blame_why why;
                int signal;
                enum runner_exit exit;
        } cases[] = {
                { RUNNER_READY, BLAME_NOTHING, 0, EXIT_EXITED },
                { RUNNER_READY, BLAME_NOTHING, SIGSEGV, EXIT_CRASHED },
                { RUNNER_READY, BLAME_NOTHING, SIGKILL, EXIT_KILLED },
                { RUNNER_RETIRING, BLAME_NOTHING, 0, EXIT_RETIRED },
                { RUNNER_STARTING, BLAME_NOTHING, 0, EXIT_START },
                { RUNNER_STARTING, BLAME_NOTHING, SIGSEGV, EXIT_START },
                { RUNNER_DYING, BLAME_INIT, SIGKILL, EXIT_START },
                { RUNNER_DYING, BLAME_TIMEOUT, SIGABRT, EXIT_TIMEOUT },
                { RUNNER_DYING, BLAME_STALL, SIGKILL, EXIT_TIMEOUT },
                { RUNNER_DYING, BLAME_CANCEL, SIGABRT, EXIT_HOST },
                { RUNNER_DYING, BLAME_SHUTDOWN, SIGKILL, EXIT_HOST },
                { RUNNER_DYING, BLAME_SCRIBBLE, SIGKILL, EXIT_CRASHED },
        };
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct pool_runner r = { .state = cases[i].state, .why = cases[i].why };
                assert_int_equal(pool_exit_of(&r, cases[i].signal), cases[i].exit);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(unstarted_tasks_of_a_dead_runner_go_back_in_order),
                cmocka_unit_test(with_a_fault_record_only_the_guilty_seat_pays),
                cmocka_unit_test(without_one_all_that_ran_are_suspects),
                cmocka_unit_test(a_crash_in_a_batch_makes_suspects_of_the_batch_alone),
                cmocka_unit_test(suspects_run_one_at_a_time_each_in_a_fresh_runner),
                cmocka_unit_test(suspects_that_crash_alone_do_not_quarantine_the_pool),
                cmocka_unit_test(a_runner_that_scribbles_is_killed_and_blamed),
                cmocka_unit_test(a_runners_end_has_a_cause),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
