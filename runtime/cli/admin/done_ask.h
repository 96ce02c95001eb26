/* done_ask.h: what became of a task that is not in the store any more. */
#ifndef QUIVER_CLI_ADMIN_DONE_ASK_H
#define QUIVER_CLI_ADMIN_DONE_ASK_H

#include "cli/open.h"
#include "view/done.h"

/* Looks for the task among those that hosts say they have done last: in their documents, and, since these are seconds
 * old, at the hosts of this machine.  0: *ret_found is what is known of it, the caller's.  -ENOENT: nobody remembers
 * it, and the text says how far back hosts do. */
int done_ask(struct cli_store *s, struct span id, json_t **ret_found, struct error *error);

#endif
