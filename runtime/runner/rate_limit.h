/* rate_limit.h: at most N per second, with a burst of at most N.  Any thread, no lock. */
#ifndef QUIVER_RUNNER_RATE_LIMIT_H
#define QUIVER_RUNNER_RATE_LIMIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/numbers.h"

/* A token bucket, stored as the time at which it will be full again if no more is taken.  It lacks one token for every
 * `token_ns` between now and that time. */
struct rate_limit {
        uint64_t token_ns; /* 0: no limit */
        _Atomic uint64_t full_at_ns;
};

/* `per_second` = 0: no limit. */
static inline void rate_limit_init(struct rate_limit *b, uint32_t per_second)
{
        b->token_ns = per_second ? NS_PER_S / per_second : 0;
        atomic_init(&b->full_at_ns, 0);
}

/* Takes a token; false if there is none.  `now_ns` must come from a clock that does not step. */
static inline bool rate_limit_take(struct rate_limit *b, uint64_t now_ns)
{
        uint64_t full_at = atomic_load_explicit(&b->full_at_ns, memory_order_relaxed);
        uint64_t then;
        do {
                then = max_u64(full_at, now_ns) + b->token_ns;
                if (then > now_ns + NS_PER_S)
                        return false;
        } while (!atomic_compare_exchange_weak_explicit(
                &b->full_at_ns, &full_at, then, memory_order_relaxed, memory_order_relaxed));
        return true;
}

#endif
