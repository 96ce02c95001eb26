/* host.h: one `quiver run` process: shards on one side, pools on the other, and the loop between them. */
#ifndef QUIVER_HOST_HOST_H
#define QUIVER_HOST_HOST_H

#include <stdbool.h>

#include "base/error.h"
#include "config/config.h"

/* `is_strict`: the host does not start if a plugin cannot be taken; otherwise that handler is refused.
 *
 * Runs a host until it is told to stop (SIGTERM, SIGINT; a second one cuts short, a third gives up).  0, or -errno with
 * the text set if it could not start, or could not say goodbye to its store. */
int host_run(const struct config *config, bool is_strict, struct error *error);

#endif
