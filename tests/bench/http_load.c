/* Submits over HTTP, as a program with plain sockets would.  bench.py calls it.
 *
 *         http_load PORT TOKEN single CONNECTIONS [OPTIONS]   one task a request, as many connections; prints seconds
 *         http_load PORT TOKEN lines [OPTIONS]                lines of JSON in one request; prints seconds
 *         http_load PORT TOKEN wait [OPTIONS]                 one after the other, each waits for its outcome; prints
 * ms http_load PORT TOKEN slow CONNECTIONS               a byte of a head every second on each; says "ready"
 *
 * The options are those of load/load.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "load/load.h"

#define CONNECTIONS_MAX 1024u
#define REQUEST_MAX     65536u
#define LINES_STEP      200u

struct link {
        int fd;
        char answer[8192];
        size_t size;
};

static unsigned short port;
static const char *token;

static int connect_to(void)
{
        struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
        int one = 1;
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
                load_die("connect", strerror(errno));
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        return fd;
}

static void send_all(int fd, const char *data, size_t size)
{
        while (size) {
                ssize_t sent = write(fd, data, size);
                if (sent < 0)
                        load_die("write", strerror(errno));
                data += sent;
                size -= (size_t)sent;
        }
}

static void post(int fd, const struct load *load, unsigned number, const char *more)
{
        static char request[REQUEST_MAX];
        char key[LOAD_KEY_SIZE];
        uint32_t shard;
        (void)load_key(load, number, key, &shard);
        int size = snprintf(request, sizeof(request),
                "POST /v1/tasks/noop?key=%s%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
                "Content-Length: %u\r\n\r\n",
                key, more, token, load->payload_bytes);
        if (size < 0 || (size_t)size + load->payload_bytes > sizeof(request))
                load_die("--payload", "is too long for this program");
        memcpy(request + size, load_payload(load, number), load->payload_bytes);
        send_all(fd, request, (size_t)size + load->payload_bytes);
}

/* Reads what there is; true: a whole answer, which must be `2xx`, was there and is taken. */
static bool take_answer(struct link *link)
{
        ssize_t got = read(link->fd, link->answer + link->size, sizeof(link->answer) - 1 - link->size);
        if (got <= 0)
                load_die("read", got ? strerror(errno) : "the server has closed the connection");
        link->size += (size_t)got;
        link->answer[link->size] = 0;
        char *end = strstr(link->answer, "\r\n\r\n");
        char *length = end ? strstr(link->answer, "Content-Length: ") : NULL;
        if (!length)
                return false;
        size_t whole = (size_t)(end + 4 - link->answer) + strtoul(length + 16, NULL, 10);
        if (strncmp(link->answer, "HTTP/1.1 2", 10) != 0)
                load_die("answer", link->answer);
        if (link->size < whole)
                return false;
        link->size = 0;
        return true;
}

static void run_single(const struct load *load, unsigned connections)
{
        static struct link links[CONNECTIONS_MAX];
        struct epoll_event events[64];
        int loop = epoll_create1(EPOLL_CLOEXEC);
        unsigned sent = 0;
        unsigned taken = 0;
        for (unsigned i = 0; i < connections; i++) {
                links[i].fd = connect_to();
                struct epoll_event event = { .events = EPOLLIN, .data.ptr = &links[i] };
                (void)epoll_ctl(loop, EPOLL_CTL_ADD, links[i].fd, &event);
        }
        uint64_t start_ns = clock_boot_ns();
        for (unsigned i = 0; i < connections && sent < load->tasks; i++)
                post(links[i].fd, load, sent++, "");
        while (taken < load->tasks) {
                int count = epoll_wait(loop, events, 64, 30000);
                if (count <= 0)
                        load_die("wait", count ? strerror(errno) : "the server does not answer");
                for (int i = 0; i < count; i++) {
                        struct link *link = events[i].data.ptr;
                        if (!take_answer(link))
                                continue;
                        taken++;
                        if (sent < load->tasks)
                                post(link->fd, load, sent++, "");
                }
        }
        (void)printf("%.6f\n", load_seconds_since(start_ns));
}

static void drain(int fd, size_t *lines, bool is_patient)
{
        static char answer[65536];
        struct pollfd ready = { .fd = fd, .events = POLLIN };
        while (poll(&ready, 1, is_patient ? 30000 : 0) > 0) {
                ssize_t got = read(fd, answer, sizeof(answer));
                if (got < 0)
                        load_die("read", strerror(errno));
                if (!got)
                        return;
                for (char *at = answer; (at = memchr(at, '\n', (size_t)(answer + got - at))); at++)
                        (*lines)++;
        }
}

