/* The mock's services keep plugin.h's word, limits and refusals included. */
#include "mock_script.h"

#include <errno.h>
#include <pthread.h>

/* --- limits --- */

static int32_t go_over_limits(const struct qv_task *task)
{
        const struct qv_host *host = task->host;
        char *large = calloc(1, QV_MOCK_PAYLOAD_MAX + 2);
        memset(large, 'x', QV_MOCK_PAYLOAD_MAX + 1);
        assert_int_equal(host->checkpoint(host, task, large, QV_CHECKPOINT_MAX), 0);
        assert_int_equal(host->checkpoint(host, task, large, QV_CHECKPOINT_MAX + 1), -EMSGSIZE);
        assert_int_equal(host->checkpoint(host, task, NULL, 1), -EINVAL);
        assert_int_equal(host->result(host, task, large, QV_MOCK_PAYLOAD_MAX + 1), -EMSGSIZE);
        assert_int_equal(host->error(host, task, large), 0);
        host->log(host, QV_LOG_INFO, large);

        struct qv_submit submit = QV_SUBMIT_INIT;
        submit.handler = "next";
        submit.payload = large;
        submit.payload_size = QV_MOCK_PAYLOAD_MAX + 1;
        assert_int_equal(host->submit(host, task, &submit), -EMSGSIZE);
        submit.payload_size = 0;
        for (unsigned i = 0; i < QV_SUBMITS_MAX; i++)
                assert_int_equal(host->submit(host, task, &submit), 0);
        assert_int_equal(host->submit(host, task, &submit), -E2BIG);
        free(large);
        return task->attempt == 1 ? QV_RETRY : QV_DONE;
}

static void limits_are_those_of_a_host(void **state)
{
        (void)state;
        struct qv_mock_task *task = run(go_over_limits);
        assert_int_equal(strlen(task->error), QV_ERROR_MAX);
        assert_int_equal(strlen(qv_mock_logged(mock, QV_LOG_INFO, "xxx")->text), QV_LOG_MAX);
        assert_int_equal(task->checkpoint_size, QV_CHECKPOINT_MAX);
        assert_int_equal(qv_mock_handle(mock, task), QV_DONE);
        assert_int_equal(task->submits_count, QV_SUBMITS_MAX);
        assert_null(task->submits[0].key);
}

static void expect_refusal(const struct qv_task *task, const struct qv_submit *submit, const char *field)
{
        assert_int_equal(task->host->submit(task->host, task, submit), -EINVAL);
        assert_non_null(qv_mock_logged(mock, QV_LOG_ERROR, field));
}

static int32_t submit_wrongly(const struct qv_task *task)
{
        char key[257] = { 0 };
        struct qv_submit submit = QV_SUBMIT_INIT;
        struct qv_header header = { "", "1" };
        expect_refusal(task, &submit, "submit: handler is NULL");
        submit.handler = "9lives";
        expect_refusal(task, &submit, "submit: handler is not a name");
        submit.handler = "ok-1_A";
        submit.key = "";
        expect_refusal(task, &submit, "submit: key is not 1 to 255 bytes");
        memset(key, 'k', 256);
        submit.key = key;
        assert_int_equal(task->host->submit(task->host, task, &submit), -EINVAL);
        key[255] = 0;
        assert_int_equal(task->host->submit(task->host, task, &submit), 0);
        submit.key = "a\nb";
        expect_refusal(task, &submit, "submit: key has a control character");
        submit.key = NULL;
        submit.lane = 2;
        expect_refusal(task, &submit, "submit: lane is 2");
        submit.lane = -1;
        submit.headers = &header;
        submit.headers_count = 1;
        expect_refusal(task, &submit, "submit: headers[0] has no name");
        header.name = "a:b";
        expect_refusal(task, &submit, "submit: headers[0] has no name of 1 to 64 letters");
        header.name = "a";
        header.value = "1\n2";
        expect_refusal(task, &submit, "submit: headers[0] has a control character");
        submit.headers_count = 0;
        submit.payload_size = 1;
        expect_refusal(task, &submit, "submit: payload is NULL");
        submit.payload_size = 0;
        submit.delay_ms = UINT64_MAX;
        expect_refusal(task, &submit, "submit: delay_ms");
        submit.delay_ms = 0;
        submit.size = 0;
        expect_refusal(task, &submit, "QV_SUBMIT_INIT");
        return QV_DONE;
}

