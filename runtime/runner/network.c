/* network.c: sandbox_leave_network(). */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runner/sandbox.h"

static int write_file(const char *path, const char *text)
{
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        int r = write(fd, text, strlen(text)) < 0 ? -errno : 0;
        (void)close(fd);
        return r;
}

/* A process has every capability in its own user namespace.  They are dropped, because the plugin could set up a
 * network with them. */
static int drop_capabilities(void)
{
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct none[2] = { 0 };
        return syscall(SYS_capset, &header, none) < 0 ? -errno : 0;
}

/* Without privileges, a network namespace needs a user namespace around it, in which we keep our user. */
static int leave_as_user(void)
{
        char map[64];
        uid_t user = geteuid();
        gid_t group = getegid();
        bool is_dumpable = prctl(PR_GET_DUMPABLE) == 1;
        if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
                return -errno;
        /* The maps of a process that is not dumpable, because it has changed its user, belong to root. */
        (void)prctl(PR_SET_DUMPABLE, 1);
        int r = write_file("/proc/self/setgroups", "deny");
        (void)snprintf(map, sizeof(map), "%u %u 1", (unsigned)user, (unsigned)user);
        if (r == 0)
                r = write_file("/proc/self/uid_map", map);
        (void)snprintf(map, sizeof(map), "%u %u 1", (unsigned)group, (unsigned)group);
        if (r == 0)
                r = write_file("/proc/self/gid_map", map);
        if (!is_dumpable)
                (void)prctl(PR_SET_DUMPABLE, 0);
        return r < 0 ? r : drop_capabilities();
}

/* Some systems allow such a namespace and then forbid everything in it, and there is no way back from a half-made one:
 * so a child tries first. */
bool sandbox_can_leave_network(void)
{
        int status = -1;
        pid_t child = fork();
        if (child == 0)
                _exit(unshare(CLONE_NEWNET) < 0 && leave_as_user() < 0);
        while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
                ;
        return child > 0 && status == 0;
}

int sandbox_leave_network(const struct runner_start *start, bool *ret_is_left, struct error *error)
{
        *ret_is_left = false;
        if (!start->has_no_network || unshare(CLONE_NEWNET) == 0)
                return 0;
        *ret_is_left = !sandbox_can_leave_network();
        int r = *ret_is_left ? 0 : leave_as_user();
        return r < 0 ? error_set(error, r, "limits.network: cannot leave the network: %s", strerror(-r)) : 0;
}
