/* records.h: small records of a store as JSON: dead tasks by group. */
#ifndef QUIVER_VIEW_RECORDS_H
#define QUIVER_VIEW_RECORDS_H

#include <jansson.h>

#include "store/admin.h"

/* Adds a shard's group to the sum over all shards: groups of the same handler, reason and error are one.  Beyond
 * GROUPS_MAX the remaining groups of a handler become one, without reason and error. */
#define GROUPS_MAX 256u
void dead_groups_add(json_t *groups, const struct store_dead_group *group);

#endif
