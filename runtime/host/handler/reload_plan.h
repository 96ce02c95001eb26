/* reload_plan.h: what a reload does to each handler, decided before anything is done. */
#ifndef QUIVER_HOST_HANDLER_RELOAD_PLAN_H
#define QUIVER_HOST_HANDLER_RELOAD_PLAN_H

#include <jansson.h>

#include "host/handler/generation.h"
#include "host/handler/reload_read.h"

enum plan_verb {
        PLAN_KEEP,      /* nothing has changed */
        PLAN_ADJUST,    /* settings that need no new runners */
        PLAN_ADD,       /* a handler that was not here */
        PLAN_REPLACE,   /* a new generation */
        PLAN_REMOVE,    /* it is not in the file any more */
        PLAN_REFUSE,    /* its plugin cannot be taken; it stays as it is */
        PLAN_HOLD_BACK, /* that version was rolled back, and has not changed since */
};

/* "unchanged", "new generation", … */
const char *plan_verb_name(enum plan_verb verb);

/* What to do about one handler of the new configuration, and into `why` what has changed ("file, threads").  `target`
 * is what it has or is about to have; NULL: nothing. */
enum plan_verb plan_item(const struct reload_item *item, const struct rollout *rollout, const struct generation *target,
        struct buffer *why);

#endif
