#include "redis/socket.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/memory.h"
#include "tls/tls.h"

#define READ_BYTES   16384 /* hiredis moves the rest of its buffer after each reply, so small reads cost less */
#define READS_MAX    16    /* per iteration, so that a fast server cannot occupy the loop */
#define OUT_KEPT_MAX (1u << 20)

/* A name resolution.  It may outlive its socket: a resolver that hangs cannot be stopped. */
struct lookup {
        uv_getaddrinfo_t request;
        struct redis_socket *sock; /* NULL: the socket was closed */
};

bool address_is_equal(const struct address *a, const struct address *b)
{
        return a->port == b->port && !strcmp(a->host, b->host);
}

const char *address_format(const struct address *address, char text[ADDRESS_TEXT_MAX])
{
        if (!address->port)
                (void)snprintf(text, ADDRESS_TEXT_MAX, "%s", address->host);
        else if (strchr(address->host, ':'))
                (void)snprintf(text, ADDRESS_TEXT_MAX, "[%s]:%u", address->host, address->port);
        else
                (void)snprintf(text, ADDRESS_TEXT_MAX, "%s:%u", address->host, address->port);
        return text;
}

static void on_poll(uv_poll_t *poll, int status, int events);

static void want_write(struct redis_socket *sock, bool is_wanted)
{
        if (sock->is_polling_write == is_wanted)
                return;
        sock->is_polling_write = is_wanted;
        (void)uv_poll_start(sock->poll, UV_READABLE | (is_wanted ? UV_WRITABLE : 0), on_poll);
}

static void free_handle(uv_handle_t *handle)
{
        free(handle);
}

static void drop_socket(struct redis_socket *sock)
{
        if (!sock->poll)
                return;
        uv_close((uv_handle_t *)sock->poll, free_handle);
        sock->poll = NULL;
        tls_stream_close(sock->stream);
        sock->stream = NULL;
        (void)close(sock->fd);
}

/* Reports the end of the socket to its owner, once; the owner closes it. */
static void go_down(struct redis_socket *sock, int status)
{
        drop_socket(sock);
        (void)uv_timer_stop(&sock->timer);
        sock->events->down(sock, status);
}

const char *redis_socket_silence(const struct redis_socket *sock)
{
        return sock->stream && !sock->is_up
                       ? " to the TLS handshake; a port without TLS is silent, too: its URL is redis://, not rediss://"
                       : "";
}

static void on_timer(uv_timer_t *timer)
{
        struct redis_socket *sock = timer->data;
        if (!sock->failed) {
                char text[ADDRESS_TEXT_MAX];
                sock->failed = error_set(&sock->error, -ETIMEDOUT, "%s: no answer within %llu ms%s",
                        address_format(&sock->address, text), (unsigned long long)sock->timeout_ms,
                        redis_socket_silence(sock));
        }
        go_down(sock, sock->failed);
}

/* For failures inside a call of the owner, who must not be called back from there. */
static void fail_later(struct redis_socket *sock, int status)
{
        sock->failed = status;
        (void)uv_timer_start(&sock->timer, on_timer, 0, 0);
}

/* --- replies in --- */

static int parse_failed(struct redis_socket *sock)
{
        char text[ADDRESS_TEXT_MAX];
        address_format(&sock->address, text);
        if (sock->has_tls_alert)
                return error_set(&sock->error, -EPROTO,
                        "%s speaks TLS on this port; write rediss:// in place of redis://", text);
        if (sock->reader->err == REDIS_ERR_OOM)
                return error_set(
                        &sock->error, -EMSGSIZE, "%s: a reply of more than %u elements", text, REPLY_ELEMENTS_MAX);
        return error_set(&sock->error, -EPROTO, "%s does not speak the Redis protocol: %s", text, sock->reader->errstr);
}

/* Passes complete replies to the owner.  0, or -errno if the bytes are no Redis protocol. */
static int parse(struct redis_socket *sock, const char *data, size_t size)
{
        sock->reply_bytes += size;
        /* The head of an alert: how a server that expects TLS answers anything else. */
        if (!sock->is_settled && size > 1 && data[0] == 0x15 && data[1] == 3)
                sock->has_tls_alert = true;
        if (redisReaderFeed(sock->reader, data, size) != REDIS_OK)
                return parse_failed(sock);
        while (!sock->is_closing) {
                redisReply *reply = NULL;
                if (redisReaderGetReply(sock->reader, (void **)&reply) != REDIS_OK)
                        return parse_failed(sock);
                if (!reply)
                        break;
                sock->reply_bytes = sock->reader->len - sock->reader->pos;
                sock->events->reply(sock, reply);
                reply_memory_reset(&sock->replies);
        }
        char text[ADDRESS_TEXT_MAX];
        if (sock->reply_bytes > REPLY_BYTES_MAX)
                return error_set(&sock->error, -EMSGSIZE, "%s: a reply of more than %u bytes",
                        address_format(&sock->address, text), REPLY_BYTES_MAX);
        return 0;
}

