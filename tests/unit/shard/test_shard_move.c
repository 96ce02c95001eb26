/* What a shard does when it is to be another's, or ours again. */
#include "shard_rig.h"

static const uint8_t us[STORE_NONCE_SIZE] = { 1, 2, 3 };

/* Owned, with tasks 1 (key k) and 2 (key j) in the window, 1 running. */
static struct claimed *serve(struct rig *g)
{
        rig_open(g);
        own(g);
        hand(g, 1, "k", "a");
        hand(g, 2, "j", "a");
        claim(g);
        return start(g, 1);
}

static void a_planned_move_waits_for_the_call_that_runs(void **state)
{
        (void)state;
        struct rig g;
        struct claimed *c = serve(&g);
        shard_unassign(&g.shard, g.now_ms);
        assert_int_equal(g.shard.state, SHARD_LEAVING);
        assert_true(shard_is_move_pending(&g.shard));
        assert_null(next(&g));
        end_as(&g, c, STORE_DONE);
        send_advance(&g);
        reply_advance(&g, STORE_OK);
        send_release(&g);
        shard_released(&g.shard);
        assert_int_equal(g.shard.state, SHARD_AWAY);
        assert_false(shard_is_move_pending(&g.shard));
        rig_close(&g);
}

static void a_planned_move_never_interrupts_a_long_call(void **state)
{
        (void)state;
        struct rig g;
        struct claimed *c = serve(&g);
        shard_unassign(&g.shard, g.now_ms);
        assert_int_equal(shard_due_ms(&g.shard), g.now_ms + RIG_DRAIN_MS);
        g.now_ms += RIG_DRAIN_MS;
        shard_renewed(&g.shard, &(struct store_renewal){ .left_ms = RIG_TTL_MS }, g.now_ms, g.now_ms);
        shard_tick(&g.shard, g.now_ms);
        /* It goes on serving until the long call has ended. */
        assert_int_equal(g.shard.state, SHARD_OWNED);
        assert_true(shard_is_move_pending(&g.shard));
        struct claimed *other = start(&g, 2);
        end_as(&g, other, STORE_DONE);
        assert_int_equal(g.shard.state, SHARD_OWNED);
        end_as(&g, c, STORE_DONE);
        assert_int_equal(g.shard.state, SHARD_LEAVING);
        rig_close(&g);
}

static void a_shard_with_a_long_call_does_not_even_pause(void **state)
{
        (void)state;
        struct rig g;
        serve(&g);
        g.now_ms += RIG_DRAIN_MS + 1;
        shard_renewed(&g.shard, &(struct store_renewal){ .left_ms = RIG_TTL_MS }, g.now_ms, g.now_ms);
        shard_unassign(&g.shard, g.now_ms);
        assert_int_equal(g.shard.state, SHARD_OWNED);
        start(&g, 2);
        rig_close(&g);
}

static void a_move_that_is_taken_back_is_forgotten(void **state)
{
        (void)state;
        struct rig g;
        serve(&g);
        shard_unassign(&g.shard, g.now_ms);
        shard_assign(&g.shard, us, 70, false);
        assert_int_equal(g.shard.state, SHARD_OWNED);
        assert_false(shard_is_move_pending(&g.shard));
        start(&g, 2);
        rig_close(&g);
}

/* The release may have been done, or may still be. */
static void a_shard_given_back_while_it_is_released_is_asked_for_again(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        shard_unassign(&g.shard, g.now_ms);
        send_release(&g);
        shard_assign(&g.shard, us, 70, false);
        shard_failed(&g.shard, g.now_ms);
        g.now_ms += 1000;
        send_release(&g);
        shard_released(&g.shard);
        send_acquire(&g);
        assert_int_equal(g.acquire.lease.epoch, 70);
        rig_close(&g);
}

static void what_was_not_read_before_leaving_is_read_on_staying(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        send_acquire(&g);
        hand(&g, 1, "k", "a");
        reply_acquire(&g, STORE_GRANTED, true);
        shard_unassign(&g.shard, g.now_ms);
        shard_assign(&g.shard, us, 70, false);
        assert_null(next(&g));
        send_page(&g);
        assert_int_equal(g.page.after_seq, 0);
        rig_close(&g);
}

