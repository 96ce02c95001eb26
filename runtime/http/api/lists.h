/* lists.h: the parameters that lists and actions on many tasks share. */
#ifndef QUIVER_HTTP_API_LISTS_H
#define QUIVER_HTTP_API_LISTS_H

#include "http/exchange.h"
#include "look/tasks_look.h"

#define LIST_LIMIT     100u /* items shown if `limit` is not given */
#define LIST_LIMIT_MAX 1000u
#define LIST_LOOKED    10000u               /* tasks or keys that one request looks at */
#define LIST_BYTES     (2u * 1024u * 1024u) /* of payloads in one answer, not counting the last one */

/* Reads state, handler, key, host, error, cause, reason, older, before; a missing one matches anything.  The texts
 * belong to the exchange.  False: the request was answered. */
bool list_read_filter(struct http_exchange *x, struct tasks_filter *ret_filter);
/* Reads a number from 1 to `max`; if it is missing, *ret is unchanged.  False: the request was answered. */
bool list_read_number(struct http_exchange *x, const char *name, uint64_t max, uint64_t *ret);
/* Reads limit and cursor. */
bool list_read_page(struct http_exchange *x, uint64_t *ret_limit, struct look_place *ret_place);
/* Sets `more`, and if true `cursor`. */
void list_set_more(json_t *to, bool has_more, const struct look_place *place);

#endif
