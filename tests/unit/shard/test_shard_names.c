/* Keys that wait in the store for a name: which ones their owner wakes, and when. */
#include "shard_rig.h"

static void send_wake(struct rig *g, struct store_wake *wake)
{
        assert_int_equal(next_call(g), SHARD_CALL_WAKE);
        shard_fill_wake(&g->shard, wake, g->now_ms);
        assert_int_equal(next_call(g), SHARD_CALL_NONE);
}

static void reply_wake(struct rig *g, struct store_wake *wake, uint32_t woken, bool has_more)
{
        wake->verdict = STORE_OK;
        wake->woken = woken;
        wake->has_more = has_more;
        shard_woken(&g->shard, wake);
}

static void set_state(struct rig *g, uint32_t pool, enum route_state state)
{
        g->routes.states[pool] = state;
        shard_look_at_names(&g->shard);
}

/* Owns the shard; pool 0 is paused, and one task of it has gone back to the store. */
static void open_paused(struct rig *g)
{
        rig_open(g);
        own(g);
        hand(g, 1, "k", "a");
        claim(g);
        set_state(g, 0, ROUTE_SHUT);
        shard_return_pool(&g->shard, 0, g->now_ms);
        send_advance(g);
        assert_said(g, 1, STORE_DIVERT);
        assert_true(span_is(said(g, 1)->name, SPAN_TEXT("handler:a")));
        assert_int_equal(said(g, 1)->delay_ms, 0);
        reply_advance(g, STORE_OK);
}

static void what_waits_for_a_paused_handler_costs_no_call(void **state)
{
        (void)state;
        struct rig g;
        open_paused(&g);
        assert_int_equal(next_call(&g), SHARD_CALL_NONE);
        assert_int_equal(shard_due_ms(&g.shard), STORE_NEVER);
        rig_close(&g);
}

static void a_handler_that_opens_wakes_its_keys_page_by_page(void **state)
{
        (void)state;
        struct rig g;
        struct store_wake wake;
        open_paused(&g);
        set_state(&g, 0, ROUTE_OPEN);
        assert_true(shard_due_ms(&g.shard) <= g.now_ms);
        send_wake(&g, &wake);
        assert_true(span_is(wake.name, SPAN_TEXT("handler:a")));
        assert_int_equal(wake.call, g.advance.call + 1);
        assert_int_equal(wake.max, SHARD_NAMES_PAGE); /* few at first, so that some start at once on every shard */
        reply_wake(&g, &wake, wake.max, true);
        /* Those that were woken are claimed before others are woken. */
        send_advance(&g);
        assert_int_equal(g.advance.call, wake.call + 1);
        hand(&g, 1, "k", "a");
        reply_advance(&g, STORE_OK);
        send_wake(&g, &wake);
        assert_int_equal(wake.max, 2 * SHARD_NAMES_PAGE);
        reply_wake(&g, &wake, 1, false);
        send_advance(&g);
        reply_advance(&g, STORE_OK);
        assert_int_equal(next_call(&g), SHARD_CALL_NONE);
        assert_int_equal(g.shard.names.count, 0);
        rig_close(&g);
}

static void nobody_is_woken_while_what_was_woken_has_no_room(void **state)
{
        (void)state;
        struct rig g;
        struct store_wake wake;
        open_paused(&g);
        set_state(&g, 0, ROUTE_OPEN);
        send_wake(&g, &wake);
        reply_wake(&g, &wake, 3, true);
        send_advance(&g);
        g.advance.has_due_waiting = true;
        reply_advance(&g, STORE_OK);
        assert_int_equal(next_call(&g), SHARD_CALL_NONE);
        g.shard.has_work = true;
        send_advance(&g);
        g.advance.has_due_waiting = false;
        reply_advance(&g, STORE_OK);
        send_wake(&g, &wake);
        rig_close(&g);
}

static void a_handler_that_shuts_again_wakes_nobody(void **state)
{
        (void)state;
        struct rig g;
        open_paused(&g);
        set_state(&g, 0, ROUTE_OPEN);
        set_state(&g, 0, ROUTE_SHUT);
        assert_int_equal(next_call(&g), SHARD_CALL_NONE);
        rig_close(&g);
}

