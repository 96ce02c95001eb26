/* A shard as its owner sees it: how it is acquired, and the calls. */
#include "shard_rig.h"

/* --- acquiring -------------------------------------------------------------------------------------------------------
 */

static void a_granted_shard_starts_with_what_was_in_flight(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        send_acquire(&g);
        assert_int_equal(g.acquire.lease.epoch, 40);
        assert_int_equal(g.acquire.lease.shard, 7);
        assert_null(next(&g));
        hand(&g, 5, "k", "a");
        hand(&g, 6, "k", "a");
        reply_acquire(&g, STORE_GRANTED, false);
        start(&g, 5);
        assert_null(next(&g));
        rig_close(&g);
}

static void a_busy_shard_is_asked_for_again_soon(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        send_acquire(&g);
        g.acquire.busy_ms = 3;
        reply_acquire(&g, STORE_BUSY, false);
        assert_int_equal(next_call(&g), SHARD_CALL_NONE);
        assert_int_equal(shard_due_ms(&g.shard), g.now_ms + 4);
        for (int i = 0; i < 20; i++) {
                g.now_ms = shard_due_ms(&g.shard);
                send_acquire(&g);
                assert_int_equal(g.acquire.lease.epoch, 40);
                g.acquire.busy_ms = 60000; /* it may be released long before */
                reply_acquire(&g, STORE_BUSY, false);
                assert_true(shard_due_ms(&g.shard) > g.now_ms);
                assert_true(shard_due_ms(&g.shard) <= g.now_ms + 200);
        }
        rig_close(&g);
}

/* Epochs come from coordination alone: it is told what the store knows, and gives a higher one. */
static void a_stale_epoch_waits_for_a_higher_one(void **state)
{
        (void)state;
        static const uint8_t nonce[STORE_NONCE_SIZE] = { 1, 2, 3 };
        struct rig g;
        rig_open(&g);
        send_acquire(&g);
        g.acquire.stored_epoch = 90;
        reply_acquire(&g, STORE_STALE, false);
        assert_int_equal(next_call(&g), SHARD_CALL_NONE);
        assert_int_equal(g.shard.stale_epoch, 90);
        shard_assign(&g.shard, nonce, 91, false);
        send_acquire(&g);
        assert_int_equal(g.acquire.lease.epoch, 91);
        rig_close(&g);
}

static void nothing_starts_before_the_whole_table_was_read(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        send_acquire(&g);
        hand(&g, 5, "k", "a");
        reply_acquire(&g, STORE_GRANTED, true);
        assert_null(next(&g));
        send_page(&g);
        assert_int_equal(g.page.after_seq, 5);
        hand(&g, 8, "j", "a");
        reply_page(&g, STORE_OK, true);
        assert_null(next(&g));
        send_page(&g);
        assert_int_equal(g.page.after_seq, 8);
        reply_page(&g, STORE_OK, false);
        start(&g, 5);
        start(&g, 8);
        rig_close(&g);
}

static void a_key_that_waits_in_the_store_is_given_back(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        send_acquire(&g);
        hand(&g, 5, "k", "a");
        hand(&g, 6, "k", "a")->is_key_waiting = true;
        hand(&g, 7, "j", "a");
        reply_acquire(&g, STORE_GRANTED, false);
        start(&g, 7);
        assert_null(next(&g));
        send_advance(&g);
        assert_said(&g, 5, STORE_DIVERT);
        assert_said(&g, 6, STORE_DIVERT);
        rig_close(&g);
}

/* --- calls -----------------------------------------------------------------------------------------------------------
 */

static void calls_are_numbered_from_the_grant(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        g.shard.has_work = true;
        send_advance(&g);
        assert_int_equal(g.advance.call, 101);
        assert_int_equal(g.advance.want[LANE_HIGH], RIG_WINDOW - 2 * RIG_LANE_ROOM);
        hand(&g, 1, "k", "a");
        reply_advance(&g, STORE_OK);
        run(&g, 1);
        send_advance(&g);
        assert_int_equal(g.advance.call, 102);
        assert_said(&g, 1, STORE_DONE);
        rig_close(&g);
}

