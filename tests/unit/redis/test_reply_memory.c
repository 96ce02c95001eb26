/* reply_memory: replies of Redis in memory that is used again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "redis/reply_memory.h"

#define ELEMENTS_MAX 8u

static redisReply *read_all(redisReader *reader, const char *bytes, size_t size)
{
        redisReply *reply = NULL;
        /* Byte by byte: what is half there stays where it is. */
        for (size_t i = 0; i < size; i++) {
                assert_null(reply);
                assert_int_equal(redisReaderFeed(reader, bytes + i, 1), REDIS_OK);
                assert_int_equal(redisReaderGetReply(reader, (void **)&reply), REDIS_OK);
        }
        return reply;
}

static void a_reply_is_what_the_server_said(void **state)
{
        (void)state;
        static const char bytes[] = "*5\r\n:-7\r\n$3\r\na\0b\r\n$-1\r\n*2\r\n+OK\r\n-ERR no\r\n*0\r\n";
        struct reply_memory memory = { 0 };
        redisReader *reader = reply_memory_reader(&memory, ELEMENTS_MAX);
        for (unsigned round = 0; round < 3; round++) {
                const redisReply *reply = read_all(reader, bytes, sizeof(bytes) - 1);
                assert_int_equal(reply->type, REDIS_REPLY_ARRAY);
                assert_int_equal(reply->elements, 5);
                assert_int_equal(reply->element[0]->type, REDIS_REPLY_INTEGER);
                assert_int_equal(reply->element[0]->integer, -7);
                assert_int_equal(reply->element[1]->type, REDIS_REPLY_STRING);
                assert_int_equal(reply->element[1]->len, 3);
                assert_memory_equal(reply->element[1]->str, "a\0b", 4);
                assert_int_equal(reply->element[2]->type, REDIS_REPLY_NIL);
                assert_int_equal(reply->element[3]->elements, 2);
                assert_int_equal(reply->element[3]->element[0]->type, REDIS_REPLY_STATUS);
                assert_string_equal(reply->element[3]->element[0]->str, "OK");
                assert_int_equal(reply->element[3]->element[1]->type, REDIS_REPLY_ERROR);
                assert_string_equal(reply->element[3]->element[1]->str, "ERR no");
                assert_int_equal(reply->element[4]->elements, 0);
                reply_memory_reset(&memory);
        }
        redisReaderFree(reader);
        reply_memory_free(&memory);
}

static void the_next_reply_is_where_the_last_one_was(void **state)
{
        (void)state;
        struct reply_memory memory = { 0 };
        redisReader *reader = reply_memory_reader(&memory, ELEMENTS_MAX);
        const redisReply *first = read_all(reader, "+one\r\n", 6);
        reply_memory_reset(&memory);
        const redisReply *second = read_all(reader, "+two\r\n", 6);
        assert_ptr_equal(first, second);
        assert_string_equal(second->str, "two");
        redisReaderFree(reader);
        reply_memory_free(&memory);
}

static void a_large_reply_is_whole(void **state)
{
        (void)state;
        enum { SIZE = 100000 };
        static char bytes[SIZE + 16];
        int head = snprintf(bytes, sizeof(bytes), "$%d\r\n", SIZE);
        memset(bytes + head, 'x', SIZE);
        memcpy(bytes + head + SIZE, "\r\n", 2);
        struct reply_memory memory = { 0 };
        redisReader *reader = reply_memory_reader(&memory, ELEMENTS_MAX);
        redisReply *reply = NULL;
        assert_int_equal(redisReaderFeed(reader, bytes, (size_t)head + SIZE + 2), REDIS_OK);
        assert_int_equal(redisReaderGetReply(reader, (void **)&reply), REDIS_OK);
        assert_int_equal(reply->len, SIZE);
        assert_memory_equal(reply->str, bytes + head, SIZE);
        reply_memory_reset(&memory);
        assert_string_equal(read_all(reader, "+small\r\n", 8)->str, "small");
        redisReaderFree(reader);
        reply_memory_free(&memory);
}

static void more_elements_than_allowed_are_refused(void **state)
{
        (void)state;
        static const char *const bad[] = { "*9\r\n", "*2147483647\r\n", "*5\r\n*4\r\n" };
        for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                struct reply_memory memory = { 0 };
                redisReader *reader = reply_memory_reader(&memory, ELEMENTS_MAX);
                redisReply *reply = NULL;
                assert_int_equal(redisReaderFeed(reader, bad[i], strlen(bad[i])), REDIS_OK);
                assert_int_equal(redisReaderGetReply(reader, (void **)&reply), REDIS_ERR);
                assert_int_equal(reader->err, REDIS_ERR_OOM);
                redisReaderFree(reader);
                reply_memory_free(&memory);
        }
}

static void a_reader_that_is_closed_halfway_leaves_nothing(void **state)
{
        (void)state;
        struct reply_memory memory = { 0 };
        redisReader *reader = reply_memory_reader(&memory, ELEMENTS_MAX);
        assert_null(read_all(reader, "*3\r\n$2\r\nab\r\n:1", 14));
        redisReaderFree(reader);
        reply_memory_free(&memory);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_reply_is_what_the_server_said),
                cmocka_unit_test(the_next_reply_is_where_the_last_one_was),
                cmocka_unit_test(a_large_reply_is_whole),
                cmocka_unit_test(more_elements_than_allowed_are_refused),
                cmocka_unit_test(a_reader_that_is_closed_halfway_leaves_nothing),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
