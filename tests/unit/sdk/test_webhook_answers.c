/* webhook against a real HTTP server: what answers mean, who is left alone, and that no answer can do harm. */
#include "webhook_fixture.h"

/* --- what answers mean ------------------------------------------------------------------------------------------- */

static void answers_become_outcomes(void **state)
{
        static const struct {
                const char *answer;
                int32_t outcome;
                int64_t delay_ms;
                const char *error;
        } cases[] = {
                { "HTTP/1.1 204 No\r\n\r\n", QV_DONE, -1, NULL },
                { "HTTP/1.1 400 Bad\r\nContent-Length: 9\r\n\r\nno \x01\xc3name", QV_REJECT, -1, "400: no ??name" },
                { "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", QV_REJECT, -1, "answered 404" },
                { "HTTP/1.1 302 Go\r\nLocation: /ok\r\n\r\n", QV_REJECT, -1, "302, redirects are not followed" },
                { "HTTP/1.1 408 T\r\n\r\n", QV_RETRY, -1, "408" },
                { "HTTP/1.1 425 E\r\n\r\n", QV_RETRY, -1, "425" },
                { "HTTP/1.1 429 M\r\nRetry-After: 7\r\n\r\n", QV_LIMITED, 7000, "429" },
                { "HTTP/1.1 429 M\r\n\r\n", QV_LIMITED, -1, "429" },
                { "HTTP/1.1 429 M\r\nRetry-After: 99999999\r\n\r\n", QV_LIMITED, 3600000, "429" },
                { "HTTP/1.1 429 M\r\nRetry-After: soon\r\n\r\n", QV_LIMITED, -1, "429" },
                { "HTTP/1.1 429 M\r\nRetry-After: -5\r\n\r\n", QV_LIMITED, -1, "429" },
                { "HTTP/1.1 500 I\r\n\r\n", QV_RETRY, -1, "500" },
                { "HTTP/1.1 500 I\r\nRetry-After: 3\r\n\r\n", QV_RETRY, 3000, "500" },
                { "HTTP/1.1 503 U\r\n\r\n", QV_RETRY, -1, "503" },
                { "HTTP/1.1 500 I\r\nContent-Length: 100\r\n\r\nhalf", QV_RETRY, -1, "500: half" },
                { "HTTP/1.1 400 I\r\nContent-Length: 100\r\n\r\nhalf", QV_REJECT, -1, "400: half" },
                { "HTTP/1.1 100 C\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", QV_DONE, -1, NULL },
        };
        (void)state;
        init("/raw");
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                const struct qv_mock_task *task = run(cases[i].answer, cases[i].outcome);
                assert_int_equal(task->retry_after_ms, cases[i].delay_ms);
                if (cases[i].error)
                        assert_part(task->error, cases[i].error);
        }
}

static void retry_after_may_be_a_date(void **state)
{
        char answer[256], date[64];
        time_t then = time(NULL) + 120;
        struct tm tm;
        (void)state;
        init("/raw");
        (void)gmtime_r(&then, &tm);
        (void)strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
        (void)snprintf(answer, sizeof(answer), "HTTP/1.1 429 M\r\nRetry-After: %s\r\n\r\n", date);
        int64_t delay_ms = run(answer, QV_LIMITED)->retry_after_ms;
        assert_true(delay_ms > 60000 && delay_ms <= 120000);
        assert_int_equal(
                run("HTTP/1.1 429 M\r\nRetry-After: Tue, 01 Jan 2019 00:00:00 GMT\r\n\r\n", QV_LIMITED)->retry_after_ms,
                -1);
}

static void rules_may_be_changed(void **state)
{
        (void)state;
        qv_mock_config(mock, "rules.0", "4xx=retry");
        qv_mock_config(mock, "rules.1", "404=done");
        qv_mock_config(mock, "rules.2", "503=unavailable");
        qv_mock_config(mock, "rules.3", "silent=reject");
        init("/raw");
        (void)run("HTTP/1.1 400 B\r\n\r\n", QV_RETRY);
        (void)run("HTTP/1.1 404 B\r\n\r\n", QV_DONE);
        (void)run("HTTP/1.1 503 B\r\n\r\n", QV_UNAVAILABLE);
        (void)run("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", QV_REJECT);
}

