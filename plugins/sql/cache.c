#include "cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool cache_find(const struct cache *cache, const char *text, unsigned *ret_slot)
{
        for (unsigned i = 0; i < CACHE_SLOTS; i++) {
                if (cache->texts[i] && !strcmp(cache->texts[i], text)) {
                        *ret_slot = i;
                        return true;
                }
        }
        *ret_slot = cache->next;
        return false;
}

bool cache_is_taken(const struct cache *cache, unsigned slot)
{
        return cache->texts[slot] != NULL;
}

int cache_put(struct cache *cache, const char *text, unsigned slot)
{
        cache->texts[slot] = strdup(text);
        cache->next = (slot + 1) % CACHE_SLOTS;
        return cache->texts[slot] ? 0 : -ENOMEM;
}

void cache_drop(struct cache *cache, unsigned slot)
{
        free(cache->texts[slot]);
        cache->texts[slot] = NULL;
}

void cache_free(struct cache *cache)
{
        for (unsigned i = 0; i < CACHE_SLOTS; i++)
                cache_drop(cache, i);
}
