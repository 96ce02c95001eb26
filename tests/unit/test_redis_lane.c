/* What the driver on Redis knows of tasks that are claimed and stand in their list: the store keeps the same as text.
 */
/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "store/redis/redis_store.h"

static void add(struct redis_lane *lane, unsigned count)
{
        while (count--)
                lane_add(lane, SPAN_TEXT("qv1"));
}

static void expect_text(const struct redis_lane *lane, const char *expected)
{
        struct buffer text = { 0 };
        lane_text(lane, &text);
        buffer_put(&text, "", 1);
        assert_string_equal((const char *)text.data, expected);
        buffer_free(&text);
}

static void done_at_the_head_is_trimmed(void **state)
{
        (void)state;
        struct redis_lane lane = { .base = 10 };
        add(&lane, 5);
        assert_int_equal(lane.bytes, 15);
        assert_int_equal(lane_mark_done(&lane, 11), LANE_DONE);
        assert_int_equal(lane_mark_done(&lane, 12), LANE_DONE);
        assert_int_equal(lane_mark_done(&lane, 14), LANE_DONE);
        assert_int_equal(lane_trim(&lane), 2);
        assert_int_equal(lane.base, 12);
        assert_int_equal(lane.count, 3);
        assert_int_equal(lane.bytes, 9);
        assert_int_equal(lane_mark_done(&lane, 13), LANE_DONE);
        assert_int_equal(lane_trim(&lane), 2);
        assert_int_equal(lane_trim(&lane), 0);
        assert_int_equal(lane.count, 1);
        lane_forget(&lane);
        assert_int_equal(lane_mark_done(&lane, 15), LANE_ELSEWHERE);
}

static void what_is_done_twice_or_never_stood_there_is_told_apart(void **state)
{
        (void)state;
        struct redis_lane lane = { .base = 10 };
        add(&lane, 2);
        assert_int_equal(lane_mark_done(&lane, 10), LANE_ELSEWHERE);
        assert_int_equal(lane_mark_done(&lane, 13), LANE_ELSEWHERE);
        assert_int_equal(lane_mark_done(&lane, 0), LANE_ELSEWHERE);
        assert_int_equal(lane_mark_done(&lane, UINT64_MAX), LANE_ELSEWHERE);
        assert_int_equal(lane_mark_done(&lane, 12), LANE_DONE);
        assert_int_equal(lane_mark_done(&lane, 12), LANE_GONE);
        lane_forget(&lane);
}

/* As lua/lib/claimed.lua reads it. */
static void what_is_done_behind_others_is_a_text(void **state)
{
        (void)state;
        struct redis_lane lane = { 0 };
        expect_text(&lane, "");
        add(&lane, 10);
        expect_text(&lane, "");
        assert_int_equal(lane_mark_done(&lane, 2), LANE_DONE);
        expect_text(&lane, ":2:3.496");
        assert_int_equal(lane_mark_done(&lane, 4), LANE_DONE);
        assert_int_equal(lane_mark_done(&lane, 5), LANE_DONE);
        expect_text(&lane, ":a1:3.496");
        assert_int_equal(lane_mark_done(&lane, 10), LANE_DONE);
        expect_text(&lane, ":a12:3.496");
        lane_forget(&lane);
}

/* Bytes beyond the first 128 do not count, and bytes above 127 are no negative numbers. */
static void the_head_is_known_by_its_first_bytes(void **state)
{
        (void)state;
        struct redis_lane lane = { 0 };
        char bytes[200];
        memset(bytes, 0, sizeof(bytes));
        bytes[0] = (char)255;
        bytes[127] = 1;
        bytes[128] = 1;
        lane_add(&lane, (struct span){ bytes, sizeof(bytes) });
        add(&lane, 1);
        assert_int_equal(lane_mark_done(&lane, 2), LANE_DONE);
        expect_text(&lane, ":2:200.383");
        lane_forget(&lane);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(done_at_the_head_is_trimmed),
                cmocka_unit_test(what_is_done_twice_or_never_stood_there_is_told_apart),
                cmocka_unit_test(what_is_done_behind_others_is_a_text),
                cmocka_unit_test(the_head_is_known_by_its_first_bytes),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
