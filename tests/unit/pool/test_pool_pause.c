/* Pauses after UNAVAILABLE, and batches: when a pool holds back what it could hand over. */
#include "pool_rig.h"

/* --- UNAVAILABLE --- */

static void unavailable_pauses_the_pool_and_takes_back_what_waits(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        rig_open(&g, &policy);
        offer(&g, 0);
        ready(&g, runner(&g, 0));
        answer_after(&g, 0, OUTCOME_DONE, 100000);
        offer_range(&g, 1, 3);
        answer(&g, 1, OUTCOME_UNAVAILABLE);
        assert_settled(&g, 1, OUTCOME_UNAVAILABLE, BLAME_NOTHING);
        assert_false(pool_has_room(&g.pool));
        /* Newest first: each goes back to the head. */
        assert_true(wanted(&g, ACTION_TAKE_BACK, 0)->task == &g.tasks[3]);
        assert_true(wanted(&g, ACTION_TAKE_BACK, 1)->task == &g.tasks[2]);
        taken_back(&g, 3);
        taken_back(&g, 2);
        assert_int_equal(count_wanted(&g, ACTION_HAND), 0);
        assert_true(g.pool.waiting == &g.tasks[2]);
        assert_true(g.pool.waiting->next == &g.tasks[3]);
        rig_close(&g);
}

/* While it is paused nobody offers anything, so nothing but the time can end it. */
static void a_pause_ends_although_nothing_waits(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        rig_open(&g, &policy);
        offer(&g, 0);
        ready(&g, runner(&g, 0));
        answer(&g, 0, OUTCOME_UNAVAILABLE);
        assert_false(pool_has_room(&g.pool));
        assert_in_range(due_ms(&g) - g.now_ms, 50, 100);
        tick_when_due(&g);
        assert_true(pool_has_room(&g.pool));
        rig_close(&g);
}

static void one_probe_goes_first_and_opens_the_pool(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        policy.processes = 2;
        rig_open(&g, &policy);
        offer_range(&g, 0, 2);
        ready(&g, runner(&g, 0));
        ready(&g, runner(&g, 1));
        answer(&g, 0, OUTCOME_UNAVAILABLE);
        answer(&g, 1, OUTCOME_UNAVAILABLE); /* the same outage: one pause */
        assert_int_equal(g.pool.pauses, 1);
        offer_range(&g, 2, 3);
        assert_int_equal(count_wanted(&g, ACTION_HAND), 0);
        offer_suspect(&g, 5);

        uint64_t first_ms = due_ms(&g) - g.now_ms;
        assert_in_range(first_ms, 50, 100);
        tick_when_due(&g);
        /* The suspect's runner has to start first; of the rest exactly one goes. */
        assert_int_equal(count_wanted(&g, ACTION_HAND), 1);
        assert_true(was_handed(&g, 2, runner(&g, 0)));
        ready(&g, solo(&g));
        assert_int_equal(count_wanted(&g, ACTION_HAND), 0);

        answer(&g, 2, OUTCOME_UNAVAILABLE);
        assert_int_equal(g.pool.pauses, 2);
        assert_in_range(due_ms(&g) - g.now_ms, 100, 200);
        tick_when_due(&g);
        assert_int_equal(count_wanted(&g, ACTION_HAND), 1);
        const struct pool_action *hand = wanted(&g, ACTION_HAND, 0);
        answer(&g, index_of(&g, g.actions.batch[hand->first]), OUTCOME_DONE);
        assert_int_equal(g.pool.state, POOL_OPEN);
        assert_int_equal(g.pool.pauses, 0);
        assert_int_equal(g.pool.waiting_count, 0);
        rig_close(&g);
}

/* The handler answers: what it needs is there, though not for this key. */
static void a_probe_that_says_later_ends_the_pause(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        rig_open(&g, &policy);
        offer(&g, 0);
        ready(&g, runner(&g, 0));
        answer(&g, 0, OUTCOME_LATER);
        assert_settled(&g, 0, OUTCOME_LATER, BLAME_NOTHING);
        assert_int_equal(g.pool.state, POOL_OPEN);
        offer(&g, 1);
        answer(&g, 1, OUTCOME_UNAVAILABLE);
        offer(&g, 2);
        tick_when_due(&g);
        answer(&g, 2, OUTCOME_LATER);
        assert_int_equal(g.pool.state, POOL_OPEN);
        rig_close(&g);
}

