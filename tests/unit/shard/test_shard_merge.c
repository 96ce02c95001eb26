/* Which of a shard's claimed tasks become one, and when. */
#include "merge_rig.h"

/* A call that brings one more of key k for handler a that may be merged. */
static void bring(struct rig *g, uint64_t seq)
{
        hand_merge(g, seq, "k", "a");
        claim(g);
}

static void open_with_one(struct rig *g)
{
        merge_open(g);
        bring(g, 1);
}

/* Tasks 1 and 2 of key k came at once, and the store has not been told yet that they become one. */
static void open_with_two(struct rig *g)
{
        merge_open(g);
        hand_merge(g, 1, "k", "a");
        bring(g, 2);
}

/* Tasks 1 and 2 of key k, and the call that says that they become one is under way. */
static void open_telling_two(struct rig *g)
{
        open_with_two(g);
        send_advance(g);
}

/* A call that brings nothing. */
static void tell(struct rig *g)
{
        send_advance(g);
        reply_advance(g, STORE_OK);
}

static void the_first_waits_until_it_is_durable_and_gets_the_last_payload(void **state)
{
        (void)state;
        struct rig g;
        merge_open(&g);
        hand_merge(&g, 1, "k", "a");
        hand_merge(&g, 2, "k", "a")->envelope.reply_ms = 500;
        struct store_task *last = hand_merge(&g, 3, "k", "a");
        last->envelope.timeout_ms = 77;
        last->envelope.attempts = 5;
        last->envelope.reply_ms = 100;
        claim(&g);
        assert_null(next(&g));
        send_advance(&g);
        assert_merged(&g, 1, 2);
        assert_int_equal(said(&g, 1)->merged[0].reply_ms, 500);
        assert_null(said(&g, 2));
        assert_null(next(&g));
        reply_advance(&g, STORE_OK);
        assert_int_equal(g.shard.window.count, 1);
        assert_int_equal(g.shard.window.bytes, 8);
        struct claimed *c = start(&g, 1);
        assert_true(span_is(c->payload, SPAN_TEXT("the last")));
        assert_true(span_is(c->headers, SPAN_TEXT("header.of:last\n")));
        assert_int_equal(c->timeout_ms, 77);
        assert_int_equal(c->attempts_max, 5);
        assert_int_equal(c->reply_ms, 500);
        end_as(&g, c, STORE_DONE);
        tell(&g);
        assert_int_equal(g.shard.window.count, 0);
        rig_close(&g);
}

static void while_one_runs_at_most_one_waits(void **state)
{
        (void)state;
        struct rig g;
        open_with_one(&g);
        struct claimed *running = start(&g, 1);
        for (uint64_t seq = 2; seq < 300; seq++) {
                bring(&g, seq);
                assert_true(g.shard.window.count <= 3); /* the last one is on its way out */
        }
        tell(&g);
        assert_int_equal(g.shard.window.count, 2);
        assert_true(span_is(running->payload, SPAN_TEXT("one"))); /* it has started */
        assert_null(next(&g));
        end_as(&g, running, STORE_DONE);
        tell(&g);
        assert_true(span_is(start(&g, 2)->payload, SPAN_TEXT("the last")));
        rig_close(&g);
}

/* More than its share of the window comes at once: nothing has to go back for it. */
static void a_whole_call_becomes_one(void **state)
{
        (void)state;
        struct rig g;
        merge_open(&g);
        for (uint64_t seq = 1; seq <= RIG_WINDOW; seq++)
                hand_merge(&g, seq, "k", "a");
        claim(&g);
        send_advance(&g);
        assert_int_equal(g.advance.outcomes_count, 1);
        assert_merged(&g, 1, RIG_WINDOW - 1);
        assert_true(said(&g, 1)->refill > 0); /* and brings what the key has in the store */
        reply_advance(&g, STORE_OK);
        assert_int_equal(g.shard.window.count, 1);
        rig_close(&g);
}

