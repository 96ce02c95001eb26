/* What one host does with the shares that it was given, with a clock of the test's own: none is used after its time,
 * and each value of a limit has a name. */
#include "check.h"

#include <errno.h>

#include "limit_fixture.h"

/* One that has been given `granted` of what it asked for, at 1000 ms. */
static void begin_with(struct limits *l, const struct limit_amount *amount, uint64_t granted, uint64_t left_ms)
{
        struct strings by = { 0 };
        struct limit_hold hold;
        char name[STORE_NAME_MAX + 1];
        struct limit_task task = { .until_ms = 1500 };
        struct store_limit_item items[STORE_LIMIT_ITEMS];
        uint32_t count = 0;
        strings_add(&by, "x");
        *l = (struct limits){ .ttl_ms = TTL_MS };
        limit_define(limits_ensure(l, "x"), amount, NULL, GRACE_MS, 10);
        limits_serve(l, 0, &by);
        limits_set_room(l, 0, 4);
        assert_int_equal(limits_start(l, &task, 1000, &hold, name), LIMIT_WAIT);
        limits_pass_begin(l);
        for (unsigned i = 0; i < 3; i++)
                assert_int_equal(limits_look(l, &task, 1000), LIMIT_WAIT);
        (void)limits_pass_end(l, 1000);
        struct limit *limit = limits_next_call(l, 1000, items, &count);
        assert_non_null(limit);
        assert_int_equal(count, 1);
        assert_int_equal(items[0].want, 3);
        items[0].granted = granted;
        items[0].left_ms = left_ms;
        struct store_limit_take take = { .used = limit->store, .items = items, .items_count = 1 };
        limits_answered(l, limit, &take, 1000);
        strings_free(&by);
}

static bool may_start(struct limits *l, uint64_t until_ms, uint64_t now_ms)
{
        struct limit_task task = { .until_ms = until_ms };
        struct limit_hold hold;
        char name[STORE_NAME_MAX + 1];
        return limits_start(l, &task, now_ms, &hold, name) == LIMIT_START;
}

static void shares_are_used_in_their_time_or_not_at_all(void **state)
{
        (void)state;
        struct limits l;
        struct limit_amount rate = rate_of(100, 20), slots = at_once(9);
        begin_with(&l, &rate, 3, 95);
        assert_true(may_start(&l, 1500, 1094));
        assert_false(may_start(&l, 1500, 1095));
        limits_free(&l);
        begin_with(&l, &slots, 3, 700);
        assert_true(may_start(&l, 1700, 1100));
        assert_false(may_start(&l, 1701, 1100)); /* its shard's lease lasts longer than the share */
        assert_false(may_start(&l, 1700, 1700));
        limits_free(&l);
        begin_with(&l, &slots, 3, 700);
        assert_true(limits_close(&l, &(struct limit_task){ 0 }, 50, 1000));
        assert_false(may_start(&l, 1500, 1049));
        assert_true(may_start(&l, 1500, 1050));
        limits_free(&l);
}

static void what_is_in_use_is_said_when_it_is_renewed(void **state)
{
        (void)state;
        struct limits l;
        struct limit_amount slots = at_once(9);
        struct store_limit_item items[STORE_LIMIT_ITEMS];
        uint32_t count = 0;
        begin_with(&l, &slots, 3, 700);
        assert_true(may_start(&l, 1500, 1001));
        assert_true(may_start(&l, 1500, 1001));
        assert_non_null(limits_next_call(&l, 1400, items, &count));
        assert_int_equal(items[0].keep, 3); /* the third may be used before the answer is here */
        assert_true(may_start(&l, 1500, 1401));
        limits_free(&l);
}

/* The share is spare, and a call gives it back. */
static void give_back(struct limits *l, struct store_limit_take *take, struct store_limit_item *items)
{
        struct limit_amount slots = at_once(9);
        uint32_t count = 0;
        begin_with(l, &slots, 3, 900);
        for (uint64_t now_ms = 1002; now_ms < 1200; now_ms += 190) {
                limits_pass_begin(l);
                (void)limits_pass_end(l, now_ms);
        }
        struct limit *limit = limits_next_call(l, 1200, items, &count);
        assert_non_null(limit);
        assert_int_equal(items[0].want, 0);
        *take = (struct store_limit_take){ .used = limit->store, .items = items, .items_count = 1 };
}

static void what_is_being_given_back_is_not_used(void **state)
{
        (void)state;
        struct limits l;
        struct store_limit_take take;
        struct store_limit_item items[STORE_LIMIT_ITEMS];
        give_back(&l, &take, items);
        assert_false(may_start(&l, 1500, 1201));
        take.request.status = -ETIMEDOUT; /* It may have been done. */
        limits_failed(&l, limits_find(&l, "x"), &take, 1300);
        assert_false(may_start(&l, 1500, 1301));
        limits_free(&l);
}

