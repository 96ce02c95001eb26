/* predecessor.h: ends what the previous host of this name left behind on this machine: its leases and its session.
 *
 * Its guard would have done that, had it not been killed, too: service managers kill whatever is left of a service.
 * Only a host that holds both locks of the state folder (state_locks.h) may do it: then no runner of the predecessor
 * lives, and nothing that it started still works on a task. */
#ifndef QUIVER_HOST_PREDECESSOR_H
#define QUIVER_HOST_PREDECESSOR_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "coord/coord.h"
#include "guard/lease_returns.h"
#include "host/last_run.h"
#include "store/admin.h"
#include "store/store.h"

struct predecessor {
        /* Set by the caller. */
        const struct last_run *run;
        struct store *store;
        uv_loop_t *loop;
        struct coord_options coord; /* how its session is ended */
        uint64_t ttl_ms;
        void (*done)(void *self);
        void *self;

        uint64_t since_ms;
        struct store_count count;
        struct lease_returns returns;
        struct coord_end_session end;
};

/* First the leases, then the session, as a guard does.  done() is called on the loop, once, never inside.  What fails
 * is logged, and ends by itself in time. */
void predecessor_end(struct predecessor *p);

#endif
