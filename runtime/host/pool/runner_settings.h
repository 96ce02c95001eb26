/* runner_settings.h: makes the start message of a handler's runners from its configuration. */
#ifndef QUIVER_HOST_POOL_RUNNER_SETTINGS_H
#define QUIVER_HOST_POOL_RUNNER_SETTINGS_H

#include "config/config.h"
#include "host/handler/plugin_copy.h"
#include "ring/message.h"

/* Pointers are borrowed from the arguments.  The caller sets `leases` and `can_call`. */
void runner_settings_fill(struct runner_start *start, const struct config *config, const struct handler_config *handler,
        const struct plugin_copy *copy);

#endif
