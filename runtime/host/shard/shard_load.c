#include "host/shard/shard_load.h"

#include "base/clock.h"
#include "base/numbers.h"
#include "host/membership/load.h"

/* A task's cost to host and runner besides its handle() call. */
#define TASK_NS UINT64_C(50000)
/* Calls are cut to this.  A call counts when it ends, so an hour-long one would be a peak; and a shard with such calls
 * moves badly, because a planned move waits for them. */
#define CALL_MAX_NS (10 * NS_PER_S)

void shard_load_add(struct shard_load *l, uint64_t started_ns, uint64_t took_ns)
{
        l->used_ns += TASK_NS;
        if (started_ns != l->call_ns)
                l->used_ns += min_u64(took_ns, CALL_MAX_NS);
        l->call_ns = started_ns;
}

void shard_load_sample(struct shard_load *l, uint64_t passed_ms, bool is_held)
{
        if (!is_held || !l->is_measured) {
                /* The time counted so far does not cover a whole interval. */
                *l = (struct shard_load){ .is_measured = is_held, .call_ns = l->call_ns };
                return;
        }
        if (!passed_ms)
                return;
        uint64_t now = min_u64(l->used_ns / 1000 / passed_ms, LOAD_MAX);
        uint64_t span_ms = min_u64(l->seen_ms + passed_ms, SHARD_LOAD_MEAN_MS);
        uint64_t part_ms = min_u64(passed_ms, span_ms);
        l->mean = (uint32_t)((now * part_ms + l->mean * (span_ms - part_ms)) / span_ms);
        l->seen_ms = (uint32_t)span_ms;
        l->used_ns = 0;
}
