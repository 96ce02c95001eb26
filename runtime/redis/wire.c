#include "redis/wire.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define READ_BYTES   16384 /* hiredis moves what is left in its buffer after each reply: small bites cost less */
#define READS_MAX    16    /* a turn, so that a fast server cannot keep the loop */
#define OUT_KEPT_MAX (1u << 20)

/* A name being resolved.  It may outlive its wire: a resolver that hangs cannot be stopped. */
struct lookup {
        uv_getaddrinfo_t request;
        struct wire *wire; /* NULL: nobody waits any more */
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

static void free_handle(uv_handle_t *handle)
{
        free(handle);
}

static void drop_socket(struct wire *wire)
{
        if (!wire->poll)
                return;
        uv_close((uv_handle_t *)wire->poll, free_handle);
        wire->poll = NULL;
        (void)close(wire->fd);
}

/* The socket is of no use any more; the owner hears of it once, and closes. */
static void go_down(struct wire *wire, int status)
{
        drop_socket(wire);
        (void)uv_timer_stop(&wire->timer);
        wire->events->down(wire, status);
}

static void on_timer(uv_timer_t *timer)
{
        struct wire *wire = timer->data;
        if (!wire->failed) {
                char text[ADDRESS_TEXT_MAX];
                wire->failed = error_set(&wire->error, -ETIMEDOUT, "%s: no answer within %llu ms",
                        address_format(&wire->address, text), (unsigned long long)wire->timeout_ms);
        }
        go_down(wire, wire->failed);
}

/* For failures inside a call of the owner's. */
static void fail_later(struct wire *wire, int status)
{
        wire->failed = status;
        (void)uv_timer_start(&wire->timer, on_timer, 0, 0);
}

/* --- replies in --------------------------------------------------------------------------------------------------- */

/* hiredis allocates an array as soon as it is announced: a few bytes could ask for gigabytes. */
static void *create_array(const redisReadTask *task, int elements)
{
        struct wire *wire = task->privdata;
        wire->reply_elements += (uint32_t)elements;
        if (elements < 0 || (uint32_t)elements > REPLY_ELEMENTS_MAX || wire->reply_elements > REPLY_ELEMENTS_MAX)
                return NULL;
        return wire->create_array(task, elements);
}

static int parse_failed(struct wire *wire)
{
        char text[ADDRESS_TEXT_MAX];
        address_format(&wire->address, text);
        if (wire->reader->err == REDIS_ERR_OOM)
                return error_set(
                        &wire->error, -EMSGSIZE, "%s: a reply of more than %u elements", text, REPLY_ELEMENTS_MAX);
        return error_set(&wire->error, -EPROTO, "%s does not speak Redis' protocol: %s", text, wire->reader->errstr);
}

/* Hands over what is complete.  0, or what is wrong with the bytes. */
static int parse(struct wire *wire, const char *data, size_t size)
{
        wire->reply_bytes += size;
        if (redisReaderFeed(wire->reader, data, size) != REDIS_OK)
                return parse_failed(wire);
        while (!wire->is_closing) {
                redisReply *reply = NULL;
                if (redisReaderGetReply(wire->reader, (void **)&reply) != REDIS_OK)
                        return parse_failed(wire);
                if (!reply)
                        break;
                wire->reply_bytes = wire->reader->len - wire->reader->pos;
                wire->reply_elements = 0;
                wire->events->reply(wire, reply);
        }
        char text[ADDRESS_TEXT_MAX];
        if (wire->reply_bytes > REPLY_BYTES_MAX)
                return error_set(&wire->error, -EMSGSIZE, "%s: a reply of more than %u bytes",
                        address_format(&wire->address, text), REPLY_BYTES_MAX);
        return 0;
}

/* 0, or a negative errno with the text. */
static int read_some(struct wire *wire)
{
        char data[READ_BYTES];
        char text[ADDRESS_TEXT_MAX];
        for (int i = 0; i < READS_MAX && !wire->is_closing; i++) {
                ssize_t n = recv(wire->fd, data, sizeof(data), 0);
                if (n < 0 && (errno == EAGAIN || errno == EINTR))
                        return 0;
                if (n < 0)
                        return error_set(&wire->error, -ECONNRESET, "%s: %s", address_format(&wire->address, text),
                                strerror(errno));
                if (n == 0)
                        return error_set(&wire->error, -ECONNRESET, "%s closed the connection",
                                address_format(&wire->address, text));
                int r = parse(wire, data, (size_t)n);
                if (r || (size_t)n < sizeof(data))
                        return r;
        }
        return 0;
}

/* --- commands out ------------------------------------------------------------------------------------------------- */

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

void wire_put_count(struct wire *wire, int argc)
{
        put_number(&wire->out, '*', (size_t)argc);
}

void wire_put_word(struct wire *wire, const char *word, size_t size)
{
        put_number(&wire->out, '$', size);
        buffer_put(&wire->out, word, size);
        buffer_put(&wire->out, "\r\n", 2);
}

void wire_put(struct wire *wire, int argc, const char *const *argv, const size_t *argv_size)
{
        wire_put_count(wire, argc);
        for (int i = 0; i < argc; i++)
                wire_put_word(wire, argv[i], argv_size[i]);
}

static void on_poll(uv_poll_t *poll, int status, int events);

static void want_write(struct wire *wire, bool is_wanted)
{
        if (wire->is_polling_write == is_wanted)
                return;
        wire->is_polling_write = is_wanted;
        (void)uv_poll_start(wire->poll, UV_READABLE | (is_wanted ? UV_WRITABLE : 0), on_poll);
}

/* A server that is always a little behind must not make us keep all that it ever got. */
static void forget_sent(struct wire *wire)
{
        if (wire->out_sent < OUT_KEPT_MAX || wire->out_sent < wire->out.size / 2)
                return;
        wire->out.size -= wire->out_sent;
        memmove(wire->out.data, wire->out.data + wire->out_sent, wire->out.size);
        wire->out_sent = 0;
}

void wire_flush(struct wire *wire)
{
        if (!wire->is_up || !wire->poll || !wire->out.size)
                return;
        ssize_t n = send(wire->fd, wire->out.data + wire->out_sent, wire->out.size - wire->out_sent, MSG_NOSIGNAL);
        /* What is wrong with the socket is said by the next read. */
        if (n > 0)
                wire->out_sent += (size_t)n;
        if (wire->out_sent < wire->out.size) {
                forget_sent(wire);
                want_write(wire, n >= 0 || errno == EAGAIN || errno == EINTR || errno == ENOBUFS);
                return;
        }
        if (!wire->is_settled)
                explicit_bzero(wire->out.data, wire->out.size);
        wire->out_sent = 0;
        if (wire->out.room > OUT_KEPT_MAX)
                buffer_free(&wire->out);
        else
                buffer_clear(&wire->out);
        want_write(wire, false);
}

/* --- connecting --------------------------------------------------------------------------------------------------- */

static void connect_next(struct wire *wire);

/* Whoever connects to a free port of this machine may meet themselves, and would take their words for answers. */
static bool is_own_echo(int fd)
{
        struct sockaddr_storage here = { 0 }, there = { 0 };
        socklen_t here_size = sizeof(here), there_size = sizeof(there);
        if (getsockname(fd, (struct sockaddr *)&here, &here_size) ||
                getpeername(fd, (struct sockaddr *)&there, &there_size))
                return false;
        return here.ss_family != AF_UNIX && here_size == there_size && !memcmp(&here, &there, here_size);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
        struct wire *wire = poll->data;
        if (!wire->is_up) {
                int failure = 0;
                socklen_t size = sizeof(failure);
                if (getsockopt(wire->fd, SOL_SOCKET, SO_ERROR, &failure, &size))
                        failure = errno;
                else if (!failure && is_own_echo(wire->fd))
                        failure = ECONNREFUSED;
                if (failure) {
                        char text[ADDRESS_TEXT_MAX];
                        wire->failed = error_set(&wire->error, -failure, "%s: %s", address_format(&wire->address, text),
                                strerror(failure));
                        drop_socket(wire);
                        connect_next(wire);
                        return;
                }
                wire->is_up = true;
                wire->is_polling_write = true;
                want_write(wire, false);
                wire->events->up(wire);
                return;
        }
        int r = 0;
        /* Before writing: what a server says before it hangs up is worth more than the broken pipe. */
        if (status < 0 || events & UV_READABLE)
                r = read_some(wire);
        if (wire->is_closing)
                return;
        if (r)
                go_down(wire, r);
        else if (events & UV_WRITABLE)
                wire_flush(wire);
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

/* 0: a connection is on its way. */
static int connect_to(struct wire *wire, const struct sockaddr *to, socklen_t size)
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
        wire->poll = malloc(sizeof(*wire->poll));
        if (!wire->poll)
                abort();
        r = uv_poll_init(wire->loop, wire->poll, fd);
        if (r) {
                free(wire->poll);
                wire->poll = NULL;
                goto close_fd;
        }
        wire->poll->data = wire;
        wire->fd = fd;
        (void)uv_poll_start(wire->poll, UV_WRITABLE, on_poll);
        return 0;
close_fd:
        (void)close(fd);
        return r;
}

static void connect_next(struct wire *wire)
{
        while (wire->next_found) {
                struct addrinfo *at = wire->next_found;
                wire->next_found = at->ai_next;
                int r = connect_to(wire, at->ai_addr, at->ai_addrlen);
                if (!r)
                        return;
                char text[ADDRESS_TEXT_MAX];
                wire->failed = error_set(&wire->error, r, "%s: %s", address_format(&wire->address, text), strerror(-r));
        }
        fail_later(wire, wire->failed);
}

static void on_resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *found)
{
        struct lookup *lookup = (struct lookup *)request;
        struct wire *wire = lookup->wire;
        free(lookup);
        if (!wire) {
                uv_freeaddrinfo(found);
                return;
        }
        wire->lookup = NULL;
        if (status) {
                fail_later(wire,
                        error_set(&wire->error, -EHOSTUNREACH, "%s: %s", wire->address.host, uv_strerror(status)));
                return;
        }
        wire->found = wire->next_found = found;
        connect_next(wire);
}

