/* What confines runners: where control groups are, what they are told, who is left behind, what a limit is worth. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/process/cgroup.h"
#include "base/process/peer.h"
#include "base/process/process_stat.h"
#include "base/process/stray_mark.h"
#include "check.h"
#include "host/confine/cgroups.h"
#include "host/confine/coverage.h"
#include "host/confine/strays.h"
#include "host/pool/runner_variables.h"

/* --- where control groups are --- */

#define HYBRID                                                                                                         \
        "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"                                          \
        "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"                                   \
        "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"

static const char *found(const char *mounts, const char *group)
{
        static char path[CGROUP_PATH_MAX];
        int r = cgroup_parse(mounts, group, path);
        return r == -ENOENT ? "-ENOENT" : r == -ENAMETOOLONG ? "-ENAMETOOLONG" : path;
}

static void control_groups_are_found_where_they_are_mounted(void **state)
{
        (void)state;
        const char *unified =
                "24 22 0:22 / /sys rw - sysfs none rw\n29 24 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 none rw\n";
        assert_string_equal(found(unified, "0::/\n"), "/sys/fs/cgroup");
        assert_string_equal(
                found(unified, "0::/system.slice/quiver.service\n"), "/sys/fs/cgroup/system.slice/quiver.service");
        assert_string_equal(found(HYBRID, "4:memory:/a\n0::/b\n"), "/sys/fs/cgroup/unified/b");
        assert_string_equal(found(HYBRID, "4:memory:/a\n"), "-ENOENT");
        assert_string_equal(found("35 31 0:32 / /x rw - cgroup cgroup rw,memory\n", "0::/\n"), "-ENOENT");
        assert_string_equal(found("", "0::/\n"), "-ENOENT");
        /* A part of the tree is mounted, as in a container without a namespace of its own. */
        const char *part = "9 1 0:9 /docker/a /cg\\040roup rw - cgroup2 cgroup rw\n";
        assert_string_equal(found(part, "0::/docker/a\n"), "/cg roup");
        assert_string_equal(found(part, "0::/docker/a/b\n"), "/cg roup/b");
        assert_string_equal(found(part, "0::/docker/ab\n"), "-ENOENT");
        assert_string_equal(found(unified, "0::/../other\n"), "-ENOENT");
        char longer[2 * CGROUP_PATH_MAX];
        memset(longer, 'x', sizeof(longer));
        memcpy(longer, "0::/", 4);
        longer[sizeof(longer) - 1] = 0;
        assert_string_equal(found(unified, longer), "-ENAMETOOLONG");
}

static void controllers_are_read_as_words(void **state)
{
        (void)state;
        char text[64];
        assert_int_equal(cgroup_parse_controllers("cpuset cpu io memory hugetlb pids\n"),
                CGROUP_MEMORY | CGROUP_PIDS | CGROUP_CPU);
        assert_int_equal(cgroup_parse_controllers("cpuset mem\n"), 0);
        assert_int_equal(cgroup_parse_controllers(""), 0);
        assert_string_equal(cgroup_controllers_text(CGROUP_MEMORY | CGROUP_CPU, text, sizeof(text)), "memory, cpu");
        assert_string_equal(cgroup_controllers_text(0, text, sizeof(text)), "none");
}

/* --- may a host make some, and what are they told --- */

static void groups_are_made_where_they_are_ours_or_handed_over(void **state)
{
        (void)state;
        struct cgroup_facts facts = { .is_mounted = true, .is_root = true };
        assert_null(cgroup_objection(&facts, false));
        facts.has_systemd = true;
        assert_non_null(strstr(cgroup_objection(&facts, false), "Delegate=yes"));
        assert_null(cgroup_objection(&facts, true));
        facts.is_delegated = true;
        assert_null(cgroup_objection(&facts, false));
        facts = (struct cgroup_facts){ .is_mounted = true, .has_systemd = true };
        assert_non_null(strstr(cgroup_objection(&facts, true), "another user"));
        facts.is_ours = true;
        assert_null(cgroup_objection(&facts, false));
        facts.is_mounted = false;
        assert_non_null(strstr(cgroup_objection(&facts, true), "version 2"));
}

