/* retry.h: decides what follows from a task's outcome: done, run again, retry later, or dead. */
#ifndef QUIVER_HOST_SHARD_RETRY_H
#define QUIVER_HOST_SHARD_RETRY_H

#include "config/config.h"
#include "host/pool/pool_io.h"
#include "host/shard/pending_outcome.h"
#include "host/shard/window.h"

enum retry_verdict {
        VERDICT_OUTCOME, /* record *ret_pending in the store */
        VERDICT_AGAIN,   /* run it again when its pool takes tasks; the store need not know */
};

/* `random` is a fraction in [0, 1), for the jitter. */
enum retry_verdict retry_judge(const struct handler_config *handler, const struct claimed *claimed,
        const struct settled *settled, double random, struct pending_outcome **ret_pending);

/* The outcome for a task with TRUST_DIED_ALONE: an interruption, at no cost, with a long delay.  Nobody saw why its
 * host died; only a runner's death that its host has seen counts as a crash. */
struct pending_outcome *retry_died_alone(const struct claimed *claimed);

/* The delay before attempt number `failed` + 1, after `failed` failures. */
uint64_t retry_delay_ms(const struct retry_config *retry, uint32_t failed, double random);

#endif
