/* check.h: what `quiver check` finds, for other commands. */
#ifndef QUIVER_CLI_CHECK_H
#define QUIVER_CLI_CHECK_H

#include <jansson.h>

#include "config/config.h"

/* Everything that is wrong with that configuration, an array of texts: each plugin is loaded in a throw-away runner
 * with its settings, so its init runs.  Warnings are not in it.  The caller's. */
json_t *check_errors(const char *path);

/* Whether the state folder, if there is one, is as a host wants it. */
void check_state(const struct config *config, struct problems *problems);

#endif
