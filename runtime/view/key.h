/* key.h: what a key waits for, since when and why, and what a person can do about it. */
#ifndef QUIVER_VIEW_KEY_H
#define QUIVER_VIEW_KEY_H

#include <jansson.h>

#include "store/admin.h"

json_t *key_as_json(const struct store_key_info *key);
/* Everything, with the commands that help.  `now_ms` is unix time: the text says how long ago. */
void key_as_text(struct buffer *to, const struct store_key_info *key, uint64_t now_ms);
/* One line of a list. */
void key_as_line(struct buffer *to, const struct store_key_info *key);

#endif
