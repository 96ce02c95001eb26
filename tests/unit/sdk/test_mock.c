/* The mock treats a plugin as a host does: a handler that passes against it meets no surprise there. */
#include "mock_script.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- the plugin that everyone reads first --- */

static void echo_greets_with_the_word_from_its_config(void **state)
{
        (void)state;
        struct qv_mock *host = qv_mock_new(&quiver_plugin);
        qv_mock_config(host, "greeting", "hi");
        assert_int_equal(qv_mock_init(host), 0);
        assert_null(qv_mock_unread(host, 0));
        struct qv_mock_task *task = qv_mock_new_task_bytes(host, NULL, "a\0b", 3);
        assert_int_equal(qv_mock_handle(host, task), QV_DONE);
        assert_int_equal(task->result_size, 7);
        assert_memory_equal(task->result, "hi, a\0b", 8);
        qv_mock_free(host);
}

static void echo_answers_every_task_of_a_batch(void **state)
{
        (void)state;
        struct qv_mock *host = qv_mock_new(&quiver_plugin);
        assert_int_equal(qv_mock_init(host), 0);
        struct qv_mock_task *tasks[] = { qv_mock_new_task(host, "a", "1"), qv_mock_new_task(host, "b", "") };
        assert_int_equal(qv_mock_handle_many(host, tasks, 2), 2);
        assert_string_equal(tasks[0]->result, "hello, 1");
        assert_string_equal(tasks[1]->result, "hello, ");
        qv_mock_free(host);
}

static void echo_rejects_what_the_host_refuses(void **state)
{
        (void)state;
        struct qv_mock *host = qv_mock_new(&quiver_plugin);
        assert_int_equal(qv_mock_init(host), 0);
        qv_mock_fail(host, "result", -EMSGSIZE);
        struct qv_mock_task *task = qv_mock_new_task(host, "a", "1");
        assert_int_equal(qv_mock_handle(host, task), QV_REJECT);
        assert_non_null(strstr(task->error, "result of 8 bytes"));
        qv_mock_free(host);
}

/* --- outcomes --- */

static int32_t plugin_copy_all(const struct qv_task *task)
{
        const struct qv_host *host = task->host;
        struct qv_header header = { "trace", "t-1" };
        struct qv_submit submit = QV_SUBMIT_INIT;
        submit.handler = "mail";
        submit.key = "user-1";
        submit.payload = "body";
        submit.payload_size = 4;
        submit.lane = 1;
        submit.delay_ms = 250;
        submit.headers = &header;
        submit.headers_count = 1;
        char digest[] = { 0, 1, 2 };
        struct qv_header2 header2 = { "digest", digest, sizeof(digest), 0, 0 };
        submit.headers2 = &header2;
        submit.headers2_count = 1;
        assert_int_equal(host->result(host, task, "dropped", 7), 0);
        assert_int_equal(host->result(host, task, "first\0last", 10), 0);
        assert_int_equal(host->submit(host, task, &submit), 0);
        assert_int_equal(host->retry_after(host, task, 5000), 0);
        assert_int_equal(host->progress(host, task, 3, 9), 0);
        qv_errorf(task, "attempt %u", task->attempt);
        /* Copied: what happens to it now is nobody's business. */
        submit.handler = NULL;
        header.name = NULL;
        memset(digest, 9, sizeof(digest));
        return task->attempt == 1 ? QV_RETRY : QV_DONE;
}

static void what_is_staged_is_committed_with_done_alone(void **state)
{
        (void)state;
        struct qv_mock_task *task = run(plugin_copy_all);
        assert_int_equal(task->outcome, QV_RETRY);
        assert_null(task->result);
        assert_int_equal(task->submits_count, 0);
        assert_int_equal(task->retry_after_ms, 5000);
        assert_string_equal(task->error, "attempt 1");

        assert_int_equal(qv_mock_handle(mock, task), QV_DONE);
        assert_int_equal(task->starts, 2);
        assert_int_equal(task->result_size, 10);
        assert_memory_equal(task->result, "first\0last", 11);
        assert_int_equal(task->retry_after_ms, -1);
        assert_null(task->error);
        assert_int_equal(task->progress_done, 3);
        assert_int_equal(task->progress_total, 9);
        assert_int_equal(task->submits_count, 1);
        const struct qv_submit *submit = task->submits;
        assert_string_equal(submit->handler, "mail");
        assert_string_equal(submit->key, "user-1");
        assert_memory_equal(submit->payload, "body", 5);
        assert_int_equal(submit->lane, 1);
        assert_int_equal(submit->delay_ms, 250);
        assert_string_equal(submit->headers[0].name, "trace");
        assert_int_equal(submit->headers2_count, 1);
        assert_memory_equal(submit->headers2[0].value, "\0\1\2", 4);
        assert_int_equal(submit->headers2[0].is_bytes, 1);
}

