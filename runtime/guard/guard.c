#include "guard/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process/cgroup.h"
#include "base/process/stray_mark.h"
#include "coord/coord.h"

/* A process that survives SIGKILL for this long is stuck in the kernel. */
#define KILL_MAX_MS     60000
#define STRAYS_PAUSE_NS 1000000

struct guarded_runner {
        pid_t pid;
        int pidfd;
};

struct guard {
        uint8_t started[GUARD_ORDER_MAX]; /* the bytes that `start` points into */
        struct guard_start start;
        struct leases leases;
        char token[COORD_TOKEN_MAX];
        struct guarded_runner *runners;
        size_t runners_count, runners_room;
        bool has_start, is_dismissed;
        uv_loop_t loop;
        uv_poll_t orders;
        struct guard_work *work; /* NULL: not started */
};

/* --- orders --- */

static void add_runner(struct guard *g, pid_t pid, int pidfd)
{
        if (g->runners_count == g->runners_room) {
                g->runners_room = g->runners_room ? g->runners_room * 2 : 64;
                g->runners = memory_resize(g->runners, g->runners_room * sizeof(*g->runners));
        }
        g->runners[g->runners_count++] = (struct guarded_runner){ pid, pidfd };
}

static void drop_runner(struct guard *g, pid_t pid)
{
        for (size_t i = 0; i < g->runners_count; i++) {
                if (g->runners[i].pid != pid)
                        continue;
                (void)close(g->runners[i].pidfd);
                g->runners[i] = g->runners[--g->runners_count];
                return;
        }
}

static void take_start(struct guard *g, const uint8_t *packet, size_t size)
{
        struct reader r;
        enum guard_order order;
        memcpy(g->started, packet, size);
        if (g->has_start || order_open(&r, g->started, size, &order) < 0 || order_get_start(&r, &g->start) < 0)
                return;
        g->has_start = leases_attach(&g->leases, GUARD_FD_LEASES, g->start.leases) == 0;
        if (g->has_start)
                g->work = guard_work_open(&g->loop, &g->start);
}

static void take_runners(struct guard *g, struct reader *r, const int *fds, size_t fds_count)
{
        uint32_t count = reader_u32(r);
        for (size_t i = 0; i < fds_count; i++) {
                pid_t pid = i < count ? (pid_t)reader_u32(r) : 0;
                if (r->is_bad || pid <= 0)
                        (void)close(fds[i]);
                else
                        add_runner(g, pid, fds[i]);
        }
}

static void take_ttl(struct guard *g, struct reader *r)
{
        uint64_t ttl_ms = reader_u64(r);
        if (!r->is_bad && ttl_ms)
                g->start.ttl_ms = ttl_ms;
}

static void obey(struct guard *g, const uint8_t *packet, size_t size, const int *fds, size_t fds_count)
{
        struct reader r;
        enum guard_order order;
        if (order_open(&r, packet, size, &order) < 0)
                return;
        switch (order) {
        case GUARD_START:
                take_start(g, packet, size);
                break;
        case GUARD_SESSION:
                (void)snprintf(g->token, sizeof(g->token), "%s", reader_text(&r));
                break;
        case GUARD_RUNNERS:
                take_runners(g, &r, fds, fds_count);
                break;
        case GUARD_REAPED:
                drop_runner(g, (pid_t)reader_u32(&r));
                break;
        case GUARD_TTL:
                take_ttl(g, &r);
                break;
        case GUARD_BYE:
                g->is_dismissed = true;
                break;
        }
}

/* Receives one order.  False if the host is gone or has dismissed this guard. */
static bool hear(struct guard *g)
{
        static uint8_t packet[GUARD_ORDER_MAX];
        static _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(int) * GUARD_RUNNERS_MAX)];
        struct iovec part = { packet, sizeof(packet) };
        struct msghdr message = {
                .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)
        };
        ssize_t n = recvmsg(GUARD_FD_ORDERS, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
        if (n < 0)
                return errno == EINTR || errno == EAGAIN;
        if (n == 0)
                return false;
        const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        bool has_fds = header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS;
        int fds[GUARD_RUNNERS_MAX];
        size_t fds_size = has_fds ? header->cmsg_len - CMSG_LEN(0) : 0;
        if (has_fds)
                memcpy(fds, CMSG_DATA(header), fds_size);
        obey(g, packet, (size_t)n, fds, fds_size / sizeof(int));
        return !g->is_dismissed;
}

static void on_orders(uv_poll_t *poll, int status, int events)
{
        struct guard *g = poll->data;
        (void)status;
        (void)events;
        if (hear(g))
                return;
        uv_close((uv_handle_t *)poll, NULL);
        uv_stop(&g->loop);
}

/* --- the host is dead --- */

/* Kills each runner with its process group, and so with the children that it started.  While the runner is not reaped,
 * its number and that of its group are not used again. */
