/* room_row.h: one room's row, and the removal of its entries.  Used by rooms.c alone. */
#ifndef QUIVER_STORE_SQLITE_RECORDS_ROOM_ROW_H
#define QUIVER_STORE_SQLITE_RECORDS_ROOM_ROW_H

#include "store/sqlite/sqlite.h"

struct sqlite_room {
        uint64_t id; /* 0: no such room */
        uint64_t last;
        uint64_t entries;
        uint64_t bytes;
        uint64_t entries_max;
        uint64_t bytes_max;
        uint64_t age_ms;
};

/* False, and the request is refused, if the row is out of range; true with id 0 if there is no such room. */
bool room_get(struct sqlite_store *s, struct store_request *request, struct span name, struct sqlite_room *ret_room);
/* Reads a room from a row that begins with the columns of ROOM_GET; false if it is out of range. */
bool room_read_row(struct query *q, struct sqlite_room *ret_room);
/* Makes a room with these limits; false, and the request is refused, if the shard has as many as it may. */
bool room_add(struct sqlite_store *s, struct store_request *request, struct span name, struct sqlite_room *room);
void room_save(struct sqlite_store *s, const struct sqlite_room *room);

/* Number of the first entry that is kept. */
static inline uint64_t room_first(const struct sqlite_room *room)
{
        return room->last - room->entries + 1;
}

/* Removes at most `max` of the oldest entries: those up to `through`, and those beyond the room's limits.  True if
 * there are more to remove.  The caller saves the room. */
bool room_trim(struct sqlite_store *s, struct sqlite_room *room, uint64_t through, uint32_t max);

#endif