static void a_probe_that_crashes_is_followed_by_another(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        rig_open(&g, &policy);
        offer(&g, 0);
        ready(&g, runner(&g, 0));
        answer(&g, 0, OUTCOME_UNAVAILABLE);
        offer_range(&g, 1, 2);
        tick_when_due(&g);
        start(&g, 1, 0);
        gone(&g, runner(&g, 0), SIGSEGV);
        assert_settled(&g, 1, OUTCOME_CRASHED, BLAME_CRASH);
        ready(&g, runner(&g, 0));
        assert_true(was_handed(&g, 2, runner(&g, 0)));
        answer(&g, 2, OUTCOME_DONE);
        assert_int_equal(g.pool.state, POOL_OPEN);
        rig_close(&g);
}

/* --- batches --- */

static void a_batch_is_what_came_within_its_wait(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        policy.batch_max = 4;
        policy.batch_wait_ms = 10;
        rig_open(&g, &policy);
        offer(&g, 0);
        ready_for_batches(&g, runner(&g, 0));
        assert_int_equal(count_wanted(&g, ACTION_HAND), 0);
        g.now_ms += 5;
        offer(&g, 1);
        assert_true(due_ms(&g) == g.now_ms + 5);
        tick_when_due(&g);
        assert_int_equal(count_wanted(&g, ACTION_HAND), 1);
        assert_int_equal(wanted(&g, ACTION_HAND, 0)->count, 2);
        rig_close(&g);
}

static void a_full_batch_does_not_wait(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        policy.batch_max = 4;
        policy.batch_wait_ms = 10;
        policy.threads = 2;
        rig_open(&g, &policy);
        offer_range(&g, 0, 6);
        ready_for_batches(&g, runner(&g, 0));
        assert_int_equal(count_wanted(&g, ACTION_HAND), 1);
        const struct pool_action *hand = wanted(&g, ACTION_HAND, 0);
        assert_int_equal(hand->count, 4);
        for (size_t i = 0; i < 4; i++)
                assert_true(g.actions.batch[hand->first + i] == &g.tasks[i]);
        assert_int_equal(g.pool.waiting_count, 2);
        rig_close(&g);
}

/* It is answered task by task; each answer makes room for one. */
static void the_next_batch_is_whole_too(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        policy.batch_max = 4;
        policy.batch_wait_ms = 10;
        rig_open(&g, &policy);
        offer_range(&g, 0, 4);
        ready_for_batches(&g, runner(&g, 0));
        assert_int_equal(wanted(&g, ACTION_HAND, 0)->count, 4);
        offer_range(&g, 4, 4);
        for (size_t i = 0; i < 3; i++) {
                answer(&g, i, OUTCOME_DONE);
                assert_int_equal(count_wanted(&g, ACTION_HAND), 0);
        }
        answer(&g, 3, OUTCOME_DONE);
        assert_int_equal(count_wanted(&g, ACTION_HAND), 1);
        assert_int_equal(wanted(&g, ACTION_HAND, 0)->count, 4);
        rig_close(&g);
}

static void without_handle_many_there_are_no_batches(void **state)
{
        (void)state;
        struct rig g;
        struct pool_policy policy = rig_policy();
        policy.batch_max = 4;
        policy.batch_wait_ms = 10;
        rig_open(&g, &policy);
        offer(&g, 0);
        ready(&g, runner(&g, 0));
        assert_true(was_handed(&g, 0, runner(&g, 0)));
        rig_close(&g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(unavailable_pauses_the_pool_and_takes_back_what_waits),
                cmocka_unit_test(a_pause_ends_although_nothing_waits),
                cmocka_unit_test(one_probe_goes_first_and_opens_the_pool),
                cmocka_unit_test(a_probe_that_crashes_is_followed_by_another),
                cmocka_unit_test(a_probe_that_says_later_ends_the_pause),
                cmocka_unit_test(a_batch_is_what_came_within_its_wait),
                cmocka_unit_test(a_full_batch_does_not_wait),
                cmocka_unit_test(the_next_batch_is_whole_too),
                cmocka_unit_test(without_handle_many_there_are_no_batches),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
