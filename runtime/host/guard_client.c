#include "host/guard_client.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/file_lock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "base/strings.h"

#define AGAIN_MS     100
#define AGAIN_MAX_MS 10000

/* --- orders --- */

/* A guard that does not read its orders is killed; the next guard gets all orders again. */
static void give_up(struct guard_client *g)
{
        g->is_deaf = true;
        if (g->is_running)
                (void)uv_process_kill(&g->process, SIGKILL);
}

static void give(struct guard_client *g, const struct buffer *order, const int *fds, uint32_t fds_count)
{
        static _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(int) * GUARD_RUNNERS_MAX)];
        struct iovec part = { order->data, order->size };
        struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
        if (g->orders < 0)
                return;
        if (fds_count) {
                message.msg_control = control;
                message.msg_controllen = CMSG_SPACE(sizeof(int) * fds_count);
                struct cmsghdr *header = CMSG_FIRSTHDR(&message);
                header->cmsg_level = SOL_SOCKET;
                header->cmsg_type = SCM_RIGHTS;
                header->cmsg_len = CMSG_LEN(sizeof(int) * fds_count);
                memcpy(CMSG_DATA(header), fds, sizeof(int) * fds_count);
        }
        if (sendmsg(g->orders, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
                give_up(g);
}

static void give_runners(struct guard_client *g, const pid_t *pids, size_t count)
{
        int fds[GUARD_RUNNERS_MAX];
        pid_t living[GUARD_RUNNERS_MAX];
        struct buffer order = { 0 };
        for (size_t first = 0; first < count; first += GUARD_RUNNERS_MAX) {
                uint32_t n = 0;
                for (size_t i = first; i < count && i < first + GUARD_RUNNERS_MAX; i++) {
                        /* Only the host reaps its runners, and it has not reaped this one: the pid is still valid. */
                        fds[n] = pidfd_open(pids[i], 0);
                        living[n] = pids[i];
                        n += fds[n] >= 0;
                }
                buffer_clear(&order);
                order_put_runners(&order, living, n);
                give(g, &order, fds, n);
                for (uint32_t i = 0; i < n; i++)
                        (void)close(fds[i]);
        }
        buffer_free(&order);
}

static void give_session(struct guard_client *g)
{
        struct buffer order = { 0 };
        order_put_session(&order, g->token);
        give(g, &order, NULL, 0);
        explicit_bzero(order.data, order.size);
        buffer_free(&order);
}

void guard_client_session(struct guard_client *g, const char *token)
{
        (void)snprintf(g->token, sizeof(g->token), "%s", token);
        give_session(g);
}

static void give_ttl(struct guard_client *g)
{
        struct buffer order = { 0 };
        order_put_ttl(&order, g->ttl_ms);
        give(g, &order, NULL, 0);
        buffer_free(&order);
}

void guard_client_ttl(struct guard_client *g, uint64_t ttl_ms)
{
        g->ttl_ms = ttl_ms;
        give_ttl(g);
}

void guard_client_spawned(struct guard_client *g, pid_t pid)
{
        if (g->runners_count == g->runners_room) {
                g->runners_room = g->runners_room ? g->runners_room * 2 : 64;
                g->runners = memory_resize(g->runners, g->runners_room * sizeof(*g->runners));
        }
        g->runners[g->runners_count++] = pid;
        give_runners(g, &pid, 1);
}

void guard_client_reaped(struct guard_client *g, pid_t pid)
{
        struct buffer order = { 0 };
        for (size_t i = 0; i < g->runners_count; i++) {
                if (g->runners[i] != pid)
                        continue;
                g->runners[i] = g->runners[--g->runners_count];
                order_put_reaped(&order, pid);
                give(g, &order, NULL, 0);
                break;
        }
        buffer_free(&order);
}

/* --- start and end --- */

static int start_guard(struct guard_client *g);

static void on_timer_closed(uv_handle_t *handle)
{
        struct guard_client *g = handle->data;
        g->closed(g->self);
}

static void on_again(uv_timer_t *timer)
{
        struct guard_client *g = timer->data;
        if (start_guard(g) < 0)
                (void)uv_timer_start(&g->timer, on_again, AGAIN_MAX_MS, 0);
}

static void on_process_closed(uv_handle_t *handle)
{
        struct guard_client *g = handle->data;
        g->is_running = false;
        if (g->is_closing) {
                uv_close((uv_handle_t *)&g->timer, on_timer_closed);
                return;
        }
        uint64_t delay_ms = (uint64_t)AGAIN_MS << min_u64(g->deaths, 7);
        g->deaths++;
        (void)uv_timer_start(&g->timer, on_again, min_u64(delay_ms, AGAIN_MAX_MS), 0);
}

static void on_exited(uv_process_t *process, int64_t status, int signal)
{
        struct guard_client *g = process->data;
        if (!g->is_closing)
                log_event(LEVEL_WARN, "guard-died", "status=%d signal=%d text=%s", (int)status, signal,
                        LOG_QUOTE("the guard ended; another one is started"));
        if (g->orders >= 0)
                (void)close(g->orders);
        g->orders = -1;
        uv_close((uv_handle_t *)process, on_process_closed);
}

static int spawn(struct guard_client *g, int their_end, int alive)
{
        char format[] = { (char)('0' + log_format_get()), 0 };
        char *journal = text_copy(log_journal_get() ? log_journal_get() : "-");
        char *file = text_copy(log_file_get() ? log_file_get() : "-");
        char *args[] = { "quiver: guard", "guard", format, journal, file, NULL };
        uv_stdio_container_t stdio[] = {
                { .flags = UV_IGNORE },
                { .flags = UV_IGNORE },
                { .flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO }, /* the guard logs to the host's log */
                { .flags = UV_INHERIT_FD, .data.fd = their_end },
                { .flags = UV_INHERIT_FD, .data.fd = g->leases->fd },
                { .flags = UV_INHERIT_FD, .data.fd = alive },
        };
        uv_process_options_t options = {
                .exit_cb = on_exited,
                .file = "/proc/self/exe",
                .args = args,
                .stdio = stdio,
                .stdio_count = sizeof(stdio) / sizeof(stdio[0]) - (alive < 0),
                .flags = UV_PROCESS_DETACHED, /* a session of its own, so that Ctrl-C reaches only the host */
        };
        g->process.data = g;
        g->is_running = true;
        int r = uv_spawn(g->loop, &g->process, &options);
        free(journal);
        free(file);
        if (r < 0)
                uv_close((uv_handle_t *)&g->process, on_process_closed);
        return r;
}

static int start_guard(struct guard_client *g)
{
        int ends[2];
        int alive = g->alive_fd < 0 ? -1 : file_lock_share(g->alive_fd);
        if (alive < 0 && g->alive_fd >= 0)
                return alive;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
                int r = -errno;
                if (alive >= 0)
                        (void)close(alive);
                return r;
        }
        /* The orders are queued before the guard is spawned: if the host dies in between, the guard knows every
         * runner. */
        g->orders = ends[0];
        g->is_deaf = false;
        give(g, &g->start, NULL, 0);
        if (g->ttl_ms)
                give_ttl(g);
        give_session(g);
        give_runners(g, g->runners, g->runners_count);
        int r = g->is_deaf ? -ENOBUFS : spawn(g, ends[1], alive);
        (void)close(ends[1]);
        if (alive >= 0)
                (void)close(alive);
        if (r < 0) {
                (void)close(ends[0]);
                g->orders = -1;
        }
        return r;
}