static void an_idle_shard_asks_nothing(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        assert_int_equal(shard_next_call(&g.shard, false, g.now_ms), SHARD_CALL_NONE);
        assert_true(shard_due_ms(&g.shard) == STORE_NEVER);
        g.shard.due_ms = g.now_ms + 500;
        assert_int_equal(shard_due_ms(&g.shard), g.now_ms + 500);
        g.now_ms += 500;
        assert_int_equal(next_call(&g), SHARD_CALL_ADVANCE);
        rig_close(&g);
}

static void outcomes_gather_while_there_is_other_work(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        hand(&g, 1, "k", "a");
        hand(&g, 2, "j", "a");
        claim(&g);
        run(&g, 1);
        assert_int_equal(next_call(&g), SHARD_CALL_NONE);
        assert_int_equal(shard_next_call(&g.shard, false, g.now_ms), SHARD_CALL_ADVANCE);
        assert_int_equal(shard_due_ms(&g.shard), g.now_ms + 10);
        run(&g, 2);
        g.now_ms += 10;
        assert_int_equal(next_call(&g), SHARD_CALL_ADVANCE);
        send_advance(&g);
        assert_int_equal(g.advance.outcomes_count, 2);
        rig_close(&g);
}

static void an_outcome_that_a_task_waits_for_is_told_at_once(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        hand(&g, 1, "k", "a");
        hand(&g, 2, "k", "a");
        claim(&g);
        run(&g, 1);
        assert_int_equal(next_call(&g), SHARD_CALL_ADVANCE);
        assert_null(next(&g));
        send_advance(&g);
        assert_null(next(&g));
        reply_advance(&g, STORE_OK);
        start(&g, 2);
        rig_close(&g);
}

/* Bell and replies come on different ways: what rang may have come after the call had looked. */
static void a_ring_during_a_call_is_not_forgotten(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        shard_rang(&g.shard);
        send_advance(&g);
        shard_rang(&g.shard);
        reply_advance(&g, STORE_OK);
        send_advance(&g);
        reply_advance(&g, STORE_OK);
        assert_int_equal(next_call(&g), SHARD_CALL_NONE);
        rig_close(&g);
}

/* Fills the window with that many tasks of a lane, each of a key of its own. */
static void fill_lane(struct rig *g, enum lane lane, uint32_t count)
{
        static char keys[LANES][RIG_WINDOW][8];
        for (uint32_t i = 0; i < count; i++) {
                (void)snprintf(keys[lane][i], sizeof(keys[lane][i]), "%u%u", (unsigned)lane, (unsigned)i);
                hand(g, ((uint64_t)lane << STORE_SEQ_LANE_SHIFT) + i + 1, keys[lane][i], "a");
        }
        claim(g);
}

static void a_full_window_claims_nothing(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        fill_lane(&g, LANE_HIGH, RIG_WINDOW - 2 * RIG_LANE_ROOM);
        fill_lane(&g, LANE_NORMAL, RIG_LANE_ROOM);
        fill_lane(&g, LANE_LOW, RIG_LANE_ROOM);
        g.now_ms += 1000;
        g.shard.has_work = true;
        assert_int_equal(shard_next_call(&g.shard, false, g.now_ms), SHARD_CALL_NONE);
        run(&g, 1);
        send_advance(&g);
        assert_int_equal(g.advance.want[LANE_HIGH], 0);
        reply_advance(&g, STORE_OK);
        g.shard.has_work = true;
        send_advance(&g);
        assert_int_equal(g.advance.want[LANE_HIGH], 1);
        assert_int_equal(g.advance.want[LANE_LOW], 1);
        rig_close(&g);
}

