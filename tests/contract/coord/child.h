/* child.h: other processes as clients, by running this program once more. */
#ifndef QUIVER_TESTS_CONTRACT_COORD_CHILD_H
#define QUIVER_TESTS_CONTRACT_COORD_CHILD_H

#include <sys/types.h>

#include "harness.h"

/* "member NAME": makes the ephemeral node members/NAME, and makes it again after each lost session.
 * "count TIMES": adds 1 to the node "counter" that often, by set with version, and ends.
 * Both run until they are killed, or end with status 0.  session_ms 0: the driver's. */
pid_t child_start(struct world *w, const char *what, const char *argument, uint64_t session_ms);
void child_kill(pid_t pid, int signal);
/* Waits for its end; returns the wait status. */
int child_reap(pid_t pid);

/* What main() calls first: returns unless this process is such a child. */
void child_main(int argc, char **argv);

#endif
