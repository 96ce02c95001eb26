/* guard.h: a small process that outlives its host, and gives back what a dead host can not.
 *
 * A host that is killed leaves runners, leases and a session behind.  Its guard learns of it by end-of-file, kills the
 * runners, waits until each of them is really gone, and only then ends the leases and the session: another host may
 * start the same tasks the moment a lease is free.  What can not be killed keeps its leases, and their time decides.
 *
 * It holds no task, runs no plugin, and leads a session of its own, so that a signal to the host's group misses it. */
#ifndef QUIVER_GUARD_GUARD_H
#define QUIVER_GUARD_GUARD_H

#include "guard/order.h"
#include "ring/leases.h"

/* lease_returns.c: gives back every lease that the page shows, then ends the session (token "": there is none).  Tries
 * until the leases would have ended by themselves.  Returns how many were given back. */
uint32_t guard_release(const struct guard_start *start, const struct leases *leases, const char *token);

/* `quiver guard`: started by a host, with the descriptors of order.h.  Returns an exit code. */
int cmd_guard(int argc, char **argv);

#endif