static void a_shard_that_is_wanted_is_left(void **state)
{
        (void)state;
        struct rig g;
        struct claimed *c = serve(&g);
        shard_renewed(&g.shard, &(struct store_renewal){ .left_ms = RIG_TTL_MS, .wanted = STORE_WANTED_PATIENT },
                g.now_ms, g.now_ms);
        assert_int_equal(g.shard.state, SHARD_LEAVING);
        end_as(&g, c, STORE_DONE);
        send_advance(&g);
        g.advance.wanted = STORE_WANTED_PATIENT;
        reply_advance(&g, STORE_OK);
        send_release(&g);
        shard_released(&g.shard);
        /* The shard is not sought again until coordination says so. */
        assert_int_equal(next_call(&g), SHARD_CALL_NONE);
        rig_close(&g);
}

static void a_firm_want_has_no_patience_with_long_calls(void **state)
{
        (void)state;
        struct rig g;
        serve(&g);
        g.now_ms += RIG_DRAIN_MS + 1;
        struct store_renewal renewal = { .left_ms = RIG_TTL_MS, .wanted = STORE_WANTED_FIRM };
        shard_renewed(&g.shard, &renewal, g.now_ms, g.now_ms);
        assert_int_equal(g.shard.state, SHARD_LEAVING);
        assert_false(g.shard.is_refused);
        g.now_ms += RIG_DRAIN_MS + 1;
        shard_tick(&g.shard, g.now_ms);
        assert_int_equal(g.shard.state, SHARD_LEAVING);
        renewal.is_refused = true;
        shard_renewed(&g.shard, &renewal, g.now_ms, g.now_ms);
        assert_true(g.shard.is_refused);
        rig_close(&g);
}

/* Its lease was not renewed, it was stopped; then the want was forgotten, and it runs again. */
static void what_was_told_to_stop_runs_again_as_any_other(void **state)
{
        (void)state;
        struct rig g;
        struct claimed *c = serve(&g);
        c->is_told_to_stop = true;
        end_as(&g, c, STORE_INTERRUPTED);
        send_advance(&g);
        reply_advance(&g, STORE_OK);
        start(&g, 2); /* whose turn it is */
        assert_false(start(&g, 1)->is_told_to_stop);
        rig_close(&g);
}

/* Its last owner is gone; but who has it now?  The store says so, and only then can it be known to be no member. */
static void a_firm_assignment_asks_firmly_once_it_knows_whom(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        shard_assign(&g.shard, us, 41, true);
        send_acquire(&g);
        assert_false(g.acquire.is_firm);
        memset(g.acquire.holder, 7, STORE_NONCE_SIZE);
        g.acquire.busy_ms = 1000;
        reply_acquire(&g, STORE_BUSY, false);
        assert_memory_equal(g.shard.holder, g.acquire.holder, STORE_NONCE_SIZE);
        g.now_ms += 1000;
        send_acquire(&g);
        assert_true(g.acquire.is_firm);
        assert_int_equal(g.acquire.lease.epoch, 41);
        assert_int_equal(g.acquire.drain_ms, RIG_DRAIN_MS);
        rig_close(&g);
}

/* A new epoch came while the old one was asked for. */
static void a_grant_counts_under_the_epoch_that_was_asked_for(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        send_acquire(&g);
        shard_assign(&g.shard, us, 55, false);
        reply_acquire(&g, STORE_GRANTED, false);
        assert_int_equal(g.shard.state, SHARD_OWNED);
        assert_int_equal(g.shard.lease.epoch, 40);
        rig_close(&g);
}

static void a_stale_answer_to_an_older_epoch_is_no_news(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        send_acquire(&g);
        shard_assign(&g.shard, us, 95, false);
        g.acquire.stored_epoch = 90;
        reply_acquire(&g, STORE_STALE, false);
        assert_int_equal(g.shard.stale_epoch, 0);
        send_acquire(&g);
        assert_int_equal(g.acquire.lease.epoch, 95);
        rig_close(&g);
}

/* It was held all along, under an older epoch than the one it was given since; another came in between. */
static void a_lost_shard_is_sought_under_the_newest_epoch(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        shard_assign(&g.shard, us, 80, false);
        shard_renewed(&g.shard, &(struct store_renewal){ .verdict = STORE_FENCED }, g.now_ms, g.now_ms);
        send_acquire(&g);
        assert_int_equal(g.acquire.lease.epoch, 80);
        rig_close(&g);
}

