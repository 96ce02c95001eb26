/* Loaded into processes of a chaos run: the wall clock that they see steps when the run says so, and what they connect
 * to on this machine is reached by a detour, through a proxy that can break.  So every link between any two can be
 * broken, also to servers whose addresses are learned from other servers.
 *
 * $QUIVER_TEST_STEP names a file with one int64_t: milliseconds that their wall clock is ahead.
 * $QUIVER_TEST_DETOURS names a file with 65536 uint16_t: for each port, the one to connect to in its place; 0: itself.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *step_ms;
static const volatile uint16_t *detours;
static int (*next_connect)(int fd, const struct sockaddr *address, socklen_t size);

static const void *map(const char *variable, size_t size)
{
        const char *path = getenv(variable);
        if (!path)
                return NULL;
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        void *found = fd >= 0 ? mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
        if (fd >= 0)
                (void)close(fd);
        return found == MAP_FAILED ? NULL : found;
}

__attribute__((constructor)) static void world_open(void)
{
        step_ms = map("QUIVER_TEST_STEP", sizeof(*step_ms));
        detours = map("QUIVER_TEST_DETOURS", 65536 * sizeof(*detours));
        *(void **)&next_connect = dlsym(RTLD_NEXT, "connect");
}

/* --- the clock --- */

int clock_gettime(clockid_t clock, struct timespec *now)
{
        /* Not by dlsym(): others ask for the time before we are set up. */
        int r = (int)syscall(SYS_clock_gettime, clock, now);
        if (r || !step_ms || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE))
                return r;
        int64_t ns = now->tv_nsec + *step_ms % 1000 * 1000000;
        now->tv_sec += *step_ms / 1000 + (ns >= 1000000000) - (ns < 0);
        now->tv_nsec = ns >= 1000000000 ? ns - 1000000000 : ns < 0 ? ns + 1000000000 : ns;
        return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
        struct timespec shown;
        (void)zone;
        (void)clock_gettime(CLOCK_REALTIME, &shown);
        now->tv_sec = shown.tv_sec;
        now->tv_usec = shown.tv_nsec / 1000;
        return 0;
}

time_t time(time_t *ret_now)
{
        struct timespec shown;
        (void)clock_gettime(CLOCK_REALTIME, &shown);
        if (ret_now)
                *ret_now = shown.tv_sec;
        return shown.tv_sec;
}

/* --- the network --- */

int connect(int fd, const struct sockaddr *address, socklen_t size)
{
        /* A port is at the same place in both families; Java connects to IPv4 addresses with IPv6 sockets. */
        union {
                struct sockaddr any;
                struct sockaddr_in in;
                struct sockaddr_in6 in6;
        } to;
        bool is_ip = address->sa_family == AF_INET || address->sa_family == AF_INET6;
        if (detours && is_ip && size >= sizeof(to.in) && size <= sizeof(to)) {
                memcpy(&to, address, size);
                uint16_t port = detours[ntohs(to.in.sin_port)];
                if (port) {
                        to.in.sin_port = htons(port);
                        return next_connect(fd, &to.any, size);
                }
        }
        return next_connect(fd, address, size);
}
