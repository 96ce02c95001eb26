/* Tasks and answers as bytes: what goes in comes out, and nothing is read beyond the end. */
#include "check.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "ring/pack.h"

static const struct ring_task a_task = {
        .id = "t-1.7",
        .key = "user-9",
        .handler = "mail",
        .attempt = 3,
        .lease = 7,
        .fence_epoch = UINT64_C(1) << 60,
        .fence_start = 12,
        .timeout_ms = 30000,
        .submitted_ms = UINT64_C(1794895000123),
        .attempts_max = 4,
        .crashes = 2,
        .lane = -1,
        .headers = "trace\0abc\0",
        .headers_size = 10,
        .checkpoint = "\0\1\2",
        .checkpoint_size = 3,
        .payload = "pay\0load",
        .payload_size = 8,
};

static const struct ring_reply a_reply = {
        .ticket = 99,
        .outcome = OUTCOME_RETRY,
        .started_ns = 1000,
        .ended_ns = 2000,
        .has_result = true,
        .has_retry_after = true,
        .has_checkpoint = true,
        .retry_after_ms = 250,
        .error = "no such user",
        .result = "\0result",
        .result_size = 7,
        .submits = "follow-ups",
        .submits_size = 10,
        .submits_count = 2,
        .checkpoint = "half",
        .checkpoint_size = 4,
};

/* Packed into memory of exactly the size asked for, so that ASan sees a byte too many. */
static uint8_t *packed_task(const struct ring_task *task, size_t *ret_size)
{
        *ret_size = ring_task_size(task);
        uint8_t *bytes = malloc(*ret_size);
        assert_non_null(bytes);
        ring_pack_task(bytes, task);
        return bytes;
}

static uint8_t *packed_reply(const struct ring_reply *reply, size_t *ret_size)
{
        *ret_size = ring_reply_size(reply);
        uint8_t *bytes = malloc(*ret_size);
        assert_non_null(bytes);
        ring_pack_reply(bytes, reply);
        return bytes;
}

static void a_task_comes_out_as_it_went_in(void **state)
{
        (void)state;
        size_t size = 0;
        uint8_t *bytes = packed_task(&a_task, &size);
        struct ring_task t = { 0 };
        assert_int_equal(ring_unpack_task(bytes, size, &t), 0);
        assert_string_equal(t.id, a_task.id);
        assert_string_equal(t.key, a_task.key);
        assert_string_equal(t.handler, a_task.handler);
        assert_int_equal(t.attempt, a_task.attempt);
        assert_int_equal(t.lease, a_task.lease);
        assert_int_equal(t.fence_epoch, a_task.fence_epoch);
        assert_int_equal(t.fence_start, a_task.fence_start);
        assert_int_equal(t.timeout_ms, a_task.timeout_ms);
        assert_int_equal(t.submitted_ms, a_task.submitted_ms);
        assert_int_equal(t.attempts_max, a_task.attempts_max);
        assert_int_equal(t.crashes, a_task.crashes);
        assert_int_equal(t.lane, a_task.lane);
        assert_int_equal(t.headers_size, a_task.headers_size);
        assert_memory_equal(t.headers, a_task.headers, a_task.headers_size);
        assert_int_equal(t.checkpoint_size, a_task.checkpoint_size);
        assert_memory_equal(t.checkpoint, a_task.checkpoint, a_task.checkpoint_size);
        assert_int_equal(t.payload_size, a_task.payload_size);
        assert_memory_equal(t.payload, a_task.payload, a_task.payload_size);
        assert_int_equal(((const char *)t.payload)[t.payload_size], 0);
        free(bytes);
}

static void an_empty_task_comes_out_empty(void **state)
{
        (void)state;
        const struct ring_task empty = { .id = "", .key = "", .handler = "" };
        size_t size = 0;
        uint8_t *bytes = packed_task(&empty, &size);
        struct ring_task t = { 0 };
        assert_int_equal(ring_unpack_task(bytes, size, &t), 0);
        assert_string_equal(t.id, "");
        assert_string_equal(t.handler, "");
        assert_string_equal(t.payload, "");
        assert_int_equal(t.headers_size + t.checkpoint_size + t.payload_size, 0);
        free(bytes);
}

static void a_reply_comes_out_as_it_went_in(void **state)
{
        (void)state;
        size_t size = 0;
        uint8_t *bytes = packed_reply(&a_reply, &size);
        struct ring_reply r = { 0 };
        assert_int_equal(ring_unpack_reply(bytes, size, &r), 0);
        assert_int_equal(r.ticket, a_reply.ticket);
        assert_int_equal(r.outcome, a_reply.outcome);
        assert_int_equal(r.started_ns, a_reply.started_ns);
        assert_int_equal(r.ended_ns, a_reply.ended_ns);
        assert_true(r.has_result && r.has_retry_after && r.has_checkpoint);
        assert_int_equal(r.retry_after_ms, a_reply.retry_after_ms);
        assert_string_equal(r.error, a_reply.error);
        assert_int_equal(r.result_size, a_reply.result_size);
        assert_memory_equal(r.result, a_reply.result, a_reply.result_size);
        assert_int_equal(r.submits_count, a_reply.submits_count);
        assert_int_equal(r.submits_size, a_reply.submits_size);
        assert_memory_equal(r.submits, a_reply.submits, a_reply.submits_size);
        assert_int_equal(r.checkpoint_size, a_reply.checkpoint_size);
        assert_memory_equal(r.checkpoint, a_reply.checkpoint, a_reply.checkpoint_size);
        free(bytes);
}

