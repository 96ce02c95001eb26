#include "base/histogram.h"

#define MS UINT64_C(1000000)
#define S  (1000 * MS)

const uint64_t histogram_bounds[HISTOGRAM_BOUNDS + 1] = { MS / 10, MS / 4, MS / 2, 1 * MS, 5 * MS / 2, 5 * MS, 10 * MS,
        25 * MS, 50 * MS, 100 * MS, 250 * MS, 500 * MS, 1 * S, 5 * S / 2, 5 * S, 10 * S, 30 * S, 60 * S, 300 * S,
        1800 * S, 7200 * S, UINT64_MAX };

const uint8_t histogram_below[64] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 4, 5, 6, 7, 8, 9,
        10, 11, 12, 13, 13, 14, 15, 16, 17, 18, 18, 18, 19, 19, 20, 20, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21,
        21, 21, 21, 21, 21, 21, 21, 21, 21 };

uint64_t histogram_count(const struct histogram *h)
{
        uint64_t count = 0;
        for (uint32_t i = 0; i <= HISTOGRAM_BOUNDS; i++)
                count += h->counts[i];
        return count;
}

void histogram_join(struct histogram *h, const struct histogram *more)
{
        for (uint32_t i = 0; i <= HISTOGRAM_BOUNDS; i++)
                h->counts[i] += more->counts[i];
        h->sum_s += more->sum_s;
}

struct histogram histogram_since(const struct histogram *now, const struct histogram *before)
{
        struct histogram since = { .sum_s = now->sum_s > before->sum_s ? now->sum_s - before->sum_s : 0 };
        /* A count shrinks when a handler was removed with its counts. */
        for (uint32_t i = 0; i <= HISTOGRAM_BOUNDS; i++)
                since.counts[i] = now->counts[i] > before->counts[i] ? now->counts[i] - before->counts[i] : 0;
        return since;
}

double histogram_quantile(const struct histogram *h, double q)
{
        double wanted = q * (double)histogram_count(h);
        double below = 0;
        double lower = 0;
        for (uint32_t i = 0; i < HISTOGRAM_BOUNDS; i++) {
                double upper = (double)histogram_bounds[i] / 1e9;
                double count = (double)h->counts[i];
                if (count > 0 && below + count >= wanted)
                        return lower + (upper - lower) * (wanted > below ? (wanted - below) / count : 0);
                below += count;
                lower = upper;
        }
        return h->counts[HISTOGRAM_BOUNDS] ? lower : 0;
}
