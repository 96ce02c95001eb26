/* follow.h: the rooms that a handle follows: reads one page after the other whenever the doorbell rings.
 *
 * Everything runs on the client's thread unless follow.c says otherwise.  Between two rings a follower costs one read
 * every five minutes, which keeps its doorbell armed. */
#ifndef QUIVER_CLIENT_FOLLOW_H
#define QUIVER_CLIENT_FOLLOW_H

#include "store/rooms.h"

struct qv_client_follow;

struct client_follows {
        struct qv_client_follow *first;
};

/* The callback for the store: something was appended. */
struct store_bell follows_bell(struct client_follows *follows);
/* The store is about to be closed. */
void follows_close(struct client_follows *follows);

#endif
