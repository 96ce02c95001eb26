/* What a host measures of its shards' load, and when it tells the others. */
#include "check.h"

#include "base/clock.h"
#include "host/membership/load.h"
#include "host/shard/shard_load.h"

#define SAMPLE_MS 3000u

/* A handler is busy for `permille` of the time, in calls of 10 ms. */
static void work_for(struct shard_load *l, uint64_t ms, uint32_t permille)
{
        static uint64_t now_ns = 1;
        for (uint64_t at = 0; at < ms; at += SAMPLE_MS) {
                uint64_t busy_ns = (uint64_t)SAMPLE_MS * NS_PER_MS / 1000 * permille;
                for (uint64_t used = 0; used + 10 * NS_PER_MS <= busy_ns; used += 10 * NS_PER_MS)
                        shard_load_add(l, now_ns += NS_PER_MS, 10 * NS_PER_MS);
                shard_load_sample(l, SAMPLE_MS, true);
        }
}

static void assert_near(uint64_t value, uint64_t expected)
{
        if (value < expected * 97 / 100 || value > expected * 103 / 100)
                fail_msg("%llu is not about %llu", (unsigned long long)value, (unsigned long long)expected);
}

static void the_load_is_the_seat_time_per_second(void **state)
{
        (void)state;
        struct shard_load l = { 0 };
        shard_load_sample(&l, SAMPLE_MS, true);
        work_for(&l, 60000, 2500);
        assert_near(l.mean, 2500);
        work_for(&l, 120000, 0);
        assert_true(l.mean < 10);
}

/* Otherwise a shard that has just moved would look idle, and its new owner would get another. */
static void a_new_shard_is_measured_from_its_first_sample_on(void **state)
{
        (void)state;
        struct shard_load l = { 0 };
        shard_load_sample(&l, SAMPLE_MS, true);
        work_for(&l, SAMPLE_MS, 800);
        assert_near(l.mean, 800);
}

static void what_was_counted_of_part_of_an_interval_is_left_out(void **state)
{
        (void)state;
        struct shard_load l = { 0 };
        shard_load_add(&l, 1, 5 * NS_PER_S);
        shard_load_sample(&l, SAMPLE_MS, true);
        assert_int_equal(l.mean, 0);
        shard_load_sample(&l, SAMPLE_MS, true);
        assert_int_equal(l.mean, 0);
}

static void a_shard_that_is_lost_has_no_load(void **state)
{
        (void)state;
        struct shard_load l = { 0 };
        shard_load_sample(&l, SAMPLE_MS, true);
        work_for(&l, 60000, 1000);
        shard_load_sample(&l, SAMPLE_MS, false);
        assert_int_equal(l.mean, 0);
}

static void the_tasks_of_a_batch_count_once(void **state)
{
        (void)state;
        struct shard_load l = { 0 };
        shard_load_sample(&l, 1000, true);
        for (int i = 0; i < 100; i++)
                shard_load_add(&l, 77, NS_PER_S / 2);
        shard_load_sample(&l, 1000, true);
        assert_int_equal(l.mean, 505); /* and for each what a task costs its host */
}

static void an_endless_call_is_no_peak(void **state)
{
        (void)state;
        struct shard_load l = { 0 };
        shard_load_sample(&l, SAMPLE_MS, true);
        work_for(&l, 60000, 100);
        shard_load_add(&l, 5, UINT64_MAX);
        shard_load_sample(&l, SAMPLE_MS, true);
        assert_true(l.mean < 1000);
}

static struct load_summary summary(const uint32_t *loads, uint32_t count)
{
        struct load_summary s = { 0 };
        for (uint32_t i = 0; i < count; i++)
                load_summary_add(&s, i, loads[i]);
        load_summary_end(&s);
        return s;
}

static void the_busiest_shards_are_told_of_in_order(void **state)
{
        (void)state;
        uint32_t loads[40];
        for (uint32_t i = 0; i < 40; i++)
                loads[i] = i % 4 ? 10 : 100 + i;
        struct load_summary s = summary(loads, 40);
        assert_int_equal(s.total, 30 * 10 + 10 * 100 + (0 + 4 + 8 + 12 + 16 + 20 + 24 + 28 + 32 + 36));
        assert_int_equal(s.busy_count, LOAD_BUSY_MAX);
        for (uint32_t i = 0; i < s.busy_count; i++)
                assert_int_equal(s.busy[i].shard, 8 + 4 * i);
        assert_int_equal(load_summary_find(&s, 36), 136);
        assert_int_equal(load_summary_find(&s, 4), 0);
}

/* Which of equal shards are the busiest is chance, and would be told again and again. */
static void none_of_many_equal_shards_is_told_of(void **state)
{
        (void)state;
        uint32_t loads[40];
        for (uint32_t i = 0; i < 40; i++)
                loads[i] = 1000;
        assert_int_equal(summary(loads, 40).busy_count, 0);
}

static void sums_are_limited(void **state)
{
        (void)state;
        uint32_t loads[] = { LOAD_MAX, LOAD_MAX };
        assert_int_equal(summary(loads, 2).total, LOAD_MAX);
}

static void only_what_has_changed_much_is_told(void **state)
{
        (void)state;
        static const struct {
                uint32_t before[3], after[3];
                bool differs;
        } cases[] = {
                { { 0, 0, 0 }, { 0, 0, 0 }, false },
                { { 0, 0, 0 }, { 40, 0, 0 }, false },
                { { 0, 0, 0 }, { 60, 0, 0 }, true },
                { { 1000, 1000, 1000 }, { 1100, 900, 1200 }, false },
                { { 1000, 1000, 1000 }, { 1300, 1200, 1200 }, true },
                { { 1000, 1000, 1000 }, { 1000, 1000, 0 }, true },
                { { 1000, 1000, 1000 }, { 1500, 500, 1000 }, true }, /* the same sum, but in another shard */
                { { 1000, 0, 0 }, { 0, 0, 1000 }, true },
        };
        for (size_t i = 0; i < COUNT(cases); i++) {
                struct load_summary before = summary(cases[i].before, 3), after = summary(cases[i].after, 3);
                if (load_summary_differs(&before, &after) != cases[i].differs)
                        fail_msg("case %zu", i);
        }
        struct load_summary none = { 0 }, idle = { .is_known = true };
        assert_true(load_summary_differs(&none, &idle));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_load_is_the_seat_time_per_second),
                cmocka_unit_test(a_new_shard_is_measured_from_its_first_sample_on),
                cmocka_unit_test(what_was_counted_of_part_of_an_interval_is_left_out),
                cmocka_unit_test(a_shard_that_is_lost_has_no_load),
                cmocka_unit_test(the_tasks_of_a_batch_count_once),
                cmocka_unit_test(an_endless_call_is_no_peak),
                cmocka_unit_test(the_busiest_shards_are_told_of_in_order),
                cmocka_unit_test(none_of_many_equal_shards_is_told_of),
                cmocka_unit_test(sums_are_limited),
                cmocka_unit_test(only_what_has_changed_much_is_told),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