static void kill_runners(const struct guard *g)
{
        for (size_t i = 0; i < g->runners_count; i++) {
                if (pidfd_send_signal(g->runners[i].pidfd, 0, NULL, 0) == 0)
                        (void)kill(-g->runners[i].pid, SIGKILL);
                (void)pidfd_send_signal(g->runners[i].pidfd, SIGKILL, NULL, 0);
        }
}

/* Whether all runners have ended within KILL_MAX_MS. */
static bool await_runners(const struct guard *g)
{
        uint64_t until_ms = clock_boot_ms() + KILL_MAX_MS;
        for (size_t i = 0; i < g->runners_count; i++) {
                struct pollfd ended = { .fd = g->runners[i].pidfd, .events = POLLIN };
                uint64_t now_ms;
                while (!ended.revents && (now_ms = clock_boot_ms()) < until_ms)
                        (void)poll(&ended, 1, (int)(until_ms - now_ms));
                if (!ended.revents)
                        return false;
        }
        return true;
}

/* Kills what runners started and left in other process groups: by their control group, or else by the mark that they
 * inherited (stray_mark.h).  True if none is left within KILL_MAX_MS. */
static bool end_strays(const struct guard *g, unsigned *ret_killed)
{
        const struct timespec pause = { .tv_nsec = STRAYS_PAUSE_NS };
        uint64_t until_ms = clock_boot_ms() + KILL_MAX_MS;
        char run[STRAY_RUN_MAX];
        stray_run(run, g->start.nonce, sizeof(g->start.nonce));
        for (;;) {
                bool is_left = *g->start.cgroup && cgroup_is_populated(g->start.cgroup);
                if (is_left)
                        (void)cgroup_kill(g->start.cgroup);
                unsigned found = stray_mark_kill(run);
                *ret_killed = found > *ret_killed ? found : *ret_killed;
                if (!is_left && !found)
                        break;
                if (clock_boot_ms() >= until_ms)
                        return false;
                (void)nanosleep(&pause, NULL);
        }
        if (*g->start.cgroup)
                (void)cgroup_remove(g->start.cgroup);
        return true;
}

static void clean_up(struct guard *g)
{
        uint64_t since_ms = clock_boot_ms();
        unsigned strays = 0;
        if (*g->start.cgroup)
                (void)cgroup_kill(g->start.cgroup);
        kill_runners(g);
        if (!await_runners(g) || !end_strays(g, &strays)) {
                log_event(LEVEL_ERROR, "guard", "runners=%zu text=%s", g->runners_count,
                        LOG_QUOTE("the host died, and a runner cannot be killed; no lease is returned, they expire"));
                return;
        }
        uint32_t released = guard_work_release(g->work, &g->leases, g->token);
        log_event(LEVEL_WARN, "guard", "runners=%zu strays=%u released=%" PRIu32 " after_ms=%" PRIu64 " text=%s",
                g->runners_count, strays, released, clock_boot_ms() - since_ms,
                LOG_QUOTE("the host died; its runners and what they started are killed, and its leases returned"));
}

int cmd_guard(int argc, char **argv)
{
        static struct guard g;
        if (argc != 4 || fcntl(GUARD_FD_ORDERS, F_GETFD) < 0 || fcntl(GUARD_FD_LEASES, F_GETFD) < 0) {
                (void)fprintf(stderr, "quiver guard: only a host starts this command\n");
                return 2;
        }
        /* Logs in the host's format; without a journal, to standard error. */
        if (argv[1][0] == '0' + FORMAT_JSON || argv[1][0] == '0' + FORMAT_JOURNAL)
                (void)log_set_format((enum log_format)(argv[1][0] - '0'), argv[2], NULL);
        /* Signals that stop a host must not stop its guard before it; the guard ends after the host. */
        (void)signal(SIGTERM, SIG_IGN);
        (void)signal(SIGINT, SIG_IGN);
        (void)signal(SIGHUP, SIG_IGN);
        (void)fcntl(GUARD_FD_ORDERS, F_SETFD, FD_CLOEXEC);
        (void)fcntl(GUARD_FD_LEASES, F_SETFD, FD_CLOEXEC);
        (void)fcntl(GUARD_FD_ALIVE, F_SETFD, FD_CLOEXEC);
        (void)prctl(PR_SET_DUMPABLE, 0); /* no core dump: the memory holds passwords */
        (void)uv_loop_init(&g.loop);
        (void)uv_poll_init(&g.loop, &g.orders, GUARD_FD_ORDERS);
        g.orders.data = &g;
        (void)uv_poll_start(&g.orders, UV_READABLE, on_orders);
        (void)uv_run(&g.loop, UV_RUN_DEFAULT);
        if (!g.is_dismissed && g.has_start) {
                /* The log file may have been rotated since: opens it again by its name. */
                if (strcmp(argv[3], "-") != 0)
                        (void)log_to_file(argv[3], NULL);
                clean_up(&g);
        }
        return 0;
}