static const char *file_of(const struct cgroup_file *files, size_t count, const char *name)
{
        for (size_t i = 0; i < count; i++)
                if (!strcmp(files[i].name, name))
                        return files[i].text;
        return "(none)";
}

static void limits_become_files_of_the_controllers_that_are_there(void **state)
{
        (void)state;
        struct cgroup_file files[CGROUP_FILES_MAX];
        struct runner_start start = { .memory_max = 64 << 20, .processes_max = 9, .cores_millis = 1500 };
        size_t count = cgroup_limits(&start, CGROUP_MEMORY | CGROUP_PIDS | CGROUP_CPU, files);
        assert_string_equal(file_of(files, count, "memory.max"), "67108864");
        assert_string_equal(file_of(files, count, "memory.swap.max"), "0");
        assert_string_equal(file_of(files, count, "memory.oom.group"), "1");
        assert_string_equal(file_of(files, count, "pids.max"), "9");
        assert_string_equal(file_of(files, count, "cpu.max"), "150000 100000");
        assert_int_equal(cgroup_limits(&start, CGROUP_PIDS, files), 1);
        assert_int_equal(cgroup_limits(&start, 0, files), 0);
        assert_int_equal(cgroup_limits(&(struct runner_start){ 0 }, 7, files), 0);
}

/* --- who is left behind --- */

static void a_process_is_left_when_its_runner_is_gone(void **state)
{
        (void)state;
        const struct stray_runner runners[] = { { 10, 1, 100 }, { 11, 3, 300 } };
        struct stray_process of_living = { .has_mark = true, .number = 3, .started = 350 };
        struct stray_process of_dead = { .has_mark = true, .number = 2, .started = 350 };
        assert_false(stray_is_left(&of_living, runners, 2, false));
        assert_true(stray_is_left(&of_dead, runners, 2, false));
        assert_true(stray_is_left(&of_living, runners, 1, false));
        assert_true(stray_is_left(&of_living, runners, 0, false));
}

static void a_process_of_unknown_origin_is_left_when_no_runner_is_as_old(void **state)
{
        (void)state;
        const struct stray_runner runners[] = { { 10, 1, 100 }, { 11, 3, 300 } };
        struct stray_process stray = { .started = 200 };
        assert_false(stray_is_left(&stray, runners, 2, false)); /* the first may have started it */
        assert_true(stray_is_left(&stray, runners + 1, 1, false));
        assert_false(stray_is_left(&stray, runners + 1, 1, true)); /* perhaps it is no plugin's at all */
        assert_true(stray_is_left(&(struct stray_process){ .has_mark = true, .number = 2 }, runners, 2, true));
        stray.started = 300; /* the clock ticks a hundred times a second */
        assert_false(stray_is_left(&stray, runners + 1, 1, false));
}

static bool mark_in(const char *environment, size_t size, uint64_t *number)
{
        return stray_mark_find(environment, size, "00ff", number);
}

static void a_mark_is_found_in_an_environment(void **state)
{
        (void)state;
        uint64_t number = 0;
        char mark[STRAY_MARK_MAX], run[STRAY_RUN_MAX], again[STRAY_RUN_MAX];
        assert_true(mark_in("A=b\0QUIVER_RUNNER=00ff.17\0C=d", 30, &number));
        assert_int_equal(number, 17);
        assert_false(mark_in("A=b\0QUIVER_RUNNER=00fe.17\0C=d", 30, &number));
        assert_false(mark_in("A=QUIVER_RUNNER=00ff.17", 24, &number));
        assert_false(mark_in("QUIVER_RUNNER=00ff", 19, &number));
        assert_false(mark_in("QUIVER_RUNNER=00ff.", 20, &number));
        assert_false(mark_in("QUIVER_RUNNER=00ff.1", 20, &number)); /* without its end */
        assert_false(mark_in("", 0, &number));
        stray_mark_put(mark, "00ff", 99);
        assert_true(mark_in(mark, strlen(mark) + 1, &number));
        assert_int_equal(number, 99);
        stray_run(run, "0123456789abcdef", 16);
        stray_run(again, "0123456789abcdeg", 16);
        assert_int_equal(strlen(run), STRAY_RUN_MAX - 1);
        assert_string_not_equal(run, again);
}

