/* clock.h: the time, in one unit and from two clocks.
 *
 * Whatever measures a lease, a deadline or a delay uses clock_boot_ns(): it goes on while the machine sleeps and never
 * steps.  Wall time is for people only. */
#ifndef QUIVER_BASE_CLOCK_H
#define QUIVER_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S  UINT64_C(1000000000)

/* CLOCK_BOOTTIME; a vDSO call, no system call. */
static inline uint64_t clock_boot_ns(void)
{
        struct timespec t;
        (void)clock_gettime(CLOCK_BOOTTIME, &t);
        return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static inline uint64_t clock_boot_ms(void)
{
        return clock_boot_ns() / NS_PER_MS;
}

/* CLOCK_REALTIME in milliseconds since 1970. */
static inline uint64_t clock_wall_ms(void)
{
        struct timespec t;
        (void)clock_gettime(CLOCK_REALTIME, &t);
        return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / NS_PER_MS;
}

#endif
