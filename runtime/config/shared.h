/* shared.h: a reference-counted configuration, held by the host and by each generation that was started with it.
 *
 * Used on the loop's thread only; shared_config_load() may be called on any thread. */
#ifndef QUIVER_CONFIG_SHARED_H
#define QUIVER_CONFIG_SHARED_H

#include "config/config.h"

struct shared_config {
        struct config config;
        uint32_t users;
};

/* config_load() into a new object with one reference.  0, or -errno with the reasons in `problems`. */
int shared_config_load(
        const char *path, const struct strings *set, struct shared_config **ret, struct problems *problems);
/* Adds a reference and returns `shared`.  NULL stands for a configuration that outlives all its users, and stays
 * NULL. */
struct shared_config *shared_config_get(struct shared_config *shared);
/* Drops a reference; the last one frees the configuration.  Accepts NULL. */
void shared_config_free(struct shared_config *shared);

#endif
