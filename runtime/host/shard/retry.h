/* retry.h: what follows from how a task ended: done, once more, later, never again. */
#ifndef QUIVER_HOST_SHARD_RETRY_H
#define QUIVER_HOST_SHARD_RETRY_H

#include "config/config.h"
#include "host/pool/pool_io.h"
#include "host/shard/pending_outcome.h"
#include "host/shard/window.h"

enum retry_verdict {
        VERDICT_OUTCOME, /* tell the store: *ret_pending */
        VERDICT_AGAIN,   /* run it again when its pool takes tasks; nothing to record */
};

/* `random` is a fraction in [0, 1). */
enum retry_verdict retry_judge(const struct handler_config *handler, const struct claimed *claimed,
        const struct settled *settled, double random, struct pending_outcome **ret_pending);

/* What follows for one that is TRUST_DIED_ALONE: it is interrupted, at no cost, and does not run again soon.  Nobody
 * saw what its host died of; only a runner's death that its host has seen is a crash. */
struct pending_outcome *retry_died_alone(const struct claimed *claimed);

/* The delay before attempt number `failed` + 1, after `failed` failures. */
uint64_t retry_delay_ms(const struct retry_config *retry, uint32_t failed, double random);

#endif
