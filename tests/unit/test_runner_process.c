/* A whole runner in a child process, with the test as its host: how it starts, how it ends, and what it can still say
 * when a handler takes it down. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "cli/command.h"
#include "ring/host_side.h"
#include "ring/leases.h"
#include "ring/message.h"

#define WAIT_MS 30000
#define EPOCH   3u

/* For the sanitizer's build: a runner leaves by _exit() and frees nothing, on purpose. */
const char *__lsan_default_options(void);
const char *__lsan_default_options(void)
{
        return "detect_leaks=0";
}

/* Does what its payload says. */
static const char plugin_source[] =
        "#define _GNU_SOURCE\n"
        "#include <fcntl.h>\n"
        "#include <pthread.h>\n"
        "#include <signal.h>\n"
        "#include <sys/wait.h>\n"
        "#include <unistd.h>\n"
        "#include <quiver/plugin.h>\n"
        "static int depth(int n) { volatile char b[4096]; b[0] = (char)n; return n ? depth(n + 1) + b[0] : 0; }\n"
        "static void hidden_crash(void) { *(volatile int *)0x18 = 1; }\n"
        "static void (*volatile nowhere)(void);\n"
        "static void jump_to_nowhere(void) { nowhere(); __asm__ volatile(\"\"); }\n"
        "static void *crash_elsewhere(void *p) { hidden_crash(); return p; }\n"
        "static void spin_for_ever(void) { for (;;) __asm__ volatile(\"\"); }\n"
        "static void fork_and_crash(void) { int s; pid_t c = fork(); if (!c) hidden_crash(); waitpid(c, &s, 0); }\n"
        "static void fork_and_exit(void) { int s; pid_t c = fork(); if (!c) exit(3); waitpid(c, &s, 0); }\n"
        "static void thread_crash(void) { pthread_t t; pthread_create(&t, 0, crash_elsewhere, 0); pthread_join(t, 0); "
        "}\n"
        "static pid_t loaded_by;\n"
        "static void on_exit_hang(void) { while (getpid() == loaded_by) pause(); }\n"
        "#ifdef CRASH_EARLY\n"
        "__attribute__((constructor)) static void early(void) { hidden_crash(); }\n"
        "#endif\n"
        "#ifdef EXIT_EARLY\n"
        "__attribute__((constructor)) static void early(void) { exit(9); }\n"
        "#endif\n"
        "static int32_t my_init(const struct qv_host *host, void **ret)\n"
        "{\n"
        "        *ret = 0;\n"
        "        loaded_by = getpid();\n"
        "        atexit(on_exit_hang);\n"
        "        (void)host->config(host, \"known\");\n"
        "        if (host->config(host, \"broken\")) return qv_init_errorf(host, \"no luck\");\n"
        "        return 0;\n"
        "}\n"
        "static int32_t my_handle(void *self, const struct qv_task *task)\n"
        "{\n"
        "        const char *what = (const char *)task->payload;\n"
        "        (void)self;\n"
        "        task->host->progress(task->host, task, 1, 1);\n"
        "        if (!strcmp(what, \"segv\")) hidden_crash();\n"
        "        if (!strcmp(what, \"overflow\")) return depth(1);\n"
        "        if (!strcmp(what, \"abort\")) abort();\n"
        "        if (!strcmp(what, \"nowhere\")) jump_to_nowhere();\n"
        "        if (!strcmp(what, \"exit\")) exit(7);\n"
        "        if (!strcmp(what, \"pthread_exit\")) pthread_exit(0);\n"
        "        if (!strcmp(what, \"spin\")) spin_for_ever();\n"
        "        if (!strcmp(what, \"thread\")) thread_crash();\n"
        "        if (!strcmp(what, \"fork and crash\")) fork_and_crash();\n"
        "        if (!strcmp(what, \"fork and exit\")) fork_and_exit();\n"
        "        if (!strcmp(what, \"fork\") && fork() < 0) return QV_RETRY;\n"
        "        if (!strcmp(what, \"close\")) closefrom(0);\n"
        "        if (!strcmp(what, \"print\")) { printf(\"a line\\nhalf\"); }\n"
        "        if (!strcmp(what, \"wait\")) while (!qv_stop(task)) usleep(1000);\n"
        "        if (!strcmp(what, \"pid\")) {\n"
        "                char s[32]; int n = snprintf(s, sizeof(s), \"%d\", (int)getpid());\n"
        "                task->host->result(task->host, task, s, (size_t)n);\n"
        "        }\n"
        "        return QV_DONE;\n"
        "}\n"
        "QV_PLUGIN(\"many-ways\", \"2.1\", QV_THREADS, my_init, my_handle, NULL, NULL)\n";

