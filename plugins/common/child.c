#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Enough for the few system calls between clone() and execve(); glibc's posix_spawn uses no more. */
#define START_STACK_SIZE 65536u
/* How often the stop flag is read: it is a word in memory, and nothing wakes us when it changes. */
#define TICK_MS 50

uint64_t now_ms(void)
{
        struct timespec t;
        (void)clock_gettime(CLOCK_BOOTTIME, &t);
        return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void child_close_fd(int *fd)
{
        if (*fd >= 0)
                (void)close(*fd);
        *fd = -1;
}

/* --- start ------------------------------------------------------------------------------------------------------- */

/* The three pipes, ours and the child's end of each. */
struct ends {
        int ours[3], theirs[3];
};

static void close_ends(int fds[3])
{
        for (int i = 0; i < 3; i++)
                child_close_fd(&fds[i]);
}

/* The child's ends must not be 0 to 2: dup2() of a descriptor onto itself would leave close-on-exec set. */
static int above_standard(int fd)
{
        if (fd < 0 || fd > STDERR_FILENO)
                return fd;
        int higher = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        (void)close(fd);
        return higher;
}

static int open_ends(struct ends *e)
{
        for (int i = 0; i < 3; i++)
                e->ours[i] = e->theirs[i] = -1;
        for (int i = 0; i < 3; i++) {
                int pair[2];
                if (pipe2(pair, O_CLOEXEC) < 0)
                        return -errno;
                int r = above_standard(pair[0]);
                int w = above_standard(pair[1]);
                e->ours[i] = i == 0 ? w : r;
                e->theirs[i] = i == 0 ? r : w;
                if (r < 0 || w < 0 || fcntl(e->ours[i], F_SETFL, O_NONBLOCK) < 0)
                        return -errno;
        }
        return 0;
}

/* Passed to the new process, which shares our memory until execve() and reports a failure in `error`. */
struct start {
        const struct command *command;
        const struct guard *guard;
        const int *fds;
        int error;
};

/* Runs in the new process, on a stack of its own, while the seat's thread is suspended (CLONE_VFORK). */
static int become_command(void *argument)
{
        struct start *s = argument;
        sigset_t none;
        /* Ignored signals would stay ignored after execve(), and the runner ignores SIGPIPE. */
        for (int i = 1; i < NSIG; i++)
                (void)signal(i, SIG_DFL);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        s->error = setpgid(0, 0) < 0 ? -errno : 0;
        /* The guard knows the group before the command runs, so no process can be left behind. */
        guard_tell(s->guard, getpid());
        for (int i = 0; i < 3 && !s->error; i++)
                if (dup2(s->fds[i], i) < 0)
                        s->error = -errno;
        if (!s->error && s->command->cwd && chdir(s->command->cwd) < 0)
                s->error = -errno;
        if (!s->error) {
                (void)close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
                (void)sigemptyset(&none);
                (void)sigprocmask(SIG_SETMASK, &none, NULL);
                (void)execve(s->command->path, s->command->argv.list, s->command->env.list);
                s->error = -errno;
        }
        _exit(127);
}

/* Like posix_spawn(), without copying page tables.  posix_spawn() itself supports neither the guard nor a parent-death
 * signal. */
static int clone_command(struct child *c, struct start *s)
{
        sigset_t all;
        sigset_t old;
        void *stack = mmap(NULL, START_STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (stack == MAP_FAILED)
                return -errno;
        /* Signals are blocked: a signal handler of the runner must not run in the new process, which shares our memory.
         */
        (void)sigfillset(&all);
        (void)pthread_sigmask(SIG_SETMASK, &all, &old);
        int pidfd = -1;
        pid_t pid = clone(become_command, (char *)stack + START_STACK_SIZE,
                CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, s, &pidfd);
        int r = pid < 0 ? -errno : s->error;
        if (pid > 0 && r < 0) {
                guard_tell(s->guard, 0);
                (void)waitpid(pid, NULL, 0);
                (void)close(pidfd);
        } else if (pid > 0) {
                c->pid = pid;
                c->pidfd = pidfd;
        }
        /* SIGPIPE stays blocked on the seat's thread: a write to a child that does not read returns EPIPE. */
        (void)sigaddset(&old, SIGPIPE);
        (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
        (void)munmap(stack, START_STACK_SIZE);
        return r;
}

int child_start(struct child *c, struct guard *g, const struct command *command)
{
        struct ends e;
        *c = (struct child)CHILD_NONE;
        int r = guard_open(g);
        if (r < 0)
                return r;
        r = open_ends(&e);
        if (r == 0)
                r = clone_command(c, &(struct start){ .command = command, .guard = g, .fds = e.theirs });
        close_ends(e.theirs);
        if (r < 0) {
                close_ends(e.ours);
                return r;
        }
        c->in = e.ours[0];
        c->out = e.ours[1];
        c->err = e.ours[2];
        return 0;
}

/* --- end --------------------------------------------------------------------------------------------------------- */

void child_signal(const struct child *c, int signal)
{
        if (c->pid > 0)
                (void)kill(-c->pid, signal);
}

bool child_has_ended(const struct child *c, int wait_ms)
{
        struct pollfd p = { .fd = c->pidfd, .events = POLLIN };
        return poll(&p, 1, wait_ms) > 0;
}

int child_end(struct child *c, const struct guard *g)
{
        int status = 0;
        if (c->pid <= 0)
                return 0;
        /* Kill before reaping: until then the pid cannot belong to another process, neither here nor in the guard. */
        child_signal(c, SIGKILL);
        guard_tell(g, 0);
        while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
                ;
        child_close_fd(&c->pidfd);
        child_close_fd(&c->in);
        child_close_fd(&c->out);
        child_close_fd(&c->err);
        c->pid = 0;
        return status;
}

const char *child_status_text(int status, char *text, size_t size)
{
        if (WIFSIGNALED(status)) {
                const char *name = sigabbrev_np(WTERMSIG(status));
                (void)snprintf(text, size, "killed by SIG%s", name ? name : "?");
        } else {
                (void)snprintf(text, size, "exit status %d", WEXITSTATUS(status));
        }
        return text;
}

int child_write(struct child *c, const void *data, size_t size, size_t *sent)
{
        while (*sent < size) {
                ssize_t n = write(c->in, (const char *)data + *sent, size - *sent);
                if (n >= 0)
                        *sent += (size_t)n;
                else if (errno == EAGAIN)
                        return 0;
                else if (errno != EINTR)
                        return -EPIPE;
        }
        return 0;
}

int halt_step(struct halt *h, const struct child *c, const struct qv_task *task)
{
        uint64_t now = now_ms();
        if (!h->term_ms && qv_stop(task)) {
                child_signal(c, SIGTERM);
                h->term_ms = now;
        }
        if (h->term_ms && !h->is_killed && now >= h->term_ms + h->kill_after_ms) {
                child_signal(c, SIGKILL);
                h->is_killed = true;
        }
        uint64_t deadline_ms = task->deadline_ns / 1000000 + 1;
        if (!h->term_ms && task->deadline_ns && deadline_ms > now && deadline_ms - now < TICK_MS)
                return (int)(deadline_ms - now);
        return TICK_MS;
}
