/* host.h: one `quiver run` process: shards on one side, pools on the other, and the loop between them. */
#ifndef QUIVER_HOST_HOST_H
#define QUIVER_HOST_HOST_H

#include <stdbool.h>

#include "base/error.h"
#include "config/config.h"

/* Runs a host until it is told to stop by SIGTERM or SIGINT; a second signal interrupts running tasks, a third stops
 * waiting for the store.  With `is_strict` the host does not start if a plugin cannot be loaded; otherwise it refuses
 * that handler.  0, or -errno with the text set if the host could not start or could not release its shards. */
int host_run(const struct config *config, bool is_strict, struct error *error);

#endif
