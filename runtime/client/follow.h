/* follow.h: the rooms that a handle follows: read on, one page after the other, whenever the doorbell rings.
 *
 * All of it happens on the client's thread but for what follow.c says otherwise.  Between two rings a follower costs
 * one read every five minutes, which keeps its doorbell armed. */
#ifndef QUIVER_CLIENT_FOLLOW_H
#define QUIVER_CLIENT_FOLLOW_H

#include "store/rooms.h"

struct qv_client_follow;

struct client_follows {
        struct qv_client_follow *first;
};

/* What the store calls when something was appended. */
struct store_bell follows_bell(struct client_follows *follows);
/* The store is about to be closed. */
void follows_close(struct client_follows *follows);

#endif
