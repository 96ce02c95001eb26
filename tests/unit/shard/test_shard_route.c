/* Handlers come and go while tasks wait: each task waits for who serves it now, and says so if nobody does. */
#include "shard_rig.h"

/* From now on that pool serves a; WINDOW_NO_POOL: none does, WINDOW_SHUT_POOL: pool 0, which is paused. */
static void reroute(struct rig *g, uint32_t a)
{
        rig_serve(&g->routes, 0, a == WINDOW_SHUT_POOL ? "a" : NULL);
        g->routes.states[0] = a == WINDOW_SHUT_POOL ? ROUTE_SHUT : ROUTE_OPEN;
        if (a < WINDOW_SHUT_POOL)
                rig_serve(&g->routes, a, "a");
        shard_reroute(&g->shard, g->now_ms);
}

static void there_can_be_more_pools_and_nobody_loses_his_place(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        static const char *const keys[] = { "s", "t", "u", "v", "w", "x", "y", "z" };
        for (uint64_t seq = 1; seq <= 8; seq++)
                hand(&g, seq, keys[seq - 1], seq % 2 ? "a" : "b");
        claim(&g);
        window_set_pools(&g.shard.window, 40);
        assert_false(window_has_next(&g.shard.window, 39));
        for (uint64_t seq = 1; seq <= 8; seq++) {
                const struct claimed *c = next_of(&g.shard, seq % 2 ? 0 : 1, g.now_ms);
                assert_non_null(c);
                assert_int_equal(c->seq, seq);
        }
        window_set_pools(&g.shard.window, 2); /* never fewer */
        assert_int_equal(g.shard.window.pools, 40);
        rig_close(&g);
}

static void what_waits_goes_to_who_serves_it_now(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        hand(&g, 1, "k", "a");
        hand(&g, 2, "k", "a");
        hand(&g, 3, "j", "b");
        claim(&g);
        struct claimed *running = start(&g, 1);
        window_set_pools(&g.shard.window, 3);
        assert_int_equal(routes_add_pool(&g.routes), 2);
        reroute(&g, 2);
        assert_int_equal(running->pool, 0); /* it ends where it runs */
        assert_null(next_of(&g.shard, 2, g.now_ms));
        end_as(&g, running, STORE_DONE);
        send_advance(&g);
        reply_advance(&g, STORE_OK);
        assert_int_equal(next_of(&g.shard, 2, g.now_ms)->seq, 2);
        assert_int_equal(next_of(&g.shard, 1, g.now_ms)->seq, 3);
        rig_close(&g);
}

static void what_nobody_serves_any_more_waits_in_the_store_and_says_why(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        hand(&g, 1, "k", "a");
        hand(&g, 2, "k", "b");
        hand(&g, 3, "k", "a");
        hand(&g, 4, "j", "b");
        claim(&g);
        reroute(&g, WINDOW_NO_POOL);
        send_advance(&g);
        /* Nothing passes what goes back. */
        for (uint64_t seq = 1; seq <= 3; seq++)
                assert_said(&g, seq, STORE_DIVERT);
        assert_null(said(&g, 4));
        const struct store_outcome *o = said(&g, 1);
        assert_true(span_is(o->reason, SPAN_TEXT("no handler a on this host")));
        assert_int_equal(o->error.size, 0);
        assert_true(span_is(o->name, SPAN_TEXT("handler:a")));
        rig_close(&g);
}

static void a_paused_handler_is_not_called_missing(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        hand(&g, 1, "k", "a");
        claim(&g);
        reroute(&g, WINDOW_SHUT_POOL);
        send_advance(&g);
        assert_true(span_is(said(&g, 1)->reason, SPAN_TEXT("its handler is paused or down")));
        rig_close(&g);
}

/* The store has the mark of a suspect that is to run alone: it is taken back before anything else is done with it. */
static void a_marked_suspect_gives_its_mark_back_first(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        hand(&g, 1, "k", "a")->note.is_suspect = true;
        claim(&g);
        assert_null(next(&g)); /* its start is to be recorded */
        send_advance(&g);
        assert_said(&g, 1, STORE_START);
        reply_advance(&g, STORE_OK);
        assert_int_equal(window_marks(&g.shard.window, 0), 1);
        reroute(&g, WINDOW_NO_POOL);
        send_advance(&g);
        assert_said(&g, 1, STORE_INTERRUPTED);
        reply_advance(&g, STORE_OK);
        assert_int_equal(window_marks(&g.shard.window, 0), 0);
        reroute(&g, WINDOW_NO_POOL);
        send_advance(&g);
        assert_said(&g, 1, STORE_DIVERT);
        rig_close(&g);
}

/* It is not dead, and neither is what stands behind it: a newer host will run them. */
static void what_needs_a_newer_quiver_waits_in_the_store_and_says_so(void **state)
{
        (void)state;
        struct rig g;
        rig_open(&g);
        own(&g);
        hand(&g, 1, "k", "a")->envelope.others = SPAN_TEXT("prio:1\n!gate:7\n");
        hand(&g, 2, "k", "a");
        hand(&g, 3, "j", "a")->envelope.others = SPAN_TEXT("prio:1\n");
        claim(&g);
        assert_int_equal(start(&g, 3)->seq, 3);
        reroute(&g, 1); /* that its handler is served again changes nothing */
        send_advance(&g);
        assert_said(&g, 1, STORE_DIVERT);
        assert_said(&g, 2, STORE_DIVERT);
        assert_true(span_is(said(&g, 1)->reason, SPAN_TEXT("needs a newer Quiver: this host does not know !gate")));
        rig_close(&g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(there_can_be_more_pools_and_nobody_loses_his_place),
                cmocka_unit_test(what_waits_goes_to_who_serves_it_now),
                cmocka_unit_test(what_nobody_serves_any_more_waits_in_the_store_and_says_why),
                cmocka_unit_test(a_paused_handler_is_not_called_missing),
                cmocka_unit_test(what_needs_a_newer_quiver_waits_in_the_store_and_says_so),
                cmocka_unit_test(a_marked_suspect_gives_its_mark_back_first),
        };
        return cmocka_run_group_tests_name("shard_route", tests, NULL, NULL);
}
