/* Backtraces made readable: the request, what addr2line says, the text, the answer. */
/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backtrace/backtrace.h"

static struct span span_of(const struct buffer *b)
{
        return (struct span){ (const char *)b->data, b->size };
}

static void a_request_is_read_as_it_was_made(void **state)
{
        (void)state;
        static struct backtrace_request request;
        const uint64_t places[] = { 0x1139, 0, UINT64_MAX };
        struct buffer b = { 0 };
        size_t lines = 0;
        assert_true(backtrace_begin(&b, "/var/lib/a b/mine.so"));
        assert_true(backtrace_add(&b, &lines, "handle+0x9 (mine.so)\nabort+0x1 (libc.so.6)\n", places, 3));
        assert_true(backtrace_add(&b, &lines, "", places, 3));
        assert_true(backtrace_add(&b, &lines, "odd line", places, 0));
        assert_int_equal(lines, 3);
        assert_int_equal(backtrace_parse(span_of(&b), &request), 0);
        assert_true(span_is(request.plugin, SPAN_TEXT("/var/lib/a b/mine.so")));
        assert_int_equal(request.count, 3);
        assert_int_equal(request.lines[0].place, 0x1139);
        assert_true(span_is(request.lines[0].text, SPAN_TEXT("handle+0x9 (mine.so)")));
        assert_int_equal(request.lines[1].place, 0);
        assert_true(span_is(request.lines[2].text, SPAN_TEXT("odd line")));
        assert_int_equal(request.lines[2].place, 0);
        buffer_free(&b);
}

static void what_does_not_fit_is_left_out_as_a_whole(void **state)
{
        (void)state;
        struct buffer b = { 0 };
        size_t lines = BACKTRACE_LINES_MAX - 1;
        assert_true(backtrace_begin(&b, "/mine.so"));
        size_t before = b.size;
        assert_false(backtrace_add(&b, &lines, "a\nb\n", NULL, 0));
        assert_int_equal(b.size, before);
        assert_int_equal(lines, BACKTRACE_LINES_MAX - 1);
        assert_true(backtrace_add(&b, &lines, "a\n", NULL, 0));
        buffer_clear(&b);
        /* A path that would be read as something else. */
        assert_false(backtrace_begin(&b, "/a\nb.so"));
        assert_false(backtrace_begin(&b, ""));
        buffer_free(&b);
}

static void a_malformed_request_is_refused(void **state)
{
        (void)state;
        static struct backtrace_request request;
        static const char *const wrong[] = { "", "\n", "/a.so\nxyz line\n", "/a.so\n12\n", "/a.so\n line\n",
                "/a.so\n11112222333344445 line\n" };
        for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
                assert_int_equal(backtrace_parse(span_of_text(wrong[i]), &request), -EBADMSG);
        assert_int_equal(backtrace_parse(SPAN_TEXT("/a\0b\n1 line\n"), &request), -EBADMSG);
        assert_int_equal(backtrace_parse(SPAN_TEXT("/a.so\n"), &request), 0);
}

static char *fake_demangle(const char *name)
{
        return strcmp(name, "_Z3runv") ? NULL : strdup("run()");
}

static const char *put(struct buffer *b, const char *line, const struct backtrace_source *source, bool *ret_is_known)
{
        buffer_clear(b);
        *ret_is_known = backtrace_put_line(b, span_of_text(line), source, fake_demangle);
        return buffer_text(b);
}

static void each_line_gets_its_name_file_and_line(void **state)
{
        (void)state;
        struct backtrace_source s[3];
        struct buffer b = { 0 };
        bool is_known;
        backtrace_divide(SPAN_TEXT("0x0000000000001139\nhandle\n/home/me/mine.c:12 (discriminator 3)\n"
                                   "0x0000000000002000\n_Z3runv\n/src/row.cc:7\nhandle\n/src/mine.cc:40\n"
                                   "0x0000000000003000\n??\n??:0\n"),
                s, 3);
        assert_string_equal(put(&b, "handle+0x9 (mine.so)", &s[0], &is_known), "handle+0x9 (mine.so) at mine.c:12");
        assert_true(is_known);
        assert_string_equal(put(&b, "handle+0x9 (mine.so)", &s[1], &is_known),
                "run() (mine.so) at row.cc:7, inlined\nhandle+0x9 (mine.so) at mine.cc:40");
        assert_string_equal(put(&b, "_Z3runv+0x1 (mine.so)", &s[2], &is_known), "run()+0x1 (mine.so)");
        assert_false(is_known);
        assert_string_equal(put(&b, "_Zwrong+0x1 (mine.so)", &s[2], &is_known), "_Zwrong+0x1 (mine.so)");
        assert_string_equal(put(&b, "and again, 23 times or more", &(struct backtrace_source){ { 0 } }, &is_known),
                "and again, 23 times or more");
        assert_string_equal(put(&b, "", &(struct backtrace_source){ { 0 } }, &is_known), "");
        buffer_free(&b);
}

static void output_that_is_cut_or_too_long_is_taken_as_far_as_it_goes(void **state)
{
        (void)state;
        struct backtrace_source s[2];
        struct buffer b = { 0 };
        bool is_known;
        backtrace_divide(SPAN_TEXT("noise\n0x0000000000001139\nhandle"), s, 2);
        assert_string_equal(put(&b, "handle+0x9 (mine.so)", &s[0], &is_known), "handle+0x9 (mine.so)");
        assert_null(s[1].lines.data);
        backtrace_divide(
                SPAN_TEXT("0x0000000000001139\na\nb.c:1\n0x0000000000001140\nc\nd.c:2\n0x0000000000001141\ne\nf:3\n"),
                s, 2);
        assert_string_equal(put(&b, "c (mine.so)", &s[1], &is_known), "c (mine.so) at d.c:2");
        backtrace_divide((struct span){ 0 }, s, 2);
        assert_null(s[0].lines.data);
        buffer_free(&b);
}

static void a_long_name_is_cut(void **state)
{
        (void)state;
        char line[600];
        struct buffer b = { 0 };
        bool is_known;
        memset(line, 'n', sizeof(line));
        line[sizeof(line) - 1] = 0;
        const char *text = put(&b, line, &(struct backtrace_source){ { 0 } }, &is_known);
        assert_int_equal(strlen(text), BACKTRACE_NAME_MAX + 3);
        buffer_free(&b);
}

static void an_answer_ends_where_its_last_text_ends(void **state)
{
        (void)state;
        struct span answer = SPAN_TEXT("one\0two\nlines\0\0cut");
        assert_string_equal(backtrace_next(&answer), "one");
        assert_string_equal(backtrace_next(&answer), "two\nlines");
        assert_string_equal(backtrace_next(&answer), "");
        assert_null(backtrace_next(&answer));
        answer = (struct span){ 0 };
        assert_null(backtrace_next(&answer));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_request_is_read_as_it_was_made),
                cmocka_unit_test(what_does_not_fit_is_left_out_as_a_whole),
                cmocka_unit_test(a_malformed_request_is_refused),
                cmocka_unit_test(each_line_gets_its_name_file_and_line),
                cmocka_unit_test(output_that_is_cut_or_too_long_is_taken_as_far_as_it_goes),
                cmocka_unit_test(a_long_name_is_cut),
                cmocka_unit_test(an_answer_ends_where_its_last_text_ends),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