static void only_neighbours_of_one_handler_and_lane_are_merged(void **state)
{
        (void)state;
        struct rig g;
        merge_open(&g);
        hand_merge(&g, 1, "k", "a");
        hand(&g, 2, "k", "a"); /* none that may be merged */
        hand_merge(&g, 3, "k", "a");
        hand_merge(&g, 4, "k", "b");
        hand_merge(&g, 5, "j", "a");
        hand_merge(&g, UINT64_C(1) << STORE_SEQ_LANE_SHIFT | 1, "j", "a");
        claim(&g);
        assert_int_equal(g.shard.ended_count, 0);
        start(&g, 1);
        start(&g, 5);
        rig_close(&g);
}

static void what_has_started_is_not_changed(void **state)
{
        (void)state;
        static const struct task_note started[] = { { .attempts = 1 }, { .crashes = 1 }, { .interruptions = 1 },
                { .started_epoch = 40 }, { .checkpoint = SPAN_TEXT("c") } };
        for (size_t i = 0; i < sizeof(started) / sizeof(started[0]); i++) {
                struct rig g;
                merge_open(&g);
                hand_merge(&g, 1, "k", "a")->note = started[i];
                bring(&g, 2);
                assert_int_equal(g.shard.ended_count, 0);
                hand_merge(&g, 3, "k", "a")->note = started[i];
                claim(&g);
                assert_int_equal(g.shard.ended_count, 0);
                rig_close(&g);
        }
}

static void what_only_a_newer_quiver_understands_is_not_merged(void **state)
{
        (void)state;
        struct rig g;
        merge_open(&g);
        hand_merge(&g, 1, "k", "a");
        hand_merge(&g, 2, "k", "a")->envelope.others = SPAN_TEXT("!gate:1\n");
        claim(&g);
        send_advance(&g);
        assert_null(said(&g, 1));
        assert_said(&g, 2, STORE_DIVERT);
        rig_close(&g);
}

static void nothing_is_merged_before_the_app_allows_it(void **state)
{
        (void)state;
        struct rig g;
        merge_open(&g);
        g.limits.can_merge = false;
        hand_merge(&g, 1, "k", "a")->envelope.debounce_ms = 1000;
        bring(&g, 2);
        assert_int_equal(g.shard.ended_count, 0);
        start(&g, 1);
        rig_close(&g);
}

/* A key whose tasks keep coming is served. */
static void a_stream_of_tasks_does_not_keep_the_first_from_starting(void **state)
{
        (void)state;
        struct rig g;
        open_with_two(&g);
        uint64_t seq = 3;
        while (!next(&g)) {
                assert_true(seq < 100);
                bring(&g, seq++);
        }
        rig_close(&g);
}

/* One that could have started, but for want of a seat, goes on being merged into. */
static void one_that_waits_for_a_seat_is_merged_into_for_as_long(void **state)
{
        (void)state;
        struct rig g;
        open_with_one(&g);
        for (uint64_t seq = 2; seq < 200; seq++) {
                bring(&g, seq);
                tell(&g); /* ready now */
        }
        assert_int_equal(g.shard.window.count, 1);
        rig_close(&g);
}

static void the_next_owner_merges_anew(void **state)
{
        (void)state;
        struct rig g;
        open_telling_two(&g);
        reply_advance(&g, STORE_FENCED);
        assert_int_equal(g.shard.window.count, 0);
        g.now_ms += RIG_TTL_MS;
        send_acquire(&g);
        hand_merge(&g, 1, "k", "a");
        hand_merge(&g, 2, "k", "a");
        reply_acquire(&g, STORE_GRANTED, false);
        send_advance(&g);
        assert_merged(&g, 1, 1);
        rig_close(&g);
}

/* A pool had it, and gave it back: whether it began there is not known here. */
static void what_a_pool_has_had_is_not_changed(void **state)
{
        (void)state;
        struct rig g;
        open_with_one(&g);
        shard_again(&g.shard, start(&g, 1), g.now_ms);
        bring(&g, 2);
        assert_int_equal(g.shard.ended_count, 0);
        rig_close(&g);
}

