/* histogram.h: durations, counted in buckets with the same bounds everywhere.
 *
 * Plain numbers of a fixed size: counting a duration costs a few comparisons and no memory. */
#ifndef QUIVER_BASE_HISTOGRAM_H
#define QUIVER_BASE_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BOUNDS 21u

/* Upper bounds of the buckets, in nanoseconds, ascending: 0.1 ms to 2 hours.  A bucket includes its bound.  Each bound
 * is at least twice the one before.  The last one means "longer". */
extern const uint64_t histogram_bounds[HISTOGRAM_BOUNDS + 1];
/* For each power of two, how many bounds are below it. */
extern const uint8_t histogram_below[64];

/* Zero-initialised is empty. */
struct histogram {
        uint64_t counts[HISTOGRAM_BOUNDS + 1]; /* per bucket, not cumulative; the last bucket has longer durations */
        double sum_s;
};

static inline void histogram_add(struct histogram *h, uint64_t ns)
{
        /* At most one bound lies between two powers of two, so there is no search and no unpredictable branch. */
        uint32_t i = histogram_below[63 - __builtin_clzll(ns | 1)];
        h->counts[i + (ns > histogram_bounds[i])]++;
        h->sum_s += (double)ns * 1e-9;
}

uint64_t histogram_count(const struct histogram *h);
/* Adds the counts of `more`. */
void histogram_join(struct histogram *h, const struct histogram *more);
/* The counts of `now` minus those of `before`. */
struct histogram histogram_since(const struct histogram *now, const struct histogram *before);

/* The duration in seconds that the share `q` (0 to 1) of all durations does not exceed, interpolated within its bucket.
 * The last bucket counts as its lower bound.  0 if nothing was counted. */
double histogram_quantile(const struct histogram *h, double q);

#endif
