/* When schedules fire, and what becomes of times that were missed. */
#include "check.h"

#include <errno.h>
#include <stdlib.h>

#include "schedule/schedule.h"

#define MINUTE 60000u
#define HOUR   (60 * MINUTE)
#define DAY    (UINT64_C(24) * HOUR)

static const struct span name = SPAN_TEXT("nightly");

static struct schedule parsed(const char *definition)
{
        struct schedule schedule;
        struct error error = { { 0 } };
        int r = schedule_parse(&schedule, span_of_text(definition), &error);
        if (r < 0)
                fail_msg("%s", error.text);
        return schedule;
}

static void assert_refused(const char *definition, const char *text)
{
        struct schedule schedule;
        struct error error = { { 0 } };
        assert_int_equal(schedule_parse(&schedule, span_of_text(definition), &error), -EINVAL);
        if (!strstr(error.text, text))
                fail_msg("\"%s\" has no \"%s\"", error.text, text);
}

static void what_cannot_be_a_schedule_is_refused_by_field(void **state)
{
        (void)state;
        assert_refused("[]", "no JSON object");
        assert_refused("{\"handler\":\"a\"}", "one of cron, every and at");
        assert_refused("{\"handler\":\"a\",\"cron\":\"* * * * *\",\"every_ms\":1000}", "one of cron, every and at");
        assert_refused("{\"cron\":\"* * * * *\"}", "handler: is missing");
        assert_refused("{\"handler\":\"a\",\"cron\":\"0 0 31 2 *\"}", "never occurs");
        assert_refused("{\"handler\":\"a\",\"cron\":\"61 * * * *\"}", "minute: 61");
        assert_refused("{\"handler\":\"a\",\"cron\":\"* * * *\"}", "day of the week is missing");
        assert_refused("{\"handler\":\"a\",\"cron\":\"5/15 * * * *\"}", "minute: 5/15");
        assert_refused("{\"handler\":\"a\",\"every_ms\":999}", "at least a second");
        assert_refused("{\"handler\":\"a\",\"every_ms\":-5}", "every_ms");
        assert_refused("{\"handler\":\"a\",\"every_ms\":1000,\"overlap\":\"maybe\"}", "overlap");
        assert_refused("{\"handler\":\"a\",\"every_ms\":1000,\"zone\":\"../../etc/passwd\"}", "zone");
        assert_refused("{\"handler\":\"a\",\"every_ms\":1000,\"overlap\":\"allow\",\"key\":\"k\"}", "key");
        assert_refused("{\"handler\":\"a\",\"every_ms\":1000,\"start_ms\":5000,\"end_ms\":5000}", "end");
        assert_refused("{\"handler\":\"a\",\"every_ms\":1000,\"payload\":5}", "payload: ");
        assert_refused("{\"handler\":\"a\",\"every_ms\":1000,\"payload_base64\":[]}", "payload_base64: ");
        assert_refused("{\"handler\":\"a\\u0000b\",\"every_ms\":1000}", "handler: ");
}

static void a_definition_is_written_as_it_was_read(void **state)
{
        (void)state;
        static const char text[] =
                "{\"catchup\":\"last\",\"cron\":\"0 3 * * *\",\"handler\":\"mail\",\"overlap\":\"skip\","
                "\"payload_base64\":\"AAH/\",\"zone\":\"Europe/Berlin\"}";
        struct schedule schedule = parsed(text);
        char *again = schedule_text(&schedule);
        assert_string_equal(again, text);
        free(again);
        schedule_free(&schedule);
}

