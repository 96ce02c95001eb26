/* lease_returns.h: returns the leases of a host that is dead and has no runner left.
 *
 * The caller guarantees that: the guard, which has killed the runners, or the next host, which found no process of its
 * predecessor (host/predecessor.h). */
#ifndef QUIVER_GUARD_LEASE_RETURNS_H
#define QUIVER_GUARD_LEASE_RETURNS_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "store/admin.h"

/* One lease that is being returned.  A release needs the number of the last call, which died with the host.  So the
 * lease is acquired first: the same nonce and epoch are granted it again, with that number. */
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

/* Zero it, then fill in the upper part. */
struct lease_returns {
        struct store *store;
        uv_timer_t *timer; /* for repeating calls that the store did not answer; NULL: each is made once */
        uint64_t until_ms; /* when the last of the leases expires: nothing is repeated after that */
        void (*done)(struct lease_returns *returns);

        uint8_t nonce[STORE_NONCE_SIZE]; /* the host's */
        struct lease_return *list;
        uint32_t count, pending, unanswered, released;
        struct store_status_put put; /* removes the host's documents afterwards, one after the other */
        uint32_t withdrawn;
};

/* Makes room for `most` leases of the host with that nonce. */
void lease_returns_init(struct lease_returns *returns, const uint8_t nonce[STORE_NONCE_SIZE], uint32_t most);
void lease_returns_add(struct lease_returns *returns, const struct store_lease *lease);
/* Returns the leases, if any, and removes the host's documents.  done() is called once, on the loop, never from inside
 * this call. */
void lease_returns_start(struct lease_returns *returns);
void lease_returns_free(struct lease_returns *returns);

#endif