static void each_flag_of_a_reply_stands_for_itself(void **state)
{
        (void)state;
        for (int flags = 0; flags < 8; flags++) {
                const struct ring_reply sent = {
                        .error = "", .has_result = flags & 1, .has_retry_after = flags & 2, .has_checkpoint = flags & 4
                };
                size_t size = 0;
                uint8_t *bytes = packed_reply(&sent, &size);
                struct ring_reply r = { 0 };
                assert_int_equal(ring_unpack_reply(bytes, size, &r), 0);
                assert_int_equal(r.has_result, sent.has_result);
                assert_int_equal(r.has_retry_after, sent.has_retry_after);
                assert_int_equal(r.has_checkpoint, sent.has_checkpoint);
                free(bytes);
        }
}

/* Every prefix, each in memory of its own size. */
static void what_was_cut_is_refused_at_every_byte(void **state)
{
        (void)state;
        size_t size = 0;
        uint8_t *bytes = packed_task(&a_task, &size);
        for (size_t n = 0; n < size; n++) {
                uint8_t *cut = malloc(n + !n);
                assert_non_null(cut);
                memcpy(cut, bytes, n);
                struct ring_task t = { .attempt = 77 };
                assert_int_equal(ring_unpack_task(cut, n, &t), -EBADMSG);
                assert_int_equal(t.attempt, 77);
                free(cut);
        }
        free(bytes);
        bytes = packed_reply(&a_reply, &size);
        for (size_t n = 0; n < size; n++) {
                uint8_t *cut = malloc(n + !n);
                assert_non_null(cut);
                memcpy(cut, bytes, n);
                struct ring_reply r = { .ticket = 77 };
                assert_int_equal(ring_unpack_reply(cut, n, &r), -EBADMSG);
                assert_int_equal(r.ticket, 77);
                free(cut);
        }
        free(bytes);
}

static void trailing_bytes_are_refused(void **state)
{
        (void)state;
        uint8_t bytes[512] = { 0 };
        struct ring_task t;
        struct ring_reply r;
        ring_pack_task(bytes, &a_task);
        assert_int_equal(ring_unpack_task(bytes, ring_task_size(&a_task) + 1, &t), -EBADMSG);
        ring_pack_reply(bytes, &a_reply);
        assert_int_equal(ring_unpack_reply(bytes, ring_reply_size(&a_reply) + 1, &r), -EBADMSG);
}

/* Flips every byte in turn: either it still reads, with every part inside the bytes, or it is refused. */
static void a_scribbled_reply_never_points_outside(void **state)
{
        (void)state;
        size_t size = 0;
        uint8_t *bytes = packed_reply(&a_reply, &size);
        unsigned refused = 0;
        for (size_t i = 0; i < size * 8; i++) {
                bytes[i / 8] ^= (uint8_t)(1u << i % 8);
                struct ring_reply r;
                if (ring_unpack_reply(bytes, size, &r) == 0) {
                        const char *end = (const char *)bytes + size;
                        assert_true(r.error >= (const char *)bytes && r.error + strlen(r.error) < end);
                        assert_true((const char *)r.result + r.result_size <= end);
                        assert_true((const char *)r.submits + r.submits_size <= end);
                        assert_true((const char *)r.checkpoint + r.checkpoint_size <= end);
                        assert_true(r.submits_count <= QV_SUBMITS_MAX);
                } else {
                        refused++;
                }
                bytes[i / 8] ^= (uint8_t)(1u << i % 8);
        }
        assert_true(refused > 5 * 32);
        free(bytes);
}

static void a_reply_beyond_the_limits_is_refused(void **state)
{
        (void)state;
        static uint8_t checkpoint[QV_CHECKPOINT_MAX + 1];
        struct ring_reply sent = { .error = "", .checkpoint = checkpoint, .checkpoint_size = QV_CHECKPOINT_MAX };
        struct ring_reply r;
        size_t size = 0;
        uint8_t *bytes = packed_reply(&sent, &size);
        assert_int_equal(ring_unpack_reply(bytes, size, &r), 0);
        free(bytes);
        sent.checkpoint_size++;
        bytes = packed_reply(&sent, &size);
        assert_int_equal(ring_unpack_reply(bytes, size, &r), -EBADMSG);
        free(bytes);
        sent = (struct ring_reply){ .error = "", .submits_count = QV_SUBMITS_MAX + 1 };
        bytes = packed_reply(&sent, &size);
        assert_int_equal(ring_unpack_reply(bytes, size, &r), -EBADMSG);
        free(bytes);
}

