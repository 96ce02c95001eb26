#include "runner/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/process/cgroup.h"
#include "base/process/stray_mark.h"

/* Above the descriptors of a program with some hundred connections, below the usual limit of 1024. */
#define HIDDEN_FD_MIN 900

int sandbox_tie_to_parent(pid_t parent)
{
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
                return -errno;
        return getppid() == parent ? 0 : -ESRCH;
}

void sandbox_leave_terminal(void)
{
        sigset_t none;
        (void)sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        (void)setpgid(0, 0);
}

void sandbox_close_strangers(void)
{
        (void)close_range(RUNNER_FD_ALIVE + 1, ~0U, 0);
}

int sandbox_hide_fd(int fd)
{
        int hidden = fcntl(fd, F_DUPFD_CLOEXEC, HIDDEN_FD_MIN);
        if (hidden < 0) {
                (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
                return fd;
        }
        (void)close(fd);
        return hidden;
}

int sandbox_join(const struct runner_start *start, struct error *error)
{
        if (!*start->cgroup)
                return 0;
        int r = cgroup_write(start->cgroup, "cgroup.procs", "0");
        if (r < 0)
                return error_set(error, r, "cannot join the control group %s: %s", start->cgroup, strerror(-r));
        return 0;
}

static bool is_ours(const char *variable)
{
        if (!strncmp(variable, STRAY_VARIABLE, sizeof(STRAY_VARIABLE) - 1))
                return false; /* kept, so that processes that the plugin starts inherit it */
        static const char *const prefixes[] = { "QUIVER_", "NOTIFY_SOCKET=", "WATCHDOG_", "LISTEN_" };
        for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
                if (!strncmp(variable, prefixes[i], strlen(prefixes[i])))
                        return true;
        return false;
}

void sandbox_clean_environment(void)
{
        char **to = environ;
        for (char **from = environ; from && *from; from++) {
                if (is_ours(*from))
                        explicit_bzero(*from, strlen(*from));
                else
                        *to++ = *from;
        }
        if (to)
                *to = NULL;
}

static int set_limit(__rlimit_resource_t resource, const char *name, uint64_t value, uint64_t most, struct error *error)
{
        struct rlimit limit = { .rlim_cur = value, .rlim_max = most };
        struct rlimit old;
        if (getrlimit(resource, &old) == 0) {
                /* Only root may raise a hard limit; a hard limit that is already lower is strict enough. */
                if (limit.rlim_max > old.rlim_max)
                        limit.rlim_max = old.rlim_max;
                if (limit.rlim_cur > limit.rlim_max)
                        limit.rlim_cur = limit.rlim_max;
        }
        if (setrlimit(resource, &limit) < 0)
                return error_set(
                        error, -errno, "cannot limit %s to %llu: %s", name, (unsigned long long)value, strerror(errno));
        return 0;
}

int sandbox_limit(const struct runner_start *start, struct buffer *notes, struct error *error)
{
        int r = 0;
        (void)umask(077);
        const char *cores = getenv("QUIVER_CORES");
        if (start->core_max || !cores || strcmp(cores, "1") != 0)
                r = set_limit(RLIMIT_CORE, "core dumps", start->core_max, start->core_max, error);
        struct rlimit core;
        if (!r && start->core_max && getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_cur < start->core_max)
                buffer_printf(notes, "%slimits.core: this machine allows a host's processes %llu bytes (ulimit -H -c)",
                        notes->size ? "; " : "", (unsigned long long)core.rlim_cur);
        /* RLIMIT_DATA, not RLIMIT_AS: reserved address space (thread stacks, the ring's spills) is not used memory. */
        if (!r && start->memory_max)
                r = set_limit(RLIMIT_DATA, "memory", start->memory_max, start->memory_max, error);
        /* SIGXCPU at the limit; SIGKILL one second later, in case the plugin ignores it. */
        if (!r && start->cpu_seconds_max)
                r = set_limit(RLIMIT_CPU, "cpu seconds", start->cpu_seconds_max, start->cpu_seconds_max + 1, error);
        if (!r && start->files_max)
                r = set_limit(RLIMIT_NOFILE, "open files", start->files_max, start->files_max, error);
        if (start->cores_millis && !(start->has_controllers & CGROUP_CPU))
                buffer_printf(notes, "%slimits.cores has no effect: there is no control group for it (quiver check)",
                        notes->size ? "; " : "");
        /* A control group counts this runner's processes; without one the kernel counts all processes of the user. */
        if (!r && start->processes_max && !(start->has_controllers & CGROUP_PIDS)) {
                r = set_limit(RLIMIT_NPROC, "processes", start->processes_max, start->processes_max, error);
                if (geteuid() == 0 && !*start->user)
                        buffer_printf(notes, "%slimits.processes has no effect on root; set limits.user",
                                notes->size ? "; " : "");
        }
        return r;
}

/* Makes the user the owner of a pipe, because opening /dev/stdout or /dev/stderr again needs that right.  Only for the
 * pipes that the host made for this runner. */
static void give_pipe(int fd, const struct passwd *who)
{
        struct stat st;
        if (fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode) && fchown(fd, who->pw_uid, who->pw_gid) < 0)
                return; /* the open descriptor is still writable */
}

static int switch_to(const struct passwd *who, struct error *error)
{
        give_pipe(STDOUT_FILENO, who);
        give_pipe(STDERR_FILENO, who);
        /* The groups are set first: the new user may not change them. */
        if (initgroups(who->pw_name, who->pw_gid) < 0 || setresgid(who->pw_gid, who->pw_gid, who->pw_gid) < 0 ||
                setresuid(who->pw_uid, who->pw_uid, who->pw_uid) < 0)
                return error_set(error, -errno, "cannot become user %s: %s", who->pw_name, strerror(errno));
        (void)setenv("HOME", who->pw_dir, 1);
        (void)setenv("USER", who->pw_name, 1);
        (void)setenv("LOGNAME", who->pw_name, 1);
        return 0;
}

int sandbox_become(const char *user, struct error *error)
{
        if (!*user)
                return 0;
        errno = 0;
        const struct passwd *who = getpwnam(user);
        if (!who)
                return error_set(
                        error, -ENOENT, "user %s does not exist on this machine; create it or change `user`", user);
        if (who->pw_uid == getuid() && who->pw_uid == geteuid())
                return 0;
        if (geteuid() != 0)
                return error_set(error, -EPERM, "cannot become user %s: only root can; start the host as root or as %s",
                        user, user);
        return switch_to(who, error);
}

int sandbox_give_up_privileges(struct error *error)
{
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return error_set(error, -errno, "no_new_privs: %s", strerror(errno));
        return 0;
}
