/* desired.h: what people want of every host, read from the desired state in the store. */
#ifndef QUIVER_HOST_HANDLER_DESIRED_H
#define QUIVER_HOST_HANDLER_DESIRED_H

#include <stdbool.h>

#include "config/config.h"
#include "store/admin.h"

/* Whether the handler must start nothing: "pause" is set, or "pause.NAME" for its name or for one of the task names
 * that it serves. (A handler of several task names has one pool, and is paused as a whole.) *ret_reason is the reason
 * that the person gave; borrowed from `items`. */
bool desired_is_paused(
        const struct store_desired *items, size_t count, const struct handler_config *handler, struct span *ret_reason);

#endif