static void a_payload_may_have_any_bytes(void **state)
{
        (void)state;
        static const struct span payloads[] = { { "a\0b", 3 }, { "\xff\0", 2 }, { "\0", 1 } };
        for (size_t i = 0; i < sizeof(payloads) / sizeof(payloads[0]); i++) {
                struct schedule schedule = parsed("{\"handler\":\"a\",\"every_ms\":1000}");
                free((char *)schedule.payload.data);
                schedule.payload = payloads[i];
                char *text = schedule_text(&schedule);
                schedule.payload = (struct span){ 0 };
                schedule_free(&schedule);
                schedule = parsed(text);
                assert_true(span_is(schedule.payload, payloads[i]));
                free(text);
                schedule_free(&schedule);
        }
}

static void every_so_often_counts_from_the_start(void **state)
{
        (void)state;
        struct schedule s = parsed("{\"handler\":\"a\",\"every_ms\":90000,\"start_ms\":1000}");
        assert_int_equal(schedule_next_ms(&s, name, 0, 0), 1000);
        assert_int_equal(schedule_next_ms(&s, name, 1000, 0), 91000);
        assert_int_equal(schedule_next_ms(&s, name, 90999, 0), 91000);
        schedule_free(&s);
}

static void an_end_and_a_number_of_runs_are_kept(void **state)
{
        (void)state;
        struct schedule s = parsed("{\"handler\":\"a\",\"every_ms\":1000,\"end_ms\":5000,\"runs_max\":2}");
        assert_int_equal(schedule_next_ms(&s, name, 3000, 1), 4000);
        assert_true(schedule_next_ms(&s, name, 4000, 1) == SCHEDULE_NEVER);
        assert_true(schedule_next_ms(&s, name, 0, 2) == SCHEDULE_NEVER);
        schedule_free(&s);
}

static void jitter_is_the_same_each_time_and_within_its_bound(void **state)
{
        (void)state;
        struct schedule s = parsed("{\"handler\":\"a\",\"every_ms\":3600000,\"jitter_ms\":600000}");
        uint64_t first = schedule_next_ms(&s, name, 0, 0);
        uint64_t jitter = first % HOUR;
        assert_true(jitter <= 600000);
        for (uint64_t at = first, i = 0; i < 100; i++) {
                uint64_t next = schedule_next_ms(&s, name, at, 0);
                assert_int_equal(next - at, HOUR);
                at = next;
        }
        schedule_free(&s);
}

/* What the plan says about 01:00 while it is `now`, with a time each hour. */
static struct schedule_plan plan_of(const char *more, uint64_t now_ms)
{
        char text[256];
        struct schedule_plan plan;
        (void)snprintf(text, sizeof(text), "{\"handler\":\"a\",\"cron\":\"0 * * * *\"%s}", more);
        struct schedule s = parsed(text);
        schedule_plan(&s, name, HOUR, 0, now_ms, &plan);
        schedule_free(&s);
        return plan;
}

static void a_time_that_has_come_fires(void **state)
{
        (void)state;
        struct schedule_plan plan = plan_of("", HOUR + 500);
        assert_true(plan.has_task);
        assert_int_equal(plan.next_ms, 2 * HOUR);
        assert_int_equal(plan.passed, 0);
}

static void of_missed_times_the_last_fires(void **state)
{
        (void)state;
        struct schedule_plan plan = plan_of(",\"catchup\":\"last\",\"catchup_ms\":86400000", 5 * HOUR + 30 * MINUTE);
        assert_false(plan.has_task);
        assert_int_equal(plan.next_ms, 5 * HOUR);
        assert_int_equal(plan.passed, 3);
        /* That one, in turn. */
        struct schedule s = parsed("{\"handler\":\"a\",\"cron\":\"0 * * * *\",\"catchup_ms\":86400000}");
        schedule_plan(&s, name, 5 * HOUR, 0, 5 * HOUR + 30 * MINUTE, &plan);
        assert_true(plan.has_task);
        assert_int_equal(plan.next_ms, 6 * HOUR);
        schedule_free(&s);
}

