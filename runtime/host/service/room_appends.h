/* room_appends.h: appends entries to rooms for seats, through the host's store. */
#ifndef QUIVER_HOST_SERVICE_ROOM_APPENDS_H
#define QUIVER_HOST_SERVICE_ROOM_APPENDS_H

#include "host/pool/pool_call.h"
#include "store/rooms.h"

/* Appends call->bytes to the room call->name; answered with the entry's number when it is stored.  `store` is NULL if
 * closed. */
void room_appends_start(struct store *store, struct pool_call *call);

#endif