static void resolve(struct wire *wire)
{
        struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC };
        char port[8];
        (void)snprintf(port, sizeof(port), "%u", wire->address.port);
        struct lookup *lookup = calloc(1, sizeof(*lookup));
        if (!lookup)
                abort();
        lookup->wire = wire;
        int r = uv_getaddrinfo(wire->loop, &lookup->request, on_resolved, wire->address.host, port, &hints);
        if (r) {
                free(lookup);
                fail_later(wire, error_set(&wire->error, -EHOSTUNREACH, "%s: %s", wire->address.host, uv_strerror(r)));
                return;
        }
        wire->lookup = lookup;
}

static void connect_unix(struct wire *wire)
{
        struct sockaddr_un to = { .sun_family = AF_UNIX };
        const char *path = wire->address.host;
        int r = -ENAMETOOLONG;
        if (strlen(path) < sizeof(to.sun_path)) {
                memcpy(to.sun_path, path, strlen(path) + 1);
                r = connect_to(wire, (struct sockaddr *)&to, sizeof(to));
        }
        if (r)
                fail_later(wire, error_set(&wire->error, r, "%s: %s", path, strerror(-r)));
}

void wire_open(struct wire *wire, uv_loop_t *loop, const struct address *address, uint64_t timeout_ms,
        const struct wire_events *events)
{
        *wire = (struct wire){ .address = *address, .events = events, .loop = loop, .timeout_ms = timeout_ms };
        wire->reader = redisReaderCreate();
        if (!wire->reader)
                abort();
        wire->functions = *wire->reader->fn;
        wire->create_array = wire->functions.createArray;
        wire->functions.createArray = create_array;
        wire->reader->fn = &wire->functions;
        wire->reader->privdata = wire;
        (void)uv_timer_init(loop, &wire->timer);
        wire->timer.data = wire;
        uv_update_time(loop);
        (void)uv_timer_start(&wire->timer, on_timer, timeout_ms, 0);
        if (address->port)
                resolve(wire);
        else
                connect_unix(wire);
}

void wire_settled(struct wire *wire)
{
        wire->is_settled = true;
        (void)uv_timer_stop(&wire->timer);
}

static void on_closed(uv_handle_t *handle)
{
        struct wire *wire = handle->data;
        if (wire->out.data)
                explicit_bzero(wire->out.data, wire->out.room);
        buffer_free(&wire->out);
        uv_freeaddrinfo(wire->found);
        redisReaderFree(wire->reader);
        wire->events->closed(wire);
}

void wire_close(struct wire *wire)
{
        if (wire->is_closing)
                return;
        wire->is_closing = true;
        drop_socket(wire);
        if (wire->lookup) {
                wire->lookup->wire = NULL;
                (void)uv_cancel((uv_req_t *)&wire->lookup->request);
        }
        uv_close((uv_handle_t *)&wire->timer, on_closed);
}