static char folder[] = "/tmp/quiver-process-XXXXXX";

static void compile(const char *name, const char *flags)
{
        char command[512];
        (void)snprintf(command, sizeof(command),
                "cc -std=c11 -O1 -g -w -fno-inline -fno-optimize-sibling-calls -fPIC -shared -Isdk/include "
                "-D_GNU_SOURCE "
                "%s -fvisibility=hidden -o %s/%s.so %s/plugin.c -pthread",
                flags, folder, name, folder);
        assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a test's own words */
}

static int compile_plugins(void **state)
{
        (void)state;
        char path[128];
        assert_non_null(mkdtemp(folder));
        (void)snprintf(path, sizeof(path), "%s/plugin.c", folder);
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        (void)fputs(plugin_source, file);
        (void)fclose(file);
        compile("good", "");
        compile("crash_early", "-DCRASH_EARLY");
        compile("exit_early", "-DEXIT_EARLY");
        return 0;
}

static int remove_plugins(void **state)
{
        (void)state;
        char path[512];
        DIR *dir = opendir(folder);
        for (struct dirent *e; dir && (e = readdir(dir));) {
                (void)snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
                (void)unlink(path);
        }
        if (dir)
                (void)closedir(dir);
        (void)rmdir(folder);
        return 0;
}

/* --- the host ---------------------------------------------------------------------------------------------------- */

static struct {
        struct ring_host ring;
        struct leases leases;
        int control_fd, bell_fd, out_fd;
        pid_t pid;
        struct setting settings[2];
        size_t settings_count;
        char message[MESSAGE_MAX];
        struct reader reader; /* at the message that came last */
} host;

static int set_up(void **state)
{
        (void)state;
        struct ring_shape shape = { .seats = 4, .entries = 16, .task_bytes_max = 65536, .answer_bytes_max = 65536 };
        memset(&host, 0, sizeof(host));
        assert_int_equal(ring_host_init(&host.ring, &shape), 0);
        assert_int_equal(leases_create(&host.leases, 1), 0);
        leases_set(&host.leases, 0, EPOCH, UINT64_MAX);
        host.bell_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        return 0;
}

static int tear_down(void **state)
{
        (void)state;
        if (host.pid > 0) {
                (void)kill(host.pid, SIGKILL);
                (void)waitpid(host.pid, NULL, 0);
        }
        (void)close(host.control_fd);
        (void)close(host.out_fd);
        (void)close(host.bell_fd);
        leases_free(&host.leases);
        ring_host_free(&host.ring);
        return 0;
}

/* In the child: the descriptors of message.h, wherever they were before. */
static void place_descriptors(int control_fd, int out_fd)
{
        const int fds[] = { out_fd, control_fd, host.ring.fd, host.leases.fd, host.bell_fd };
        const int to[] = { STDOUT_FILENO, RUNNER_FD_CONTROL, RUNNER_FD_RING, RUNNER_FD_LEASES, RUNNER_FD_BELL };
        int high[5];
        for (int i = 0; i < 5; i++)
                high[i] = fcntl(fds[i], F_DUPFD, 100);
        for (int i = 0; i < 5; i++)
                (void)dup2(high[i], to[i]);
}

