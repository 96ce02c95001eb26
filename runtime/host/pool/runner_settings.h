/* runner_settings.h: a configured handler as the message that starts its runners. */
#ifndef QUIVER_HOST_POOL_RUNNER_SETTINGS_H
#define QUIVER_HOST_POOL_RUNNER_SETTINGS_H

#include "config/config.h"
#include "host/handler/plugin_copy.h"
#include "ring/message.h"

/* Everything is borrowed from the three.  `leases` and `can_call` are the caller's to set. */
void runner_settings_fill(struct runner_start *start, const struct config *config, const struct handler_config *handler,
        const struct plugin_copy *copy);

#endif
