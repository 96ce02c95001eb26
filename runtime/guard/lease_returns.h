/* lease_returns.h: gives back the leases of a host that is dead and has no runner left.
 *
 * Whoever uses it knows that: the guard, which has killed the runners, or the host that was started next and found no
 * process of its predecessor (host/predecessor.h). */
#ifndef QUIVER_GUARD_LEASE_RETURNS_H
#define QUIVER_GUARD_LEASE_RETURNS_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "store/admin.h"

/* One lease that is being returned.  A release needs the number of the last call, which nobody knows any more.  So it
 * is acquired first: the same nonce and epoch are granted the lease again, with that number. */
struct lease_return {
        struct lease_returns *of;
        struct store_lease lease;
        bool is_open; /* not yet returned, and the store has not reported another owner */
        union {
                struct store_request request;
                struct store_acquire acquire;
                struct store_release release;
        };
};

/* Zeroed, and then filled by the caller. */
struct lease_returns {
        struct store *store;
        uv_timer_t *timer; /* to ask again what the store did not answer; NULL: each is asked for once */
        uint64_t until_ms; /* when the last of the leases expires: it is not asked again after that */
        void (*done)(struct lease_returns *returns);

        struct lease_return *list;
        uint32_t count, pending, unanswered, released;
        struct store_status_put put; /* then the host's documents go, one after the other */
        uint32_t withdrawn;
};

/* Makes room for `most` leases. */
void lease_returns_init(struct lease_returns *returns, uint32_t most);
void lease_returns_add(struct lease_returns *returns, const struct store_lease *lease);
/* done() is called on the loop, once, never inside.  At least one lease was added. */
void lease_returns_start(struct lease_returns *returns);
void lease_returns_free(struct lease_returns *returns);

#endif
