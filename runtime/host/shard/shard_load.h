/* shard_load.h: how much seat time the tasks of one shard take, as its owner measures it.  Plain data, no clock.
 *
 * The host adds each call that has ended and takes a sample every few seconds.  The mean is over about
 * SHARD_LOAD_MEAN_MS, or over the time that the shard has been owned if that is shorter. */
#ifndef QUIVER_HOST_SHARD_SHARD_LOAD_H
#define QUIVER_HOST_SHARD_SHARD_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#define SHARD_LOAD_MEAN_MS 20000u

struct shard_load {
        uint64_t used_ns; /* seat time of calls that ended since the last sample */
        uint64_t call_ns; /* start of the call added last: the tasks of a batch share one call, which counts once */
        uint32_t mean;    /* in thousandths of a seat */
        uint32_t seen_ms; /* the period that the mean covers */
        bool is_measured; /* the shard was owned at the last sample */
};

/* Adds a call that has ended; took_ns is 0 if it used no seat of this host. */
void shard_load_add(struct shard_load *l, uint64_t started_ns, uint64_t took_ns);
/* Takes a sample, passed_ms after the last one; `is_held`: this host owns the shard. */
void shard_load_sample(struct shard_load *l, uint64_t passed_ms, bool is_held);

#endif
