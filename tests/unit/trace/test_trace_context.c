/* Traces in headers: what is a traceparent, which ids are given, who is recorded. */
#include "check.h"

#include "trace/headers.h"

#define TRACE  "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN   "00f067aa0ba902b7"
#define PARENT "00-" TRACE "-" SPAN "-01"

static bool is_good(const char *text)
{
        struct trace_context context;
        return trace_context_parse(span_of_text(text), &context);
}

static void a_traceparent_is_read_and_written(void **state)
{
        struct trace_context context;
        char text[TRACE_PARENT_TEXT];
        (void)state;
        assert_true(trace_context_parse(SPAN_TEXT(PARENT), &context));
        assert_int_equal(context.trace[0], 0x4b);
        assert_int_equal(context.span[7], 0xb7);
        assert_int_equal(context.flags, TRACE_FLAG_SAMPLED);
        assert_string_equal(trace_context_put(text, &context), PARENT);
}

static void what_is_none_is_refused(void **state)
{
        (void)state;
        assert_true(is_good("00-" TRACE "-" SPAN "-00"));
        assert_true(is_good("00-" TRACE "-" SPAN "-ff"));
        assert_true(is_good("cc-" TRACE "-" SPAN "-01"));
        assert_true(is_good("cc-" TRACE "-" SPAN "-01-what-a-later-version-says"));
        const char *wrong[] = { "", "00", "00-" TRACE "-" SPAN, "00-" TRACE "-" SPAN "-", "00-" TRACE "-" SPAN "-0",
                "00-" TRACE "-" SPAN "-01-", "00-" TRACE "-" SPAN "-011", "cc-" TRACE "-" SPAN "-01.",
                "ff-" TRACE "-" SPAN "-01", "0g-" TRACE "-" SPAN "-01", "00_" TRACE "-" SPAN "-01",
                "00-" TRACE "_" SPAN "-01", "00-" TRACE "-" SPAN "_01", "00-" TRACE "-" SPAN "-0x",
                "00-00000000000000000000000000000000-" SPAN "-01", "00-" TRACE "-0000000000000000-01",
                "00-4BF92F3577B34DA6A3CE929D0E0E4736-" SPAN "-01", "00-" TRACE "-00F067AA0BA902B7-01",
                " 00-" TRACE "-" SPAN "-01", "00-" TRACE "-" SPAN "-01 " };
        for (size_t i = 0; i < COUNT(wrong); i++)
                if (is_good(wrong[i]))
                        fail_msg("accepted: \"%s\"", wrong[i]);
}

static void flags_that_nobody_knows_are_not_passed_on(void **state)
{
        struct trace_context context;
        char text[TRACE_PARENT_TEXT];
        (void)state;
        assert_true(trace_context_parse(SPAN_TEXT("00-" TRACE "-" SPAN "-ff"), &context));
        assert_string_equal(trace_context_put(text, &context), "00-" TRACE "-" SPAN "-03");
}

/* Golden: another host, and a later version, must give the same ones. */
static void ids_depend_on_nothing_but_the_task(void **state)
{
        struct trace_context begun = trace_context_begin(SPAN_TEXT("demo"), SPAN_TEXT("task-7"));
        struct trace_context again = trace_context_begin(SPAN_TEXT("demo"), SPAN_TEXT("task-7"));
        struct trace_context other = trace_context_begin(SPAN_TEXT("dem"), SPAN_TEXT("otask-7"));
        char trace[TRACE_ID_TEXT], span[TRACE_SPAN_ID_TEXT];
        (void)state;
        assert_memory_equal(&begun, &again, sizeof(begun));
        assert_memory_not_equal(begun.trace, other.trace, TRACE_ID_SIZE);
        assert_false(trace_context_has_span(&begun));
        struct trace_context first = trace_context_within(&begun, TRACE_SPAN_ATTEMPT, SPAN_TEXT("task-7"), 5, 1);
        struct trace_context second = trace_context_within(&begun, TRACE_SPAN_ATTEMPT, SPAN_TEXT("task-7"), 5, 2);
        struct trace_context third = trace_context_within(&begun, TRACE_SPAN_ATTEMPT, SPAN_TEXT("task-7"), 6, 1);
        struct trace_context wait = trace_context_within(&begun, TRACE_SPAN_WAIT, SPAN_TEXT("task-7"), 5, 1);
        assert_memory_equal(first.trace, begun.trace, TRACE_ID_SIZE);
        assert_memory_not_equal(first.span, second.span, TRACE_SPAN_ID_SIZE);
        assert_memory_not_equal(first.span, third.span, TRACE_SPAN_ID_SIZE);
        assert_memory_not_equal(first.span, wait.span, TRACE_SPAN_ID_SIZE);
        assert_string_equal(trace_id_put(trace, begun.trace), "9c5edba12ed5ba2a31d487a597af2b24");
        assert_string_equal(trace_span_id_put(span, first.span), "30669fb5a5786fc5");
}

static void of_many_starts_no_two_have_the_same_id(void **state)
{
        enum { STARTS = 20000 };
        static uint64_t ids[STARTS];
        struct trace_context begun = trace_context_begin(SPAN_TEXT("demo"), SPAN_TEXT("task-7"));
        (void)state;
        for (unsigned i = 0; i < STARTS; i++) {
                struct trace_context context =
                        trace_context_within(&begun, TRACE_SPAN_ATTEMPT, SPAN_TEXT("task-7"), i / 100, i % 100);
                memcpy(&ids[i], context.span, sizeof(ids[i]));
        }
        for (unsigned i = 0; i < STARTS; i += 97)
                for (unsigned j = 0; j < STARTS; j++)
                        assert_true(i == j || ids[i] != ids[j]);
}

