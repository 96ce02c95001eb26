/* cache.h: the prepared statements of a connection, by their text. */
#ifndef QUIVER_SQL_CACHE_H
#define QUIVER_SQL_CACHE_H

#include <stdbool.h>

#define CACHE_SLOTS 32 /* one per (table, operation, set of columns): few in practice, bounded whatever tasks send */

struct cache {
        char *texts[CACHE_SLOTS]; /* NULL: the slot is free */
        unsigned next;            /* the slot to replace next */
};

/* Whether the text is cached; *ret_slot is its slot, or the slot to use for it.  If cache_is_taken(), the statement in
 * that slot must be dropped before cache_put(). */
bool cache_find(const struct cache *cache, const char *text, unsigned *ret_slot);
bool cache_is_taken(const struct cache *cache, unsigned slot);

/* 0 or -ENOMEM. */
int cache_put(struct cache *cache, const char *text, unsigned slot);
void cache_drop(struct cache *cache, unsigned slot);
void cache_free(struct cache *cache);

#endif