/* Handler a's recent calls were short. */
static void make_short(struct rig *g, uint32_t pool)
{
        for (unsigned i = 0; i < 32; i++)
                routes_call_ended(&g->routes, pool, 1);
}

/* As serve(), then asked for by another.  Handler a's calls are short; that the one that runs is not, nobody knows. */
static struct claimed *serve_mixed(struct rig *g)
{
        struct claimed *c = serve(g);
        make_short(g, 0);
        shard_unassign(&g->shard, g->now_ms);
        return c;
}

static void other_keys_go_on_while_a_moving_shard_waits_for_a_long_call(void **state)
{
        (void)state;
        struct rig g;
        struct claimed *c = serve_mixed(&g);
        assert_int_equal(g.shard.state, SHARD_OWNED);
        assert_true(shard_is_move_pending(&g.shard));
        assert_true(g.shard.must_recall);
        g.now_ms++;
        hand(&g, 3, "i", "a");
        run(&g, 2);
        claim(&g);
        run(&g, 3);
        /* An end of what started since then is no reason to leave. */
        assert_int_equal(g.shard.state, SHARD_OWNED);
        end_as(&g, c, STORE_DONE);
        assert_int_equal(g.shard.state, SHARD_LEAVING);
        rig_close(&g);
}

static void a_moving_shard_does_not_wait_for_calls_that_started_meanwhile(void **state)
{
        (void)state;
        struct rig g;
        struct claimed *c = serve_mixed(&g);
        g.now_ms++;
        struct claimed *other = start(&g, 2);
        g.now_ms += ROUTES_MOMENT_MS + 1;
        end_as(&g, c, STORE_DONE);
        assert_int_equal(g.shard.state, SHARD_LEAVING);
        assert_null(next(&g));
        end_as(&g, other, STORE_DONE);
        send_advance(&g);
        reply_advance(&g, STORE_OK);
        send_release(&g);
        shard_released(&g.shard);
        assert_int_equal(g.shard.state, SHARD_AWAY);
        rig_close(&g);
}

static void a_moving_shard_starts_no_task_whose_handler_is_slow(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        make_short(&g, 1);
        hand(&g, 1, "k", "a");
        hand(&g, 2, "j", "a");
        hand(&g, 3, "i", "b");
        claim(&g);
        struct claimed *c = start(&g, 1);
        shard_unassign(&g.shard, g.now_ms);
        assert_null(next(&g));
        assert_non_null(next_of(&g.shard, 1, g.now_ms + 1));
        end_as(&g, c, STORE_DONE);
        assert_int_equal(g.shard.state, SHARD_LEAVING);
        rig_close(&g);
}

static void a_moving_shard_where_nothing_runs_leaves_at_once(void **state)
{
        (void)state;
        struct rig g;
        struct claimed *c = serve(&g);
        make_short(&g, 0);
        end_as(&g, c, STORE_DONE);
        shard_unassign(&g.shard, g.now_ms);
        assert_int_equal(g.shard.state, SHARD_LEAVING);
        rig_close(&g);
}

/* The call has run past the drain time: the move is pending, and handlers of whatever pace serve on. */
static void a_moving_shard_waits_no_longer_than_the_drain_time(void **state)
{
        (void)state;
        struct rig g;
        struct claimed *c = serve_mixed(&g);
        uint64_t due_ms = g.now_ms + RIG_DRAIN_MS;
        g.now_ms += 10;
        shard_unassign(&g.shard, g.now_ms); /* once more: that gives it no more time */
        assert_int_equal(shard_due_ms(&g.shard), due_ms);
        routes_forget_calls(&g.routes, 0);
        g.now_ms = due_ms - 1;
        shard_tick(&g.shard, g.now_ms);
        assert_null(next(&g));
        g.now_ms = due_ms;
        shard_tick(&g.shard, g.now_ms);
        shard_renewed(&g.shard, &(struct store_renewal){ .left_ms = RIG_TTL_MS }, g.now_ms, g.now_ms);
        assert_true(shard_is_move_pending(&g.shard));
        run(&g, 2);
        assert_int_equal(g.shard.state, SHARD_OWNED);
        end_as(&g, c, STORE_DONE);
        assert_int_equal(g.shard.state, SHARD_LEAVING);
        rig_close(&g);
}

