/* How the driver packs what it tells its scripts. */
#include "check.h"

#include "store/redis/msgpack.h"

static void lists_and_texts_begin_with_their_length(void **state)
{
        struct buffer b = { 0 };
        char text[256] = { 0 };
        (void)state;
        msgpack_array(&b, 15);
        msgpack_array(&b, 16);
        assert_int_equal(b.size, 6);
        assert_memory_equal(b.data, "\x9f\xdd\x00\x00\x00\x10", 6);
        b.size = 0;
        msgpack_bytes(&b, SPAN_TEXT(""));
        msgpack_bytes(&b, SPAN_TEXT("abc"));
        assert_int_equal(b.size, 5);
        assert_memory_equal(b.data,
                "\xa0\xa3"
                "abc",
                5);
        b.size = 0;
        msgpack_bytes(&b, (struct span){ text, 31 });
        assert_int_equal(b.size, 32);
        assert_int_equal(b.data[0], 0xbf);
        b.size = 0;
        msgpack_bytes(&b, (struct span){ text, 32 });
        assert_int_equal(b.size, 37);
        assert_memory_equal(b.data, "\xdb\x00\x00\x00\x20", 5);
        b.size = 0;
        msgpack_bytes(&b, (struct span){ text, 256 });
        assert_int_equal(b.size, 261);
        assert_memory_equal(b.data, "\xdb\x00\x00\x01\x00", 5);
        buffer_free(&b);
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
                cmocka_unit_test(lists_and_texts_begin_with_their_length),
                cmocka_unit_test(numbers_take_as_little_room_as_they_need),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
