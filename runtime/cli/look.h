/* look.h: drives a look (look/look.h) through the client library. */
#ifndef QUIVER_CLI_LOOK_H
#define QUIVER_CLI_LOOK_H

#include "cli/open.h"
#include "look/look.h"

/* Sends one request after the other until the look is complete.  Output happens on the client's thread.  0, or -errno
 * with the text. */
int cli_look(struct cli_store *s, struct look *look, struct error *error);

#endif
