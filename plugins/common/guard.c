#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* The guard is a forked copy of a process with threads, so it must not take a lock: it makes only system calls. */
static _Noreturn void watch(int pipe_fd, const _Atomic pid_t *group)
{
        char byte;
        sigset_t all;
        /* Signals to the runner must not end the guard. */
        (void)sigfillset(&all);
        (void)sigprocmask(SIG_SETMASK, &all, NULL);
        (void)prctl(PR_SET_NAME, "qv:guard");
        /* Closes the inherited ends of other seats' pipes: they would keep those guards from seeing end-of-file. */
        (void)dup2(pipe_fd, STDIN_FILENO);
        (void)close_range(STDIN_FILENO + 1, ~0U, 0);
        while (read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR)
                ;
        pid_t left = atomic_load(group);
        if (left > 0)
                (void)kill(-left, SIGKILL);
        _exit(0);
}

static bool is_alive(const struct guard *g)
{
        return g->pid > 0 && waitpid(g->pid, NULL, WNOHANG) == 0;
}

static int start(struct guard *g)
{
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) < 0)
                return -errno;
        pid_t pid = fork();
        if (pid == 0)
                watch(ends[0], g->group);
        int r = pid < 0 ? -errno : 0;
        /* The guard leaves the runner's group, which a host kills when the runner dies.  The parent does it, so that it
         * is done before this function returns. */
        if (pid > 0)
                (void)setpgid(pid, pid);
        (void)close(ends[0]);
        if (r < 0) {
                (void)close(ends[1]);
                return r;
        }
        g->pid = pid;
        g->fd = ends[1];
        return 0;
}

int guard_open(struct guard *g)
{
        if (is_alive(g))
                return 0;
        guard_close(g);
        void *page = mmap(NULL, sizeof(*g->group), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED)
                return -errno;
        g->group = page;
        int r = start(g);
        if (r < 0)
                guard_close(g);
        return r;
}

void guard_close(struct guard *g)
{
        if (g->pid > 0) {
                (void)close(g->fd);
                while (waitpid(g->pid, NULL, 0) < 0 && errno == EINTR)
                        ;
        }
        if (g->group)
                (void)munmap((void *)g->group, sizeof(*g->group));
        *g = (struct guard){ 0 };
}

void guard_tell(const struct guard *g, pid_t group)
{
        atomic_store(g->group, group);
}
