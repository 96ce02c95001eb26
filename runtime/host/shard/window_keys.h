/* window_keys.h: the keys of a window, found by their names.
 *
 * A hash table whose elements know only the next one in their bucket: a task's key is made and freed for nearly every
 * task, and each further neighbour that is written to would have to be fetched into the processor's caches. */
#ifndef QUIVER_HOST_SHARD_WINDOW_KEYS_H
#define QUIVER_HOST_SHARD_WINDOW_KEYS_H

#include <stdint.h>

#include "base/span.h"

struct window_key;

/* All zero: empty. */
struct window_keys {
        struct window_key **buckets;
        uint32_t buckets_count; /* 0, or a power of two */
        uint32_t count;
};

/* The table owns none of its elements. */
void window_keys_free(struct window_keys *keys);

/* NULL if there is none of that name. */
struct window_key *window_keys_find(const struct window_keys *keys, struct span name);
/* Adds a key whose name is set and is not in the table yet. */
void window_keys_add(struct window_keys *keys, struct window_key *key);
void window_keys_remove(struct window_keys *keys, struct window_key *key);

/* All keys, in no order; NULL at the end.  Nothing may be added or removed meanwhile. */
struct window_key *window_keys_first(const struct window_keys *keys);
struct window_key *window_keys_next(const struct window_keys *keys, const struct window_key *key);

#endif