static void a_runner_gets_its_own_mark_and_no_other(void **state)
{
        (void)state;
        char mark[] = "QUIVER_RUNNER=00ff.5";
        assert_int_equal(setenv("QUIVER_RUNNER", "a host that a handler starts has one", 1), 0);
        char **list = variables_for_runner(NULL, 0, mark);
        assert_string_equal(list[0], mark);
        for (size_t i = 1; list[i]; i++)
                assert_true(strncmp(list[i], STRAY_VARIABLE, sizeof(STRAY_VARIABLE) - 1) != 0);
        free(list);
        assert_int_equal(unsetenv("QUIVER_RUNNER"), 0);
}

static void a_stat_is_read_whatever_the_process_is_called(void **state)
{
        (void)state;
        struct process_stat stat;
        assert_int_equal(
                process_stat_parse("7 (a) b) ( c) S 5 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 1 2\n", &stat), 0);
        assert_int_equal(stat.parent, 5);
        assert_int_equal(stat.state, 'S');
        assert_int_equal(stat.started, 4711);
        assert_int_equal(process_stat_parse("7 (a", &stat), -EBADMSG);
        assert_int_equal(process_stat_parse("7 (a) S 5 7", &stat), -EBADMSG);
        assert_int_equal(process_stat_parse("", &stat), -EBADMSG);
        assert_int_equal(process_stat_read(getpid(), &stat), 0);
        assert_int_equal(stat.parent, getppid());
}

/* --- who is at a socket --- */

/* Who connects to `listener`, seen from here; the child stays until it is asked. */
static struct socket_peer peer_of(int listener, const struct sockaddr_un *address, bool has_child_left)
{
        struct socket_peer peer;
        int fd = -1;
        pid_t child = fork();
        if (child == 0) {
                int client = socket(AF_UNIX, SOCK_STREAM, 0);
                if (connect(client, (const struct sockaddr *)address, sizeof(*address)) < 0)
                        _exit(1);
                while (!has_child_left)
                        (void)pause();
                _exit(0);
        }
        fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        assert_true(fd >= 0);
        if (has_child_left)
                assert_int_equal(waitpid(child, NULL, 0), child);
        assert_int_equal(peer_find(fd, &peer), 0);
        if (!has_child_left) {
                assert_int_equal(kill(child, SIGKILL), 0);
                assert_int_equal(waitpid(child, NULL, 0), child);
        }
        (void)close(fd);
        return peer;
}

static void what_we_started_is_told_from_others_at_a_socket(void **state)
{
        (void)state;
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        (void)snprintf(address.sun_path, sizeof(address.sun_path), "/tmp/quiver-peer-%d", (int)getpid());
        int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(listener, (const struct sockaddr *)&address, sizeof(address)), 0);
        assert_int_equal(listen(listener, 4), 0);
        assert_true(peer_of(listener, &address, false).is_ours);
        assert_true(peer_of(listener, &address, true).is_ours); /* gone: who knows what it was */
        (void)close(listener);
        (void)unlink(address.sun_path);
        /* Ourselves, and whoever is above us, are not what we started. */
        int ends[2];
        struct socket_peer peer;
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        assert_int_equal(peer_find(ends[0], &peer), 0);
        assert_int_equal(peer.pid, getpid());
        assert_false(peer.is_ours);
        (void)close(ends[0]);
        (void)close(ends[1]);
        assert_false(process_descends(getppid(), getpid()));
        assert_false(process_descends(1, getpid()));
        assert_true(process_descends(getpid(), getppid()));
        assert_true(process_descends(INT_MAX, getpid())); /* there is none */
}

