/* Which two shards are exchanged to even out load, and when none are. */
#include "assign_fixture.h"

#define SHARDS 12u

/* Host `number` says that those of its shards which `loads` has have these loads. */
static void say(struct membership *f, uint32_t number, const uint32_t loads[SHARDS])
{
        struct assign_member *m = membership_find(f, number);
        m->load = (struct load_summary){ 0 };
        for (uint32_t shard = 0; shard < SHARDS; shard++) {
                const struct assign_owner *owner = assignment_owner(&f->now, shard);
                if (owner && !memcmp(owner->nonce, m->nonce, sizeof(m->nonce)) && loads[shard])
                        load_summary_add(&m->load, shard, loads[shard]);
        }
        load_summary_end(&m->load);
}

static void say_all(struct membership *f, const uint32_t loads[SHARDS])
{
        for (uint32_t number = 1; number <= f->count; number++)
                say(f, number, loads);
}

/* Hosts 1 to `hosts`, of equal weight, with all shards assigned. */
static void open_with(struct membership *f, uint32_t hosts)
{
        membership_open(f, SHARDS);
        for (uint32_t number = 1; number <= hosts; number++)
                (void)membership_join(f, number, 1);
        membership_assign(f);
        f->input.may_even = true;
}

/* The n-th shard of that host. */
static uint32_t shard_of(struct membership *f, uint32_t number, uint32_t n)
{
        const struct assign_member *m = membership_find(f, number);
        for (uint32_t shard = 0; shard < SHARDS; shard++) {
                const struct assign_owner *owner = assignment_owner(&f->now, shard);
                if (owner && !memcmp(owner->nonce, m->nonce, sizeof(m->nonce)) && !n--)
                        return shard;
        }
        fail_msg("host-%u has fewer shards", number);
        return 0;
}

static uint32_t load_of(struct membership *f, uint32_t number, const uint32_t loads[SHARDS])
{
        uint32_t sum = 0;
        for (uint32_t n = 0; n < membership_owns(f, number); n++)
                sum += loads[shard_of(f, number, n)];
        return sum;
}

/* Until nothing moves any more; returns the number of exchanges. */
static uint32_t even_out(struct membership *f, const uint32_t loads[SHARDS])
{
        for (uint32_t i = 0; i < 100; i++) {
                say_all(f, loads);
                f->input.unix_s += 20;
                membership_assign(f);
                if (!f->plan.moves_count)
                        return i;
                assert_int_equal(f->plan.moves_count, 2);
                for (uint32_t k = 0; k < 2; k++)
                        assert_int_equal(f->plan.moves[k].reason, ASSIGN_LOAD);
                for (uint32_t number = 1; number <= f->count; number++)
                        assert_int_equal(membership_owns(f, number), SHARDS / f->count);
        }
        fail_msg("it does not end");
        return 0;
}

static void three_busy_shards_of_one_host_are_spread(void **state)
{
        (void)state;
        for (uint32_t hosts = 2; hosts <= 4; hosts++) {
                struct membership f;
                uint32_t loads[SHARDS] = { 0 };
                open_with(&f, hosts);
                for (uint32_t n = 0; n < 3; n++)
                        loads[shard_of(&f, 1, n)] = 1000;
                assert_int_equal(even_out(&f, loads), hosts == 2 ? 1 : 2);
                for (uint32_t number = 1; number <= hosts; number++)
                        assert_true(load_of(&f, number, loads) <= (hosts == 2 ? 2000u : 1000u));
                membership_close(&f);
        }
}

static void one_shard_that_is_all_the_load_stays(void **state)
{
        (void)state;
        struct membership f;
        uint32_t loads[SHARDS] = { 0 };
        open_with(&f, 3);
        loads[shard_of(&f, 1, 0)] = 5000;
        assert_int_equal(even_out(&f, loads), 0);
        assert_true(f.plan.is_uneven);
        membership_close(&f);
}

static void the_next_busiest_is_helped_if_the_busiest_cannot_be(void **state)
{
        (void)state;
        struct membership f;
        uint32_t loads[SHARDS] = { 0 };
        open_with(&f, 6);
        loads[shard_of(&f, 1, 0)] = 1500;
        loads[shard_of(&f, 2, 0)] = loads[shard_of(&f, 2, 1)] = 600;
        assert_int_equal(even_out(&f, loads), 1);
        assert_int_equal(load_of(&f, 2, loads), 600);
        membership_close(&f);
}

static void little_load_and_small_differences_are_left_alone(void **state)
{
        (void)state;
        struct membership f;
        uint32_t loads[SHARDS] = { 0 };
        open_with(&f, 2);
        loads[shard_of(&f, 1, 0)] = loads[shard_of(&f, 1, 1)] = 45;
        assert_int_equal(even_out(&f, loads), 0);
        for (uint32_t shard = 0; shard < SHARDS; shard++)
                loads[shard] = 1000;
        loads[shard_of(&f, 1, 0)] = 2000;
        loads[shard_of(&f, 1, 1)] = 2000;
        assert_int_equal(even_out(&f, loads), 0);
        assert_false(f.plan.is_uneven);
        membership_close(&f);
}

static void load_follows_the_weights(void **state)
{
        (void)state;
        struct membership f;
        uint32_t loads[SHARDS] = { 0 };
        membership_open(&f, SHARDS);
        (void)membership_join(&f, 1, 3);
        (void)membership_join(&f, 2, 1);
        membership_assign(&f);
        f.input.may_even = true;
        for (uint32_t n = 0; n < 3; n++)
                loads[shard_of(&f, 1, n)] = 1000;
        loads[shard_of(&f, 2, 0)] = 1000;
        say_all(&f, loads);
        membership_assign(&f);
        assert_false(f.plan.is_changed);
        assert_false(f.plan.is_uneven);
        membership_close(&f);
}

