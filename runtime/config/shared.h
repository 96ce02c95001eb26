/* shared.h: a configuration that several hold: a host, and the generations that were started with it.
 *
 * On the loop's thread only, but for loading. */
#ifndef QUIVER_CONFIG_SHARED_H
#define QUIVER_CONFIG_SHARED_H

#include "config/config.h"

struct shared_config {
        struct config config;
        uint32_t users;
};

/* config_load() with one user.  0, or -errno with what is wrong in `problems`. */
int shared_config_load(const char *path, struct shared_config **ret, struct problems *problems);
/* One user more; returns it.  NULL is a configuration that somebody else owns for good. */
struct shared_config *shared_config_get(struct shared_config *shared);
/* One user less; the last one frees it.  Accepts NULL. */
void shared_config_free(struct shared_config *shared);

#endif
