/* What a shard does when its lease is lost, runs out, or is given back. */
#include "shard_rig.h"

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

/* Asked for and not heard of: the store may have granted it.  Not so after any answer. */
static void a_shard_that_was_asked_for_may_be_ours(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        assert_false(shard_may_be_held(&g.shard));
        send_acquire(&g);
        assert_true(shard_may_be_held(&g.shard));
        shard_failed(&g.shard, g.now_ms); /* no answer, and so not known */
        assert_true(shard_may_be_held(&g.shard));
        g.now_ms += 10000;
        send_acquire(&g);
        reply_acquire(&g, STORE_BUSY, false);
        assert_false(shard_may_be_held(&g.shard));
        g.now_ms += 10000;
        send_acquire(&g);
        reply_acquire(&g, STORE_GRANTED, false);
        assert_false(shard_may_be_held(&g.shard));
        assert_true(shard_is_held(&g.shard));
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
        shard_renewed(&g.shard, &(struct store_renewal){ .verdict = STORE_FENCED }, g.now_ms, g.now_ms);
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
        shard_renewed(&g.shard, &(struct store_renewal){ .verdict = STORE_FENCED }, g.now_ms, g.now_ms);
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
        shard_renewed(&g->shard, &(struct store_renewal){ .verdict = STORE_FENCED }, g->now_ms, g->now_ms);
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
        shard_renewed(&g.shard, &(struct store_renewal){ .verdict = STORE_FENCED }, g.now_ms, g.now_ms);
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

/* A call whose answer was lost must not be mistaken for the next one. */
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
        shard_renewed(&g.shard, &(struct store_renewal){ .verdict = STORE_FENCED }, g.now_ms, g.now_ms);
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
        shard_renewed(&g.shard, &(struct store_renewal){ .verdict = STORE_FENCED }, g.now_ms, g.now_ms);
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
        shard_renewed(&g.shard, &(struct store_renewal){ .left_ms = RIG_TTL_MS }, g.now_ms, g.now_ms);
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
        shard_leave(&g.shard, g.now_ms);
        assert_null(next(&g));
        g.shard.has_work = true;
        assert_int_equal(shard_next_call(&g.shard, false, g.now_ms), SHARD_CALL_NONE);
        end_as(&g, c, STORE_DONE);
        assert_false(shard_is_quiet(&g.shard));
        send_advance(&g);
        assert_int_equal(g.advance.want[LANE_HIGH], 0);
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
        shard_leave(&g.shard, g.now_ms);
        send_release(&g);
        shard_released(&g.shard);
        shard_assign(&g.shard, nonce, 60, false);
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
        shard_leave(&g.shard, g.now_ms);
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
        shard_leave(&g.shard, g.now_ms);
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
        shard_leave(&g.shard, g.now_ms);
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
        shard_leave(&g.shard, g.now_ms);
        shard_renewed(&g.shard, &(struct store_renewal){ .verdict = STORE_FENCED }, g.now_ms, g.now_ms);
        assert_int_equal(g.shard.state, SHARD_AWAY);
        end_as(&g, c, STORE_DONE);
        assert_int_equal(next_call(&g), SHARD_CALL_NONE);
        assert_true(shard_is_quiet(&g.shard));
        rig_close(&g);
}

/* Whoever seeks under no nonce at all has the same as everybody else who does. */
static void a_lost_shard_is_sought_under_our_own_nonce(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        struct store_lease held = g.shard.lease;
        shard_renewed(&g.shard, &(struct store_renewal){ .verdict = STORE_FENCED }, g.now_ms, g.now_ms);
        send_acquire(&g);
        assert_memory_equal(g.acquire.lease.nonce, held.nonce, STORE_NONCE_SIZE);
        assert_int_equal(g.acquire.lease.epoch, held.epoch);
        rig_close(&g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_fenced_owner_forgets_all_that_does_not_run),
                cmocka_unit_test(a_shard_that_was_asked_for_may_be_ours),
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
                cmocka_unit_test(a_lost_shard_is_sought_under_our_own_nonce),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
