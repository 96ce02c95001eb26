/* Checkpoints of tasks that still run: told with the shard's next call, and never out of place. */
#include "shard_rig.h"

static struct claimed *run_one(struct rig *g)
{
        rig_open(g);
        own(g);
        hand(g, 1, "k", "a");
        hand(g, 2, "k", "a");
        claim(g);
        return start(g, 1);
}

static void save(struct rig *g, struct claimed *c, const char *text)
{
        shard_save(&g->shard, c, text, strlen(text));
}

static void assert_saved(const struct rig *g, const char *text)
{
        assert_said(g, 1, STORE_CHECKPOINT);
        assert_true(span_is(said(g, 1)->checkpoint, rig_span(text)));
}

static void a_running_tasks_checkpoint_is_told(void **state)
{
        (void)state;
        struct rig g;
        struct claimed *c = run_one(&g);
        assert_int_equal(next_call(&g), SHARD_CALL_NONE);
        save(&g, c, "one");
        save(&g, c, "two");
        send_advance(&g);
        assert_int_equal(g.advance.outcomes_count, 1);
        assert_saved(&g, "two");
        reply_advance(&g, STORE_OK);
        assert_int_equal(next_call(&g), SHARD_CALL_NONE);
        assert_null(next(&g)); /* it still runs */
        end_as(&g, c, STORE_DONE);
        send_advance(&g);
        assert_int_equal(g.advance.outcomes_count, 1);
        assert_said(&g, 1, STORE_DONE);
        rig_close(&g);
}

/* The bytes of a call stay as they are until it is answered, and while it is repeated. */
static void the_next_one_does_not_change_a_call_under_way(void **state)
{
        (void)state;
        struct rig g;
        struct claimed *c = run_one(&g);
        save(&g, c, "first");
        send_advance(&g);
        save(&g, c, "other");
        assert_saved(&g, "first");
        shard_failed(&g.shard, g.now_ms);
        g.now_ms += 1000;
        send_advance(&g);
        assert_saved(&g, "first");
        reply_advance(&g, STORE_OK);
        send_advance(&g);
        assert_saved(&g, "other");
        reply_advance(&g, STORE_OK);
        assert_int_equal(next_call(&g), SHARD_CALL_NONE);
        rig_close(&g);
}

/* It died, and its last words are lost: what was seen of it goes with how it ended, and to its next attempt here. */
static void what_was_saved_goes_with_how_it_ended(void **state)
{
        (void)state;
        struct rig g;
        struct claimed *c = run_one(&g);
        save(&g, c, "half-way");
        end_as(&g, c, STORE_INTERRUPTED);
        send_advance(&g);
        assert_int_equal(g.advance.outcomes_count, 2);
        assert_saved(&g, "half-way");
        assert_int_equal(g.advance.outcomes[1].kind, STORE_INTERRUPTED);
        reply_advance(&g, STORE_OK);
        c = start(&g, 1);
        assert_int_equal(c->checkpoint.size, 8);
        assert_memory_equal(c->checkpoint.data, "half-way", 8);
        rig_close(&g);
}

static void last_words_are_newer(void **state)
{
        (void)state;
        struct rig g;
        struct claimed *c = run_one(&g);
        save(&g, c, "old");
        buffer_put(&c->checkpoint, "new", 3);
        c->has_saved = true;
        end_as(&g, c, STORE_RETRY);
        send_advance(&g);
        assert_saved(&g, "new");
        rig_close(&g);
}

static void what_is_done_needs_no_checkpoint(void **state)
{
        (void)state;
        struct rig g;
        struct claimed *c = run_one(&g);
        save(&g, c, "almost");
        end_as(&g, c, STORE_DONE);
        send_advance(&g);
        assert_int_equal(g.advance.outcomes_count, 1);
        assert_said(&g, 1, STORE_DONE);
        rig_close(&g);
}

static void a_lost_lease_saves_nothing(void **state)
{
        (void)state;
        struct rig g;
        struct claimed *c = run_one(&g);
        save(&g, c, "one");
        send_advance(&g);
        save(&g, c, "two");
        reply_advance(&g, STORE_FENCED);
        save(&g, c, "three");
        assert_int_equal(next_call(&g), SHARD_CALL_ACQUIRE);
        shard_again(&g.shard, c, g.now_ms);
        rig_close(&g);
}

static void many_checkpoints_go_in_several_calls(void **state)
{
        (void)state;
        struct rig g;
        char keys[SHARD_SAVES_MAX + 20][8];
        struct claimed *running[SHARD_SAVES_MAX + 20];
        rig_open(&g);
        g.limits.window_tasks = 256;
        own(&g);
        for (unsigned i = 0; i < SHARD_SAVES_MAX + 20; i++) {
                (void)snprintf(keys[i], sizeof(keys[i]), "k%u", i);
                hand(&g, i + 1, keys[i], "a");
        }
        claim(&g);
        for (unsigned i = 0; i < SHARD_SAVES_MAX + 20; i++)
                running[i] = start(&g, i + 1);
        for (unsigned i = 0; i < SHARD_SAVES_MAX + 20; i++)
                save(&g, running[i], "x");
        send_advance(&g);
        assert_int_equal(g.advance.outcomes_count, SHARD_SAVES_MAX);
        reply_advance(&g, STORE_OK);
        end_as(&g, running[3], STORE_DONE); /* wherever it stands in the list */
        send_advance(&g);
        assert_true(g.advance.outcomes_count == 20 || g.advance.outcomes_count == 21);
        assert_said(&g, 4, STORE_DONE);
        reply_advance(&g, STORE_OK);
        assert_int_equal(next_call(&g), SHARD_CALL_NONE);
        rig_close(&g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_running_tasks_checkpoint_is_told),
                cmocka_unit_test(the_next_one_does_not_change_a_call_under_way),
                cmocka_unit_test(what_was_saved_goes_with_how_it_ended),
                cmocka_unit_test(last_words_are_newer),
                cmocka_unit_test(what_is_done_needs_no_checkpoint),
                cmocka_unit_test(a_lost_lease_saves_nothing),
                cmocka_unit_test(many_checkpoints_go_in_several_calls),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
