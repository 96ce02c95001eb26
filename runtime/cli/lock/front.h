/* front.h: a command under a lock takes two processes of ours.
 *
 *         front     what was started by hand: passes signals on, waits, ends with the guard's exit code
 *         guard     its child: keeps the session and the lock, starts the command, is the reaper of all that it starts
 *
 * Whoever kills the front, with its process group if need be, does not kill the guard: that ends everything, and only
 * then gives the lock back.  If the guard is killed the front ends everything; the lock is free when the session is
 * over. */
#ifndef QUIVER_CLI_LOCK_FRONT_H
#define QUIVER_CLI_LOCK_FRONT_H

#include <stdbool.h>
#include <sys/types.h>

struct front {
        pid_t pid;   /* the front's */
        pid_t group; /* its process group: what the terminal has in front if we were started by hand */
        int fd;      /* the guard's: end-of-file when the front is gone */
};

/* Splits this process, which has no thread and no loop yet.  True: we are the guard, with TERM, INT, HUP and CHLD
 * blocked until front_unblock().  False: we are the front, all is over, and *ret_code is the exit code. */
bool front_split(struct front *front, const char *what, int *ret_code);
void front_unblock(void);
/* Whether it was stopped (SIGSTOP, a debugger): then nobody stands behind the command. */
bool front_is_stopped(const struct front *front);

#endif