/* Bytes received; 0: none at the moment; or a negative errno with the text set. */
static ssize_t receive(struct redis_socket *sock, char *data, size_t size)
{
        char text[ADDRESS_TEXT_MAX];
        if (sock->stream) {
                ssize_t got = tls_stream_read(sock->stream, data, size, &sock->error);
                return got < 0 ? error_prefix(&sock->error, (int)got, "%s", address_format(&sock->address, text)) : got;
        }
        ssize_t n = recv(sock->fd, data, size, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
        if (n > 0) {
                sock->has_received = true;
                return n;
        }
        /* A Redis with TLS closes plain connections without a word. */
        const char *hint = sock->has_received || !sock->address.port
                                   ? ""
                                   : " before it had said anything; if this port is for TLS, write rediss://";
        address_format(&sock->address, text);
        if (n < 0)
                return error_set(&sock->error, -ECONNRESET, "%s: %s%s", text, strerror(errno), hint);
        return error_set(&sock->error, -ECONNRESET, "%s closed the connection%s", text, hint);
}

/* Reads and parses what has arrived.  0, or a negative errno with the text set. */
static int read_some(struct redis_socket *sock)
{
        char data[READ_BYTES];
        if (sock->stream)
                tls_stream_refill(sock->stream, READS_MAX);
        /* From a TLS stream, take everything that it has read from the socket. */
        for (int i = 0; (sock->stream || i < READS_MAX) && !sock->is_closing; i++) {
                ssize_t n = receive(sock, data, sizeof(data));
                sock->is_read_stuck = sock->stream && n == 0 && tls_stream_wants_write(sock->stream);
                if (sock->is_read_stuck)
                        want_write(sock, true);
                if (n <= 0)
                        return (int)n;
                int r = parse(sock, data, (size_t)n);
                if (r || (!sock->stream && (size_t)n < sizeof(data)))
                        return r;
        }
        return 0;
}

/* --- commands out --- */

static void put_number(struct buffer *out, char kind, size_t number)
{
        char text[24];
        char *at = text + sizeof(text);
        *--at = '\n';
        *--at = '\r';
        do
                *--at = (char)('0' + number % 10);
        while (number /= 10);
        *--at = kind;
        buffer_put(out, at, (size_t)(text + sizeof(text) - at));
}

void redis_socket_put_count(struct redis_socket *sock, int argc)
{
        put_number(&sock->out, '*', (size_t)argc);
}

void redis_socket_put_word(struct redis_socket *sock, const char *word, size_t size)
{
        put_number(&sock->out, '$', size);
        buffer_put(&sock->out, word, size);
        buffer_put(&sock->out, "\r\n", 2);
}

void redis_socket_put(struct redis_socket *sock, int argc, const char *const *argv, const size_t *argv_size)
{
        redis_socket_put_count(sock, argc);
        for (int i = 0; i < argc; i++)
                redis_socket_put_word(sock, argv[i], argv_size[i]);
}

/* Drops the sent part of the buffer: with a slow server the buffer may never become empty. */
static void forget_sent(struct redis_socket *sock)
{
        if (sock->out_sent < OUT_KEPT_MAX || sock->out_sent < sock->out.size / 2)
                return;
        sock->out.size -= sock->out_sent;
        memmove(sock->out.data, sock->out.data + sock->out_sent, sock->out.size);
        sock->out_sent = 0;
}

/* Sends a part of the buffer.  Returns whether it can go on when the socket is writable.  An error is ignored here: the
 * next read reports it. */
static bool send_some(struct redis_socket *sock)
{
        const char *data = (const char *)sock->out.data + sock->out_sent;
        size_t size = sock->out.size - sock->out_sent;
        if (sock->stream) {
                ssize_t n = tls_stream_write(sock->stream, data, size, NULL);
                if (n > 0)
                        sock->out_sent += (size_t)n;
                sock->is_stuck = n == 0 && !tls_stream_wants_write(sock->stream);
                return n > 0 || (n == 0 && !sock->is_stuck);
        }
        ssize_t n = send(sock->fd, data, size, MSG_NOSIGNAL);
        if (n > 0)
                sock->out_sent += (size_t)n;
        return n >= 0 || errno == EAGAIN || errno == EINTR || errno == ENOBUFS;
}

void redis_socket_flush(struct redis_socket *sock)
{
        if (!sock->is_up || !sock->poll || !sock->out.size)
                return;
        size_t before;
        bool can_go_on;
        do {
                before = sock->out_sent;
                can_go_on = send_some(sock);
                /* A TLS record holds 16 KiB: send all of them now if the socket takes them. */
        } while (sock->stream && sock->out_sent > before && sock->out_sent < sock->out.size);
        if (sock->out_sent < sock->out.size) {
                forget_sent(sock);
                want_write(sock, can_go_on);
                return;
        }
        if (!sock->is_settled)
                explicit_bzero(sock->out.data, sock->out.size);
        sock->out_sent = 0;
        if (sock->out.room > OUT_KEPT_MAX)
                buffer_free(&sock->out);
        else
                buffer_clear(&sock->out);
        want_write(sock, sock->is_read_stuck);
}

/* --- connecting --- */

static void connect_next(struct redis_socket *sock);

/* A connection to a free local port may be connected to itself (TCP simultaneous open): it would read its own commands
 * as answers. */
static bool is_own_echo(int fd)
{
        struct sockaddr_storage here = { 0 }, there = { 0 };
        socklen_t here_size = sizeof(here), there_size = sizeof(there);
        if (getsockname(fd, (struct sockaddr *)&here, &here_size) ||
                getpeername(fd, (struct sockaddr *)&there, &there_size))
                return false;
        return here.ss_family != AF_UNIX && here_size == there_size && !memcmp(&here, &there, here_size);
}

/* Whether the socket is connected; if not, the next address is tried. */
static bool is_connected(struct redis_socket *sock)
{
        int failure = 0;
        socklen_t size = sizeof(failure);
        if (getsockopt(sock->fd, SOL_SOCKET, SO_ERROR, &failure, &size))
                failure = errno;
        else if (!failure && is_own_echo(sock->fd))
                failure = ECONNREFUSED;
        if (!failure)
                return true;
        char text[ADDRESS_TEXT_MAX];
        sock->failed =
                error_set(&sock->error, -failure, "%s: %s", address_format(&sock->address, text), strerror(failure));
        drop_socket(sock);
        connect_next(sock);
        return false;
}

static void go_up(struct redis_socket *sock)
{
        sock->is_up = true;
        want_write(sock, false);
        sock->events->up(sock);
}

static void refuse_tls(struct redis_socket *sock, int status)
{
        char text[ADDRESS_TEXT_MAX];
        go_down(sock, error_prefix(&sock->error, status, "%s", address_format(&sock->address, text)));
}

/* Continues the TLS handshake as far as possible without waiting. */
static void shake(struct redis_socket *sock)
{
        int r = tls_stream_shake(sock->stream, &sock->error);
        if (r < 0)
                refuse_tls(sock, r);
        else if (r > 0)
                go_up(sock);
        else
                want_write(sock, tls_stream_wants_write(sock->stream));
}

static void begin(struct redis_socket *sock)
{
        if (!is_connected(sock))
                return;
        sock->failed = 0; /* failure of addresses tried before */
        sock->is_polling_write = true;
        if (!sock->tls) {
                go_up(sock);
                return;
        }
        int r = tls_stream_open(sock->tls, sock->fd, sock->address.host, &sock->stream, &sock->error);
        if (r)
                refuse_tls(sock, r);
        else
                shake(sock);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
        struct redis_socket *sock = poll->data;
        if (!sock->is_up) {
                if (sock->stream)
                        shake(sock);
                else
                        begin(sock);
                return;
        }
        int r = 0;
        /* Read before writing: an error that the server sent before closing tells more than EPIPE.  A stream may have
         * to write before it can read on. */
        if (status < 0 || events & UV_READABLE || sock->stream)
                r = read_some(sock);
        if (sock->is_closing)
                return;
        if (r)
                go_down(sock, r);
        else if (sock->out.size && (events & UV_WRITABLE || sock->is_stuck))
                redis_socket_flush(sock);
        else if (events & UV_WRITABLE)
                want_write(sock, sock->is_read_stuck);
}

static void set_tcp_options(int fd)
{
        int yes = 1, idle_s = 15, interval_s = 5, probes = 3;
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
        (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
        (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
        (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
        (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

/* Begins to connect.  0 or -errno. */
static int connect_to(struct redis_socket *sock, const struct sockaddr *to, socklen_t size)
{
        int r = 0;
        int fd = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return -errno;
        if (to->sa_family != AF_UNIX)
                set_tcp_options(fd);
        if (connect(fd, to, size) && errno != EINPROGRESS) {
                r = -errno;
                goto close_fd;
        }
        sock->poll = memory_alloc(sizeof(*sock->poll));
        r = uv_poll_init(sock->loop, sock->poll, fd);
        if (r) {
                free(sock->poll);
                sock->poll = NULL;
                goto close_fd;
        }
        sock->poll->data = sock;
        sock->fd = fd;
        (void)uv_poll_start(sock->poll, UV_WRITABLE, on_poll);
        return 0;
close_fd:
        (void)close(fd);
        return r;
}

static void connect_next(struct redis_socket *sock)
{
        while (sock->next_found) {
                struct addrinfo *at = sock->next_found;
                sock->next_found = at->ai_next;
                int r = connect_to(sock, at->ai_addr, at->ai_addrlen);
                if (!r)
                        return;
                char text[ADDRESS_TEXT_MAX];
                sock->failed = error_set(&sock->error, r, "%s: %s", address_format(&sock->address, text), strerror(-r));
        }
        fail_later(sock, sock->failed);
}

static void on_resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *found)
{
        struct lookup *lookup = (struct lookup *)request;
        struct redis_socket *sock = lookup->sock;
        free(lookup);
        if (!sock) {
                uv_freeaddrinfo(found);
                return;
        }
        sock->lookup = NULL;
        if (status) {
                fail_later(sock,
                        error_set(&sock->error, -EHOSTUNREACH, "%s: %s", sock->address.host, uv_strerror(status)));
                return;
        }
        sock->found = sock->next_found = found;
        connect_next(sock);
}

static void resolve(struct redis_socket *sock)
{
        struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC };
        char port[8];
        (void)snprintf(port, sizeof(port), "%u", sock->address.port);
        struct lookup *lookup = memory_zero(1, sizeof(*lookup));
        lookup->sock = sock;
        int r = uv_getaddrinfo(sock->loop, &lookup->request, on_resolved, sock->address.host, port, &hints);
        if (r) {
                free(lookup);
                fail_later(sock, error_set(&sock->error, -EHOSTUNREACH, "%s: %s", sock->address.host, uv_strerror(r)));
                return;
        }
        sock->lookup = lookup;
}

static void connect_unix(struct redis_socket *sock)
{
        struct sockaddr_un to = { .sun_family = AF_UNIX };
        const char *path = sock->address.host;
        int r = -ENAMETOOLONG;
        if (strlen(path) < sizeof(to.sun_path)) {
                memcpy(to.sun_path, path, strlen(path) + 1);
                r = connect_to(sock, (struct sockaddr *)&to, sizeof(to));
        }
        if (r)
                fail_later(sock, error_set(&sock->error, r, "%s: %s", path, strerror(-r)));
}

void redis_socket_open(struct redis_socket *sock, uv_loop_t *loop, const struct address *address,
        struct tls_context *tls, uint64_t timeout_ms, const struct redis_socket_events *events)
{
        *sock = (struct redis_socket){
                .address = *address, .events = events, .loop = loop, .tls = tls, .timeout_ms = timeout_ms
        };
        sock->reader = reply_memory_reader(&sock->replies, REPLY_ELEMENTS_MAX);
        (void)uv_timer_init(loop, &sock->timer);
        sock->timer.data = sock;
        uv_update_time(loop);
        (void)uv_timer_start(&sock->timer, on_timer, timeout_ms, 0);
        if (address->port)
                resolve(sock);
        else
                connect_unix(sock);
}

void redis_socket_settled(struct redis_socket *sock)
{
        sock->is_settled = true;
        (void)uv_timer_stop(&sock->timer);
}

static void on_closed(uv_handle_t *handle)
{
        struct redis_socket *sock = handle->data;
        if (sock->out.data)
                explicit_bzero(sock->out.data, sock->out.room);
        buffer_free(&sock->out);
        uv_freeaddrinfo(sock->found);
        redisReaderFree(sock->reader);
        reply_memory_free(&sock->replies);
        sock->events->closed(sock);
}

void redis_socket_close(struct redis_socket *sock)
{
        if (sock->is_closing)
                return;
        sock->is_closing = true;
        drop_socket(sock);
        if (sock->lookup) {
                sock->lookup->sock = NULL;
                (void)uv_cancel((uv_req_t *)&sock->lookup->request);
        }
        uv_close((uv_handle_t *)&sock->timer, on_closed);
}
