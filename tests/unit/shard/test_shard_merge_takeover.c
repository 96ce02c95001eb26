/* Which tasks become one after the host died that had them: none that it may have started. */
#include "merge_rig.h"

/* The shard of an owner that died is being acquired by a host with so many seats. */
static void takeover_open(struct rig *g, uint32_t seats)
{
        rig_open(g);
        g->limits.can_merge = true;
        g->limits.seats = seats;
        send_acquire(g);
        g->acquire.is_recovery = true;
}

/* It may have been running when its owner died, though nothing says so. */
static void what_a_dead_owner_may_have_started_is_not_changed(void **state)
{
        (void)state;
        struct rig g;
        takeover_open(&g, 1);
        hand_merge(&g, 1, "k", "a");
        reply_acquire(&g, STORE_GRANTED, false);
        send_advance(&g);
        assert_said(&g, 1, STORE_INTERRUPTED);
        hand_merge(&g, 2, "k", "a");
        reply_advance(&g, STORE_OK);
        assert_int_equal(g.shard.ended_count, 0);
        rig_close(&g);
}

/* Which keys had a seat is not known: no key's first task is changed, however many there are. */
static void of_no_key_is_the_first_changed_that_a_dead_owner_had(void **state)
{
        (void)state;
        struct rig g;
        takeover_open(&g, 1);
        hand_merge(&g, 1, "j", "a");
        for (uint64_t seq = 2; seq <= 4; seq++)
                hand_merge(&g, seq, "k", "a");
        reply_acquire(&g, STORE_GRANTED, false);
        send_advance(&g);
        assert_said(&g, 2, STORE_INTERRUPTED);
        assert_merged(&g, 3, 1); /* nothing behind the first can have started */
        rig_close(&g);
}

/* While it ran, one of a higher lane was claimed, and comes first now. */
static void of_no_lane_is_the_first_changed_that_a_dead_owner_had(void **state)
{
        (void)state;
        struct rig g;
        takeover_open(&g, 9);
        hand_merge(&g, 1, "k", "a");
        for (uint64_t seq = LOW_FIRST; seq <= LOW_FIRST + 2; seq++)
                hand_merge(&g, seq, "k", "a");
        reply_acquire(&g, STORE_GRANTED, false);
        send_advance(&g);
        assert_said(&g, 1, STORE_INTERRUPTED);
        assert_said(&g, LOW_FIRST, STORE_INTERRUPTED);
        assert_merged(&g, LOW_FIRST + 1, 1);
        rig_close(&g);
}

static void of_a_dead_owners_run_nothing_is_changed(void **state)
{
        (void)state;
        struct rig g;
        takeover_open(&g, 1);
        rig_serve(&g.routes, 0, "a");
        g.routes.per_key[0] = 32; /* ordered batches */
        for (uint64_t seq = 1; seq <= 3; seq++)
                hand_merge(&g, seq, "k", "a");
        reply_acquire(&g, STORE_GRANTED, false);
        send_advance(&g);
        assert_int_equal(g.advance.outcomes_count, 3);
        for (uint64_t seq = 1; seq <= 3; seq++)
                assert_said(&g, seq, STORE_INTERRUPTED);
        rig_close(&g);
}

static void assert_notes_interruption(const struct rig *g, uint64_t seq, enum store_outcome_kind kind)
{
        const struct store_outcome *o = said(g, seq);
        assert_said(g, seq, kind);
        assert_int_equal(o->cost, COST_INTERRUPTION);
        assert_true(span_is(o->error, SPAN_TEXT("it may have been running when its host lost the shard")));
}

/* Later owners must not change it either, so the store notes it, whatever the number of seats here. */
static void the_store_notes_each_that_may_have_started(void **state)
{
        (void)state;
        struct rig g;
        takeover_open(&g, 0);
        hand_merge(&g, 1, "j", "a");
        hand_merge(&g, 2, "k", "a");
        hand(&g, 3, "l", "a"); /* is never merged */
        reply_acquire(&g, STORE_GRANTED, false);
        send_advance(&g);
        assert_int_equal(g.advance.outcomes_count, 2);
        assert_notes_interruption(&g, 1, STORE_INTERRUPTED);
        assert_notes_interruption(&g, 2, STORE_INTERRUPTED);
        reply_advance(&g, STORE_OK);
        for (unsigned i = 0; i < 3; i++)
                assert_non_null(next(&g));
        rig_close(&g);
}

/* No handler takes them here.  The second cannot have started, and costs nothing. */
static void what_is_diverted_at_once_is_noted_too(void **state)
{
        (void)state;
        struct rig g;
        takeover_open(&g, 9);
        hand_merge(&g, 1, "k", "unknown");
        hand_merge(&g, 2, "k", "unknown");
        reply_acquire(&g, STORE_GRANTED, false);
        send_advance(&g);
        assert_notes_interruption(&g, 1, STORE_DIVERT);
        assert_said(&g, 2, STORE_DIVERT);
        assert_int_equal(said(&g, 2)->cost, COST_NONE);
        rig_close(&g);
}

static void lose_and_get_again(struct rig *g)
{
        g->shard.has_work = true;
        send_advance(g);
        reply_advance(g, STORE_FENCED);
        g->now_ms += RIG_TTL_MS;
        send_acquire(g);
        hand_merge(g, 1, "k", "a");
        hand_merge(g, 2, "k", "a");
        reply_acquire(g, STORE_GRANTED, false);
}

/* Nobody else had the shard meanwhile, so the store knows of no recovery; but the task had started here. */
static void what_had_started_before_the_lease_was_lost_is_not_changed(void **state)
{
        (void)state;
        struct rig g;
        merge_open(&g);
        hand_merge(&g, 1, "k", "a");
        claim(&g);
        run(&g, 1);
        lose_and_get_again(&g);
        send_advance(&g);
        assert_notes_interruption(&g, 1, STORE_INTERRUPTED);
        assert_null(said(&g, 2));
        rig_close(&g);
}

static void what_cannot_have_started_before_the_lease_was_lost_is_merged(void **state)
{
        (void)state;
        struct rig g;
        merge_open(&g);
        lose_and_get_again(&g);
        send_advance(&g);
        assert_merged(&g, 1, 1);
        rig_close(&g);
}

/* Its start is being recorded, because a host has died with it: from then on it may have started. */
static void what_is_marked_as_starting_is_not_changed(void **state)
{
        (void)state;
        struct rig g;
        merge_open(&g);
        hand_merge(&g, 1, "k", "a")->note.events = SPAN_TEXT("event:1 interruption its host died\n");
        claim(&g);
        assert_null(next(&g));
        send_advance(&g);
        assert_said(&g, 1, STORE_START);
        hand_merge(&g, 2, "k", "a");
        reply_advance(&g, STORE_OK);
        assert_int_equal(g.shard.ended_count, 0);
        rig_close(&g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_a_dead_owner_may_have_started_is_not_changed),
                cmocka_unit_test(of_no_key_is_the_first_changed_that_a_dead_owner_had),
                cmocka_unit_test(of_no_lane_is_the_first_changed_that_a_dead_owner_had),
                cmocka_unit_test(of_a_dead_owners_run_nothing_is_changed),
                cmocka_unit_test(the_store_notes_each_that_may_have_started),
                cmocka_unit_test(what_is_diverted_at_once_is_noted_too),
                cmocka_unit_test(what_had_started_before_the_lease_was_lost_is_not_changed),
                cmocka_unit_test(what_cannot_have_started_before_the_lease_was_lost_is_merged),
                cmocka_unit_test(what_is_marked_as_starting_is_not_changed),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
