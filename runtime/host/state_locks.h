/* state_locks.h: the two locks of a host in its state folder.
 *
 *         NAME.host    exclusive, held by the host while it lives; contains its pid
 *         NAME.alive   shared, held by its runners and its guard through an inherited descriptor
 *
 * Two hosts of one name therefore cannot use one folder.  A starting host that gets both locks exclusively knows that
 * no process of its predecessor is left, and may end the predecessor's leases and session (predecessor.h).  A process
 * that a plugin forked keeps NAME.alive locked, because it may still be working on a task.  Nobody waits for such a
 * process longer than STATE_LOCKS_WAIT_MS: then the predecessor's leases expire by themselves. */
#ifndef QUIVER_HOST_STATE_LOCKS_H
#define QUIVER_HOST_STATE_LOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define STATE_LOCKS_WAIT_MS 300u

struct state_locks {
        int folder_fd; /* -1: not open, and neither are the other descriptors */
        int host_fd;
        int alive_fd;         /* for file_lock_share(); -1 also where the file system has no locks */
        uint64_t alive_id[2]; /* device and inode of NAME.alive */
        bool is_alone;        /* we hold NAME.alive exclusively: no process of a predecessor is left */
        const char *why_not;  /* why is_alone is false; NULL: it is true */
};

void state_locks_init(struct state_locks *l);
/* Blocks for twice STATE_LOCKS_WAIT_MS at most.  0; -EADDRINUSE: another host of this name runs on this folder, with
 * the text naming its pid; or -errno with the text set. */
int state_locks_open(struct state_locks *l, const char *folder, const char *name, struct error *error);

/* Lets children share NAME.alive from now on. */
void state_locks_share(struct state_locks *l);
void state_locks_close(struct state_locks *l);

#endif
