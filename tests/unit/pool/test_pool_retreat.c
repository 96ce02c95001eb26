/* A pool that makes way for another: what it gives back, and how its size changes. */
#include "pool_rig.h"

static void fewer_processes_are_retired_and_more_are_started(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        rig_open(&g, &policy);
        offer(&g, 0);
        ready(&g, runner(&g, 0));
        policy.processes = 3;
        pool_set_policy(&g.pool, &policy);
        assert_true(g.tasks[0].runner == runner(&g, 0));
        assert_true(solo(&g)->is_solo);
        offer(&g, 1);
        assert_true(wanted(&g, ACTION_SPAWN, 0)->runner == runner(&g, 1));
        ready(&g, runner(&g, 1));
        assert_true(was_handed(&g, 1, runner(&g, 1)));
        policy.processes = 1;
        pool_set_policy(&g.pool, &policy);
        answer(&g, 1, OUTCOME_DONE);
        assert_true(wanted(&g, ACTION_RETIRE, 0)->runner == runner(&g, 1));
        offer(&g, 2);
        assert_int_equal(count_wanted(&g, ACTION_HAND), 0);
        assert_int_equal(count_wanted(&g, ACTION_SPAWN), 0);
        answer(&g, 0, OUTCOME_DONE);
        assert_true(was_handed(&g, 2, runner(&g, 0)));
        rig_close(&g);
}

static void runners_can_be_up_before_there_are_tasks(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        policy.processes = 2;
        rig_open(&g, &policy);
        step(&g, &(struct pool_event){ .kind = POOL_WARM, .count = 9 });
        assert_int_equal(count_wanted(&g, ACTION_SPAWN), 2);
        ready(&g, runner(&g, 0));
        offer(&g, 0);
        assert_true(was_handed(&g, 0, runner(&g, 0)));
        rig_close(&g);
}

static void what_has_not_started_is_given_back_in_a_retreat(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        rig_open(&g, &policy);
        offer(&g, 0);
        ready(&g, runner(&g, 0));
        start(&g, 0, 0);
        answer_after(&g, 0, OUTCOME_DONE, 1000); /* quick ones: the runner's queue may be long */
        offer_range(&g, 1, 3);
        start(&g, 1, 0);
        offer_suspect(&g, 4);
        step(&g, &(struct pool_event){ .kind = POOL_RETREAT });
        assert_settled(&g, 4, OUTCOME_INTERRUPTED, BLAME_SHUTDOWN);
        assert_true(g.settled[4].never_started);
        assert_int_equal(count_wanted(&g, ACTION_TAKE_BACK), 3);
        taken_back(&g, 3);
        taken_back(&g, 2);
        assert_settled(&g, 2, OUTCOME_INTERRUPTED, BLAME_SHUTDOWN);
        assert_true(g.settled[2].never_started && g.settled[3].never_started);
        assert_unsettled(&g, 1);
        assert_false(pool_has_room(&g.pool));
        answer(&g, 1, OUTCOME_DONE);
        assert_false(g.settled[1].never_started);
        assert_true(wanted(&g, ACTION_RETIRE, 0)->runner == runner(&g, 0));
        rig_close(&g);
}

static void a_death_in_a_retreat_starts_nothing_anew(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        rig_open(&g, &policy);
        offer(&g, 0);
        ready(&g, runner(&g, 0));
        step(&g, &(struct pool_event){ .kind = POOL_RETREAT });
        gone(&g, runner(&g, 0), SIGSEGV);
        assert_settled(&g, 0, OUTCOME_INTERRUPTED, BLAME_SHUTDOWN);
        assert_true(g.settled[0].never_started);
        assert_int_equal(count_wanted(&g, ACTION_SPAWN), 0);
        assert_true(pool_is_empty(&g.pool));
        rig_close(&g);
}

