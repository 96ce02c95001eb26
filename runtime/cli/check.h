/* check.h: what `quiver check` finds, for other commands. */
#ifndef QUIVER_CLI_CHECK_H
#define QUIVER_CLI_CHECK_H

#include <jansson.h>

#include "config/config.h"

/* All errors of that configuration, as an array of texts that the caller owns; without warnings.  Loads each plugin in
 * a throw-away runner with its settings, so its init runs. */
json_t *check_errors(const char *path);

/* Checks owner and mode of the state folder, if it exists. */
void check_state(const struct config *config, struct problems *problems);

#endif
