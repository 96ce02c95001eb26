/* What a host leaves to the next one on its machine: the file NAME.last, and the locks that say who lives. */
#include "check.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/file/file_lock.h"
#include "host/last_run.h"
#include "host/state_locks.h"

static struct last_run some_run(void)
{
        struct last_run run = { .boot_id = "7f3a",
                .alive_id = { 64769, UINT64_MAX },
                .app = "demo",
                .store = "redis://127.0.0.1:6379/0",
                .coordination = "redis",
                .session = "0123456789abcdef" };
        for (size_t i = 0; i < sizeof(run.nonce); i++)
                run.nonce[i] = (uint8_t)(17 * i + 3);
        return run;
}

static int parse(const char *text, size_t size, struct last_run *ret)
{
        struct error error = { "" };
        int r = last_run_parse((struct span){ text, size }, ret, &error);
        assert_true((r < 0) == (*error.text != 0));
        return r;
}

static void what_was_written_is_read(void **state)
{
        (void)state;
        struct last_run run = some_run();
        struct last_run read;
        struct buffer text = { 0 };
        assert_int_equal(last_run_put(&text, &run), 0);
        assert_int_equal(parse((const char *)text.data, text.size, &read), 0);
        assert_memory_equal(read.nonce, run.nonce, sizeof(run.nonce));
        assert_memory_equal(read.alive_id, run.alive_id, sizeof(run.alive_id));
        assert_string_equal(read.boot_id, run.boot_id);
        assert_string_equal(read.app, run.app);
        assert_string_equal(read.store, run.store);
        assert_string_equal(read.coordination, run.coordination);
        assert_string_equal(read.session, run.session);
        buffer_free(&text);
        memcpy(run.store, "sqlite:/\xff", 10);
        assert_int_equal(last_run_put(&text, &run), -EILSEQ);
}

static void any_part_of_it_alone_is_refused(void **state)
{
        (void)state;
        struct last_run run = some_run();
        struct last_run read;
        struct buffer text = { 0 };
        assert_int_equal(last_run_put(&text, &run), 0);
        for (size_t size = 0; size < text.size - 1; size++) /* the newline is not needed */
                assert_int_equal(parse((const char *)text.data, size, &read), -EBADMSG);
        buffer_free(&text);
}

static void a_field_of_another_kind_is_refused(void **state)
{
        (void)state;
        static const char *const good[] = { "\"version\":1", "\"boot\":\"b\"", "\"alive\":\"1:2\"",
                "\"nonce\":\"00112233445566778899aabbccddeeff\"", "\"app\":\"demo\"", "\"store\":\"sqlite:/q\"",
                "\"coordination\":\"local:/c\"", "\"session\":\"\"" };
        static const char *const bad[][3] = { { "\"version\":2", "\"version\":\"1\"", "\"v\":1" },
                { "\"boot\":7", "\"boot\":null", "\"b\":\"b\"" },
                { "\"alive\":\"1\"", "\"alive\":\"1:2:3\"", "\"alive\":\"-1:2\"" },
                { "\"nonce\":\"00112233445566778899aabbccddeef\"", "\"nonce\":\"00112233445566778899AABBCCDDEEFF\"",
                        "\"nonce\":\"00112233445566778899aabbccddeeff0\"" },
                { "\"app\":[]", "\"app\":true", "\"a\":\"demo\"" }, { "\"store\":1", "\"store\":{}", "\"s\":\"\"" },
                { "\"coordination\":1", "\"coordination\":false", "\"c\":\"\"" },
                { "\"session\":1", "\"session\":null", "\"s\":\"\"" } };
        for (size_t wrong = 0; wrong <= 3 * COUNT(good); wrong++) {
                struct buffer text = { 0 };
                struct last_run read;
                for (size_t i = 0; i < COUNT(good); i++)
                        buffer_printf(&text, "%c%s", i ? ',' : '{', wrong / 3 == i ? bad[i][wrong % 3] : good[i]);
                buffer_printf(&text, "}");
                assert_int_equal(
                        parse((const char *)text.data, text.size, &read), wrong == 3 * COUNT(good) ? 0 : -EBADMSG);
                buffer_free(&text);
        }
        struct last_run read;
        assert_int_equal(parse("[]", 2, &read), -EBADMSG);
        struct buffer text = { 0 };
        struct last_run run = some_run();
        assert_int_equal(last_run_put(&text, &run), 0);
        char *at = memmem(text.data, text.size, "redis:", 6);
        assert_non_null(at);
        memcpy(at, "\xff\xfe\xfd", 3);
        assert_int_equal(parse((const char *)text.data, text.size, &read), -EBADMSG);
        buffer_free(&text);
}

static void only_what_ran_here_is_ended(void **state)
{
        (void)state;
        struct last_run last = some_run();
        struct last_run now = some_run();
        assert_null(last_run_objection(&last, &now));
        memcpy(now.boot_id, "7f3b", 4);
        assert_non_null(last_run_objection(&last, &now));
        now = last;
        now.boot_id[0] = last.boot_id[0] = 0; /* unknown is not the same */
        assert_non_null(last_run_objection(&last, &now));
        last = some_run();
        for (int i = 0; i < 5; i++) {
                now = some_run();
                now.alive_id[0] += i == 0;
                now.alive_id[1] += i == 1;
                now.app[0] += i == 2;
                now.store[0] += i == 3;
                now.coordination[0] += i == 4;
                assert_non_null(last_run_objection(&last, &now));
        }
}

