/* Who should own what: quotas, fewest moves, standbys, drains, orphans, epochs. */
#include "assign_fixture.h"

#include <errno.h>

static void counts_differ_by_at_most_one_as_hosts_come_and_go(void **state)
{
        (void)state;
        static struct membership f;
        membership_open(&f, 20);
        membership_join(&f, 1, 1);
        membership_assign(&f);
        assert_int_equal(membership_owns(&f, 1), 20);
        assert_int_equal(f.plan.moves_count, 20);

        membership_join(&f, 2, 1);
        membership_assign(&f);
        assert_int_equal(membership_owns(&f, 1), 10);
        assert_int_equal(membership_owns(&f, 2), 10);
        assert_int_equal(f.plan.moves_count, 10);

        membership_join(&f, 3, 1);
        membership_assign(&f);
        assert_int_equal(f.plan.moves_count, 6);
        assert_true(membership_owns(&f, 1) >= 6 && membership_owns(&f, 1) <= 7);
        assert_true(membership_owns(&f, 2) >= 6 && membership_owns(&f, 2) <= 7);
        assert_int_equal(membership_owns(&f, 3), 6);

        uint32_t had = membership_owns(&f, 2);
        membership_remove(&f, 2);
        membership_assign(&f);
        assert_int_equal(f.plan.moves_count, had);
        assert_int_equal(membership_owns(&f, 1), 10);
        assert_int_equal(membership_owns(&f, 3), 10);

        membership_join(&f, 4, 1);
        membership_join(&f, 5, 1);
        membership_assign(&f);
        assert_int_equal(f.plan.moves_count, 10);
        for (uint32_t number = 1; number <= 5; number++)
                if (number != 2)
                        assert_int_equal(membership_owns(&f, number), 5);

        membership_remove(&f, 1);
        membership_remove(&f, 3);
        membership_remove(&f, 4);
        membership_assign(&f);
        assert_int_equal(f.plan.moves_count, 15);
        assert_int_equal(membership_owns(&f, 5), 20);
        membership_close(&f);
}

static void weights_share_by_largest_remainder(void **state)
{
        (void)state;
        static struct membership f;
        membership_open(&f, 10);
        /* 10 × 1, 3, 1000 of 1004: 0.01, 0.03, 9.96. */
        membership_join(&f, 1, 1);
        membership_join(&f, 2, 3);
        membership_join(&f, 3, 1000);
        membership_assign(&f);
        assert_int_equal(membership_owns(&f, 3), 10);
        /* 10 × 3, 3, 4 of 10; then 2, 3, 6 of 11: 1.82, 2.73, 5.45. */
        membership_find(&f, 1)->weight = 3;
        membership_find(&f, 3)->weight = 4;
        membership_assign(&f);
        assert_int_equal(membership_owns(&f, 1), 3);
        assert_int_equal(membership_owns(&f, 2), 3);
        assert_int_equal(membership_owns(&f, 3), 4);
        membership_find(&f, 1)->weight = 2;
        membership_find(&f, 3)->weight = 6;
        membership_assign(&f);
        assert_int_equal(membership_owns(&f, 1), 2);
        assert_int_equal(membership_owns(&f, 2), 3);
        assert_int_equal(membership_owns(&f, 3), 5);
        membership_close(&f);
}

static void weight_zero_stands_by_until_nobody_else_is_there(void **state)
{
        (void)state;
        static struct membership f;
        membership_open(&f, 8);
        membership_join(&f, 1, 5);
        membership_join(&f, 2, 0);
        membership_join(&f, 3, 0);
        membership_assign(&f);
        assert_int_equal(membership_owns(&f, 1), 8);
        membership_remove(&f, 1);
        membership_assign(&f);
        assert_int_equal(membership_owns(&f, 2), 4);
        assert_int_equal(membership_owns(&f, 3), 4);
        membership_join(&f, 4, 1);
        membership_assign(&f);
        assert_int_equal(membership_owns(&f, 4), 8);
        membership_close(&f);
}

