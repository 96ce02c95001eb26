/* check_limits.h: the part of `quiver check` that says what the handlers' limits cover on this machine. */
#ifndef QUIVER_CLI_CHECK_CHECK_LIMITS_H
#define QUIVER_CLI_CHECK_CHECK_LIMITS_H

#include <jansson.h>

#include "config/config.h"

/* As a host that is started the way this command was would find it. */
void check_print_limits(const struct config *config);
json_t *check_json_limits(const struct config *config);

#endif
