/* What the driver and its scripts say to each other. */
#include <stdlib.h>

#include "check.h"

#include "store/redis/msgpack.h"

static struct span packed(const struct buffer *b)
{
        return (struct span){ (const char *)b->data, b->size };
}

static void lists_of_texts_come_back_as_they_were(void **state)
{
        static const size_t sizes[] = { 0, 1, 31, 32, 255, 256, 65535, 65536 };
        enum { COUNT = sizeof(sizes) / sizeof(sizes[0]) };
        (void)state;
        char *text = calloc(1, 65536);
        assert_non_null(text);
        struct buffer b = { 0 };
        msgpack_array(&b, COUNT);
        for (unsigned i = 0; i < COUNT; i++)
                msgpack_bytes(&b, (struct span){ text, sizes[i] });
        struct span rest = packed(&b);
        assert_int_equal(msgpack_take_array(&rest), COUNT);
        for (unsigned i = 0; i < COUNT; i++) {
                struct span bytes;
                assert_true(msgpack_take_bytes(&rest, &bytes));
                assert_int_equal(bytes.size, sizes[i]);
        }
        assert_int_equal(rest.size, 0);
        buffer_free(&b);
        free(text);
}

static void every_length_that_cmsgpack_writes_is_read(void **state)
{
        struct span bytes;
        (void)state;
        struct span short_text = { "\xa3"
                                   "abc",
                4 };
        struct span byte_text = { "\xd9\x03"
                                  "abc",
                5 };
        struct span word_text = { "\xda\x00\x03"
                                  "abc",
                6 };
        struct span *const all[] = { &short_text, &byte_text, &word_text };
        for (unsigned i = 0; i < 3; i++) {
                assert_true(msgpack_take_bytes(all[i], &bytes));
                assert_true(span_is(bytes, SPAN_TEXT("abc")));
        }
        struct span list = { "\xdc\x01\x00", 3 };
        assert_int_equal(msgpack_take_array(&list), 256);
}

static void what_is_cut_short_is_refused(void **state)
{
        static const struct span bad[] = { { "", 0 },
                { "\xa3"
                  "ab",
                        3 },
                { "\xd9", 1 }, { "\xda\x00", 2 },
                { "\xdb\xff\xff\xff\xff"
                  "a",
                        6 },
                { "\xc0", 1 }, { "\x93", 1 } };
        (void)state;
        for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                struct span rest = bad[i];
                struct span bytes;
                assert_false(msgpack_take_bytes(&rest, &bytes));
        }
        struct span rest = { "\xdc\x01", 2 };
        assert_true(msgpack_take_array(&rest) < 0);
        rest = (struct span){ "\xa1"
                              "a",
                2 };
        assert_true(msgpack_take_array(&rest) < 0);
}

static void numbers_take_as_little_room_as_they_need(void **state)
{
        struct buffer b = { 0 };
        (void)state;
        msgpack_number(&b, 127);
        assert_int_equal(b.size, 1);
        msgpack_number(&b, 128);
        assert_int_equal(b.size, 6);
        msgpack_number(&b, UINT64_C(281474976710657));
        assert_int_equal(b.size, 15);
        assert_memory_equal(b.data + 6, "\xcf\x00\x01\x00\x00\x00\x00\x00\x01", 9);
        buffer_free(&b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(lists_of_texts_come_back_as_they_were),
                cmocka_unit_test(every_length_that_cmsgpack_writes_is_read),
                cmocka_unit_test(what_is_cut_short_is_refused),
                cmocka_unit_test(numbers_take_as_little_room_as_they_need),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
