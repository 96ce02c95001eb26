/* What a worker is told and says: fences, holders, reports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "worker/work.h"

static struct span T(const char *text) {
        return (struct span){ text, strlen(text) };
}

static void
a_fence_comes_back_as_it_was_given(void **state)
{
        (void)state;
        char text[FENCE_TEXT_MAX];
        struct work_fence fence = { TASK_NUMBER_MAX, 7, UINT64_C(281474976710657) };
        struct work_fence read;
        fence_put(text, &fence);
        assert_string_equal(text, "9007199254740991.7.281474976710657");
        assert_int_equal(fence_parse(T(text), &read, NULL), 0);
        assert_memory_equal(&read, &fence, sizeof(fence));
        static const char *const wrong[] = { "", "1", "1.2", "1.2.", "1.2.3.4", "a.2.3", "1..3", "1.2.3 ", "-1.2.3",
                "9007199254740992.1.1", "99999999999999999999.1.1" };
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
                assert_int_equal(fence_parse(T(wrong[i]), &read, NULL), -EINVAL);
}

static void a_holder_names_the_start_and_the_worker(void **state)
{
        (void)state;
        char text[NOTE_HOLDER_MAX + 1];
        char name[WORKER_NAME_MAX + 1];
        struct work_fence fence = { TASK_NUMBER_MAX, TASK_NUMBER_MAX, 0 };
        struct work_fence read;
        struct span worker;
        memset(name, 'x', WORKER_NAME_MAX);
        name[WORKER_NAME_MAX] = 0;
        holder_put(text, &fence, name);
        assert_true(note_holder_is_good(T(text)));
        assert_true(holder_parse(T(text), &read, &worker));
        assert_true(span_is(worker, T(name)));
        assert_int_equal(read.epoch, fence.epoch);
        assert_int_equal(read.start, fence.start);
        static const char *const others[] = { "", "worker", "worker/", "worker/1.2", "worker/1.2/", "worker/1/a",
                "worker/1.2/a b", "worker/x.2/a", "0123456789abcdef0123456789abcdef", "Worker/1.2/a" };
        for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
                assert_false(holder_parse(T(others[i]), &read, &worker));
}

static void a_worker_has_a_plain_name(void **state)
{
        (void)state;
        char name[WORKER_NAME_MAX + 2];
        memset(name, 'a', sizeof(name));
        name[WORKER_NAME_MAX + 1] = 0;
        assert_int_equal(worker_name_check(T("web-1:4711@eu.x_y"), NULL), 0);
        assert_int_equal(worker_name_check((struct span){ name, WORKER_NAME_MAX }, NULL), 0);
        assert_int_equal(worker_name_check(T(name), NULL), -EINVAL);
        assert_int_equal(worker_name_check(T(""), NULL), -EINVAL);
        assert_int_equal(worker_name_check(T("a/b"), NULL), -EINVAL);
        assert_int_equal(worker_name_check(T("a b"), NULL), -EINVAL);
        assert_int_equal(worker_name_check(T("\xc3\xa4"), NULL), -EINVAL);
        assert_int_equal(worker_name_check((struct span){ "a\0b", 3 }, NULL), -EINVAL);
}

/* --- reports --- */

static struct work_report good(enum report_kind kind, const char *json)
{
        struct work_report r;
        struct error error = { "" };
        if (report_parse(T(json), kind, &r, &error) < 0)
                fail_msg("%s: %s", json, error.text);
        return r;
}

static void bad(enum report_kind kind, const char *json, const char *why)
{
        struct work_report r;
        struct error error = { "" };
        assert_int_equal(report_parse(T(json), kind, &r, &error), -EINVAL);
        if (!strstr(error.text, why))
                fail_msg("%s: \"%s\" says nothing of \"%s\"", json, error.text, why);
}