static void a_full_lane_leaves_room_for_the_others(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        fill_lane(&g, LANE_LOW, RIG_WINDOW);
        shard_rang(&g.shard);
        g.now_ms += 1000;
        send_advance(&g);
        assert_int_equal(g.advance.want[LANE_LOW], 0);
        assert_int_equal(g.advance.want[LANE_NORMAL], RIG_LANE_ROOM);
        assert_int_equal(g.advance.want[LANE_HIGH], RIG_LANE_ROOM);
        reply_advance(&g, STORE_OK);
        g.now_ms += 1000;
        fill_lane(&g, LANE_HIGH, RIG_LANE_ROOM);
        shard_rang(&g.shard);
        g.now_ms += 1000;
        send_advance(&g);
        assert_int_equal(g.advance.want[LANE_HIGH], 0);
        assert_int_equal(g.advance.want[LANE_NORMAL], RIG_LANE_ROOM);
        rig_close(&g);
}

static void no_lane_takes_the_others_room(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        fill_lane(&g, LANE_LOW, RIG_WINDOW - RIG_LANE_ROOM - 1);
        g.shard.has_work = true;
        send_advance(&g);
        assert_int_equal(g.advance.want[LANE_LOW], 0);
        assert_int_equal(g.advance.want[LANE_NORMAL], RIG_LANE_ROOM);
        rig_close(&g);
}

static void bytes_that_fill_the_window_leave_room_for_another_lane(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        g.limits.window_bytes = RIG_LANE_ROOM;
        fill_lane(&g, LANE_LOW, RIG_LANE_ROOM);
        shard_rang(&g.shard);
        g.now_ms += 1000;
        send_advance(&g);
        assert_int_equal(g.advance.want[LANE_LOW], 0);
        assert_int_equal(g.advance.want[LANE_HIGH], RIG_LANE_ROOM);
        assert_int_equal(g.advance.want_bytes, 1);
        rig_close(&g);
}

/* What a full lane has in the store is no reason to call before it has room. */
static void a_full_lane_is_not_asked_for_again(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        fill_lane(&g, LANE_LOW, RIG_WINDOW);
        g.shard.has_work = true;
        g.now_ms += 1000;
        send_advance(&g);
        g.advance.has_more[LANE_LOW] = true;
        reply_advance(&g, STORE_OK);
        assert_int_equal(shard_due_ms(&g.shard), STORE_NEVER);
        for (uint64_t i = 0; i < 2 * RIG_LANE_ROOM + 1; i++)
                run(&g, ((uint64_t)LANE_LOW << STORE_SEQ_LANE_SHIFT) + i + 1);
        send_advance(&g);
        g.advance.has_more[LANE_LOW] = true;
        reply_advance(&g, STORE_OK);
        assert_int_equal(shard_next_call(&g.shard, false, g.now_ms), SHARD_CALL_ADVANCE);
        rig_close(&g);
}

static void a_call_without_an_answer_is_repeated_as_it_was(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        hand(&g, 1, "k", "a");
        hand(&g, 2, "j", "a");
        claim(&g);
        run(&g, 1);
        send_advance(&g);
        uint64_t call = g.advance.call;
        run(&g, 2); /* ends meanwhile: not part of the call */
        shard_failed(&g.shard, g.now_ms);
        assert_int_equal(shard_next_call(&g.shard, false, g.now_ms), SHARD_CALL_NONE);
        uint64_t due_ms = shard_due_ms(&g.shard);
        assert_true(due_ms > g.now_ms && due_ms <= g.now_ms + 1000);
        g.now_ms = due_ms;
        send_advance(&g);
        assert_int_equal(g.advance.call, call);
        assert_int_equal(g.advance.outcomes_count, 1);
        assert_said(&g, 1, STORE_DONE);
        reply_advance(&g, STORE_OK);
        send_advance(&g);
        assert_int_equal(g.advance.call, call + 1);
        assert_int_equal(g.advance.outcomes_count, 1);
        assert_said(&g, 2, STORE_DONE);
        rig_close(&g);
}

static void repeats_slow_down(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        uint64_t last_ms = 0;
        for (int i = 0; i < 20; i++) {
                send_acquire(&g);
                shard_failed(&g.shard, g.now_ms);
                uint64_t delay_ms = shard_due_ms(&g.shard) - g.now_ms;
                assert_true(delay_ms >= last_ms && delay_ms <= 5000);
                last_ms = delay_ms;
                g.now_ms += delay_ms;
        }
        assert_true(last_ms >= 1000);
        rig_close(&g);
}

