#include "host/pool/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file/file_lock.h"
#include "base/memory.h"
#include "host/pool/runner_variables.h"

/* The most of a child's output to read before the loop continues. */
#define OUTPUT_CHUNK 65536

/* The runner's ends of the sockets and pipes; closed here after the spawn. */
struct runner_ends {
        int control, out, err, alive;
};

static void close_fd(int *fd)
{
        if (*fd >= 0)
                (void)close(*fd);
        *fd = -1;
}

static int open_pipe(int *ret_read, int *ret_write)
{
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) < 0)
                return -errno;
        (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
        *ret_read = ends[0];
        *ret_write = ends[1];
        return 0;
}

static int open_channels(struct process *p, struct runner_ends *ends)
{
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        (void)fcntl(pair[0], F_SETFL, O_NONBLOCK);
        p->fds[CHANNEL_CONTROL] = pair[0];
        ends->control = pair[1];
        p->fds[CHANNEL_BELL] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (p->fds[CHANNEL_BELL] < 0)
                return -errno;
        int r = open_pipe(&p->fds[CHANNEL_OUT], &ends->out);
        return r < 0 ? r : open_pipe(&p->fds[CHANNEL_ERR], &ends->err);
}

/* --- messages and output --- */

static void hear(struct process *p, const void *data, size_t size)
{
        struct reader r;
        enum message_kind kind;
        struct runner_ready ready;
        struct runner_log log;
        const char *text;
        /* Plugin code in the runner could write to this socket, so a malformed message is ignored. */
        if (message_open(&r, data, size, &kind) < 0)
                return;
        if (kind == MESSAGE_READY && message_get_ready(&r, &ready) == 0)
                p->events->ready(p, &ready);
        else if (kind == MESSAGE_REFUSED && message_get_refused(&r, &text) == 0)
                p->events->refused(p, text);
        else if (kind == MESSAGE_LOG && message_get_log(&r, &log) == 0)
                p->events->log(p, &log);
}

/* False if the other end is closed. */
static bool read_control(struct process *p)
{
        static uint8_t packet[MESSAGE_MAX];
        for (int i = 0; i < 64; i++) {
                ssize_t n = recv(p->fds[CHANNEL_CONTROL], packet, sizeof(packet), MSG_DONTWAIT);
                if (n < 0)
                        return errno == EAGAIN || errno == EINTR;
                if (n == 0)
                        return false;
                hear(p, packet, (size_t)n);
        }
        return true;
}

static void say_line(struct process *p, enum log_source source, const char *line, uint32_t dropped)
{
        struct runner_log log = { .level = 2, .source = source, .seat = UINT32_MAX, .dropped = dropped, .text = line };
        p->events->log(p, &log);
}

static void say_out(void *arg, const char *line, uint32_t dropped)
{
        say_line(arg, LOG_STDOUT, line, dropped);
}

static void say_err(void *arg, const char *line, uint32_t dropped)
{
        struct process *p = arg;
        stderr_tail_add(&p->tail, line, clock_boot_ms());
        say_line(arg, LOG_STDERR, line, dropped);
}

static bool read_output(struct process *p, enum process_channel channel)
{
        static char chunk[OUTPUT_CHUNK];
        ssize_t n = read(p->fds[channel], chunk, sizeof(chunk));
        if (n < 0)
                return errno == EAGAIN || errno == EINTR;
        if (n == 0)
                return false;
        bool is_out = channel == CHANNEL_OUT;
        line_reader_feed(is_out ? &p->out : &p->err, chunk, (size_t)n, clock_boot_ms(), is_out ? say_out : say_err, p);
        return true;
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
        struct process *p = poll->data;
        enum process_channel channel = (enum process_channel)(poll - p->polls);
        bool is_open = status == 0 || (events & UV_READABLE);
        if (is_open && channel == CHANNEL_BELL) {
                uint64_t count;
                ssize_t n = read(p->fds[CHANNEL_BELL], &count, sizeof(count));
                (void)n;
                p->events->rang(p);
        } else if (is_open && channel == CHANNEL_CONTROL) {
                is_open = read_control(p);
        } else if (is_open) {
                is_open = read_output(p, channel);
        }
        if (!is_open)
                (void)uv_poll_stop(poll);
}

static void on_exited(uv_process_t *handle, int64_t exit_status, int term_signal)
{
        struct process *p = handle->data;
        p->exit_status = exit_status;
        p->term_signal = term_signal;
        if (term_signal == SIGKILL)
                p->oom = oom_compare(p->oom_before, oom_count_read(p->cgroup));
        /* Kills the children that it left behind.  The group's number is not used again while the group has members. */
        (void)kill(-p->pid, SIGKILL);
        if (p->host->strays)
                strays_remove(p->host->strays, p->pid);
        if (*p->cgroup)
                cgroups_end(p->host->cgroups, p->cgroup);
        p->pid = 0;
        (void)read_control(p);
        /* A grandchild may hold the pipes open for ever, so only a bounded amount is read. */
        for (int i = 0; i < 16 && read_output(p, CHANNEL_OUT); i++)
                ;
        for (int i = 0; i < 16 && read_output(p, CHANNEL_ERR); i++)
                ;
        uint64_t now_ms = clock_boot_ms();
        line_reader_end(&p->out, now_ms, say_out, p);
        line_reader_end(&p->err, now_ms, say_err, p);
        p->events->gone(p);
}

/* --- start and end --- */