static void owners_keep_their_place_and_standbys_take_over(void **state)
{
        (void)state;
        static struct membership f;
        membership_open(&f, 12);
        f.input.members_max = 2;
        membership_join(&f, 1, 1);
        membership_join(&f, 2, 1);
        membership_assign(&f);
        for (uint32_t number = 3; number <= 6; number++)
                membership_join(&f, number, 1);
        membership_assign(&f);
        assert_false(f.plan.is_changed);
        membership_remove(&f, 1);
        membership_assign(&f);
        assert_int_equal(f.plan.moves_count, 6);
        assert_int_equal(membership_owns(&f, 2), 6);
        assert_int_equal(membership_owns(&f, 3), 6);
        /* A successor comes in before the draining one has gone. */
        membership_find(&f, 2)->is_draining = true;
        membership_assign(&f);
        assert_int_equal(f.plan.moves_count, 6);
        assert_int_equal(membership_owns(&f, 4), 6);
        f.input.members_max = 1;
        membership_assign(&f);
        assert_int_equal(membership_owns(&f, 3), 12);
        membership_close(&f);
}

static void orphans_move_at_once_and_firm_and_planned_moves_in_rounds(void **state)
{
        (void)state;
        static struct membership f;
        membership_open(&f, 30);
        membership_join(&f, 1, 1);
        membership_join(&f, 2, 1);
        membership_assign(&f);
        membership_join(&f, 3, 1);
        f.input.round_max = 4;
        membership_assign(&f);
        assert_int_equal(f.plan.moves_count, 4);
        assert_int_equal(f.plan.moves_left, 6);
        for (uint32_t i = 0; i < f.plan.moves_count; i++) {
                assert_false(f.now.slots[f.plan.moves[i].shard].is_firm);
                assert_int_equal(f.plan.moves[i].reason, ASSIGN_JOIN);
        }
        /* While a round is under way, only what has no owner moves. */
        f.input.may_plan = false;
        membership_assign(&f);
        assert_false(f.plan.is_changed);
        uint32_t had = membership_owns(&f, 2);
        membership_remove(&f, 2);
        membership_assign(&f);
        assert_int_equal(f.plan.moves_count, had);
        for (uint32_t i = 0; i < f.plan.moves_count; i++) {
                assert_true(f.now.slots[f.plan.moves[i].shard].is_firm);
                assert_int_equal(f.plan.moves[i].reason, ASSIGN_CRASH);
                assert_string_equal(f.plan.moves[i].from.name, "host-2");
        }
        membership_close(&f);
}

static void a_draining_owner_gives_patiently_and_what_is_left_is_a_leave(void **state)
{
        (void)state;
        static struct membership f;
        membership_open(&f, 10);
        membership_join(&f, 1, 1);
        membership_join(&f, 2, 1);
        membership_assign(&f);
        membership_find(&f, 1)->is_draining = true;
        f.input.round_max = 3;
        membership_assign(&f);
        assert_int_equal(f.plan.moves_count, 3);
        assert_int_equal(f.plan.moves_left, 2);
        for (uint32_t i = 0; i < f.plan.moves_count; i++) {
                assert_int_equal(f.plan.moves[i].reason, ASSIGN_DRAIN);
                assert_false(f.now.slots[f.plan.moves[i].shard].is_firm);
        }
        membership_remove(&f, 1);
        membership_assign(&f);
        assert_int_equal(f.plan.moves_count, 2);
        for (uint32_t i = 0; i < f.plan.moves_count; i++)
                assert_int_equal(f.plan.moves[i].reason, ASSIGN_LEAVE);
        assert_int_equal(membership_owns(&f, 2), 10);
        membership_close(&f);
}

/* The only host, stopped and started again: nobody saw how it ended. */
static void the_shards_of_one_that_comes_back_under_its_name_are_a_restart(void **state)
{
        (void)state;
        static struct membership f;
        membership_open(&f, 10);
        membership_join(&f, 1, 1);
        membership_assign(&f);
        membership_remove(&f, 1);
        membership_join(&f, 2, 1);
        (void)snprintf(membership_find(&f, 2)->name, sizeof(membership_find(&f, 2)->name), "host-1");
        membership_assign(&f);
        assert_int_equal(f.plan.moves_count, 10);
        assert_int_equal(f.plan.moves[0].reason, ASSIGN_RESTART);
        membership_close(&f);
}