static void spawn(const char *plugin, uint32_t seats)
{
        int control[2];
        int out[2];
        char path[128];
        struct buffer message = { 0 };
        (void)snprintf(path, sizeof(path), "%s/%s.so", folder, plugin);
        struct runner_start start = { .handler = "trial",
                .plugin = path,
                .label = "trial.so",
                .seats = seats,
                .batch_max = 1,
                .leases = 1,
                .log_level = LEVEL_DEBUG,
                .result_max = 1024,
                .payload_max = 1024,
                .user = "",
                .settings = host.settings,
                .settings_count = host.settings_count };
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control), 0);
        assert_int_equal(pipe2(out, O_CLOEXEC), 0);
        message_put_start(&message, &start);
        assert_int_equal(send(control[0], message.data, message.size, 0), message.size);
        buffer_free(&message);
        char parent[16];
        (void)snprintf(parent, sizeof(parent), "%d", (int)getpid());
        host.pid = fork();
        assert_true(host.pid >= 0);
        if (!host.pid) {
                place_descriptors(control[1], out[1]);
                char *argv[] = { (char *)"runner", parent, NULL };
                _exit(cmd_runner(2, argv));
        }
        host.control_fd = control[0];
        host.out_fd = out[0];
        (void)close(control[1]);
        (void)close(out[1]);
}

/* The next message's kind; 0 at end-of-file. */
static int hear(void)
{
        enum message_kind kind;
        struct pollfd control = { .fd = host.control_fd, .events = POLLIN };
        assert_int_equal(poll(&control, 1, WAIT_MS), 1);
        ssize_t n = recv(host.control_fd, host.message, sizeof(host.message), 0);
        if (n <= 0)
                return 0;
        assert_int_equal(message_open(&host.reader, host.message, (size_t)n, &kind), 0);
        return (int)kind;
}

static void spawn_ready(uint32_t seats)
{
        spawn("good", seats);
        assert_int_equal(hear(), MESSAGE_READY);
}

/* The child's wait status, within the deadline. */
static int wait_for_end(void)
{
        int status;
        uint64_t until_ms = clock_boot_ms() + WAIT_MS;
        while (waitpid(host.pid, &status, WNOHANG) == 0) {
                assert_true(clock_boot_ms() < until_ms);
                (void)poll(NULL, 0, 2);
        }
        host.pid = 0;
        return status;
}

static uint64_t submit(const char *payload)
{
        struct ring_task task = { .id = "1",
                .key = "k",
                .handler = "trial",
                .attempt = 1,
                .fence_epoch = EPOCH,
                .payload = payload,
                .payload_size = strlen(payload) };
        void *owner = NULL;
        uint64_t ticket;
        assert_int_equal(ring_host_submit(&host.ring, &task, &owner, 1, &ticket), 0);
        ring_host_ring(&host.ring);
        return ticket;
}

static struct ring_reply answer(void)
{
        struct ring_reply reply;
        void *owner;
        int r;
        uint64_t until_ms = clock_boot_ms() + WAIT_MS;
        while ((r = ring_host_next(&host.ring, &reply, &owner)) == 0) {
                assert_true(clock_boot_ms() < until_ms);
                (void)poll(NULL, 0, 1);
        }
        assert_int_equal(r, 1);
        return reply;
}

/* Until a handler is inside that task: the first thing it does is to report progress. */
static uint32_t wait_until_busy(uint64_t ticket)
{
        uint64_t until_ms = clock_boot_ms() + WAIT_MS;
        for (uint32_t seat = 0;; seat = (seat + 1) % 4) {
                struct ring_seat_sight sight;
                ring_host_seat(&host.ring, seat, &sight);
                if (sight.ticket == ticket && sight.progressed_ns)
                        return seat;
                assert_true(clock_boot_ms() < until_ms);
        }
}

static struct ring_fault_sight fault(uint32_t seat)
{
        struct ring_fault_sight sight;
        ring_host_fault(&host.ring, seat, &sight);
        return sight;
}

static void expect_words(const char *text, const char *words)
{
        if (!strstr(text, words))
                fail_msg("\"%s\" lacks \"%s\"", text, words);
}

/* --- start and end ----------------------------------------------------------------------------------------------- */

