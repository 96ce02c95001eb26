/* clock.h: the time, from two clocks.
 *
 * Leases, deadlines and delays are measured with clock_boot_ns(): that clock runs on while the machine is suspended and
 * never steps.  Wall time is only shown to people. */
#ifndef QUIVER_BASE_CLOCK_H
#define QUIVER_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S  UINT64_C(1000000000)

/* CLOCK_BOOTTIME.  The vDSO answers it without a system call. */
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

/* CLOCK_REALTIME, since 1970. */
static inline uint64_t clock_wall_ns(void)
{
        struct timespec t;
        (void)clock_gettime(CLOCK_REALTIME, &t);
        return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static inline uint64_t clock_wall_ms(void)
{
        return clock_wall_ns() / NS_PER_MS;
}

#endif
