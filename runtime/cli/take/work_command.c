#include "cli/take/work_command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/numbers.h"
#include "cli/take/beats.h"
#include "cli/take/work_environment.h"

#define READ_SIZE     65536u
#define LAST_READS    16 /* of 64 KiB: enough for a dead child's pipe, and a limit on what a grandchild may add */
#define KILL_AFTER_MS UINT64_C(2000)
#define RESULT_MAX    ((size_t)1 << 20)
#define TAIL_MAX      800u
#define AT_ONCE_MS    1 /* a task that this worker gives back waits for nothing */
/* As the exec plugin has it: not now, and not the task's fault. */
#define EXIT_LATER 79

/* One start of the command. */
struct command_run {
        const struct qv_client_work *work;
        pid_t pid; /* also the number of its group */
        int pidfd, in, out, err, signals;
        size_t sent; /* bytes of the payload that were written */
        struct beats beats;
        struct worked *worked;
        char tail[TAIL_MAX]; /* the end of its standard error */
        size_t tail_size;
        uint64_t term_ms; /* when SIGTERM was sent; 0: not sent */
        bool is_killed, is_over_limit;
};

void worked_free(struct worked *worked)
{
        buffer_free(&worked->result);
        buffer_free(&worked->error);
}

bool work_command_is_there(const char *program)
{
        char path[4096];
        const char *folders = getenv("PATH");
        if (strchr(program, '/'))
                return access(program, X_OK) == 0;
        for (const char *at = folders ? folders : "/bin:/usr/bin"; *at; at += strcspn(at, ":"), at += *at == ':') {
                size_t size = strcspn(at, ":");
                if (snprintf(path, sizeof(path), "%.*s/%s", size ? (int)size : 1, size ? at : ".", program) <
                                (int)sizeof(path) &&
                        access(path, X_OK) == 0)
                        return true;
        }
        return false;
}

static void close_fd(int *fd)
{
        if (*fd >= 0)
                (void)close(*fd);
        *fd = -1;
}

/* --- starting ----------------------------------------------------------------------------------------------------- */

/* In the new process, which dies with this one: whoever kills the worker has killed what it runs. */
static void become_command(char **argv, char **env, const int fds[3], int said, pid_t parent)
{
        sigset_t none;
        (void)setpgid(0, 0);
        (void)signal(SIGPIPE, SIG_DFL);
        (void)sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent && dup2(fds[0], 0) >= 0 && dup2(fds[1], 1) >= 0 && dup2(fds[2], 2) >= 0)
                (void)execvpe(argv[0], argv, env);
        int why = errno;
        (void)!write(said, &why, sizeof(why));
        _exit(127);
}

/* A pipe whose end `ours` does not block. */
static int make_pipe(int *ours, int *theirs, bool is_input)
{
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) < 0)
                return -errno;
        *ours = ends[is_input];
        *theirs = ends[!is_input];
        (void)fcntl(*ours, F_SETFL, O_NONBLOCK);
        return 0;
}

/* 0, or why not, also of a failed execve(). */
static int start_command(struct command_run *run, char **argv)
{
        struct strings env = { 0 };
        int theirs[3] = { -1, -1, -1 };
        int said[2] = { -1, -1 };
        int why = 0;
        int r = make_pipe(&run->in, &theirs[0], true);
        r = r ? r : make_pipe(&run->out, &theirs[1], false);
        r = r ? r : make_pipe(&run->err, &theirs[2], false);
        r = r ? r : pipe2(said, O_CLOEXEC) < 0 ? -errno : 0;
        work_environment(run->work, &env);
        pid_t parent = getpid();
        pid_t pid = r ? -1 : fork();
        if (pid == 0)
                become_command(argv, env.items, theirs, said[1], parent);
        if (!r && pid < 0)
                r = -errno;
        strings_free(&env);
        for (int i = 0; i < 3; i++)
                close_fd(&theirs[i]);
        close_fd(&said[1]);
        if (pid > 0) {
                (void)setpgid(pid, pid); /* whoever of the two is first */
                run->pid = pid;
                run->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
                r = run->pidfd < 0 ? -errno : 0;
                if (read(said[0], &why, sizeof(why)) == (ssize_t)sizeof(why))
                        r = -why;
        }
        close_fd(&said[0]);
        return r;
}

/* --- while it runs ------------------------------------------------------------------------------------------------ */