static void a_wrong_follow_up_is_refused_by_field(void **state)
{
        (void)state;
        struct qv_mock_task *task = run(submit_wrongly);
        assert_int_equal(task->submits_count, 1);
}

/* --- stop, clock, failures --- */

static int32_t work_until_stopped(const struct qv_task *task)
{
        uint64_t done = 0;
        while (!qv_stop(task) && done < 100)
                (void)task->host->progress(task->host, task, ++done, 0);
        return qv_stop(task) ? QV_RETRY : QV_DONE;
}

static void stop_at_third_call(struct qv_mock *m, const char *service, void *arg)
{
        if (!strcmp(service, "progress") && ++*(int *)arg == 3)
                qv_mock_stop(m);
}

static void stop_can_be_raised_in_the_middle(void **state)
{
        (void)state;
        int calls = 0;
        qv_mock_on_call(mock, stop_at_third_call, &calls);
        struct qv_mock_task *task = run(work_until_stopped);
        assert_int_equal(task->outcome, QV_RETRY);
        assert_int_equal(task->progress_done, 3);
        assert_int_equal(qv_mock_calls(mock, "progress"), 3);
}

static void stop_before_a_start_holds_for_that_start_alone(void **state)
{
        (void)state;
        qv_mock_stop(mock);
        struct qv_mock_task *task = run(work_until_stopped);
        assert_int_equal(task->outcome, QV_RETRY);
        assert_int_equal(task->progress_done, 0);
        assert_int_equal(qv_mock_handle(mock, task), QV_DONE);
}

static void step_10_ms(struct qv_mock *m, const char *service, void *arg)
{
        (void)service;
        (void)arg;
        qv_mock_step_ms(m, 10);
}

static void stop_is_raised_when_the_deadline_passes(void **state)
{
        (void)state;
        qv_mock_on_call(mock, step_10_ms, NULL);
        act = work_until_stopped;
        assert_int_equal(qv_mock_init(mock), 0);
        struct qv_mock_task *task = qv_mock_new_task(mock, "k", "");
        task->timeout_ms = 45;
        assert_int_equal(qv_mock_handle(mock, task), QV_RETRY);
        assert_int_equal(task->progress_done, 5);
}

static int32_t append_to_rooms(const struct qv_task *task)
{
        const struct qv_host *host = task->host;
        uint64_t number = 0;
        assert_int_equal(host->room_append(host, "news", "one", 3, &number), 0);
        assert_int_equal(number, 1);
        assert_int_equal(host->room_append(host, "other", NULL, 0, &number), 0);
        assert_int_equal(number, 1);
        assert_int_equal(host->room_append(host, "news", "second", 6, &number), 0);
        assert_int_equal(number, 2);
        assert_int_equal(host->room_append(host, "", "x", 1, &number), -EINVAL);
        assert_int_equal(host->room_append(host, "a\tb", "x", 1, &number), -EINVAL);
        assert_int_equal(host->room_append(host, "news", NULL, 1, &number), -EINVAL);
        assert_int_equal(host->room_append(host, "news", "x", QV_ROOM_ENTRY_MAX + 1, &number), -EMSGSIZE);
        return QV_DONE;
}

static void what_is_appended_to_a_room_can_be_looked_at(void **state)
{
        (void)state;
        size_t size = 7;
        assert_int_equal(run(append_to_rooms)->outcome, QV_DONE);
        assert_memory_equal(qv_mock_room(mock, "news", 2, &size), "second", 6);
        assert_int_equal(size, 6);
        assert_non_null(qv_mock_room(mock, "other", 1, NULL));
        assert_null(qv_mock_room(mock, "news", 3, &size));
}

