/* An owner's window: what is claimed ends in any order, in small and large numbers, and whoever comes next is given
 * what has not ended.  On Redis claimed tasks stay in their lists while nothing is out of the ordinary. */
#include "harness.h"

static void submit_many(struct world *w, unsigned from, unsigned to)
{
        for (unsigned i = from; i < to; i++)
                (void)submit(w, F(w, "k%u", i).data, F(w, "%u", i).data);
}

static void what_ended_in_any_order_is_not_given_again(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        submit_many(w, 0, 10);
        struct store_advance a = claim(w, &o, 10);
        expect_tasks(w, a, "0 1 2 3 4 5 6 7 8 9");
        struct store_outcome some[] = { done(&a.tasks[3]), done(&a.tasks[8]), done(&a.tasks[0]) };
        assert_int_equal(advance(w, &o, some, 3, 0).gone, 0);
        struct store_outcome more[] = { done(&a.tasks[1]), done(&a.tasks[5]), done(&a.tasks[3]) };
        assert_int_equal(advance(w, &o, more, 3, 0).gone, 1); /* 3 had ended before */
        assert_int_equal(counts(w, 0).in_flight, 5);
        assert_int_equal(counts(w, 0).done, 5);
        expect_sound(w);
        struct owner next = own(w, 0, 2, 1);
        assert_string_equal(payloads(w, next.granted.page.tasks, next.granted.page.tasks_count), "2 4 6 7 9");
        assert_int_equal(settle(w, &next, done(&next.granted.page.tasks[4])).gone, 0);
        assert_int_equal(counts(w, 0).in_flight, 4);
        expect_sound(w);
}

static void a_task_that_takes_long_holds_nobody_up(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct store_outcome outcomes[64];
        uint32_t count = 0, ended = 0;
        (void)submit(w, "long", "long");
        struct store_task straggler = claim(w, &o, 1).tasks[0];
        for (unsigned round = 0; round < 50; round++) {
                submit_many(w, round * 50, round * 50 + 50);
                struct store_advance a = advance(w, &o, outcomes, count, 50);
                assert_int_equal(a.gone, 0);
                for (count = 0; count < a.tasks_count; count++)
                        outcomes[count] = done(&a.tasks[count]);
                ended += count;
        }
        assert_int_equal(advance(w, &o, outcomes, count, 0).gone, 0);
        assert_int_equal(ended, 2500);
        assert_int_equal(counts(w, 0).in_flight, 1);
        assert_int_equal(counts(w, 0).done, 2500);
        expect_sound(w);
        assert_int_equal(settle(w, &o, done(&straggler)).gone, 0);
        assert_int_equal(counts(w, 0).in_flight, 0);
        expect_sound(w);
}

static void what_is_claimed_is_found_and_cancelled_where_it_is(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct span ids[8];
        bool is_pending;
        for (unsigned i = 0; i < 8; i++)
                ids[i] = submit(w, F(w, "k%u", i).data, F(w, "%u", i).data);
        struct store_advance a = claim(w, &o, 4);
        (void)settle(w, &o, done(&a.tasks[1]));
        assert_null(find(w, ids[1]));
        assert_int_equal(find(w, ids[2])->state, STATE_IN_FLIGHT);
        assert_int_equal(find(w, ids[4])->state, STATE_QUEUED);
        assert_int_equal(list_pages(w, 0, STATE_IN_FLIGHT, 2), 3);
        assert_int_equal(list_pages(w, 0, STATE_QUEUED, 3), 4);
        assert_int_equal(counts(w, 0).queued[LANE_NORMAL], 4);
        assert_int_equal(counts(w, 0).in_flight, 3);
        assert_int_equal(cancel(w, ids[5], &is_pending), 0);
        assert_false(is_pending);
        assert_int_equal(cancel(w, ids[2], &is_pending), 0);
        assert_true(is_pending);
        expect_sound(w);
        assert_int_equal(release(w, &o), STORE_OK);
        assert_int_equal(cancel(w, ids[3], &is_pending), 0);
        assert_false(is_pending);
        assert_int_equal(find(w, ids[3])->state, STATE_DEAD);
        expect_sound(w);
        struct owner next = own(w, 0, 2, 2);
        assert_string_equal(payloads(w, next.granted.page.tasks, next.granted.page.tasks_count), "0 2");
        expect_tasks(w, claim(w, &next, 10), "4 6 7");
}

/* A note that waits for a queued task is its own, however many before it are claimed. */
static void a_requeued_task_finds_its_note_behind_claimed_ones(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        struct span id = submit(w, "bad", "bad");
        (void)settle(w, &o, dead(&claim(w, &o, 1).tasks[0], "rejected"));
        submit_many(w, 0, 3);
        (void)claim(w, &o, 2);
        assert_int_equal(dead_act(w, DEAD_REQUEUE, id).acted, 1);
        struct store_advance a = claim(w, &o, 10);
        expect_tasks(w, a, "2 bad");
        assert_int_equal(a.tasks[0].note.events.size, 0);
        assert_true(a.tasks[1].note.events.size > 0);
        expect_sound(w);
}

/* The backlog is what waits, not what is claimed. */
static void renewal_sees_no_work_in_what_is_claimed(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        submit_many(w, 0, 3);
        assert_int_equal(claim(w, &o, 3).tasks_count, 3);
        assert_false(renew(w, &o).has_work);
        submit_many(w, 3, 4);
        assert_true(renew(w, &o).has_work);
}

static void lanes_end_in_any_order_too(void **state)
{
        struct world *w = *state;
        struct owner o = own(w, 0, 1, 1);
        for (unsigned round = 0; round < 3; round++) {
                (void)submit_lane(w, "l", "low", LANE_LOW);
                (void)submit_lane(w, "n", "normal", LANE_NORMAL);
                (void)submit_lane(w, "h", "high", LANE_HIGH);
                (void)submit_lane(w, "h", "higher", LANE_HIGH);
                struct store_advance a = claim(w, &o, 10);
                expect_tasks(w, a, "high higher normal low");
                struct store_outcome some[] = { done(&a.tasks[1]), done(&a.tasks[3]) };
                assert_int_equal(advance(w, &o, some, 2, 0).gone, 0);
                assert_int_equal(counts(w, 0).in_flight, 2);
                expect_sound(w);
                struct store_outcome rest[] = { done(&a.tasks[0]), done(&a.tasks[2]) };
                assert_int_equal(advance(w, &o, rest, 2, 0).gone, 0);
                assert_int_equal(counts(w, 0).in_flight, 0);
        }
        assert_int_equal(counts(w, 0).done, 12);
}

const struct CMUnitTest window_tests[] = {
        IN_WORLD(what_ended_in_any_order_is_not_given_again),
        IN_WORLD(a_task_that_takes_long_holds_nobody_up),
        IN_WORLD(what_is_claimed_is_found_and_cancelled_where_it_is),
        IN_WORLD(a_requeued_task_finds_its_note_behind_claimed_ones),
        IN_WORLD(renewal_sees_no_work_in_what_is_claimed),
        IN_WORLD(lanes_end_in_any_order_too),
};
GROUP(window);
