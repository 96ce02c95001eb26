/* whereabouts_ask.h: asks a store for what view/whereabouts.h is made of. */
#ifndef QUIVER_CLI_ADMIN_WHEREABOUTS_ASK_H
#define QUIVER_CLI_ADMIN_WHEREABOUTS_ASK_H

#include "cli/open.h"
#include "view/whereabouts.h"

/* 0 or -errno with the text; whereabouts_free() either way. */
int whereabouts_ask(struct cli_store *s, struct whereabouts *ret_w, struct error *error);

#endif