static int32_t look_at_headers(const struct qv_task *task)
{
        assert_int_equal(task->headers_count, 1);
        assert_string_equal(task->headers[0].name, "trace");
        assert_int_equal(qv_find_header(task, "trace")->is_bytes, 0);
        assert_int_equal(qv_find_header(task, "digest")->value_size, 2);
        assert_memory_equal(qv_find_header(task, "digest")->value, "\0\n", 3);
        assert_null(qv_header_at(task, 2));
        return QV_DONE;
}

static void headers_may_be_bytes(void **state)
{
        (void)state;
        act = look_at_headers;
        assert_int_equal(qv_mock_init(mock), 0);
        struct qv_mock_task *task = qv_mock_new_task(mock, "k", "");
        qv_mock_header_bytes(mock, task, "digest", "\0\n", 2);
        qv_mock_header(mock, task, "trace", "t");
        assert_int_equal(qv_mock_handle(mock, task), QV_DONE);
}

static int32_t unavailable(const struct qv_task *task)
{
        assert_int_equal(task->attempt, 1);
        return QV_UNAVAILABLE;
}

static void unavailable_costs_no_attempt(void **state)
{
        (void)state;
        struct qv_mock_task *task = run(unavailable);
        assert_int_equal(task->outcome, QV_UNAVAILABLE);
        assert_int_equal(qv_mock_handle(mock, task), QV_UNAVAILABLE);
        assert_int_equal(task->attempt, 1);
        assert_int_equal(task->starts, 2);
}

static int32_t later(const struct qv_task *task)
{
        assert_int_equal(task->attempt, 1);
        (void)task->host->retry_after(task->host, task, 30);
        qv_errorf(task, "it is away");
        return QV_LATER;
}

static void later_costs_no_attempt_and_has_its_delay(void **state)
{
        (void)state;
        struct qv_mock_task *task = run(later);
        assert_int_equal(task->outcome, QV_LATER);
        assert_int_equal(qv_mock_handle(mock, task), QV_LATER);
        assert_int_equal(task->attempt, 1);
        assert_int_equal(task->laters, 2);
        assert_int_equal(task->retry_after_ms, 30);
        assert_string_equal(task->error, "it is away");
}

static int32_t return_42(const struct qv_task *task)
{
        qv_errorf(task, "something else");
        return 42;
}

static int32_t return_pending(const struct qv_task *task)
{
        (void)task;
        return QV_PENDING;
}

static void anything_else_is_a_retry_that_says_so(void **state)
{
        (void)state;
        struct qv_mock_task *task = run(return_42);
        assert_int_equal(task->outcome, QV_RETRY);
        assert_non_null(strstr(task->error, "returned 42"));
        act = return_pending;
        assert_int_equal(qv_mock_handle(mock, task), QV_RETRY);
        assert_non_null(strstr(task->error, "QV_PENDING"));
        assert_int_equal(task->attempt, 3);
}

static int32_t checkpoint_then_continue(const struct qv_task *task)
{
        if (task->attempt == 1) {
                assert_null(task->checkpoint);
                assert_int_equal(task->host->checkpoint(task->host, task, "row 1", 5), 0);
                assert_int_equal(task->host->checkpoint(task->host, task, "row 2", 5), 0);
                return QV_RETRY;
        }
        assert_int_equal(task->checkpoint_size, 5);
        assert_string_equal((const char *)task->checkpoint, "row 2");
        return QV_DONE;
}

static void the_next_attempt_gets_the_last_checkpoint(void **state)
{
        (void)state;
        struct qv_mock_task *task = run(checkpoint_then_continue);
        assert_string_equal(task->checkpoint, "row 2");
        assert_int_equal(qv_mock_handle(mock, task), QV_DONE);
}

