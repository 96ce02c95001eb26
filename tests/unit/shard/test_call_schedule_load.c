/* How often shards call the store, and how many at once, by what the host has to do and how busy the store is. */
#include "schedule_hall.h"

/* Every so often one shard more wants to call than may at once, and has to wait so long, for `total_ms`. */
static void wait_for(struct hall *hall, uint64_t total_ms, uint64_t every_ms, uint64_t took_ms)
{
        uint32_t shards[SHARDS];
        uint64_t end_ms = hall->now_ms + total_ms;
        while (hall->now_ms < end_ms) {
                uint64_t began_ms = hall->now_ms;
                for (uint32_t i = 0; i <= CALLS_MAX; i++) {
                        hall->rigs[i].shard.has_work = true;
                        shard_stir(&hall->rigs[i].shard);
                }
                assert_int_equal(turn(hall, shards), CALLS_MAX);
                set_time(hall, began_ms + took_ms);
                for (uint32_t i = 0; i < CALLS_MAX; i++)
                        reply_advance(&hall->rigs[shards[i]], STORE_OK);
                assert_int_equal(turn(hall, shards), 1);
                reply_advance(&hall->rigs[shards[0]], STORE_OK);
                assert_int_equal(turn(hall, shards), 0);
                set_time(hall, began_ms + every_ms);
        }
        (void)turn(hall, shards);
}

static void claims_are_spaced_by_the_load_of_the_store(void **state)
{
        (void)state;
        struct hall *hall = hall_open();
        own_all(hall);
        assert_ptr_equal(hall->rigs[0].shard.pace_max_ms, &hall->schedule.pace_max_ms);
        wait_for(hall, 100, 10, 1);
        assert_int_equal(hall->schedule.pace_max_ms, 0);
        wait_for(hall, 20, 10, 9);
        assert_in_range(hall->schedule.pace_max_ms, 1, 2); /* a step at a time */
        wait_for(hall, 100, 10, 10);
        assert_int_equal(hall->schedule.pace_max_ms, 10);
        wait_for(hall, 40, 10, 5);
        assert_in_range(hall->schedule.pace_max_ms, 7, 9);
        /* After a pause nothing is left of it. */
        set_time(hall, hall->now_ms + 1000);
        wait_for(hall, 10, 10, 1);
        assert_int_equal(hall->schedule.pace_max_ms, 0);
        hall_close(hall);
}

/* `count` shards where tasks keep coming, looked at for long enough. */
static void keep_busy(struct hall *hall, uint32_t count)
{
        for (uint32_t i = 0; i < SHARDS; i++) {
                hall->rigs[i].shard.pace_ms = i < count;
                shard_stir(&hall->rigs[i].shard);
        }
        call_schedule_look(&hall->schedule, hall->now_ms);
        set_time(hall, hall->now_ms + 100);
        call_schedule_look(&hall->schedule, hall->now_ms);
}

static void the_more_shards_are_busy_the_less_each_claims_ahead(void **state)
{
        (void)state;
        struct hall *hall = hall_open();
        own_all(hall);
        assert_ptr_equal(hall->rigs[0].shard.stock_max, &hall->schedule.stock_max);
        assert_int_equal(hall->schedule.stock_max, SHARD_STOCK_MAX);
        keep_busy(hall, 1);
        assert_int_equal(hall->schedule.stock_max, SHARD_STOCK_MAX);
        keep_busy(hall, 32);
        assert_int_equal(hall->schedule.stock_max, 128);
        keep_busy(hall, SHARDS);
        assert_int_equal(hall->schedule.stock_max, 64);
        hall_close(hall);
}

/* Of `busy` shards with work so many want a call, which is not answered for 100 ms. */
static bool is_store_busy_with(struct hall *hall, uint32_t busy, uint32_t calls)
{
        uint32_t shards[SHARDS];
        keep_busy(hall, busy);
        for (uint32_t i = 0; i < calls; i++)
                shard_rang(&hall->rigs[i].shard);
        uint32_t made = turn(hall, shards);
        set_time(hall, hall->now_ms + 100);
        call_schedule_look(&hall->schedule, hall->now_ms);
        bool is_busy = hall->schedule.is_store_busy;
        answer_all(hall, shards, made);
        return is_busy;
}

