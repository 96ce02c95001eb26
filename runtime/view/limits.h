/* limits.h: the limits of an app for people: what its hosts' documents say, added up; what a person has set; the keys
 * that wait in the store; and the values at the limits' homes.
 *
 *         {"name":"api","kind":"rate","rate":100,"per_ms":1000,"burst":20,"by":"header.tenant","version":1763256000123,
 *          "handlers":["mail"],"hosts":2,"granted":3,"waiting":12,"waiting_keys":40,"waiting_tasks":41,"oldest_ms":900,
 *          "closed":0,"buckets":7,"started":9120,"started_rate":99.5,"refused":311,"lost":2,
 *          "set":{"rate":20,"version":1763256000999,"until_ms":1763256600999}}
 *
 * `waiting` counts tasks in the hosts' windows, `waiting_keys` and `waiting_tasks` those in the store; if `estimated`
 * is true, at least that many.  A concurrency has `concurrency` and `in_use` instead of the rate's numbers.  `set`, if
 * present, overrides the configuration. */
#ifndef QUIVER_VIEW_LIMITS_H
#define QUIVER_VIEW_LIMITS_H

#include <jansson.h>

#include "base/buffer.h"
#include "store/admin.h"
#include "store/limits.h"

/* Adds what a host's document says.  `limits` is a list of such objects, sorted by name. */
void limits_add_said(json_t *limits, const json_t *said, uint64_t document_age_ms);
/* Adds an item of the desired state.  False: it is not about a limit. */
bool limits_add_desired(json_t *limits, const struct store_desired *item, uint64_t wall_ms);
/* Adds a key that waits for a limit; ignores others. */
void limits_add_key(json_t *limits, const struct store_key_info *key);
/* Marks that not all waiting keys were looked at. */
void limits_mark_estimated(json_t *limits);
/* NULL: there is no such limit. */
json_t *limits_get(const json_t *limits, const char *name);

/* A limit as its home has it, and one of its values. */
json_t *limit_home_as_json(const struct store_limit_look *look);
json_t *limit_value_as_json(const struct store_limit *limit, const struct store_limit_value *value);

/* "100 per 1s, burst 20", "5 at once". */
void limit_put_amount(struct buffer *to, const json_t *limit);
void limits_as_text(struct buffer *to, const json_t *limits, bool has_color);
/* One limit, with `values` as a list of limit_value_as_json(). */
void limit_as_text(struct buffer *to, const json_t *limit, bool has_color, uint64_t wall_ms);

#endif
