/* A proxy with a thread: few connections, one poll(). */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy.h"

#define PAIRS_MAX 32
#define LOOK_MS   10

struct proxy {
        int listener;
        uint16_t port, to_port;
        pthread_t thread;
        atomic_bool is_held, is_mute, is_ending;
        atomic_uint cuts;                      /* asked for */
        atomic_uint split, cut_after, did_cut; /* 0: not wanted */
        atomic_uint pause_us;
        unsigned said[PAIRS_MAX]; /* bytes of the server */
        int fds[PAIRS_MAX][2];
        unsigned pairs;
};

static struct sockaddr_in loopback(uint16_t port)
{
        return (struct sockaddr_in){
                .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)
        };
}

static void drop(struct proxy *p, unsigned pair)
{
        (void)close(p->fds[pair][0]);
        (void)close(p->fds[pair][1]);
        p->pairs--;
        p->fds[pair][0] = p->fds[p->pairs][0];
        p->fds[pair][1] = p->fds[p->pairs][1];
        p->said[pair] = p->said[p->pairs];
}

static void take_in(struct proxy *p)
{
        struct sockaddr_in to = loopback(p->to_port);
        int from = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (from < 0 || p->pairs == PAIRS_MAX || connect(fd, (struct sockaddr *)&to, sizeof(to))) {
                if (from >= 0)
                        (void)close(from);
                (void)close(fd);
                return;
        }
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
        p->said[p->pairs] = 0;
        p->fds[p->pairs][0] = from;
        p->fds[p->pairs++][1] = fd;
}

/* False: one side has ended, or is to. */
static bool pass(struct proxy *p, unsigned pair, unsigned side)
{
        char bytes[65536];
        unsigned split = atomic_load(&p->split), cut_after = side ? atomic_load(&p->cut_after) : 0;
        size_t most = split ? split : sizeof(bytes);
        if (cut_after && p->said[pair] + most > cut_after)
                most = cut_after > p->said[pair] ? cut_after - p->said[pair] : 1;
        ssize_t n = recv(p->fds[pair][side], bytes, most, MSG_DONTWAIT);
        if (n <= 0 || send(p->fds[pair][!side], bytes, (size_t)n, MSG_NOSIGNAL) != n)
                return false;
        if (!side && atomic_load(&p->pause_us))
                (void)usleep(atomic_load(&p->pause_us));
        p->said[pair] += side ? (unsigned)n : 0;
        if (!cut_after || p->said[pair] < cut_after)
                return true;
        (void)atomic_fetch_add(&p->did_cut, 1);
        return false;
}

static void turn(struct proxy *p)
{
        struct pollfd polls[1 + 2 * PAIRS_MAX] = { { .fd = p->listener, .events = POLLIN } };
        unsigned count = 1;
        bool is_held = atomic_load(&p->is_held), is_mute = atomic_load(&p->is_mute);
        for (unsigned i = 0; i < p->pairs && !is_held; i++)
                for (unsigned side = 0; side < 2; side++)
                        polls[count++] =
                                (struct pollfd){ .fd = p->fds[i][side], .events = side && is_mute ? 0 : POLLIN };
        (void)poll(polls, count, LOOK_MS);
        /* From the last: dropping one moves the last into its place. */
        for (unsigned i = (count - 1) / 2; i-- > 0;)
                for (unsigned side = 0; side < 2; side++)
                        if (polls[1 + 2 * i + side].revents && !pass(p, i, side)) {
                                drop(p, i);
                                break;
                        }
        if (polls[0].revents)
                take_in(p);
}

static void *run(void *self)
{
        struct proxy *p = self;
        unsigned cuts = 0;
        while (!atomic_load(&p->is_ending)) {
                turn(p);
                if (atomic_load(&p->cuts) != cuts) {
                        cuts = atomic_load(&p->cuts);
                        while (p->pairs)
                                drop(p, 0);
                }
        }
        return NULL;
}

struct proxy *proxy_start(uint16_t to_port)
{
        struct proxy *p = calloc(1, sizeof(*p));
        struct sockaddr_in at = loopback(0);
        socklen_t size = sizeof(at);
        if (!p)
                abort();
        p->to_port = to_port;
        p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (bind(p->listener, (struct sockaddr *)&at, sizeof(at)) || listen(p->listener, PAIRS_MAX) ||
                getsockname(p->listener, (struct sockaddr *)&at, &size) || pthread_create(&p->thread, NULL, run, p))
                abort();
        p->port = ntohs(at.sin_port);
        return p;
}

void proxy_stop(struct proxy *p)
{
        atomic_store(&p->is_ending, true);
        (void)pthread_join(p->thread, NULL);
        while (p->pairs)
                drop(p, 0);
        (void)close(p->listener);
        free(p);
}

uint16_t proxy_port(const struct proxy *p)
{
        return p->port;
}

void proxy_cut(struct proxy *p)
{
        (void)atomic_fetch_add(&p->cuts, 1);
}

void proxy_split(struct proxy *p, unsigned bytes)
{
        atomic_store(&p->split, bytes);
}

void proxy_pause(struct proxy *p, unsigned us)
{
        atomic_store(&p->pause_us, us);
}

void proxy_cut_after(struct proxy *p, unsigned bytes)
{
        atomic_store(&p->cut_after, bytes);
}

unsigned proxy_cuts_after(const struct proxy *p)
{
        return atomic_load(&p->did_cut);
}

void proxy_mute(struct proxy *p, bool is_mute)
{
        atomic_store(&p->is_mute, is_mute);
}

void proxy_hold(struct proxy *p, bool is_held)
{
        atomic_store(&p->is_held, is_held);
}
