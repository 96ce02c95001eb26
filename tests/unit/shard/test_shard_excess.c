/* Keys with more claimed tasks than their share: when their newest go back to the store, and when a shard claims deeper
 * to find tasks of other keys behind them. */
#include "shard_rig.h"

#define MANY 17   /* tasks, of which several keys have more than their shares */
#define SOON 1000 /* a key whose first task was claimed so long ago is slow */

static const bool yes = true, no = false;

/* Owns the shard, with one handler. */
static void open_at(struct rig *g, const bool *is_store_busy)
{
        rig_open(g);
        rig_serve(&g->routes, 1, NULL);
        g->shard.is_store_busy = is_store_busy;
        own(g);
}

/* Claims `count` tasks of the highest lane from `seq` on, of `keys` keys in turns. */
static void claim_of(struct rig *g, uint64_t seq, uint32_t count, unsigned keys)
{
        static const char *const names[] = { "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l" };
        for (uint32_t i = 0; i < count; i++)
                hand(g, seq + i, names[i % keys], "a");
        claim(g);
}

static void a_key_returns_its_newest_tasks(void **state)
{
        (void)state;
        struct rig g;
        open_at(&g, &no);
        claim_of(&g, 1, MANY, 1);
        assert_int_equal(g.shard.ended_count, MANY - RIG_PER_KEY);
        start(&g, 1);
        send_advance(&g);
        assert_null(said(&g, RIG_PER_KEY));
        for (uint64_t seq = RIG_PER_KEY + 1; seq <= MANY; seq++)
                assert_said(&g, seq, STORE_DIVERT);
        rig_close(&g);
}

static void what_came_while_the_store_was_busy_goes_back_when_it_is_not(void **state)
{
        (void)state;
        struct rig g;
        bool is_busy = true;
        open_at(&g, &is_busy);
        claim_of(&g, 1, MANY, 2);
        assert_int_equal(g.shard.ended_count, 0);
        is_busy = false;
        claim_of(&g, MANY + 1, 1, 1);
        assert_int_equal(g.shard.ended_count, MANY + 1 - 2 * RIG_PER_KEY);
        rig_close(&g);
}

static void keys_within_their_share_keep_their_tasks(void **state)
{
        (void)state;
        struct rig g;
        open_at(&g, &no);
        for (uint64_t seq = 1; seq <= RIG_WINDOW / 2; seq++) {
                char *key = (char[]){ (char)('a' + seq % 26), 0 };
                hand(&g, seq, key, "a");
                claim(&g);
        }
        assert_int_equal(g.shard.ended_count, 0);
        rig_close(&g);
}

/* To put a task aside costs a store that is busy more than to have several done. */
static void while_the_store_is_busy_several_keys_keep_what_they_work_off_soon(void **state)
{
        (void)state;
        struct rig g;
        open_at(&g, &yes);
        claim_of(&g, 1, MANY, 2);
        assert_int_equal(g.shard.ended_count, 0);
        rig_close(&g);
}

static void a_single_key_keeps_nobody_waiting_behind_it(void **state)
{
        (void)state;
        struct rig g;
        open_at(&g, &yes);
        claim_of(&g, 1, MANY, 1);
        assert_int_equal(g.shard.ended_count, MANY - RIG_PER_KEY);
        rig_close(&g);
}

/* No reply and no task's end says so: the shard looks again by itself. */
static void keys_that_turn_out_slow_return_their_tasks(void **state)
{
        (void)state;
        struct rig g;
        open_at(&g, &yes);
        claim_of(&g, 1, MANY, 2);
        start(&g, 1);
        start(&g, 2);
        assert_int_equal(shard_due_ms(&g.shard), g.now_ms + SOON);
        shard_tick(&g.shard, g.now_ms + SOON - 1);
        assert_int_equal(g.shard.ended_count, 0);
        g.now_ms += SOON;
        shard_tick(&g.shard, g.now_ms);
        assert_int_equal(g.shard.ended_count, MANY - 2 * RIG_PER_KEY);
        assert_int_equal(g.shard.excess_ms, STORE_NEVER);
        send_advance(&g);
        assert_null(said(&g, 2 * RIG_PER_KEY));
        assert_said(&g, 2 * RIG_PER_KEY + 1, STORE_DIVERT);
        rig_close(&g);
}

/* Runs the first task of each key to its end, so that nothing can start before the next call, and makes that call. */
static void call_with_all_keys_waiting(struct rig *g, unsigned keys)
{
        for (uint64_t seq = 1; seq <= keys; seq++)
                run(g, seq);
        assert_null(next(g));
        g->shard.has_more[LANE_HIGH] = true;
        send_advance(g);
}

/* Of 12 keys most have a single task: a deeper claim would bring other keys. */
static void a_deeper_claim_is_made_unless_the_store_is_busy_and_brings_the_same_keys(void **state)
{
        (void)state;
        static const struct {
                unsigned keys;
                const bool *is_store_busy;
                bool is_deeper;
        } cases[] = { { 2, &yes, false }, { 1, &yes, true }, { 12, &yes, true }, { 2, &no, true }, { 2, NULL, true } };
        for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct rig g;
                uint32_t stock = 4;
                open_at(&g, cases[i].is_store_busy);
                rig_serve(&g.routes, 0, "a");
                g.shard.window.pools = 1;
                g.shard.stock_max = &stock;
                claim_of(&g, 1, MANY - 1, cases[i].keys);
                call_with_all_keys_waiting(&g, cases[i].keys);
                assert_int_equal(g.advance.want[LANE_HIGH] > 0, cases[i].is_deeper);
                rig_close(&g);
        }
}

static void a_deeper_claim_is_made_for_a_handler_that_has_nothing(void **state)
{
        (void)state;
        uint32_t stock = 4;
        struct rig g;
        rig_open(&g);
        g.shard.is_store_busy = &yes;
        g.shard.stock_max = &stock;
        own(&g);
        claim_of(&g, 1, MANY - 1, 2);
        call_with_all_keys_waiting(&g, 2);
        assert_true(g.advance.want[LANE_HIGH] > 0);
        rig_close(&g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_key_returns_its_newest_tasks),
                cmocka_unit_test(what_came_while_the_store_was_busy_goes_back_when_it_is_not),
                cmocka_unit_test(keys_within_their_share_keep_their_tasks),
                cmocka_unit_test(while_the_store_is_busy_several_keys_keep_what_they_work_off_soon),
                cmocka_unit_test(a_single_key_keeps_nobody_waiting_behind_it),
                cmocka_unit_test(keys_that_turn_out_slow_return_their_tasks),
                cmocka_unit_test(a_deeper_claim_is_made_unless_the_store_is_busy_and_brings_the_same_keys),
                cmocka_unit_test(a_deeper_claim_is_made_for_a_handler_that_has_nothing),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
