/* runner_fixture.h: a whole runner in a child process, with the test as its host. */
#ifndef QUIVER_TESTS_RUNNER_FIXTURE_H
#define QUIVER_TESTS_RUNNER_FIXTURE_H

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
#include "ring/host_side.h"
#include "ring/leases.h"
#include "ring/message.h"
#include "runner/runner.h"

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
        "static void *exit_elsewhere(void *p) { if (!p) exit(8); return p; }\n"
        "static void thread_exit(void) { pthread_t t; pthread_create(&t, 0, exit_elsewhere, 0); pthread_join(t, 0); }\n"
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
        "        if (!strcmp(what, \"exit thread\")) thread_exit();\n"
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

static inline void compile(const char *name, const char *flags)
{
        char command[512];
        (void)snprintf(command, sizeof(command),
                "cc -std=c11 -O1 -g -w -fno-inline -fno-optimize-sibling-calls -fPIC -shared -Isdk/include "
                "-D_GNU_SOURCE "
                "%s -fvisibility=hidden -o %s/%s.so %s/plugin.c -pthread",
                flags, folder, name, folder);
        assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a test's own words */
}

static inline int compile_plugins(void **state)
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

static inline int remove_plugins(void **state)
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

static inline int set_up(void **state)
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

static inline int tear_down(void **state)
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
static inline void place_descriptors(int control_fd, int out_fd)
{
        const int fds[] = { out_fd, control_fd, host.ring.fd, host.leases.fd, host.bell_fd };
        const int to[] = { STDOUT_FILENO, RUNNER_FD_CONTROL, RUNNER_FD_RING, RUNNER_FD_LEASES, RUNNER_FD_BELL };
        int high[5];
        for (int i = 0; i < 5; i++)
                high[i] = fcntl(fds[i], F_DUPFD, 100);
        for (int i = 0; i < 5; i++)
                (void)dup2(high[i], to[i]);
}

static inline void spawn(const char *plugin, uint32_t seats)
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
static inline int hear(void)
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

static inline void spawn_ready(uint32_t seats)
{
        spawn("good", seats);
        assert_int_equal(hear(), MESSAGE_READY);
}

/* The child's wait status, within the deadline. */
static inline int wait_for_end(void)
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

static inline uint64_t submit(const char *payload)
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

static inline struct ring_reply answer(void)
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
static inline uint32_t wait_until_busy(uint64_t ticket)
{
        uint64_t until_ms = clock_boot_ms() + WAIT_MS;
        for (uint32_t seat = 0;; seat = (seat + 1) % 4) {
                struct ring_seat_view view;
                ring_host_seat(&host.ring, seat, &view);
                if (view.ticket == ticket && view.progressed_ns)
                        return seat;
                assert_true(clock_boot_ms() < until_ms);
        }
}

static inline struct ring_fault_view fault(uint32_t seat)
{
        struct ring_fault_view view;
        ring_host_fault(&host.ring, seat, &view);
        return view;
}

static inline void expect_words(const char *text, const char *words)
{
        if (!strstr(text, words))
                fail_msg("\"%s\" lacks \"%s\"", text, words);
}

#define PROCESS_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
