/* descendants.h: every process that this one has started, and those that these have started: all that is left of them
 * is ours, since whoever loses its parent becomes our child. */
#ifndef QUIVER_CLI_LOCK_DESCENDANTS_H
#define QUIVER_CLI_LOCK_DESCENDANTS_H

#include <stdbool.h>
#include <sys/types.h>

/* From now on.  What starts a session of its own, or forks twice, gets no other parent than us. */
void descendants_adopt(void);
/* Kills our children.  Theirs become ours then: to be called until descendants_reap() says that none is left.  Returns
 * one that may not be killed; 0: there is none. */
pid_t descendants_kill(void);
/* Takes note of all that have ended.  True: no child is left.  If *pid was among them it is 0 afterwards, and
 * *ret_status says how it ended. */
bool descendants_reap(pid_t *pid, int *ret_status);

#endif
