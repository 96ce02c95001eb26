/* A point in time as people write it. */
#include "check.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/timestamp.h"

#define NOW UINT64_C(1794906000000) /* 2026-11-17T09:00:00Z */

static uint64_t parse(const char *text, bool may_be_local)
{
        uint64_t ms = 0;
        struct error error = { "" };
        if (timestamp_parse(text, may_be_local, NOW, &ms, &error) < 0) {
                assert_true(*error.text);
                return UINT64_MAX;
        }
        return ms;
}

static void zone(const char *name)
{
        assert_int_equal(setenv("TZ", name, 1), 0);
        tzset();
}

static void a_time_with_a_zone_is_the_same_everywhere(void **state)
{
        (void)state;
        zone("CET-1CEST,M3.5.0,M10.5.0/3");
        assert_int_equal(parse("2026-11-17T09:00:00Z", false), NOW);
        assert_int_equal(parse("2026-11-17t09:00z", false), NOW);
        assert_int_equal(parse("2026-11-17 10:00:00+01:00", false), NOW);
        assert_int_equal(parse("2026-11-17T03:30:00-05:30", false), NOW);
        assert_int_equal(parse("2026-11-17T09:00:00.5Z", false), NOW + 500);
        assert_int_equal(parse("2026-11-17T09:00:00.123456Z", false), NOW + 123);
        assert_int_equal(parse("1970-01-01T00:00:00Z", false), 0);
        assert_int_equal(parse("2028-02-29T00:00:00Z", false), UINT64_C(1835395200000));
}

static void what_is_no_time_is_refused(void **state)
{
        static const char *const wrong[] = { "", "x", "2026-11-17", "2026-11-17T", "2026-11-17T9:00Z",
                "2026-13-01T00:00Z", "2026-02-29T00:00Z", "2026-04-31T00:00Z", "2026-11-17T24:00Z", "2026-11-17T09:60Z",
                "2026-11-17T09:00:60Z", "2026-11-17T09:00:00.Z", "2026-11-17T09:00:00+1:00", "2026-11-17T09:00:00Z ",
                "1969-12-31T23:59:59Z", "1970-01-01T00:00:00+01:00", "09:00Z", "9:00", "10m", "1794906000" };
        (void)state;
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
                assert_int_equal(parse(wrong[i], true), UINT64_MAX);
        assert_int_equal(parse("2026-11-17T09:00:00", false), UINT64_MAX); /* whose nine o'clock? */
        assert_int_equal(parse("09:00", false), UINT64_MAX);
}

static void a_local_time_is_by_the_zone_of_the_process(void **state)
{
        (void)state;
        zone("CET-1CEST,M3.5.0,M10.5.0/3");
        assert_int_equal(parse("2026-11-17 10:00", true), NOW);
        assert_int_equal(parse("2026-07-01T10:00:00", true), UINT64_C(1782892800000)); /* 08:00 UTC: summer */
        /* The next one: it is 10:00 here. */
        assert_int_equal(parse("10:01", true), NOW + 60000);
        assert_int_equal(parse("10:00", true), NOW + 86400000);
        assert_int_equal(parse("09:59:30", true), NOW + 86400000 - 30000);
        zone("UTC0");
        assert_int_equal(parse("2026-11-17 09:00", true), NOW);
        zone("NPT-5:45");
        assert_int_equal(parse("2026-11-17 14:45", true), NOW);
}

static void a_time_that_the_clock_skips_or_shows_twice_wants_its_zone(void **state)
{
        uint64_t ms;
        struct error error = { "" };
        (void)state;
        zone("CET-1CEST,M3.5.0,M10.5.0/3");
        assert_int_equal(timestamp_parse("2027-03-28 02:30", true, NOW, &ms, &error), -EINVAL);
        assert_non_null(strstr(error.text, "does not show"));
        assert_int_equal(timestamp_parse("2027-10-31 02:30", true, NOW, &ms, &error), -EINVAL);
        assert_non_null(strstr(error.text, "twice"));
        assert_int_equal(parse("2027-10-31 02:30:00+02:00", true) + 3600000, parse("2027-10-31 02:30:00+01:00", true));
        assert_true(parse("2027-10-31 03:00", true) != UINT64_MAX);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_time_with_a_zone_is_the_same_everywhere),
                cmocka_unit_test(what_is_no_time_is_refused),
                cmocka_unit_test(a_local_time_is_by_the_zone_of_the_process),
                cmocka_unit_test(a_time_that_the_clock_skips_or_shows_twice_wants_its_zone),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
