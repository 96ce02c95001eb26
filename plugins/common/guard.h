/* guard.h: a tiny process that ends what a seat has started, should its runner be killed.
 *
 * A runner that dies of SIGKILL can clean up nothing, and the kernel's parent-death signal reaches the child only, not
 * the child's children.  So each seat has a guard: it reads from a pipe whose other end only the runner has, and when
 * that says that the runner is gone it kills the process group that stands in a page shared by the two.  It runs
 * nothing but read() and kill(). */
#ifndef QUIVER_PLUGINS_GUARD_H
#define QUIVER_PLUGINS_GUARD_H

#include <stdatomic.h>
#include <sys/types.h>

struct guard {
        pid_t pid;            /* 0: there is none */
        int fd;               /* of the pipe; close on exec */
        _Atomic pid_t *group; /* the page */
};

/* Makes sure that there is one: a guard can be killed like anything else, and then there is a new one.  0 or -errno. */
int guard_open(struct guard *g);

/* Whatever it still guards is killed. */
void guard_close(struct guard *g);

/* From now on it guards this group; 0: none.  A store: a child calls it for itself, between clone and exec. */
void guard_tell(const struct guard *g, pid_t group);

#endif
