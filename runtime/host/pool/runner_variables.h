/* runner_variables.h: which variables of a host's environment its runners get.
 *
 * An allow-list: what a host was started with often holds secrets that are none of a handler's business. */
#ifndef QUIVER_HOST_POOL_RUNNER_VARIABLES_H
#define QUIVER_HOST_POOL_RUNNER_VARIABLES_H

#include <stddef.h>

/* The environment for a runner: the usual variables, and those named in `more`, as far as they are set.  A list that
 * ends with NULL, to be freed; its texts are the environment's own. */
char **variables_for_runner(const char *const *more, size_t more_count);

#endif
