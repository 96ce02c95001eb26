/* reload_fleet.h: `quiver reload --all`: every host of the app reloads, one after the other.
 *
 * Hosts are asked through the store, and answer there (host/handler/reload_order.h): this machine need not reach
 * theirs, and each reads its own file. */
#ifndef QUIVER_CLI_RELOAD_FLEET_H
#define QUIVER_CLI_RELOAD_FLEET_H

#include "cli/open.h"

struct reload_fleet_request {
        bool is_patient; /* wait until the outcome of every new generation is known */
        bool has_json;
};

/* Prints the results and returns an exit code.  Stops at the first host that refuses something, is gone or is
 * silent. */
int reload_fleet(struct cli_store *s, const struct reload_fleet_request *q);

#endif
