/* webhook against a real HTTP server: what is sent, and which settings are refused. */
#include "webhook_fixture.h"

#include "../../../plugins/common/bytes.h"
#include "../../../plugins/webhook/signature.h"

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
                ONE(a_wrong_setting_is_refused_with_its_reason),
                ONE(a_secret_that_everybody_can_read_is_refused),
        };
        return run_webhook_tests(tests, sizeof(tests) / sizeof(*tests));
}
