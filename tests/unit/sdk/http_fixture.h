/* http_fixture.h: an HTTP server in threads of the test, which answers with whatever bytes the test wants.
 *
 * The path says what it does:
 *   /raw          the request's body is the answer, byte for byte; then the connection is closed
 *   /ok           200 with the body "fine"; the connection stays open
 *   /show         200 with the request as it came; the connection stays open
 *   /hang         nothing, until the client goes
 *   /drip         a head, then one byte of body after the other, until the client goes
 *   /head         a head that never ends
 *   /gone         the connection is closed without an answer */
#ifndef QUIVER_HTTP_FIXTURE_H
#define QUIVER_HTTP_FIXTURE_H

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define HTTP_TEXT (1u << 21)

struct http_server {
        int fd;
        unsigned port;
        atomic_uint connections, requests;
        pthread_mutex_t lock;
        char last[4096]; /* the head of the latest request; under the lock */
};

struct http_peer {
        struct http_server *server;
        int fd;
};

static inline bool http_send(int fd, const void *data, size_t size)
{
        return send(fd, data, size, MSG_NOSIGNAL) == (ssize_t)size;
}

static inline bool http_print(int fd, const char *text)
{
        return http_send(fd, text, strlen(text));
}

static inline void http_wait_for_end(int fd)
{
        char byte;
        while (recv(fd, &byte, 1, 0) > 0)
                ;
}

/* Reads one request: head, NUL, body.  0: the client has gone. */
static inline size_t http_read(struct http_peer *peer, char *text, size_t *ret_body)
{
        size_t size = 0, want = 0;
        char *body = NULL;
        while (!body || size < want) {
                ssize_t n = recv(peer->fd, text + size, HTTP_TEXT - 1 - size, 0);
                if (n <= 0)
                        return 0;
                size += (size_t)n;
                text[size] = 0;
                if (!body && (body = strstr(text, "\r\n\r\n"))) {
                        body += 4;
                        const char *length = strcasestr(text, "\r\nContent-Length:");
                        want = (size_t)(body - text) + (length && length < body ? strtoul(length + 17, NULL, 10) : 0);
                }
        }
        body[-1] = 0;
        *ret_body = (size_t)(body - text);
        return size;
}

static inline bool http_show(int fd, const char *data, size_t size)
{
        char head[128];
        (void)snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", size);
        return http_print(fd, head) && http_send(fd, data, size);
}

/* Whether the connection stays open. */
static inline bool http_answer(struct http_peer *peer, const char *path, const char *text, size_t size, size_t body)
{
        static const char line[] = "X-More: and more and more and more and more\r\n";
        if (!strncmp(path, "/ok", 3))
                return http_show(peer->fd, "fine", 4);
        if (!strncmp(path, "/show", 5))
                return http_show(peer->fd, text, size);
        if (!strncmp(path, "/raw", 4))
                (void)http_send(peer->fd, text + body, size - body);
        if (!strncmp(path, "/hang", 5))
                http_wait_for_end(peer->fd);
        if (!strncmp(path, "/drip", 5) && http_print(peer->fd, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"))
                while (http_print(peer->fd, "x"))
                        (void)usleep(20000);
        if (!strncmp(path, "/head", 5) && http_print(peer->fd, "HTTP/1.1 200 OK\r\n"))
                while (http_print(peer->fd, line))
                        ;
        return false;
}

static inline void *http_serve(void *arg)
{
        struct http_peer *peer = arg;
        struct http_server *server = peer->server;
        char *text = malloc(HTTP_TEXT);
        size_t size, body;
        bool is_open = true;
        while (is_open && (size = http_read(peer, text, &body))) {
                const char *path = strchr(text, ' ') + 1;
                (void)pthread_mutex_lock(&server->lock);
                (void)snprintf(server->last, sizeof(server->last), "%s", text);
                (void)pthread_mutex_unlock(&server->lock);
                atomic_fetch_add(&server->requests, 1);
                is_open = http_answer(peer, path, text, size, body);
        }
        (void)shutdown(peer->fd, SHUT_WR);
        http_wait_for_end(peer->fd);
        (void)close(peer->fd);
        free(text);
        free(peer);
        return NULL;
}

static inline void *http_accept(void *arg)
{
        struct http_server *server = arg;
        for (;;) {
                struct http_peer *peer = malloc(sizeof(*peer));
                pthread_t thread;
                *peer = (struct http_peer){ .server = server, .fd = accept(server->fd, NULL, NULL) };
                if (peer->fd < 0) {
                        free(peer);
                        return NULL;
                }
                atomic_fetch_add(&server->connections, 1);
                (void)pthread_create(&thread, NULL, http_serve, peer);
                (void)pthread_detach(thread);
        }
}

/* A socket of loopback on a free port; listens if `backlog` is not 0. */
static inline int http_socket(int backlog, unsigned *ret_port)
{
        struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t size = sizeof(in);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (bind(fd, (struct sockaddr *)&in, sizeof(in)) < 0 || (backlog && listen(fd, backlog) < 0) ||
                getsockname(fd, (struct sockaddr *)&in, &size) < 0)
                abort();
        *ret_port = ntohs(in.sin_port);
        return fd;
}

static inline struct http_server *http_start(void)
{
        struct http_server *server = calloc(1, sizeof(*server));
        pthread_t thread;
        server->fd = http_socket(64, &server->port);
        (void)pthread_mutex_init(&server->lock, NULL);
        (void)pthread_create(&thread, NULL, http_accept, server);
        (void)pthread_detach(thread);
        return server;
}

#endif