static void a_wake_without_an_answer_is_repeated_as_it_was(void **state)
{
        (void)state;
        struct rig g;
        struct store_wake wake;
        struct store_wake again;
        open_paused(&g);
        set_state(&g, 0, ROUTE_OPEN);
        send_wake(&g, &wake);
        shard_failed(&g.shard, g.now_ms);
        set_state(&g, 0, ROUTE_SHUT);
        g.now_ms += 1000;
        send_wake(&g, &again);
        assert_int_equal(again.call, wake.call);
        assert_true(span_is(again.name, SPAN_TEXT("handler:a")));
        /* The first may have woken some: they are looked for. */
        reply_wake(&g, &again, 0, true);
        send_advance(&g);
        rig_close(&g);
}

static void a_new_owner_reads_the_names_and_wakes_those_that_are_open(void **state)
{
        (void)state;
        struct rig g;
        struct store_names names;
        struct store_wake wake;
        rig_open(&g);
        send_acquire(&g);
        g.acquire.has_names = true;
        reply_acquire(&g, STORE_GRANTED, false);
        assert_int_equal(next_call(&g), SHARD_CALL_NAMES);
        shard_fill_names(&g.shard, &names, g.now_ms);
        assert_int_equal(names.after.size, 0);
        struct span first[] = { SPAN_TEXT("handler:b"), SPAN_TEXT("handler:nobody") };
        names.names = first;
        names.names_count = 2;
        names.has_more = true;
        names.verdict = STORE_OK;
        shard_named(&g.shard, &names);
        assert_int_equal(next_call(&g), SHARD_CALL_NAMES);
        shard_fill_names(&g.shard, &names, g.now_ms);
        assert_true(span_is(names.after, SPAN_TEXT("handler:nobody")));
        struct span second[] = { SPAN_TEXT("limit:api"), SPAN_TEXT("needs:more") };
        names.names = second;
        names.names_count = 2;
        names.has_more = false;
        names.verdict = STORE_OK;
        shard_named(&g.shard, &names);
        send_wake(&g, &wake);
        assert_true(span_is(wake.name, SPAN_TEXT("handler:b")));
        reply_wake(&g, &wake, 0, false);
        assert_int_equal(next_call(&g), SHARD_CALL_NONE);
        assert_int_equal(g.shard.names.count, 3);
        rig_close(&g);
}

static void a_reload_that_adds_the_handler_wakes_its_keys(void **state)
{
        (void)state;
        struct rig g;
        struct store_wake wake;
        rig_open(&g);
        own(&g);
        hand(&g, 1, "k", "new");
        claim(&g);
        send_advance(&g);
        assert_true(span_is(said(&g, 1)->name, SPAN_TEXT("handler:new")));
        reply_advance(&g, STORE_OK);
        assert_int_equal(next_call(&g), SHARD_CALL_NONE);
        rig_serve(&g.routes, 1, "new");
        shard_reroute(&g.shard, g.now_ms);
        send_wake(&g, &wake);
        assert_true(span_is(wake.name, SPAN_TEXT("handler:new")));
        rig_close(&g);
}

/* It is told while the answer is on its way that the handler is open again. */
static void a_handler_that_opens_meanwhile_is_noticed(void **state)
{
        (void)state;
        struct rig g;
        struct store_wake wake;
        rig_open(&g);
        own(&g);
        hand(&g, 1, "k", "a");
        claim(&g);
        set_state(&g, 0, ROUTE_SHUT);
        shard_return_pool(&g.shard, 0, g.now_ms);
        send_advance(&g);
        set_state(&g, 0, ROUTE_OPEN);
        reply_advance(&g, STORE_OK);
        send_wake(&g, &wake);
        rig_close(&g);
}

static void a_handler_that_is_down_tries_with_one_key(void **state)
{
        (void)state;
        struct rig g;
        struct store_wake wake;
        open_paused(&g);
        set_state(&g, 0, ROUTE_DOWN);
        assert_int_equal(next_call(&g), SHARD_CALL_NONE);
        assert_false(shard_probe(&g.shard, 1));
        assert_true(shard_probe(&g.shard, 0));
        send_wake(&g, &wake);
        assert_int_equal(wake.max, 1);
        reply_wake(&g, &wake, 1, true);
        send_advance(&g);
        hand(&g, 1, "k", "a");
        reply_advance(&g, STORE_OK);
        assert_int_equal(next_call(&g), SHARD_CALL_NONE); /* one is enough */
        start(&g, 1);
        rig_close(&g);
}

