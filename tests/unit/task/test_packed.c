/* The packed form of an envelope: it says what the text says, in fewer bytes, and is never trusted. */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "task/packed.h"

#define VECTORS "tests/envelopes"

static struct span text(const char *s)
{
        return (struct span){ s, strlen(s) };
}

static struct span span_of(const struct buffer *b)
{
        return (struct span){ (const char *)b->data, b->size };
}

static void pack(struct buffer *to, const struct envelope *e, uint32_t shard)
{
        packed_put_head(to, e, shard);
        buffer_put(to, e->payload.data, e->payload.size);
}

/* Both as text, which says everything; the lane is not kept. */
static void expect_kept(const struct envelope *e, uint32_t shard)
{
        struct buffer packed = { 0 }, before = { 0 }, after = { 0 };
        struct envelope normal = *e;
        struct envelope back;
        char id[TASK_ID_MADE_ROOM];
        normal.lane = LANE_NORMAL;
        pack(&packed, &normal, shard);
        assert_true(packed_is(span_of(&packed)));
        assert_int_equal(packed_parse(span_of(&packed), shard, id, &back, NULL), 0);
        envelope_put(&before, &normal);
        envelope_put(&after, &back);
        assert_true(span_is(span_of(&before), span_of(&after)));
        assert_true(packed.size < before.size);
        buffer_free(&packed);
        buffer_free(&before);
        buffer_free(&after);
}

static void every_envelope_survives(void **state)
{
        (void)state;
        unsigned seen = 0;
        DIR *dir = opendir(VECTORS);
        assert_non_null(dir);
        for (struct dirent *entry; (entry = readdir(dir));) {
                char path[512];
                char bytes[65536];
                struct envelope e;
                if (!strstr(entry->d_name, ".qv1"))
                        continue;
                (void)snprintf(path, sizeof(path), VECTORS "/%s", entry->d_name);
                FILE *f = fopen(path, "rb");
                assert_non_null(f);
                size_t size = fread(bytes, 1, sizeof(bytes), f);
                (void)fclose(f);
                assert_false(packed_is((struct span){ bytes, size }));
                if (envelope_parse(bytes, size, &e, NULL))
                        continue;
                uint32_t shard = 0;
                if (e.id.size)
                        (void)task_id_check(e.id, &shard, NULL);
                expect_kept(&e, shard);
                seen++;
        }
        (void)closedir(dir);
        assert_true(seen > 5);
}

static void a_made_id_is_kept_as_its_bits(void **state)
{
        (void)state;
        static const uint32_t shards[] = { 0, 7, 63, 1023, 4095 };
        for (size_t i = 0; i < sizeof(shards) / sizeof(shards[0]); i++) {
                char id[TASK_ID_MAX + 1];
                char back[TASK_ID_MADE_ROOM];
                uint8_t packed[TASK_ID_PACKED_SIZE];
                uint64_t made_ms = 0;
                uint64_t again_ms = 1;
                size_t size = task_id_make(id, shards[i]);
                assert_true(task_id_pack((struct span){ id, size }, shards[i], packed, &made_ms));
                assert_int_equal(task_id_unpack(packed, shards[i], back, &again_ms), size);
                assert_string_equal(back, id);
                assert_int_equal(made_ms, again_ms);
        }
}

static void another_kind_of_id_is_kept_as_text(void **state)
{
        (void)state;
        static const char *const ids[] = { "order.17-5", "1M7J3X1SWEVC03QKSBYD-5", "1m7j3x1swevc03qksbyi-5",
                "1m7j3x1swevc03qksby-5", "1m7j3x1swevc03qksbyd0-5" };
        uint8_t packed[TASK_ID_PACKED_SIZE];
        uint64_t made_ms;
        for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
                struct envelope e = { .key = text("k"), .handler = text("h"), .id = text(ids[i]), .submitted_ms = 17 };
                assert_false(task_id_pack(e.id, 5, packed, &made_ms));
                expect_kept(&e, 5);
        }
        assert_false(task_id_pack(text("1m7j3x1swevc03qksbyd-5"), 6, packed, &made_ms));
        assert_true(task_id_pack(text("1m7j3x1swevc03qksbyd-5"), 5, packed, &made_ms));
}

static void any_time_of_submission_is_kept(void **state)
{
        (void)state;
        struct envelope e = { .key = text("k"), .handler = text("h"), .id = text("1m7j3x1swevc03qksbyd-5") };
        static const uint64_t times[] = { 0, 1, 1794830665531, 1794830665532, 1794830665700, TASK_NUMBER_MAX };
        for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
                e.submitted_ms = times[i];
                expect_kept(&e, 5);
        }
}

static void a_plain_task_costs_thirty_bytes(void **state)
{
        (void)state;
        struct buffer packed = { 0 };
        struct envelope e = { .key = text("key-3675"),
                .handler = text("noop"),
                .id = text("1m7j3x1swevc03qksbyd-0"),
                .submitted_ms = 1794830665532 };
        packed_put_head(&packed, &e, 0);
        assert_true(packed.size <= 30);
        buffer_free(&packed);
}

/* All there is, so that every length and number is cut through somewhere. */
static void what_is_cut_short_is_refused(void **state)
{
        (void)state;
        struct buffer packed = { 0 };
        struct envelope e = { .key = text("user-17"),
                .handler = text("mail"),
                .id = text("order.17-5"),
                .headers = text("header.a:b\n"),
                .not_before_ms = TASK_NUMBER_MAX,
                .unique_ms = 1,
                .timeout_ms = 300,
                .reply_ms = 70000,
                .submitted_ms = 1794830665532,
                .attempts = UINT32_MAX,
                .is_merge = true,
                .debounce_ms = TASK_DEBOUNCE_MAX };
        expect_kept(&e, 5);
        packed_put_head(&packed, &e, 5);
        for (size_t size = 0; size < packed.size; size++) {
                struct envelope back;
                char id[TASK_ID_MADE_ROOM];
                struct error error = { "" };
                char *cut = malloc(size + 1); /* so that a sanitizer sees a byte too far */
                assert_non_null(cut);
                memcpy(cut, packed.data, size);
                assert_int_equal(packed_parse((struct span){ cut, size }, 5, id, &back, &error), -EBADMSG);
                assert_true(error.text[0]);
                free(cut);
        }
        buffer_free(&packed);
}

static void what_no_envelope_may_say_is_refused(void **state)
{
        (void)state;
        static const char *const wrong[] = {
                "\x81\x01k\x01h",   /* a made id that is not there */
                "\x80\x02k\n\x01h", /* a control character in the key */
                "\x80\x01k\x01"
                "9", /* no handler's name */
                "\x82\x01k\x01h\x05"
                "abcde",                                                          /* no id */
                "\xa0\x01k\x01h",                                                 /* a flag nobody knows */
                "\x90\x01k\x01h\x40",                                             /* a number nobody knows */
                "\x90\x01k\x01h\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", /* a number without an end */
        };
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
                struct envelope back;
                char id[TASK_ID_MADE_ROOM];
                assert_int_equal(packed_parse(text(wrong[i]), 5, id, &back, NULL), -EBADMSG);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_envelope_survives),
                cmocka_unit_test(a_made_id_is_kept_as_its_bits),
                cmocka_unit_test(another_kind_of_id_is_kept_as_text),
                cmocka_unit_test(any_time_of_submission_is_kept),
                cmocka_unit_test(a_plain_task_costs_thirty_bytes),
                cmocka_unit_test(what_is_cut_short_is_refused),
                cmocka_unit_test(what_no_envelope_may_say_is_refused),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
