/* What a runner gives up.  Each test does it in a child of its own, since there is no way back. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/landlock.h>
#include <netinet/in.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "runner/sandbox.h"

static char folder[] = "/tmp/quiver-sandbox-XXXXXX";

/* What a child found wrong; it cannot use the assertions of its parent. */
#define CHECK(condition)                                                                                               \
        do {                                                                                                           \
                if (!(condition)) {                                                                                    \
                        (void)fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                          \
                        _exit(1);                                                                                      \
                }                                                                                                      \
        } while (0)

static void in_child(void (*body)(void))
{
        int status;
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (!pid) {
                body();
                _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}

static struct runner_start plain_start(void)
{
        return (struct runner_start){ .handler = "h", .plugin = "/proc/self/exe", .label = "h.so", .user = "" };
}

/* --- parent, descriptors, environment ---------------------------------------------------------------------------- */

static void tie(void)
{
        int signal = 0;
        CHECK(sandbox_tie_to_parent(getppid()) == 0);
        CHECK(prctl(PR_GET_PDEATHSIG, &signal) == 0 && signal == SIGKILL);
        CHECK(sandbox_tie_to_parent(getppid() + 1) == -ESRCH);
}

static void it_dies_with_its_parent_and_not_without_one(void **state)
{
        (void)state;
        in_child(tie);
}

static void close_strangers(void)
{
        int stranger = fcntl(STDERR_FILENO, F_DUPFD, 60);
        for (int fd = RUNNER_FD_CONTROL; fd <= RUNNER_FD_ALIVE; fd++)
                CHECK(dup2(STDERR_FILENO, fd) == fd);
        sandbox_close_strangers();
        CHECK(stranger >= 60 && fcntl(stranger, F_GETFD) < 0);
        for (int fd = 0; fd <= RUNNER_FD_ALIVE; fd++)
                CHECK(fcntl(fd, F_GETFD) >= 0);
}

static void only_its_own_descriptors_stay_open(void **state)
{
        (void)state;
        in_child(close_strangers);
}

static void hide(void)
{
        int fd = fcntl(STDERR_FILENO, F_DUPFD, 3);
        int hidden = sandbox_hide_fd(fd);
        CHECK(hidden >= 500 && fcntl(fd, F_GETFD) < 0);
        CHECK(fcntl(hidden, F_GETFD) == FD_CLOEXEC);
        /* Where numbers are scarce it stays where it is, but is still no child's. */
        struct rlimit few = { 64, 64 };
        CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
        fd = fcntl(STDERR_FILENO, F_DUPFD, 3);
        CHECK(sandbox_hide_fd(fd) == fd && fcntl(fd, F_GETFD) == FD_CLOEXEC);
}

static void a_hidden_descriptor_is_out_of_reach(void **state)
{
        (void)state;
        in_child(hide);
}

static void clean(void)
{
        char secret[] = "QUIVER_PASSWORD=sesame";
        char notify[] = "NOTIFY_SOCKET=/run/notify";
        char path[] = "PATH=/bin";
        char *variables[] = { secret, path, notify, NULL };
        environ = variables;
        sandbox_clean_environment();
        CHECK(!getenv("QUIVER_PASSWORD") && !getenv("NOTIFY_SOCKET"));
        CHECK(!strcmp(getenv("PATH"), "/bin"));
        for (size_t i = 0; i < sizeof(secret); i++)
                CHECK(!secret[i]);
}

static void secrets_leave_the_environment_and_the_memory(void **state)
{
        (void)state;
        in_child(clean);
}

/* --- limits ------------------------------------------------------------------------------------------------------ */

static rlim_t limit_of(__rlimit_resource_t resource)
{
        struct rlimit limit;
        CHECK(getrlimit(resource, &limit) == 0);
        return limit.rlim_cur;
}

static void limit(void)
{
        struct buffer notes = { 0 };
        struct error error = { "" };
        struct runner_start start = plain_start();
        start.cpu_seconds_max = 30;
        start.files_max = 128;
        start.processes_max = 50;
        start.memory_max = UINT64_C(64) << 20;
        start.user = "somebody";
        CHECK(sandbox_limit(&start, &notes, &error) == 0);
        CHECK(limit_of(RLIMIT_DATA) == UINT64_C(64) << 20);
        CHECK(limit_of(RLIMIT_CPU) == 30);
        CHECK(limit_of(RLIMIT_NOFILE) == 128);
        CHECK(limit_of(RLIMIT_NPROC) == 50);
        CHECK(limit_of(RLIMIT_CORE) == 0);
        CHECK(umask(0) == 077);
        CHECK(!notes.size);
}

static void limits_hold(void **state)
{
        (void)state;
        in_child(limit);
}

static void limit_nothing(void)
{
        struct buffer notes = { 0 };
        struct error error = { "" };
        struct runner_start start = plain_start();
        struct rlimit before = { 500, 600 };
        CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
        CHECK(sandbox_limit(&start, &notes, &error) == 0);
        CHECK(limit_of(RLIMIT_NOFILE) == 500);
        /* More than the hard limit is cut to it: lower is limited enough. */
        start.files_max = 4000;
        CHECK(sandbox_limit(&start, &notes, &error) == 0);
        CHECK(limit_of(RLIMIT_NOFILE) == 600);
}

static void a_limit_of_zero_leaves_alone(void **state)
{
        (void)state;
        in_child(limit_nothing);
}

static void keep_cores(void)
{
        struct buffer notes = { 0 };
        struct error error;
        struct runner_start start = plain_start();
        struct rlimit before = { 4096, 4096 };
        CHECK(setrlimit(RLIMIT_CORE, &before) == 0);
        CHECK(setenv("QUIVER_CORES", "1", 1) == 0);
        CHECK(sandbox_limit(&start, &notes, &error) == 0);
        CHECK(limit_of(RLIMIT_CORE) == 4096);
}

static void core_dumps_can_be_asked_for(void **state)
{
        (void)state;
        in_child(keep_cores);
}

static void allow_cores(void)
{
        struct buffer notes = { 0 };
        struct error error;
        struct runner_start start = plain_start();
        struct rlimit before = { 0, 4096 };
        CHECK(setrlimit(RLIMIT_CORE, &before) == 0);
        start.core_max = 2048;
        CHECK(sandbox_limit(&start, &notes, &error) == 0);
        CHECK(limit_of(RLIMIT_CORE) == 2048);
        CHECK(!notes.size);
        /* More than this machine allows is said, and does not stop the runner. */
        start.core_max = 8192;
        CHECK(sandbox_limit(&start, &notes, &error) == 0);
        CHECK(limit_of(RLIMIT_CORE) == 2048);
        CHECK(strstr(buffer_text(&notes), "limits.core: "));
}

static void a_handler_may_leave_core_dumps_of_a_size(void **state)
{
        (void)state;
        in_child(allow_cores);
}

static void limit_processes_of_root(void)
{
        struct buffer notes = { 0 };
        struct error error;
        struct runner_start start = plain_start();
        start.processes_max = 10;
        CHECK(sandbox_limit(&start, &notes, &error) == 0);
        CHECK(strstr(buffer_text(&notes), "root"));
}

static void a_limit_without_effect_is_noted(void **state)
{
        (void)state;
        if (geteuid() != 0)
                skip();
        in_child(limit_processes_of_root);
}

/* --- user -------------------------------------------------------------------------------------------------------- */

static void a_user_who_does_not_exist_is_named(void **state)
{
        (void)state;
        struct error error = { "" };
        assert_int_equal(sandbox_become("no-such-user", &error), -ENOENT);
        assert_non_null(strstr(error.text, "no-such-user"));
        assert_int_equal(sandbox_become("", &error), 0);
}

static void become_nobody(void)
{
        struct error error = { "" };
        gid_t groups[64] = { 0, 4 };
        CHECK(setgroups(2, groups) == 0);
        CHECK(sandbox_become("nobody", &error) == 0);
        CHECK(getuid() != 0 && geteuid() == getuid() && getgid() != 0);
        int count = getgroups(64, groups);
        for (int i = 0; i < count; i++)
                CHECK(groups[i] != 0 && groups[i] != 4);
        CHECK(setuid(0) < 0);
        CHECK(!strcmp(getenv("USER"), "nobody"));
        /* Once there, asking again is fine, and for another is not. */
        CHECK(sandbox_become("nobody", &error) == 0);
        CHECK(sandbox_become("root", &error) == -EPERM);
}

static void another_user_is_for_good(void **state)
{
        (void)state;
        if (geteuid() != 0)
                skip();
        in_child(become_nobody);
}

/* --- no_new_privs, Landlock -------------------------------------------------------------------------------------- */

static bool can_write(const char *name)
{
        char path[256];
        (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
        int fd = open(path, O_WRONLY | O_CREAT, 0600);
        if (fd >= 0)
                (void)close(fd);
        return fd >= 0;
}

static bool can_read(const char *path)
{
        int fd = open(path, O_RDONLY);
        if (fd >= 0)
                (void)close(fd);
        return fd >= 0;
}

static void confine(void)
{
        struct buffer notes = { 0 };
        struct error error = { "" };
        char readable[256];
        char writable[256];
        (void)snprintf(readable, sizeof(readable), "%s/r", folder);
        (void)snprintf(writable, sizeof(writable), "%s/w", folder);
        const char *reads[] = { readable };
        const char *writes[] = { writable };
        struct runner_start start = plain_start();
        start.paths_read = reads;
        start.paths_read_count = 1;
        start.paths_write = writes;
        start.paths_write_count = 1;
        CHECK(can_write("r/file") && can_write("outside"));
        CHECK(sandbox_give_up_privileges(&error) == 0);
        CHECK(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
        CHECK(sandbox_confine(&start, false, &notes, &error) == 0);
        if (syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) < 1) {
                CHECK(strstr(buffer_text(&notes), "Landlock"));
                return;
        }
        CHECK(!notes.size);
        (void)snprintf(readable, sizeof(readable), "%s/r/file", folder);
        CHECK(can_read(readable) && !can_write("r/file"));
        CHECK(can_write("w/file"));
        CHECK(!can_write("outside") && !can_read("/etc/passwd"));
        CHECK(can_read("/proc/self/maps"));
}

static void outside_its_paths_it_reads_and_writes_nothing(void **state)
{
        (void)state;
        in_child(confine);
}

static void confine_to_nowhere(void)
{
        struct buffer notes = { 0 };
        struct error error = { "" };
        const char *reads[] = { "/no/such/path" };
        struct runner_start start = plain_start();
        start.paths_read = reads;
        start.paths_read_count = 1;
        CHECK(sandbox_give_up_privileges(&error) == 0);
        if (sandbox_confine(&start, false, &notes, &error) == 0)
                CHECK(notes.size);
        else
                CHECK(strstr(error.text, "/no/such/path"));
}

static void a_path_that_is_not_there_is_named(void **state)
{
        (void)state;
        in_child(confine_to_nowhere);
}

static void confine_not(void)
{
        struct buffer notes = { 0 };
        struct error error;
        struct runner_start start = plain_start();
        CHECK(sandbox_confine(&start, false, &notes, &error) == 0);
        CHECK(can_read("/etc/passwd"));
}

static void without_paths_nothing_is_confined(void **state)
{
        (void)state;
        in_child(confine_not);
}

/* A ruleset of everything: only signals and abstract sockets are confined. */
static void confine_signals(void)
{
        struct buffer notes = { 0 };
        struct error error = { "" };
        const char *everything[] = { "/" };
        struct runner_start start = plain_start();
        start.paths_read = start.paths_write = everything;
        start.paths_read_count = start.paths_write_count = 1;
        CHECK(kill(getppid(), 0) == 0);
        CHECK(sandbox_give_up_privileges(&error) == 0);
        CHECK(sandbox_confine(&start, false, &notes, &error) == 0);
        bool can_scope = sandbox_landlock_version() >= 6;
        CHECK(can_scope == !notes.size);
        CHECK((kill(getppid(), 0) < 0 && errno == EPERM) == can_scope);
        pid_t child = fork();
        if (!child)
                for (;;)
                        (void)pause();
        CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
        CHECK(kill(getpid(), 0) == 0);
}

static void a_confined_runner_signals_what_it_started_and_nobody_else(void **state)
{
        (void)state;
        in_child(confine_signals);
}

/* --- the network --- */

static int listener; /* on loopback */
static struct sockaddr_in address;

static bool can_connect(void)
{
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        bool can = fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0;
        (void)close(fd);
        return can;
}

static void open_listener(void)
{
        socklen_t size = sizeof(address);
        address = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(listener, (const struct sockaddr *)&address, sizeof(address)), 0);
        assert_int_equal(listen(listener, 4), 0);
        assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
}

static void leave_network(void)
{
        struct buffer notes = { 0 };
        struct error error = { "" };
        bool is_left = false;
        struct runner_start start = plain_start();
        CHECK(can_connect());
        CHECK(sandbox_leave_network(&start, &is_left, &error) == 0 && !is_left);
        CHECK(can_connect());
        start.has_no_network = 1;
        CHECK(sandbox_leave_network(&start, &is_left, &error) == 0);
        CHECK(sandbox_give_up_privileges(&error) == 0);
        if (sandbox_confine(&start, is_left, &notes, &error) < 0) {
                CHECK(is_left && sandbox_landlock_version() < 4 && strstr(error.text, "limits.network"));
                return;
        }
        CHECK(!can_connect());
}

static void leave_network_as_another(void)
{
        uid_t user = geteuid() ? geteuid() : 65534;
        if (geteuid() == 0)
                CHECK(setgroups(0, NULL) == 0 && setresgid(65534, 65534, 65534) == 0 &&
                        setresuid(65534, 65534, 65534) == 0);
        leave_network();
        CHECK(geteuid() == user);
        CHECK(unshare(CLONE_NEWNS) < 0); /* it has none of the rights that a user namespace brings */
}

/* As on a machine without namespaces. */
static void close_tcp(void)
{
        struct buffer notes = { 0 };
        struct error error = { "" };
        struct runner_start start = plain_start();
        start.has_no_network = 1;
        CHECK(sandbox_give_up_privileges(&error) == 0);
        int r = sandbox_confine(&start, true, &notes, &error);
        CHECK((r == 0) == (sandbox_landlock_version() >= 4));
        if (r == 0)
                CHECK(!can_connect() && strstr(buffer_text(&notes), "UDP stays open"));
}

static void without_a_network_nothing_can_be_reached(void **state)
{
        (void)state;
        open_listener();
        in_child(leave_network);
        in_child(leave_network_as_another);
        in_child(close_tcp);
        (void)close(listener);
}

static void join_nothing(void)
{
        struct error error = { "" };
        struct runner_start start = plain_start();
        start.cgroup = "";
        CHECK(sandbox_join(&start, &error) == 0);
        start.cgroup = "/no/such/group";
        CHECK(sandbox_join(&start, &error) == -ENOENT && strstr(error.text, "/no/such/group"));
}

static void a_control_group_that_cannot_be_joined_is_named(void **state)
{
        (void)state;
        in_child(join_nothing);
}

static int make_folders(void **state)
{
        (void)state;
        char path[256];
        assert_non_null(mkdtemp(folder));
        (void)snprintf(path, sizeof(path), "%s/r", folder);
        assert_int_equal(mkdir(path, 0700), 0);
        (void)snprintf(path, sizeof(path), "%s/w", folder);
        assert_int_equal(mkdir(path, 0700), 0);
        return 0;
}

static int remove_folders(void **state)
{
        (void)state;
        static const char *const names[] = { "r/file", "w/file", "outside", "r", "w", "" };
        char path[256];
        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
                (void)snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
                (void)remove(path);
        }
        return 0;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(it_dies_with_its_parent_and_not_without_one),
                cmocka_unit_test(only_its_own_descriptors_stay_open),
                cmocka_unit_test(a_hidden_descriptor_is_out_of_reach),
                cmocka_unit_test(secrets_leave_the_environment_and_the_memory),
                cmocka_unit_test(limits_hold),
                cmocka_unit_test(a_limit_of_zero_leaves_alone),
                cmocka_unit_test(core_dumps_can_be_asked_for),
                cmocka_unit_test(a_handler_may_leave_core_dumps_of_a_size),
                cmocka_unit_test(a_limit_without_effect_is_noted),
                cmocka_unit_test(a_user_who_does_not_exist_is_named),
                cmocka_unit_test(another_user_is_for_good),
                cmocka_unit_test(outside_its_paths_it_reads_and_writes_nothing),
                cmocka_unit_test(a_path_that_is_not_there_is_named),
                cmocka_unit_test(without_paths_nothing_is_confined),
                cmocka_unit_test(a_confined_runner_signals_what_it_started_and_nobody_else),
                cmocka_unit_test(without_a_network_nothing_can_be_reached),
                cmocka_unit_test(a_control_group_that_cannot_be_joined_is_named),
        };
        return cmocka_run_group_tests(tests, make_folders, remove_folders);
}
