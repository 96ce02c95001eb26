/* status_ask.h: asks a store for everything that an app's status is made of (view/status.h).  Bounded: how many tasks
 * and keys are looked at does not depend on how many there are. */
#ifndef QUIVER_CLI_ADMIN_STATUS_ASK_H
#define QUIVER_CLI_ADMIN_STATUS_ASK_H

#include "cli/open.h"
#include "view/status.h"

/* `counts` has room for all shards, and stays as long as the status.  0 or -errno with the text; status_free() either
 * way. */
int status_ask(struct cli_store *s, struct store_counts *counts, struct status *ret_status, struct error *error);

#endif
