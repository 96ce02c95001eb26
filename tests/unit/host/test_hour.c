/* A host's last hour: what is kept, what is written, and what is made of a document that may say anything. */
#include "check.h"

#include <errno.h>
#include <stdlib.h>

#include "view/hour.h"

#define MINUTE UINT64_C(60000)
#define START  UINT64_C(1763256000000)

static struct hour_point point_at(uint64_t at_ms)
{
        return (struct hour_point){ .at_ms = at_ms,
                .seconds = 60,
                .done = 812.5,
                .failed = 0.25,
                .waiting = 12,
                .running = 3,
                .wait_p50 = 0.004,
                .wait_p99 = 0.09,
                .run_p50 = 0.001,
                .run_p99 = 0.02,
                .seats_used = 3,
                .seats = 8 };
}

static struct hour hour_of(uint32_t points)
{
        struct hour hour = { .name = "host-a" };
        for (uint32_t i = 0; i < points; i++) {
                struct hour_point point = point_at(START + i * MINUTE);
                hour_add(&hour, &point);
        }
        return hour;
}

static void an_hour_is_sixty_points(void **state)
{
        (void)state;
        struct hour hour = hour_of(75);
        assert_int_equal(hour.count, HOUR_POINTS);
        assert_int_equal(hour.points[0].at_ms, START + 15 * MINUTE);
        assert_int_equal(hour.points[HOUR_POINTS - 1].at_ms, START + 74 * MINUTE);
        /* After a while without the host, what is older than an hour is gone. */
        struct hour_point late = point_at(START + 74 * MINUTE + 50 * MINUTE);
        hour_add(&hour, &late);
        assert_int_equal(hour.count, 11);
        late = point_at(START + 500 * MINUTE);
        hour_add(&hour, &late);
        assert_int_equal(hour.count, 1);
}

static void more_points_than_minutes_push_out_the_oldest(void **state)
{
        (void)state;
        struct hour hour = { .name = "host-a" };
        for (uint32_t i = 0; i < 200; i++) {
                struct hour_point point = point_at(START + i * 1000);
                hour_add(&hour, &point);
        }
        assert_int_equal(hour.count, HOUR_POINTS);
        assert_int_equal(hour.points[0].at_ms, START + 140 * 1000);
}

static void a_clock_that_was_set_back_leaves_time_growing(void **state)
{
        (void)state;
        struct hour hour = hour_of(10);
        struct hour_point point = point_at(START + 4 * MINUTE);
        hour_add(&hour, &point);
        assert_int_equal(hour.count, 5);
        for (uint32_t i = 1; i < hour.count; i++)
                assert_true(hour.points[i - 1].at_ms < hour.points[i].at_ms);
}

static void a_document_says_the_same_when_it_is_read(void **state)
{
        (void)state;
        struct hour hour = hour_of(HOUR_POINTS);
        struct hour read = { .count = 0 };
        char *text = hour_document(&hour);
        assert_int_equal(hour_read(&read, span_of_text(text)), 0);
        free(text);
        assert_string_equal(read.name, "host-a");
        assert_int_equal(read.count, HOUR_POINTS);
        for (uint32_t i = 0; i < read.count; i++)
                assert_memory_equal(&read.points[i], &hour.points[i], sizeof(read.points[i]));
}

static void the_largest_document_is_within_its_limit(void **state)
{
        (void)state;
        struct hour hour = { .count = 0 };
        struct hour read = { .count = 0 };
        memset(hour.name, 'x', HOUR_NAME);
        for (uint32_t i = 0; i < HOUR_POINTS; i++) {
                double most = 1e300;
                struct hour_point point = { TASK_NUMBER_MAX - HOUR_POINTS + i, most, most, most, most, most, most, most,
                        most, most, most, most };
                hour_add(&hour, &point);
        }
        char *text = hour_document(&hour);
        assert_true(strlen(text) <= STORE_HISTORY_MAX);
        assert_int_equal(hour_read(&read, span_of_text(text)), 0);
        assert_int_equal(read.count, HOUR_POINTS);
        free(text);
}

#define POINT(at) "[" at ",60,1,0,0,0,0,0,0,0,0,1]"