/* The store answers a repeated number with what that call did, and does nothing else. */
static void an_empty_call_without_an_answer_is_repeated_before_anything_else(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        g.shard.has_work = true;
        send_advance(&g);
        assert_int_equal(g.advance.outcomes_count, 0);
        uint64_t call = g.advance.call;
        shard_failed(&g.shard, g.now_ms);
        shard_leave(&g.shard, g.now_ms);
        g.now_ms += 1000;
        send_advance(&g);
        assert_int_equal(g.advance.call, call);
        hand(&g, 2, "j", "a");
        reply_advance(&g, STORE_OK);
        send_release(&g);
        assert_int_equal(g.release.call, call + 1);
        rig_close(&g);
}

static struct pending_outcome *pending_outcome_with_follow_ups(uint32_t count)
{
        struct buffer submits = { 0 };
        struct error error = { "" };
        for (uint32_t i = 0; i < count; i++)
                ring_put_submit(&submits, &(struct ring_submit){ .handler = "a", .key = "k", .payload = "" });
        struct ring_reply reply = {
                .error = "", .submits = submits.data, .submits_size = submits.size, .submits_count = count
        };
        struct pending_outcome *pending = pending_outcome_done(&reply, NULL, &error);
        assert_non_null(pending);
        assert_int_equal(pending->outcome.follow_ups_count, count);
        buffer_free(&submits);
        return pending;
}

static void follow_ups_are_spread_over_calls(void **state)
{
        (void)state;
        struct rig g;
        static const char *const keys[] = { "i", "j", "k", "l" };
        rig_open(&g);
        own(&g);
        for (uint64_t i = 0; i < 4; i++)
                hand(&g, i + 1, keys[i], "a");
        claim(&g);
        for (uint64_t i = 0; i < 4; i++)
                shard_ended(&g.shard, start(&g, i + 1), pending_outcome_with_follow_ups(400), g.now_ms);
        uint32_t told = 0;
        while (told < 4) {
                uint32_t follow_ups = 0;
                send_advance(&g);
                assert_true(g.advance.outcomes_count > 0);
                for (uint32_t i = 0; i < g.advance.outcomes_count; i++)
                        follow_ups += g.advance.outcomes[i].follow_ups_count;
                assert_true(follow_ups <= STORE_CALL_FOLLOW_UPS);
                told += g.advance.outcomes_count;
                reply_advance(&g, STORE_OK);
        }
        assert_int_equal(g.shard.window.count, 0);
        rig_close(&g);
}

static void a_done_task_is_remembered_once_that_is_durable(void **state)
{
        struct rig g;
        struct done_tasks done;
        (void)state;
        rig_open(&g);
        done_tasks_init(&done, 10, g.now_ms);
        g.shard.done = &done;
        own(&g);
        (void)hand(&g, 1, "k", "a");
        (void)hand(&g, 2, "j", "a");
        claim(&g);
        struct claimed *c = start(&g, 1);
        c->attempts = 1;
        c->generation = 3;
        c->ran_ms = 40;
        c->pool_task.pid = 7;
        end_as(&g, c, STORE_DONE);
        end_as(&g, start(&g, 2), STORE_RETRY);
        assert_int_equal(done.count, 0);
        g.now_ms += 20;
        send_advance(&g);
        assert_int_equal(done.count, 0);
        reply_advance(&g, STORE_OK);
        assert_int_equal(done.count, 1);
        const struct done_task *task = done_tasks_find(&done, SPAN_TEXT("t-7"));
        assert_non_null(task);
        assert_int_equal(task->at_ms, g.now_ms);
        assert_int_equal(task->attempt, 2);
        assert_int_equal(task->generation, 3);
        assert_int_equal(task->ran_ms, 40);
        assert_int_equal(task->pid, 7);
        assert_true(span_is((struct span){ task->handler, task->handler_size }, SPAN_TEXT("a")));
        rig_close(&g);
        done_tasks_free(&done);
}

