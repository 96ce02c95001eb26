/* futex.h: waiting on a word of shared memory, and waking the waiters. */
#ifndef QUIVER_RING_FUTEX_H
#define QUIVER_RING_FUTEX_H

#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Sleeps while *word == seen; a NULL timeout means for ever.  May wake spuriously. */
static inline void futex_wait(_Atomic uint32_t *word, uint32_t seen, const struct timespec *timeout)
{
        (void)syscall(SYS_futex, word, FUTEX_WAIT, seen, timeout, NULL, 0);
}

static inline void futex_wake(_Atomic uint32_t *word, int count)
{
        (void)syscall(SYS_futex, word, FUTEX_WAKE, count, NULL, NULL, 0);
}

#endif
