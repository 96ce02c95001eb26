/* exec: what a task's command gets, what its end means, and that nothing is left of it. */
#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <quiver/mock.h>

static struct qv_mock *mock;

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

static void init_shell(const char *shell)
{
        qv_mock_config(mock, "shell", shell);
        assert_int_equal(qv_mock_init(mock), 0);
}

/* Runs a task with this command. */
static struct qv_mock_task *run(const char *shell)
{
        init_shell(shell);
        struct qv_mock_task *task = qv_mock_new_task(mock, "k", "payload");
        (void)qv_mock_handle(mock, task);
        return task;
}

static void headers_become_variables_with_safe_names(void **state)
{
        (void)state;
        init_shell("env");
        struct qv_mock_task *task = qv_mock_new_task(mock, "k", "");
        qv_mock_header(mock, task, "x-Trace.id=9", "a=b $HOME");
        qv_mock_header(mock, task, "größe", "1");
        assert_int_equal(qv_mock_handle(mock, task), QV_DONE);
        assert_non_null(strstr(task->result, "\nQUIVER_HEADER_X_TRACE_ID_9=a=b $HOME\n"));
        assert_non_null(strstr(task->result, "\nQUIVER_HEADER_GR____E=1\n"));
        task = qv_mock_new_task(mock, "k", "");
        qv_mock_header_bytes(mock, task, "digest", "\0\1\xff\n", 4);
        assert_int_equal(qv_mock_handle(mock, task), QV_DONE);
        assert_non_null(strstr(task->result, "\nQUIVER_HEADER64_DIGEST=AAH/Cg==\n"));
        assert_null(strstr(task->result, "QUIVER_HEADER_DIGEST"));
}

static void a_task_sees_nothing_of_the_one_before(void **state)
{
        (void)state;
        init_shell("env; cat >&2; exit \"${QUIVER_HEADER_CODE:-3}\"");
        struct qv_mock_task *first = qv_mock_new_task(mock, "k", "first words");
        qv_mock_header(mock, first, "code", "0");
        assert_int_equal(qv_mock_handle(mock, first), QV_DONE);
        struct qv_mock_task *second = qv_mock_new_task(mock, "k", "");
        assert_int_equal(qv_mock_handle(mock, second), QV_RETRY);
        assert_string_equal(second->error, "exit status 3");
}

static void a_result_that_the_host_refuses_is_rejected(void **state)
{
        (void)state;
        qv_mock_fail(mock, "result", -EMSGSIZE);
        struct qv_mock_task *task = run("echo out");
        assert_int_equal(task->outcome, QV_REJECT);
        assert_string_equal(task->error, "result of 4 bytes refused: Message too long");
}

static void a_command_that_vanished_costs_nothing(void **state)
{
        (void)state;
        char path[] = "/tmp/quiver-exec-XXXXXX";
        int fd = mkstemp(path);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, "#!/bin/sh\n", 10), 10);
        assert_int_equal(fchmod(fd, 0700), 0);
        (void)close(fd);
        qv_mock_config(mock, "command.0", path);
        assert_int_equal(qv_mock_init(mock), 0);
        struct qv_mock_task *task = qv_mock_new_task(mock, "k", "");
        assert_int_equal(qv_mock_handle(mock, task), QV_DONE);
        assert_int_equal(unlink(path), 0);
        task = qv_mock_new_task(mock, "k", "");
        assert_int_equal(qv_mock_handle(mock, task), QV_UNAVAILABLE);
        assert_non_null(strstr(task->error, ": No such file or directory"));
}

/* More than the kernel hands to a program. */
static void too_many_headers_are_the_tasks_fault(void **state)
{
        (void)state;
        char value[100 * 1024];
        memset(value, 'v', sizeof(value) - 1);
        value[sizeof(value) - 1] = 0;
        init_shell("true");
        struct qv_mock_task *task = qv_mock_new_task(mock, "k", "");
        for (int i = 0; i < 100; i++)
                qv_mock_header(mock, task, "h", value);
        assert_int_equal(qv_mock_handle(mock, task), QV_REJECT);
        assert_non_null(strstr(task->error, "Argument list too long"));
}

