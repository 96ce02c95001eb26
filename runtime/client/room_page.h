/* room_page.h: a page of a room's entries, copied into one piece of memory. */
#ifndef QUIVER_CLIENT_ROOM_PAGE_H
#define QUIVER_CLIENT_ROOM_PAGE_H

#include <quiver/client.h>

#include "base/error.h"
#include "store/rooms.h"

struct qv_client_room_page *room_page_make(const struct store_room_read *read);

/* The last number that the room has given; 0: none.  0, or -errno with the text set. */
int client_room_last(struct qv_client *client, const char *room, uint64_t *ret_last, struct error *error);

#endif