static void all_missed_times_fire_in_order(void **state)
{
        (void)state;
        struct schedule_plan plan = plan_of(",\"catchup\":\"all\",\"catchup_ms\":86400000", 5 * HOUR + 30 * MINUTE);
        assert_true(plan.has_task);
        assert_int_equal(plan.next_ms, 2 * HOUR);
        /* But for those that are too old. */
        plan = plan_of(",\"catchup\":\"all\",\"catchup_ms\":7200000", 5 * HOUR + 30 * MINUTE);
        assert_false(plan.has_task);
        assert_int_equal(plan.next_ms, 4 * HOUR);
        assert_int_equal(plan.passed, 2);
}

static void missed_times_pass_where_none_is_caught_up(void **state)
{
        (void)state;
        struct schedule_plan plan = plan_of(",\"catchup\":\"none\",\"catchup_ms\":86400000", 5 * HOUR + 30 * MINUTE);
        assert_false(plan.has_task);
        assert_int_equal(plan.next_ms, 6 * HOUR);
        assert_int_equal(plan.passed, 4);
        /* One that has just come is not missed. */
        plan = plan_of(",\"catchup\":\"none\"", 5 * HOUR + 500);
        assert_false(plan.has_task);
        assert_int_equal(plan.next_ms, 5 * HOUR);
}

static void years_of_missed_minutes_are_found_quickly_and_counted_up_to_a_bound(void **state)
{
        (void)state;
        struct schedule s = parsed("{\"handler\":\"a\",\"cron\":\"* * * * *\"}");
        struct schedule_plan plan;
        schedule_plan(&s, name, MINUTE, 0, 3 * 366 * DAY + 500, &plan);
        assert_false(plan.has_task);
        assert_int_equal(plan.next_ms, 3 * 366 * DAY);
        assert_int_equal(plan.passed, SCHEDULE_COUNT_MAX);
        schedule_free(&s);
}

/* 29 February is a Sunday in 2088, and then in 2128. */
static void what_comes_once_in_decades_is_waited_for(void **state)
{
        (void)state;
        struct schedule s = parsed("{\"handler\":\"a\",\"cron\":\"0 0 29 2 */7\"}");
        assert_int_equal(schedule_next_ms(&s, name, UINT64_C(3728851200000), 0), UINT64_C(4991068800000));
        schedule_free(&s);
}

/* Looking at every second of it would take a host's loop away for hours. */
static void a_schedule_of_seconds_that_ended_long_ago_costs_as_little(void **state)
{
        (void)state;
        struct schedule s = parsed("{\"handler\":\"a\",\"every_ms\":1000,\"start_ms\":1000,\"end_ms\":1000000000000}");
        struct schedule_plan plan;
        for (unsigned i = 0; i < 500; i++) {
                schedule_plan(&s, name, 2000, 0, UINT64_C(1763256000000) + i, &plan);
                assert_false(plan.has_task);
                assert_int_equal(plan.next_ms, SCHEDULE_NEVER);
                assert_int_equal(plan.passed, SCHEDULE_COUNT_MAX);
        }
        schedule_free(&s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_cannot_be_a_schedule_is_refused_by_field),
                cmocka_unit_test(a_definition_is_written_as_it_was_read),
                cmocka_unit_test(a_payload_may_have_any_bytes),
                cmocka_unit_test(every_so_often_counts_from_the_start),
                cmocka_unit_test(an_end_and_a_number_of_runs_are_kept),
                cmocka_unit_test(jitter_is_the_same_each_time_and_within_its_bound),
                cmocka_unit_test(a_time_that_has_come_fires),
                cmocka_unit_test(of_missed_times_the_last_fires),
                cmocka_unit_test(all_missed_times_fire_in_order),
                cmocka_unit_test(missed_times_pass_where_none_is_caught_up),
                cmocka_unit_test(what_comes_once_in_decades_is_waited_for),
                cmocka_unit_test(years_of_missed_minutes_are_found_quickly_and_counted_up_to_a_bound),
                cmocka_unit_test(a_schedule_of_seconds_that_ended_long_ago_costs_as_little),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
