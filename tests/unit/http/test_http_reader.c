/* Bytes as requests: what is complete comes out, however it was cut; what two readers could read in two ways is
 * refused.
 */
/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/reader.h"

/* What came out of some bytes. */
struct seen {
        unsigned heads, ends;
        char body[4096];
        size_t body_size;
        char path[256];
        char query[256];
        char agent[64];
        uint64_t body_bytes;
        bool is_kept_alive;
        enum http_reading last;
};

static void keep_head(struct seen *seen, const struct http_head *head)
{
        const struct span *agent = http_head_field(head, "user-agent");
        seen->heads++;
        (void)snprintf(seen->path, sizeof(seen->path), "%.*s", (int)head->path.size, head->path.data);
        (void)snprintf(seen->query, sizeof(seen->query), "%.*s", (int)head->query.size, head->query.data);
        (void)snprintf(
                seen->agent, sizeof(seen->agent), "%.*s", agent ? (int)agent->size : 0, agent ? agent->data : "");
        seen->body_bytes = head->body_bytes;
        seen->is_kept_alive = head->is_kept_alive;
}

/* Feeds the bytes in pieces of `step`. */
static void read_all(struct http_reader *reader, const char *bytes, size_t size, size_t step, struct seen *seen)
{
        memset(seen, 0, sizeof(*seen));
        http_reader_init(reader);
        for (size_t at = 0; at < size && seen->last != READING_BAD;) {
                size_t taken;
                size_t piece = size - at < step ? size - at : step;
                seen->last = http_reader_feed(reader, (struct span){ bytes + at, piece }, &taken);
                assert_true(taken <= piece);
                at += taken;
                if (seen->last == READING_HEAD) {
                        keep_head(seen, &reader->head);
                } else if (seen->last == READING_BODY) {
                        assert_true(seen->body_size + reader->body.size <= sizeof(seen->body));
                        memcpy(seen->body + seen->body_size, reader->body.data, reader->body.size);
                        seen->body_size += reader->body.size;
                } else if (seen->last == READING_END) {
                        seen->ends++;
                        http_reader_init(reader);
                }
        }
}

#define POST                                                                                                           \
        "POST /v1/tasks/mail?key=a%20b&wait HTTP/1.1\r\nHost: localhost\r\nUser-Agent:  x y \r\nContent-Length: "      \
        "5\r\n\r\nhello"

static void a_request_is_the_same_however_it_is_cut(void **state)
{
        static const char two[] = POST "GET / HTTP/1.1\r\nhost: h\r\n\r\n";
        struct http_reader *reader = *state;
        struct seen seen;
        for (size_t step = 1; step < sizeof(POST); step++) {
                read_all(reader, POST, sizeof(POST) - 1, step, &seen);
                assert_int_equal(seen.heads, 1);
                assert_int_equal(seen.ends, 1);
                assert_string_equal(seen.path, "/v1/tasks/mail");
                assert_string_equal(seen.query, "key=a%20b&wait");
                assert_string_equal(seen.agent, "x y");
                assert_int_equal(seen.body_bytes, 5);
                assert_memory_equal(seen.body, "hello", 5);
                assert_true(seen.is_kept_alive);
                read_all(reader, two, sizeof(two) - 1, step, &seen);
                assert_int_equal(seen.ends, 2);
                assert_string_equal(seen.path, "/");
        }
}

static void chunks_are_joined(void **state)
{
        static const char bytes[] = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                                    "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: x\r\n\r\n";
        struct http_reader *reader = *state;
        struct seen seen;
        for (size_t step = 1; step < sizeof(bytes); step++) {
                read_all(reader, bytes, sizeof(bytes) - 1, step, &seen);
                assert_int_equal(seen.ends, 1);
                assert_true(seen.body_bytes == UINT64_MAX);
                assert_int_equal(seen.body_size, 5);
                assert_memory_equal(seen.body, "abcde", 5);
        }
}

#define BAD(code, text)                                                                                                \
        {                                                                                                              \
                code, text, sizeof(text) - 1                                                                           \
        }
#define GET "GET / HTTP/1.1\r\n"