static void it_says_what_it_has_loaded_and_ends_when_retired(void **state)
{
        (void)state;
        struct runner_ready ready;
        host.settings[0] = (struct setting){ "known", "1" };
        host.settings[1] = (struct setting){ "knwon", "1" };
        host.settings_count = 2;
        spawn_ready(2);
        assert_int_equal(message_get_ready(&host.reader, &ready), 0);
        assert_string_equal(ready.name, "many-ways");
        assert_string_equal(ready.version, "2.1");
        assert_int_equal(ready.flags, QV_THREADS);
        assert_false(ready.has_many);
        assert_string_equal(ready.unread, "knwon");
        (void)submit("nothing");
        assert_int_equal(answer().outcome, OUTCOME_DONE);
        ring_host_retire(&host.ring);
        int status = wait_for_end();
        assert_true(WIFEXITED(status)); /* although the plugin has an exit handler that hangs */
        assert_int_equal(WEXITSTATUS(status), 0);
        assert_int_equal(hear(), 0);
}

static void an_init_that_fails_is_a_refusal(void **state)
{
        (void)state;
        const char *text;
        host.settings[0] = (struct setting){ "broken", "1" };
        host.settings_count = 1;
        spawn("good", 4);
        assert_int_equal(hear(), MESSAGE_REFUSED);
        assert_int_equal(message_get_refused(&host.reader, &text), 0);
        assert_string_equal(text, "plugin trial.so: init: no luck");
        assert_int_equal(WEXITSTATUS(wait_for_end()), 1);
}

static void a_missing_plugin_is_a_refusal(void **state)
{
        (void)state;
        const char *text;
        spawn("no_such", 1);
        assert_int_equal(hear(), MESSAGE_REFUSED);
        assert_int_equal(message_get_refused(&host.reader, &text), 0);
        expect_words(text, "plugin trial.so: cannot open");
        assert_int_equal(WEXITSTATUS(wait_for_end()), 1);
}

static void it_ends_when_the_host_is_gone(void **state)
{
        (void)state;
        spawn_ready(1);
        uint64_t ticket = submit("spin"); /* whatever the handler is doing */
        (void)wait_until_busy(ticket);
        (void)shutdown(host.control_fd, SHUT_RDWR);
        int status = wait_for_end();
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

static void it_does_not_start_for_a_parent_that_has_died(void **state)
{
        (void)state;
        int control[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control), 0);
        host.pid = fork();
        if (!host.pid) {
                char *argv[] = { (char *)"runner", (char *)"999999", NULL };
                place_descriptors(control[1], STDERR_FILENO);
                _exit(cmd_runner(2, argv));
        }
        assert_int_equal(WEXITSTATUS(wait_for_end()), 1);
        (void)close(control[0]);
        (void)close(control[1]);
}

static void run_by_hand_it_says_who_starts_it(void **state)
{
        (void)state;
        int out[2];
        assert_int_equal(pipe2(out, O_CLOEXEC), 0);
        host.pid = fork();
        if (!host.pid) {
                char *argv[] = { (char *)"runner", (char *)"1", NULL };
                (void)dup2(out[1], STDERR_FILENO);
                (void)close(RUNNER_FD_CONTROL);
                _exit(cmd_runner(2, argv));
        }
        (void)close(out[1]);
        assert_int_equal(WEXITSTATUS(wait_for_end()), 2);
        char text[256] = "";
        assert_true(read(out[0], text, sizeof(text) - 1) > 0);
        (void)close(out[0]);
        expect_words(text, "a host starts this");
}

static void half_a_line_of_output_is_not_lost(void **state)
{
        (void)state;
        char text[64] = "";
        spawn_ready(1);
        (void)submit("print");
        (void)answer();
        ring_host_retire(&host.ring);
        (void)wait_for_end();
        assert_true(read(host.out_fd, text, sizeof(text) - 1) > 0);
        if (!strstr(text, "half"))
                assert_true(read(host.out_fd, text + strlen(text), sizeof(text) - 1 - strlen(text)) > 0);
        assert_string_equal(text, "a line\nhalf");
}

/* --- last words -------------------------------------------------------------------------------------------------- */

/* Runs one task that takes the runner down by `signal`; the fault record of its seat. */
static struct ring_fault_sight run_to_death(const char *payload, int signal)
{
        spawn_ready(1);
        uint64_t ticket = submit(payload);
        int status = wait_for_end();
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), signal);
        struct ring_seat_sight sight;
        ring_host_seat(&host.ring, 0, &sight);
        assert_int_equal(sight.ticket, ticket); /* the seat names the task */
        return fault(0);
}

