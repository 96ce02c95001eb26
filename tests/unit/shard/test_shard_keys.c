/* What a shard does for its keys: retries, shares of the window, interruptions, and what people ask for. */
#include "shard_rig.h"

/* --- retries ---------------------------------------------------------------------------------------------------------
 */

static void a_retry_is_not_overtaken(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        hand(&g, 1, "k", "a");
        hand(&g, 2, "k", "a");
        hand(&g, 3, "k", "b");
        hand(&g, 4, "j", "a");
        claim(&g);
        end_as(&g, start(&g, 1), STORE_RETRY);
        start(&g, 4); /* another key goes on */
        assert_null(next(&g));
        assert_null(next_of(&g.shard, 1, g.now_ms));
        send_advance(&g);
        assert_said(&g, 1, STORE_RETRY);
        assert_said(&g, 2, STORE_DIVERT);
        assert_said(&g, 3, STORE_DIVERT);
        assert_null(said(&g, 4));
        reply_advance(&g, STORE_OK);
        assert_null(next(&g));
        hand(&g, 1, "k", "a"); /* its time has come */
        claim(&g);
        start(&g, 1);
        rig_close(&g);
}

/* Claimed by the call that told the retry: the store did not know yet. */
static void what_comes_in_behind_a_retry_is_given_back(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        hand(&g, 1, "k", "a");
        claim(&g);
        struct claimed *c = start(&g, 1);
        g.shard.has_work = true;
        send_advance(&g);
        end_as(&g, c, STORE_RETRY);
        hand(&g, 2, "k", "a");
        reply_advance(&g, STORE_OK);
        assert_null(next(&g));
        send_advance(&g);
        assert_said(&g, 1, STORE_RETRY);
        assert_said(&g, 2, STORE_DIVERT);
        rig_close(&g);
}

static void a_held_key_gives_its_tasks_back(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        hand(&g, 1, "k", "a");
        hand(&g, 2, "k", "a");
        claim(&g);
        end_as(&g, start(&g, 1), STORE_HOLD);
        assert_null(next(&g));
        send_advance(&g);
        assert_said(&g, 1, STORE_HOLD);
        assert_said(&g, 2, STORE_DIVERT);
        rig_close(&g);
}

static void a_dead_task_lets_its_key_go_on(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        hand(&g, 1, "k", "a");
        hand(&g, 2, "k", "a");
        claim(&g);
        end_as(&g, start(&g, 1), STORE_DEAD);
        send_advance(&g);
        assert_int_equal(g.advance.outcomes_count, 1);
        reply_advance(&g, STORE_OK);
        start(&g, 2);
        rig_close(&g);
}

/* The first thing the store hears of a task that is to go on where it was. */
static void what_a_task_saved_is_told_before_its_retry(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        hand(&g, 1, "k", "a");
        hand(&g, 2, "j", "a");
        claim(&g);
        struct claimed *c = start(&g, 1);
        buffer_put(&c->checkpoint, "half", 4);
        c->has_saved = true;
        end_as(&g, c, STORE_RETRY);
        c = start(&g, 2);
        c->has_saved = true;
        end_as(&g, c, STORE_DONE); /* nobody will ask for it */
        send_advance(&g);
        assert_int_equal(g.advance.outcomes_count, 3);
        assert_int_equal(g.advance.outcomes[0].kind, STORE_CHECKPOINT);
        assert_int_equal(g.advance.outcomes[0].task.seq, 1);
        assert_true(span_is(g.advance.outcomes[0].checkpoint, SPAN_TEXT("half")));
        assert_int_equal(g.advance.outcomes[1].kind, STORE_RETRY);
        assert_int_equal(g.advance.outcomes[2].kind, STORE_DONE);
        reply_advance(&g, STORE_OK);
        assert_int_equal(g.shard.window.count, 0);
        rig_close(&g);
}

static void what_is_to_run_again_keeps_its_place(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        hand(&g, 1, "k", "a");
        hand(&g, 2, "k", "a");
        claim(&g);
        shard_again(&g.shard, start(&g, 1), g.now_ms);
        assert_int_equal(g.shard.running, 0);
        start(&g, 1);
        assert_null(next(&g));
        rig_close(&g);
}

/* --- shares of the window --------------------------------------------------------------------------------------------
 */

