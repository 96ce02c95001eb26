/* reload_hints.h: hints about what a person may have overlooked when a reload did less, or more, than intended. */
#ifndef QUIVER_CLI_RELOAD_HINTS_H
#define QUIVER_CLI_RELOAD_HINTS_H

#include <jansson.h>

#include "config/config.h"

/* Prints on standard error: plugins that no handler names, and removed handlers that still have waiting tasks.  `plan`
 * is the reply's list of handlers. */
void reload_hints(const struct config *config, const json_t *plan);

#endif
