/* What hosts say to each other about lent tasks: every message comes back as it was, and nothing wrong is taken. */
#include "check.h"

#include <errno.h>
#include <stdlib.h>

#include "host/lend/lend_message.h"
#include "host/lend/seat_outcome.h"

#define ID "1m7n19myvd5nqxs158gv-8"

static struct lend_message message_of(enum lend_kind kind)
{
        struct lend_message m = { .kind = kind,
                .from = { 1, 2, 3 },
                .host = "host-b",
                .handler = "mail",
                .seats = 3,
                .worker = "",
                .shard = 8,
                .fence = { 42, 7, 9 },
                .id = ID,
                .ttl_ms = 1000,
                .timeout_ms = 30000,
                .attempt = 2,
                .attempts_max = 4,
                .crashes = 1,
                .lane = LANE_LOW,
                .task = { .id = SPAN_TEXT(ID),
                        .handler = SPAN_TEXT("mail"),
                        .headers = SPAN_TEXT("header.tenant:7\n"),
                        .payload = SPAN_TEXT("a\0b"),
                        .submitted_ms = 5 },
                .checkpoint = SPAN_TEXT("row 3") };
        return m;
}

static int pass(const struct lend_message *from, struct buffer *bytes, struct lend_message *ret)
{
        buffer_clear(bytes);
        lend_message_put(bytes, from);
        return lend_message_parse((struct span){ (const char *)bytes->data, bytes->size }, ret, NULL);
}

static void a_message_comes_back_as_it_was(void **state)
{
        (void)state;
        struct buffer bytes = { 0 };
        struct lend_message m;
        for (enum lend_kind kind = LEND_ASK; kind < LEND_KINDS; kind++) {
                struct lend_message from = message_of(kind);
                assert_int_equal(pass(&from, &bytes, &m), 0);
                assert_int_equal(m.kind, kind);
                assert_memory_equal(m.from, from.from, sizeof(m.from));
                assert_string_equal(m.host, "host-b");
        }
        struct lend_message ask = message_of(LEND_ASK);
        ask.worker = "alice";
        assert_int_equal(pass(&ask, &bytes, &m), 0);
        assert_string_equal(m.handler, "mail");
        assert_string_equal(m.worker, "alice");
        assert_int_equal(m.seats, 3);
        struct lend_message hand = message_of(LEND_HAND);
        assert_int_equal(pass(&hand, &bytes, &m), 0);
        assert_int_equal(m.shard, 8);
        assert_memory_equal(&m.fence, &hand.fence, sizeof(m.fence));
        assert_string_equal(m.id, ID);
        assert_int_equal(m.ttl_ms, 1000);
        assert_int_equal(m.timeout_ms, 30000);
        assert_int_equal(m.attempt, 2);
        assert_int_equal(m.attempts_max, 4);
        assert_int_equal(m.crashes, 1);
        assert_int_equal(m.lane, LANE_LOW);
        assert_true(span_is(m.task.payload, hand.task.payload));
        assert_true(span_is(m.task.headers, hand.task.headers));
        assert_true(span_is(m.checkpoint, hand.checkpoint));
        buffer_free(&bytes);
}

