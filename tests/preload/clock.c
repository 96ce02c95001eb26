/* Loaded into a redis-server by the contract suite: its wall clock stands still and shows what the test says.  What
 * Redis measures by the monotonic clock goes on. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* Milliseconds since 1970, in the file that $QUIVER_TEST_CLOCK names; 0: the machine's, which servers need to find each
 * other. */
static const volatile uint64_t *wall_ms;

__attribute__((constructor)) static void clock_open(void)
{
        const char *path = getenv("QUIVER_TEST_CLOCK");
        int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        void *map = fd >= 0 ? mmap(NULL, sizeof(*wall_ms), PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
        if (fd >= 0)
                (void)close(fd);
        if (map == MAP_FAILED)
                abort();
        wall_ms = map;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
        (void)zone;
        uint64_t shown_ms = *wall_ms;
        if (!shown_ms) {
                struct timespec real;
                (void)clock_gettime(CLOCK_REALTIME, &real);
                now->tv_sec = real.tv_sec;
                now->tv_usec = real.tv_nsec / 1000;
                return 0;
        }
        now->tv_sec = (time_t)(shown_ms / 1000);
        now->tv_usec = (suseconds_t)(shown_ms % 1000 * 1000);
        return 0;
}