static void the_store_is_busy_if_most_shards_with_work_wait_for_it(void **state)
{
        (void)state;
        struct hall *hall = hall_open();
        own_all(hall);
        assert_ptr_equal(hall->rigs[0].shard.is_store_busy, &hall->schedule.is_store_busy);
        assert_false(is_store_busy_with(hall, 40, 0));
        assert_true(is_store_busy_with(hall, 40, 20));
        assert_false(is_store_busy_with(hall, 40, 19));
        assert_true(is_store_busy_with(hall, 4, 4));
        assert_false(is_store_busy_with(hall, 3, 3)); /* a few load no store */
        hall_close(hall);
}

/* Claims bring so many tasks a second, for long enough.  Returns how many calls are then made at once. */
static uint32_t calls_at_rate(struct hall *hall, uint64_t rate)
{
        enum { LOOK_MS = 16 };
        uint32_t shards[SHARDS];
        for (unsigned i = 0; i < 50; i++) {
                hall->rigs[i].shard.brought = (uint32_t)(rate * LOOK_MS / 1000);
                shard_stir(&hall->rigs[i].shard);
                assert_int_equal(turn(hall, shards), 0);
                set_time(hall, hall->now_ms + LOOK_MS);
        }
        for (uint32_t i = 0; i < SHARDS; i++)
                shard_rang(&hall->rigs[i].shard);
        uint32_t made = turn(hall, shards);
        answer_all(hall, shards, made);
        return made;
}

/* A store that answers those who submit only after the calls that it has read. */
static void the_more_tasks_come_the_fewer_calls_are_under_way(void **state)
{
        (void)state;
        struct hall *hall = hall_open();
        own_all(hall);
        hall->schedule.calls_max = 16;
        assert_int_equal(calls_at_rate(hall, 0), 16);
        assert_int_equal(calls_at_rate(hall, 600000), 16); /* not such a store */
        hall->schedule.calls_group = 16;
        assert_int_equal(calls_at_rate(hall, 0), 16);
        assert_int_equal(calls_at_rate(hall, 140000), 16);
        assert_in_range(calls_at_rate(hall, 300000), 8, 9);
        assert_int_equal(calls_at_rate(hall, 600000), 4);
        assert_int_equal(calls_at_rate(hall, 5000000), 4);
        set_time(hall, hall->now_ms + 1000); /* it has been quiet for long */
        assert_int_equal(calls_at_rate(hall, 0), 16);
        hall_close(hall);
}

static void a_far_store_gets_its_calls_at_any_rate(void **state)
{
        (void)state;
        struct hall *hall = hall_open();
        own_all(hall);
        hall->schedule.calls_max = hall->schedule.calls_group = 16;
        hall->schedule.trip_ms = 1;
        hall->schedule.trip_since_ms = hall->now_ms;
        assert_int_equal(calls_at_rate(hall, 600000), 16);
        hall_close(hall);
}

static void tasks_of_all_claims_count(void **state)
{
        (void)state;
        static const char large[4096];
        struct hall *hall = hall_open();
        own_all(hall);
        for (uint64_t seq = 1; seq <= 2; seq++) {
                shard_rang(&hall->rigs[3].shard);
                hand(&hall->rigs[3], seq, "k", "a");
                send_advance(&hall->rigs[3]);
                reply_advance(&hall->rigs[3], STORE_OK);
        }
        call_schedule_look(&hall->schedule, hall->now_ms);
        assert_int_equal(hall->schedule.brought, 2);
        call_schedule_look(&hall->schedule, hall->now_ms);
        assert_int_equal(hall->schedule.brought, 2); /* each once */
        /* A large one costs the store as much as several. */
        shard_rang(&hall->rigs[3].shard);
        hand(&hall->rigs[3], 3, "k", "a");
        hall->rigs[3].tasks[0].envelope.payload = (struct span){ large, sizeof(large) };
        send_advance(&hall->rigs[3]);
        reply_advance(&hall->rigs[3], STORE_OK);
        call_schedule_look(&hall->schedule, hall->now_ms);
        assert_int_equal(hall->schedule.brought, 2 + 1 + 16);
        hall_close(hall);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(claims_are_spaced_by_the_load_of_the_store),
                cmocka_unit_test(the_more_shards_are_busy_the_less_each_claims_ahead),
                cmocka_unit_test(the_store_is_busy_if_most_shards_with_work_wait_for_it),
                cmocka_unit_test(the_more_tasks_come_the_fewer_calls_are_under_way),
                cmocka_unit_test(a_far_store_gets_its_calls_at_any_rate),
                cmocka_unit_test(tasks_of_all_claims_count),
        };
        return cmocka_run_group_tests_name("load", tests, NULL, NULL);
}
