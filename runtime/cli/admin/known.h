/* known.h: names that an app knows, for those who may have misspelt one. */
#ifndef QUIVER_CLI_ADMIN_KNOWN_H
#define QUIVER_CLI_ADMIN_KNOWN_H

#include "cli/open.h"

/* Says on standard error that nobody knows the handler, or the host, and who is known; nothing if it is known, or if no
 * host says anything.  It is only a warning: a host may come that does know it. */
void known_warn_of_handler(struct cli_store *s, const char *handler);
void known_warn_of_host(struct cli_store *s, const char *host);

#endif
