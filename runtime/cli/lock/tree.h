/* tree.h: how a command gets at the coordination tree. */
#ifndef QUIVER_CLI_LOCK_TREE_H
#define QUIVER_CLI_LOCK_TREE_H

#include <uv.h>

#include "cli/open.h"
#include "coord/coord.h"

struct cli_tree {
        const char *command; /* for messages */
        struct config config;
        uv_loop_t loop;
        struct coord *coord;
};

/* Finds and reads the settings, and opens the tree that they name.  `events` NULL: only to look.  EXIT_DONE, or another
 * exit code after it said why. */
int cli_tree_open(struct cli_tree *t, const char *command, const char *given_config, const struct coord_events *events);
/* Ends the session; what hung on it is gone when this returns. */
void cli_tree_close(struct cli_tree *t);

#endif
