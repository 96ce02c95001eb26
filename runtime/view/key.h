/* key.h: what a key waits for, since when and why, and what a person can do about it. */
#ifndef QUIVER_VIEW_KEY_H
#define QUIVER_VIEW_KEY_H

#include <jansson.h>

#include "store/admin.h"
#include "view/whereabouts.h"

json_t *key_as_json(const struct store_key_info *key);

/* What is known of a key's claimed tasks.  All zero: nothing. */
struct key_more {
        const struct whereabouts *w;
        uint64_t claimed;
        const json_t *first; /* the whereabouts of the first of them (view/whereabouts.h), and its `id` */
};
/* Adds `more` to the object, and returns the object. */
json_t *key_more_as_json(json_t *object, const struct key_more *more);

/* The full text, with the commands that help.  `now_ms` is unix time, for ages. */
void key_as_text(struct buffer *to, const struct store_key_info *key, const struct key_more *more, uint64_t now_ms);
/* One line of a list. */
void key_as_line(struct buffer *to, const struct store_key_info *key);

#endif
