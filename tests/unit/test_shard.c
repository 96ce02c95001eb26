/* A shard as its owner sees it: the lease, the calls, and what is lost with them. */
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

static void a_busy_shard_is_asked_for_again_when_its_lease_may_end(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        send_acquire(&g);
        g.acquire.busy_ms = 300;
        reply_acquire(&g, STORE_BUSY, false);
        assert_int_equal(next_call(&g), SHARD_CALL_NONE);
        assert_int_equal(shard_due_ms(&g.shard), g.now_ms + 301);
        g.now_ms += 301;
        send_acquire(&g);
        assert_int_equal(g.acquire.lease.epoch, 40);
        g.acquire.busy_ms = 60000; /* it may be released long before */
        reply_acquire(&g, STORE_BUSY, false);
        assert_true(shard_due_ms(&g.shard) <= g.now_ms + 1000);
        rig_close(&g);
}

static void a_stale_epoch_is_raised_above_the_stored_one(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        send_acquire(&g);
        g.acquire.stored_epoch = 90;
        reply_acquire(&g, STORE_STALE, false);
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
        assert_int_equal(g.advance.want_tasks, RIG_WINDOW);
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

static void a_full_window_claims_nothing(void **state)
{
        (void)state;
        struct rig g;
        char keys[RIG_WINDOW][8];
        rig_open(&g);
        own(&g);
        for (uint64_t i = 0; i < RIG_WINDOW; i++) {
                (void)snprintf(keys[i], sizeof(keys[i]), "k%u", (unsigned)i);
                hand(&g, i + 1, keys[i], "a");
        }
        claim(&g);
        g.shard.has_work = true;
        assert_int_equal(shard_next_call(&g.shard, false, g.now_ms), SHARD_CALL_NONE);
        run(&g, 1);
        send_advance(&g);
        assert_int_equal(g.advance.want_tasks, 0);
        reply_advance(&g, STORE_OK);
        g.shard.has_work = true;
        send_advance(&g);
        assert_int_equal(g.advance.want_tasks, 1);
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
        shard_leave(&g.shard);
        g.now_ms += 1000;
        send_advance(&g);
        assert_int_equal(g.advance.call, call);
        hand(&g, 2, "j", "a");
        reply_advance(&g, STORE_OK);
        send_release(&g);
        assert_int_equal(g.release.call, call + 1);
        rig_close(&g);
}

static struct outcome_draft *draft_with_follow_ups(uint32_t count)
{
        struct buffer submits = { 0 };
        struct error error = { "" };
        for (uint32_t i = 0; i < count; i++)
                ring_put_submit(&submits, &(struct ring_submit){ .handler = "a", .key = "k", .payload = "" });
        struct ring_reply reply = {
                .error = "", .submits = submits.data, .submits_size = submits.size, .submits_count = count
        };
        struct outcome_draft *draft = draft_done(&reply, &error);
        assert_non_null(draft);
        assert_int_equal(draft->outcome.follow_ups_count, count);
        buffer_free(&submits);
        return draft;
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
                shard_ended(&g.shard, start(&g, i + 1), draft_with_follow_ups(400), g.now_ms);
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

/* --- losing it -------------------------------------------------------------------------------------------------------
 */

static void a_fenced_owner_forgets_all_that_does_not_run(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        hand(&g, 1, "k", "a");
        hand(&g, 2, "k", "a");
        hand(&g, 3, "j", "a");
        claim(&g);
        struct claimed *running = start(&g, 1);
        run(&g, 3);
        send_advance(&g);
        reply_advance(&g, STORE_FENCED);
        assert_int_equal(g.shard.fenced, 1);
        assert_int_equal(g.shard.until_ms, 0);
        assert_int_equal(g.shard.window.count, 1);
        assert_null(next(&g));
        assert_int_equal(next_call(&g), SHARD_CALL_ACQUIRE);
        end_as(&g, running, STORE_DONE);
        assert_int_equal(g.shard.window.count, 0);
        send_acquire(&g);
        reply_acquire(&g, STORE_GRANTED, false);
        assert_int_equal(shard_next_call(&g.shard, false, g.now_ms), SHARD_CALL_NONE);
        rig_close(&g);
}

static void a_refused_renewal_is_a_lost_shard(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        hand(&g, 1, "k", "a");
        claim(&g);
        shard_renewed(&g.shard, &(struct store_renewal){ .verdict = STORE_FENCED }, g.now_ms);
        assert_int_equal(g.shard.fenced, 1);
        assert_null(next(&g));
        rig_close(&g);
}

/* The call under way hears it too; until then it must not be forgotten what it said. */
static void a_refused_renewal_waits_for_the_call_under_way(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        hand(&g, 1, "k", "a");
        claim(&g);
        run(&g, 1);
        send_advance(&g);
        shard_renewed(&g.shard, &(struct store_renewal){ .verdict = STORE_FENCED }, g.now_ms);
        assert_int_equal(g.shard.window.count, 1);
        reply_advance(&g, STORE_FENCED);
        assert_int_equal(g.shard.window.count, 0);
        rig_close(&g);
}

/* The shard was lost and is ours again while a call from before still runs. */
static void regain(struct rig *g, struct claimed **ret_running)
{
        rig_open(g);
        own(g);
        hand(g, 1, "k", "a");
        hand(g, 2, "k", "a");
        claim(g);
        *ret_running = start(g, 1);
        shard_renewed(&g->shard, &(struct store_renewal){ .verdict = STORE_FENCED }, g->now_ms);
        send_acquire(g);
        hand(g, 1, "k", "a");
        hand(g, 2, "k", "a");
        reply_acquire(g, STORE_GRANTED, false);
}

static void what_still_runs_is_not_started_again(void **state)
{
        (void)state;
        struct rig g;
        struct claimed *running;
        regain(&g, &running);
        assert_null(next(&g));
        rig_close(&g);
}

static void an_outcome_of_a_lost_lease_does_not_count(void **state)
{
        (void)state;
        struct rig g;
        struct claimed *running;
        regain(&g, &running);
        end_as(&g, running, STORE_DONE);
        assert_null(g.shard.ended);
        assert_null(next(&g)); /* not 2: the store still has 1 in flight */
        send_page(&g);
        assert_int_equal(g.page.after_seq, 0);
        hand(&g, 1, "k", "a");
        hand(&g, 2, "k", "a");
        reply_page(&g, STORE_OK, false);
        run(&g, 1);
        send_advance(&g);
        assert_said(&g, 1, STORE_DONE);
        rig_close(&g);
}

static void what_was_to_run_again_under_a_lost_lease_is_read_again(void **state)
{
        (void)state;
        struct rig g;
        struct claimed *running;
        regain(&g, &running);
        shard_again(&g.shard, running, g.now_ms);
        send_page(&g);
        hand(&g, 1, "k", "a");
        reply_page(&g, STORE_OK, false);
        start(&g, 1);
        rig_close(&g);
}

/* The page that is on its way may have begun behind it. */
static void a_stale_task_that_ends_while_pages_come_in_is_read_again(void **state)
{
        (void)state;
        struct rig g;
        struct claimed *running;
        regain(&g, &running);
        shard_renewed(&g.shard, &(struct store_renewal){ .verdict = STORE_FENCED }, g.now_ms);
        send_acquire(&g);
        hand(&g, 1, "k", "a");
        hand(&g, 2, "k", "a");
        reply_acquire(&g, STORE_GRANTED, true);
        send_page(&g);
        end_as(&g, running, STORE_DONE);
        hand(&g, 3, "j", "a");
        reply_page(&g, STORE_OK, false);
        assert_null(next(&g));
        send_page(&g);
        assert_int_equal(g.page.after_seq, 0);
        hand(&g, 1, "k", "a");
        hand(&g, 2, "k", "a");
        hand(&g, 3, "j", "a");
        reply_page(&g, STORE_OK, false);
        start(&g, 1);
        start(&g, 3);
        rig_close(&g);
}

/* … and a call whose answer was lost must not be mistaken for the next one. */
static void a_stale_task_does_not_hide_a_lost_answer(void **state)
{
        (void)state;
        struct rig g;
        struct claimed *running;
        regain(&g, &running);
        g.shard.has_work = true;
        send_advance(&g);
        uint64_t call = g.advance.call;
        shard_failed(&g.shard, g.now_ms);
        end_as(&g, running, STORE_DONE);
        g.now_ms += 1000;
        send_advance(&g);
        assert_int_equal(g.advance.call, call);
        reply_advance(&g, STORE_OK);
        send_page(&g);
        rig_close(&g);
}

static void a_lost_bar_is_lifted(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        hand(&g, 1, "k", "a");
        claim(&g);
        struct claimed *running = start(&g, 1);
        shard_obey(&g.shard, &(struct store_control){ .verb = CONTROL_HOLD, .key = SPAN_TEXT("k") }, g.now_ms);
        shard_renewed(&g.shard, &(struct store_renewal){ .verdict = STORE_FENCED }, g.now_ms);
        send_acquire(&g);
        hand(&g, 1, "k", "a");
        hand(&g, 2, "k", "a"); /* the store does not say that the key waits: somebody has seen to it */
        reply_acquire(&g, STORE_GRANTED, false);
        assert_null(g.shard.ended);
        end_as(&g, running, STORE_DONE);
        rig_close(&g);
}

static void a_fence_never_repeats(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        g.shard.starts = 17;
        shard_renewed(&g.shard, &(struct store_renewal){ .verdict = STORE_FENCED }, g.now_ms);
        own(&g);
        assert_int_equal(g.shard.lease.epoch, 40);
        assert_true(g.shard.starts >= 17);
        rig_close(&g);
}

static void nothing_starts_past_the_local_deadline(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        send_acquire(&g);
        uint64_t sent_ms = g.now_ms;
        hand(&g, 1, "k", "a");
        g.now_ms += 3000; /* a slow answer: the lease counts from when it was asked for */
        reply_acquire(&g, STORE_GRANTED, false);
        assert_int_equal(g.shard.until_ms, sent_ms + RIG_TTL_MS - 1000);
        g.now_ms = g.shard.until_ms;
        assert_null(next(&g));
        shard_renewed(&g.shard, &(struct store_renewal){ .left_ms = RIG_TTL_MS }, g.now_ms);
        assert_int_equal(g.shard.until_ms, g.now_ms + RIG_TTL_MS - 1000);
        start(&g, 1);
        rig_close(&g);
}

static void a_repeated_call_renews_from_when_it_was_first_sent(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        uint64_t sent_ms = g.now_ms;
        g.shard.has_work = true;
        send_advance(&g);
        shard_failed(&g.shard, g.now_ms);
        g.now_ms += 2000;
        send_advance(&g);
        reply_advance(&g, STORE_OK);
        assert_int_equal(g.shard.until_ms, sent_ms + RIG_TTL_MS - 1000);
        rig_close(&g);
}

/* --- leaving ---------------------------------------------------------------------------------------------------------
 */

static void a_shard_is_released_once_all_is_told(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        hand(&g, 1, "k", "a");
        hand(&g, 2, "j", "a");
        claim(&g);
        struct claimed *c = start(&g, 1);
        shard_leave(&g.shard);
        assert_null(next(&g));
        g.shard.has_work = true;
        assert_int_equal(shard_next_call(&g.shard, false, g.now_ms), SHARD_CALL_NONE);
        end_as(&g, c, STORE_DONE);
        assert_false(shard_is_quiet(&g.shard));
        send_advance(&g);
        assert_int_equal(g.advance.want_tasks, 0);
        reply_advance(&g, STORE_OK);
        send_release(&g);
        assert_int_equal(g.release.call, g.advance.call + 1);
        g.release.verdict = STORE_OK;
        shard_released(&g.shard);
        assert_int_equal(g.shard.state, SHARD_AWAY);
        assert_true(shard_is_quiet(&g.shard));
        rig_close(&g);
}

static void what_was_released_is_not_run_on_coming_back(void **state)
{
        (void)state;
        struct rig g;
        uint8_t nonce[STORE_NONCE_SIZE] = { 1 };
        rig_open(&g);
        own(&g);
        hand(&g, 1, "k", "a");
        claim(&g);
        shard_leave(&g.shard);
        send_release(&g);
        shard_released(&g.shard);
        shard_seek(&g.shard, nonce, 60);
        send_acquire(&g);
        reply_acquire(&g, STORE_GRANTED, false); /* another has done it meanwhile */
        assert_null(next(&g));
        rig_close(&g);
}

static void leaving_while_it_is_granted_releases_it(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        send_acquire(&g);
        shard_leave(&g.shard);
        hand(&g, 1, "k", "a");
        reply_acquire(&g, STORE_GRANTED, false);
        assert_null(next(&g));
        send_release(&g);
        assert_int_equal(g.release.call, 101);
        shard_released(&g.shard);
        assert_int_equal(g.shard.state, SHARD_AWAY);
        rig_close(&g);
}

static void leaving_a_busy_shard_gives_up(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        send_acquire(&g);
        shard_leave(&g.shard);
        g.acquire.busy_ms = 10;
        reply_acquire(&g, STORE_BUSY, false);
        g.now_ms += 5000;
        assert_int_equal(next_call(&g), SHARD_CALL_NONE);
        assert_int_equal(g.shard.state, SHARD_AWAY);
        rig_close(&g);
}

/* No answer: it may have been granted. */
static void leaving_with_an_unanswered_acquire_asks_once_more(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        send_acquire(&g);
        shard_leave(&g.shard);
        shard_failed(&g.shard, g.now_ms);
        g.now_ms += 5000;
        send_acquire(&g);
        reply_acquire(&g, STORE_GRANTED, false);
        send_release(&g);
        rig_close(&g);
}

static void a_shard_lost_while_leaving_is_left(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        hand(&g, 1, "k", "a");
        claim(&g);
        struct claimed *c = start(&g, 1);
        shard_leave(&g.shard);
        shard_renewed(&g.shard, &(struct store_renewal){ .verdict = STORE_FENCED }, g.now_ms);
        assert_int_equal(g.shard.state, SHARD_AWAY);
        end_as(&g, c, STORE_DONE);
        assert_int_equal(next_call(&g), SHARD_CALL_NONE);
        assert_true(shard_is_quiet(&g.shard));
        rig_close(&g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_granted_shard_starts_with_what_was_in_flight),
                cmocka_unit_test(a_busy_shard_is_asked_for_again_when_its_lease_may_end),
                cmocka_unit_test(a_stale_epoch_is_raised_above_the_stored_one),
                cmocka_unit_test(nothing_starts_before_the_whole_table_was_read),
                cmocka_unit_test(a_key_that_waits_in_the_store_is_given_back),
                cmocka_unit_test(calls_are_numbered_from_the_grant),
                cmocka_unit_test(an_idle_shard_asks_nothing),
                cmocka_unit_test(outcomes_gather_while_there_is_other_work),
                cmocka_unit_test(an_outcome_that_a_task_waits_for_is_told_at_once),
                cmocka_unit_test(a_full_window_claims_nothing),
                cmocka_unit_test(a_call_without_an_answer_is_repeated_as_it_was),
                cmocka_unit_test(repeats_slow_down),
                cmocka_unit_test(an_empty_call_without_an_answer_is_repeated_before_anything_else),
                cmocka_unit_test(follow_ups_are_spread_over_calls),
                cmocka_unit_test(a_fenced_owner_forgets_all_that_does_not_run),
                cmocka_unit_test(a_refused_renewal_is_a_lost_shard),
                cmocka_unit_test(a_refused_renewal_waits_for_the_call_under_way),
                cmocka_unit_test(what_still_runs_is_not_started_again),
                cmocka_unit_test(an_outcome_of_a_lost_lease_does_not_count),
                cmocka_unit_test(what_was_to_run_again_under_a_lost_lease_is_read_again),
                cmocka_unit_test(a_stale_task_that_ends_while_pages_come_in_is_read_again),
                cmocka_unit_test(a_stale_task_does_not_hide_a_lost_answer),
                cmocka_unit_test(a_lost_bar_is_lifted),
                cmocka_unit_test(a_fence_never_repeats),
                cmocka_unit_test(nothing_starts_past_the_local_deadline),
                cmocka_unit_test(a_repeated_call_renews_from_when_it_was_first_sent),
                cmocka_unit_test(a_shard_is_released_once_all_is_told),
                cmocka_unit_test(what_was_released_is_not_run_on_coming_back),
                cmocka_unit_test(leaving_while_it_is_granted_releases_it),
                cmocka_unit_test(leaving_a_busy_shard_gives_up),
                cmocka_unit_test(leaving_with_an_unanswered_acquire_asks_once_more),
                cmocka_unit_test(a_shard_lost_while_leaving_is_left),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