static void what_can_be_read_in_two_ways_is_refused(void **state)
{
        static const struct {
                unsigned status;
                const char *bytes;
                size_t size;
        } bad[] = {
                BAD(400, GET "\r\n"),
                BAD(400, GET "Host: a\r\nHost: b\r\n\r\n"),
                BAD(400, GET "Host: a\r\nAuthorization: Bearer x\r\nauthorization: Bearer y\r\n\r\n"),
                BAD(400, GET "Host: a\r\nIdempotency-Key: x\r\nIdempotency-Key: x\r\n\r\n"),
                BAD(400, GET "Host: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx"),
                BAD(400, GET "Host: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx"),
                BAD(400, GET "Host: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"),
                BAD(400, GET "Host: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
                BAD(400, GET "Host: a\r\nContent-Length: -1\r\n\r\n"),
                BAD(400, GET "Host: a\r\nContent-Length: 99999999999999999999\r\n\r\n"),
                BAD(400, GET "Host: a\r\nContent-Length: 1 1\r\n\r\nx"),
                BAD(400, GET "Host : a\r\n\r\n"),
                BAD(400, GET "Host: a\r\nX: a\0b\r\n\r\n"),
                BAD(400, GET "Host: a\r\nX: a\x01z\r\n\r\n"),
                BAD(400, GET "Host: a\nX: b\r\n\r\n"),
                BAD(400, GET "Host: a\r\n\n"),
                BAD(400, GET "Host: a\r\nX: b\r\n folded\r\n\r\n"),
                BAD(400, "GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n"),
                BAD(400, "GET * HTTP/1.1\r\nHost: a\r\n\r\n"),
                BAD(400, "GET /\xc3\xa4 HTTP/1.1\r\nHost: a\r\n\r\n"),
                BAD(400, "BREW / HTTP/1.1\r\nHost: a\r\n\r\n"),
                BAD(400, "\x16\x03\x01\x02"),
                BAD(400, "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
                BAD(400, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n"),
                BAD(501, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
                BAD(501, GET "Host: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"),
                BAD(417, GET "Host: a\r\nExpect: cake\r\n\r\n"),
                BAD(505, "GET / HTTP/2.0\r\nHost: a\r\n\r\n"),
        };
        struct http_reader *reader = *state;
        struct seen seen;
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                for (size_t step = 1; step <= bad[i].size; step += bad[i].size - 1) {
                        read_all(reader, bad[i].bytes, bad[i].size, step, &seen);
                        if (seen.last != READING_BAD || reader->status != bad[i].status)
                                print_message("case %zu, step %zu: %d, %u %s\n", i, step, (int)seen.last,
                                        reader->status, reader->why ? reader->why : "");
                        assert_int_equal(seen.last, READING_BAD);
                        assert_int_equal(reader->status, bad[i].status);
                }
        }
}

static void a_head_is_bounded(void **state)
{
        struct http_reader *reader = *state;
        struct seen seen;
        char *bytes = malloc(20000);
        int size = snprintf(bytes, 20000, "GET / HTTP/1.1\r\nHost: a\r\nX: %09000d\r\n\r\n", 0);
        read_all(reader, bytes, (size_t)size, 512, &seen);
        assert_int_equal(seen.last, READING_BAD);
        assert_int_equal(reader->status, 431);
        size = snprintf(bytes, 20000, "GET / HTTP/1.1\r\nHost: a\r\n");
        for (int i = 0; i < 64; i++)
                size += snprintf(bytes + size, 20000 - (size_t)size, "x%d: y\r\n", i);
        size += snprintf(bytes + size, 20000 - (size_t)size, "\r\n");
        read_all(reader, bytes, (size_t)size, 512, &seen);
        assert_int_equal(reader->status, 431);
        free(bytes);
}

static int setup(void **state)
{
        *state = malloc(sizeof(struct http_reader));
        return *state ? 0 : -1;
}

static int teardown(void **state)
{
        free(*state);
        return 0;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(a_request_is_the_same_however_it_is_cut, setup, teardown),
                cmocka_unit_test_setup_teardown(chunks_are_joined, setup, teardown),
                cmocka_unit_test_setup_teardown(what_can_be_read_in_two_ways_is_refused, setup, teardown),
                cmocka_unit_test_setup_teardown(a_head_is_bounded, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
