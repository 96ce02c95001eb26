/* ring_clock.h: the clock of a test of the ring, which can step in when a seat reads it.  One file of a program
 * includes it. */
#ifndef QUIVER_TESTS_RING_CLOCK_H
#define QUIVER_TESTS_RING_CLOCK_H

#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A seat reads the clock between winning its cells and starting the last of them: a test can step in there. */
static void (*on_clock)(void);
/* Where a test is about how long something took, the time stands still: a busy machine takes any time. */
static bool is_time_still;

int clock_gettime(clockid_t clock, struct timespec *ret)
{
        void (*step)(void) = on_clock;
        on_clock = NULL;
        if (step)
                step();
        if (is_time_still) {
                *ret = (struct timespec){ .tv_sec = 1000 };
                return 0;
        }
        return (int)syscall(SYS_clock_gettime, clock, ret);
}

#endif