static int32_t by_key(const struct qv_task *task)
{
        (void)task->host->result(task->host, task, task->key, strlen(task->key));
        if (!strcmp(task->key, "bad"))
                return qv_errorf(task, "bad key"), QV_REJECT;
        return QV_DONE;
}

static void a_batch_has_an_outcome_for_each_task(void **state)
{
        (void)state;
        act = by_key;
        assert_int_equal(qv_mock_init(mock), 0);
        struct qv_mock_task *tasks[] = { qv_mock_new_task(mock, "a", ""), qv_mock_new_task(mock, "bad", ""),
                qv_mock_new_task(mock, "c", "") };
        assert_int_equal(qv_mock_handle_many(mock, tasks, 3), 2);
        assert_string_equal(tasks[0]->result, "a");
        assert_int_equal(tasks[1]->outcome, QV_REJECT);
        assert_null(tasks[1]->result);
        assert_string_equal(tasks[1]->error, "bad key");
        assert_string_equal(tasks[2]->result, "c");
}

static int32_t by_payload(const struct qv_task *task)
{
        return strcmp(task->payload, "bad") != 0 ? QV_DONE : QV_REJECT;
}

static void in_an_ordered_batch_the_first_that_is_not_done_ends_its_keys_part(void **state)
{
        (void)state;
        act = by_payload;
        assert_int_equal(qv_mock_init(mock), 0);
        qv_mock_set_same_key(mock, 1);
        struct qv_mock_task *tasks[] = { qv_mock_new_task(mock, "a", ""), qv_mock_new_task(mock, "a", "bad"),
                qv_mock_new_task(mock, "a", ""), qv_mock_new_task(mock, "b", "") };
        assert_int_equal(qv_mock_handle_many(mock, tasks, 4), 2);
        assert_int_equal(tasks[1]->outcome, QV_REJECT);
        assert_int_equal(tasks[2]->outcome, -1);
        assert_int_equal(tasks[2]->starts, 0);
        assert_int_equal(tasks[3]->outcome, QV_DONE);
        assert_int_equal(qv_mock_handle(mock, tasks[2]), QV_DONE); /* it comes again */
}

static uint64_t fences[3][2];

static int32_t note_fence(const struct qv_task *task)
{
        uint64_t *fence = fences[task->attempt - 1];
        fence[0] = task->fence_epoch;
        fence[1] = task->fence_start;
        return QV_RETRY;
}

static void the_fence_grows_with_every_start_and_with_a_new_owner(void **state)
{
        (void)state;
        struct qv_mock_task *task = run(note_fence);
        (void)qv_mock_handle(mock, task);
        qv_mock_takeover(mock);
        (void)qv_mock_handle(mock, task);
        assert_int_equal(fences[0][0], fences[1][0]);
        assert_int_equal(fences[0][1] + 1, fences[1][1]);
        assert_int_equal(fences[2][0], fences[1][0] + 1);
        assert_int_equal(fences[2][1], 1);
}

static int32_t look_at_the_task(const struct qv_task *task)
{
        assert_int_equal(task->size, sizeof(*task));
        assert_string_equal(task->handler, "resize");
        assert_string_equal(task->key, task->id);
        assert_int_equal(task->headers_count, 2);
        assert_string_equal(task->headers[1].name, "b");
        assert_string_equal(task->headers[1].value, "2");
        assert_int_equal(task->payload_size, 3);
        assert_int_equal(((const char *)task->payload)[3], 0);
        assert_int_equal(task->deadline_ns, (qv_mock_now_ms(mock) + 50) * 1000000);
        return QV_DONE;
}

static void a_task_arrives_as_it_was_made(void **state)
{
        (void)state;
        act = look_at_the_task;
        assert_int_equal(qv_mock_init(mock), 0);
        struct qv_mock_task *task = qv_mock_new_task_bytes(mock, NULL, "\1\2\3", 3);
        task->handler = "resize";
        task->timeout_ms = 50;
        qv_mock_header(mock, task, "a", "1");
        qv_mock_header(mock, task, "b", "2");
        assert_int_equal(qv_mock_handle(mock, task), QV_DONE);
}

/* --- init, settings, logs --- */