static void an_end_is_counted_once_it_is_durable(void **state)
{
        struct rig g;
        (void)state;
        rig_open(&g);
        own(&g);
        for (uint64_t seq = 1; seq <= 5; seq++)
                (void)hand(&g, seq, seq == 1 ? "k" : seq == 2 ? "j" : seq == 3 ? "i" : seq == 4 ? "h" : "g", "a");
        claim(&g);
        run(&g, 1);
        end_as(&g, start(&g, 2), STORE_RETRY);
        struct pending_outcome *rejected = pending_outcome_new(STORE_DEAD, COST_ATTEMPT, "");
        rejected->outcome.reason = SPAN_TEXT("rejected");
        shard_ended(&g.shard, start(&g, 3), rejected, g.now_ms);
        end_as(&g, start(&g, 4), STORE_DEAD);
        end_as(&g, start(&g, 5), STORE_HOLD);
        const uint64_t *counts = g.routes.finished[0].counts;
        send_advance(&g);
        for (unsigned i = 0; i < FINISHED_KINDS; i++)
                assert_int_equal(counts[i], 0);
        reply_advance(&g, STORE_OK);
        assert_int_equal(counts[FINISHED_DONE], 1);
        assert_int_equal(counts[FINISHED_REJECTED], 1);
        assert_int_equal(counts[FINISHED_EXHAUSTED], 1); /* no reason that has a count of its own */
        assert_int_equal(counts[FINISHED_CRASHED] + counts[FINISHED_TIMED_OUT] + counts[FINISHED_CANCELLED], 0);
        rig_close(&g);
}

static void what_another_took_meanwhile_was_not_done_here(void **state)
{
        struct rig g;
        struct done_tasks done;
        (void)state;
        rig_open(&g);
        done_tasks_init(&done, 10, g.now_ms);
        g.shard.done = &done;
        own(&g);
        (void)hand(&g, 1, "k", "a");
        claim(&g);
        run(&g, 1);
        g.now_ms += 20;
        send_advance(&g);
        reply_advance(&g, STORE_FENCED);
        assert_int_equal(done.count, 0);
        rig_close(&g);
        done_tasks_free(&done);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_done_task_is_remembered_once_that_is_durable),
                cmocka_unit_test(an_end_is_counted_once_it_is_durable),
                cmocka_unit_test(what_another_took_meanwhile_was_not_done_here),
                cmocka_unit_test(a_granted_shard_starts_with_what_was_in_flight),
                cmocka_unit_test(a_busy_shard_is_asked_for_again_soon),
                cmocka_unit_test(a_stale_epoch_waits_for_a_higher_one),
                cmocka_unit_test(nothing_starts_before_the_whole_table_was_read),
                cmocka_unit_test(a_key_that_waits_in_the_store_is_given_back),
                cmocka_unit_test(calls_are_numbered_from_the_grant),
                cmocka_unit_test(an_idle_shard_asks_nothing),
                cmocka_unit_test(outcomes_gather_while_there_is_other_work),
                cmocka_unit_test(an_outcome_that_a_task_waits_for_is_told_at_once),
                cmocka_unit_test(a_ring_during_a_call_is_not_forgotten),
                cmocka_unit_test(a_full_window_claims_nothing),
                cmocka_unit_test(a_full_lane_leaves_room_for_the_others),
                cmocka_unit_test(no_lane_takes_the_others_room),
                cmocka_unit_test(bytes_that_fill_the_window_leave_room_for_another_lane),
                cmocka_unit_test(a_full_lane_is_not_asked_for_again),
                cmocka_unit_test(a_call_without_an_answer_is_repeated_as_it_was),
                cmocka_unit_test(repeats_slow_down),
                cmocka_unit_test(an_empty_call_without_an_answer_is_repeated_before_anything_else),
                cmocka_unit_test(follow_ups_are_spread_over_calls),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
