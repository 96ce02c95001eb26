/* guard.h: a small process that kills a seat's child processes if the runner is killed.
 *
 * A runner that dies of SIGKILL cannot clean up, and the kernel's parent-death signal reaches only the child and not
 * the child's children.  So each seat has a guard.  It reads from a pipe whose other end only the runner has; at
 * end-of-file it kills the process group whose number is in a page that both share.  It calls only read() and kill().
 */
#ifndef QUIVER_PLUGINS_GUARD_H
#define QUIVER_PLUGINS_GUARD_H

#include <stdatomic.h>
#include <sys/types.h>

struct guard {
        pid_t pid;            /* 0: no guard */
        int fd;               /* the runner's end of the pipe; close-on-exec */
        _Atomic pid_t *group; /* in the shared page */
};

/* Makes sure that a guard runs, and starts a new one if it was killed.  0 or -errno. */
int guard_open(struct guard *g);

/* Ends the guard; the group that it still guards is killed. */
void guard_close(struct guard *g);

/* Sets the group to guard; 0: none.  It is only a store to memory, so a child can call it between clone() and exec. */
void guard_tell(const struct guard *g, pid_t group);

#endif
