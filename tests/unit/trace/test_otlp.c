/* Spans as OTLP/HTTP JSON: against golden text. */
#include "check.h"

#include <jansson.h>

#include "trace/otlp.h"

static struct trace_context context_of(const char *text)
{
        struct trace_context context;
        assert_true(trace_context_parse(span_of_text(text), &context));
        return context;
}

static const char golden[] =
        "{\"traceId\":\"4bf92f3577b34da6a3ce929d0e0e4736\",\"spanId\":\"00f067aa0ba902b7\",\"traceState\":\"a=1\","
        "\"parentSpanId\":\"53995c3f42cd8ad8\",\"name\":\"process mail\",\"kind\":5,"
        "\"startTimeUnixNano\":\"1763256000123456789\",\"endTimeUnixNano\":\"1763256000223456789\","
        "\"attributes\":[{\"key\":\"quiver.handler\",\"value\":{\"stringValue\":\"mail\"}},"
        "{\"key\":\"quiver.attempt\",\"value\":{\"intValue\":\"18446744073709551615\"}}],"
        "\"events\":[{\"timeUnixNano\":\"1763256000223456789\",\"name\":\"retry\",\"attributes\":["
        "{\"key\":\"quiver.again_ms\",\"value\":{\"intValue\":\"1000\"}}]}],"
        "\"links\":[{\"traceId\":\"4bf92f3577b34da6a3ce929d0e0e4736\",\"spanId\":\"53995c3f42cd8ad8\"}],"
        "\"status\":{\"code\":2,\"message\":\"said \\\"no\\\"\\u000aand \xef\xbf\xbd\"},\"flags\":1}";

static void a_span_is_what_the_protocol_says(void **state)
{
        struct trace_span span = {
                .context = context_of("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
                .parent = context_of("00-4bf92f3577b34da6a3ce929d0e0e4736-53995c3f42cd8ad8-01"),
                .has_link = true,
                .state = SPAN_TEXT("a=1"),
                .name = "process mail",
                .kind = TRACE_KIND_CONSUMER,
                .start_ns = UINT64_C(1763256000123456789),
                .end_ns = UINT64_C(1763256000223456789),
                .error = "said \"no\"\nand \xff",
                .events = { { .name = "retry", .at_ns = UINT64_C(1763256000223456789) } },
                .events_count = 1,
        };
        struct buffer b = { 0 };
        (void)state;
        trace_add_text(&span.attributes, "quiver.handler", SPAN_TEXT("mail"));
        trace_add_number(&span.attributes, "quiver.attempt", UINT64_MAX);
        trace_add_number(&span.events[0].attributes, "quiver.again_ms", 1000);
        otlp_put_span(&b, &span);
        assert_string_equal(buffer_text(&b), golden);
        buffer_free(&b);
}

static void where_a_trace_begins_there_is_no_parent(void **state)
{
        struct trace_span span = { .context = context_of("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
                .has_link = true,
                .name = "wait mail",
                .kind = TRACE_KIND_INTERNAL };
        struct buffer b = { 0 };
        (void)state;
        otlp_put_span(&b, &span);
        assert_null(strstr(buffer_text(&b), "parentSpanId"));
        assert_null(strstr(buffer_text(&b), "links"));
        assert_null(strstr(buffer_text(&b), "code"));
        buffer_free(&b);
}

static void a_request_is_json_whatever_is_in_it(void **state)
{
        struct trace_attributes resource = { .count = 0 };
        char odd[3 * TRACE_TEXT_MAX];
        struct buffer b = { 0 };
        (void)state;
        for (size_t i = 0; i < sizeof(odd); i++)
                odd[i] = (char)(i * 7);
        for (unsigned i = 0; i < TRACE_ATTRIBUTES_MAX + 5; i++)
                trace_add_text(&resource, "a", (struct span){ odd + i, sizeof(odd) - i });
        assert_int_equal(resource.count, TRACE_ATTRIBUTES_MAX);
        otlp_put_head(&b, &resource, "1.0");
        otlp_put_tail(&b);
        json_error_t error;
        json_t *o = json_loadb((const char *)b.data, b.size, JSON_ALLOW_NUL, &error);
        assert_non_null(o);
        /* Each byte becomes six at most, and no text is longer than it may be. */
        assert_in_range(b.size, 100, TRACE_ATTRIBUTES_MAX * (6 * TRACE_TEXT_MAX + 100));
        json_decref(o);
        buffer_free(&b);
}

static void what_a_receiver_did_not_take_is_read_from_its_answer(void **state)
{
        (void)state;
        assert_int_equal(otlp_rejected(SPAN_TEXT("")), 0);
        assert_int_equal(otlp_rejected(SPAN_TEXT("{}")), 0);
        assert_int_equal(otlp_rejected(SPAN_TEXT("<html>")), 0);
        assert_int_equal(otlp_rejected(SPAN_TEXT("[1]")), 0);
        assert_int_equal(otlp_rejected(SPAN_TEXT("{\"partialSuccess\":{\"rejectedSpans\":\"7\"}}")), 7);
        assert_int_equal(otlp_rejected(SPAN_TEXT("{\"partialSuccess\":{\"rejectedSpans\":3}}")), 3);
        assert_int_equal(otlp_rejected(SPAN_TEXT("{\"partialSuccess\":{\"rejectedSpans\":-3}}")), 0);
        assert_int_equal(otlp_rejected(SPAN_TEXT("{\"partialSuccess\":\"x\"}")), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_span_is_what_the_protocol_says),
                cmocka_unit_test(where_a_trace_begins_there_is_no_parent),
                cmocka_unit_test(a_request_is_json_whatever_is_in_it),
                cmocka_unit_test(what_a_receiver_did_not_take_is_read_from_its_answer),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
