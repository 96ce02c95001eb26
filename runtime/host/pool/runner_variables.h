/* runner_variables.h: the variables of a host's environment that its runners inherit.
 *
 * This is an allow-list: a host's environment often holds secrets that handlers must not see. */
#ifndef QUIVER_HOST_POOL_RUNNER_VARIABLES_H
#define QUIVER_HOST_POOL_RUNNER_VARIABLES_H

#include <stddef.h>

/* The environment of a runner: `mark` (unless it is ""), the usual variables and those named in `more`, if they are
 * set. The list ends with NULL and is freed by the caller; its texts are borrowed. */
char **variables_for_runner(const char *const *more, size_t more_count, char *mark);

#endif
