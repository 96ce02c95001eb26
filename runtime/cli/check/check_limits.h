/* check_limits.h: the part of `quiver check` that says what the handlers' limits cover on this machine. */
#ifndef QUIVER_CLI_CHECK_CHECK_LIMITS_H
#define QUIVER_CLI_CHECK_CHECK_LIMITS_H

#include <jansson.h>

#include "base/process/cgroup.h"
#include "config/config.h"
#include "host/confine/coverage.h"

/* What this machine has to confine runners with. */
struct check_machine {
        struct coverage_facts facts;
        char group[CGROUP_PATH_MAX]; /* the one that groups would be made in; "": none */
        struct error why;            /* no control groups */
};
struct check_machine check_machine_look(const struct config *config);

/* As a host that is started the way this command was would find it. */
void check_print_limits(const struct config *config);
json_t *check_json_limits(const struct config *config);

#endif
