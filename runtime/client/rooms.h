/* rooms.h: the rooms of an app, for the commands: reading them, and importing those of another store. */
#ifndef QUIVER_CLIENT_ROOMS_H
#define QUIVER_CLIENT_ROOMS_H

#include "client/call.h"
#include "store/rooms.h"

/* The rooms of a shard, by name; the names are copies. */
struct kept_rooms {
        struct store_room *list;
        uint32_t count;
};
void kept_rooms_free(struct kept_rooms *kept);
int client_rooms(struct qv_client *client, uint32_t shard, struct kept_rooms *ret, struct error *error);

/* Reads one page of a room from a number on; 0: from the first entry.  `page` is called on the client's thread with the
 * reply, which is valid until it returns. */
int client_room_read(struct qv_client *client, struct span name, uint64_t from,
        void (*page)(void *self, const struct store_room_read *read), void *self, struct error *error);

/* The caller fills in everything except the request; the store's answer is set. */
int client_room_append(struct qv_client *client, struct store_room_append *append, struct error *error);
int client_room_set(struct qv_client *client, struct store_room_set *set, struct error *error);
/* Removes all entries up to a number; ret_first, if not NULL, gets the first remaining one. */
int client_room_truncate(
        struct qv_client *client, struct span name, uint64_t through, uint64_t *ret_first, struct error *error);
int client_room_delete(struct qv_client *client, struct span name, struct error *error);

#endif