static void break_host(struct lend_message *m)
{
        m->host = "a b";
}
static void break_no_host(struct lend_message *m)
{
        m->host = "";
}
static void break_kind(struct lend_message *m)
{
        m->kind = LEND_KINDS;
}
static void break_handler(struct lend_message *m)
{
        m->handler = "9";
}
static void break_no_seats(struct lend_message *m)
{
        m->seats = 0;
}
static void break_seats(struct lend_message *m)
{
        m->seats = LEND_SEATS_MAX + 1;
}
static void break_worker(struct lend_message *m)
{
        m->worker = "a/b";
}
static void break_epoch(struct lend_message *m)
{
        m->fence.epoch = 0;
}
static void break_start(struct lend_message *m)
{
        m->fence.start = TASK_NUMBER_MAX + 1;
}
static void break_seq(struct lend_message *m)
{
        m->fence.seq = STORE_SEQ_MAX + 1;
}
static void break_id(struct lend_message *m)
{
        m->id = "x";
}
static void break_shard(struct lend_message *m)
{
        m->shard = 9;
}
static void break_ttl(struct lend_message *m)
{
        m->ttl_ms = 0;
}
static void break_long_ttl(struct lend_message *m)
{
        m->ttl_ms = LEND_TTL_MAX + 1;
}
static void break_timeout(struct lend_message *m)
{
        m->timeout_ms = TASK_NUMBER_MAX + 1;
}
static void break_attempt(struct lend_message *m)
{
        m->attempt = 0;
}
static void break_crashes(struct lend_message *m)
{
        m->crashes = UINT32_MAX;
}
static void break_lane(struct lend_message *m)
{
        m->lane = LANES;
}
static void break_key(struct lend_message *m)
{
        m->task.key = SPAN_TEXT("alice");
}
static void break_task_id(struct lend_message *m)
{
        m->task.id = SPAN_TEXT("1m7n19myvd5nqxs158gw-8");
}

static void break_checkpoint(struct lend_message *m)
{
        static char long_one[NOTE_CHECKPOINT_MAX + 1];
        m->checkpoint = (struct span){ long_one, sizeof(long_one) };
}

static void what_is_out_of_range_is_refused(void **state)
{
        (void)state;
        static const struct {
                enum lend_kind kind;
                void (*apply)(struct lend_message *m);
        } cases[] = { { LEND_ASK, break_host }, { LEND_ASK, break_no_host }, { LEND_ASK, break_kind },
                { LEND_ASK, break_handler }, { LEND_NONE, break_handler }, { LEND_ASK, break_no_seats },
                { LEND_ASK, break_seats }, { LEND_ASK, break_worker }, { LEND_STOP, break_epoch },
                { LEND_DECLINE, break_start }, { LEND_HAND, break_seq }, { LEND_STOP, break_id },
                { LEND_STOP, break_shard }, { LEND_HAND, break_ttl }, { LEND_HAND, break_long_ttl },
                { LEND_HAND, break_timeout }, { LEND_HAND, break_attempt }, { LEND_HAND, break_crashes },
                { LEND_HAND, break_lane }, { LEND_HAND, break_key }, { LEND_HAND, break_task_id },
                { LEND_HAND, break_checkpoint } };
        struct buffer bytes = { 0 };
        struct lend_message m;
        for (size_t i = 0; i < COUNT(cases); i++) {
                struct lend_message from = message_of(cases[i].kind);
                assert_int_equal(pass(&from, &bytes, &m), 0);
                cases[i].apply(&from);
                if (pass(&from, &bytes, &m) != -EBADMSG)
                        fail_msg("case %zu was taken", i);
        }
        buffer_free(&bytes);
}

/* Only a worker's task may have a key. */
static void a_workers_task_may_have_a_key(void **state)
{
        (void)state;
        struct buffer bytes = { 0 };
        struct lend_message m;
        struct lend_message from = message_of(LEND_HAND);
        from.is_worker = true;
        break_key(&from);
        assert_int_equal(pass(&from, &bytes, &m), 0);
        assert_true(m.is_worker);
        buffer_free(&bytes);
}

