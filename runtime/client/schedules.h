/* schedules.h: the schedules of an app, for the commands: reading all or one, and changing one. */
#ifndef QUIVER_CLIENT_SCHEDULES_H
#define QUIVER_CLIENT_SCHEDULES_H

#include "client/call.h"
#include "store/schedules.h"

/* A schedule that was read; its texts are copies. */
struct kept_schedule {
        struct store_schedule stored;
        uint32_t shard;
};
struct kept_schedules {
        struct kept_schedule *list; /* by name */
        uint32_t count, unreadable;
};
void kept_schedules_free(struct kept_schedules *kept);

/* Reads all schedules of the app, or only `name` if it is not NULL.  0 or -errno. */
int client_schedules(
        struct qv_client *client, uint32_t shards, const char *name, struct kept_schedules *ret, struct error *error);

/* The caller fills in everything except the request; `change` is set. */
int client_schedule_set(struct qv_client *client, struct store_schedule_set *set, struct error *error);

#endif