static void a_full_window_wakes_nobody(void **state)
{
        (void)state;
        struct rig g;
        open_paused(&g);
        g.shard.window.count = RIG_WINDOW;
        set_state(&g, 0, ROUTE_OPEN);
        assert_int_equal(next_call(&g), SHARD_CALL_NONE);
        g.shard.window.count = 0;
        assert_int_equal(next_call(&g), SHARD_CALL_WAKE);
        rig_close(&g);
}

static void names_beyond_what_is_remembered_are_read_when_something_opens(void **state)
{
        (void)state;
        struct rig g;
        open_paused(&g);
        char name[32];
        for (unsigned i = 0; i < SHARD_NAMES_MAX + 10; i++) {
                (void)snprintf(name, sizeof(name), "handler:x%u", i);
                shard_names_add(&g.shard.names, &g.routes, rig_span(name));
        }
        assert_int_equal(g.shard.names.count, SHARD_NAMES_MAX);
        assert_int_equal(next_call(&g), SHARD_CALL_NONE);
        set_state(&g, 1, ROUTE_OPEN);
        assert_int_equal(next_call(&g), SHARD_CALL_NAMES);
        rig_close(&g);
}

static void a_shard_that_is_lost_forgets_its_names(void **state)
{
        (void)state;
        struct rig g;
        struct store_wake wake;
        open_paused(&g);
        set_state(&g, 0, ROUTE_OPEN);
        send_wake(&g, &wake);
        wake.verdict = STORE_FENCED;
        shard_woken(&g.shard, &wake);
        assert_int_equal(g.shard.names.count, 0);
        assert_int_equal(next_call(&g), SHARD_CALL_ACQUIRE);
        rig_close(&g);
}

/* Of a limit's keys few are woken at a time.  Nothing else may be known of the limit by the time that these are done.
 */
static void keys_that_wait_for_a_limit_are_all_woken(void **state)
{
        (void)state;
        struct rig g;
        struct limits limits = { .ttl_ms = RIG_TTL_MS };
        struct limit_amount slots = { .version = 1, .concurrency = 2 };
        char *items[] = { (char *)"x" };
        struct store_wake wake;
        struct span name = SPAN_TEXT("limit:x");
        rig_open(&g);
        g.routes.limits = &limits;
        limit_define(limits_ensure(&limits, "x"), &slots, NULL, 0, 10);
        limits_serve(&limits, 0, &(struct strings){ items, 1 });
        own(&g);
        shard_names_add(&g.shard.names, &g.routes, name);
        for (unsigned i = 0; i < 3; i++) {
                send_wake(&g, &wake);
                assert_true(span_is(wake.name, name));
                reply_wake(&g, &wake, 0, i < 2);
                g.now_ms += 100;
                limits_pass_begin(&limits);
                assert_int_equal(limits_pass_end(&limits, g.now_ms), i < 2);
                shard_look_at_names(&g.shard);
        }
        limits_free(&limits);
        rig_close(&g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_waits_for_a_paused_handler_costs_no_call),
                cmocka_unit_test(a_handler_that_opens_wakes_its_keys_page_by_page),
                cmocka_unit_test(nobody_is_woken_while_what_was_woken_has_no_room),
                cmocka_unit_test(a_handler_that_shuts_again_wakes_nobody),
                cmocka_unit_test(a_wake_without_an_answer_is_repeated_as_it_was),
                cmocka_unit_test(a_new_owner_reads_the_names_and_wakes_those_that_are_open),
                cmocka_unit_test(a_reload_that_adds_the_handler_wakes_its_keys),
                cmocka_unit_test(a_handler_that_opens_meanwhile_is_noticed),
                cmocka_unit_test(a_handler_that_is_down_tries_with_one_key),
                cmocka_unit_test(a_full_window_wakes_nobody),
                cmocka_unit_test(names_beyond_what_is_remembered_are_read_when_something_opens),
                cmocka_unit_test(a_shard_that_is_lost_forgets_its_names),
                cmocka_unit_test(keys_that_wait_for_a_limit_are_all_woken),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
