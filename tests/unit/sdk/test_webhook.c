/* webhook against a real HTTP server: what is sent, what answers mean, and that no answer can do harm. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include <cmocka.h>
#include <quiver/mock.h>

#include "../../../plugins/common/base64.h"
#include "../../../plugins/webhook/signature.h"
#include "http_fixture.h"

static struct http_server *server;
static struct qv_mock *mock;
static char folder[] = "/tmp/quiver-webhook-XXXXXX";

static int setup(void **state)
{
        (void)state;
        mock = qv_mock_new(&quiver_plugin);
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        qv_mock_free(mock);
        return 0;
}

static void set_url(const char *path)
{
        char url[256];
        (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u%s", server->port, path);
        qv_mock_config(mock, "url", url);
}

/* With the server's path, on loopback. */
static void init(const char *path)
{
        set_url(path);
        qv_mock_config(mock, "allow.0", "127.0.0.1");
        if (qv_mock_init(mock) != 0)
                fail_msg("%s", qv_mock_init_error(mock));
}

static struct qv_mock_task *run(const char *payload, int32_t outcome)
{
        struct qv_mock_task *task = qv_mock_new_task(mock, "k", payload);
        (void)qv_mock_handle(mock, task);
        if (task->outcome != outcome)
                fail_msg("outcome %d, expected %d: %s", task->outcome, outcome, task->error ? task->error : "");
        return task;
}

static void assert_part(const char *text, const char *part)
{
        if (!text || !strstr(text, part))
                fail_msg("\"%s\" is not in \"%s\"", part, text ? text : "(nothing)");
}

static void assert_no_part(const char *text, const char *part)
{
        if (strcasestr(text, part))
                fail_msg("\"%s\" is in \"%s\"", part, text);
}

