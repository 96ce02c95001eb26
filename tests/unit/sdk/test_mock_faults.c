/* The mock's faults (crashes, zombies, fences that the test sets), and the expectations that tests of plugins use. */
#include "mock_script.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- ids and fences --- */

static uint64_t seen_epoch, seen_start;
static uint32_t seen_attempt, seen_crashes;
static char seen_id[32], seen_key[32], seen_checkpoint[32];

static int32_t look(const struct qv_task *task)
{
        seen_epoch = task->fence_epoch;
        seen_start = task->fence_start;
        seen_attempt = task->attempt;
        seen_crashes = task->crashes;
        (void)snprintf(seen_id, sizeof(seen_id), "%s", task->id);
        (void)snprintf(seen_key, sizeof(seen_key), "%s", task->key);
        (void)snprintf(seen_checkpoint, sizeof(seen_checkpoint), "%s",
                task->checkpoint ? (const char *)task->checkpoint : "none");
        return QV_DONE;
}

static void an_id_can_be_set_and_is_the_key_of_a_task_without_one(void **state)
{
        (void)state;
        act = look;
        assert_int_equal(qv_mock_init(mock), 0);
        struct qv_mock_task *task = qv_mock_new_task(mock, NULL, "x");
        qv_mock_set_id(mock, task, "01-7");
        (void)qv_mock_handle(mock, task);
        assert_string_equal(seen_id, "01-7");
        assert_string_equal(seen_key, "01-7");
        task = qv_mock_new_task(mock, "k", "x");
        qv_mock_set_id(mock, task, "01-8");
        (void)qv_mock_handle(mock, task);
        assert_string_equal(seen_id, "01-8");
        assert_string_equal(seen_key, "k");
}

static void a_fence_can_be_set_and_grows_from_there(void **state)
{
        (void)state;
        act = look;
        assert_int_equal(qv_mock_init(mock), 0);
        qv_mock_set_fence(mock, 7, 40);
        struct qv_mock_task *task = qv_mock_new_task(mock, "k", "x");
        (void)qv_mock_handle(mock, task);
        assert_int_equal(seen_epoch, 7);
        assert_int_equal(seen_start, 40);
        assert_int_equal(task->fence_epoch, 7);
        assert_int_equal(task->fence_start, 40);
        (void)qv_mock_handle(mock, qv_mock_new_task(mock, "k", "x"));
        assert_int_equal(seen_start, 41);
        qv_mock_takeover(mock);
        (void)qv_mock_handle(mock, qv_mock_new_task(mock, "k", "x"));
        assert_int_equal(seen_epoch, 8);
        assert_int_equal(seen_start, 1);
}

static int32_t stage_all(const struct qv_task *task)
{
        (void)look(task);
        (void)task->host->checkpoint(task->host, task, "late", 4);
        (void)task->host->result(task->host, task, "late", 4);
        return QV_RETRY;
}

static void a_zombie_has_an_older_fence_and_changes_nothing(void **state)
{
        (void)state;
        struct qv_mock_task *task = run(look);
        uint64_t epoch = task->fence_epoch;
        uint64_t start = task->fence_start;
        qv_mock_takeover(mock);
        (void)qv_mock_handle(mock, qv_mock_new_task(mock, "other", "x"));
        act = stage_all;
        assert_int_equal(qv_mock_handle_zombie(mock, task, epoch, start), QV_RETRY);
        assert_int_equal(seen_epoch, epoch);
        assert_int_equal(seen_start, start);
        assert_int_equal(task->outcome, QV_DONE);
        assert_int_equal(task->starts, 1);
        assert_int_equal(task->attempt, 1);
        assert_null(task->checkpoint);
        /* The next start counts on as if there had been none. */
        (void)qv_mock_handle(mock, qv_mock_new_task(mock, "k", "x"));
        assert_int_equal(seen_epoch, epoch + 1);
        assert_int_equal(seen_start, 2);
}

/* --- crashes --- */

static int went_on;

static int32_t work_in_two_steps(const struct qv_task *task)
{
        (void)look(task);
        (void)task->host->checkpoint(task->host, task, "half", 4);
        (void)task->host->result(task->host, task, "r", 1);
        (void)task->host->progress(task->host, task, 1, 2);
        went_on++;
        return QV_DONE;
}

static void crash_in_progress(struct qv_mock *m, const char *service, void *arg)
{
        (void)arg;
        if (!strcmp(service, "progress"))
                qv_mock_crash(m);
}

static void after_a_crash_a_task_resumes_from_its_checkpoint(void **state)
{
        (void)state;
        went_on = 0;
        qv_mock_on_call(mock, crash_in_progress, NULL);
        struct qv_mock_task *task = run(work_in_two_steps);
        assert_int_equal(task->outcome, QV_MOCK_CRASHED);
        assert_string_equal(task->error, "crashed");
        assert_null(task->result);
        assert_int_equal(task->crashes, 1);
        assert_int_equal(went_on, 0);
        assert_int_equal(closes, 0);

        qv_mock_on_call(mock, NULL, NULL);
        assert_int_equal(qv_mock_init(mock), 0);
        assert_int_equal(qv_mock_handle(mock, task), QV_DONE);
        assert_string_equal(seen_checkpoint, "half");
        assert_int_equal(seen_attempt, 1);
        assert_int_equal(seen_crashes, 1);
        assert_int_equal(seen_start, 2);
        assert_string_equal(task->result, "r");
}

