/* What the store will be told, kept after the answer is gone. */
/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "host/shard/pending_outcome.h"

/* An answer whose memory is gone before its pending is looked at. */
static const struct trace_headers *trace; /* that the next one's follow-ups are part of */

static struct pending_outcome *pending_outcome_of(
        const struct ring_submit *submits, uint32_t count, struct error *error)
{
        struct buffer bytes = { 0 };
        char *result = strdup("the result");
        for (uint32_t i = 0; i < count; i++)
                ring_put_submit(&bytes, &submits[i]);
        struct ring_reply reply = { .error = "",
                .has_result = true,
                .result = result,
                .result_size = strlen(result),
                .submits = bytes.data,
                .submits_size = bytes.size,
                .submits_count = count };
        struct pending_outcome *pending = pending_outcome_done(&reply, trace, error);
        memset(result, '!', strlen(result));
        if (bytes.size)
                memset(bytes.data, '!', bytes.size);
        free(result);
        buffer_free(&bytes);
        return pending;
}

static void a_result_outlives_its_answer(void **state)
{
        (void)state;
        struct error error = { "" };
        struct pending_outcome *pending = pending_outcome_of(NULL, 0, &error);
        assert_int_equal(pending->outcome.kind, STORE_DONE);
        assert_true(pending->outcome.has_result);
        assert_true(span_is(pending->outcome.result, SPAN_TEXT("the result")));
        assert_int_equal(pending->outcome.follow_ups_count, 0);
        pending_outcome_free(pending);
}

static void follow_ups_outlive_their_answer(void **state)
{
        (void)state;
        struct buffer headers = { 0 };
        ring_put_header(&headers, &(struct ring_task_header){ .name = "trace", .value = "abc", .value_size = 3 });
        ring_put_header(&headers, &(struct ring_task_header){ "bytes", "a\0b", 3, true });
        const struct ring_submit submits[] = {
                { .handler = "mail",
                        .key = "user-7",
                        .lane = 1,
                        .delay_ms = 250,
                        .payload = "p\0q",
                        .payload_size = 3,
                        .headers = headers.data,
                        .headers_size = headers.size },
                { .handler = "log", .key = "", .lane = -1, .payload = "" },
                { .handler = "log", .key = "k", .lane = 0, .payload = "last", .payload_size = 4 },
        };
        struct error error = { "" };
        struct pending_outcome *pending = pending_outcome_of(submits, 3, &error);
        assert_non_null(pending);
        assert_int_equal(pending->outcome.follow_ups_count, 3);
        const struct store_follow_up *f = pending->outcome.follow_ups;
        assert_true(span_is(f[0].envelope.handler, SPAN_TEXT("mail")));
        assert_true(span_is(f[0].envelope.key, SPAN_TEXT("user-7")));
        assert_true(span_is(f[0].envelope.payload, SPAN_TEXT("p\0q")));
        assert_true(span_is(f[0].envelope.headers, SPAN_TEXT("header.trace:abc\nheader64.bytes:YQBi\n")));
        assert_int_equal(f[0].envelope.lane, LANE_HIGH);
        assert_int_equal(f[0].delay_ms, 250);
        assert_int_equal(f[1].envelope.lane, LANE_LOW);
        assert_int_equal(f[1].envelope.key.size, 0);
        assert_int_equal(f[2].envelope.lane, LANE_NORMAL);
        assert_true(span_is(f[2].envelope.payload, SPAN_TEXT("last")));
        assert_true(span_is(pending->outcome.result, SPAN_TEXT("the result")));
        pending_outcome_free(pending);
        buffer_free(&headers);
}

/* As many and as long as they may be: nothing may move while spans point to it. */
static void many_headers_fit(void **state)
{
        (void)state;
        struct buffer headers = { 0 };
        for (int i = 0; i < 32; i++) {
                char name[16];
                (void)snprintf(name, sizeof(name), "name-%d", i);
                ring_put_header(&headers, &(struct ring_task_header){ .name = name, .value = "v", .value_size = 1 });
        }
        struct ring_submit submits[64];
        struct error error = { "" };
        for (int i = 0; i < 64; i++)
                submits[i] = (struct ring_submit){
                        .handler = "h", .key = "k", .payload = "", .headers = headers.data, .headers_size = headers.size
                };
        struct pending_outcome *pending = pending_outcome_of(submits, 64, &error);
        assert_non_null(pending);
        for (int i = 0; i < 64; i++) {
                struct span lines = pending->outcome.follow_ups[i].envelope.headers;
                struct task_header header;
                int count = 0;
                while (header_next(&lines, &header))
                        count++;
                assert_int_equal(count, 32);
        }
        pending_outcome_free(pending);
        buffer_free(&headers);
}

