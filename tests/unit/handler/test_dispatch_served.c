/* Which tasks get a seat at all: nothing for a handler that is paused or down, a name that nobody serves waits, and one
 * whose handler has changed goes where it is served. */
#include "dispatch_rig.h"

static void a_paused_handler_starts_nothing_and_its_tasks_wait_in_the_store(void **state)
{
        (void)state;
        struct hall *hall = hall_open();
        uint32_t from[8];
        give_many(hall, 0, 2, "a");
        give_many(hall, 0, 1, "b");
        give_many(hall, 1, 1, "a");
        struct claimed *running = start(&hall->rigs[1], 4);
        dispatch_pause(&hall->dispatch, A, true, hall->rigs[0].now_ms);
        dispatch_told(&hall->dispatch, 0, 1);
        shard_again(&hall->rigs[1].shard, running, hall->rigs[0].now_ms); /* it comes back, and waits */
        dispatch_told(&hall->dispatch, 1, 1);
        assert_int_equal(turn_of(hall, A, 8, from), 0);
        assert_int_equal(turn_of(hall, B, 8, from), 1);
        (void)give(hall, 0, "a"); /* the call that brings it tells of the first two */
        send_advance(&hall->rigs[0]);
        assert_said(&hall->rigs[0], 1, STORE_DIVERT);
        assert_said(&hall->rigs[0], 2, STORE_DIVERT);
        reply_advance(&hall->rigs[0], STORE_OK);
        send_advance(&hall->rigs[0]);
        assert_said(&hall->rigs[0], 5, STORE_DIVERT);
        reply_advance(&hall->rigs[0], STORE_OK);
        dispatch_pause(&hall->dispatch, A, false, hall->rigs[0].now_ms);
        give_many(hall, 0, 1, "a");
        assert_int_equal(turn_of(hall, A, 8, from), 2);
        hall_close(hall);
}

static void what_nobody_serves_waits_in_the_store_and_is_noted_once(void **state)
{
        (void)state;
        struct hall *hall = hall_open();
        const struct routes *routes = &hall->dispatch.routes;
        uint32_t from[8];
        give_many(hall, 0, 3, "x");
        give_many(hall, 1, 1, "x");
        assert_int_equal(turn_of(hall, A, 8, from) + turn_of(hall, B, 8, from), 0);
        assert_int_equal(routes->unserved_count, 1);
        assert_string_equal(routes->unserved[0], "x");
        send_advance(&hall->rigs[0]);
        for (uint64_t seq = 1; seq <= 3; seq++)
                assert_said(&hall->rigs[0], seq, STORE_DIVERT);
        reply_advance(&hall->rigs[0], STORE_OK);
        serve(hall, B, "x"); /* a reload */
        assert_int_equal(routes->unserved_count, 0);
        struct store_wake wake;
        assert_int_equal(next_call(&hall->rigs[0]), SHARD_CALL_WAKE);
        shard_fill_wake(&hall->rigs[0].shard, &wake, hall->rigs[0].now_ms);
        wake.verdict = STORE_OK;
        shard_woken(&hall->rigs[0].shard, &wake);
        give_many(hall, 0, 1, "x");
        assert_int_equal(turn_of(hall, B, 8, from), 1);
        hall_close(hall);
}

static void a_pool_that_is_down_keeps_half_of_a_window(void **state)
{
        (void)state;
        struct hall *hall = hall_open();
        const struct shard *s = &hall->rigs[0].shard;
        uint32_t from;
        assert_int_equal(turn(hall, A, DISPATCH_DOWN, 0, &from), 0);
        give_many(hall, 0, RIG_WINDOW / 2 + 3, "a");
        assert_int_equal(s->ended_count, 3);
        give_many(hall, 0, 2, "b");
        assert_int_equal(turn_of(hall, B, 1, &from), 1);
        hall_close(hall);
}

/* So many of one lane fill a window: the other two have room of their own. */
#define LANE_MOST (RIG_WINDOW - 2 * RIG_LANE_ROOM)

static void a_window_full_of_tasks_for_a_pool_that_is_down_is_emptied(void **state)
{
        (void)state;
        struct hall *hall = hall_open();
        const struct shard *s = &hall->rigs[0].shard;
        uint32_t from;
        give_many(hall, 0, LANE_MOST - 1, "a");
        assert_int_equal(turn(hall, A, DISPATCH_DOWN, 0, &from), 0);
        assert_int_equal(s->ended_count, 0); /* there is still room for others */
        give_many(hall, 0, 1, "b");
        assert_int_equal(turn(hall, A, DISPATCH_DOWN, 0, &from), 0);
        assert_int_equal(s->ended_count, LANE_MOST - 1);
        hall_close(hall);
}

