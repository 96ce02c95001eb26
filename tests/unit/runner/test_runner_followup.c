/* Follow-ups that a handler asks for: what is accepted, what is refused, and what reaches the host. */
#include "check.h"

#include <errno.h>
#include <stdlib.h>

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
        const struct qv_submit good = { .size = sizeof(good), .handler = "next" };
        struct qv_submit s = good;
        s.size = 4;
        expect_bad_submit(&s, -EINVAL, "size");
        static const char *const bad_names[] = { NULL, "", "9to5", "a b", "sch\xc3\xb6n", "-x", "a/b" };
        for (size_t i = 0; i < sizeof(bad_names) / sizeof(*bad_names); i++) {
                s = good;
                s.handler = bad_names[i];
                expect_bad_submit(&s, -EINVAL, "handler");
        }
        s.handler = long_text;
        expect_bad_submit(&s, -EINVAL, "handler");
        static const char *const bad_keys[] = { "", "a\nb", "a\x7f" };
        for (size_t i = 0; i < sizeof(bad_keys) / sizeof(*bad_keys); i++) {
                s = good;
                s.key = bad_keys[i];
                expect_bad_submit(&s, -EINVAL, "key");
        }
        s.key = long_text;
        expect_bad_submit(&s, -EINVAL, "key");
        s = good;
        s.lane = 2;
        expect_bad_submit(&s, -EINVAL, "lane");
        s = good;
        s.payload_size = 5;
        expect_bad_submit(&s, -EINVAL, "payload is NULL");
        s.payload = long_text;
        s.payload_size = 101;
        expect_bad_submit(&s, -EMSGSIZE, "payload_size");
        s = good;
        s.delay_ms = UINT64_MAX;
        expect_bad_submit(&s, -EINVAL, "delay_ms");
        struct qv_header header = { "name", "va\rlue" };
        s = good;
        s.headers = &header;
        s.headers_count = 1;
        expect_bad_submit(&s, -EINVAL, "header name has a control character; headers2");
        header = (struct qv_header){ "n:ame", "value" };
        expect_bad_submit(&s, -EINVAL, "a header's name");
        header = (struct qv_header){ NULL, "value" };
        expect_bad_submit(&s, -EINVAL, "a header's name");
        header = (struct qv_header){ "name", NULL };
        expect_bad_submit(&s, -EINVAL, "header name has no value");
        s.headers_count = QV_HEADERS_MAX + 1;
        expect_bad_submit(&s, -EMSGSIZE, "headers_count");
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
        struct ring_task_header header_got;
        reader_init(&headers, got_submit.headers, got_submit.headers_size);
        assert_int_equal(ring_next_header(&headers, &header_got), 0);
        assert_string_equal(header_got.name, "trace");
        assert_string_equal(header_got.value, "abc");
        assert_false(header_got.is_bytes);
        assert_int_equal(ring_next_header(&headers, &header_got), 0);
        assert_string_equal(header_got.name, "bytes");
        assert_int_equal(header_got.value_size, 3);
        assert_memory_equal(header_got.value, "a\0b", 3);
        assert_true(header_got.is_bytes);
        assert_int_equal(ring_next_header(&headers, &header_got), 0);
        assert_string_equal(header_got.value, "hi");
        assert_false(header_got.is_bytes);
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