static void a_key_gives_back_what_is_beyond_its_share_the_newest_first(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        for (uint64_t seq = 1; seq <= RIG_PER_KEY + 3; seq++)
                hand(&g, seq, "k", "a");
        claim(&g);
        start(&g, 1);
        send_advance(&g);
        assert_int_equal(g.advance.outcomes_count, 3);
        for (uint64_t seq = RIG_PER_KEY + 1; seq <= RIG_PER_KEY + 3; seq++)
                assert_said(&g, seq, STORE_DIVERT);
        /* The key asks for it as it goes; at once it would only come back to be given back again. */
        assert_true(said(&g, RIG_PER_KEY + 1)->delay_ms >= 10000);
        rig_close(&g);
}

/* Whoever has the shard now may not be who gave tasks back: it cannot know which keys have more. */
static void every_end_asks_for_more_of_its_key(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        send_acquire(&g);
        hand(&g, 1, "k", "a");
        hand(&g, 2, "k", "a");
        hand(&g, 3, "j", "a");
        reply_acquire(&g, STORE_GRANTED, false);
        run(&g, 1);
        end_as(&g, start(&g, 3), STORE_DEAD);
        send_advance(&g);
        assert_int_equal(said(&g, 1)->refill, RIG_PER_KEY - 1);
        assert_int_equal(said(&g, 3)->refill, RIG_PER_KEY);
        rig_close(&g);
}

static void a_full_share_asks_for_no_more(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        for (uint64_t seq = 1; seq <= RIG_PER_KEY; seq++)
                hand(&g, seq, "k", "a");
        claim(&g);
        struct claimed *c = start(&g, 1);
        g.shard.has_work = true;
        send_advance(&g);
        end_as(&g, c, STORE_DONE);
        hand(&g, RIG_PER_KEY + 1, "k", "a");
        reply_advance(&g, STORE_OK);
        send_advance(&g);
        assert_int_equal(said(&g, 1)->refill, 0);
        rig_close(&g);
}

/* A task that no handler here serves waits in the store; what stands behind it must not pass. */
static void an_unserved_task_is_not_overtaken(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        hand(&g, 1, "k", "a");
        hand(&g, 2, "k", "nobody");
        hand(&g, 3, "k", "a");
        hand(&g, 4, "j", "a");
        hand(&g, 5, "i", "nobody");
        claim(&g);
        start(&g, 1);
        start(&g, 4);
        send_advance(&g);
        assert_said(&g, 2, STORE_DIVERT);
        assert_said(&g, 3, STORE_DIVERT);
        assert_said(&g, 5, STORE_DIVERT);
        /* Not for a time, to be given back again. */
        assert_true(span_is(said(&g, 2)->name, SPAN_TEXT("handler:nobody")));
        assert_true(span_is(said(&g, 5)->name, SPAN_TEXT("handler:nobody")));
        assert_null(said(&g, 1));
        rig_close(&g);
}

/* What has been given back, but not told yet, must not be passed by what the store hands out meanwhile. */
static void what_was_given_back_is_not_overtaken(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        for (uint64_t seq = 1; seq <= RIG_PER_KEY + 1; seq++)
                hand(&g, seq, "k", "a");
        g.shard.has_work = true;
        send_advance(&g);
        reply_advance(&g, STORE_OK); /* RIG_PER_KEY + 1 is to be given back */
        struct claimed *cancelled = window_find(&g.shard.window, SPAN_TEXT("k"), 2);
        struct store_control control = { .verb = CONTROL_CANCEL, .key = SPAN_TEXT("k"), .seq = cancelled->seq };
        shard_obey(&g.shard, &control, g.now_ms); /* now there is room for one more */
        g.shard.is_calling = true;                /* a call that went before all this answers */
        g.advance.outcomes_count = 0;
        hand(&g, RIG_PER_KEY + 2, "k", "a");
        reply_advance(&g, STORE_OK);
        send_advance(&g);
        assert_said(&g, RIG_PER_KEY + 1, STORE_DIVERT);
        assert_said(&g, RIG_PER_KEY + 2, STORE_DIVERT);
        rig_close(&g);
}

