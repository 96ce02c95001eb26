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
        assert_null(said(&g, 2));
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
        assert_int_equal(g.advance.outcomes_count, 1);
        assert_said(&g, 1, STORE_INTERRUPTED);
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
                cmocka_unit_test(what_is_marked_as_starting_is_not_changed),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