static void a_ratio_chooses_so_many_and_always_the_same(void **state)
{
        enum { TASKS = 20000 };
        unsigned chosen = 0;
        char id[32];
        (void)state;
        for (unsigned i = 0; i < TASKS; i++) {
                int size = snprintf(id, sizeof(id), "task-%u", i);
                struct trace_context begun = trace_context_begin(SPAN_TEXT("demo"), (struct span){ id, (size_t)size });
                bool is_chosen = trace_is_chosen(begun.trace, 0.1);
                chosen += is_chosen;
                assert_true(trace_is_chosen(begun.trace, 1));
                assert_false(trace_is_chosen(begun.trace, 0));
                /* Who is chosen of few is chosen of many. */
                assert_true(!is_chosen || trace_is_chosen(begun.trace, 0.2));
        }
        assert_in_range(chosen, TASKS / 10 - 200, TASKS / 10 + 200);
        uint8_t low[TRACE_ID_SIZE] = { 0xff, 0xff };
        uint8_t high[TRACE_ID_SIZE] = { 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
        assert_true(trace_is_chosen(low, 0.0001));
        assert_false(trace_is_chosen(high, 0.9999));
}

/* --- headers --- */

static void the_headers_of_a_task_say_which_trace(void **state)
{
        struct trace_headers found;
        (void)state;
        trace_headers_read(SPAN_TEXT("header.tracestate:a=1\nheader.TraceParent:" PARENT "\nheader.x:y\n"), &found);
        assert_int_equal(found.found, TRACE_GIVEN);
        assert_int_equal(found.state.size, 3);
        trace_headers_read(SPAN_TEXT("header.x:y\nheader.tracestate:a=1\n"), &found);
        assert_int_equal(found.found, TRACE_ABSENT);
        assert_int_equal(found.state.size, 0);
        const char *malformed[] = { "header.traceparent:x\nheader.tracestate:a=1\n", "header.traceparent:\n",
                "header64.traceparent:AAEC\n", "header.traceparent:" PARENT "\nheader.Traceparent:" PARENT "\n" };
        for (size_t i = 0; i < COUNT(malformed); i++) {
                trace_headers_read(span_of_text(malformed[i]), &found);
                assert_int_equal(found.found, TRACE_MALFORMED);
                assert_int_equal(found.state.size, 0);
        }
}

static struct trace_context parent(void)
{
        struct trace_context context;
        assert_true(trace_context_parse(SPAN_TEXT(PARENT), &context));
        return context;
}

static void a_trace_replaces_what_was_there_and_nothing_else(void **state)
{
        struct trace_context context = parent();
        struct buffer b = { 0 };
        (void)state;
        trace_headers_put(&b,
                SPAN_TEXT("header.a:1\nheader.Traceparent:nonsense\nheader64.b:AAEC\nheader.tracestate:old=1\n"),
                &context, SPAN_TEXT("v=1"));
        assert_string_equal(
                buffer_text(&b), "header.traceparent:" PARENT "\nheader.tracestate:v=1\nheader.a:1\nheader64.b:AAEC\n");
        buffer_clear(&b);
        trace_headers_put(&b, (struct span){ 0 }, &context, (struct span){ 0 });
        assert_string_equal(buffer_text(&b), "header.traceparent:" PARENT "\n");
        buffer_clear(&b);
        /* A handler that named one itself knows better. */
        trace_headers_add(&b, SPAN_TEXT("header.traceparent:mine\n"), &context, SPAN_TEXT("v=1"));
        assert_string_equal(buffer_text(&b), "header.traceparent:mine\n");
        buffer_free(&b);
}

static void a_task_that_is_full_of_headers_stays_a_task(void **state)
{
        struct trace_context context = parent();
        struct buffer lines = { 0 };
        struct buffer b = { 0 };
        (void)state;
        for (unsigned i = 0; i < TASK_HEADERS_MAX; i++)
                buffer_printf(&lines, "header.n%u:v\n", i);
        struct span all = { (const char *)lines.data, lines.size };
        trace_headers_put(&b, all, &context, (struct span){ 0 });
        assert_int_equal(b.size, lines.size);
        assert_memory_equal(b.data, lines.data, b.size);
        buffer_clear(&b);
        buffer_clear(&lines);
        for (unsigned i = 0; i < 7; i++)
                buffer_printf(&lines, "header.n%u:%01012u\n", i, i);
        all = (struct span){ (const char *)lines.data, lines.size };
        assert_in_range(lines.size, TASK_HEADER_LINES_MAX - 100, TASK_HEADER_LINES_MAX);
        trace_headers_put(&b, all, &context, (struct span){ 0 });
        assert_int_equal(b.size, lines.size);
        buffer_free(&b);
        buffer_free(&lines);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_traceparent_is_read_and_written),
                cmocka_unit_test(what_is_none_is_refused),
                cmocka_unit_test(flags_that_nobody_knows_are_not_passed_on),
                cmocka_unit_test(ids_depend_on_nothing_but_the_task),
                cmocka_unit_test(of_many_starts_no_two_have_the_same_id),
                cmocka_unit_test(a_ratio_chooses_so_many_and_always_the_same),
                cmocka_unit_test(the_headers_of_a_task_say_which_trace),
                cmocka_unit_test(a_trace_replaces_what_was_there_and_nothing_else),
                cmocka_unit_test(a_task_that_is_full_of_headers_stays_a_task),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