static void a_crash_is_that_of_every_task_of_the_batch(void **state)
{
        (void)state;
        act = work_in_two_steps;
        assert_int_equal(qv_mock_init(mock), 0);
        qv_mock_on_call(mock, crash_in_progress, NULL);
        struct qv_mock_task *tasks[] = { qv_mock_new_task(mock, "a", "1"), qv_mock_new_task(mock, "b", "2") };
        assert_int_equal(qv_mock_handle_many(mock, tasks, 2), 0);
        for (int i = 0; i < 2; i++) {
                assert_int_equal(tasks[i]->outcome, QV_MOCK_CRASHED);
                assert_int_equal(tasks[i]->crashes, 1);
        }
        qv_mock_on_call(mock, NULL, NULL);
        assert_int_equal(qv_mock_init(mock), 0);
        assert_int_equal(qv_mock_handle_many(mock, tasks, 2), 2);
}

static int32_t return_minus_two(const struct qv_task *task)
{
        (void)task;
        return QV_MOCK_CRASHED;
}

static void a_number_that_a_plugin_returns_is_no_crash(void **state)
{
        (void)state;
        struct qv_mock_task *task = run(return_minus_two);
        assert_int_equal(task->outcome, QV_RETRY);
        assert_int_equal(task->crashes, 0);
}

/* --- in a child, as they end it or count for the whole process --- */

/* Returns the child's wait status; what it printed on standard error is in `said`. */
static int in_child(void (*work)(void), char said[4096])
{
        int fds[2];
        assert_int_equal(pipe(fds), 0);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (!pid) {
                (void)signal(SIGABRT, SIG_DFL);
                (void)dup2(fds[1], STDERR_FILENO);
                work();
                _exit(qv_mock_failures());
        }
        (void)close(fds[1]);
        size_t size = 0;
        ssize_t n;
        while (size < 4095 && (n = read(fds[0], said + size, 4095 - size)) > 0)
                size += (size_t)n;
        said[size] = 0;
        (void)close(fds[0]);
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        return status;
}

static int32_t reject(const struct qv_task *task)
{
        return qv_errorf(task, "no such user"), QV_REJECT;
}

static void expect_wrongly(void)
{
        struct qv_mock_task *task = run(reject);
        (void)QV_EXPECT(task->starts == 2);
        (void)QV_EXPECT_INT(task->attempt, 5);
        (void)QV_EXPECT_TEXT(task->error, "no user");
        (void)QV_EXPECT_TEXT(task->result, "r");
        (void)QV_EXPECT_TEXT(task->error, NULL);
        (void)QV_EXPECT_PART(task->error, "group");
        (void)QV_EXPECT_OUTCOME(task, QV_DONE);
}

static void an_expectation_that_fails_prints_both_values_and_goes_on(void **state)
{
        (void)state;
        char said[4096];
        int status = in_child(expect_wrongly, said);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 7);
        assert_non_null(strstr(said, "test_mock_faults.c:"));
        assert_non_null(strstr(said, ": task->starts == 2 does not hold\n"));
        assert_non_null(strstr(said, ": task->attempt is 1, expected 5\n"));
        assert_non_null(strstr(said, ": task->error is \"no such user\", expected \"no user\"\n"));
        assert_non_null(strstr(said, ": task->result is NULL, expected \"r\"\n"));
        assert_non_null(strstr(said, ": task->error is \"no such user\", expected NULL\n"));
        assert_non_null(strstr(said, ": task->error is \"no such user\", expected a text with \"group\"\n"));
        assert_non_null(strstr(said, " is QV_REJECT, expected QV_DONE; its error: no such user\n"));
}

static void expect_rightly(void)
{
        struct qv_mock_task *task = run(reject);
        int held = QV_EXPECT(task->starts == 1) + QV_EXPECT_INT(task->attempt, 1) +
                   QV_EXPECT_TEXT(task->error, "no such user") + QV_EXPECT_TEXT(task->result, NULL) +
                   QV_EXPECT_PART(task->error, "user") + QV_EXPECT_OUTCOME(task, QV_REJECT);
        if (held != 6)
                abort();
}

static void an_expectation_that_holds_says_nothing(void **state)
{
        (void)state;
        char said[4096];
        assert_int_equal(in_child(expect_rightly, said), 0);
        assert_string_equal(said, "");
}

static void wrong_crash(void)
{
        qv_mock_crash(mock);
}

static void wrong_fence(void)
{
        (void)run(look);
        qv_mock_set_fence(mock, 1, 1);
}

static void wrong_zombie(void)
{
        struct qv_mock_task *task = run(look);
        (void)qv_mock_handle_zombie(mock, task, task->fence_epoch, task->fence_start);
}

static void wrong_id(void)
{
        qv_mock_set_id(mock, run(look), "late");
}

static void a_wrong_call_is_told_and_aborted(void **state)
{
        (void)state;
        static const struct {
                void (*mistake)(void);
                const char *said;
        } mistakes[] = { { wrong_crash, "no task is being handled" }, { wrong_fence, "is not above (1, 1)" },
                { wrong_zombie, "older fence than (1, 1)" }, { wrong_id, "its id stays" } };
        for (size_t i = 0; i < sizeof(mistakes) / sizeof(*mistakes); i++) {
                char said[4096];
                int status = in_child(mistakes[i].mistake, said);
                assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
                assert_non_null(strstr(said, mistakes[i].said));
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(an_id_can_be_set_and_is_the_key_of_a_task_without_one),
                TEST(a_fence_can_be_set_and_grows_from_there),
                TEST(a_zombie_has_an_older_fence_and_changes_nothing),
                TEST(after_a_crash_a_task_resumes_from_its_checkpoint),
                TEST(a_crash_is_that_of_every_task_of_the_batch),
                TEST(a_number_that_a_plugin_returns_is_no_crash),
                TEST(an_expectation_that_fails_prints_both_values_and_goes_on),
                TEST(an_expectation_that_holds_says_nothing),
                TEST(a_wrong_call_is_told_and_aborted),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
