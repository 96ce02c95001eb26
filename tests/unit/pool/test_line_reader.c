/* A child's output: whole lines, bounded, none lost without being counted. */
/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "host/pool/line_reader.h"

struct heard {
        char lines[64][LINE_READER_MAX + 8];
        uint32_t dropped[64];
        size_t count;
        uint64_t dropped_sum;
};

static void hear(void *arg, const char *line, uint32_t dropped)
{
        struct heard *h = arg;
        if (h->count < 64) {
                strcpy(h->lines[h->count], line);
                h->dropped[h->count] = dropped;
        }
        h->count++;
        h->dropped_sum += dropped;
}

static int setup(void **state)
{
        *state = calloc(1, sizeof(struct heard));
        return *state ? 0 : -1;
}

static int teardown(void **state)
{
        free(*state);
        return 0;
}

static void feed(struct line_reader *l, const char *text, uint64_t now_ms, struct heard *h)
{
        line_reader_feed(l, text, strlen(text), now_ms, hear, h);
}

static void lines_are_cut_wherever_the_reads_were(void **state)
{
        struct heard *h = *state;
        struct line_reader l = { .rate = 100 };
        feed(&l, "one\ntw", 1000, h);
        assert_int_equal(h->count, 1);
        feed(&l, "o\n\nthree", 1000, h);
        feed(&l, "\n", 1000, h);
        assert_int_equal(h->count, 4);
        assert_string_equal(h->lines[0], "one");
        assert_string_equal(h->lines[1], "two");
        assert_string_equal(h->lines[2], "");
        assert_string_equal(h->lines[3], "three");
}

static void what_is_left_without_a_newline_is_a_line(void **state)
{
        struct heard *h = *state;
        struct line_reader l = { .rate = 100 };
        feed(&l, "done\nlast words", 1000, h);
        line_reader_end(&l, 1000, hear, h);
        assert_int_equal(h->count, 2);
        assert_string_equal(h->lines[1], "last words");
        line_reader_end(&l, 1000, hear, h);
        assert_int_equal(h->count, 2);
}

static void a_line_without_end_is_cut_and_says_so(void **state)
{
        struct heard *h = *state;
        struct line_reader l = { .rate = 100 };
        for (int i = 0; i < 1000; i++)
                feed(&l, "0123456789", 1000, h);
        assert_int_equal(h->count, 0);
        feed(&l, "\nnext\n", 1000, h);
        assert_int_equal(h->count, 2);
        assert_int_equal(strlen(h->lines[0]), LINE_READER_MAX + 3);
        assert_string_equal(h->lines[0] + LINE_READER_MAX, "...");
        assert_string_equal(h->lines[1], "next");
}

static void a_line_of_exactly_the_limit_is_whole(void **state)
{
        struct heard *h = *state;
        struct line_reader l = { .rate = 100 };
        for (int i = 0; i < LINE_READER_MAX; i++)
                feed(&l, "x", 1000, h);
        feed(&l, "\n", 1000, h);
        assert_int_equal(strlen(h->lines[0]), LINE_READER_MAX);
}

static void beyond_the_rate_lines_are_dropped_and_counted(void **state)
{
        struct heard *h = *state;
        struct line_reader l = { .rate = 10 };
        for (int i = 0; i < 50; i++)
                feed(&l, "x\n", 1000, h);
        assert_int_equal(h->count, 10);
        feed(&l, "y\n", 1099, h);
        assert_int_equal(h->count, 10);
        feed(&l, "z\n", 1100, h); /* a tenth of a second is a line */
        assert_int_equal(h->count, 11);
        assert_string_equal(h->lines[10], "z");
        assert_int_equal(h->dropped[10], 41);
        feed(&l, "later\n", 5000, h);
        assert_int_equal(h->dropped[11], 0);
}

static void a_quiet_time_saves_up_one_second_and_no_more(void **state)
{
        struct heard *h = *state;
        struct line_reader l = { .rate = 10 };
        feed(&l, "x\n", 1000, h);
        for (int i = 0; i < 50; i++)
                feed(&l, "x\n", 1000000, h);
        assert_int_equal(h->count, 11);
}

/* The last ones before the end are the ones to be dropped, and nothing comes after them to say so. */
static void what_was_dropped_at_the_end_is_counted_too(void **state)
{
        struct heard *h = *state;
        struct line_reader l = { .rate = 10 };
        for (int i = 0; i < 100; i++)
                feed(&l, "x\n", 1000, h);
        feed(&l, "no newline", 1000, h);
        line_reader_end(&l, 1000, hear, h);
        assert_int_equal(h->dropped_sum + 10, 101);
}

static void a_rate_that_does_not_divide_a_second_keeps_its_average(void **state)
{
        struct heard *h = *state;
        struct line_reader l = { .rate = 333 };
        uint64_t fed = 0;
        for (uint64_t ms = 0; ms < 10000; ms++)
                for (int i = 0; i < 10; i++, fed++)
                        feed(&l, "x\n", 5000 + ms, h);
        /* Ten seconds and the burst. */
        assert_in_range(h->count, 333 * 11 - 40, 333 * 11 + 40);
        line_reader_end(&l, 15000, hear, h);
        assert_in_range(h->count + h->dropped_sum, fed, fed + 1);
}

static void without_a_rate_nothing_is_dropped(void **state)
{
        struct heard *h = *state;
        struct line_reader l = { 0 };
        for (int i = 0; i < 5000; i++)
                feed(&l, "x\n", 1, h);
        assert_int_equal(h->count, 5000);
}

static void a_nul_does_not_hide_what_follows(void **state)
{
        struct heard *h = *state;
        struct line_reader l = { .rate = 100 };
        line_reader_feed(&l, "a\0b\n\0\n", 7, 1000, hear, h);
        assert_int_equal(h->count, 2);
        assert_string_equal(h->lines[0], "a b");
        assert_string_equal(h->lines[1], " ");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(lines_are_cut_wherever_the_reads_were),
                TEST(what_is_left_without_a_newline_is_a_line),
                TEST(a_line_without_end_is_cut_and_says_so),
                TEST(a_line_of_exactly_the_limit_is_whole),
                TEST(beyond_the_rate_lines_are_dropped_and_counted),
                TEST(a_quiet_time_saves_up_one_second_and_no_more),
                TEST(what_was_dropped_at_the_end_is_counted_too),
                TEST(a_rate_that_does_not_divide_a_second_keeps_its_average),
                TEST(without_a_rate_nothing_is_dropped),
                TEST(a_nul_does_not_hide_what_follows),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