static void who_leaves_starts_nothing_more_whatever_is_short(void **state)
{
        (void)state;
        struct rig g;
        serve_mixed(&g);
        shard_leave(&g.shard, g.now_ms);
        assert_int_equal(g.shard.state, SHARD_LEAVING);
        assert_null(next(&g));
        g.now_ms += RIG_DRAIN_MS;
        shard_tick(&g.shard, g.now_ms);
        assert_int_equal(g.shard.state, SHARD_LEAVING);
        rig_close(&g);
}

static void a_firm_want_ends_the_wait_for_a_long_call(void **state)
{
        (void)state;
        struct rig g;
        serve_mixed(&g);
        struct store_renewal renewal = { .left_ms = RIG_TTL_MS, .wanted = STORE_WANTED_FIRM };
        shard_renewed(&g.shard, &renewal, g.now_ms, g.now_ms);
        assert_int_equal(g.shard.state, SHARD_LEAVING);
        assert_null(next(&g));
        rig_close(&g);
}

static void a_move_taken_back_while_it_waits_leaves_nothing_behind(void **state)
{
        (void)state;
        struct rig g;
        struct claimed *c = serve_mixed(&g);
        routes_forget_calls(&g.routes, 0);
        assert_null(next(&g));
        shard_assign(&g.shard, us, 70, false);
        assert_false(shard_is_move_pending(&g.shard));
        start(&g, 2);
        end_as(&g, c, STORE_DONE);
        assert_int_equal(g.shard.state, SHARD_OWNED);
        rig_close(&g);
}

/* One call in sixteen may be long; of a pool that has run little nothing is known. */
static void a_handler_is_short_if_hardly_any_call_was_long(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        assert_false(routes_has_short(&g.routes));
        for (unsigned i = 0; i < 29; i++)
                routes_call_ended(&g.routes, 1, ROUTES_MOMENT_MS);
        assert_false(routes_is_short(&g.routes, 1));
        make_short(&g, 1);
        routes_call_ended(&g.routes, 1, ROUTES_MOMENT_MS + 1);
        routes_call_ended(&g.routes, 1, ROUTES_MOMENT_MS + 1);
        assert_true(routes_is_short(&g.routes, 1));
        assert_true(routes_has_short(&g.routes));
        assert_false(routes_is_short(&g.routes, 0));
        assert_false(routes_is_short(&g.routes, WINDOW_NO_POOL));
        routes_call_ended(&g.routes, 1, ROUTES_MOMENT_MS + 1);
        assert_false(routes_is_short(&g.routes, 1));
        rig_close(&g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_planned_move_waits_for_the_call_that_runs),
                cmocka_unit_test(a_planned_move_never_interrupts_a_long_call),
                cmocka_unit_test(a_shard_with_a_long_call_does_not_even_pause),
                cmocka_unit_test(a_move_that_is_taken_back_is_forgotten),
                cmocka_unit_test(a_shard_given_back_while_it_is_released_is_asked_for_again),
                cmocka_unit_test(what_was_not_read_before_leaving_is_read_on_staying),
                cmocka_unit_test(a_shard_that_is_wanted_is_left),
                cmocka_unit_test(a_firm_want_has_no_patience_with_long_calls),
                cmocka_unit_test(what_was_told_to_stop_runs_again_as_any_other),
                cmocka_unit_test(a_firm_assignment_asks_firmly_once_it_knows_whom),
                cmocka_unit_test(a_grant_counts_under_the_epoch_that_was_asked_for),
                cmocka_unit_test(a_stale_answer_to_an_older_epoch_is_no_news),
                cmocka_unit_test(a_lost_shard_is_sought_under_the_newest_epoch),
                cmocka_unit_test(other_keys_go_on_while_a_moving_shard_waits_for_a_long_call),
                cmocka_unit_test(a_moving_shard_does_not_wait_for_calls_that_started_meanwhile),
                cmocka_unit_test(a_moving_shard_starts_no_task_whose_handler_is_slow),
                cmocka_unit_test(a_moving_shard_where_nothing_runs_leaves_at_once),
                cmocka_unit_test(a_moving_shard_waits_no_longer_than_the_drain_time),
                cmocka_unit_test(who_leaves_starts_nothing_more_whatever_is_short),
                cmocka_unit_test(a_firm_want_ends_the_wait_for_a_long_call),
                cmocka_unit_test(a_move_taken_back_while_it_waits_leaves_nothing_behind),
                cmocka_unit_test(a_handler_is_short_if_hardly_any_call_was_long),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
