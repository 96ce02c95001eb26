/* reload_plan.h: what a reload does to each handler, decided before anything is done. */
#ifndef QUIVER_HOST_HANDLER_RELOAD_PLAN_H
#define QUIVER_HOST_HANDLER_RELOAD_PLAN_H

#include <jansson.h>

#include "host/handler/generation.h"
#include "host/handler/reload_read.h"

enum plan_verb {
        PLAN_KEEP,      /* nothing has changed */
        PLAN_ADJUST,    /* only settings that need no new runners have changed */
        PLAN_ADD,       /* the handler is new */
        PLAN_REPLACE,   /* a new generation */
        PLAN_REMOVE,    /* the handler is no longer in the file */
        PLAN_REFUSE,    /* its plugin cannot be loaded; the handler stays as it is */
        PLAN_HOLD_BACK, /* that version was rolled back, and has not changed since */
};

/* "unchanged", "new generation", … */
const char *plan_verb_name(enum plan_verb verb);

/* Decides about one handler of the new configuration; `why` gets what has changed ("file, threads").  `target` is the
 * generation that serves or is about to; NULL: none. */
enum plan_verb plan_item(const struct reload_item *item, const struct rollout *rollout, const struct generation *target,
        struct buffer *why);

#endif
