/* cache.h: which statements a connection has prepared, by their text. */
#ifndef QUIVER_SQL_CACHE_H
#define QUIVER_SQL_CACHE_H

#include <stdbool.h>

#define CACHE_SLOTS 32 /* (table, operation, set of columns): few in practice, and bounded whatever tasks send */

struct cache {
        char *texts[CACHE_SLOTS]; /* NULL: the slot is free */
        unsigned next;            /* the slot that makes way */
};

/* Whether the text is there; *ret_slot is its slot, or the one that makes way for it.  What has that place must be
 * dropped, if cache_is_taken(), before cache_put(). */
bool cache_find(const struct cache *cache, const char *text, unsigned *ret_slot);
bool cache_is_taken(const struct cache *cache, unsigned slot);

/* 0 or -ENOMEM. */
int cache_put(struct cache *cache, const char *text, unsigned slot);
void cache_drop(struct cache *cache, unsigned slot);
void cache_free(struct cache *cache);

#endif
