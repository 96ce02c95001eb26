/* copied.h: whether somebody else uses a copy of this host's `local` folder.
 *
 * Hosts that agree through a folder must see the same folder.  If it was copied to another machine together with a
 * store that both reach, each side has its own members and its own leader, and they take each other's shards.  It shows
 * in the store: leases that are renewed by a host that is no member here. */
#ifndef QUIVER_HOST_COPIED_H
#define QUIVER_HOST_COPIED_H

#include <uv.h>

#include "coord/coord.h"
#include "store/admin.h"

#define COPIED_SUSPECTS_MAX 64

/* A host that holds a lease and is no member here. */
struct copied_suspect {
        uint8_t nonce[STORE_NONCE_SIZE];
        uint64_t left_ms; /* the longest that any of its leases lasts */
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
        uint8_t *nonces; /* of the members */
        uint32_t nonces_count;
        uint64_t looked_ms; /* 0: not looked yet */
        uv_timer_t timer;
        bool has_timer;
};

/* A look costs two questions.  Only if a stranger holds leases it takes half of their time: a host that died does not
 * renew them. */
void copied_look(struct copied *c);
/* The host stops: nothing more is asked. */
void copied_stop(struct copied *c);

#endif
