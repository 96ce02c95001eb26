#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* A copy of a process with threads: nothing here may take a lock, so only system calls. */
static _Noreturn void watch(int pipe_fd, const _Atomic pid_t *group)
{
        char byte;
        sigset_t all;
        /* What is meant for the runner is not meant for us. */
        (void)sigfillset(&all);
        (void)sigprocmask(SIG_SETMASK, &all, NULL);
        (void)prctl(PR_SET_NAME, "qv:guard");
        /* A copy of another seat's pipe in here would keep that seat's guard from seeing the end. */
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
        /* A host kills a dead runner's whole group.  Done here, not by the guard: now, and not when it comes to run. */
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