/* Every prefix, every byte more, and every byte changed: an answer, and no read past the end (ASan). */
static void half_a_message_is_none(void **state)
{
        (void)state;
        struct buffer bytes = { 0 };
        struct lend_message from = message_of(LEND_HAND);
        struct lend_message m;
        lend_message_put(&bytes, &from);
        for (size_t size = 0; size < bytes.size; size++) {
                char *copy = malloc(size + 1);
                memcpy(copy, bytes.data, size);
                assert_int_equal(lend_message_parse((struct span){ copy, size }, &m, NULL), -EBADMSG);
                free(copy);
        }
        buffer_put(&bytes, "x", 1);
        assert_int_equal(lend_message_parse((struct span){ (const char *)bytes.data, bytes.size }, &m, NULL), -EBADMSG);
        for (size_t i = 0; i < bytes.size; i++) {
                bytes.data[i] ^= 0xff;
                (void)lend_message_parse((struct span){ (const char *)bytes.data, bytes.size - 1 }, &m, NULL);
                bytes.data[i] ^= 0xff;
        }
        /* Another machine's byte order: the mark stands behind the text and its length. */
        bytes.data[4 + sizeof("qvlend1")] = 1;
        assert_int_equal(
                lend_message_parse((struct span){ (const char *)bytes.data, bytes.size - 1 }, &m, NULL), -EBADMSG);
        buffer_free(&bytes);
}

static struct seat_outcome outcome_of(enum outcome outcome)
{
        return (struct seat_outcome){ .fence = { 42, 7, 0 },
                .outcome = outcome,
                .has_reply = true,
                .ran_ms = 12,
                .error = "no\n@host-b pid=1 generation=1 plugin=00000000 (borrowed seat)",
                .reply = { .outcome = (int32_t)outcome,
                        .error = "no",
                        .has_result = true,
                        .result = "seven",
                        .result_size = 5 },
                .has_checkpoint = true,
                .checkpoint = SPAN_TEXT("row 3") };
}

static int pass_outcome(const struct seat_outcome *from, struct buffer *bytes, struct seat_outcome *ret)
{
        buffer_clear(bytes);
        seat_outcome_put(bytes, from);
        return seat_outcome_parse((struct span){ (const char *)bytes->data, bytes->size }, ret, NULL);
}

static void an_outcome_comes_back_as_it_was(void **state)
{
        (void)state;
        struct buffer bytes = { 0 };
        struct seat_outcome o;
        struct seat_outcome from = outcome_of(OUTCOME_DONE);
        assert_int_equal(pass_outcome(&from, &bytes, &o), 0);
        assert_int_equal(o.outcome, OUTCOME_DONE);
        assert_int_equal(o.fence.epoch, 42);
        assert_int_equal(o.fence.start, 7);
        assert_int_equal(o.ran_ms, 12);
        assert_string_equal(o.error, from.error);
        assert_true(o.has_reply && o.has_checkpoint && !o.is_suspect && !o.is_excused && !o.is_refused);
        assert_int_equal(o.reply.result_size, 5);
        assert_memory_equal(o.reply.result, "seven", 5);
        assert_true(span_is(o.checkpoint, SPAN_TEXT("row 3")));
        from = (struct seat_outcome){ .fence = { 1, 1, 0 },
                .outcome = OUTCOME_CRASHED,
                .error = "",
                .is_suspect = true,
                .is_excused = true,
                .is_refused = true };
        assert_int_equal(pass_outcome(&from, &bytes, &o), 0);
        assert_true(!o.has_reply && !o.has_checkpoint && o.is_suspect && o.is_excused && o.is_refused);
        buffer_free(&bytes);
}