static int spawn(uv_loop_t *loop, struct process *p, const struct leases *leases, const struct runner_start *start,
        const struct runner_ends *ends)
{
        char parent[24];
        char name[80];
        (void)snprintf(parent, sizeof(parent), "%" PRIdMAX, (intmax_t)getpid());
        (void)snprintf(name, sizeof(name), "quiver: %.64s", start->handler);
        char *args[] = { name, "runner", parent, NULL };
        /* Without a lock the lease page stands in for it, so that a runner has the same descriptors in any case. */
        const int fds[] = { -1, ends->out, ends->err, ends->control, p->ring.fd, leases->fd, p->fds[CHANNEL_BELL],
                ends->alive >= 0 ? ends->alive : leases->fd };
        uv_stdio_container_t stdio[sizeof(fds) / sizeof(fds[0])];
        char mark[STRAY_MARK_MAX] = "";
        uint64_t number = p->host->strays ? strays_mark(p->host->strays, mark) : 0;
        for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
                stdio[i].flags = fds[i] < 0 ? UV_IGNORE : UV_INHERIT_FD;
                stdio[i].data.fd = fds[i];
        }
        uv_process_options_t options = {
                .exit_cb = on_exited,
                .file = "/proc/self/exe", /* the running version, whatever has been installed since */
                .args = args,
                .env = start->has_all_variables ? NULL
                                                : variables_for_runner(start->variables, start->variables_count, mark),
                .stdio_count = sizeof(fds) / sizeof(fds[0]),
                .stdio = stdio,
        };
        p->handle.data = p;
        int r = uv_spawn(loop, &p->handle, &options);
        free(options.env);
        /* The handle must be closed even if the spawn fails. */
        p->handles++;
        p->pid = r == 0 ? p->handle.pid : 0;
        if (r == 0 && p->host->strays)
                strays_add(p->host->strays, p->pid, number);
        return r;
}

static void watch(uv_loop_t *loop, struct process *p)
{
        for (int i = 0; i < 4; i++) {
                (void)uv_poll_init(loop, &p->polls[i], p->fds[i]);
                p->polls[i].data = p;
                p->handles++;
                (void)uv_poll_start(&p->polls[i], UV_READABLE, on_readable);
        }
}

static int send_start(struct process *p, const struct runner_start *start)
{
        struct buffer message = { 0 };
        struct runner_start with_group = *start;
        with_group.cgroup = p->cgroup;
        with_group.has_controllers = *p->cgroup ? p->host->cgroups->controllers : 0;
        message_put_start(&message, &with_group);
        int r = 0;
        if (message.size > MESSAGE_MAX)
                r = -E2BIG;
        else if (send(p->fds[CHANNEL_CONTROL], message.data, message.size, MSG_NOSIGNAL) < 0)
                r = -errno;
        buffer_free(&message);
        return r;
}

static void free_process(struct process *p)
{
        for (int i = 0; i < 4; i++)
                close_fd(&p->fds[i]);
        ring_host_free(&p->ring);
        free(p);
}

static void on_closed(uv_handle_t *handle)
{
        struct process *p = handle->data;
        if (!--p->handles)
                free_process(p);
}

void process_close(struct process *p)
{
        for (int i = 0; i < 4; i++)
                if (p->polls[i].data)
                        uv_close((uv_handle_t *)&p->polls[i], on_closed);
        uv_close((uv_handle_t *)&p->handle, on_closed);
}

void process_set_level(struct process *p, uint32_t level)
{
        struct buffer message = { 0 };
        message_put_level(&message, level);
        if (p->pid)
                (void)send(p->fds[CHANNEL_CONTROL], message.data, message.size, MSG_NOSIGNAL | MSG_DONTWAIT);
        buffer_free(&message);
}

void process_kill(struct process *p, int signal)
{
        if (p->pid)
                (void)uv_process_kill(&p->handle, signal);
}

int process_start(uv_loop_t *loop, const struct ring_shape *shape, const struct leases *leases,
        const struct process_host *host, const struct runner_start *start, const struct process_events *events,
        void *owner, struct process **ret, struct error *error)
{
        struct process *p = memory_zero(1, sizeof(*p));
        struct runner_ends ends = { -1, -1, -1, -1 };
        p->events = events;
        p->owner = owner;
        p->host = host;
        p->out.rate = p->err.rate = start->log_rate;
        for (int i = 0; i < 4; i++)
                p->fds[i] = -1;
        int r = ring_host_init(&p->ring, shape);
        if (r == 0)
                r = open_channels(p, &ends);
        if (r == 0 && host->alive_fd >= 0) {
                ends.alive = file_lock_share(host->alive_fd);
                r = ends.alive < 0 ? ends.alive : 0;
        }
        struct error why = { "" };
        if (r == 0 && host->cgroups)
                r = cgroups_add(host->cgroups, start, p->cgroup, &why);
        p->oom_before = oom_count_read(p->cgroup);
        if (r == 0)
                r = send_start(p, start);
        if (r == 0)
                r = spawn(loop, p, leases, start, &ends);
        close_fd(&ends.control);
        close_fd(&ends.out);
        close_fd(&ends.err);
        close_fd(&ends.alive);
        if (r == 0) {
                watch(loop, p);
                *ret = p;
                return 0;
        }
        if (*p->cgroup)
                cgroups_end(host->cgroups, p->cgroup);
        if (p->handles)
                process_close(p);
        else
                free_process(p);
        if (r == -E2BIG)
                return error_set(
                        error, r, "handler %s: its settings take more than %d KiB", start->handler, MESSAGE_MAX / 1024);
        return error_set(
                error, r, "handler %s: cannot start a runner: %s", start->handler, *why.text ? why.text : strerror(-r));
}