static void a_crash_leaves_signal_address_and_named_frames(void **state)
{
        (void)state;
        struct ring_fault_sight f = run_to_death("segv", SIGSEGV);
        assert_int_equal(f.kind, FAULT_SIGNAL);
        assert_int_equal(f.signal, SIGSEGV);
        assert_int_equal(f.code, SEGV_MAPERR);
        assert_int_equal(f.address, 0x18);
        assert_ptr_equal(strstr(f.text, "hidden_crash+0x"), f.text);
        expect_words(f.text, "my_handle+0x");
        expect_words(f.text, " (trial.so)\n");
        assert_null(strstr(f.text, "seat_serve")); /* what is the same in every trace is left out */
}

static void a_stack_overflow_is_told_too(void **state)
{
        (void)state;
        struct ring_fault_sight f = run_to_death("overflow", SIGSEGV);
        assert_int_equal(f.kind, FAULT_SIGNAL);
        expect_words(f.text, "depth+0x");
}

static void an_abort_of_its_own_is_a_crash(void **state)
{
        (void)state;
        struct ring_fault_sight f = run_to_death("abort", SIGABRT);
        assert_int_equal(f.kind, FAULT_SIGNAL);
        assert_int_equal(f.signal, SIGABRT);
        assert_int_equal(f.code, SI_TKILL);
        expect_words(f.text, "my_handle+0x");
}

static void a_call_to_nowhere_names_the_caller(void **state)
{
        (void)state;
        struct ring_fault_sight f = run_to_death("nowhere", SIGSEGV);
        assert_int_equal(f.address, 0);
        assert_ptr_equal(strstr(f.text, "0x0\njump_to_nowhere+0x"), f.text);
}

static void an_exit_is_noted_and_hangs_nobody(void **state)
{
        (void)state;
        spawn_ready(1);
        (void)submit("exit");
        int status = wait_for_end();
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 7);
        struct ring_fault_sight f = fault(0);
        assert_int_equal(f.kind, FAULT_EXIT);
        assert_int_equal(f.code, 7);
        expect_words(f.text, "my_handle+0x");
}

static void a_thread_that_ends_itself_ends_the_runner(void **state)
{
        (void)state;
        spawn_ready(1);
        (void)submit("pthread_exit");
        assert_true(WIFEXITED(wait_for_end()));
        assert_int_equal(fault(0).kind, FAULT_EXIT);
        expect_words(fault(0).text, "pthread_exit");
}

static void a_crash_on_another_thread_blames_no_seat(void **state)
{
        (void)state;
        struct ring_fault_sight f = run_to_death("thread", SIGSEGV);
        assert_int_equal(f.kind, FAULT_NONE);
}

static void a_crash_while_loading_is_told(void **state)
{
        (void)state;
        spawn("crash_early", 2);
        int status = wait_for_end();
        assert_true(WIFSIGNALED(status));
        assert_int_equal(fault(0).kind, FAULT_SIGNAL);
        expect_words(fault(0).text, "hidden_crash+0x");
}

static void an_exit_while_loading_is_told(void **state)
{
        (void)state;
        spawn("exit_early", 1);
        assert_int_equal(WEXITSTATUS(wait_for_end()), 9);
        assert_int_equal(fault(0).kind, FAULT_EXIT);
}

static void told_to_abort_the_stuck_seat_says_where_it_stands(void **state)
{
        (void)state;
        spawn_ready(4);
        uint64_t waiting = submit("wait");
        uint64_t stuck = submit("spin");
        uint32_t waiting_seat = wait_until_busy(waiting);
        uint32_t stuck_seat = wait_until_busy(stuck);
        ring_host_stop(&host.ring, stuck_seat, stuck);
        assert_int_equal(kill(host.pid, SIGABRT), 0);
        int status = wait_for_end();
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGABRT);
        struct ring_fault_sight f = fault(stuck_seat);
        assert_int_equal(f.kind, FAULT_SIGNAL);
        assert_int_equal(f.signal, SIGABRT);
        assert_int_equal(f.code, SI_USER); /* not its own doing */
        expect_words(f.text, "spin_for_ever+0x");
        assert_int_equal(fault(waiting_seat).kind, FAULT_NONE);
}