static void write_payload(struct command_run *run)
{
        const struct qv_client_work *work = run->work;
        ssize_t n = run->sent < work->payload_size
                            ? write(run->in, (const char *)work->payload + run->sent, work->payload_size - run->sent)
                            : 0;
        run->sent += n > 0 ? (size_t)n : 0;
        /* EPIPE is no error, because a command need not read its input. */
        if (run->sent == work->payload_size || (n < 0 && errno != EAGAIN && errno != EINTR))
                close_fd(&run->in);
}

static void kill_command(struct command_run *run)
{
        if (!run->is_killed)
                (void)kill(-run->pid, SIGKILL);
        run->is_killed = true;
}

static bool read_stdout(struct command_run *run)
{
        struct buffer *to = &run->worked->result;
        uint8_t *at = buffer_reserve(to, READ_SIZE);
        ssize_t n = read(run->out, at, READ_SIZE);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
                close_fd(&run->out);
        to->size += n > 0 ? (size_t)n : 0;
        if (to->size > RESULT_MAX) {
                run->is_over_limit = true;
                kill_command(run);
                close_fd(&run->out);
        }
        return n > 0 && !run->is_over_limit;
}

/* Handed on as it comes; the end of it is kept. */
static bool read_stderr(struct command_run *run)
{
        char piece[4096];
        ssize_t n = read(run->err, piece, sizeof(piece));
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
                close_fd(&run->err);
        if (n <= 0)
                return false;
        (void)!write(STDERR_FILENO, piece, (size_t)n);
        size_t more = min_u64((uint64_t)n, TAIL_MAX);
        size_t kept = min_u64(run->tail_size, TAIL_MAX - more);
        memmove(run->tail, run->tail + run->tail_size - kept, kept);
        memcpy(run->tail + kept, piece + n - more, more);
        run->tail_size = kept + more;
        return true;
}