/* They go back to the store behind it, as they are. */
static void what_comes_in_behind_a_retry_is_not_merged(void **state)
{
        (void)state;
        struct rig g;
        open_with_one(&g);
        struct claimed *c = start(&g, 1);
        g.shard.has_work = true;
        send_advance(&g);
        end_as(&g, c, STORE_RETRY);
        hand_merge(&g, 2, "k", "a");
        hand_merge(&g, 3, "k", "a");
        reply_advance(&g, STORE_OK);
        send_advance(&g);
        assert_said(&g, 2, STORE_DIVERT);
        assert_said(&g, 3, STORE_DIVERT);
        rig_close(&g);
}

/* A call moves a megabyte; the rest follows. */
static void large_payloads_are_merged_a_call_at_a_time(void **state)
{
        (void)state;
        static const char large[600000];
        struct rig g;
        merge_open(&g);
        for (uint64_t seq = 1; seq <= 4; seq++)
                hand_merge(&g, seq, "k", "a")->envelope.payload = (struct span){ large, sizeof(large) };
        claim(&g);
        send_advance(&g);
        assert_int_equal(g.advance.outcomes_count, 1);
        assert_merged(&g, 1, 1);
        reply_advance(&g, STORE_OK);
        for (unsigned calls = 0; g.shard.window.count > 1; calls++) {
                assert_true(calls < 4);
                tell(&g);
        }
        start(&g, 1);
        rig_close(&g);
}

static void a_call_merges_no_more_than_it_may(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        g.limits.can_merge = true;
        send_acquire(&g);
        /* A hundred keys, each with its share: a merge of three. */
        static char keys[100][8];
        for (unsigned page = 0; page < 4; page++) {
                for (unsigned i = 0; i < 100; i++) {
                        char *key = keys[page * 25 + i / RIG_PER_KEY];
                        (void)snprintf(key, sizeof(keys[0]), "%u", page * 25 + i / RIG_PER_KEY);
                        hand_merge(&g, page * 100 + i + 1, key, "a");
                }
                if (page)
                        reply_page(&g, STORE_OK, page < 3);
                else
                        reply_acquire(&g, STORE_GRANTED, true);
                if (page < 3)
                        send_page(&g);
        }
        unsigned calls = 0;
        for (; g.shard.window.count > 100; calls++) {
                uint32_t merged = 0;
                assert_true(calls < 50);
                send_advance(&g);
                for (uint32_t i = 0; i < g.advance.outcomes_count; i++)
                        merged += g.advance.outcomes[i].merged_count;
                assert_true(merged <= STORE_CALL_MERGED);
                reply_advance(&g, STORE_OK);
        }
        assert_int_equal(calls, 2);
        rig_close(&g);
}

/* The answer was lost: the same is told again. */
static void a_repeat_tells_the_same_merge(void **state)
{
        (void)state;
        struct rig g;
        open_telling_two(&g);
        shard_failed(&g.shard, g.now_ms);
        g.now_ms += 1000;
        send_advance(&g);
        assert_merged(&g, 1, 1);
        reply_advance(&g, STORE_OK);
        assert_true(span_is(start(&g, 1)->payload, SPAN_TEXT("two")));
        rig_close(&g);
}

static void what_the_store_does_not_have_any_more_is_read_again(void **state)
{
        (void)state;
        struct rig g;
        open_telling_two(&g);
        g.advance.gone = 1;
        reply_advance(&g, STORE_OK);
        g.advance.gone = 0;
        assert_int_equal(g.shard.window.count, 0);
        assert_int_equal(g.shard.state, SHARD_READING);
        send_page(&g);
        hand_merge(&g, 2, "k", "a");
        reply_page(&g, STORE_OK, false);
        start(&g, 2);
        rig_close(&g);
}

static void a_merge_that_is_being_told_overtakes_nobody(void **state)
{
        (void)state;
        struct rig g;
        merge_open(&g);
        hand(&g, 1, "k", "a");
        hand_merge(&g, 2, "k", "b");
        hand_merge(&g, 3, "k", "b");
        claim(&g);
        send_advance(&g);
        assert_merged(&g, 2, 1);
        shard_return_pool(&g.shard, 0, g.now_ms); /* 1 goes back to the store */
        reply_advance(&g, STORE_OK);
        assert_null(next_of(&g.shard, 1, g.now_ms));
        send_advance(&g);
        assert_said(&g, 1, STORE_DIVERT);
        assert_said(&g, 2, STORE_DIVERT);
        reply_advance(&g, STORE_OK);
        assert_int_equal(g.shard.window.count, 0);
        rig_close(&g);
}

