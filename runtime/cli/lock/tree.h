/* tree.h: how a command gets at the coordination tree. */
#ifndef QUIVER_CLI_LOCK_TREE_H
#define QUIVER_CLI_LOCK_TREE_H

#include <uv.h>

#include "cli/open.h"
#include "coord/coord.h"
#include "look/tree_look.h"

struct cli_tree {
        const char *command; /* for messages */
        struct config config;
        uv_loop_t loop;
        struct coord *coord;
        uv_timer_t slow_timer; /* while the coordination does not answer; runs from the opening on */
        bool has_said_slow;    /* that it does not */
};

/* It answers, or has stopped to: after a second the user is told, and when it answers again. */
void cli_tree_answers(struct cli_tree *t, bool is_so);

/* Finds and reads the settings, and opens the tree that they name.  `events` NULL: only to look.  EXIT_DONE, or another
 * exit code after it said why. */
int cli_tree_open(struct cli_tree *t, const char *command, const char *given_config, const struct coord_events *events);
/* The same for who holds locks: with a session of ttl_ms; 0: as the settings for locks have it. */
int cli_tree_open_for(struct cli_tree *t, const char *command, const char *given_config, uint64_t ttl_ms,
        const struct coord_events *events);
/* Asks what the look wants to know.  EXIT_DONE, or another exit code after it said why. */
int cli_tree_look(struct cli_tree *t, struct tree_look *look);

/* Ends the session; what hung on it is gone when this returns. */
void cli_tree_close(struct cli_tree *t);

#endif
