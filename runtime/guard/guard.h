/* guard.h: a small process that outlives its host, and returns the leases that a dead host cannot return.
 *
 * A host that is killed leaves runners, leases and a coordination session behind.  Its guard notices the death by
 * end-of-file, kills the runners, waits until each of them has ended, and only then returns the leases and ends the
 * session: another host may start the same tasks as soon as a lease is free.  If a runner cannot be killed, the guard
 * returns nothing, and the leases expire.
 *
 * The guard holds no task and runs no plugin.  It leads a session of its own, so that a signal to the host's process
 * group does not reach it. */
#ifndef QUIVER_GUARD_GUARD_H
#define QUIVER_GUARD_GUARD_H

#include "guard/order.h"
#include "ring/leases.h"

struct guard_work;

/* release.c: what the guard does when the host is dead.  A Redis over TLS is connected to at the start, while the host
 * lives, because the tasks of a dead host would wait for the handshakes.  `start` must stay valid. */
struct guard_work *guard_work_open(struct uv_loop_s *loop, const struct guard_start *start);
/* Returns every lease that the lease page shows, then ends the session (token "": there is none), and closes and frees
 * the work.  Retries until the leases would have expired.  Runs the loop meanwhile, and returns how many leases the
 * store took back. */
uint32_t guard_work_release(struct guard_work *work, const struct leases *leases, const char *token);

/* `quiver guard`: started by a host, with the descriptors of order.h.  Returns an exit code. */
int cmd_guard(int argc, char **argv);

#endif
