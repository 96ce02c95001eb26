/* generation.h: one generation at work: its private copy of the plugin, the settings it was started with, and its pool.
 *
 * Made when a version is proposed; its pool is opened when the rollout starts it.  Used on the loop's thread only. */
#ifndef QUIVER_HOST_HANDLER_GENERATION_H
#define QUIVER_HOST_HANDLER_GENERATION_H

#include "config/shared.h"
#include "host/handler/plugin_copy.h"
#include "host/handler/rollout.h"
#include "host/pool/pool_io.h"

struct handler;

struct generation {
        struct rollout_version version; /* must be first: a rollout's version pointers are cast to generations */
        struct handler *handler;
        struct shared_config *shared; /* owns `config`; NULL: `config` outlives every generation */
        const struct config *config;
        const struct handler_config *settings; /* in `config` */
        struct plugin_copy copy;
        struct pool_io pool_io;
        bool is_open;
        uint32_t leases;            /* slots of the lease page */
        char plugin_version[64];    /* as its latest runner reported; "" before */
        char words[ERROR_TEXT_MAX]; /* why its latest runner failed */
};

/* Takes ownership of the plugin copy, and a reference to `shared`, which owns `config`. */
struct generation *generation_new(struct handler *handler, struct shared_config *shared, const struct config *config,
        const struct handler_config *settings, const struct plugin_copy *copy);
/* Opens the pool.  0, or -errno with the text set. */
int generation_open(struct generation *s, struct pools *pools, const struct leases *leases,
        const struct pool_io_events *events, struct error *error);
/* Same version with new settings, none of which its runners were started with. */
void generation_adjust(struct generation *s, struct shared_config *shared, const struct config *config,
        const struct handler_config *settings);
/* No process of the generation is left: closes the pool and removes the plugin copy.  The memory is freed when the loop
 * has closed the handles. */
void generation_free(struct generation *s);
/* The callback pool_io_events.closed. */
void generation_closed(void *owner);

#endif