static void read_signal(struct command_run *run)
{
        struct signalfd_siginfo info;
        if (read(run->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
                run->worked->stopped_by_signal = (int)info.ssi_signo;
}

/* Sends the signal that is due.  Returns the longest time to wait before the next call. */
static int step(struct command_run *run)
{
        struct beats_news news = beats_read(&run->beats);
        uint64_t now_ms = clock_boot_ms();
        /* It has a moment to end by itself before its time is over. */
        uint64_t warning_ms = min_u64(KILL_AFTER_MS, run->work->ttl_ms / 6);
        uint64_t warn_at_ms = news.deadline_ms > warning_ms ? news.deadline_ms - warning_ms : 0;
        run->worked->deadline_ms = news.deadline_ms;
        run->worked->is_over = news.is_over;
        if (news.is_over || now_ms >= news.deadline_ms) {
                kill_command(run);
        } else if (news.is_stop || run->worked->stopped_by_signal || now_ms >= warn_at_ms) {
                if (!run->term_ms) {
                        (void)kill(-run->pid, SIGTERM);
                        (void)kill(-run->pid, SIGCONT);
                        run->term_ms = now_ms;
                } else if (now_ms >= run->term_ms + KILL_AFTER_MS) {
                        kill_command(run);
                }
        }
        uint64_t next_ms = run->is_killed ? now_ms + 1000 : run->term_ms ? now_ms + 50 : warn_at_ms;
        return (int)min_u64(next_ms > now_ms ? next_ms - now_ms : 1, 1000);
}

/* Until the command itself has ended, not until its pipes are closed: processes that it left behind may hold them. */
static void attend(struct command_run *run)
{
        for (;;) {
                struct pollfd polls[] = { { .fd = run->pidfd, .events = POLLIN }, { .fd = run->in, .events = POLLOUT },
                        { .fd = run->out, .events = POLLIN }, { .fd = run->err, .events = POLLIN },
                        { .fd = run->signals, .events = POLLIN }, { .fd = run->beats.fd, .events = POLLIN } };
                if (poll(polls, sizeof(polls) / sizeof(polls[0]), step(run)) <= 0)
                        continue;
                if (polls[1].revents)
                        write_payload(run);
                if (polls[2].revents)
                        (void)read_stdout(run);
                if (polls[3].revents)
                        (void)read_stderr(run);
                if (polls[4].revents)
                        read_signal(run);
                if (polls[0].revents)
                        return;
        }
}

/* Kills the rest of the group, reads what is still in the pipes, and returns the status of waitpid(). */
static int end_command(struct command_run *run)
{
        int status = 0;
        (void)kill(-run->pid, SIGKILL);
        while (waitpid(run->pid, &status, 0) < 0 && errno == EINTR)
                ;
        for (int i = 0; i < LAST_READS && run->out >= 0 && read_stdout(run); i++)
                ;
        for (int i = 0; i < LAST_READS && run->err >= 0 && read_stderr(run); i++)
                ;
        return status;
}

/* --- the outcome -------------------------------------------------------------------------------------------------- */

/* "exit status 3: LINE | LINE" */
static void put_error(struct command_run *run, const char *before, int status)
{
        struct buffer *to = &run->worked->error;
        buffer_printf(to, "%s", before);
        if (WIFSIGNALED(status))
                buffer_printf(
                        to, "killed by SIG%s", sigabbrev_np(WTERMSIG(status)) ? sigabbrev_np(WTERMSIG(status)) : "?");
        else
                buffer_printf(to, "exit status %d", WEXITSTATUS(status));
        while (run->tail_size && run->tail[run->tail_size - 1] == '\n')
                run->tail_size--;
        for (size_t i = 0; i < run->tail_size; i++) {
                char c = run->tail[i];
                buffer_printf(to, "%s", i ? "" : ": ");
                if (c == '\n')
                        buffer_printf(to, " | ");
                else
                        buffer_put(to, &c, 1);
        }
}

/* The exit codes mean what they mean to the exec plugin.  A crash of the command is a failed attempt: a worker has no
 * outcome for a crash. */
static void judge(struct command_run *run, int status)
{
        struct worked *worked = run->worked;
        bool is_done = WIFEXITED(status) && WEXITSTATUS(status) == EX_OK;
        if (run->is_over_limit) {
                buffer_printf(&worked->error, "the command wrote more than %zu bytes; killed", RESULT_MAX);
                worked->outcome = QV_CLIENT_FINISH_REJECT;
        } else if (is_done) {
                worked->outcome = QV_CLIENT_FINISH_DONE;
                return;
        } else if (worked->stopped_by_signal) {
                put_error(run, "the worker was stopped, ", status);
                worked->outcome = QV_CLIENT_FINISH_LATER;
                worked->retry_after_ms = AT_ONCE_MS;
        } else {
                put_error(run, run->term_ms || run->is_killed ? "stopped before it was done, " : "", status);
                bool is_own = WIFEXITED(status) && !run->term_ms && !run->is_killed;
                worked->outcome = !is_own                                 ? QV_CLIENT_FINISH_RETRY
                                  : WEXITSTATUS(status) == EX_DATAERR     ? QV_CLIENT_FINISH_REJECT
                                  : WEXITSTATUS(status) == EX_UNAVAILABLE ? QV_CLIENT_FINISH_UNAVAILABLE
                                  : WEXITSTATUS(status) == EXIT_LATER     ? QV_CLIENT_FINISH_LATER
                                                                          : QV_CLIENT_FINISH_RETRY;
        }
        buffer_clear(&worked->result);
}

/* Too many headers are the task's fault; other failures are this worker's, and another may do better. */
static void judge_start(struct worked *worked, int r, const char *program)
{
        buffer_printf(&worked->error, "cannot start %s: %s", program, strerror(-r));
        worked->outcome = r == -E2BIG ? QV_CLIENT_FINISH_REJECT : QV_CLIENT_FINISH_LATER;
        worked->retry_after_ms = r == -E2BIG ? 0 : AT_ONCE_MS;
        worked->cannot_start = r != -E2BIG;
}

void work_command(
        const char *state, char **argv, const struct qv_client_work *work, uint64_t deadline_ms, struct worked *ret)
{
        struct command_run run = { .work = work, .worked = ret, .pidfd = -1, .in = -1, .out = -1, .err = -1 };
        sigset_t set;
        *ret = (struct worked){ .deadline_ms = deadline_ms };
        (void)sigemptyset(&set);
        (void)sigaddset(&set, SIGTERM);
        (void)sigaddset(&set, SIGINT);
        (void)sigaddset(&set, SIGHUP);
        run.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        int r = start_command(&run, argv);
        if (r == 0) {
                beats_start(&run.beats, state, work, deadline_ms);
                attend(&run);
                beats_stop(&run.beats);
        }
        int status = run.pid ? end_command(&run) : 0;
        if (r == 0)
                judge(&run, status);
        else
                judge_start(ret, r, argv[0]);
        close_fd(&run.pidfd);
        close_fd(&run.in);
        close_fd(&run.out);
        close_fd(&run.err);
        close_fd(&run.signals);
}