static void who_is_told_to_stop_by_us_is_interrupted_and_not_blamed(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        policy.threads = 2;
        rig_open(&g, &policy);
        offer_range(&g, 0, 2);
        ready(&g, runner(&g, 0));
        start(&g, 0, 0);
        start(&g, 1, 1);
        step(&g, &(struct pool_event){ .kind = POOL_RETREAT });
        for (size_t i = 0; i < 2; i++)
                step(&g, &(struct pool_event){ .kind = POOL_CANCELLED, .task = &g.tasks[i], .why = BLAME_SHUTDOWN });
        seen(&g, runner(&g, 0));
        assert_int_equal(count_wanted(&g, ACTION_STOP), 2);
        answer(&g, 0, OUTCOME_RETRY);
        assert_settled(&g, 0, OUTCOME_INTERRUPTED, BLAME_SHUTDOWN);
        g.now_ms += policy.grace_ms;
        seen(&g, runner(&g, 0));
        assert_int_equal(count_wanted(&g, ACTION_ABORT), 1);
        gone(&g, runner(&g, 0), SIGABRT);
        assert_settled(&g, 1, OUTCOME_INTERRUPTED, BLAME_SHUTDOWN);
        rig_close(&g);
}

static void after_a_retreat_it_can_go_on(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        rig_open(&g, &policy);
        offer(&g, 0);
        ready(&g, runner(&g, 0));
        start(&g, 0, 0);
        step(&g, &(struct pool_event){ .kind = POOL_RETREAT });
        step(&g, &(struct pool_event){ .kind = POOL_RESUME });
        assert_true(pool_has_room(&g.pool));
        answer(&g, 0, OUTCOME_DONE);
        assert_int_equal(count_wanted(&g, ACTION_RETIRE), 0);
        offer(&g, 1);
        assert_true(was_handed(&g, 1, runner(&g, 0)));
        rig_close(&g);
}

static void recall(struct rig *g, size_t task)
{
        step(g, &(struct pool_event){ .kind = POOL_RECALLED, .task = &g->tasks[task] });
}

static void one_that_is_wanted_back_comes_back_unless_it_has_started(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        rig_open(&g, &policy);
        offer(&g, 0);
        recall(&g, 0); /* no runner has it yet */
        assert_settled(&g, 0, OUTCOME_INTERRUPTED, BLAME_SHUTDOWN);
        assert_true(g.settled[0].never_started);
        ready(&g, runner(&g, 0));
        offer_range(&g, 1, 1);
        start(&g, 1, 0);
        answer_after(&g, 1, OUTCOME_DONE, 1000); /* quick ones: the runner's queue may be long */
        offer_range(&g, 2, 3);
        start(&g, 2, 0);
        recall(&g, 3);
        assert_true(wanted(&g, ACTION_TAKE_BACK, 0)->task == &g.tasks[3]);
        taken_back(&g, 3);
        assert_settled(&g, 3, OUTCOME_INTERRUPTED, BLAME_SHUTDOWN);
        assert_true(g.settled[3].never_started);
        recall(&g, 2); /* it runs, and ends as it would have */
        assert_int_equal(count_wanted(&g, ACTION_STOP), 0);
        assert_unsettled(&g, 2);
        assert_unsettled(&g, 4); /* nobody wants this one back */
        answer(&g, 2, OUTCOME_DONE);
        assert_settled(&g, 2, OUTCOME_DONE, BLAME_NOTHING);
        assert_int_equal(count_wanted(&g, ACTION_RETIRE), 0);
        rig_close(&g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(fewer_processes_are_retired_and_more_are_started),
                cmocka_unit_test(runners_can_be_up_before_there_are_tasks),
                cmocka_unit_test(what_has_not_started_is_given_back_in_a_retreat),
                cmocka_unit_test(a_death_in_a_retreat_starts_nothing_anew),
                cmocka_unit_test(who_is_told_to_stop_by_us_is_interrupted_and_not_blamed),
                cmocka_unit_test(after_a_retreat_it_can_go_on),
                cmocka_unit_test(one_that_is_wanted_back_comes_back_unless_it_has_started),
        };
        return cmocka_run_group_tests_name("pool_retreat", tests, NULL, NULL);
}
