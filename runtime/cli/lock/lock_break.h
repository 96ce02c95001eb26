/* lock_break.h: taking a lock from whoever holds it.
 *
 * The node `breaks` of the tree has a line for each of the last breaks: when, by whom, which lock, from whom.  It is
 * written in the same step as the places are deleted. */
#ifndef QUIVER_CLI_LOCK_LOCK_BREAK_H
#define QUIVER_CLI_LOCK_LOCK_BREAK_H

#include <jansson.h>

#include "cli/lock/tree.h"

/* An exit code, after it said what was broken, or why not. */
int lock_break(const char *command, const char *config, const char *name);

/* The lines, the latest first. */
json_t *breaks_read(struct cli_tree *t);

#endif