static void an_outcome_brings_all_that_a_plugin_could(void **state)
{
        (void)state;
        struct work_report r = good(REPORT_OUTCOME,
                "{\"fence\": \"1.2.3\", \"outcome\": \"done\", \"result_base64\": \"AP8=\", \"follow_ups\": ["
                "{\"handler\": \"mail\", \"key\": \"k\", \"lane\": \"high\", \"delay\": \"5s\", "
                "\"headers\": {\"a\": \"b\"}, \"headers_base64\": {\"c\": \"AP8=\"}, \"payload\": \"x\"}, "
                "{\"handler\": \"log\", \"payload\": {\"n\": 1}}]}");
        struct reader reader;
        struct ring_submit submit;
        assert_int_equal(r.outcome, OUTCOME_DONE);
        assert_int_equal(r.fence.seq, 3);
        assert_true(r.has_result);
        assert_int_equal(r.result.size, 2);
        assert_memory_equal(r.result.data, "\0\xff", 2);
        assert_int_equal(r.follow_ups_count, 2);
        reader_init(&reader, r.follow_ups.data, r.follow_ups.size);
        assert_int_equal(ring_next_submit(&reader, &submit), 0);
        assert_string_equal(submit.handler, "mail");
        assert_string_equal(submit.key, "k");
        assert_int_equal(submit.lane, 1);
        assert_int_equal(submit.delay_ms, 5000);
        struct reader headers;
        struct ring_task_header header;
        reader_init(&headers, submit.headers, submit.headers_size);
        assert_int_equal(ring_next_header(&headers, &header), 0);
        assert_string_equal(header.name, "a");
        assert_memory_equal(header.value, "b", header.value_size);
        assert_int_equal(ring_next_header(&headers, &header), 0);
        assert_string_equal(header.name, "c");
        assert_int_equal(header.value_size, 2);
        assert_memory_equal(header.value, "\0\xff", 2);
        assert_memory_equal(submit.payload, "x", 1);
        assert_int_equal(ring_next_submit(&reader, &submit), 0);
        assert_string_equal(submit.key, "");
        assert_int_equal(submit.lane, 0);
        assert_memory_equal(submit.payload, "{\"n\":1}", submit.payload_size);
        report_free(&r);
        r = good(REPORT_OUTCOME,
                "{\"fence\":\"1.2.3\",\"outcome\":\"retry\",\"error\":\"no route\",\"retry_after\":\"30s\","
                "\"checkpoint\":\"row 7\",\"progress\":[3,10]}");
        assert_int_equal(r.outcome, OUTCOME_RETRY);
        assert_string_equal(buffer_text(&r.error), "no route");
        assert_int_equal(r.retry_after_ms, 30000);
        assert_true(r.has_checkpoint);
        assert_int_equal(r.progress_total, 10);
        report_free(&r);
        r = good(REPORT_HEARTBEAT, "{\"fence\":\"1.2.3\"}");
        assert_false(r.has_checkpoint || r.has_progress);
        report_free(&r);
}

