/* histogram.h: how long things took, counted in buckets whose bounds are the same everywhere.
 *
 * Plain numbers of a fixed size: to count one duration costs a few comparisons and no memory. */
#ifndef QUIVER_BASE_HISTOGRAM_H
#define QUIVER_BASE_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BOUNDS 21u

/* Upper bounds of the buckets, in nanoseconds, in growing order: 0.1 ms to 2 hours.  A bucket includes its bound.  Each
 * is at least twice the one before.  The last one stands for "longer". */
extern const uint64_t histogram_bounds[HISTOGRAM_BOUNDS + 1];
/* How many of the bounds are below each power of two. */
extern const uint8_t histogram_below[64];

/* Zero-initialised is empty. */
struct histogram {
        uint64_t counts[HISTOGRAM_BOUNDS +
                        1]; /* each bucket's own, not those below it; the last is for what is longer */
        double sum_s;
};

static inline void histogram_add(struct histogram *h, uint64_t ns)
{
        /* At most one bound lies between two powers of two: no search, and no branch to be guessed wrongly. */
        uint32_t i = histogram_below[63 - __builtin_clzll(ns | 1)];
        h->counts[i + (ns > histogram_bounds[i])]++;
        h->sum_s += (double)ns * 1e-9;
}

uint64_t histogram_count(const struct histogram *h);
/* Adds what `more` has counted. */
void histogram_join(struct histogram *h, const struct histogram *more);
/* What was counted in `now` since it was `before`. */
struct histogram histogram_since(const struct histogram *now, const struct histogram *before);

/* The duration, in seconds, that the share `q` (0 to 1) of all does not exceed: evenly within its bucket, which is all
 * that is known.  What is in the last bucket counts as its lower bound.  0 if nothing was counted. */
double histogram_quantile(const struct histogram *h, double q);

#endif
