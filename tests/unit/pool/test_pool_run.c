/* Runs: tasks of one key that are handed over together, in order, and taken back from their end. */
#include "pool_rig.h"

/* Tasks first .. first + count are one run. */
static void offer_run(struct rig *g, size_t first, size_t count)
{
        for (size_t i = first; i < first + count; i++) {
                g->views[i] = (struct pool_view){ .task = &g->tasks[i] };
                g->tasks[i].is_follower = i > first;
                g->tasks[i].run_next = i + 1 < first + count ? &g->tasks[i + 1] : NULL;
        }
        step(g, &(struct pool_event){ .kind = POOL_OFFERED, .task = &g->tasks[first] });
}

static void open_for_runs(struct rig *g, uint32_t batch_max)
{
        struct pool_policy policy = rig_policy();
        policy.batch_max = batch_max;
        policy.is_same_key = true;
        policy.batch_wait_ms = 5;
        rig_open(g, &policy);
        offer(g, 63);
        g->now_ms += policy.batch_wait_ms;
        ready_for_batches(g, runner(g, 0));
        answer(g, 63, OUTCOME_DONE);
}

static void assert_handed(const struct rig *g, uint32_t n, size_t first, uint32_t count)
{
        const struct pool_action *a = wanted(g, ACTION_HAND, n);
        assert_non_null(a);
        assert_int_equal(a->count, count);
        for (uint32_t i = 0; i < count; i++)
                assert_true(g->actions.batch[a->first + i] == &g->tasks[first + i]);
}

static void a_run_is_not_divided_among_batches(void **state)
{
        (void)state;
        struct rig g;
        open_for_runs(&g, 4);
        assert_int_equal(pool_run_max(&g.pool), 4);
        offer_run(&g, 0, 3);
        assert_int_equal(count_wanted(&g, ACTION_HAND), 0); /* it waits for a full batch */
        offer_run(&g, 3, 3);
        assert_handed(&g, 0, 0, 3);
        assert_int_equal(count_wanted(&g, ACTION_HAND), 1); /* the ring is full of the first one */
        for (size_t i = 0; i < 3; i++)
                answer(&g, i, OUTCOME_DONE);
        g.now_ms += 5;
        step(&g, &(struct pool_event){ .kind = POOL_TICK });
        assert_handed(&g, 0, 3, 3);
        rig_close(&g);
}

static void without_the_setting_or_handle_many_there_are_no_runs(void **state)
{
        (void)state;
        struct rig g;
        open_for_runs(&g, 4);
        g.pool.has_many = false;
        assert_int_equal(pool_run_max(&g.pool), 1);
        g.pool.has_many = true;
        g.pool.policy.is_same_key = false;
        assert_int_equal(pool_run_max(&g.pool), 1);
        rig_close(&g);
}

/* It starts in the call of the one before it, or in none that this pool makes. */
static void a_follower_that_is_taken_back_is_given_back(void **state)
{
        (void)state;
        struct rig g;
        open_for_runs(&g, 3);
        offer_run(&g, 0, 3);
        assert_handed(&g, 0, 0, 3);
        taken_back(&g, 2);
        taken_back(&g, 1);
        for (size_t i = 1; i < 3; i++) {
                assert_int_equal(g.settled_count[i], 1);
                assert_true(g.settled[i].never_started);
        }
        assert_int_equal(g.settled_count[0], 0);
        taken_back(&g, 0);
        assert_int_equal(g.settled_count[0], 0);
        assert_true(g.pool.waiting == &g.tasks[0]);
        rig_close(&g);
}

static void who_is_wanted_back_takes_those_behind_it_along_first(void **state)
{
        (void)state;
        for (int i = 0; i < 2; i++) {
                struct rig g;
                open_for_runs(&g, 4);
                offer_run(&g, 0, 4);
                step(&g,
                        &(struct pool_event){
                                .kind = i ? POOL_CANCELLED : POOL_RECALLED, .task = &g.tasks[1], .why = BLAME_CANCEL });
                assert_int_equal(count_wanted(&g, ACTION_TAKE_BACK), 3);
                for (uint32_t n = 0; n < 3; n++)
                        assert_true(wanted(&g, ACTION_TAKE_BACK, n)->task == &g.tasks[3 - n]);
                rig_close(&g);
        }
}

static void one_that_leaves_the_queue_takes_those_behind_it_along(void **state)
{
        (void)state;
        for (int i = 0; i < 2; i++) {
                struct rig g;
                open_for_runs(&g, 8);
                offer_run(&g, 0, 3);
                offer_run(&g, 3, 2);
                step(&g,
                        &(struct pool_event){
                                .kind = i ? POOL_CANCELLED : POOL_RECALLED, .task = &g.tasks[1], .why = BLAME_CANCEL });
                assert_int_equal(g.settled_count[0], 0);
                assert_int_equal(g.settled_count[1], 1);
                assert_int_equal(g.settled_count[2], 1);
                assert_int_equal(g.settled_count[3], 0);
                assert_int_equal(g.settled[1].why, i ? BLAME_CANCEL : BLAME_SHUTDOWN);
                assert_int_equal(g.settled[2].why, BLAME_SHUTDOWN);
                assert_int_equal(g.pool.waiting_count, 3);
                rig_close(&g);
        }
}