int guard_client_open(struct guard_client *g, uv_loop_t *loop, const struct leases *leases, int alive_fd,
        const struct guard_start *start, struct error *error)
{
        *g = (struct guard_client){ .loop = loop, .leases = leases, .alive_fd = alive_fd, .orders = -1 };
        order_put_start(&g->start, start);
        (void)uv_timer_init(loop, &g->timer);
        g->timer.data = g;
        uv_unref((uv_handle_t *)&g->timer);
        int r = g->start.size <= GUARD_ORDER_MAX ? start_guard(g) : -E2BIG;
        return r < 0 ? error_set(error, r, "cannot start the guard: %s", strerror(-r)) : 0;
}

void guard_client_close(struct guard_client *g, void (*closed)(void *self), void *self)
{
        struct buffer order = { 0 };
        g->is_closing = true;
        g->closed = closed;
        g->self = self;
        order_put_bye(&order);
        give(g, &order, NULL, 0);
        buffer_free(&order);
        if (!g->is_running)
                uv_close((uv_handle_t *)&g->timer, on_timer_closed);
}

void guard_client_free(struct guard_client *g)
{
        if (g->start.data)
                explicit_bzero(g->start.data, g->start.size);
        buffer_free(&g->start);
        free(g->runners);
        g->runners = NULL;
}
