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
        expect_text(&lane, ":2:3.9144976");
        assert_int_equal(lane_mark_done(&lane, 4), LANE_DONE);
        assert_int_equal(lane_mark_done(&lane, 5), LANE_DONE);
        expect_text(&lane, ":a1:3.9144976");
        assert_int_equal(lane_mark_done(&lane, 10), LANE_DONE);
        expect_text(&lane, ":a12:3.9144976");
        lane_forget(&lane);
}

/* The last done one tells whether all stand where they stood: an element that was put before them moves it, and so does
 * one that is gone.  Bytes beyond the first 512 do not count, and bytes above 127 are no negative numbers. */
static void the_last_done_one_is_known_by_its_first_bytes(void **state)
{
        (void)state;
        struct redis_lane lane = { 0 };
        char bytes[600];
        memset(bytes, 0, sizeof(bytes));
        bytes[0] = (char)255;
        bytes[511] = 1;
        bytes[512] = 1;
        add(&lane, 1);
        lane_add(&lane, (struct span){ bytes, sizeof(bytes) });
        add(&lane, 1);
        assert_int_equal(lane_mark_done(&lane, 2), LANE_DONE);
        expect_text(&lane, ":2:600.10356425");
        lane_forget(&lane);
}

static void elements_in_another_order_have_other_sums(void **state)
{
        (void)state;
        struct redis_lane lane = { 0 };
        lane_add(&lane, SPAN_TEXT("task-12"));
        lane_add(&lane, SPAN_TEXT("task-21"));
        lane_add(&lane, SPAN_TEXT("task-20"));
        assert_int_not_equal(lane.places[0].sum, lane.places[1].sum);
        assert_int_not_equal(lane.places[1].sum, lane.places[2].sum);
        lane_forget(&lane);
}

/* It is kept while it is not known what the store has, and goes when the shard is acquired anew. */
static void the_last_claimed_one_is_remembered(void **state)
{
        (void)state;
        struct redis_shard shard = { 0 };
        struct redis_lane *lane = &shard.lanes[LANE_NORMAL];
        char bytes[600];
        memset(bytes, 'x', sizeof(bytes));
        assert_int_equal(lane_last(lane).size, 0);
        lane_remember(lane, 7, SPAN_TEXT("first"));
        assert_true(span_is(lane_last(lane), SPAN_TEXT("first")));
        lane_remember(lane, 8, (struct span){ bytes, sizeof(bytes) });
        assert_int_equal(lane_last(lane).size, LANE_LOOK_BYTES);
        lane_remember(lane, 9, SPAN_TEXT("third"));
        view_forget(&shard, VIEW_UNKNOWN);
        assert_true(span_is(lane_last(lane), SPAN_TEXT("third")));
        assert_int_equal(lane->last_number, 9);
        view_forget(&shard, VIEW_EMPTY);
        assert_int_equal(lane_last(lane).size, 0);
        assert_null(lane->last);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(done_at_the_head_is_trimmed),
                cmocka_unit_test(what_is_done_twice_or_never_stood_there_is_told_apart),
                cmocka_unit_test(what_is_done_behind_others_is_a_text),
                cmocka_unit_test(the_last_done_one_is_known_by_its_first_bytes),
                cmocka_unit_test(elements_in_another_order_have_other_sums),
                cmocka_unit_test(the_last_claimed_one_is_remembered),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