static void killed_from_outside_it_blames_nobody(void **state)
{
        (void)state;
        spawn_ready(2);
        (void)wait_until_busy(submit("spin"));
        assert_int_equal(kill(host.pid, SIGSEGV), 0);
        assert_int_equal(WTERMSIG(wait_for_end()), SIGSEGV);
        for (uint32_t i = 0; i < 4; i++)
                assert_int_equal(fault(i).kind, FAULT_NONE);
}

/* --- handlers that do odd things --------------------------------------------------------------------------------- */

static void what_a_forked_child_does_is_no_fault_of_the_runner(void **state)
{
        (void)state;
        static const char *const ways[] = { "fork and crash", "fork and exit" };
        spawn_ready(1);
        for (size_t i = 0; i < 2; i++) {
                (void)submit(ways[i]);
                assert_int_equal(answer().outcome, OUTCOME_DONE);
                assert_int_equal(fault(0).kind, FAULT_NONE);
        }
        ring_host_retire(&host.ring);
        assert_int_equal(wait_for_end(), 0);
}

static void a_forked_child_that_comes_back_does_not_answer(void **state)
{
        (void)state;
        spawn_ready(1);
        for (int i = 0; i < 20; i++) {
                uint64_t ticket = submit("fork");
                assert_int_equal(answer().ticket, ticket);
        }
        /* And it serves nothing either: all that follow are the parent's. */
        char pid[16];
        (void)snprintf(pid, sizeof(pid), "%d", (int)host.pid);
        for (int i = 0; i < 20; i++) {
                (void)submit("pid");
                struct ring_reply reply = answer();
                assert_int_equal(reply.result_size, strlen(pid));
                assert_memory_equal(reply.result, pid, strlen(pid));
        }
        ring_host_retire(&host.ring);
        assert_int_equal(wait_for_end(), 0);
}

static void a_handler_that_closes_everything_still_answers_and_the_runner_ends(void **state)
{
        (void)state;
        spawn_ready(1);
        assert_true(ring_host_sleep(&host.ring)); /* so that the bell has to be rung, and cannot be */
        uint64_t ticket = submit("close");
        assert_true(WIFEXITED(wait_for_end()));
        assert_int_equal(answer().ticket, ticket);
        assert_int_equal(fault(0).kind, FAULT_EXIT);
        expect_words(fault(0).text, "closed the runner's own descriptors");
}

#define PROCESS_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                PROCESS_TEST(it_says_what_it_has_loaded_and_ends_when_retired),
                PROCESS_TEST(an_init_that_fails_is_a_refusal),
                PROCESS_TEST(a_missing_plugin_is_a_refusal),
                PROCESS_TEST(it_ends_when_the_host_is_gone),
                PROCESS_TEST(it_does_not_start_for_a_parent_that_has_died),
                PROCESS_TEST(run_by_hand_it_says_who_starts_it),
                PROCESS_TEST(half_a_line_of_output_is_not_lost),
                PROCESS_TEST(a_crash_leaves_signal_address_and_named_frames),
                PROCESS_TEST(a_stack_overflow_is_told_too),
                PROCESS_TEST(an_abort_of_its_own_is_a_crash),
                PROCESS_TEST(a_call_to_nowhere_names_the_caller),
                PROCESS_TEST(an_exit_is_noted_and_hangs_nobody),
                PROCESS_TEST(a_thread_that_ends_itself_ends_the_runner),
                PROCESS_TEST(a_crash_on_another_thread_blames_no_seat),
                PROCESS_TEST(a_crash_while_loading_is_told),
                PROCESS_TEST(an_exit_while_loading_is_told),
                PROCESS_TEST(told_to_abort_the_stuck_seat_says_where_it_stands),
                PROCESS_TEST(killed_from_outside_it_blames_nobody),
                PROCESS_TEST(what_a_forked_child_does_is_no_fault_of_the_runner),
                PROCESS_TEST(a_forked_child_that_comes_back_does_not_answer),
                PROCESS_TEST(a_handler_that_closes_everything_still_answers_and_the_runner_ends),
        };
        (void)signal(SIGPIPE, SIG_IGN);
        return cmocka_run_group_tests(tests, compile_plugins, remove_plugins);
}