/* --- the file --- */

static char folder[] = "/tmp/quiver-last-XXXXXX";
static int folder_fd;

static int read_file(struct error *error)
{
        struct last_run read;
        *error = (struct error){ "" };
        return last_run_read(folder_fd, "a", &read, error);
}

static void the_file_is_ours_alone_or_ignored(void **state)
{
        (void)state;
        struct last_run run = some_run();
        struct error error;
        struct stat st;
        assert_int_equal(read_file(&error), -ENOENT);
        assert_int_equal(last_run_write(folder_fd, "a", &run, &error), 0);
        assert_int_equal(fstatat(folder_fd, "a.last", &st, 0), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        assert_int_equal(read_file(&error), 0);
        assert_int_equal(fchmodat(folder_fd, "a.last", 0620, 0), 0);
        assert_int_equal(read_file(&error), -EPERM);
        assert_int_equal(last_run_write(folder_fd, "a", &run, &error), 0);
        assert_int_equal(renameat(folder_fd, "a.last", folder_fd, "b.last"), 0);
        assert_int_equal(symlinkat("b.last", folder_fd, "a.last"), 0);
        assert_int_equal(read_file(&error), -ELOOP);
        last_run_remove(folder_fd, "a");
        int fd = openat(folder_fd, "a.last", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_int_equal(ftruncate(fd, LAST_RUN_MAX + 1), 0);
        assert_int_equal(read_file(&error), -EFBIG);
        assert_int_equal(close(fd), 0);
        last_run_remove(folder_fd, "a");
        last_run_remove(folder_fd, "b");
        assert_int_equal(read_file(&error), -ENOENT);
}

/* --- the locks --- */

static void a_second_host_of_one_name_is_refused(void **state)
{
        (void)state;
        struct state_locks first, second, other;
        struct error error = { "" };
        char pid[32];
        state_locks_init(&first);
        state_locks_init(&second);
        state_locks_init(&other);
        assert_int_equal(state_locks_open(&first, folder, "a", &error), 0);
        assert_true(first.is_alone);
        assert_int_equal(state_locks_open(&second, folder, "a", &error), -EADDRINUSE);
        (void)snprintf(pid, sizeof(pid), "(pid %d)", (int)getpid());
        assert_non_null(strstr(error.text, pid));
        assert_int_equal(state_locks_open(&other, folder, "b", &error), 0);
        state_locks_close(&second);
        state_locks_close(&first);
        state_locks_close(&other);
        assert_int_equal(state_locks_open(&second, folder, "a", &error), 0);
        state_locks_close(&second);
}

/* A child of the host that died: it has the descriptor, and nothing else. */
static pid_t start_child(int alive_fd)
{
        int shared = file_lock_share(alive_fd);
        assert_true(shared >= 0);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                (void)close_range(3, (unsigned)shared - 1, 0);
                (void)close_range((unsigned)shared + 1, ~0U, 0);
                for (;;)
                        (void)pause();
        }
        assert_int_equal(close(shared), 0);
        return pid;
}

static void open_again(struct state_locks *l)
{
        struct error error = { "" };
        state_locks_init(l);
        assert_int_equal(state_locks_open(l, folder, "a", &error), 0);
}

static void who_finds_a_child_of_the_last_one_is_not_alone_and_does_not_wait_for_ever(void **state)
{
        (void)state;
        struct state_locks first, second;
        open_again(&first);
        assert_int_equal(file_lock_share(first.alive_fd), -EAGAIN); /* it is still alone */
        state_locks_share(&first);
        pid_t pid = start_child(first.alive_fd);
        state_locks_close(&first);
        open_again(&second);
        assert_false(second.is_alone);
        assert_non_null(second.why_not);
        state_locks_share(&second);
        pid_t next = start_child(second.alive_fd);
        state_locks_close(&second);
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        open_again(&second);
        assert_false(second.is_alone); /* for the other child */
        state_locks_close(&second);
        assert_int_equal(kill(next, SIGKILL), 0);
        assert_int_equal(waitpid(next, NULL, 0), next);
        open_again(&second);
        assert_true(second.is_alone);
        assert_memory_equal(second.alive_id, first.alive_id, sizeof(first.alive_id));
        state_locks_close(&second);
}

static int set_up(void **state)
{
        (void)state;
        assert_non_null(mkdtemp(folder));
        folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return folder_fd < 0;
}

static int tear_down(void **state)
{
        static const char *const files[] = { "a.host", "a.alive", "b.host", "b.alive" };
        (void)state;
        for (size_t i = 0; i < COUNT(files); i++)
                (void)unlinkat(folder_fd, files[i], 0);
        (void)close(folder_fd);
        return rmdir(folder);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_was_written_is_read),
                cmocka_unit_test(any_part_of_it_alone_is_refused),
                cmocka_unit_test(a_field_of_another_kind_is_refused),
                cmocka_unit_test(only_what_ran_here_is_ended),
                cmocka_unit_test(the_file_is_ours_alone_or_ignored),
                cmocka_unit_test(a_second_host_of_one_name_is_refused),
                cmocka_unit_test(who_finds_a_child_of_the_last_one_is_not_alone_and_does_not_wait_for_ever),
        };
        return cmocka_run_group_tests(tests, set_up, tear_down);
}
