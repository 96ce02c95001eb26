/* copied.h: finds out whether another host uses a copy of this host's `local` folder.
 *
 * Hosts that coordinate through a folder must see the same folder.  If it was copied to another machine, and both sides
 * reach one store, each side has its own members and its own leader, and they take each other's shards.  The store
 * shows it: leases are renewed by a host that is not a member here. */
#ifndef QUIVER_HOST_COPIED_H
#define QUIVER_HOST_COPIED_H

#include <uv.h>

#include "coord/coord.h"
#include "store/admin.h"

#define COPIED_SUSPECTS_MAX 64

/* A host that holds a lease and is not a member here. */
struct copied_suspect {
        uint8_t nonce[STORE_NONCE_SIZE];
        uint64_t left_ms; /* the longest remaining time of its leases */
};

struct copied {
        /* Set by the caller. */
        struct store *store;
        struct coord *coord;
        uv_loop_t *loop;
        const char *folder;
        uint64_t ttl_ms;
        /* Called once, on the loop: 0, or -EINVAL and why this host must not start. */
        void (*done)(void *self, int status, const char *text);
        void *self;

        struct coord_children members;
        struct store_count count;
        struct store_status_list documents;
        struct copied_suspect suspects[COPIED_SUSPECTS_MAX];
        uint32_t suspects_count;
        uint8_t *nonces; /* the members' nonces */
        uint32_t nonces_count;
        uint64_t looked_ms; /* boot time of the first look; 0: not yet */
        uv_timer_t timer;
        bool has_timer;
};

/* A look costs two requests.  It waits for half a TTL only if a stranger holds leases, to see whether it renews
 * them. */
void copied_look(struct copied *c);
/* The host stops: copied_look() sends no further request. */
void copied_stop(struct copied *c);

#endif