static int32_t read_settings(const struct qv_host *host)
{
        assert_int_equal(qv_config_int(host, "limit", 7), 12);
        assert_int_equal(qv_config_int(host, "missing", 7), 7);
        assert_int_equal(qv_config_int(host, "huge", 7), 7);
        assert_int_equal(qv_config_bool(host, "is_on", 0), 1);
        assert_string_equal(qv_config(host, "db.url", ""), "second");
        assert_null(host->ext(host, "anything"));
        return 0;
}

static int32_t read_late(const struct qv_task *task)
{
        assert_string_equal(qv_config(task->host, "gretting", ""), "hi");
        return QV_DONE;
}

static void settings_that_init_never_read_are_reported(void **state)
{
        (void)state;
        act_init = read_settings;
        qv_mock_config(mock, "limit", "12");
        qv_mock_config(mock, "huge", "99999999999999999999");
        qv_mock_config(mock, "is_on", "true");
        qv_mock_config(mock, "gretting", "hi");
        qv_mock_config(mock, "db.url", "first");
        qv_mock_config(mock, "db.url", "second");
        assert_int_equal(qv_mock_init(mock), 0);
        assert_string_equal(qv_mock_unread(mock, 0), "gretting");
        assert_null(qv_mock_unread(mock, 1));
        assert_non_null(qv_mock_logged(mock, QV_LOG_WARN, "setting huge"));

        /* A host has reported it by the time a handler asks. */
        act = read_late;
        assert_int_equal(qv_mock_handle(mock, qv_mock_new_task(mock, "k", "")), QV_DONE);
        assert_string_equal(qv_mock_unread(mock, 0), "gretting");
}

static int32_t refuse_to_start(const struct qv_host *host)
{
        return qv_init_errorf(host, "no database at %s", "db.local");
}

static void a_failed_init_says_why_and_is_not_closed(void **state)
{
        (void)state;
        act_init = refuse_to_start;
        assert_int_equal(qv_mock_init(mock), -1);
        assert_string_equal(qv_mock_init_error(mock), "no database at db.local");
        act_init = NULL;
        assert_int_equal(qv_mock_init(mock), 0);
        assert_null(qv_mock_init_error(mock));
        assert_int_equal(closes, 0);
        qv_mock_close(mock);
        assert_int_equal(closes, 1);
}

/* --- a test that is itself wrong --- */

static void wrong_service(void)
{
        qv_mock_fail(mock, "sumbit", -EIO);
}

static void wrong_no_init(void)
{
        (void)qv_mock_handle(mock, qv_mock_new_task(mock, "k", ""));
}

static int32_t succeed(const struct qv_task *task)
{
        (void)task;
        return QV_DONE;
}

static void wrong_restart(void)
{
        (void)qv_mock_handle(mock, run(succeed));
}

static void wrong_key(void)
{
        (void)qv_mock_new_task(mock, "a\tb", "");
}

static void wrong_batch(void)
{
        assert_int_equal(qv_mock_init(mock), 0);
        struct qv_mock_task *tasks[] = { qv_mock_new_task(mock, "a", ""), qv_mock_new_task(mock, "a", "") };
        (void)qv_mock_handle_many(mock, tasks, 2);
}

static void wrong_ordered_batch(void)
{
        assert_int_equal(qv_mock_init(mock), 0);
        qv_mock_set_same_key(mock, 1);
        struct qv_mock_task *tasks[] = { qv_mock_new_task(mock, "a", ""), qv_mock_new_task(mock, "b", ""),
                qv_mock_new_task(mock, "a", "") };
        (void)qv_mock_handle_many(mock, tasks, 3);
}

/* A plugin that does not look at what came before. */
static void wrong_heedless(void)
{
        script_is_heedless = true;
        act = by_payload;
        assert_int_equal(qv_mock_init(mock), 0);
        qv_mock_set_same_key(mock, 1);
        struct qv_mock_task *tasks[] = { qv_mock_new_task(mock, "a", "bad"), qv_mock_new_task(mock, "a", "") };
        (void)qv_mock_handle_many(mock, tasks, 2);
}

static void wrong_abi(void)
{
        struct qv_plugin other = script;
        other.abi_major = 2;
        (void)qv_mock_new(&other);
}