/* Whose shards are to move may hold some still, also when the one to which they were to go is gone. */
static void a_member_that_gives_all_away_is_listed_until_it_is_gone(void **state)
{
        (void)state;
        static struct membership f;
        membership_open(&f, 4);
        const struct assign_member giver = *membership_join(&f, 1, 1);
        membership_assign(&f);
        membership_find(&f, 1)->weight = 0;
        membership_join(&f, 2, 1);
        membership_assign(&f);
        assert_int_equal(membership_owns(&f, 2), 4);
        assert_true(assignment_lists(&f.now, giver.nonce));
        assert_int_equal(f.now.givers_count, 1);
        const struct assign_member crashed = *membership_find(&f, 2);
        membership_remove(&f, 2);
        membership_join(&f, 3, 1);
        membership_assign(&f);
        assert_int_equal(membership_owns(&f, 3), 4);
        assert_true(f.now.slots[0].is_firm);
        assert_true(assignment_lists(&f.now, giver.nonce));
        assert_false(assignment_lists(&f.now, crashed.nonce));
        membership_assign(&f);
        assert_false(f.plan.is_changed);
        membership_remove(&f, 1);
        membership_assign(&f);
        assert_true(f.plan.is_changed);
        assert_int_equal(f.plan.moves_count, 0);
        assert_false(assignment_lists(&f.now, giver.nonce));
        membership_assign(&f);
        assert_false(f.plan.is_changed);
        membership_close(&f);
}

static void draining_owners_come_first_in_a_round(void **state)
{
        (void)state;
        static struct membership f;
        membership_open(&f, 12);
        for (uint32_t number = 1; number <= 3; number++)
                membership_join(&f, number, 1);
        membership_assign(&f);
        membership_find(&f, 1)->weight = 0;
        membership_find(&f, 2)->is_draining = true;
        f.input.round_max = 1;
        for (uint32_t round = 0; round < 4; round++) {
                membership_assign(&f);
                assert_int_equal(f.plan.moves_count, 1);
                assert_int_equal(f.plan.moves[0].reason, ASSIGN_DRAIN);
        }
        membership_assign(&f);
        assert_int_equal(f.plan.moves[0].reason, ASSIGN_REBALANCE);
        assert_string_equal(f.plan.moves[0].from.name, "host-1");
        membership_close(&f);
}

static void a_drain_that_cannot_move_yet_is_written_down(void **state)
{
        (void)state;
        static struct membership f;
        membership_open(&f, 4);
        membership_join(&f, 1, 1);
        membership_assign(&f);
        membership_find(&f, 1)->is_draining = true;
        membership_assign(&f);
        assert_true(f.plan.is_changed);
        assert_int_equal(f.plan.moves_count, 0);
        assert_true(assignment_owner(&f.now, 0)->is_draining);
        membership_assign(&f);
        assert_false(f.plan.is_changed);
        /* It is gone, and so it has left. */
        membership_remove(&f, 1);
        membership_join(&f, 2, 1);
        membership_assign(&f);
        assert_int_equal(f.plan.moves_count, 4);
        assert_int_equal(f.plan.moves[0].reason, ASSIGN_LEAVE);
        membership_close(&f);
}

static void who_does_not_see_the_store_keeps_and_gets_nothing(void **state)
{
        (void)state;
        static struct membership f;
        membership_open(&f, 12);
        membership_join(&f, 1, 1);
        membership_join(&f, 2, 1);
        membership_assign(&f);
        membership_find(&f, 1)->sees_store = false;
        membership_join(&f, 3, 1);
        membership_assign(&f);
        assert_int_equal(membership_owns(&f, 1), 6);
        assert_int_equal(membership_owns(&f, 2), 3);
        assert_int_equal(membership_owns(&f, 3), 3);
        membership_remove(&f, 3);
        membership_assign(&f);
        assert_int_equal(membership_owns(&f, 1), 6);
        assert_int_equal(membership_owns(&f, 2), 6);
        /* Nobody sees it: nothing moves, orphans either. */
        membership_find(&f, 2)->sees_store = false;
        membership_assign(&f);
        assert_false(f.plan.is_changed);
        membership_remove(&f, 2);
        membership_assign(&f);
        assert_false(f.plan.is_changed);
        assert_int_equal(f.now.owners_count, 2);
        membership_find(&f, 1)->sees_store = true;
        membership_assign(&f);
        assert_int_equal(membership_owns(&f, 1), 12);
        assert_int_equal(f.now.owners_count, 1);
        membership_close(&f);
}

