/* Which of a handler's outages the log tells. */
#include "check.h"

#include "host/handler/outage.h"

static bool began(struct outage *o, uint64_t now_ms)
{
        bool is_to_tell = outage_goes_on(o, "the database is down", now_ms);
        if (is_to_tell)
                outage_told(o, now_ms);
        return is_to_tell;
}

static void the_beginning_and_the_end_are_told_once(void **state)
{
        (void)state;
        struct outage o = { 0 };
        uint64_t lasted_ms = 0;
        assert_false(outage_over(&o, 10, &lasted_ms));
        assert_true(began(&o, 100));
        assert_string_equal(o.text, "the database is down");
        for (uint64_t now_ms = 101; now_ms < 100 + 100 * OUTAGE_PACE_MS; now_ms += 997)
                assert_false(began(&o, now_ms));
        assert_true(outage_over(&o, 100 + 100 * OUTAGE_PACE_MS, &lasted_ms));
        assert_int_equal(lasted_ms, 100 * OUTAGE_PACE_MS);
        assert_false(outage_over(&o, 100 + 100 * OUTAGE_PACE_MS, &lasted_ms));
}

static void one_that_comes_and_goes_does_not_fill_the_log(void **state)
{
        (void)state;
        struct outage o = { 0 };
        uint64_t lasted_ms = 0;
        unsigned lines = 0;
        for (uint64_t now_ms = 1; now_ms < 1 + 10 * OUTAGE_PACE_MS; now_ms += 100) {
                lines += began(&o, now_ms);
                lines += outage_over(&o, now_ms + 50, &lasted_ms);
        }
        assert_int_equal(lines, 20);
}

/* It went unsaid when it began, because another had just been told; it must not stay so. */
static void one_that_lasts_is_told_in_the_end(void **state)
{
        (void)state;
        struct outage o = { 0 };
        uint64_t lasted_ms = 0;
        assert_true(began(&o, 1000));
        assert_true(outage_over(&o, 1100, &lasted_ms));
        assert_false(began(&o, 1200));
        assert_false(outage_over(&o, 1300, &lasted_ms));
        assert_false(began(&o, 1400));
        assert_false(began(&o, 1000 + OUTAGE_PACE_MS - 1));
        assert_true(outage_goes_on(&o, "", 1000 + OUTAGE_PACE_MS));
        assert_int_equal(o.untold, 2);
        outage_told(&o, 1000 + OUTAGE_PACE_MS);
        assert_true(outage_over(&o, 2000 + OUTAGE_PACE_MS, &lasted_ms));
        assert_int_equal(lasted_ms, 600 + OUTAGE_PACE_MS);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_beginning_and_the_end_are_told_once),
                cmocka_unit_test(one_that_comes_and_goes_does_not_fill_the_log),
                cmocka_unit_test(one_that_lasts_is_told_in_the_end),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