/* Each has the trace of the task that submitted it, but for one that has its own, and one that is full. */
static void follow_ups_are_part_of_the_trace(void **state)
{
        (void)state;
        char long_state[TASK_HEADER_MAX];
        memset(long_state, 's', sizeof(long_state));
        struct trace_headers of = { .found = TRACE_GIVEN, .state = { long_state, sizeof(long_state) } };
        assert_true(
                trace_context_parse(SPAN_TEXT("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"), &of.context));
        struct buffer own = { 0 };
        struct buffer full = { 0 };
        ring_put_header(&own, &(struct ring_task_header){ .name = "traceparent", .value = "mine", .value_size = 4 });
        for (int i = 0; i < 32; i++)
                ring_put_header(&full, &(struct ring_task_header){ .name = "n", .value = "v", .value_size = 1 });
        struct ring_submit submits[64];
        struct error error = { "" };
        for (int i = 0; i < 64; i++)
                submits[i] = (struct ring_submit){ .handler = "h", .key = "k", .payload = "" };
        submits[1].headers = own.data;
        submits[1].headers_size = own.size;
        submits[2].headers = full.data;
        submits[2].headers_size = full.size;
        trace = &of;
        struct pending_outcome *pending = pending_outcome_of(submits, 64, &error);
        trace = NULL;
        assert_non_null(pending);
        const struct store_follow_up *f = pending->outcome.follow_ups;
        struct trace_headers found;
        for (int i = 0; i < 64; i++) {
                trace_headers_read(f[i].envelope.headers, &found);
                enum trace_found expected = i == 1 ? TRACE_MALFORMED : i == 2 ? TRACE_ABSENT : TRACE_GIVEN;
                assert_int_equal(found.found, expected);
                if (expected != TRACE_GIVEN)
                        continue;
                assert_memory_equal(&found.context, &of.context, sizeof(of.context));
                assert_true(span_is(found.state, of.state));
        }
        assert_true(span_is(f[1].envelope.headers, SPAN_TEXT("header.traceparent:mine\n")));
        pending_outcome_free(pending);
        buffer_free(&own);
        buffer_free(&full);
}

static void assert_refused(const struct ring_submit *submit, const char *says)
{
        struct error error = { "" };
        assert_null(pending_outcome_of(submit, 1, &error));
        assert_non_null(strstr(error.text, says));
}

static void a_wrong_follow_up_is_refused_by_name(void **state)
{
        (void)state;
        assert_refused(&(struct ring_submit){ .handler = "9lives", .key = "k", .payload = "" }, "handler");
        assert_refused(&(struct ring_submit){ .handler = "h", .key = "a\nb", .payload = "" }, "key");
        struct buffer headers = { 0 };
        ring_put_header(&headers, &(struct ring_task_header){ .name = "a b", .value = "c", .value_size = 1 });
        struct ring_submit named = {
                .handler = "h", .key = "k", .payload = "", .headers = headers.data, .headers_size = headers.size
        };
        assert_refused(&named, "header: a name");
        named.headers_size--;
        assert_refused(&named, "headers are malformed");
        buffer_free(&headers);
        assert_refused(
                &(struct ring_submit){
                        .handler = "h", .key = "k", .payload = "", .headers = "name\0value", .headers_size = 10 },
                "header");
}

/* A runner that lies about how many there are loses none silently. */
static void a_wrong_count_is_refused(void **state)
{
        (void)state;
        struct buffer bytes = { 0 };
        ring_put_submit(&bytes, &(struct ring_submit){ .handler = "h", .key = "k", .payload = "" });
        for (uint32_t count = 0; count <= 2; count++) {
                struct error error = { "" };
                struct ring_reply reply = {
                        .error = "", .submits = bytes.data, .submits_size = bytes.size, .submits_count = count
                };
                struct pending_outcome *pending = pending_outcome_done(&reply, NULL, &error);
                assert_int_equal(pending != NULL, count == 1);
                assert_int_equal(*error.text != 0, count != 1);
                pending_outcome_free(pending);
        }
        buffer_free(&bytes);
}

static void cut_off_follow_ups_are_refused(void **state)
{
        (void)state;
        struct buffer bytes = { 0 };
        ring_put_submit(
                &bytes, &(struct ring_submit){ .handler = "h", .key = "k", .payload = "xyz", .payload_size = 3 });
        for (size_t size = 1; size < bytes.size; size++) {
                struct error error = { "" };
                uint8_t *cut = malloc(size); /* a sanitizer sees one byte too far */
                assert_non_null(cut);
                memcpy(cut, bytes.data, size);
                struct ring_reply reply = { .error = "", .submits = cut, .submits_size = size, .submits_count = 1 };
                assert_null(pending_outcome_done(&reply, NULL, &error));
                assert_true(*error.text != 0);
                free(cut);
        }
        buffer_free(&bytes);
}

static void an_error_and_a_checkpoint_are_copies(void **state)
{
        (void)state;
        char text[] = "why";
        struct pending_outcome *failed = pending_outcome_new(STORE_DEAD, COST_CRASH, text);
        struct pending_outcome *saved = pending_outcome_checkpoint(text, 3);
        memset(text, '!', 3);
        assert_true(span_is(failed->outcome.error, SPAN_TEXT("why")));
        assert_int_equal(failed->outcome.cost, COST_CRASH);
        assert_int_equal(saved->outcome.kind, STORE_CHECKPOINT);
        assert_true(span_is(saved->outcome.checkpoint, SPAN_TEXT("why")));
        pending_outcome_free(failed);
        pending_outcome_free(saved);
        pending_outcome_free(NULL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_result_outlives_its_answer),
                cmocka_unit_test(follow_ups_outlive_their_answer),
                cmocka_unit_test(many_headers_fit),
                cmocka_unit_test(follow_ups_are_part_of_the_trace),
                cmocka_unit_test(a_wrong_follow_up_is_refused_by_name),
                cmocka_unit_test(a_wrong_count_is_refused),
                cmocka_unit_test(cut_off_follow_ups_are_refused),
                cmocka_unit_test(an_error_and_a_checkpoint_are_copies),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
