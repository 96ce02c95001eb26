/* webhook_fixture.h: the plugin webhook under the mock, and the server that it sends to. */
#ifndef QUIVER_WEBHOOK_FIXTURE_H
#define QUIVER_WEBHOOK_FIXTURE_H

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include <cmocka.h>
#include <quiver/mock.h>

#include "http_fixture.h"

static struct http_server *server;
static struct qv_mock *mock;
static char folder[] = "/tmp/quiver-webhook-XXXXXX";

static inline int setup(void **state)
{
        (void)state;
        mock = qv_mock_new(&quiver_plugin);
        return 0;
}

static inline int teardown(void **state)
{
        (void)state;
        qv_mock_free(mock);
        return 0;
}

static inline void set_url(const char *path)
{
        char url[256];
        (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u%s", server->port, path);
        qv_mock_config(mock, "url", url);
}

/* With the server's path, on loopback. */
static inline void init(const char *path)
{
        set_url(path);
        qv_mock_config(mock, "allow.0", "127.0.0.1");
        if (qv_mock_init(mock) != 0)
                fail_msg("%s", qv_mock_init_error(mock));
}

static inline struct qv_mock_task *run(const char *payload, int32_t outcome)
{
        struct qv_mock_task *task = qv_mock_new_task(mock, "k", payload);
        (void)qv_mock_handle(mock, task);
        if (task->outcome != outcome)
                fail_msg("outcome %d, expected %d: %s", task->outcome, outcome, task->error ? task->error : "");
        return task;
}

static inline void assert_part(const char *text, const char *part)
{
        if (!text || !strstr(text, part))
                fail_msg("\"%s\" is not in \"%s\"", part, text ? text : "(nothing)");
}

static inline void assert_no_part(const char *text, const char *part)
{
        if (strcasestr(text, part))
                fail_msg("\"%s\" is in \"%s\"", part, text);
}

static inline const char *write_secret(const char *name, const char *text, mode_t mode)
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

#define ONE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define run_webhook_tests(tests, count)                                                                                \
        (start_server() ? 1 : end_server(_cmocka_run_group_tests("webhook", tests, count, NULL, NULL)))

static inline int start_server(void)
{
        (void)signal(SIGPIPE, SIG_IGN);
        server = http_start();
        return !mkdtemp(folder);
}

static inline int end_server(int failed)
{
        char command[64];
        (void)snprintf(command, sizeof(command), "rm -rf %s", folder);
        return system(command) || failed;
}

#endif