static const char *write_secret(const char *name, const char *text, mode_t mode)
{
        static char path[128], fresh[160];
        (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
        (void)snprintf(fresh, sizeof(fresh), "%s.new", path);
        FILE *file = fopen(fresh, "we");
        assert_non_null(file);
        (void)fputs(text, file);
        assert_int_equal(fclose(file), 0);
        assert_int_equal(chmod(fresh, mode), 0);
        assert_int_equal(rename(fresh, path), 0);
        return path;
}

/* --- what is sent ------------------------------------------------------------------------------------------------ */

static void the_payload_is_sent_and_the_answer_is_the_result(void **state)
{
        (void)state;
        init("/show/path?q=1");
        struct qv_mock_task *task = qv_mock_new_task_bytes(mock, "k", "a\0b\xff", 4);
        qv_mock_header(mock, task, "traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
        assert_int_equal(qv_mock_handle(mock, task), QV_DONE);
        assert_part(task->result, "POST /show/path?q=1 HTTP/1.1\r\n");
        assert_part(task->result, "\r\nContent-Type: application/octet-stream\r\n");
        assert_part(task->result, "\r\ntraceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n");
        assert_part(task->result, "\r\nUser-Agent: quiver-webhook/1.0\r\n");
        assert_part(task->result, "\r\nContent-Length: 4\r\n");
        char key[128];
        (void)snprintf(key, sizeof(key), "\r\nIdempotency-Key: %s\r\n", task->id);
        assert_part(task->result, key);
        assert_memory_equal(task->result + task->result_size - 4, "a\0b\xff", 4);
        assert_no_part(task->result, "expect");
        assert_no_part(task->result, "accept-encoding");
}

static void values_are_encoded_in_urls_and_stay_in_their_place(void **state)
{
        (void)state;
        init("/show/{key}/{header.tenant}?id={id}&h={handler}&n={attempt}&x={header.none?}&b={{}}");
        struct qv_mock_task *task = qv_mock_new_task(mock, "a/b?c#d%e f&g=\xc3\xa4:@", "");
        qv_mock_header(mock, task, "tenant", "x/../../y");
        qv_mock_set_id(mock, task, "task-7");
        assert_int_equal(qv_mock_handle(mock, task), QV_DONE);
        assert_part(task->result,
                "POST /show/a%2Fb%3Fc%23d%25e%20f%26g%3D%C3%A4%3A%40/x%2F..%2F..%2Fy?id=task-7&h=webhook&n=1&x=&b={} ");
        task = qv_mock_new_task(mock, "..", "");
        qv_mock_header(mock, task, "tenant", "t");
        assert_int_equal(qv_mock_handle(mock, task), QV_REJECT);
        assert_part(task->error, ". or ..");
        task = qv_mock_new_task(mock, "k", "");
        assert_int_equal(qv_mock_handle(mock, task), QV_REJECT);
        assert_part(task->error, "no header \"tenant\"");
}

static void a_value_for_the_host_stays_a_part_of_its_name(void **state)
{
        static const char *const bad[] = { "evil.example/", "evil.example#", "evil.example?", "user@evil.example",
                "evil.example:1", "evil.example\\", "[::1]", "" };
        (void)state;
        qv_mock_config(mock, "url", "https://{header.host}.example.org/");
        assert_int_equal(qv_mock_init(mock), 0);
        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
                struct qv_mock_task *task = qv_mock_new_task(mock, "k", "");
                qv_mock_header(mock, task, "host", bad[i]);
                int32_t outcome = qv_mock_handle(mock, task);
                /* An empty value leaves a name that nobody has. */
                assert_int_equal(outcome, *bad[i] ? QV_REJECT : QV_LATER);
        }
}

static void a_whole_url_may_come_from_a_header(void **state)
{
        (void)state;
        char url[128];
        qv_mock_config(mock, "url", "{+header.url}");
        qv_mock_config(mock, "allow.0", "127.0.0.1");
        assert_int_equal(qv_mock_init(mock), 0);
        (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/ok", server->port);
        static const char *const bad[] = { "file:///etc/passwd", "http://user:pw@127.0.0.1/", "http://10.0.0.1/",
                "nonsense", "http://[::1]/" };
        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
                struct qv_mock_task *task = qv_mock_new_task(mock, "k", "");
                qv_mock_header(mock, task, "url", bad[i]);
                assert_int_equal(qv_mock_handle(mock, task), QV_REJECT);
                assert_non_null(task->error);
        }
        struct qv_mock_task *task = qv_mock_new_task(mock, "k", "");
        qv_mock_header(mock, task, "url", url);
        assert_int_equal(qv_mock_handle(mock, task), QV_DONE);
}

static void headers_are_fixed_filled_in_and_left_out(void **state)
{
        (void)state;
        qv_mock_config(mock, "headers.0", "X-Fixed: one {{two}}");
        qv_mock_config(mock, "headers.1", "X-Tenant: <{header.tenant}>");
        qv_mock_config(mock, "headers.2", "X-Perhaps: {header.none?}");
        qv_mock_config(mock, "headers.3", "X-Empty:");
        qv_mock_config(mock, "headers.4", "content-type: application/json");
        qv_mock_config(mock, "headers.5", "Idempotency-Key: {key}-{attempt}");
        init("/show");
        struct qv_mock_task *task = qv_mock_new_task(mock, "k", "{}");
        qv_mock_header(mock, task, "tenant", "a: b");
        assert_int_equal(qv_mock_handle(mock, task), QV_DONE);
        assert_part(task->result, "\r\nX-Fixed: one {two}\r\n");
        assert_part(task->result, "\r\nX-Tenant: <a: b>\r\n");
        assert_part(task->result, "\r\nX-Empty:\r\n");
        assert_part(task->result, "\r\ncontent-type: application/json\r\n");
        assert_part(task->result, "\r\nIdempotency-Key: k-1\r\n");
        assert_no_part(task->result, "perhaps");
        assert_no_part(task->result, "octet-stream");
        task = qv_mock_new_task(mock, "k", "");
        qv_mock_header_bytes(mock, task, "tenant", "a\r\nX-Evil: 1", 12);
        assert_int_equal(qv_mock_handle(mock, task), QV_REJECT);
        assert_part(task->error, "control characters");
}

static void a_secret_comes_from_its_file_and_may_change(void **state)
{
        (void)state;
        qv_mock_config(mock, "secrets.token", write_secret("token", "first-secret\n", 0600));
        qv_mock_config(mock, "headers.0", "Authorization: Bearer {secret.token}");
        init("/show");
        assert_part(run("", QV_DONE)->result, "\r\nAuthorization: Bearer first-secret\r\n");
        (void)write_secret("token", "second-secret\n", 0600);
        const char *result = "";
        for (int i = 0; i < 200 && !strstr(result, "second-secret"); i++) {
                (void)usleep(100000);
                result = run("", QV_DONE)->result;
        }
        assert_part(result, "\r\nAuthorization: Bearer second-secret\r\n");
}

static void a_request_is_signed_by_both_keys(void **state)
{
        (void)state;
        char line[512];
        struct bytes expected = { 0 };
        qv_mock_config(mock, "sign_keys.0", write_secret("new", "whsec_bmV3IGtleSBuZXcga2V5IG5ldyBrZXk=\n", 0640));
        qv_mock_config(mock, "sign_keys.1", write_secret("old", "an old key of some length", 0600));
        init("/show");
        struct qv_mock_task *task = run("{\"n\": 1}", QV_DONE);
        const char *stamp = strstr(task->result, "\r\nwebhook-timestamp: ");
        assert_non_null(stamp);
        long long when = strtoll(stamp + 21, NULL, 10);
        assert_true(llabs(when - (long long)time(NULL)) < 60);
        signature_put(&expected, "new key new key new key", task->id, when, "{\"n\": 1}", 8);
        bytes_put(&expected, " ", 1);
        signature_put(&expected, "an old key of some length", task->id, when, "{\"n\": 1}", 8);
        bytes_put(&expected, "", 1);
        (void)snprintf(line, sizeof(line), "\r\nwebhook-signature: %s\r\n", expected.data);
        bytes_free(&expected);
        assert_part(task->result, line);
        (void)snprintf(line, sizeof(line), "\r\nwebhook-id: %s\r\n", task->id);
        assert_part(task->result, line);
}

static void methods_without_a_body_send_none(void **state)
{
        static const char *const methods[] = { "GET", "DELETE", "PUT", "PATCH" };
        (void)state;
        for (size_t i = 0; i < 4; i++) {
                char line[32];
                if (i) {
                        qv_mock_free(mock);
                        mock = qv_mock_new(&quiver_plugin);
                }
                qv_mock_config(mock, "method", methods[i]);
                init("/show");
                const struct qv_mock_task *task = run("payload", QV_DONE);
                (void)snprintf(line, sizeof(line), "%s /show HTTP/1.1\r\n", methods[i]);
                assert_part(task->result, line);
                assert_int_equal(!strcmp(task->result + task->result_size - 7, "payload"), i >= 2);
        }
}

static void connections_are_used_again(void **state)
{
        (void)state;
        init("/ok");
        unsigned before = server->connections;
        for (int i = 0; i < 20; i++)
                (void)run("x", QV_DONE);
        assert_int_equal(server->connections, before + 1);
}

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

/* --- settings ---------------------------------------------------------------------------------------------------- */

static void a_wrong_setting_is_refused_with_its_reason(void **state)
{
        static const struct {
                const char *name, *value, *why;
        } cases[] = {
                { "url", "", "begins neither with https://" },
                { "url", "ftp://example.org", "begins neither with https://" },
                { "url", "{header.url}", "begins neither with https://" },
                { "url", "https://e/{+header.url}", "only stand at the beginning" },
                { "url", "https://e/{nonsense}", "{nonsense} is unknown" },
                { "url", "https://e/{key", "a { without its }" },
                { "url", "https://e/key}", "a } without its {" },
                { "url", "https://e/{secret.x}", "secrets.x is not set" },
                { "url", "https://u:p@e/", "user or a password" },
                { "url", "https://192.168.1.1/", "192.168.1.1 is private" },
                { "method", "post", "none of POST" },
                { "headers.0", "no colon", "not of the form" },
                { "headers.0", "a b: c", "not of the form" },
                { "headers.0", "Host: x", "Host is the plugin's own" },
                { "headers.0", "Webhook-Id: x", "the plugin's own" },
                { "headers.0", "X: {+header.a}", "only stand at the beginning" },
                { "sign_keys.0", "/dev/null/key", "/dev/null/key: Not a directory" },
                { "rules.0", "404", "does not end in =done" },
                { "rules.0", "404=perhaps", "does not end in =done" },
                { "rules.0", "600=done", "begins neither with a status" },
                { "rules.0", "1xx=done", "begins neither with a status" },
                { "rules.0", "4x=done", "begins neither with a status" },
                { "allow.0", "intranet", "no address and no range" },
                { "redirects", "6", "not from 0 to 5" },
                { "timeout", "soon", "timeout" },
                { "connect_timeout", "0", "connect_timeout" },
                { "result", "all", "neither \"body\" nor \"none\"" },
                { "max_result", "1GiB", "max_result" },
                { "retry_after_max", "1y", "retry_after_max" },
                { "proxy", "ftp://proxy", "begins neither with http://" },
                { "proxy", "http://u:p@proxy", "proxy_user_file" },
                { "proxy_user_file", "/dev/null/user", "proxy is not" },
                { "ca_file", "/dev/null/ca", "ca_file: /dev/null/ca" },
                { "ca_file", "/", "ca_file: /: not a file" },
                { "cert_file", "/dev/null", "belong together" },
        };
        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                qv_mock_free(mock);
                mock = qv_mock_new(&quiver_plugin);
                qv_mock_config(mock, "url", "https://hooks.example.org/");
                qv_mock_config(mock, cases[i].name, cases[i].value);
                if (qv_mock_init(mock) != -1)
                        fail_msg("%s = %s was taken", cases[i].name, cases[i].value);
                assert_part(qv_mock_init_error(mock), cases[i].why);
        }
        qv_mock_free(mock);
        mock = qv_mock_new(&quiver_plugin);
        assert_int_equal(qv_mock_init(mock), -1);
        assert_part(qv_mock_init_error(mock), "url is not set");
}