/* Only what had started is under suspicion: the beginning of the run. */
static void what_had_not_started_when_its_runner_died_is_given_back(void **state)
{
        (void)state;
        struct rig g;
        open_for_runs(&g, 4);
        offer_run(&g, 0, 4);
        start(&g, 0, 0);
        start(&g, 1, 0);
        gone(&g, runner(&g, 0), SIGSEGV);
        for (size_t i = 0; i < 4; i++) {
                assert_settled(&g, i, OUTCOME_INTERRUPTED, i < 2 ? BLAME_UNSURE : BLAME_SHUTDOWN);
                assert_int_equal(g.settled[i].is_suspect, i < 2);
                assert_int_equal(g.settled[i].never_started, i >= 2);
        }
        rig_close(&g);
}

/* Its key has waited for the store: it is the next of its lane, but not before a higher one, nor before others like it.
 */
static void an_urgent_task_passes_the_others_of_its_lane(void **state)
{
        (void)state;
        struct rig g;
        static const enum lane lanes[] = { LANE_NORMAL, LANE_HIGH, LANE_NORMAL, LANE_NORMAL, LANE_LOW };
        static const size_t order[] = { 1, 2, 5, 3, 0, 4 };
        open_for_runs(&g, 16);
        for (size_t i = 0; i < 5; i++) {
                g.tasks[i].lane = lanes[i];
                g.tasks[i].is_urgent = i == 2 || i == 3;
        }
        g.tasks[5].lane = LANE_NORMAL;
        g.tasks[5].is_urgent = true; /* what follows an urgent one stays behind it */
        offer(&g, 0);
        offer(&g, 1);
        g.tasks[2].run_next = &g.tasks[5];
        g.tasks[5].is_follower = true;
        offer(&g, 2);
        offer(&g, 3);
        offer(&g, 4);
        const struct pool_task *task = g.pool.waiting;
        for (size_t i = 0; i < 6; i++, task = task->next)
                assert_int_equal(index_of(&g, task), order[i]);
        assert_null(task);
        rig_close(&g);
}

static void a_probe_is_one_task(void **state)
{
        (void)state;
        struct rig g;
        open_for_runs(&g, 3);
        g.pool.state = POOL_PROBING;
        assert_int_equal(pool_run_max(&g.pool), 1);
        offer_run(&g, 0, 3); /* it was formed before */
        assert_handed(&g, 0, 0, 1);
        assert_int_equal(g.settled_count[1], 1);
        assert_int_equal(g.settled_count[2], 1);
        rig_close(&g);
}

static void suspects_of_a_key_run_together_and_only_a_single_one_is_charged(void **state)
{
        (void)state;
        for (size_t count = 1; count <= 3; count += 2) {
                struct rig g;
                open_for_runs(&g, 4);
                for (size_t i = 0; i < count; i++)
                        g.tasks[i].is_suspect = true;
                offer_run(&g, 0, count);
                ready_for_batches(&g, solo(&g));
                assert_handed(&g, 0, 0, (uint32_t)count);
                for (size_t i = 0; i < count; i++)
                        start(&g, i, 0);
                g.faults[0] = (struct ring_fault_view){ .kind = FAULT_SIGNAL, .signal = SIGSEGV };
                gone(&g, solo(&g), SIGSEGV);
                for (size_t i = 0; i < count; i++) {
                        assert_int_equal(g.settled[i].outcome, count == 1 ? OUTCOME_CRASHED : OUTCOME_INTERRUPTED);
                        assert_int_equal(g.settled[i].is_suspect, count > 1);
                }
                rig_close(&g);
        }
}

/* A ring has room for so many at once: a batch of more would never be handed over. */
static void a_batch_has_no_more_large_tasks_than_a_ring_has_room_for(void **state)
{
        (void)state;
        static char large[4096];
        struct rig g;
        open_for_runs(&g, 60);
        for (size_t i = 0; i < 60; i++) {
                g.tasks[i].task.payload = large;
                g.tasks[i].task.payload_size = sizeof(large);
        }
        offer_range(&g, 0, 60);
        assert_handed(&g, 0, 0, RING_SPILLS);
        rig_close(&g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_run_is_not_divided_among_batches),
                cmocka_unit_test(without_the_setting_or_handle_many_there_are_no_runs),
                cmocka_unit_test(a_follower_that_is_taken_back_is_given_back),
                cmocka_unit_test(who_is_wanted_back_takes_those_behind_it_along_first),
                cmocka_unit_test(one_that_leaves_the_queue_takes_those_behind_it_along),
                cmocka_unit_test(what_had_not_started_when_its_runner_died_is_given_back),
                cmocka_unit_test(an_urgent_task_passes_the_others_of_its_lane),
                cmocka_unit_test(a_probe_is_one_task),
                cmocka_unit_test(suspects_of_a_key_run_together_and_only_a_single_one_is_charged),
                cmocka_unit_test(a_batch_has_no_more_large_tasks_than_a_ring_has_room_for),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
