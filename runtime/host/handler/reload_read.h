/* reload_read.h: everything that a reload has to look at, on a thread of its own: the file, and every plugin's bytes.
 */
#ifndef QUIVER_HOST_HANDLER_RELOAD_READ_H
#define QUIVER_HOST_HANDLER_RELOAD_READ_H

#include "config/names.h"
#include "config/shared.h"
#include "host/handler/plugin_copy.h"
#include "host/handler/rollout.h"

/* What a handler has now. */
struct reload_known {
        char name[NAME_HANDLER_MAX + 1];
        struct generation_id id;
};

/* What it is to have. */
struct reload_item {
        const struct handler_config *handler; /* in `shared` */
        struct generation_id id;
        int status; /* negative: it cannot be had, and why */
        struct error error;
        bool has_copy;
        struct plugin_copy copy;
};

struct reload_read {
        /* in */
        char *path;
        struct strings set; /* of the command line that the host was started with */
        const char *copies; /* folder */
        bool is_dry;        /* copies nothing */
        struct reload_known *known;
        size_t known_count;

        /* out */
        int status; /* negative: see `problems` */
        struct problems problems;
        struct shared_config *shared;
        struct reload_item *items; /* one per handler */
};

/* Blocks.  Uses nothing but what is in it. */
void reload_read(struct reload_read *r);
/* Also removes copies that were made and not taken (has_copy). */
void reload_read_free(struct reload_read *r);

#endif
