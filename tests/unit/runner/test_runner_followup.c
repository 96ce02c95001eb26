/* Follow-ups that a handler asks for: what is accepted, what is refused, and what reaches the host. */
#include "check.h"

#include <errno.h>
#include <stdlib.h>

#include "base/span.h"
#include "runner/followup.h"
#include "runner/seat.h"

static int stage(struct seat_task *w, const struct qv_submit *submit, struct error *error)
{
        return followup_stage(w, submit, 100, 8192, error);
}

static void expect_bad_submit(const struct qv_submit *submit, int r, const char *field)
{
        struct seat_task w = { 0 };
        struct error error = { "" };
        assert_int_equal(stage(&w, submit, &error), r);
        assert_int_equal(w.submits_count, 0);
        assert_int_equal(w.submits.size, 0);
        if (strncmp(error.text, field, strlen(field)) != 0)
                fail_msg("\"%s\" does not begin with %s", error.text, field);
        seat_task_free(&w);
}

static void a_wrong_follow_up_is_refused_by_its_field(void **state)
{
        (void)state;
        char long_text[2000];
        memset(long_text, 'k', sizeof(long_text) - 1);
        long_text[sizeof(long_text) - 1] = 0;
#define SUBMIT(...) .submit = {.size = sizeof(struct qv_submit), __VA_ARGS__ }
#define NAMED(...)  SUBMIT(.handler = "next", __VA_ARGS__)
#define HEADER(...) NAMED(.headers = &(struct qv_header){ __VA_ARGS__ }, .headers_count = 1)
        const struct {
                struct qv_submit submit;
                int r;
                const char *field;
        } cases[] = {
                { .submit = { .size = 4, .handler = "next" }, -EINVAL, "size" },
                { SUBMIT(.handler = NULL), -EINVAL, "handler" },
                { SUBMIT(.handler = ""), -EINVAL, "handler" },
                { SUBMIT(.handler = "9to5"), -EINVAL, "handler" },
                { SUBMIT(.handler = "a b"), -EINVAL, "handler" },
                { SUBMIT(.handler = "sch\xc3\xb6n"), -EINVAL, "handler" },
                { SUBMIT(.handler = "-x"), -EINVAL, "handler" },
                { SUBMIT(.handler = "a/b"), -EINVAL, "handler" },
                { SUBMIT(.handler = long_text), -EINVAL, "handler" },
                { NAMED(.key = ""), -EINVAL, "key" },
                { NAMED(.key = "a\nb"), -EINVAL, "key" },
                { NAMED(.key = "a\x7f"), -EINVAL, "key" },
                { NAMED(.key = long_text), -EINVAL, "key" },
                { NAMED(.lane = 2), -EINVAL, "lane" },
                { NAMED(.payload_size = 5), -EINVAL, "payload is NULL" },
                { NAMED(.payload = long_text, .payload_size = 101), -EMSGSIZE, "payload_size" },
                { NAMED(.delay_ms = UINT64_MAX), -EINVAL, "delay_ms" },
                { HEADER("name", "va\rlue"), -EINVAL, "header name has a control character; headers2" },
                { HEADER("n:ame", "value"), -EINVAL, "a header's name" },
                { HEADER(NULL, "value"), -EINVAL, "a header's name" },
                { HEADER("name", NULL), -EINVAL, "header name has no value" },
                { NAMED(.headers = &(struct qv_header){ "name", NULL }, .headers_count = QV_HEADERS_MAX + 1), -EMSGSIZE,
                        "headers_count" },
        };
        for (size_t i = 0; i < COUNT(cases); i++)
                expect_bad_submit(&cases[i].submit, cases[i].r, cases[i].field);
}

static void wrong_headers_of_bytes_are_refused_by_name(void **state)
{
        (void)state;
        static char large[QV_HEADER_MAX + 1];
        memset(large, 'x', sizeof(large));
        struct qv_header text = { "t", "x" };
        struct qv_header2 header = { "name", large, QV_HEADER_MAX, 0, 0 };
        struct qv_submit good = QV_SUBMIT_INIT;
        good.handler = "h";
        good.headers2 = &header;
        good.headers2_count = 1;
        struct qv_submit s = good;
        struct seat_task w = { 0 };
        struct error error;
        assert_int_equal(stage(&w, &s, &error), 0);
        seat_task_free(&w);
        header.value_size++;
        expect_bad_submit(&s, -EMSGSIZE, "header name is longer than 1024 bytes");
        large[0] = 1;
        header.value_size = QV_HEADER_BYTES_MAX + 1;
        expect_bad_submit(&s, -EMSGSIZE, "header name is longer than 768 bytes, and has control characters");
        header.value = NULL;
        expect_bad_submit(&s, -EINVAL, "header name has a size and no value");
        header = (struct qv_header2){ "na me", "", 0, 0, 0 };
        expect_bad_submit(&s, -EINVAL, "a header's name");
        s.headers2 = NULL;
        expect_bad_submit(&s, -EINVAL, "headers2 is NULL");
        s = good;
        s.headers2_stride = 8;
        expect_bad_submit(&s, -EINVAL, "headers2_stride is 8");
        s = good;
        s.headers = &text;
        s.headers_count = 1;
        s.headers2_count = QV_HEADERS_MAX;
        expect_bad_submit(&s, -EMSGSIZE, "headers2_count");
        s.headers2_count = SIZE_MAX;
        expect_bad_submit(&s, -EMSGSIZE, "headers2_count");
}

