#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* A copy of a process with threads: nothing here may take a lock, so only system calls. */
static _Noreturn void watch(int pipe_fd)
{
        pid_t group = 0;
        pid_t told;
        ssize_t n;
        /* The runner's signals are not meant for us: whoever presses ^C reaches the whole foreground group. */
        sigset_t all;
        (void)sigfillset(&all);
        (void)sigprocmask(SIG_SETMASK, &all, NULL);
        (void)prctl(PR_SET_NAME, "qv:guard");
        /* A copy of another seat's pipe in here would keep that seat's guard from seeing the end. */
        (void)dup2(pipe_fd, STDIN_FILENO);
        (void)close_range(STDIN_FILENO + 1, ~0U, 0);
        while ((n = read(STDIN_FILENO, &told, sizeof(told))) == (ssize_t)sizeof(told) || (n < 0 && errno == EINTR))
                if (n > 0)
                        group = told;
        if (group > 0)
                (void)kill(-group, SIGKILL);
        _exit(0);
}

int guard_open(struct guard *g)
{
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) < 0)
                return -errno;
        pid_t pid = fork();
        if (pid == 0)
                watch(ends[0]);
        int r = pid < 0 ? -errno : 0;
        (void)close(ends[0]);
        if (r < 0) {
                (void)close(ends[1]);
                return r;
        }
        *g = (struct guard){ .pid = pid, .fd = ends[1] };
        return 0;
}

void guard_close(struct guard *g)
{
        if (g->pid <= 0)
                return;
        (void)close(g->fd);
        while (waitpid(g->pid, NULL, 0) < 0 && errno == EINTR)
                ;
        *g = (struct guard){ .fd = -1 };
}

int guard_tell(const struct guard *g, pid_t group)
{
        ssize_t n;
        do
                n = write(g->fd, &group, sizeof(group));
        while (n < 0 && errno == EINTR);
        return n < 0 ? -errno : 0;
}
