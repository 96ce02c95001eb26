/* records.h: small records of a store as JSON: dead tasks by group. */
#ifndef QUIVER_VIEW_RECORDS_H
#define QUIVER_VIEW_RECORDS_H

#include <jansson.h>

#include "store/admin.h"

/* Adds a shard's group to those of all shards: to the one of the same handler, reason and error, if there is one.
 * Beyond GROUPS_MAX the others of a handler are one group, without reason and error. */
#define GROUPS_MAX 256u
void dead_groups_add(json_t *groups, const struct store_dead_group *group);

#endif