static void what_comes_back_to_a_handler_that_is_gone_goes_where_it_is_served(void **state)
{
        (void)state;
        struct hall *hall = hall_open();
        struct rig *g = &hall->rigs[0];
        struct shard *shard;
        uint32_t from;
        give_many(hall, 0, 2, "a");
        dispatch_look(&hall->dispatch, &hall->changed);
        dispatch_begin(&hall->dispatch, A, DISPATCH_OPEN, ROOM(1), g->now_ms);
        struct claimed *c = dispatch_next(&hall->dispatch, A, ROOM(1), g->now_ms, &shard);
        serve(hall, A, NULL);
        shard_again(&g->shard, c, g->now_ms); /* its pool gave it back */
        assert_int_equal(turn(hall, A, DISPATCH_GONE, 0, &from), 0);
        assert_int_equal(g->shard.ended_count, 2);
        hall_close(hall);
}

static void a_task_whose_name_was_given_to_another_pool_runs_there(void **state)
{
        (void)state;
        struct hall *hall = hall_open();
        struct rig *g = &hall->rigs[0];
        struct shard *shard;
        uint32_t from;
        give_many(hall, 0, 1, "a");
        dispatch_look(&hall->dispatch, &hall->changed);
        dispatch_begin(&hall->dispatch, A, DISPATCH_OPEN, ROOM(1), g->now_ms);
        struct claimed *c = dispatch_next(&hall->dispatch, A, ROOM(1), g->now_ms, &shard);
        serve(hall, A, NULL);
        serve(hall, B, "a");
        shard_again(&g->shard, c, g->now_ms);
        assert_int_equal(turn_of(hall, A, 8, &from), 0);
        assert_int_equal(turn_of(hall, B, 8, &from), 1);
        hall_close(hall);
}

static void a_name_that_two_pools_serve_goes_to_the_lower(void **state)
{
        (void)state;
        struct routes r = { 0 };
        for (uint32_t pool = 0; pool < 3; pool++)
                assert_int_equal(routes_add_pool(&r), pool);
        rig_serve(&r, 2, "a");
        rig_serve(&r, 1, "a");
        assert_int_equal(routes_find(&r, SPAN_TEXT("a")), 1);
        assert_true(routes_serves(&r, 2, SPAN_TEXT("a")));
        assert_false(routes_serves(&r, 0, SPAN_TEXT("a")));
        rig_serve(&r, 1, "ab");
        assert_int_equal(routes_find(&r, SPAN_TEXT("a")), 2);
        assert_int_equal(routes_find(&r, SPAN_TEXT("ab")), 1);
        routes_free(&r);
}

static void no_more_than_so_many_unserved_names_are_noted(void **state)
{
        (void)state;
        struct routes r = { 0 };
        char name[NAME_HANDLER_MAX + 2];
        for (unsigned i = 0; i < 2 * ROUTES_UNSERVED_MAX; i++) {
                int size = snprintf(name, sizeof(name), "n%u", i);
                assert_int_equal(routes_find(&r, (struct span){ name, (size_t)size }), ROUTES_NONE);
        }
        assert_int_equal(r.unserved_count, ROUTES_UNSERVED_MAX);
        routes_forget_unserved(&r);
        memset(name, 'n', sizeof(name));
        assert_int_equal(routes_find(&r, (struct span){ name, sizeof(name) }), ROUTES_NONE);
        assert_int_equal(r.unserved_count, 0); /* no handler can have such a name */
        routes_free(&r);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_paused_handler_starts_nothing_and_its_tasks_wait_in_the_store),
                cmocka_unit_test(what_nobody_serves_waits_in_the_store_and_is_noted_once),
                cmocka_unit_test(a_pool_that_is_down_keeps_half_of_a_window),
                cmocka_unit_test(a_window_full_of_tasks_for_a_pool_that_is_down_is_emptied),
                cmocka_unit_test(what_comes_back_to_a_handler_that_is_gone_goes_where_it_is_served),
                cmocka_unit_test(a_task_whose_name_was_given_to_another_pool_runs_there),
                cmocka_unit_test(a_name_that_two_pools_serve_goes_to_the_lower),
                cmocka_unit_test(no_more_than_so_many_unserved_names_are_noted),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
