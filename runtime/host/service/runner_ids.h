/* runner_ids.h: unique ids for a host's runners: a runner gets a block of ids at a time, so most calls of next_id need
 * no host. */
#ifndef QUIVER_HOST_SERVICE_RUNNER_IDS_H
#define QUIVER_HOST_SERVICE_RUNNER_IDS_H

#include "coord/id_source.h"
#include "host/pool/pool_call.h"

/* Set by the caller before services_open(). */
struct runner_ids_options {
        const struct id_layout *layout; /* of the app */
        uint32_t fixed;                 /* the host's slot, or SLOT_ANY */
        uint64_t horizon_ms;
        const char *host; /* its name */
};

struct runner_ids {
        struct id_source source;
        bool is_open;
};

void runner_ids_open(struct runner_ids *ids, struct coord *coord, const struct runner_ids_options *options,
        const char *nonce, uint64_t session);
void runner_ids_free(struct runner_ids *ids);
/* Answers the call with the first id and RING_IDS(count, step). call->number is the most it may get. */
void runner_ids_take(struct runner_ids *ids, struct pool_call *call);

#endif