static void a_report_is_refused_by_the_name_of_what_is_wrong(void **state)
{
        (void)state;
#define WITH(rest) "{\"fence\":\"1.2.3\",\"outcome\":\"done\"" rest "}"
        bad(REPORT_OUTCOME, "", "JSON");
        bad(REPORT_OUTCOME, "[]", "object");
        bad(REPORT_OUTCOME, "{\"outcome\":\"done\"}", "fence: is missing");
        bad(REPORT_OUTCOME, "{\"fence\":\"1.2.3\"}", "outcome: is missing");
        bad(REPORT_OUTCOME, "{\"fence\":7,\"outcome\":\"done\"}", "fence");
        bad(REPORT_OUTCOME, "{\"fence\":\"1.2.3\",\"outcome\":\"great\"}", "outcome: is done");
        bad(REPORT_OUTCOME, "{\"fence\":\"1.2.3\",\"outcome\":\"don\\u0000e\"}", "outcome: is done");
        bad(REPORT_OUTCOME, WITH(",\"resullt\":\"x\""), "did you mean result");
        bad(REPORT_OUTCOME, WITH(",\"result_base64\":\"?\""), "result_base64");
        bad(REPORT_OUTCOME, WITH(",\"retry_after\":\"5s\""), "retry_after: belongs");
        bad(REPORT_OUTCOME, "{\"fence\":\"1.2.3\",\"outcome\":\"retry\",\"retry_after\":5}", "retry_after");
        bad(REPORT_OUTCOME, "{\"fence\":\"1.2.3\",\"outcome\":\"retry\",\"retry_after\":\"99999d\"}", "ten years");
        bad(REPORT_OUTCOME, "{\"fence\":\"1.2.3\",\"outcome\":\"reject\",\"result\":\"x\"}", "result, follow_ups");
        bad(REPORT_OUTCOME, WITH(",\"follow_ups\":{}"), "follow_ups");
        bad(REPORT_OUTCOME, WITH(",\"follow_ups\":[{\"handler\":\"a\"},{\"key\":\"k\"}]"), "follow_ups[1]: handler");
        bad(REPORT_OUTCOME, WITH(",\"follow_ups\":[{\"handler\":\"a b\"}]"), "follow_ups[0]");
        bad(REPORT_OUTCOME, WITH(",\"follow_ups\":[{\"handler\":\"a\",\"lane\":\"fast\"}]"), "lane");
        bad(REPORT_OUTCOME, WITH(",\"follow_ups\":[{\"handler\":\"a\",\"headers\":{\"x\":1}}]"), "headers.x");
        bad(REPORT_OUTCOME, WITH(",\"follow_ups\":[{\"handler\":\"a\",\"headers\":{\"x:y\":\"1\"}}]"), "follow_ups[0]");
        bad(REPORT_OUTCOME, WITH(",\"follow_ups\":[{\"handler\":\"a\",\"unique\":\"1h\"}]"), "no member unique");
        bad(REPORT_OUTCOME, WITH(",\"progress\":[1]"), "progress");
        bad(REPORT_OUTCOME, WITH(",\"progress\":[-1,2]"), "progress");
        bad(REPORT_HEARTBEAT, "{\"fence\":\"1.2.3\",\"outcome\":\"done\"}", "no member outcome");
        char large[NOTE_CHECKPOINT_MAX + 100];
        memset(large, 'x', sizeof(large));
        memcpy(large, "{\"fence\":\"1.2.3\",\"checkpoint\":\"", 31);
        (void)strcpy(large + NOTE_CHECKPOINT_MAX + 60, "\"}");
        bad(REPORT_HEARTBEAT, large, "checkpoint");
#undef WITH
}

static void a_task_is_handed_out_as_json(void **state)
{
        (void)state;
        struct work_task task = { .id = T("i-1"),
                .key = T("k"),
                .handler = T("h"),
                .payload = { "\0\xff", 2 },
                .headers = T("header.a:b\n"),
                .attempt = 2,
                .attempts_max = 4,
                .fence = { 1, 2, 3 },
                .remaining_ms = 900,
                .ttl_ms = 1000 };
        json_t *o = work_task_json(&task);
        char *text = json_dumps(o, JSON_COMPACT | JSON_PRESERVE_ORDER);
        assert_string_equal(text,
                "{\"id\":\"i-1\",\"handler\":\"h\",\"key\":\"k\",\"payload_base64\":\"AP8=\",\"attempt\":2,"
                "\"attempts_max\":4,\"crashes\":0,\"headers\":{\"a\":\"b\"},\"fence\":\"1.2.3\","
                "\"remaining_ms\":900,\"ttl_ms\":1000}");
        free(text);
        json_decref(o);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_fence_comes_back_as_it_was_given),
                cmocka_unit_test(a_holder_names_the_start_and_the_worker),
                cmocka_unit_test(a_worker_has_a_plain_name),
                cmocka_unit_test(an_outcome_brings_all_that_a_plugin_could),
                cmocka_unit_test(a_report_is_refused_by_the_name_of_what_is_wrong),
                cmocka_unit_test(a_task_is_handed_out_as_json),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