static void wrong_late_setting(void)
{
        assert_int_equal(qv_mock_init(mock), 0);
        qv_mock_config(mock, "a", "b");
}

/* Runs `mistake` in a child and looks for `message` on its standard error and for SIGABRT. */
static void expect_abort(void (*mistake)(void), const char *message)
{
        int fds[2];
        assert_int_equal(pipe(fds), 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (!child) {
                (void)setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
                (void)signal(SIGABRT, SIG_DFL);
                (void)dup2(fds[1], STDERR_FILENO);
                mistake();
                _exit(0);
        }
        (void)close(fds[1]);
        char text[1024] = { 0 };
        size_t size = 0;
        ssize_t n;
        while (size < sizeof(text) - 1 && (n = read(fds[0], text + size, sizeof(text) - 1 - size)) > 0)
                size += (size_t)n;
        (void)close(fds[0]);
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (!strstr(text, message))
                fail_msg("expected \"%s\", got \"%s\"", message, text);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void a_wrong_test_is_told_and_aborted(void **state)
{
        (void)state;
        expect_abort(wrong_service, "there is no service \"sumbit\"");
        expect_abort(wrong_no_init, "call qv_mock_init() first");
        expect_abort(wrong_restart, "is over");
        expect_abort(wrong_key, "control character");
        expect_abort(wrong_batch, "two tasks of key a");
        expect_abort(wrong_ordered_batch, "two tasks of key a in one batch, with others between them");
        expect_abort(wrong_heedless, "it must not be started then (qv_is_over)");
        expect_abort(wrong_abi, "quiver_plugin.abi_major is 2");
        expect_abort(wrong_late_setting, "setting a comes too late");
}

/* --- once per process --- */

static int loads, unloads;

static int32_t count_load(const struct qv_host *host)
{
        assert_true(QV_HAS(host, ext));
        loads++;
        return host->config(host, "refuse") ? qv_init_errorf(host, "no network") : 0;
}

static void count_unload(void)
{
        unloads++;
}

static void load_runs_once_and_unload_at_the_end(void **state)
{
        (void)state;
        struct qv_plugin table = quiver_plugin;
        table.load = count_load;
        table.unload = count_unload;
        loads = unloads = 0;
        struct qv_mock *host = qv_mock_new(&table);
        assert_int_equal(qv_mock_init(host), 0);
        qv_mock_close(host);
        assert_int_equal(qv_mock_init(host), 0);
        assert_int_equal(loads, 1);
        assert_int_equal(unloads, 0);
        qv_mock_free(host);
        assert_int_equal(unloads, 1);
}

static void a_failed_load_says_why_and_is_not_undone(void **state)
{
        (void)state;
        struct qv_plugin table = quiver_plugin;
        table.load = count_load;
        table.unload = count_unload;
        loads = unloads = 0;
        struct qv_mock *host = qv_mock_new(&table);
        qv_mock_config(host, "refuse", "yes");
        assert_int_not_equal(qv_mock_init(host), 0);
        assert_string_equal(qv_mock_init_error(host), "no network");
        qv_mock_free(host);
        assert_int_equal(unloads, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(load_runs_once_and_unload_at_the_end),
                cmocka_unit_test(a_failed_load_says_why_and_is_not_undone),
                TEST(echo_greets_with_the_word_from_its_config),
                TEST(echo_answers_every_task_of_a_batch),
                TEST(echo_rejects_what_the_host_refuses),
                TEST(what_is_staged_is_committed_with_done_alone),
                TEST(unavailable_costs_no_attempt),
                TEST(headers_may_be_bytes),
                TEST(later_costs_no_attempt_and_has_its_delay),
                TEST(anything_else_is_a_retry_that_says_so),
                TEST(the_next_attempt_gets_the_last_checkpoint),
                TEST(a_batch_has_an_outcome_for_each_task),
                TEST(in_an_ordered_batch_the_first_that_is_not_done_ends_its_keys_part),
                TEST(the_fence_grows_with_every_start_and_with_a_new_owner),
                TEST(a_task_arrives_as_it_was_made),
                TEST(settings_that_init_never_read_are_reported),
                TEST(a_failed_init_says_why_and_is_not_closed),
                TEST(a_wrong_test_is_told_and_aborted),
        };
        return cmocka_run_group_tests_name("mock", tests, NULL, NULL);
}
