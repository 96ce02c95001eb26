/* Bytes as one HTTP answer: the same however they are cut; what is endless, ambiguous or too large is refused. */
/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/http_answer.h"
#include "client/say_json.h"
#include "client/work_json.h"
#include "worker/report.h"

#define OK "HTTP/1.1 200 OK\r\n"

/* What the bytes come to, in pieces of that size; the body goes to `body`, if that is not NULL. */
static int read_in(const char *bytes, size_t size, size_t piece, char *body)
{
        struct http_answer a = { 0 };
        int r = 0;
        for (size_t at = 0; at < size && r == 0; at += piece)
                r = http_answer_feed(&a, (struct span){ bytes + at, size - at < piece ? size - at : piece });
        if (r == 1 && body)
                (void)snprintf(body, 256, "%u %s", a.status, buffer_text(&a.body));
        http_answer_free(&a);
        return r;
}

static int judge(const char *bytes)
{
        int r = read_in(bytes, strlen(bytes), strlen(bytes), NULL);
        assert_int_equal(read_in(bytes, strlen(bytes), 1, NULL), r);
        return r;
}

static void expect(const char *bytes, const char *wanted)
{
        for (size_t piece = 1; piece <= strlen(bytes); piece++) {
                char body[256] = "";
                assert_int_equal(read_in(bytes, strlen(bytes), piece, body), 1);
                assert_string_equal(body, wanted);
        }
}

static void an_answer_is_the_same_however_it_is_cut(void **state)
{
        (void)state;
        expect(OK "Content-Type: a\r\ncontent-length:  5 \r\n\r\nhello", "200 hello");
        expect(OK "Content-Length: 0\r\n\r\n", "200 ");
        expect("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n", "204 ");
        expect("HTTP/1.1 409\r\nContent-Length: 2\r\n\r\n{}", "409 {}");
        expect("HTTP/1.1 100 Continue\r\n\r\n" OK "Content-Length: 1\r\n\r\nx", "200 x");
        expect(OK "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;q=1\r\n0123456789\r\n0\r\n\r\n",
                "200 abc0123456789");
        expect(OK "Transfer-Encoding: Chunked\r\n\r\n0\r\nTrailer: 1\r\n\r\n", "200 ");
}

/* Every beginning of an answer is no answer: the caller finds that the connection ended too soon. */
static void a_truncated_answer_is_never_whole(void **state)
{
        (void)state;
        static const char *const answers[] = { OK "Content-Length: 5\r\n\r\nhello",
                OK "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" };
        for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
                for (size_t size = 1; size < strlen(answers[i]); size++)
                        assert_int_equal(read_in(answers[i], size, size, NULL), 0);
}