static void a_cancelled_one_is_dead_and_takes_the_others_with_it(void **state)
{
        (void)state;
        struct rig g;
        open_telling_two(&g);
        shard_obey(
                &g.shard, &(struct store_control){ .verb = CONTROL_CANCEL, .key = rig_span("k"), .seq = 1 }, g.now_ms);
        reply_advance(&g, STORE_OK);
        assert_null(next(&g));
        send_advance(&g);
        assert_said(&g, 1, STORE_DEAD);
        rig_close(&g);
}

static void a_handler_that_was_shut_meanwhile_gets_nothing(void **state)
{
        (void)state;
        struct rig g;
        open_telling_two(&g);
        g.routes.states[0] = ROUTE_SHUT;
        shard_return_pool(&g.shard, 0, g.now_ms);
        reply_advance(&g, STORE_OK);
        send_advance(&g);
        assert_said(&g, 1, STORE_DIVERT);
        assert_true(span_is(said(&g, 1)->name, SPAN_TEXT("handler:a")));
        rig_close(&g);
}

/* What others of its key were merged into is not in the store any more: they are forgotten and read again, a page at a
 * time.  Meanwhile the one before them and those behind them are no neighbours. */
static void nothing_is_merged_while_the_table_is_read_again(void **state)
{
        (void)state;
        struct rig g;
        merge_open(&g);
        hand_merge(&g, 1, "k", "a");
        hand_merge(&g, 2, "k", "b");
        hand_merge(&g, 3, "k", "b");
        hand_merge(&g, 4, "k", "a");
        claim(&g);
        g.shard.has_work = true;
        send_advance(&g);
        assert_merged(&g, 2, 1);
        g.advance.gone = 1; /* 2 and 3 have to be read again */
        hand_merge(&g, 5, "k", "a");
        reply_advance(&g, STORE_OK);
        g.advance.gone = 0;
        assert_int_equal(g.shard.state, SHARD_READING);
        assert_int_equal(g.shard.window.count, 3);
        assert_int_equal(g.shard.ended_count, 0);
        send_page(&g);
        hand_merge(&g, 1, "k", "a");
        reply_page(&g, STORE_OK, true);
        assert_int_equal(g.shard.ended_count, 0);
        send_page(&g);
        hand_merge(&g, 3, "k", "b");
        reply_page(&g, STORE_OK, false);
        assert_int_equal(g.shard.state, SHARD_OWNED);
        send_advance(&g);
        assert_merged(&g, 4, 1);
        assert_null(said(&g, 1));
        rig_close(&g);
}

/* What may be merged in a table that is read in pages is merged once all of it is here. */
static void a_table_in_pages_is_merged_when_it_is_whole(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        g.limits.can_merge = true;
        send_acquire(&g);
        hand_merge(&g, 1, "k", "a");
        reply_acquire(&g, STORE_GRANTED, true);
        send_page(&g);
        hand_merge(&g, 2, "k", "a");
        reply_page(&g, STORE_OK, true);
        assert_int_equal(g.shard.ended_count, 0);
        send_page(&g);
        hand_merge(&g, 3, "k", "a");
        reply_page(&g, STORE_OK, false);
        send_advance(&g);
        assert_int_equal(said(&g, 1)->kind, STORE_MERGE);
        assert_int_equal(said(&g, 1)->merged_count, 2);
        reply_advance(&g, STORE_OK);
        rig_close(&g);
}

/* --- debounce --- */