static int32_t look_at_locks(const struct qv_task *task)
{
        const struct qv_host *host = task->host;
        uint64_t first = 0;
        uint64_t again = 0;
        assert_int_equal(host->trylock(host, "report", 100, &first), 0);
        assert_int_equal(qv_mock_lock_token(mock, "report"), first);
        qv_mock_step_ms(mock, 99);
        assert_int_equal(host->trylock(host, "report", 100, &again), 0);
        assert_int_equal(again, first);
        qv_mock_step_ms(mock, 99);
        assert_int_equal(qv_mock_lock_token(mock, "report"), first);
        qv_mock_step_ms(mock, 1);
        assert_int_equal(qv_mock_lock_token(mock, "report"), 0);
        assert_int_equal(host->unlock(host, "report", first), -ENOENT);

        assert_int_equal(host->trylock(host, "report", 100, &again), 0);
        assert_true(again > first);
        assert_int_equal(host->unlock(host, "report", first), -ENOENT);
        assert_int_equal(host->unlock(host, "report", again), 0);
        assert_int_equal(host->unlock(host, "report", again), -ENOENT);
        return QV_DONE;
}

static void a_lock_is_renewed_and_expires_by_the_clock(void **state)
{
        (void)state;
        assert_int_equal(run(look_at_locks)->outcome, QV_DONE);
}

static int32_t lock_and_end(const struct qv_task *task)
{
        uint64_t token = 0;
        assert_int_equal(task->host->trylock(task->host, "report", 100000, &token), 0);
        assert_int_equal(qv_mock_lock_token(mock, "report"), token);
        return QV_DONE;
}

static void a_lock_is_free_when_its_task_has_ended(void **state)
{
        (void)state;
        assert_int_equal(run(lock_and_end)->outcome, QV_DONE);
        assert_int_equal(qv_mock_lock_token(mock, "report"), 0);
}

static int32_t contend(const struct qv_task *task)
{
        const struct qv_host *host = task->host;
        uint64_t token = 7;
        qv_mock_lock_elsewhere(mock, "report", 100);
        assert_int_equal(host->trylock(host, "report", 100, &token), -EBUSY);
        assert_int_equal(token, 7);
        qv_mock_step_ms(mock, 100);
        assert_int_equal(host->trylock(host, "report", 100, &token), 0);
        qv_mock_lock_elsewhere(mock, "report", 100);
        assert_int_equal(qv_mock_lock_token(mock, "report"), 0);
        assert_int_equal(host->unlock(host, "report", token), -ENOENT);

        char name[QV_LOCK_NAME_MAX + 2] = { 0 };
        memset(name, 'n', QV_LOCK_NAME_MAX + 1);
        assert_int_equal(host->trylock(host, name, 100, &token), -EMSGSIZE);
        assert_int_equal(host->trylock(host, name + 1, 100, &token), 0);
        assert_int_equal(host->trylock(host, "", 100, &token), -EINVAL);
        assert_int_equal(host->trylock(host, "a", 0, &token), -EINVAL);
        assert_int_equal(host->trylock(host, "a", 1, NULL), -EINVAL);
        assert_int_equal(host->trylock(host, "a", QV_LOCK_TTL_MAX_MS + 1ull, &token), -EINVAL);
        assert_int_equal(host->trylock(host, ".a", 1, &token), -EINVAL);
        assert_int_equal(host->trylock(host, "a/b", 1, &token), -EINVAL);
        return QV_DONE;
}

static void a_lock_held_elsewhere_is_busy(void **state)
{
        (void)state;
        assert_int_equal(run(contend)->outcome, QV_DONE);
}

static int32_t take_ids(const struct qv_task *task)
{
        uint64_t last = 0;
        for (int i = 0; i < 10000; i++) {
                uint64_t id = 0;
                assert_int_equal(task->host->next_id(task->host, &id), 0);
                assert_true(id > last);
                last = id;
        }
        uint64_t id = 0;
        qv_mock_step_ms(mock, 1000);
        assert_int_equal(task->host->next_id(task->host, &id), 0);
        assert_int_equal(id >> 22, qv_mock_now_ms(mock));
        return QV_DONE;
}