/* The end asks for more of its key: it would be given what stands behind the one that goes back. */
static void what_goes_back_is_told_before_an_end_asks_for_more(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        hand(&g, 1, "k", "a");
        claim(&g);
        struct claimed *c = start(&g, 1);
        g.shard.has_work = true;
        send_advance(&g);
        end_as(&g, c, STORE_DONE);
        hand(&g, 2, "k", "nobody");
        reply_advance(&g, STORE_OK);
        send_advance(&g);
        assert_int_equal(g.advance.outcomes_count, 2);
        assert_int_equal(g.advance.outcomes[0].kind, STORE_DIVERT);
        assert_int_equal(g.advance.outcomes[1].kind, STORE_DONE);
        rig_close(&g);
}

/* Nothing of the key is left here that would ask for it. */
static void the_last_of_a_key_comes_back_by_itself(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        hand(&g, 1, "k", "a");
        claim(&g);
        struct claimed *c = start(&g, 1);
        shard_obey(&g.shard, &(struct store_control){ .verb = CONTROL_HOLD, .key = SPAN_TEXT("k") }, g.now_ms);
        g.shard.has_work = true;
        send_advance(&g);
        hand(&g, 2, "k", "a");
        reply_advance(&g, STORE_OK);
        end_as(&g, c, STORE_DONE);
        send_advance(&g);
        assert_said(&g, 2, STORE_DIVERT);
        assert_int_equal(said(&g, 2)->delay_ms, 0);
        rig_close(&g);
}

/* --- interruptions
 * ----------------------------------------------------------------------------------------------------
 */

static void an_interrupted_task_runs_again_in_its_place(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        hand(&g, 1, "k", "a");
        hand(&g, 2, "k", "a");
        claim(&g);
        struct pending_outcome *pending =
                pending_outcome_new(STORE_INTERRUPTED, COST_INTERRUPTION, "a neighbour crashed");
        pending->outcome.is_suspect = true;
        shard_ended(&g.shard, start(&g, 1), pending, g.now_ms);
        assert_null(next(&g));
        send_advance(&g);
        assert_said(&g, 1, STORE_INTERRUPTED);
        reply_advance(&g, STORE_OK);
        assert_null(next(&g)); /* a suspect now */
        send_advance(&g);
        assert_said(&g, 1, STORE_START);
        reply_advance(&g, STORE_OK);
        start(&g, 1);
        rig_close(&g);
}

/* --- what people ask for ---------------------------------------------------------------------------------------------
 */

static void a_waiting_task_can_be_cancelled(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        hand(&g, 1, "k", "a");
        hand(&g, 2, "k", "a");
        hand(&g, 3, "k", "a");
        claim(&g);
        struct store_control control = { .verb = CONTROL_CANCEL, .key = SPAN_TEXT("k"), .seq = 2 };
        shard_obey(&g.shard, &control, g.now_ms);
        shard_obey(&g.shard, &control, g.now_ms); /* twice does no harm */
        run(&g, 1);
        send_advance(&g);
        assert_int_equal(g.advance.outcomes_count, 2);
        assert_said(&g, 2, STORE_DEAD);
        assert_true(span_is(said(&g, 2)->reason, SPAN_TEXT("cancelled")));
        reply_advance(&g, STORE_OK);
        start(&g, 3);
        rig_close(&g);
}

static void a_suspect_can_be_cancelled_while_its_start_is_recorded(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        hand(&g, 1, "k", "a")->note.is_suspect = true;
        hand(&g, 2, "k", "a");
        claim(&g);
        assert_null(next(&g));
        send_advance(&g);
        struct store_control control = { .verb = CONTROL_CANCEL, .key = SPAN_TEXT("k"), .seq = 1 };
        shard_obey(&g.shard, &control, g.now_ms);
        reply_advance(&g, STORE_OK);
        assert_null(next(&g));
        send_advance(&g);
        assert_said(&g, 1, STORE_DEAD);
        reply_advance(&g, STORE_OK);
        start(&g, 2);
        rig_close(&g);
}

static void holding_a_key_gives_its_waiting_tasks_back(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        hand(&g, 1, "k", "a");
        hand(&g, 2, "k", "a");
        claim(&g);
        struct claimed *c = start(&g, 1);
        shard_obey(&g.shard, &(struct store_control){ .verb = CONTROL_HOLD, .key = SPAN_TEXT("k") }, g.now_ms);
        end_as(&g, c, STORE_DONE);
        assert_null(next(&g));
        send_advance(&g);
        assert_said(&g, 1, STORE_DONE);
        assert_said(&g, 2, STORE_DIVERT);
        rig_close(&g);
}

