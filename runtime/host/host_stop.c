/* host_stop.c: the end of a host that cannot say goodbye: its store does not answer. */
#include <errno.h>
#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "host/host_parts.h"

/* After the cut, and after any lease that we have: from then on nobody waits for us. */
#define SLACK_MS 500

void host_set_patience(struct host *h)
{
        uint64_t end_ms = clock_boot_ms() + h->limits.ttl_ms + SLACK_MS;
        if (end_ms < h->give_up_ms)
                h->give_up_ms = end_ms;
}

void host_give_up(struct host *h)
{
        uint32_t shards = 0;
        uint64_t outcomes = 0;
        h->give_up_ms = UINT64_MAX;
        if (h->has_given_up)
                return;
        for (uint32_t i = 0; i < h->shards.count; i++) {
                const struct shard *s = &h->shards.list[i].shard;
                shards += s->state != SHARD_AWAY || s->is_calling;
                outcomes += s->ended_count + shard_telling_count(s);
        }
        if (!shards)
                return;
        h->has_given_up = true;
        h->status = error_set(&h->error, -EIO,
                "stopped without a word from the store: %" PRIu32 " shards were not released (their leases end by "
                "themselves), and %" PRIu64 " outcomes were not told (those tasks will run again)",
                shards, outcomes);
        log_event(LEVEL_ERROR, "gave-up", "shards=%" PRIu32 " outcomes=%" PRIu64, shards, outcomes);
}
