/* reload_hints.h: what a person may have overlooked when a reload did less, or more, than was meant. */
#ifndef QUIVER_CLI_RELOAD_HINTS_H
#define QUIVER_CLI_RELOAD_HINTS_H

#include <jansson.h>

#include "config/config.h"

/* On standard error: plugins that no handler names, and handlers that were removed while tasks of theirs wait.  `plan`
 * is the reply's list of handlers. */
void reload_hints(const struct config *config, const json_t *plan);

#endif
