/* When a shard calls: at once if somebody waits for it, a little later if what ends in a moment can go along. */
#include "shard_rig.h"

/* Two keys run, and one of them has a task waiting. */
static void open_busy(struct rig *g, struct claimed **ret_first, struct claimed **ret_other)
{
        rig_open(g);
        own(g);
        hand(g, 1, "k", "a");
        hand(g, 2, "k", "a");
        hand(g, 3, "j", "a");
        claim(g);
        *ret_first = start(g, 1);
        *ret_other = start(g, 3);
}

static void an_end_waits_a_moment_for_others_that_end_soon(void **state)
{
        (void)state;
        struct rig g;
        struct claimed *first;
        struct claimed *other;
        open_busy(&g, &first, &other);
        end_as(&g, first, STORE_DONE);
        assert_int_equal(next_call(&g), SHARD_CALL_NONE);
        assert_int_equal(shard_due_ms(&g.shard), g.now_ms + 2);
        end_as(&g, other, STORE_DONE);
        assert_int_equal(next_call(&g), SHARD_CALL_ADVANCE);
        send_advance(&g);
        assert_said(&g, 1, STORE_DONE);
        assert_said(&g, 3, STORE_DONE);
        rig_close(&g);
}

static void an_end_is_told_at_once_when_a_task_comes_that_waits_for_it(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        hand(&g, 1, "k", "a");
        claim(&g);
        struct claimed *first = start(&g, 1);
        g.shard.has_work = true;
        send_advance(&g);
        hand(&g, 2, "k", "a");
        hand(&g, 3, "j", "a");
        end_as(&g, first, STORE_DONE); /* while the next task of its key is on its way */
        reply_advance(&g, STORE_OK);
        assert_int_equal(next_call(&g), SHARD_CALL_ADVANCE);
        rig_close(&g);
}

static void an_end_that_nobody_waits_for_gathers(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        hand(&g, 1, "k", "a");
        claim(&g);
        struct claimed *first = start(&g, 1);
        g.shard.has_work = true;
        send_advance(&g);
        hand(&g, 2, "j", "a");
        end_as(&g, first, STORE_DONE);
        reply_advance(&g, STORE_OK);
        assert_int_equal(next_call(&g), SHARD_CALL_NONE);
        assert_int_equal(shard_due_ms(&g.shard), g.now_ms + g.limits.gather_ms);
        rig_close(&g);
}

static void an_end_does_not_wait_longer_than_a_moment(void **state)
{
        (void)state;
        struct rig g;
        struct claimed *first;
        struct claimed *other;
        open_busy(&g, &first, &other);
        end_as(&g, first, STORE_DONE);
        g.now_ms = shard_due_ms(&g.shard);
        assert_int_equal(next_call(&g), SHARD_CALL_ADVANCE);
        rig_close(&g);
}

static void nobody_waits_for_tasks_that_take_their_time(void **state)
{
        (void)state;
        struct rig g;
        struct claimed *first;
        struct claimed *other;
        open_busy(&g, &first, &other);
        g.now_ms += g.limits.gather_ms + 1;
        end_as(&g, first, STORE_DONE);
        assert_int_equal(next_call(&g), SHARD_CALL_ADVANCE);
        rig_close(&g);
}

static void a_claim_goes_along_with_what_ends_soon(void **state)
{
        (void)state;
        struct rig g;
        struct claimed *first;
        struct claimed *other;
        open_busy(&g, &first, &other);
        end_as(&g, other, STORE_DONE);
        send_advance(&g);
        reply_advance(&g, STORE_OK);
        shard_rang(&g.shard);
        assert_int_equal(next_call(&g), SHARD_CALL_NONE);
        assert_int_equal(shard_due_ms(&g.shard), g.now_ms + 2);
        g.now_ms += 2;
        assert_int_equal(next_call(&g), SHARD_CALL_ADVANCE);
        rig_close(&g);
}

static void with_nothing_running_a_claim_is_made_at_once(void **state)
{
        (void)state;
        struct rig g;
        struct claimed *first;
        struct claimed *other;
        open_busy(&g, &first, &other);
        end_as(&g, other, STORE_DONE);
        end_as(&g, first, STORE_RETRY);
        send_advance(&g);
        reply_advance(&g, STORE_OK);
        shard_rang(&g.shard);
        assert_int_equal(next_call(&g), SHARD_CALL_ADVANCE);
        rig_close(&g);
}

static void claim_some(struct rig *g, unsigned count, uint64_t *seq)
{
        static char keys[64][8];
        for (unsigned i = 0; i < count; i++) {
                (void)snprintf(keys[i], sizeof(keys[i]), "k%u", i);
                hand(g, ++*seq, keys[i], "a");
        }
        claim(g);
        for (struct claimed *c; (c = next(g));)
                end_as(g, c, STORE_DONE);
        send_advance(g);
        reply_advance(g, STORE_OK);
}