static void two_lengths_are_refused(void **state)
{
        (void)state;
        assert_int_equal(judge(OK "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"), -EBADMSG);
        assert_int_equal(judge(OK "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello"), -EBADMSG);
        assert_int_equal(judge(OK "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), -EBADMSG);
        assert_int_equal(judge(OK "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"), -EBADMSG);
        assert_int_equal(judge(OK "Transfer-Encoding: gzip\r\n\r\n"), -EBADMSG);
        assert_int_equal(judge(OK "X: y\r\n\r\nuntil the end"), -EBADMSG);
}

static void what_is_no_answer_is_refused(void **state)
{
        (void)state;
        static const char *const bad[] = { "SSH-2.0-OpenSSH\r\n", "HTTP/1.0 200 OK\r\n", "HTTP/1.1 20 OK\r\n",
                "HTTP/1.1 2000 OK\r\n", "HTTP/1.1 999 OK\r\n", "HTTP/1.1 -20 OK\r\n", "\n", "\r\n",
                OK "Content-Length: -1\r\n\r\n", OK "Content-Length: 0x5\r\n\r\n", OK "Content-Length: \r\n\r\n",
                OK "Content-Length: 5 5\r\n\r\n", OK "Content-Length : 5\r\n\r\n", OK " Folded: 1\r\n\r\n",
                OK "No colon\r\n", OK ": 1\r\n", OK "A: b\rc\r\n", OK "Content-Length: 5\n",
                OK "Transfer-Encoding: chunked\r\n\r\n\r\n", OK "Transfer-Encoding: chunked\r\n\r\n-1\r\n",
                OK "Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", OK "Transfer-Encoding: chunked\r\n\r\nzz\r\n" };
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                if (judge(bad[i]) != -EBADMSG)
                        fail_msg("%s was taken for an answer", bad[i]);
        assert_int_equal(read_in("HTTP/1.1 200 \0\r\n", 16, 16, NULL), -EBADMSG);
}

static void a_huge_answer_is_refused_before_it_has_come(void **state)
{
        (void)state;
        assert_int_equal(judge(OK "Content-Length: 134217729\r\n\r\n"), -EMSGSIZE);
        assert_int_equal(judge(OK "Content-Length: 18446744073709551621\r\n\r\n"), -EMSGSIZE);
        assert_int_equal(judge(OK "Content-Length: 99999999999999999999999999999999999999999\r\n\r\n"), -EMSGSIZE);
        assert_int_equal(judge(OK "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\n"), -EMSGSIZE);
        /* The chunks together, not each of them. */
        assert_int_equal(judge(OK "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n8000000\r\n"), -EMSGSIZE);
}

/* Feeds the start, and then the same piece for ever. */
static int feed_endlessly(const char *start, const char *piece)
{
        struct http_answer a = { 0 };
        int r = http_answer_feed(&a, span_of_text(start));
        for (int i = 0; i < 100000 && r == 0; i++)
                r = http_answer_feed(&a, span_of_text(piece));
        http_answer_free(&a);
        return r;
}

static void an_endless_answer_is_refused(void **state)
{
        (void)state;
        assert_int_equal(feed_endlessly("HTTP/1.1 200 ", "O"), -EMSGSIZE);
        assert_int_equal(feed_endlessly(OK, "A: b\r\n"), -EMSGSIZE);
        assert_int_equal(feed_endlessly("HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n"), -EMSGSIZE);
        assert_int_equal(feed_endlessly(OK "Transfer-Encoding: chunked\r\n\r\n", "0"), -EMSGSIZE);
        assert_int_equal(feed_endlessly(OK "Transfer-Encoding: chunked\r\n\r\n1;", "x"), -EMSGSIZE);
        assert_int_equal(feed_endlessly(OK "Transfer-Encoding: chunked\r\n\r\n0\r\n", "A: b\r\n"), -EMSGSIZE);
}

/* --- what is in it ------------------------------------------------------------------------------------------------ */

#define TASK(more)                                                                                                     \
        "{\"id\": \"1m7mbn8tr7ppbrg3637w-1\", \"handler\": \"mail\", \"attempt\": 1, \"fence\": \"12.3.4\", "          \
        "\"remaining_ms\": 900, \"ttl_ms\": 1000" more "}"

/* 0 or -errno; the work is the caller's. */
static int work_of(const char *text, struct qv_client_work **ret)
{
        json_t *object = json_loads(text, JSON_ALLOW_NUL, NULL);
        struct error error = { "" };
        assert_non_null(object);
        int r = work_of_json(object, "mail", "one", ret, &error);
        json_decref(object);
        return r;
}

static void a_task_is_read_with_all_that_it_has(void **state)
{
        struct qv_client_work *work = NULL;
        (void)state;
        assert_int_equal(work_of(TASK(", \"key\": \"k\", \"payload_base64\": \"AP8=\", \"checkpoint\": \"row 3\", "
                                      "\"headers\": {\"a\": \"1\"}, \"headers_base64\": {\"b\": \"AA==\"}"),
                                 &work),
                0);
        assert_string_equal(work->id, "1m7mbn8tr7ppbrg3637w-1");
        assert_string_equal(work->key, "k");
        assert_string_equal(work->host, "one");
        assert_int_equal(work->payload_size, 2);
        assert_memory_equal(work->payload, "\0\xff", 3);
        assert_string_equal(work->checkpoint, "row 3");
        assert_int_equal(work->headers_count, 2);
        assert_int_equal(work->headers_text_count, 1);
        assert_string_equal(work->headers[1].name, "b");
        assert_int_equal(work->headers[1].value_size, 1);
        assert_int_equal(work->fence_epoch, 12);
        assert_int_equal(work->fence_start, 3);
        qv_client_work_free(work);
        assert_int_equal(work_of(TASK(", \"payload\": \"\""), &work), 0);
        assert_string_equal(work->key, "");
        assert_null(work->checkpoint);
        qv_client_work_free(work);
}

static void a_task_that_no_host_would_say_is_refused(void **state)
{
        static const char *const bad[] = { "[]", "{}", TASK(""), TASK(", \"payload\": 1"),
                TASK(", \"payload\": \"\", \"payload_base64\": \"\""), TASK(", \"payload_base64\": \"?\""),
                TASK(", \"payload\": \"\", \"key\": \"a\\u0000b\""), TASK(", \"payload\": \"\", \"headers\": []"),
                TASK(", \"payload\": \"\", \"headers\": {\"a\": 1}"),
                TASK(", \"payload\": \"\", \"headers_base64\": {\"a\": \"?\"}"),
                TASK(", \"payload\": \"\", \"ttl_ms\": 0"), TASK(", \"payload\": \"\", \"ttl_ms\": -1"),
                TASK(", \"payload\": \"\", \"remaining_ms\": \"1\""),
                TASK(", \"payload\": \"\", \"attempt\": 4294967296"), TASK(", \"payload\": \"\", \"attempt\": 0"),
                TASK(", \"payload\": \"\", \"fence\": \"1.2\""), TASK(", \"payload\": \"\", \"id\": \"../x\""),
                TASK(", \"payload\": \"\", \"handler\": \"other\"") };
        (void)state;
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                struct qv_client_work *work = NULL;
                if (work_of(bad[i], &work) != -EBADMSG)
                        fail_msg("%s was taken for a task", bad[i]);
        }
}

static void the_answer_to_a_heartbeat_has_both_members(void **state)
{
        struct qv_client_kept kept = QV_CLIENT_KEPT_INIT;
        struct error error = { "" };
        (void)state;
        assert_int_equal(kept_of_json(SPAN_TEXT("{\"remaining_ms\": 7, \"stop\": true}"), &kept, &error), 0);
        assert_true(kept.stop && kept.remaining_ms == 7);
        assert_int_equal(kept_of_json(SPAN_TEXT("{\"remaining_ms\": 7}"), &kept, &error), -EBADMSG);
        assert_int_equal(kept_of_json(SPAN_TEXT("{\"stop\": true}"), &kept, &error), -EBADMSG);
        assert_int_equal(kept_of_json(SPAN_TEXT("{\"remaining_ms\": -7, \"stop\": true}"), &kept, &error), -EBADMSG);
        assert_int_equal(kept_of_json((struct span){ NULL, 0 }, &kept, &error), -EBADMSG);
}

/* As the host reads it. */
static void what_a_worker_says_is_what_a_host_reads(void **state)
{
        struct qv_client_task follow_up = QV_CLIENT_TASK_INIT;
        struct qv_client_header2 header = { "h", "\0", 1 };
        struct qv_client_finish finish = QV_CLIENT_FINISH_INIT;
        struct work_report report;
        struct error error = { "" };
        (void)state;
        follow_up.handler = "next";
        follow_up.key = "k";
        follow_up.lane = 1;
        follow_up.delay_ms = 5;
        follow_up.payload = "\xff";
        follow_up.payload_size = 1;
        follow_up.headers2 = &header;
        follow_up.headers2_count = 1;
        finish.result = "\0\xff";
        finish.result_size = 2;
        finish.follow_ups = &follow_up;
        finish.follow_ups_count = 1;
        json_t *said = finish_json("12.3.4", &finish, &error);
        assert_non_null(said);
        char *text = json_dumps(said, 0);
        json_decref(said);
        if (report_parse(span_of_text(text), REPORT_OUTCOME, &report, &error) < 0)
                fail_msg("%s: %s", text, error.text);
        free(text);
        assert_int_equal(report.follow_ups_count, 1);
        assert_int_equal(report.fence.start, 3);
        assert_int_equal(report.result.size, 2);
        assert_memory_equal(report.result.data, "\0\xff", 2);
        report_free(&report);
        follow_up.timeout_ms = 1;
        assert_null(finish_json("12.3.4", &finish, &error));
        assert_non_null(strstr(error.text, "finish.follow_ups[0]: has handler"));
        follow_up.timeout_ms = 0;
        follow_up.size = 0;
        assert_null(finish_json("12.3.4", &finish, &error));
        finish = (struct qv_client_finish)QV_CLIENT_FINISH_INIT;
        finish.outcome = QV_CLIENT_FINISH_LIMITED;
        finish.retry_after_ms = 1500;
        said = finish_json("12.3.4", &finish, &error);
        text = json_dumps(said, 0);
        json_decref(said);
        assert_int_equal(report_parse(span_of_text(text), REPORT_OUTCOME, &report, &error), 0);
        free(text);
        assert_int_equal(report.outcome, OUTCOME_LIMITED);
        assert_int_equal(report.retry_after_ms, 1500);
        report_free(&report);
        finish.outcome = 6;
        assert_null(finish_json("12.3.4", &finish, &error));
        assert_non_null(strstr(error.text, "finish.outcome: 6"));
}

static void a_heartbeat_is_what_a_host_reads(void **state)
{
        struct qv_client_heartbeat heartbeat = QV_CLIENT_HEARTBEAT_INIT;
        struct work_report report;
        struct error error = { "" };
        (void)state;
        heartbeat.has_progress = true;
        heartbeat.progress_done = 3;
        heartbeat.progress_total = 10;
        heartbeat.checkpoint = "row 3";
        heartbeat.checkpoint_size = 5;
        json_t *said = heartbeat_json("12.3.4", &heartbeat);
        char *text = json_dumps(said, 0);
        json_decref(said);
        assert_int_equal(report_parse(span_of_text(text), REPORT_HEARTBEAT, &report, &error), 0);
        free(text);
        assert_true(report.has_progress && report.progress_done == 3 && report.progress_total == 10);
        assert_int_equal(report.checkpoint.size, 5);
        report_free(&report);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_answer_is_the_same_however_it_is_cut),
                cmocka_unit_test(a_truncated_answer_is_never_whole),
                cmocka_unit_test(two_lengths_are_refused),
                cmocka_unit_test(what_is_no_answer_is_refused),
                cmocka_unit_test(a_huge_answer_is_refused_before_it_has_come),
                cmocka_unit_test(an_endless_answer_is_refused),
                cmocka_unit_test(a_task_is_read_with_all_that_it_has),
                cmocka_unit_test(a_task_that_no_host_would_say_is_refused),
                cmocka_unit_test(the_answer_to_a_heartbeat_has_both_members),
                cmocka_unit_test(what_a_worker_says_is_what_a_host_reads),
                cmocka_unit_test(a_heartbeat_is_what_a_host_reads),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