static void a_task_of_a_held_key_that_is_to_run_again_is_given_back(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        hand(&g, 1, "k", "a");
        claim(&g);
        struct claimed *c = start(&g, 1);
        shard_obey(&g.shard, &(struct store_control){ .verb = CONTROL_HOLD, .key = SPAN_TEXT("k") }, g.now_ms);
        shard_again(&g.shard, c, g.now_ms);
        assert_null(next(&g));
        send_advance(&g);
        assert_said(&g, 1, STORE_DIVERT);
        reply_advance(&g, STORE_OK);
        assert_int_equal(g.shard.window.count, 0);
        rig_close(&g);
}

static void a_task_of_a_held_key_that_was_interrupted_is_given_back(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        hand(&g, 1, "k", "a");
        claim(&g);
        struct claimed *c = start(&g, 1);
        shard_obey(&g.shard, &(struct store_control){ .verb = CONTROL_HOLD, .key = SPAN_TEXT("k") }, g.now_ms);
        end_as(&g, c, STORE_INTERRUPTED);
        send_advance(&g);
        assert_said(&g, 1, STORE_INTERRUPTED);
        reply_advance(&g, STORE_OK);
        send_advance(&g);
        assert_said(&g, 1, STORE_DIVERT);
        rig_close(&g);
}

/* It goes to the end of another lane, through its owner; what has started stays. */
static void a_waiting_task_changes_its_lane(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        uint64_t first = (UINT64_C(1) << STORE_SEQ_LANE_SHIFT) + 1;
        hand(&g, first, "k", "a");
        hand(&g, first + 1, "k", "a");
        hand(&g, first + 2, "j", "a");
        claim(&g);
        struct claimed *running = start(&g, first);
        struct store_control control = {
                .verb = CONTROL_MOVE, .key = SPAN_TEXT("k"), .seq = first, .data = SPAN_TEXT("high")
        };
        shard_obey(&g.shard, &control, g.now_ms); /* it has started */
        control.seq = first + 1;
        control.data = SPAN_TEXT("normal");
        shard_obey(&g.shard, &control, g.now_ms); /* it is there */
        control.data = SPAN_TEXT("top");
        shard_obey(&g.shard, &control, g.now_ms); /* there is none */
        assert_int_equal(g.shard.ended_count, 0);
        control.data = SPAN_TEXT("low");
        shard_obey(&g.shard, &control, g.now_ms);
        end_as(&g, running, STORE_DONE);
        send_advance(&g);
        assert_said(&g, first, STORE_DONE);
        assert_said(&g, first + 1, STORE_MOVE);
        assert_int_equal(said(&g, first + 1)->lane, LANE_LOW);
        assert_null(said(&g, first + 2));
        reply_advance(&g, STORE_OK);
        assert_int_equal(g.shard.window.count, 1);
        run(&g, first + 2);
        rig_close(&g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_retry_is_not_overtaken),
                cmocka_unit_test(what_comes_in_behind_a_retry_is_given_back),
                cmocka_unit_test(a_held_key_gives_its_tasks_back),
                cmocka_unit_test(a_dead_task_lets_its_key_go_on),
                cmocka_unit_test(what_a_task_saved_is_told_before_its_retry),
                cmocka_unit_test(what_is_to_run_again_keeps_its_place),
                cmocka_unit_test(a_key_gives_back_what_is_beyond_its_share_the_newest_first),
                cmocka_unit_test(every_end_asks_for_more_of_its_key),
                cmocka_unit_test(a_full_share_asks_for_no_more),
                cmocka_unit_test(an_unserved_task_is_not_overtaken),
                cmocka_unit_test(what_was_given_back_is_not_overtaken),
                cmocka_unit_test(what_goes_back_is_told_before_an_end_asks_for_more),
                cmocka_unit_test(the_last_of_a_key_comes_back_by_itself),
                cmocka_unit_test(an_interrupted_task_runs_again_in_its_place),
                cmocka_unit_test(a_waiting_task_can_be_cancelled),
                cmocka_unit_test(a_waiting_task_changes_its_lane),
                cmocka_unit_test(a_suspect_can_be_cancelled_while_its_start_is_recorded),
                cmocka_unit_test(holding_a_key_gives_its_waiting_tasks_back),
                cmocka_unit_test(a_task_of_a_held_key_that_is_to_run_again_is_given_back),
                cmocka_unit_test(a_task_of_a_held_key_that_was_interrupted_is_given_back),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