static void a_wrong_outcome_is_refused(void **state)
{
        (void)state;
        struct buffer bytes = { 0 };
        struct seat_outcome o;
        static char text[NOTE_TEXT_MAX + 2];
        memset(text, 'x', NOTE_TEXT_MAX + 1);
        struct seat_outcome wrong[8];
        for (size_t i = 0; i < COUNT(wrong); i++)
                wrong[i] = outcome_of(OUTCOME_DONE);
        wrong[0].outcome = (enum outcome)99;
        wrong[0].has_reply = false;
        wrong[1].fence.epoch = 0;
        wrong[2].fence.start = TASK_NUMBER_MAX + 1;
        wrong[3].error = text;
        wrong[4].reply.outcome = OUTCOME_RETRY; /* the handler said something else */
        wrong[5].has_reply = false;             /* nobody said that it is done */
        wrong[6].checkpoint = (struct span){ text, sizeof(text) };
        wrong[6].checkpoint.size = NOTE_CHECKPOINT_MAX + 1;
        static char checkpoint[NOTE_CHECKPOINT_MAX + 1];
        wrong[6].checkpoint.data = checkpoint;
        wrong[7].reply.retry_after_ms = TASK_NUMBER_MAX + 1;
        for (size_t i = 0; i < COUNT(wrong); i++)
                if (pass_outcome(&wrong[i], &bytes, &o) != -EBADMSG)
                        fail_msg("case %zu was taken", i);
        struct seat_outcome good = outcome_of(OUTCOME_RETRY);
        assert_int_equal(pass_outcome(&good, &bytes, &o), 0);
        for (size_t size = 0; size < bytes.size; size++) {
                char *copy = malloc(size + 1);
                memcpy(copy, bytes.data, size);
                assert_int_equal(seat_outcome_parse((struct span){ copy, size }, &o, NULL), -EBADMSG);
                free(copy);
        }
        for (size_t i = 0; i < bytes.size; i++) {
                bytes.data[i] ^= 0xff;
                (void)seat_outcome_parse((struct span){ (const char *)bytes.data, bytes.size }, &o, NULL);
                bytes.data[i] ^= 0xff;
        }
        buffer_free(&bytes);
}

static void the_holder_of_a_seat_names_start_host_and_mailbox(void **state)
{
        (void)state;
        char text[NOTE_HOLDER_MAX + 1];
        char start[NOTE_HOLDER_MAX + 1];
        char name[2 * SEAT_HOST_MAX];
        struct work_fence fence = { TASK_NUMBER_MAX, TASK_NUMBER_MAX, 0 };
        struct work_fence read;
        struct span host;
        uint8_t nonce[STORE_NONCE_SIZE];
        uint8_t read_nonce[STORE_NONCE_SIZE];
        memset(nonce, 0xa5, sizeof(nonce));
        memset(name, 'h', sizeof(name));
        name[sizeof(name) - 1] = 0;
        seat_holder_put(text, &fence, nonce, name);
        assert_true(note_holder_is_good(span_of_text(text)));
        assert_true(seat_holder_parse(span_of_text(text), &read, read_nonce, &host));
        assert_int_equal(host.size, SEAT_HOST_MAX);
        assert_memory_equal(nonce, read_nonce, sizeof(nonce));
        assert_int_equal(read.epoch, fence.epoch);
        assert_int_equal(read.start, fence.start);
        seat_start_put(start, &fence);
        assert_memory_equal(text, start, strlen(start));
        assert_int_equal(start[strlen(start) - 1], '/'); /* the store compares up to there */
        assert_false(holder_parse(span_of_text(text), &read, &host));
        static const char *const others[] = { "", "seat/", "seat/1.2/", "worker/1.2/a",
                "seat/1.2/0123456789abcdef0123456789abcdef", "seat/1.2/0123456789abcdef0123456789abcdef/",
                "seat/1.2/0123456789abcdef0123456789abcdeX/h", "seat/x.2/0123456789abcdef0123456789abcdef/h",
                "seat/1.2/0123456789abcdef0123456789abcdef/a b" };
        for (size_t i = 0; i < COUNT(others); i++)
                assert_false(seat_holder_parse(span_of_text(others[i]), &read, read_nonce, &host));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_message_comes_back_as_it_was),
                cmocka_unit_test(what_is_out_of_range_is_refused),
                cmocka_unit_test(a_workers_task_may_have_a_key),
                cmocka_unit_test(half_a_message_is_none),
                cmocka_unit_test(an_outcome_comes_back_as_it_was),
                cmocka_unit_test(a_wrong_outcome_is_refused),
                cmocka_unit_test(the_holder_of_a_seat_names_start_host_and_mailbox),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