static void a_blind_owner_within_the_limit_does_not_keep_orphans_waiting(void **state)
{
        (void)state;
        static struct membership f;
        membership_open(&f, 8);
        f.input.members_max = 2;
        membership_join(&f, 1, 1);
        membership_join(&f, 2, 1);
        membership_join(&f, 3, 1);
        membership_assign(&f);
        f.input.members_max = 1;
        membership_find(&f, 1)->sees_store = false;
        membership_remove(&f, 2);
        membership_assign(&f);
        assert_int_equal(membership_owns(&f, 1), 4);
        assert_int_equal(membership_owns(&f, 3), 4);
        membership_close(&f);
}

static void an_owner_keeps_its_place_without_a_shard(void **state)
{
        (void)state;
        static struct membership f;
        membership_open(&f, 10);
        f.input.members_max = 2;
        membership_join(&f, 1, 1);
        membership_join(&f, 2, 1);
        membership_join(&f, 3, 1);
        membership_remove(&f, 1);
        membership_assign(&f);
        membership_join(&f, 4, 1)->created = 0;
        membership_find(&f, 2)->weight = 1000;
        membership_assign(&f);
        assert_int_equal(membership_owns(&f, 2), 10);
        membership_assign(&f);
        assert_false(f.plan.is_changed);
        assert_int_equal(f.plan.moves_left, 0);
        membership_close(&f);
}

static void what_came_last_is_not_sent_on(void **state)
{
        (void)state;
        static struct membership f;
        membership_open(&f, 12);
        membership_join(&f, 1, 1);
        membership_join(&f, 2, 1);
        membership_assign(&f);
        membership_join(&f, 3, 1);
        membership_assign(&f);
        /* What host 1 leaves behind is perhaps still on its way to the others when host 4 joins: it gets older ones. */
        membership_remove(&f, 1);
        membership_assign(&f);
        uint64_t last = f.now.generation;
        membership_join(&f, 4, 1);
        membership_assign(&f);
        assert_int_equal(f.plan.moves_count, 4);
        uint32_t stayed = 0;
        for (uint32_t shard = 0; shard < 12; shard++)
                stayed += f.now.slots[shard].epoch == last;
        assert_int_equal(stayed, 4);
        membership_close(&f);
}

static void generations_start_at_the_time_and_grow(void **state)
{
        (void)state;
        static struct membership f;
        membership_open(&f, 4);
        membership_join(&f, 1, 1);
        membership_assign(&f);
        assert_int_equal(f.now.generation, NOW_S);
        assert_int_equal(f.now.slots[0].epoch, NOW_S);
        membership_join(&f, 2, 1);
        f.input.unix_s = NOW_S - 1000;
        membership_assign(&f);
        assert_int_equal(f.now.generation, NOW_S + 1);
        membership_close(&f);
}

static void a_stale_epoch_is_outbid(void **state)
{
        (void)state;
        static struct membership f;
        struct assign_stale stale[] = { { 2, NOW_S + 500 }, { 3, 7 }, { 99, NOW_S }, { 1, ASSIGN_STALE_MAX },
                { 0, NOW_S } };
        membership_open(&f, 4);
        membership_join(&f, 1, 1);
        membership_assign(&f);
        f.input.stale = stale;
        f.input.stale_count = COUNT(stale);
        membership_assign(&f);
        assert_int_equal(f.plan.moves_count, 0);
        assert_int_equal(f.now.slots[2].epoch, NOW_S + 501);
        /* The very epoch, but under another's nonce. */
        assert_int_equal(f.now.slots[0].epoch, NOW_S + 501);
        assert_int_equal(f.now.slots[3].epoch, NOW_S);
        assert_int_equal(f.now.slots[1].epoch, NOW_S);
        assert_int_equal(f.now.generation, NOW_S + 501);
        /* The same report again says nothing new. */
        membership_assign(&f);
        assert_false(f.plan.is_changed);
        membership_close(&f);
}