static void follow_ups_come_out_in_order(void **state)
{
        (void)state;
        const struct ring_submit first = { .handler = "mail",
                .key = "user-9",
                .lane = -1,
                .delay_ms = 5000,
                .headers = "a\0b\0",
                .headers_size = 4,
                .payload = "one",
                .payload_size = 3 };
        const struct ring_submit second = { .handler = "audit", .lane = 1 };
        struct buffer b = { 0 };
        ring_put_submit(&b, &first);
        ring_put_submit(&b, &second);
        struct reader from;
        struct ring_submit s;
        reader_init(&from, b.data, b.size);
        assert_int_equal(ring_next_submit(&from, &s), 0);
        assert_string_equal(s.handler, "mail");
        assert_string_equal(s.key, "user-9");
        assert_int_equal(s.lane, -1);
        assert_int_equal(s.delay_ms, 5000);
        assert_int_equal(s.headers_size, 4);
        assert_memory_equal(s.headers, "a\0b\0", 4);
        assert_int_equal(s.payload_size, 3);
        assert_memory_equal(s.payload, "one", 3);
        assert_int_equal(ring_next_submit(&from, &s), 0);
        assert_string_equal(s.handler, "audit");
        assert_string_equal(s.key, "");
        assert_int_equal(s.lane, 1);
        assert_int_equal(ring_next_submit(&from, &s), -EBADMSG);
        assert_string_equal(s.handler, "audit");
        for (size_t n = 0; n < b.size; n++) {
                uint8_t *cut = malloc(n + !n);
                assert_non_null(cut);
                memcpy(cut, b.data, n);
                reader_init(&from, cut, n);
                assert_true(ring_next_submit(&from, &s) == -EBADMSG || ring_next_submit(&from, &s) == -EBADMSG);
                free(cut);
        }
        buffer_free(&b);
}

static void outcomes_have_names(void **state)
{
        (void)state;
        assert_string_equal(outcome_name(OUTCOME_DONE), "DONE");
        assert_string_equal(outcome_name(OUTCOME_RETRY), "RETRY");
        assert_string_equal(outcome_name(OUTCOME_REJECT), "REJECT");
        assert_string_equal(outcome_name(OUTCOME_UNAVAILABLE), "UNAVAILABLE");
        assert_string_equal(outcome_name(OUTCOME_LATER), "LATER");
        assert_string_equal(outcome_name(OUTCOME_CRASHED), "CRASHED");
        assert_string_equal(outcome_name(OUTCOME_TIMED_OUT), "TIMED_OUT");
        assert_string_equal(outcome_name(OUTCOME_INTERRUPTED), "INTERRUPTED");
        assert_string_equal(outcome_name(4), "UNKNOWN");
        assert_string_equal(outcome_name(-1), "UNKNOWN");
}

static void headers_are_read_as_they_were_put(void **state)
{
        (void)state;
        struct buffer bytes = { 0 };
        struct reader reader;
        struct ring_task_header header;
        ring_put_header(&bytes, &(struct ring_task_header){ "text", "abc", 3, false });
        ring_put_header(&bytes, &(struct ring_task_header){ "bytes", "a\0b", 3, true });
        reader_init(&reader, bytes.data, bytes.size);
        assert_int_equal(ring_next_header(&reader, &header), 0);
        assert_string_equal(header.name, "text");
        assert_string_equal(header.value, "abc");
        assert_int_equal(ring_next_header(&reader, &header), 0);
        assert_memory_equal(header.value, "a\0b", 4);
        assert_int_equal(header.value_size, 3);
        assert_int_equal(reader.size, 0);
        /* Half of one, one without its NUL, and a text that is none. */
        for (size_t size = 1; size < bytes.size; size++) {
                reader_init(&reader, bytes.data, size);
                while (reader.size && ring_next_header(&reader, &header) == 0)
                        ;
                assert_true(reader.is_bad || !reader.size);
        }
        bytes.data[bytes.size - 1] = 'x';
        reader_init(&reader, bytes.data, bytes.size);
        assert_int_equal(ring_next_header(&reader, &header), 0);
        assert_int_equal(ring_next_header(&reader, &header), -EBADMSG);
        buffer_clear(&bytes);
        ring_put_header(&bytes, &(struct ring_task_header){ "text", "a\0b", 3, false });
        reader_init(&reader, bytes.data, bytes.size);
        assert_int_equal(ring_next_header(&reader, &header), -EBADMSG);
        buffer_free(&bytes);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_task_comes_out_as_it_went_in),
                cmocka_unit_test(an_empty_task_comes_out_empty),
                cmocka_unit_test(a_reply_comes_out_as_it_went_in),
                cmocka_unit_test(each_flag_of_a_reply_stands_for_itself),
                cmocka_unit_test(what_was_cut_is_refused_at_every_byte),
                cmocka_unit_test(trailing_bytes_are_refused),
                cmocka_unit_test(a_scribbled_reply_never_points_outside),
                cmocka_unit_test(a_reply_beyond_the_limits_is_refused),
                cmocka_unit_test(follow_ups_come_out_in_order),
                cmocka_unit_test(headers_are_read_as_they_were_put),
                cmocka_unit_test(outcomes_have_names),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