static void a_name_that_is_found_is_looked_at_again(void **state)
{
        (void)state;
        struct limits l;
        struct limit_amount slots = at_once(9);
        begin_with(&l, &slots, 3, 900);
        for (unsigned i = 0; i < 3; i++)
                assert_true(may_start(&l, 1500, 1001));
        limits_pass_begin(&l);
        (void)limits_pass_end(&l, 1002);
        assert_false(limits_pass_is_due(&l, 1300)); /* before the shares are to be renewed */
        l.buckets->wake_left = 0;
        assert_false(limits_name_opens(&l, SPAN_TEXT("limit:x"), 8));
        assert_true(limits_pass_is_due(&l, 1300));
        limits_free(&l);
}

/* How many keys that wait in the store may be woken. */
static unsigned opens_for(struct limits *l, uint64_t now_ms)
{
        unsigned count = 0;
        limits_pass_begin(l);
        (void)limits_pass_end(l, now_ms);
        l->looked_ms = now_ms;
        while (limits_name_opens(l, SPAN_TEXT("limit:x"), 1))
                count++;
        return count;
}

/* What waits in the store is woken by a few calls, in which many short tasks could have run. */
static void the_shorter_tasks_are_the_more_of_them_are_woken(void **state)
{
        (void)state;
        struct limits l;
        struct limit_amount slots = at_once(1);
        begin_with(&l, &slots, 1, 5000);
        assert_int_equal(opens_for(&l, 1001), 2);
        for (uint64_t now_ms = 1010; now_ms < 1210; now_ms += 10) {
                struct limit_task task = { .until_ms = 1500 };
                struct limit_hold hold;
                char name[STORE_NAME_MAX + 1];
                assert_int_equal(limits_start(&l, &task, now_ms, &hold, name), LIMIT_START);
                limits_end(&l, &hold);
                limits_pass_begin(&l);
                (void)limits_pass_end(&l, now_ms);
        }
        unsigned many = opens_for(&l, 1210);
        assert_true(many >= 16 && many <= 24); /* 10 in 100 ms */
        assert_int_equal(opens_for(&l, 1500), 2);
        limits_free(&l);
}

static void look_at(struct limits *l, uint64_t now_ms)
{
        limits_pass_begin(l);
        (void)limits_pass_end(l, now_ms);
}

/* Others get the share a grace after its end, so what runs with it has to be gone by then. */
static void a_task_whose_share_has_ended_is_stopped(void **state)
{
        (void)state;
        struct limits l;
        struct limit_amount slots = at_once(9);
        struct limit_task task = { .until_ms = 1500 };
        struct limit_hold hold, other;
        char name[STORE_NAME_MAX + 1];
        begin_with(&l, &slots, 2, 700);
        assert_int_equal(limits_start(&l, &task, 1000, &hold, name), LIMIT_START);
        assert_int_equal(limits_start(&l, &task, 1000, &other, name), LIMIT_START);
        look_at(&l, 1699);
        assert_false(limits_has_lost(&l));
        assert_false(limits_stop(&l, &hold));
        assert_true(limits_pass_is_due(&l, 1700));
        look_at(&l, 1700);
        assert_true(limits_has_lost(&l));
        assert_true(limits_stop(&l, &hold));
        assert_false(limits_stop(&l, &hold)); /* it knows */
        assert_true(limits_stop(&l, &other));
        look_at(&l, 1701);
        assert_false(limits_has_lost(&l));
        limits_end(&l, &hold);
        limits_end(&l, &other);
        assert_int_equal(l.buckets->in_use, 0);
        assert_int_equal(l.buckets->stopping, 0);
        limits_free(&l);
}

/* The call that is under way may take away what it does not say is kept. */
static void what_is_kept_may_be_used_though_no_answer_comes(void **state)
{
        (void)state;
        struct limits l;
        struct limit_amount slots = at_once(9);
        struct store_limit_item items[STORE_LIMIT_ITEMS];
        uint32_t count = 0;
        begin_with(&l, &slots, 2, 900);
        assert_true(limits_close(&l, &(struct limit_task){ 0 }, 50, 1100));
        struct limit *limit = limits_next_call(&l, 1100, items, &count);
        assert_non_null(limit);
        uint64_t kept = items[0].keep;
        struct store_limit_take take = { .used = limit->store, .items = items, .items_count = 1 };
        take.request.status = -ETIMEDOUT;
        limits_failed(&l, limit, &take, 1200);
        for (uint64_t i = 0; i < kept; i++)
                assert_true(may_start(&l, 1500, 1200));
        assert_false(may_start(&l, 1500, 1200));
        limits_free(&l);
}