/* Every line of the answer is read, so that what was not stored would be noticed by who counts what is done. */
static void run_lines(const struct load *load)
{
        static char chunk[LINES_STEP * 512];
        int fd = connect_to();
        size_t lines = 0;
        uint64_t start_ns = clock_boot_ns();
        int size = snprintf(chunk, sizeof(chunk),
                "POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
                "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
                token);
        send_all(fd, chunk, (size_t)size);
        for (unsigned sent = 0; sent < load->tasks;) {
                size_t used = 0;
                char head[32];
                for (unsigned i = 0; i < LINES_STEP && sent < load->tasks; i++, sent++) {
                        char key[LOAD_KEY_SIZE];
                        uint32_t shard;
                        (void)load_key(load, sent, key, &shard);
                        used += (size_t)snprintf(chunk + used, sizeof(chunk) - used,
                                "{\"handler\": \"noop\", \"key\": \"%s\", \"payload\": \"%.*s\"}\n", key,
                                (int)load->payload_bytes, load_payload(load, sent));
                }
                send_all(fd, head, (size_t)snprintf(head, sizeof(head), "%zx\r\n", used));
                memcpy(chunk + used, "\r\n", 2);
                send_all(fd, chunk, used + 2);
                drain(fd, &lines, false);
        }
        send_all(fd, "0\r\n\r\n", 5);
        drain(fd, &lines, true);
        if (lines < load->tasks)
                load_die("lines", "not every line was answered");
        (void)printf("%.6f\n", load_seconds_since(start_ns));
}

static void run_wait(const struct load *load)
{
        struct link link = { .fd = connect_to() };
        uint64_t start_ns = clock_boot_ns();
        for (unsigned sent = 0; sent < load->tasks && load_due(load, sent, start_ns); sent++) {
                uint64_t sent_ns = clock_boot_ns();
                post(link.fd, load, sent, "&wait=30s");
                while (!take_answer(&link))
                        ;
                (void)printf("%.6f\n", (double)(clock_boot_ns() - sent_ns) / 1e6);
        }
}

/* Until it is killed.  A server may close what is too slow for it: then there is a new one. */
static void run_slow(unsigned connections)
{
        static const char head[] = "POST /v1/tasks/noop HTTP/1.1\r\nHost: localhost\r\nX-Slow: ";
        static int fds[CONNECTIONS_MAX];
        static size_t at[CONNECTIONS_MAX];
        for (unsigned i = 0; i < connections; i++)
                fds[i] = connect_to();
        (void)puts("ready");
        (void)fflush(stdout);
        for (;; (void)sleep(1)) {
                for (unsigned i = 0; i < connections; i++) {
                        char byte = at[i] < sizeof(head) - 1 ? head[at[i]++] : 'x';
                        if (send(fds[i], &byte, 1, MSG_NOSIGNAL) == 1)
                                continue;
                        (void)close(fds[i]);
                        fds[i] = connect_to();
                        at[i] = 0;
                }
        }
}

int main(int argc, char **argv)
{
        struct load load = { .tasks = 1, .keys = 10000, .shards = 64, .payload_bytes = 100, .step = 1 };
        const char *what = argc > 3 ? argv[3] : "";
        bool has_number = !strcmp(what, "single") || !strcmp(what, "slow");
        unsigned connections = has_number && argc > 4 ? (unsigned)strtoul(argv[4], NULL, 10) : 1;
        if (argc < 4 + has_number || !connections || connections > CONNECTIONS_MAX)
                load_die(
                        "usage", "http_load PORT TOKEN single|lines|wait|slow [CONNECTIONS] [OPTIONS]: see its source");
        port = (unsigned short)strtoul(argv[1], NULL, 10);
        token = argv[2];
        load_options(argc - 3 - has_number, argv + 3 + has_number, &load);
        if (!strcmp(what, "single"))
                run_single(&load, connections);
        else if (!strcmp(what, "lines"))
                run_lines(&load);
        else if (!strcmp(what, "wait"))
                run_wait(&load);
        else if (!strcmp(what, "slow"))
                run_slow(connections);
        else
                load_die(what, "is none of single, lines, wait, slow");
        return 0;
}
