/* reload_read.h: reads the configuration file and every plugin's bytes for a reload, on a thread of its own. */
#ifndef QUIVER_HOST_HANDLER_RELOAD_READ_H
#define QUIVER_HOST_HANDLER_RELOAD_READ_H

#include "config/names.h"
#include "config/shared.h"
#include "host/handler/plugin_copy.h"
#include "host/handler/rollout.h"

/* The current version of a handler. */
struct reload_known {
        char name[NAME_HANDLER_MAX + 1];
        struct generation_id id;
};

/* The new version of a handler. */
struct reload_item {
        const struct handler_config *handler; /* in `shared` */
        struct generation_id id;
        int status; /* negative: the plugin cannot be loaded; `error` says why */
        struct error error;
        bool has_copy;
        struct plugin_copy copy;
};

struct reload_read {
        /* in */
        char *path;
        struct strings set; /* --set options that the host was started with */
        const char *copies; /* folder of the plugin copies */
        bool is_dry;        /* copies nothing */
        struct reload_known *known;
        size_t known_count;

        /* out */
        int status; /* negative: see `problems` */
        struct problems problems;
        struct shared_config *shared;
        struct reload_item *items; /* one per handler */
};

/* Blocks; for another thread.  Uses nothing outside `r`. */
void reload_read(struct reload_read *r);
/* Also removes copies that nobody has taken over (has_copy). */
void reload_read_free(struct reload_read *r);

#endif