static void tasks_that_come_one_by_one_are_claimed_as_they_come(void **state)
{
        (void)state;
        struct rig g;
        uint64_t seq = 0;
        rig_open(&g);
        own(&g);
        for (int i = 0; i < 10; i++)
                claim_some(&g, 1, &seq);
        shard_rang(&g.shard);
        assert_int_equal(next_call(&g), SHARD_CALL_ADVANCE);
        rig_close(&g);
}

/* A dozen for the next reply, each of a key of its own. */
static void hand_dozen(struct rig *g)
{
        static char keys[RIG_WINDOW][8];
        uint64_t seq = g->shard.window.count;
        for (unsigned i = 0; i < 12; i++, seq++) {
                (void)snprintf(keys[seq], sizeof(keys[seq]), "k%u", (unsigned)seq);
                hand(g, seq + 1, keys[seq], "a");
        }
}

static void open_paced(struct rig *g)
{
        rig_open(g);
        own(g);
        for (int i = 0; i < 4; i++) {
                hand_dozen(g);
                claim(g);
        }
}

static void tasks_that_come_by_the_dozen_are_claimed_at_intervals(void **state)
{
        (void)state;
        struct rig g;
        open_paced(&g);
        shard_rang(&g.shard);
        assert_int_equal(next_call(&g), SHARD_CALL_NONE);
        assert_true(shard_due_ms(&g.shard) <= g.now_ms + g.limits.gather_ms);
        g.now_ms = shard_due_ms(&g.shard);
        assert_int_equal(next_call(&g), SHARD_CALL_ADVANCE);
        rig_close(&g);
}

static void a_store_with_little_to_do_is_called_as_tasks_come(void **state)
{
        (void)state;
        struct rig g;
        uint64_t most_ms = 3;
        open_paced(&g);
        g.shard.pace_max_ms = &most_ms;
        shard_rang(&g.shard);
        assert_int_equal(shard_due_ms(&g.shard), g.now_ms + 3);
        most_ms = 0;
        assert_int_equal(next_call(&g), SHARD_CALL_ADVANCE);
        hand_dozen(&g);
        claim(&g);
        assert_int_equal(g.shard.pace_ms, 0);
        rig_close(&g);
}

static void a_backlog_is_claimed_without_a_pause(void **state)
{
        (void)state;
        struct rig g;
        open_paced(&g);
        g.limits.window_tasks = 1024;
        hand_dozen(&g);
        g.shard.has_work = true;
        send_advance(&g);
        g.advance.has_more[LANE_HIGH] = true;
        reply_advance(&g, STORE_OK);
        assert_int_equal(next_call(&g), SHARD_CALL_ADVANCE);
        rig_close(&g);
}

#define AT_HAND (STORE_CALL_TASKS + 8)

/* A shard with more than 256 tasks at hand, all of different keys and for pool a; the first has run for `ms`. */
static void open_stocked(struct rig *g, uint64_t ms)
{
        static char keys[AT_HAND][8];
        rig_open(g);
        g->limits.window_tasks = 1024;
        g->shard.window.pools = 1;
        own(g);
        for (uint64_t i = 0; i < AT_HAND; i++) {
                (void)snprintf(keys[i], sizeof(keys[i]), "%u", (unsigned)i);
                hand(g, i + 1, keys[i], "a");
                if (g->tasks_count == STORE_CALL_TASKS || i + 1 == AT_HAND)
                        claim(g);
        }
        struct claimed *first = start(g, 1);
        g->now_ms += ms;
        end_as(g, first, STORE_DONE);
        g->shard.has_work = true;
}

static void a_stock_of_brisk_tasks_is_only_kept_up(void **state)
{
        (void)state;
        struct rig g;
        open_stocked(&g, 1);
        send_advance(&g);
        assert_int_equal(g.advance.want[LANE_HIGH], 0);
        reply_advance(&g, STORE_OK);
        g.shard.has_work = true;
        assert_int_equal(shard_next_call(&g.shard, false, g.now_ms), SHARD_CALL_NONE);
        for (uint64_t seq = 2; seq <= 10; seq++)
                run(&g, seq);
        send_advance(&g);
        assert_int_equal(g.advance.want[LANE_HIGH], 10 - (AT_HAND - STORE_CALL_TASKS));
        rig_close(&g);
}

static void slow_tasks_are_claimed_while_there_is_room(void **state)
{
        (void)state;
        struct rig g;
        open_stocked(&g, 1000);
        send_advance(&g);
        assert_int_equal(g.advance.want[LANE_HIGH], 1024 - AT_HAND - 2 * RIG_LANE_ROOM);
        rig_close(&g);
}

