/* predecessor.h: ends what the previous host of this name left behind on this machine: its leases and its session.
 *
 * Usually the guard does this, but a service manager kills the guard together with its host.  Only a host that holds
 * both locks of the state folder (state_locks.h) may do it: then no runner or other process of the predecessor is
 * alive. */
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
        struct coord_options coord; /* for ending its session */
        uint64_t ttl_ms;
        void (*done)(void *self);
        void *self;

        uint64_t since_ms;
        struct store_count count;
        struct lease_returns returns;
        struct coord_end_session end;
};

/* Ends the leases, then the session, as a guard does.  Calls done() once, on the loop, never from inside this call.
 * Failures are logged: leases and session then expire. */
void predecessor_end(struct predecessor *p);

#endif