static void nonsense_is_refused(void **state)
{
        (void)state;
        static const char *const wrong[] = { "", "{", "[]", "{}", "{\"name\":\"a\"}", "{\"name\":7,\"points\":[]}",
                "{\"name\":\"\",\"points\":[]}", "{\"name\":\"a b\",\"points\":[]}", "{\"name\":\"<b>\",\"points\":[]}",
                "{\"name\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\",\"points\":[]}",
                "{\"name\":\"a\",\"points\":{}}", "{\"name\":\"a\",\"points\":[7]}",
                "{\"name\":\"a\",\"points\":[[1,60]]}", "{\"name\":\"a\",\"points\":[" POINT("-1") "]}",
                "{\"name\":\"a\",\"points\":[" POINT("1.5") "]}", "{\"name\":\"a\",\"points\":[" POINT("\"1\"") "]}",
                "{\"name\":\"a\",\"points\":[" POINT("9007199254740993") "]}",
                "{\"name\":\"a\",\"points\":[" POINT("2") "," POINT("2") "]}",
                "{\"name\":\"a\",\"points\":[" POINT("2") "," POINT("1") "]}",
                "{\"name\":\"a\",\"points\":[[1,60,-1,0,0,0,0,0,0,0,0,1]]}",
                "{\"name\":\"a\",\"points\":[[1,60,1e16,0,0,0,0,0,0,0,0,1]]}",
                "{\"name\":\"a\",\"points\":[[1,60,true,0,0,0,0,0,0,0,0,1]]}" };
        struct hour hour = { .name = "before" };
        for (size_t i = 0; i < COUNT(wrong); i++) {
                if (hour_read(&hour, span_of_text(wrong[i])) != -EBADMSG)
                        fail_msg("taken: %s", wrong[i]);
        }
        assert_string_equal(hour.name, "before");
        assert_int_equal(hour_read(&hour, SPAN_TEXT("{\"name\":\"a\",\"points\":[" POINT("1") "," POINT("2") "]}")), 0);
        assert_int_equal(hour.count, 2);
        /* One point too many, and a document that is too long. */
        struct buffer many = { 0 };
        buffer_printf(&many, "{\"name\":\"a\",\"points\":[");
        for (unsigned i = 0; i <= HOUR_POINTS; i++)
                buffer_printf(&many, "%s[%u,60,1,0,0,0,0,0,0,0,0,1]", i ? "," : "", i + 1);
        buffer_printf(&many, "]}");
        assert_int_equal(hour_read(&hour, span_of_text(buffer_text(&many))), -EBADMSG);
        buffer_clear(&many);
        buffer_printf(&many, "{\"name\":\"a\",\"points\":[]%*s}", (int)STORE_HISTORY_MAX, "");
        assert_int_equal(hour_read(&hour, span_of_text(buffer_text(&many))), -EBADMSG);
        buffer_free(&many);
}

static void hosts_are_shown_by_name_and_nonsense_is_not(void **state)
{
        (void)state;
        const struct store_status documents[] = {
                { .age_ms = 5, .document = SPAN_TEXT("{\"name\":\"b\",\"points\":[" POINT("1") "]}") },
                { .document = SPAN_TEXT("nonsense") },
                { .age_ms = 7, .document = SPAN_TEXT("{\"name\":\"a\",\"points\":[]}") },
        };
        json_t *o = hours_as_json(documents, COUNT(documents));
        const json_t *hosts = json_object_get(o, "hosts");
        assert_int_equal(json_array_size(json_object_get(o, "columns")), HOUR_COLUMNS);
        assert_int_equal(json_array_size(hosts), 2);
        assert_string_equal(json_string_value(json_object_get(json_array_get(hosts, 0), "name")), "a");
        assert_int_equal(json_integer_value(json_object_get(json_array_get(hosts, 1), "age_ms")), 5);
        const json_t *points = json_object_get(json_array_get(hosts, 1), "points");
        assert_int_equal(json_array_size(json_array_get(points, 0)), HOUR_COLUMNS);
        json_decref(o);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_hour_is_sixty_points),
                cmocka_unit_test(more_points_than_minutes_push_out_the_oldest),
                cmocka_unit_test(a_clock_that_was_set_back_leaves_time_growing),
                cmocka_unit_test(a_document_says_the_same_when_it_is_read),
                cmocka_unit_test(the_largest_document_is_within_its_limit),
                cmocka_unit_test(nonsense_is_refused),
                cmocka_unit_test(hosts_are_shown_by_name_and_nonsense_is_not),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
