/* room_show.h: rooms and their entries, as the command prints them. */
#ifndef QUIVER_CLI_ROOM_ROOM_SHOW_H
#define QUIVER_CLI_ROOM_ROOM_SHOW_H

#include "client/rooms.h"

enum room_form { ROOM_LINES, ROOM_RAW, ROOM_JSON };

/* Prints the page's entries, `max` at most, and says on standard error what is missing before them; `asked`: the number
 * that was asked for.  Returns how many were printed. */
uint64_t room_page_show(
        const struct qv_client_room_page *page, const char *room, uint64_t asked, uint64_t max, enum room_form form);

void rooms_show(const struct kept_rooms *rooms, bool has_json);

#endif