/* It tells nothing, so nobody knows whether it has room. */
static void an_older_host_neither_gives_nor_gets(void **state)
{
        (void)state;
        struct membership f;
        uint32_t loads[SHARDS] = { 0 };
        open_with(&f, 2);
        for (uint32_t n = 0; n < 3; n++)
                loads[shard_of(&f, 1, n)] = 1000;
        say(&f, 1, loads);
        membership_assign(&f);
        assert_false(f.plan.is_changed);
        membership_close(&f);
}

static void a_draining_or_blind_member_gets_nothing_for_load(void **state)
{
        (void)state;
        struct membership f;
        uint32_t loads[SHARDS] = { 0 };
        open_with(&f, 2);
        for (uint32_t n = 0; n < 3; n++)
                loads[shard_of(&f, 1, n)] = 1000;
        say_all(&f, loads);
        membership_find(&f, 2)->sees_store = false;
        membership_assign(&f);
        assert_false(f.plan.is_changed);
        membership_find(&f, 2)->sees_store = true;
        membership_find(&f, 2)->is_draining = true;
        membership_assign(&f);
        for (uint32_t i = 0; i < f.plan.moves_count; i++)
                assert_int_equal(f.plan.moves[i].reason, ASSIGN_DRAIN);
        membership_close(&f);
}

static void a_shard_that_rests_is_not_exchanged(void **state)
{
        (void)state;
        struct membership f;
        uint32_t loads[SHARDS] = { 0 }, resting[SHARDS];
        open_with(&f, 2);
        for (uint32_t n = 0; n < 3; n++)
                loads[shard_of(&f, 1, n)] = 1000;
        for (uint32_t shard = 0; shard < SHARDS; shard++)
                resting[shard] = shard;
        f.input.resting = resting;
        f.input.resting_count = SHARDS;
        assert_int_equal(even_out(&f, loads), 0);
        assert_true(f.plan.is_uneven);
        f.input.resting_count = 0;
        assert_int_equal(even_out(&f, loads), 1);
        membership_close(&f);
}

/* The former owner still runs and tells of the shard, and the new one does not know its load: that counts as the new
 * one's, or a second shard would follow. */
static void a_shard_in_handover_counts_for_its_new_owner(void **state)
{
        (void)state;
        struct membership f;
        uint32_t loads[SHARDS] = { 0 };
        open_with(&f, 2);
        for (uint32_t n = 0; n < 3; n++)
                loads[shard_of(&f, 1, n)] = 1000;
        say_all(&f, loads);
        membership_assign(&f);
        assert_int_equal(f.plan.moves_count, 2);
        /* Both say what they said before. */
        membership_assign(&f);
        assert_false(f.plan.is_changed);
        membership_close(&f);
}

static void count_comes_before_load(void **state)
{
        (void)state;
        struct membership f;
        uint32_t loads[SHARDS] = { 0 };
        open_with(&f, 2);
        for (uint32_t n = 0; n < 3; n++)
                loads[shard_of(&f, 1, n)] = 1000;
        say_all(&f, loads);
        membership_join(&f, 3, 1)->load.is_known = true;
        f.input.round_max = 1;
        for (uint32_t i = 0; i < 3 + 1; i++) {
                membership_assign(&f);
                for (uint32_t k = 0; k < f.plan.moves_count; k++)
                        assert_int_equal(f.plan.moves[k].reason, i ? ASSIGN_REBALANCE : ASSIGN_JOIN);
                if (!f.plan.moves_left)
                        break;
        }
        assert_int_equal(f.plan.moves_left, 0);
        membership_close(&f);
}

/* Whatever members say: at most two shards move, and counts stay. */
static void lies_cost_one_exchange_at_most(void **state)
{
        (void)state;
        struct membership f;
        uint64_t random = 99;
        open_with(&f, 4);
        for (uint32_t i = 0; i < 20000; i++) {
                for (uint32_t k = 0; k < f.count; k++) {
                        struct load_summary *l = &f.members[k].load;
                        uint32_t shard = 0;
                        *l = (struct load_summary){ .is_known = i % 5 != k };
                        for (; l->busy_count < LOAD_BUSY_MAX; l->busy_count++) {
                                random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
                                shard += 1 + (random >> 40) % 900;
                                l->busy[l->busy_count] = (struct load_shard){ i % 3 ? shard % SHARDS : shard,
                                        (uint32_t)((random >> 33) % (i % 2 ? LOAD_MAX : 1000)) };
                        }
                        l->total = (uint32_t)((random >> 20) % LOAD_MAX);
                }
                membership_assign(&f);
                assert_true(f.plan.moves_count == 0 || f.plan.moves_count == 2);
                for (uint32_t number = 1; number <= f.count; number++)
                        assert_int_equal(membership_owns(&f, number), SHARDS / 4);
        }
        membership_close(&f);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(three_busy_shards_of_one_host_are_spread),
                cmocka_unit_test(one_shard_that_is_all_the_load_stays),
                cmocka_unit_test(the_next_busiest_is_helped_if_the_busiest_cannot_be),
                cmocka_unit_test(little_load_and_small_differences_are_left_alone),
                cmocka_unit_test(load_follows_the_weights),
                cmocka_unit_test(an_older_host_neither_gives_nor_gets),
                cmocka_unit_test(a_draining_or_blind_member_gets_nothing_for_load),
                cmocka_unit_test(a_shard_that_rests_is_not_exchanged),
                cmocka_unit_test(a_shard_in_handover_counts_for_its_new_owner),
                cmocka_unit_test(count_comes_before_load),
                cmocka_unit_test(lies_cost_one_exchange_at_most),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
