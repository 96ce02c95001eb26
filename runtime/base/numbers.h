/* numbers.h: the smaller and the larger of two numbers. */
#ifndef QUIVER_BASE_NUMBERS_H
#define QUIVER_BASE_NUMBERS_H

#include <stdint.h>

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
        return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
        return a > b ? a : b;
}

#endif
