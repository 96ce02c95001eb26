/* generation.h: one generation at work: its private copy of the plugin, the settings it was started with, and its io.
 *
 * Made when a version is proposed; the pool is opened when its turn comes.  Everything is on the loop's thread. */
#ifndef QUIVER_HOST_HANDLER_GENERATION_H
#define QUIVER_HOST_HANDLER_GENERATION_H

#include "config/shared.h"
#include "host/handler/plugin_copy.h"
#include "host/handler/rollout.h"
#include "host/pool/pool_io.h"

struct handler;

struct generation {
        struct rollout_version version; /* first: what a rollout names is this */
        struct handler *handler;
        struct shared_config *shared; /* NULL: `config` is somebody else's, for good */
        const struct config *config;
        const struct handler_config *settings; /* in `config` */
        struct plugin_copy copy;
        struct pool_io pool_io;
        bool is_open;
        uint32_t leases;            /* slots of the lease page */
        char plugin_version[64];    /* the plugin's own, as its latest runner said; "" before */
        char words[ERROR_TEXT_MAX]; /* why its latest runner failed */
};

/* Takes the private copy, and a share of `shared`, which holds `config`. */
struct generation *generation_new(struct handler *handler, struct shared_config *shared, const struct config *config,
        const struct handler_config *settings, const struct plugin_copy *copy);
/* Makes the io.  0, or -errno with the text set. */
int generation_open(struct generation *s, struct pools *pools, const struct leases *leases,
        const struct pool_io_events *events, struct error *error);
/* The same version with other settings, none of which its runners were started with. */
void generation_adjust(struct generation *s, struct shared_config *shared, const struct config *config,
        const struct handler_config *settings);
/* No process of it is left: closes the io, removes the copy; the memory goes when the loop has closed the handles. */
void generation_free(struct generation *s);
/* As pool_io_events.closed. */
void generation_closed(void *owner);

#endif