/* The child of this process that is neither the command nor its shell. */
static pid_t find_guard(void)
{
        char path[64];
        char name[32] = "";
        pid_t guard = 0;
        DIR *processes = opendir("/proc");
        assert_non_null(processes);
        for (struct dirent *entry; (entry = readdir(processes));) {
                pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
                int parent = 0;
                (void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
                FILE *file = pid > 0 ? fopen(path, "r") : NULL;
                if (!file)
                        continue;
                if (fscanf(file, "%*d (%31[^)]) %*c %d", name, &parent) == 2 && parent == getpid() &&
                        !strcmp(name, "qv:guard"))
                        guard = pid;
                (void)fclose(file);
        }
        (void)closedir(processes);
        return guard;
}

/* It takes its name a moment after it was started. */
static pid_t wait_for_guard(void)
{
        pid_t guard = 0;
        for (int i = 0; i < 10000 && !(guard = find_guard()); i++)
                (void)usleep(1000);
        assert_true(guard > 0);
        return guard;
}

static void a_killed_guard_is_replaced(void **state)
{
        (void)state;
        init_shell("true");
        pid_t first = wait_for_guard();
        assert_int_equal(kill(first, SIGKILL), 0);
        siginfo_t info;
        assert_int_equal(waitid(P_PID, (id_t)first, &info, WEXITED | WNOWAIT), 0);
        struct qv_mock_task *task = qv_mock_new_task(mock, "k", "");
        assert_int_equal(qv_mock_handle(mock, task), QV_DONE);
        assert_int_not_equal(wait_for_guard(), first);
        qv_mock_close(mock);
        assert_int_equal(find_guard(), 0);
}

static size_t count_descriptors(void)
{
        size_t count = 0;
        DIR *fds = opendir("/proc/self/fd");
        assert_non_null(fds);
        while (readdir(fds))
                count++;
        (void)closedir(fds);
        return count;
}

static void no_descriptor_is_left_open(void **state)
{
        (void)state;
        size_t before = count_descriptors();
        for (int i = 0; i < 3; i++) {
                (void)run(i == 0 ? "cat" : i == 1 ? "yes" : "exit 1");
                qv_mock_close(mock);
        }
        assert_int_equal(count_descriptors(), before);
}

static void *stop_soon(void *unused)
{
        (void)unused;
        /* Until the command says that it is there. */
        while (!qv_mock_logged(mock, QV_LOG_INFO, "running"))
                (void)usleep(1000);
        qv_mock_stop(mock);
        return NULL;
}

static void a_stopped_command_is_a_retry_with_its_last_words(void **state)
{
        (void)state;
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, stop_soon, NULL), 0);
        struct qv_mock_task *task = run("echo running >&2; exec sleep 1000");
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(task->outcome, QV_RETRY);
        assert_string_equal(task->error, "stopped before it was done, killed by SIGTERM: running");
}

/* Every setting is read in init: what is left over is a misspelling. */
static void a_misspelt_setting_is_noticed(void **state)
{
        (void)state;
        qv_mock_config(mock, "max_stdout", "1MiB");
        qv_mock_config(mock, "kill_after", "1s");
        qv_mock_config(mock, "cwd", "/");
        qv_mock_config(mock, "env.0", "A=b");
        qv_mock_config(mock, "max_sdtout", "1MiB");
        init_shell("true");
        assert_string_equal(qv_mock_unread(mock, 0), "max_sdtout");
        assert_null(qv_mock_unread(mock, 1));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(headers_become_variables_with_safe_names),
                TEST(a_task_sees_nothing_of_the_one_before),
                TEST(a_result_that_the_host_refuses_is_rejected),
                TEST(a_command_that_vanished_costs_nothing),
                TEST(too_many_headers_are_the_tasks_fault),
                TEST(a_killed_guard_is_replaced),
                TEST(no_descriptor_is_left_open),
                TEST(a_stopped_command_is_a_retry_with_its_last_words),
                TEST(a_misspelt_setting_is_noticed),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