static void a_debounced_head_goes_back_with_what_is_behind_it(void **state)
{
        (void)state;
        struct rig g;
        merge_open(&g);
        hand_merge(&g, 1, "k", "a")->envelope.debounce_ms = 1000;
        hand(&g, 2, "k", "a");
        claim(&g);
        g.now_ms += 300;
        assert_null(next(&g));
        send_advance(&g);
        assert_said(&g, 1, STORE_DIVERT);
        assert_said(&g, 2, STORE_DIVERT);
        assert_true(said(&g, 1)->is_debounce);
        assert_false(said(&g, 2)->is_debounce);
        assert_int_equal(said(&g, 1)->delay_ms, 700); /* it waited already */
        assert_int_equal(said(&g, 2)->delay_ms, 700);
        reply_advance(&g, STORE_OK);
        assert_int_equal(g.shard.window.count, 0);
        /* It comes back with what has joined it, and waits no second time. */
        struct store_task *t = hand_merge(&g, 1, "k", "a");
        t->envelope.debounce_ms = 1000;
        t->note.is_debounced = true;
        hand_merge(&g, 3, "k", "a")->envelope.debounce_ms = 1000;
        claim(&g);
        tell(&g);
        assert_true(span_is(start(&g, 1)->payload, SPAN_TEXT("the last")));
        rig_close(&g);
}

static void one_that_has_waited_long_enough_starts(void **state)
{
        (void)state;
        struct rig g;
        merge_open(&g);
        hand_merge(&g, 1, "k", "a")->envelope.debounce_ms = 1000;
        claim(&g);
        g.now_ms += 1000;
        g.shard.until_ms = g.now_ms + 1;
        start(&g, 1);
        rig_close(&g);
}

/* The first goes back to the store for its time while a call is under way, which then brings more of the key. */
static void what_comes_behind_a_debounced_one_goes_back_and_is_not_merged(void **state)
{
        (void)state;
        struct rig g;
        merge_open(&g);
        hand_merge(&g, 1, "k", "a")->envelope.debounce_ms = 500;
        claim(&g);
        g.shard.has_work = true;
        send_advance(&g);
        assert_null(next(&g));
        hand_merge(&g, 2, "k", "a");
        hand_merge(&g, 3, "k", "a");
        reply_advance(&g, STORE_OK);
        assert_null(next(&g));
        send_advance(&g);
        for (uint64_t seq = 1; seq <= 3; seq++)
                assert_said(&g, seq, STORE_DIVERT);
        assert_true(said(&g, 1)->is_debounce);
        reply_advance(&g, STORE_OK);
        assert_null(next(&g));
        rig_close(&g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_comes_behind_a_debounced_one_goes_back_and_is_not_merged),
                cmocka_unit_test(the_first_waits_until_it_is_durable_and_gets_the_last_payload),
                cmocka_unit_test(while_one_runs_at_most_one_waits),
                cmocka_unit_test(a_whole_call_becomes_one),
                cmocka_unit_test(only_neighbours_of_one_handler_and_lane_are_merged),
                cmocka_unit_test(what_has_started_is_not_changed),
                cmocka_unit_test(what_only_a_newer_quiver_understands_is_not_merged),
                cmocka_unit_test(nothing_is_merged_before_the_app_allows_it),
                cmocka_unit_test(a_stream_of_tasks_does_not_keep_the_first_from_starting),
                cmocka_unit_test(one_that_waits_for_a_seat_is_merged_into_for_as_long),
                cmocka_unit_test(the_next_owner_merges_anew),
                cmocka_unit_test(what_a_pool_has_had_is_not_changed),
                cmocka_unit_test(what_comes_in_behind_a_retry_is_not_merged),
                cmocka_unit_test(large_payloads_are_merged_a_call_at_a_time),
                cmocka_unit_test(a_call_merges_no_more_than_it_may),
                cmocka_unit_test(a_repeat_tells_the_same_merge),
                cmocka_unit_test(what_the_store_does_not_have_any_more_is_read_again),
                cmocka_unit_test(a_merge_that_is_being_told_overtakes_nobody),
                cmocka_unit_test(a_cancelled_one_is_dead_and_takes_the_others_with_it),
                cmocka_unit_test(a_handler_that_was_shut_meanwhile_gets_nothing),
                cmocka_unit_test(nothing_is_merged_while_the_table_is_read_again),
                cmocka_unit_test(a_table_in_pages_is_merged_when_it_is_whole),
                cmocka_unit_test(a_debounced_head_goes_back_with_what_is_behind_it),
                cmocka_unit_test(one_that_has_waited_long_enough_starts),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