static void the_newer_of_two_with_one_nonce_counts(void **state)
{
        (void)state;
        static struct membership f;
        membership_open(&f, 4);
        membership_join(&f, 1, 0);
        membership_join(&f, 2, 1);
        membership_join(&f, 1, 1);
        membership_assign(&f);
        assert_int_equal(membership_owns(&f, 1), 2);
        assert_int_equal(membership_owns(&f, 2), 2);
        membership_close(&f);
}

static void what_cannot_be_is_refused(void **state)
{
        (void)state;
        static struct membership f;
        struct error error;
        membership_open(&f, 4);
        membership_join(&f, 1, 1);
        membership_assign(&f);
        f.input.shards_count = 8;
        assert_int_equal(assign_plan(&f.now, &f.input, &f.plan, &error), -EINVAL);
        assert_contains(error.text, "4 shards, the store has 8");
        f.input.shards_count = 4;
        membership_find(&f, 1)->weight = ASSIGN_WEIGHT_MAX + 1;
        assert_int_equal(assign_plan(&f.now, &f.input, &f.plan, &error), -EINVAL);
        membership_find(&f, 1)->weight = 1;
        f.input.members_count = ASSIGN_MEMBERS_MAX + 1;
        assert_int_equal(assign_plan(&f.now, &f.input, &f.plan, &error), -E2BIG);
        f.input.members_count = 1;
        f.now.generation = TASK_NUMBER_MAX;
        assert_int_equal(assign_plan(&f.now, &f.input, &f.plan, &error), -EOVERFLOW);
        membership_close(&f);
}

static void nobody_to_own_anything_is_a_document_too(void **state)
{
        (void)state;
        static struct membership f;
        membership_open(&f, 4);
        membership_assign(&f);
        assert_true(f.plan.is_changed);
        assert_null(assignment_owner(&f.now, 0));
        membership_assign(&f);
        assert_false(f.plan.is_changed);
        membership_join(&f, 1, 1);
        membership_assign(&f);
        assert_int_equal(membership_owns(&f, 1), 4);
        assert_int_equal(f.plan.moves[0].reason, ASSIGN_JOIN);
        assert_string_equal(f.plan.moves[0].from.name, "");
        assert_false(f.now.slots[0].is_firm);
        membership_close(&f);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(counts_differ_by_at_most_one_as_hosts_come_and_go),
                cmocka_unit_test(weights_share_by_largest_remainder),
                cmocka_unit_test(weight_zero_stands_by_until_nobody_else_is_there),
                cmocka_unit_test(owners_keep_their_place_and_standbys_take_over),
                cmocka_unit_test(orphans_move_at_once_and_firm_and_planned_moves_in_rounds),
                cmocka_unit_test(a_draining_owner_gives_patiently_and_what_is_left_is_a_leave),
                cmocka_unit_test(the_shards_of_one_that_comes_back_under_its_name_are_a_restart),
                cmocka_unit_test(a_member_that_gives_all_away_is_listed_until_it_is_gone),
                cmocka_unit_test(draining_owners_come_first_in_a_round),
                cmocka_unit_test(a_drain_that_cannot_move_yet_is_written_down),
                cmocka_unit_test(who_does_not_see_the_store_keeps_and_gets_nothing),
                cmocka_unit_test(a_blind_owner_within_the_limit_does_not_keep_orphans_waiting),
                cmocka_unit_test(an_owner_keeps_its_place_without_a_shard),
                cmocka_unit_test(what_came_last_is_not_sent_on),
                cmocka_unit_test(generations_start_at_the_time_and_grow),
                cmocka_unit_test(a_stale_epoch_is_outbid),
                cmocka_unit_test(the_newer_of_two_with_one_nonce_counts),
                cmocka_unit_test(what_cannot_be_is_refused),
                cmocka_unit_test(nobody_to_own_anything_is_a_document_too),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
