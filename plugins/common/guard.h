/* guard.h: a tiny process that ends what a seat has started, should its runner be killed.
 *
 * A runner that dies of SIGKILL can clean up nothing, and the kernel's parent-death signal reaches the child only, not
 * the child's children.  So each seat has a guard: it holds the reading end of a pipe whose other end only the runner
 * has, knows the process group that is at work, and kills that group when the pipe says that the runner is gone.  It
 * runs nothing but read() and kill(). */
#ifndef QUIVER_PLUGINS_GUARD_H
#define QUIVER_PLUGINS_GUARD_H

#include <sys/types.h>

struct guard {
        pid_t pid;
        int fd; /* of the pipe; close on exec */
};

/* 0 or -errno. */
int guard_open(struct guard *g);

/* Whatever it still guards is killed. */
void guard_close(struct guard *g);

/* From now on it guards this group; 0: none.  One write(), so that a child can call it for itself between vfork and
 * exec.  0 or -errno; -EPIPE: the guard is gone. */
int guard_tell(const struct guard *g, pid_t group);

#endif