/* --- what a limit is worth --- */

static const char *covers(const struct limits_config *limits, const struct coverage_facts *facts, const char *limit)
{
        static struct coverage_line lines[COVERAGE_LINES_MAX];
        size_t count = coverage_of(limits, facts, lines);
        for (size_t i = 0; i < count; i++)
                if (!strcmp(lines[i].limit, limit))
                        return lines[i].covers;
        return "";
}

static void what_a_limit_covers_is_told_as_the_machine_is(void **state)
{
        (void)state;
        char *paths[] = { "/usr" };
        const struct limits_config all = { .user = "nobody",
                .memory_bytes = 1,
                .cpu_ms = 1000,
                .descriptors = 16,
                .processes = 4,
                .cores = 0.5,
                .network = NETWORK_NONE,
                .read = { .items = paths, .count = 1 } };
        struct coverage_facts rich = {
                .controllers = CGROUP_MEMORY | CGROUP_PIDS | CGROUP_CPU, .landlock = 6, .has_namespace = true
        };
        struct coverage_facts poor = { .landlock = 0 };
        struct coverage_line lines[COVERAGE_LINES_MAX];
        assert_int_equal(coverage_of(&all, &rich, lines), 8);
        assert_int_equal(coverage_of(&(struct limits_config){ 0 }, &rich, lines), 0);
        assert_non_null(strstr(covers(&all, &rich, "memory"), "shared memory, memfd and files in tmpfs too"));
        assert_non_null(strstr(covers(&all, &poor, "memory"), "not shared memory"));
        assert_non_null(strstr(covers(&all, &rich, "processes"), "of a runner"));
        assert_non_null(strstr(covers(&all, &poor, "processes"), "runners' user together"));
        assert_non_null(strstr(covers(&all, &poor, "cores"), "nothing"));
        assert_non_null(strstr(covers(&all, &rich, "read, write"), "signals to other processes, and"));
        rich.landlock = 5;
        assert_non_null(strstr(covers(&all, &rich, "read, write"), "not signals"));
        assert_non_null(strstr(covers(&all, &poor, "read, write"), "nothing"));
        assert_non_null(strstr(covers(&all, &rich, "network"), "namespace"));
        rich.has_namespace = false;
        assert_non_null(strstr(covers(&all, &rich, "network"), "TCP alone"));
        rich.landlock = 3;
        assert_non_null(strstr(covers(&all, &rich, "network"), "refused"));
        struct limits_config of_root = { .processes = 4 };
        poor.is_root = true;
        assert_non_null(strstr(covers(&of_root, &poor, "processes"), "does not limit root's"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(control_groups_are_found_where_they_are_mounted),
                cmocka_unit_test(controllers_are_read_as_words),
                cmocka_unit_test(groups_are_made_where_they_are_ours_or_handed_over),
                cmocka_unit_test(limits_become_files_of_the_controllers_that_are_there),
                cmocka_unit_test(a_process_is_left_when_its_runner_is_gone),
                cmocka_unit_test(a_process_of_unknown_origin_is_left_when_no_runner_is_as_old),
                cmocka_unit_test(a_mark_is_found_in_an_environment),
                cmocka_unit_test(a_runner_gets_its_own_mark_and_no_other),
                cmocka_unit_test(a_stat_is_read_whatever_the_process_is_called),
                cmocka_unit_test(what_we_started_is_told_from_others_at_a_socket),
                cmocka_unit_test(what_a_limit_covers_is_told_as_the_machine_is),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
