/* shard_load.h: how much seat time the tasks of one shard take, as its owner measures it.  Plain data, no clock.
 *
 * The host adds each call that has ended and takes a sample every few seconds.  The mean is over about
 * SHARD_LOAD_MEAN_MS; of a shard that was owned for less time, over that time. */
#ifndef QUIVER_HOST_SHARD_SHARD_LOAD_H
#define QUIVER_HOST_SHARD_SHARD_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#define SHARD_LOAD_MEAN_MS 20000u

struct shard_load {
        uint64_t used_ns; /* by calls that ended since the last sample */
        uint64_t call_ns; /* when the call that was added last had started: the tasks of a batch share one call */
        uint32_t mean;    /* in thousandths of a seat */
        uint32_t seen_ms; /* that the mean is over */
        bool is_measured; /* it was owned at the last sample */
};

/* A call has ended that started at that time and took so long; 0: it took no seat of this host. */
void shard_load_add(struct shard_load *l, uint64_t started_ns, uint64_t took_ns);
/* So much time has passed since the last sample; `is_held`: the shard is owned by this host. */
void shard_load_sample(struct shard_load *l, uint64_t passed_ms, bool is_held);

#endif
