/* state_locks.h: the two locks of a host in its state folder.
 *
 *         NAME.host    exclusive, held by the host as long as it lives; its pid stands in it
 *         NAME.alive   shared, held by each of its runners and by its guard, through a descriptor that they inherit
 *
 * So two hosts of one name cannot use one folder.  A starting host that gets both for itself knows that no process of
 * its predecessor is left, and may end what that one held (predecessor.h).  A process that a plugin has forked and that
 * lives on holds NAME.alive, too, which is right: it may still do its work.  Nobody waits for it for longer than
 * STATE_LOCKS_WAIT_MS: then the predecessor's leases end by themselves. */
#ifndef QUIVER_HOST_STATE_LOCKS_H
#define QUIVER_HOST_STATE_LOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define STATE_LOCKS_WAIT_MS 300u

struct state_locks {
        int folder_fd; /* -1: not open; so are the others then */
        int host_fd;
        int alive_fd;         /* for file_lock_share(); -1 also where the file system has no locks */
        uint64_t alive_id[2]; /* device and inode of NAME.alive */
        bool is_alone;        /* holds NAME.alive for itself: nothing of a predecessor lives */
        const char *why_not;  /* it is not alone, or that cannot be known; NULL: it is */
};

void state_locks_init(struct state_locks *l);
/* Blocks for twice STATE_LOCKS_WAIT_MS at most.  0; -EADDRINUSE: another host of this name runs on this folder, with
 * the text naming its pid; or -errno with the text set. */
int state_locks_open(struct state_locks *l, const char *folder, const char *name, struct error *error);

/* From now on children may share NAME.alive. */
void state_locks_share(struct state_locks *l);
void state_locks_close(struct state_locks *l);

#endif
