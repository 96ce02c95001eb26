/* connect_io.c: connections of the probes, each with a deadline for all of it, the look-up of the name included. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/strings.h"
#include "cli/doctor/probes.h"
#include "tls/tls.h"

bool probe_is_here(const char *host)
{
        return host[0] == '/' || !strncmp(host, "127.", 4) || !strcmp(host, "::1") || !strcmp(host, "localhost");
}

/* A question to the name service, which may not answer before its own time is over.  On the heap: if it cannot be
 * cancelled, it is left behind. */
struct name_question {
        struct gaicb one;
        struct addrinfo hints;
        char *name;
        char port[8];
};

static int resolve(const char *host, uint16_t port, uint64_t limit_ms, struct addrinfo **ret, struct error *error)
{
        struct name_question *q = memory_zero(1, sizeof(*q));
        struct gaicb *list[1] = { &q->one };
        struct sigevent none = { .sigev_notify = SIGEV_NONE };
        q->name = text_copy(host);
        q->hints = (struct addrinfo){ .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
        (void)snprintf(q->port, sizeof(q->port), "%u", port);
        q->one = (struct gaicb){ .ar_name = q->name, .ar_service = q->port, .ar_request = &q->hints };
        struct timespec wait = { (time_t)(limit_ms / 1000), (long)(limit_ms % 1000 * NS_PER_MS) };
        int r = getaddrinfo_a(GAI_NOWAIT, list, 1, &none);
        if (!r)
                (void)gai_suspend((const struct gaicb *const *)list, 1, &wait);
        r = r ? r : gai_error(&q->one);
        if (r == EAI_INPROGRESS && gai_cancel(&q->one) != EAI_CANCELED && gai_error(&q->one) == EAI_INPROGRESS)
                return error_set(error, -ETIMEDOUT, "the name %s was not resolved in time", host);
        if (!r)
                *ret = q->one.ar_result;
        free(q->name);
        free(q);
        return r ? error_set(error, -EHOSTUNREACH, "the name %s cannot be resolved: %s", host, gai_strerror(r)) : 0;
}

static int finish(int fd, uint64_t until_ms)
{
        for (;;) {
                uint64_t now_ms = clock_boot_ms();
                struct pollfd wait = { .fd = fd, .events = POLLOUT };
                int n = poll(&wait, 1, now_ms < until_ms ? (int)(until_ms - now_ms) : 0);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : -ETIMEDOUT;
                int failed = 0;
                socklen_t size = sizeof(failed);
                return getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &size) < 0 ? -errno : -failed;
        }
}

int probe_connect(const char *host, uint16_t port, uint64_t limit_ms, struct error *error)
{
        uint64_t until_ms = clock_boot_ms() + limit_ms;
        struct addrinfo *found = NULL;
        int r = resolve(host, port, limit_ms, &found, error);
        if (r < 0)
                return r;
        int fd = -1;
        r = -EHOSTUNREACH;
        for (struct addrinfo *at = found; at && r < 0; at = at->ai_next) {
                if (fd >= 0)
                        (void)close(fd);
                fd = socket(at->ai_family, at->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
                r = fd < 0 ? -errno : 0;
                if (!r && connect(fd, at->ai_addr, at->ai_addrlen) < 0)
                        r = errno == EINPROGRESS ? finish(fd, until_ms) : -errno;
        }
        freeaddrinfo(found);
        if (r < 0 && fd >= 0)
                (void)close(fd);
        return r < 0 ? error_set(error, r, "%s:%u: %s", host, port, strerror(-r)) : fd;
}

/* --- one question, one answer --- */

struct exchange {
        int fd;
        struct tls_stream *stream; /* NULL: plain */
        uint64_t until_ms;
};

static int wait_for(const struct exchange *x, short events)
{
        uint64_t now_ms = clock_boot_ms();
        struct pollfd wait = { .fd = x->fd, .events = events };
        int n = poll(&wait, 1, now_ms < x->until_ms ? (int)(x->until_ms - now_ms) : 0);
        if (n < 0 && errno != EINTR)
                return -errno;
        return clock_boot_ms() < x->until_ms ? 0 : -ETIMEDOUT;
}

static int shake(struct exchange *x, struct error *error)
{
        for (;;) {
                int r = tls_stream_shake(x->stream, error);
                if (r)
                        return r < 0 ? r : 0;
                r = wait_for(x, tls_stream_wants_write(x->stream) ? POLLOUT : POLLIN);
                if (r < 0)
                        return error_set(error, r, "the TLS handshake got no answer");
        }
}

static ssize_t move_bytes(struct exchange *x, bool is_write, void *data, size_t size, struct error *error)
{
        if (x->stream && !is_write)
                tls_stream_refill(x->stream, 16);
        if (x->stream)
                return is_write ? tls_stream_write(x->stream, data, size, error)
                                : tls_stream_read(x->stream, data, size, error);
        ssize_t n = is_write ? send(x->fd, data, size, MSG_NOSIGNAL) : recv(x->fd, data, size, 0);
        if (n < 0 && errno == EAGAIN)
                return 0;
        return n > 0 ? n : n < 0 ? -errno : -ECONNRESET;
}

static int say(struct exchange *x, const char *request, struct error *error)
{
        size_t size = strlen(request);
        for (size_t at = 0; at < size;) {
                ssize_t n = move_bytes(x, true, (void *)(request + at), size - at, error);
                int r = n < 0 ? (int)n : n == 0 ? wait_for(x, POLLOUT) : 0;
                if (r < 0)
                        return error_set(error, r, "%s", strerror(-r));
                at += (size_t)n;
        }
        return 0;
}

/* The end of the connection is the end of the answer. */
static int hear(struct exchange *x, size_t max, struct buffer *to, struct error *error)
{
        while (to->size < max) {
                struct error end;
                ssize_t n = move_bytes(x, false, buffer_reserve(to, 4096), 4096, &end);
                if (n < 0 && to->size)
                        return 0;
                int r = n < 0 ? (int)n : n == 0 ? wait_for(x, POLLIN) : 0;
                if (r < 0)
                        return error_set(error, r, "%s", r == -ETIMEDOUT ? "no answer" : "it closed the connection");
                to->size += (size_t)n;
        }
        return 0;
}

int probe_exchange(const struct url_host *host, struct tls_context *tls, const char *request, size_t max,
        struct buffer *ret_reply, uint64_t *ret_end_s, struct error *error)
{
        struct exchange x = { .until_ms = clock_boot_ms() + PROBE_MS };
        x.fd = probe_connect(host->name, host->port, PROBE_MS, error);
        if (x.fd < 0)
                return x.fd;
        int r = tls ? tls_stream_open(tls, x.fd, host->name, &x.stream, error) : 0;
        if (!r && x.stream)
                r = shake(&x, error);
        if (!r && x.stream && ret_end_s)
                *ret_end_s = tls_stream_chain_end_s(x.stream);
        if (!r && request)
                r = say(&x, request, error);
        if (!r && request && ret_reply)
                r = hear(&x, max, ret_reply, error);
        tls_stream_close(x.stream);
        (void)close(x.fd);
        return r;
}
