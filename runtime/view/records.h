/* records.h: small records of a store as JSON: dead tasks by group, limits. */
#ifndef QUIVER_VIEW_RECORDS_H
#define QUIVER_VIEW_RECORDS_H

#include <jansson.h>

#include "store/admin.h"
#include "store/limits.h"

/* Adds a shard's group to those of all shards: to the one of the same handler, reason and error, if there is one.
 * Beyond GROUPS_MAX the others of a handler are one group, without reason and error. */
#define GROUPS_MAX 256u
void dead_groups_add(json_t *groups, const struct store_dead_group *group);

/* Without its values. */
json_t *limit_as_json(const struct store_limit_look *look);
json_t *limit_value_as_json(const struct store_limit *limit, const struct store_limit_value *value);

#endif
