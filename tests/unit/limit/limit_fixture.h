/* limit_fixture.h: the amounts and times that the tests of limits share. */
#ifndef QUIVER_TESTS_UNIT_LIMIT_FIXTURE_H
#define QUIVER_TESTS_UNIT_LIMIT_FIXTURE_H

#include "host/limit/limit.h"

#define TTL_MS   UINT64_C(1000)
#define GRACE_MS UINT64_C(200)

static inline struct limit_amount rate_of(uint64_t rate, uint64_t burst)
{
        return (struct limit_amount){ .version = 1, .rate = rate, .per_ms = 1000, .burst = burst };
}

static inline struct limit_amount at_once(uint64_t concurrency)
{
        return (struct limit_amount){ .version = 1, .concurrency = concurrency };
}

#endif