static void expect_header(struct reader *headers, const char *name, struct span value, bool is_bytes)
{
        struct ring_task_header got;
        assert_int_equal(ring_next_header(headers, &got), 0);
        assert_string_equal(got.name, name);
        assert_int_equal(got.value_size, value.size);
        assert_memory_equal(got.value, value.data, value.size);
        if (!is_bytes)
                assert_string_equal(got.value, value.data);
        assert_int_equal(got.is_bytes, is_bytes);
}

static void a_good_follow_up_arrives_whole(void **state)
{
        (void)state;
        struct seat_task w = { 0 };
        struct error error;
        struct qv_header header = { "trace", "abc" };
        char key[256];
        memset(key, 'k', 255);
        key[255] = 0;
        struct qv_submit s = { .size = sizeof(s),
                .lane = -1,
                .handler = "A-b_9",
                .key = key,
                .payload = "a\0b",
                .payload_size = 3,
                .delay_ms = 60000,
                .headers = &header,
                .headers_count = 1 };
        /* Of a newer plugin, whose headers have more fields. */
        struct {
                struct qv_header2 known;
                uint64_t newer;
        } headers2[2] = { { { "bytes", "a\0b", 3, 0, 0 }, 1 }, { { "text", "hi", 2, 1, 0 }, 2 } };
        s.headers2 = &headers2[0].known;
        s.headers2_count = 2;
        s.headers2_stride = sizeof(headers2[0]);
        assert_int_equal(stage(&w, &s, &error), 0);
        s = (struct qv_submit){ .size = offsetof(struct qv_submit, key), .handler = "old" };
        assert_int_equal(stage(&w, &s, &error), 0);
        assert_int_equal(w.submits_count, 2);

        struct reader reader;
        struct ring_submit got_submit;
        reader_init(&reader, w.submits.data, w.submits.size);
        assert_int_equal(ring_next_submit(&reader, &got_submit), 0);
        assert_string_equal(got_submit.handler, "A-b_9");
        assert_string_equal(got_submit.key, key);
        assert_int_equal(got_submit.lane, -1);
        assert_int_equal(got_submit.delay_ms, 60000);
        assert_memory_equal(got_submit.payload, "a\0b", 3);
        struct reader headers;
        reader_init(&headers, got_submit.headers, got_submit.headers_size);
        expect_header(&headers, "trace", SPAN_TEXT("abc"), false);
        expect_header(&headers, "bytes", (struct span){ "a\0b", 3 }, true);
        expect_header(&headers, "text", SPAN_TEXT("hi"), false);
        assert_int_equal(headers.size, 0);
        assert_int_equal(ring_next_submit(&reader, &got_submit), 0);
        assert_string_equal(got_submit.key, "");
        assert_int_equal(reader.size, 0);
        seat_task_free(&w);
}

static void follow_ups_are_bounded_in_number_and_bytes(void **state)
{
        (void)state;
        struct seat_task w = { 0 };
        struct error error;
        static char payload[100];
        struct qv_submit s = { .size = sizeof(s), .handler = "next", .payload = payload, .payload_size = 100 };
        uint32_t staged = 0;
        int r;
        while ((r = stage(&w, &s, &error)) == 0)
                staged++;
        assert_int_equal(r, -EMSGSIZE);
        assert_true(staged > 10 && staged < 82 && seat_task_size(&w) <= 8192);
        seat_task_free(&w);
        s.payload_size = 0;
        for (staged = 0; (r = followup_stage(&w, &s, 100, 64 * 1024, &error)) == 0;)
                staged++;
        assert_int_equal(r, -E2BIG);
        assert_int_equal(staged, QV_SUBMITS_MAX);
        seat_task_free(&w);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_wrong_follow_up_is_refused_by_its_field),
                cmocka_unit_test(a_good_follow_up_arrives_whole),
                cmocka_unit_test(wrong_headers_of_bytes_are_refused_by_name),
                cmocka_unit_test(follow_ups_are_bounded_in_number_and_bytes),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