static void a_secret_that_everybody_can_read_is_refused(void **state)
{
        static const struct {
                const char *text;
                mode_t mode;
                const char *why;
        } cases[] = { { "0123456789abcdef", 0644, "chmod o-rwx" }, { "", 0600, "first line is empty" },
                { "short", 0600, "shorter than 16 bytes" } };
        (void)state;
        for (size_t i = 0; i < 3; i++) {
                qv_mock_free(mock);
                mock = qv_mock_new(&quiver_plugin);
                qv_mock_config(mock, "url", "https://hooks.example.org/");
                qv_mock_config(mock, "sign_keys.0", write_secret("key", cases[i].text, cases[i].mode));
                assert_int_equal(qv_mock_init(mock), -1);
                assert_part(qv_mock_init_error(mock), cases[i].why);
        }
}

#define ONE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
        const struct CMUnitTest tests[] = {
                ONE(the_payload_is_sent_and_the_answer_is_the_result),
                ONE(values_are_encoded_in_urls_and_stay_in_their_place),
                ONE(a_value_for_the_host_stays_a_part_of_its_name),
                ONE(a_whole_url_may_come_from_a_header),
                ONE(headers_are_fixed_filled_in_and_left_out),
                ONE(a_secret_comes_from_its_file_and_may_change),
                ONE(a_request_is_signed_by_both_keys),
                ONE(methods_without_a_body_send_none),
                ONE(connections_are_used_again),
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
                ONE(a_wrong_setting_is_refused_with_its_reason),
                ONE(a_secret_that_everybody_can_read_is_refused),
        };
        (void)signal(SIGPIPE, SIG_IGN);
        if (!mkdtemp(folder))
                return 1;
        server = http_start();
        int failed = cmocka_run_group_tests(tests, NULL, NULL);
        char command[64];
        (void)snprintf(command, sizeof(command), "rm -rf %s", folder);
        return system(command) || failed;
}