static void a_503_that_says_until_when_closes_its_destination_alone(void **state)
{
        (void)state;
        struct http_server *other = http_start();
        char here[16], there[16];
        (void)snprintf(here, sizeof(here), "%u", server->port);
        (void)snprintf(there, sizeof(there), "%u", other->port);
        qv_mock_config(mock, "url", "http://127.0.0.1:{header.port}/raw");
        qv_mock_config(mock, "allow.0", "127.0.0.1");
        assert_int_equal(qv_mock_init(mock), 0);
        static const int32_t outcomes[] = { QV_LATER, QV_LATER, QV_DONE };
        for (int i = 0; i < 3; i++) {
                struct qv_mock_task *task = qv_mock_new_task(
                        mock, "k", i ? "HTTP/1.1 200 OK\r\n\r\n" : "HTTP/1.1 503 U\r\nRetry-After: 30\r\n\r\n");
                qv_mock_header(mock, task, "port", i < 2 ? here : there);
                assert_int_equal(qv_mock_handle(mock, task), outcomes[i]);
                assert_true(i == 2 || (task->retry_after_ms > 20000 && task->retry_after_ms <= 30000));
        }
}

/* --- destinations ------------------------------------------------------------------------------------------------ */

static void who_cannot_be_reached_is_put_off_without_a_connection(void **state)
{
        (void)state;
        char url[64];
        unsigned port;
        int fd = http_socket(0, &port); /* bound, and nobody listens: refused */
        (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/", port);
        qv_mock_config(mock, "url", url);
        qv_mock_config(mock, "allow.0", "127.0.0.1");
        assert_int_equal(qv_mock_init(mock), 0);
        const struct qv_mock_task *task = run("x", QV_LATER);
        assert_part(task->error, "cannot be reached");
        assert_int_equal(task->retry_after_ms, -1);
        task = run("x", QV_LATER);
        assert_part(task->error, "is left alone");
        assert_true(task->retry_after_ms > 0 && task->retry_after_ms <= 1000);
        assert_int_equal(close(fd), 0);
}

static void a_name_without_an_address_is_put_off(void **state)
{
        (void)state;
        qv_mock_config(mock, "url", "http://nothing.invalid/");
        assert_int_equal(qv_mock_init(mock), 0);
        assert_part(run("x", QV_LATER)->error, "cannot be reached");
}

static void a_handler_with_one_destination_may_pause_instead(void **state)
{
        (void)state;
        char url[64];
        unsigned port;
        int fd = http_socket(0, &port);
        (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/", port);
        qv_mock_config(mock, "url", url);
        qv_mock_config(mock, "allow.0", "127.0.0.1");
        qv_mock_config(mock, "rules.0", "down=unavailable");
        assert_int_equal(qv_mock_init(mock), 0);
        for (int i = 0; i < 3; i++)
                assert_part(run("x", QV_UNAVAILABLE)->error, "cannot be reached");
        assert_int_equal(close(fd), 0);
}

static void addresses_that_are_not_public_are_refused(void **state)
{
        (void)state;
        set_url("/ok");
        assert_int_equal(qv_mock_init(mock), -1);
        assert_part(qv_mock_init_error(mock), "127.0.0.1 is loopback");
        qv_mock_free(mock);
        mock = qv_mock_new(&quiver_plugin);
        char url[64];
        (void)snprintf(url, sizeof(url), "http://localhost:%u/ok", server->port);
        qv_mock_config(mock, "url", url); /* a name: what it resolves to is seen when it is connected to */
        assert_int_equal(qv_mock_init(mock), 0);
        unsigned before = server->connections;
        assert_part(run("x", QV_REJECT)->error, "is loopback");
        assert_int_equal(server->connections, before);
}

static void redirects_are_followed_only_if_that_is_safe(void **state)
{
        static const struct {
                const char *answer;
                int32_t outcome;
                const char *error;
        } cases[] = {
                { "HTTP/1.1 307 T\r\nLocation: /ok\r\n\r\n", QV_DONE, NULL },
                { "HTTP/1.1 308 T\r\nLocation: http://127.0.0.1:%u/show\r\n\r\n", QV_DONE, NULL },
                { "HTTP/1.1 302 T\r\nLocation: /ok\r\n\r\n", QV_REJECT, "only 307 and 308" },
                { "HTTP/1.1 307 T\r\n\r\n", QV_REJECT, "answered 307" },
                { "HTTP/1.1 307 T\r\nLocation: ftp://example.org/\r\n\r\n", QV_REJECT, "no URL that can be used" },
                { "HTTP/1.1 307 T\r\nLocation: http://10.0.0.1/\r\n\r\n", QV_REJECT, "10.0.0.1 is private" },
                { "HTTP/1.1 307 T\r\nLocation: http://127.0.0.2:1/\r\n\r\n", QV_REJECT, "127.0.0.2 is loopback" },
                { "HTTP/1.1 307 T\r\nLocation: http://[::ffff:127.0.0.2]/\r\n\r\n", QV_REJECT, "is loopback" },
                { "HTTP/1.1 307 T\r\nLocation: /raw\r\n\r\n", QV_REJECT, "redirected too often" },
        };
        (void)state;
        qv_mock_config(mock, "redirects", "2");
        init("/raw");
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                char answer[256];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
                (void)snprintf(answer, sizeof(answer), cases[i].answer, server->port);
#pragma GCC diagnostic pop
                const struct qv_mock_task *task = run(answer, cases[i].outcome);
                if (cases[i].error)
                        assert_part(task->error, cases[i].error);
        }
}

static void a_redirect_elsewhere_gets_no_secret(void **state)
{
        (void)state;
        char answer[256];
        struct http_server *other = http_start();
        qv_mock_config(mock, "redirects", "1");
        qv_mock_config(mock, "secrets.token", write_secret("token", "for-one-only", 0600));
        qv_mock_config(mock, "headers.0", "Authorization: Bearer {secret.token}");
        qv_mock_config(mock, "headers.1", "X-Plain: yes");
        init("/raw");
        (void)snprintf(
                answer, sizeof(answer), "HTTP/1.1 307 T\r\nLocation: http://127.0.0.1:%u/show\r\n\r\n", other->port);
        const struct qv_mock_task *task = run(answer, QV_DONE);
        assert_part(task->result, "X-Plain: yes");
        assert_no_part(task->result, "for-one-only");
        (void)snprintf(
                answer, sizeof(answer), "HTTP/1.1 307 T\r\nLocation: http://127.0.0.1:%u/show\r\n\r\n", server->port);
        assert_part(run(answer, QV_DONE)->result, "Bearer for-one-only");
}

/* --- answers that mean harm -------------------------------------------------------------------------------------- */

static void an_answer_that_never_ends_ends_at_the_timeout(void **state)
{
        static const char *const paths[] = { "/hang", "/drip" };
        (void)state;
        for (size_t i = 0; i < 2; i++) {
                if (i) {
                        qv_mock_free(mock);
                        mock = qv_mock_new(&quiver_plugin);
                }
                qv_mock_config(mock, "timeout", "300ms");
                init(paths[i]);
                assert_part(run("x", QV_RETRY)->error, "gave no whole answer");
        }
}

static void a_head_that_never_ends_is_cut_off(void **state)
{
        (void)state;
        qv_mock_config(mock, "timeout", "10m");
        init("/head");
        assert_part(run("x", QV_RETRY)->error, "the head of the answer is longer than");
}

static void a_body_is_bounded_and_never_unpacked(void **state)
{
        (void)state;
        qv_mock_config(mock, "max_result", "1000");
        qv_mock_config(mock, "timeout", "10m");
        init("/drip");
        struct qv_mock_task *task = run("x", QV_DONE);
        assert_int_equal(task->result_size, 1000);
        assert_non_null(qv_mock_logged(mock, QV_LOG_WARN, "longer than max_result = 1000"));
        qv_mock_free(mock);
        mock = qv_mock_new(&quiver_plugin);
        init("/raw");
        /* A kilobyte of gzip that stands for a megabyte would do; the bytes come as they are. */
        task = run("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x08\x01", QV_DONE);
        assert_int_equal(task->result_size, 4);
        assert_memory_equal(task->result, "\x1f\x8b\x08\x01", 4);
}

static void broken_answers_are_tried_again(void **state)
{
        static const char *const broken[] = { "", "nonsense\r\n\r\n",
                "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "HTTP/1.1 200 OK\r\nContent-Le",
                "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "HTTP/9.9 200 OK\r\n\r\n" };
        (void)state;
        for (size_t i = 0; i < sizeof(broken) / sizeof(*broken); i++) {
                qv_mock_free(mock);
                mock = qv_mock_new(&quiver_plugin);
                init("/raw");
                struct qv_mock_task *task = qv_mock_new_task(mock, "k", broken[i]);
                if (qv_mock_handle(mock, task) != QV_RETRY)
                        fail_msg("outcome %d of %s", task->outcome, broken[i]);
                assert_part(task->error, "gave no whole answer");
        }
        /* Three in a row, and the destination is left alone. */
        (void)run("", QV_RETRY);
        (void)run("", QV_RETRY);
        assert_part(run("", QV_LATER)->error, "is left alone");
}

static void without_a_result_the_status_is_enough(void **state)
{
        (void)state;
        qv_mock_config(mock, "result", "none");
        init("/raw");
        const struct qv_mock_task *task = run("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", QV_DONE);
        assert_null(task->result);
}

static void *stop_soon(void *arg)
{
        unsigned before = *(unsigned *)arg;
        while (server->requests == before)
                (void)usleep(1000);
        qv_mock_stop(mock);
        return NULL;
}

static void a_task_that_has_to_stop_stops(void **state)
{
        (void)state;
        pthread_t thread;
        unsigned before = server->requests;
        qv_mock_config(mock, "timeout", "1h");
        init("/hang");
        assert_int_equal(pthread_create(&thread, NULL, stop_soon, &before), 0);
        assert_part(run("x", QV_RETRY)->error, "stopped before");
        assert_int_equal(pthread_join(thread, NULL), 0);
}

static void the_deadline_of_the_task_comes_before_the_timeout(void **state)
{
        (void)state;
        qv_mock_config(mock, "timeout", "1h");
        init("/hang");
        struct qv_mock_task *task = qv_mock_new_task(mock, "k", "x");
        task->timeout_ms = 300;
        assert_int_equal(qv_mock_handle(mock, task), QV_RETRY);
        assert_part(task->error, "gave no whole answer");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                ONE(answers_become_outcomes),
                ONE(retry_after_may_be_a_date),
                ONE(rules_may_be_changed),
                ONE(a_503_that_says_until_when_closes_its_destination_alone),
                ONE(who_cannot_be_reached_is_put_off_without_a_connection),
                ONE(a_name_without_an_address_is_put_off),
                ONE(a_handler_with_one_destination_may_pause_instead),
                ONE(addresses_that_are_not_public_are_refused),
                ONE(redirects_are_followed_only_if_that_is_safe),
                ONE(a_redirect_elsewhere_gets_no_secret),
                ONE(an_answer_that_never_ends_ends_at_the_timeout),
                ONE(a_head_that_never_ends_is_cut_off),
                ONE(a_body_is_bounded_and_never_unpacked),
                ONE(broken_answers_are_tried_again),
                ONE(without_a_result_the_status_is_enough),
                ONE(a_task_that_has_to_stop_stops),
                ONE(the_deadline_of_the_task_comes_before_the_timeout),
        };
        return run_webhook_tests(tests, sizeof(tests) / sizeof(*tests));
}