static void a_stock_of_which_nothing_can_start_is_none(void **state)
{
        (void)state;
        struct rig g;
        open_stocked(&g, 1);
        while (next(&g))
                ;
        send_advance(&g);
        assert_int_equal(g.advance.want[LANE_HIGH], 1024 - AT_HAND - 2 * RIG_LANE_ROOM);
        rig_close(&g);
}

/* --- calls that another one follows ---------------------------------------------------------------------------------
 */

/* A store that rings at no cost rings always: a look that nobody asked for would cost more. */
static void where_a_ring_is_free_nobody_does_without(void **state)
{
        (void)state;
        struct rig g;
        struct claimed *first;
        struct claimed *other;
        open_busy(&g, &first, &other);
        g.limits.ring_costs = false;
        end_as(&g, first, STORE_DONE);
        send_advance(&g);
        assert_false(g.advance.calls_again);
        rig_close(&g);
}

static void who_has_more_at_hand_calls_again_and_needs_no_ring(void **state)
{
        (void)state;
        struct rig g;
        struct claimed *first;
        struct claimed *other;
        open_busy(&g, &first, &other);
        assert_false(g.advance.calls_again); /* it told of nothing, so nothing shows that another follows */
        end_as(&g, first, STORE_DONE);
        send_advance(&g);
        assert_true(g.advance.calls_again);
        reply_advance(&g, STORE_OK);
        /* Nothing ends and nothing rings: it looks all the same, and asks to be rung from then on. */
        assert_int_equal(next_call(&g), SHARD_CALL_NONE);
        assert_int_equal(shard_due_ms(&g.shard), g.now_ms + 2);
        g.now_ms += 2;
        assert_int_equal(next_call(&g), SHARD_CALL_ADVANCE);
        send_advance(&g);
        assert_false(g.advance.calls_again);
        reply_advance(&g, STORE_OK);
        assert_int_equal(shard_due_ms(&g.shard), STORE_NEVER);
        rig_close(&g);
}

static void who_has_told_all_is_rung(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        hand(&g, 1, "k", "a");
        claim(&g);
        end_as(&g, start(&g, 1), STORE_DONE);
        send_advance(&g);
        assert_false(g.advance.calls_again);
        rig_close(&g);
}

static void who_has_tasks_that_take_their_time_is_rung(void **state)
{
        (void)state;
        struct rig g;
        struct claimed *first;
        struct claimed *other;
        open_busy(&g, &first, &other);
        g.now_ms += g.limits.gather_ms + 1;
        end_as(&g, first, STORE_DONE);
        send_advance(&g);
        assert_false(g.advance.calls_again);
        rig_close(&g);
}

static void who_was_not_rung_looks_though_there_is_no_room(void **state)
{
        (void)state;
        struct rig g;
        struct claimed *first;
        struct claimed *other;
        open_busy(&g, &first, &other);
        end_as(&g, first, STORE_DONE);
        send_advance(&g);
        reply_advance(&g, STORE_OK);
        g.limits.window_bytes = 0;
        assert_int_equal(shard_due_ms(&g.shard), g.now_ms + g.limits.gather_ms);
        g.now_ms += g.limits.gather_ms;
        assert_int_equal(next_call(&g), SHARD_CALL_ADVANCE);
        rig_close(&g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_end_waits_a_moment_for_others_that_end_soon),
                cmocka_unit_test(an_end_is_told_at_once_when_a_task_comes_that_waits_for_it),
                cmocka_unit_test(an_end_that_nobody_waits_for_gathers),
                cmocka_unit_test(an_end_does_not_wait_longer_than_a_moment),
                cmocka_unit_test(nobody_waits_for_tasks_that_take_their_time),
                cmocka_unit_test(a_claim_goes_along_with_what_ends_soon),
                cmocka_unit_test(with_nothing_running_a_claim_is_made_at_once),
                cmocka_unit_test(tasks_that_come_one_by_one_are_claimed_as_they_come),
                cmocka_unit_test(tasks_that_come_by_the_dozen_are_claimed_at_intervals),
                cmocka_unit_test(a_store_with_little_to_do_is_called_as_tasks_come),
                cmocka_unit_test(a_backlog_is_claimed_without_a_pause),

                cmocka_unit_test(a_stock_of_brisk_tasks_is_only_kept_up),
                cmocka_unit_test(slow_tasks_are_claimed_while_there_is_room),
                cmocka_unit_test(a_stock_of_which_nothing_can_start_is_none),

                cmocka_unit_test(where_a_ring_is_free_nobody_does_without),
                cmocka_unit_test(who_has_more_at_hand_calls_again_and_needs_no_ring),
                cmocka_unit_test(who_has_told_all_is_rung),
                cmocka_unit_test(who_has_tasks_that_take_their_time_is_rung),
                cmocka_unit_test(who_was_not_rung_looks_though_there_is_no_room),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