static void what_is_taken_over_counts_from_one_owner_to_the_next(void **state)
{
        (void)state;
        struct limits l;
        struct limit_amount slots = at_once(9);
        struct limit_task task = { .until_ms = 1500 };
        struct limit_hold hold;
        struct store_limit_item items[STORE_LIMIT_ITEMS];
        uint32_t count = 0;
        begin_with(&l, &slots, 0, 0);
        limits_adopt(&l, &task, &hold);
        look_at(&l, 2000);
        assert_false(limits_has_lost(&l)); /* its home has yet to hear of it */
        struct limit *limit = limits_next_call(&l, 2000, items, &count);
        assert_non_null(limit);
        assert_int_equal(items[0].want, 1);
        assert_int_equal(items[0].keep, 1);
        items[0].granted = 1;
        items[0].left_ms = 5000;
        items[0].is_over = true;
        struct store_limit_take take = { .used = limit->store, .items = items, .items_count = 1 };
        limits_answered(&l, limit, &take, 2000);
        assert_int_equal(l.buckets->adopted, 0);
        assert_false(may_start(&l, 2500, 2001));
        /* The next owner of its shard may need a while to take it up. */
        limits_pass_on(&l, &hold, 3000);
        look_at(&l, 3999);
        assert_int_equal(l.buckets->in_use, 1);
        assert_true(limits_pass_is_due(&l, 4000));
        look_at(&l, 4000);
        assert_int_equal(l.buckets->in_use, 0);
        limits_free(&l);
}

static void a_home_is_told_less_than_is_allowed(void **state)
{
        (void)state;
        struct store_limit home = { 0 };
        struct limit_amount amount = rate_of(100, 20);
        assert_int_equal(limit_plan(&amount, 0, 10, &home), 95);
        assert_int_equal(home.burst, 10);
        assert_int_equal(home.period_ms, 1000);
        amount = rate_of(2, 1);
        assert_int_equal(limit_plan(&amount, 0, 10, &home), LIMIT_LAG_MIN_MS);
        assert_int_equal(home.burst, 1);
        assert_int_equal(home.period_ms, 1040);
}

static void values_are_apart_and_long_ones_have_a_short_name(void **state)
{
        (void)state;
        struct limits l = { .ttl_ms = TTL_MS };
        struct limit_amount amount = at_once(1);
        struct strings by = { 0 };
        char name[STORE_NAME_MAX + 1] = "";
        char long_key[300];
        struct limit_hold hold;
        strings_add(&by, "smtp");
        limit_define(limits_ensure(&l, "smtp"), &amount, "header.tenant", GRACE_MS, 10);
        limits_serve(&l, 0, &by);
        struct limit_task task = { .is_to_go = true, .headers = SPAN_TEXT("header.a:1\nheader.tenant:seven\n") };
        assert_int_equal(limits_start(&l, &task, 1, &hold, name), LIMIT_AWAY);
        assert_string_equal(name, "limit:smtp/seven");
        limit_define(limits_find(&l, "smtp"), &amount, "key", GRACE_MS, 10);
        memset(long_key, 'x', sizeof(long_key));
        task.key = (struct span){ long_key, sizeof(long_key) };
        assert_int_equal(limits_start(&l, &task, 1, &hold, name), LIMIT_AWAY);
        assert_int_equal(strlen(name), strlen("limit:smtp/#0123456789abcdef"));
        task.key = SPAN_TEXT("with space");
        assert_int_equal(limits_start(&l, &task, 1, &hold, name), LIMIT_AWAY);
        assert_true(store_name_is_good(span_of_text(name)));
        assert_int_equal(l.buckets_count, 3);
        strings_free(&by);
        limits_free(&l);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(shares_are_used_in_their_time_or_not_at_all),
                cmocka_unit_test(what_is_in_use_is_said_when_it_is_renewed),
                cmocka_unit_test(what_is_being_given_back_is_not_used),
                cmocka_unit_test(a_name_that_is_found_is_looked_at_again),
                cmocka_unit_test(the_shorter_tasks_are_the_more_of_them_are_woken),
                cmocka_unit_test(a_task_whose_share_has_ended_is_stopped),
                cmocka_unit_test(what_is_kept_may_be_used_though_no_answer_comes),
                cmocka_unit_test(what_is_taken_over_counts_from_one_owner_to_the_next),
                cmocka_unit_test(a_home_is_told_less_than_is_allowed),
                cmocka_unit_test(values_are_apart_and_long_ones_have_a_short_name),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
