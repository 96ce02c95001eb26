/* lock_look.h: looking at locks and elections, and intervening: without a place in any queue. */
#ifndef QUIVER_CLI_LOCK_LOCK_LOOK_H
#define QUIVER_CLI_LOCK_LOCK_LOOK_H

#include <stdbool.h>

/* Each returns an exit code, after it said why if something is wrong. */

/* Every lock: who holds it, who waits, and what was broken last. */
int lock_list(const char *command, const char *config, bool has_json);
/* Who leads; EXIT_FAILED: nobody. */
int elect_who(const char *command, const char *config, const char *name, bool has_json);
/* Asks whoever leads to end its command and to let the next one lead. */
int elect_resign(const char *command, const char *config, const char *name);

#endif
