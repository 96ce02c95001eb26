/* A thread that serves one connection after the other, one request each. */
#include "http_fake.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct http_fake {
        int listener;
        uint16_t port;
        pthread_t thread;
        atomic_bool is_ending;
        atomic_uint asked;
        const struct http_fake_line *lines;
};

/* The head and, as far as it says so, the body. */
static bool read_request(int fd, char *text, size_t size)
{
        size_t got = 0;
        struct timeval patience = { .tv_sec = 2 };
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
        while (got < size - 1) {
                ssize_t n = recv(fd, text + got, size - 1 - got, 0);
                if (n <= 0)
                        return false;
                got += (size_t)n;
                text[got] = 0;
                const char *end = strstr(text, "\r\n\r\n"), *length = strcasestr(text, "Content-Length: ");
                size_t body = length ? strtoul(length + 16, NULL, 10) : 0;
                if (end && got >= (size_t)(end - text) + 4 + body)
                        return true;
        }
        return false;
}

static void answer(struct http_fake *fake, int fd)
{
        static char text[65536], reply[65536];
        if (!read_request(fd, text, sizeof(text)))
                return;
        (void)atomic_fetch_add(&fake->asked, 1);
        const char *path = strchr(text, ' ') + 1;
        const struct http_fake_line *line = fake->lines;
        while (line->path[0] && strncmp(path, line->path, strlen(line->path)) != 0)
                line++;
        int size = snprintf(reply, sizeof(reply),
                "HTTP/1.1 %d Told\r\nContent-Type: application/json\r\nContent-Length: %zu\r\nConnection: "
                "close\r\n\r\n%s",
                line->status, strlen(line->body), line->body);
        (void)send(fd, reply, (size_t)size, MSG_NOSIGNAL);
}

static void *run(void *self)
{
        struct http_fake *fake = self;
        while (!atomic_load(&fake->is_ending)) {
                struct pollfd wait = { .fd = fake->listener, .events = POLLIN };
                if (poll(&wait, 1, 10) <= 0)
                        continue;
                int fd = accept4(fake->listener, NULL, NULL, SOCK_CLOEXEC);
                if (fd >= 0) {
                        answer(fake, fd);
                        (void)close(fd);
                }
        }
        return NULL;
}

struct http_fake *http_fake_start(const struct http_fake_line *lines)
{
        struct http_fake *fake = calloc(1, sizeof(*fake));
        struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t size = sizeof(at);
        if (!fake)
                abort();
        fake->lines = lines;
        fake->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (bind(fake->listener, (struct sockaddr *)&at, sizeof(at)) || listen(fake->listener, 16) ||
                getsockname(fake->listener, (struct sockaddr *)&at, &size) ||
                pthread_create(&fake->thread, NULL, run, fake))
                abort();
        fake->port = ntohs(at.sin_port);
        return fake;
}

void http_fake_stop(struct http_fake *fake)
{
        atomic_store(&fake->is_ending, true);
        (void)pthread_join(fake->thread, NULL);
        (void)close(fake->listener);
        free(fake);
}

uint16_t http_fake_port(const struct http_fake *fake)
{
        return fake->port;
}

unsigned http_fake_asked(const struct http_fake *fake)
{
        return atomic_load(&fake->asked);
}