static void ids_grow_and_follow_the_clock(void **state)
{
        (void)state;
        assert_int_equal(run(take_ids)->outcome, QV_DONE);
}

static int32_t submit_once(const struct qv_task *task)
{
        struct qv_submit submit = QV_SUBMIT_INIT;
        submit.handler = "next";
        int32_t r = task->host->submit(task->host, task, &submit);
        return r == 0 ? QV_DONE : r == -ENOTSUP ? QV_REJECT : QV_UNAVAILABLE;
}

static void a_service_fails_as_told_until_it_works_again(void **state)
{
        (void)state;
        qv_mock_fail(mock, "submit", -ETIMEDOUT);
        struct qv_mock_task *task = run(submit_once);
        assert_int_equal(task->outcome, QV_UNAVAILABLE);
        qv_mock_fail(mock, "submit", 0);
        assert_int_equal(qv_mock_handle(mock, task), QV_DONE);
        assert_int_equal(qv_mock_calls(mock, "submit"), 2);

        qv_mock_fail(mock, "submit", -ENOTSUP);
        assert_int_equal(qv_mock_handle(mock, qv_mock_new_task(mock, "k", "")), QV_REJECT);
        assert_non_null(qv_mock_logged(mock, QV_LOG_WARN, "submit is not supported"));
}

static int32_t use_another_task(const struct qv_task *task)
{
        struct qv_task other = *task;
        assert_int_equal(task->host->result(task->host, &other, "x", 1), -EINVAL);
        assert_int_equal(task->host->result(task->host, NULL, "x", 1), -EINVAL);
        assert_int_equal(task->host->error(task->host, NULL, "not in init"), -EINVAL);
        return QV_DONE;
}

static void services_refuse_a_task_that_is_not_running(void **state)
{
        (void)state;
        struct qv_mock_task *task = run(use_another_task);
        assert_non_null(qv_mock_logged(mock, QV_LOG_ERROR, "result: the task is not being handled"));
        assert_non_null(qv_mock_logged(mock, QV_LOG_ERROR, "error: task is NULL outside of init"));
        assert_null(task->result);
}

static int32_t progress_from_outside;

static void *call_from_outside(void *arg)
{
        const struct qv_task *task = arg;
        qv_logf(task->host, QV_LOG_INFO, "from a helper thread");
        progress_from_outside = task->host->progress(task->host, task, 1, 1);
        return NULL;
}

static int32_t use_a_helper_thread(const struct qv_task *task)
{
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, call_from_outside, (void *)task), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        return QV_DONE;
}

static void only_log_may_be_called_from_another_thread(void **state)
{
        (void)state;
        struct qv_mock_task *task = run(use_a_helper_thread);
        const struct qv_mock_log *log = qv_mock_logged(mock, QV_LOG_INFO, "helper thread");
        assert_non_null(log);
        assert_string_equal(log->task_id, task->id);
        assert_ptr_equal(qv_mock_log_at(mock, 0), log);
        assert_non_null(qv_mock_logged(mock, QV_LOG_ERROR, "progress: called from another thread"));
        assert_int_equal(progress_from_outside, -EINVAL);
        assert_int_equal(task->progress_done, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(limits_are_those_of_a_host),
                TEST(a_wrong_follow_up_is_refused_by_field),
                TEST(stop_can_be_raised_in_the_middle),
                TEST(stop_before_a_start_holds_for_that_start_alone),
                TEST(stop_is_raised_when_the_deadline_passes),
                TEST(what_is_appended_to_a_room_can_be_looked_at),
                TEST(a_lock_is_renewed_and_expires_by_the_clock),
                TEST(a_lock_held_elsewhere_is_busy),
                TEST(a_lock_is_free_when_its_task_has_ended),
                TEST(ids_grow_and_follow_the_clock),
                TEST(a_service_fails_as_told_until_it_works_again),
                TEST(services_refuse_a_task_that_is_not_running),
                TEST(only_log_may_be_called_from_another_thread),
        };
        return cmocka_run_group_tests_name("mock services", tests, NULL, NULL);
}
