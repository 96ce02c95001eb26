/* child.h: one process of a seat, in a process group of its own, with pipes on stdin, stdout and stderr.
 *
 * Its group ends with it: whatever it started is killed when it is reaped, and by the guard if the runner dies.  Only
 * what has left the group (setsid) gets away. */
#ifndef QUIVER_PLUGINS_CHILD_H
#define QUIVER_PLUGINS_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <quiver/plugin.h>

#include "command.h"
#include "guard.h"

struct child {
        pid_t pid;        /* and number of its group; 0: there is none */
        int pidfd;        /* readable once it has ended */
        int in, out, err; /* our ends; they do not block; -1: closed */
};
#define CHILD_NONE                                                                                                     \
        {                                                                                                              \
                0, -1, -1, -1, -1                                                                                      \
        }

/* Starts the command under the seat's guard, which is opened if need be.  0, or -errno of what failed: execve's if it
 * was that. */
int child_start(struct child *c, struct guard *g, const struct command *command);

/* To the whole group. */
void child_signal(const struct child *c, int signal);

/* Within wait_ms; -1: however long it takes. */
bool child_has_ended(const struct child *c, int wait_ms);

/* Kills what is left of the group, reaps the child, closes the pipes.  Returns its status as waitpid() has it. */
int child_end(struct child *c, const struct guard *g);

/* "exit status 3" or "killed by SIGSEGV". */
const char *child_status_text(int status, char *text, size_t size);

/* Writes as much as the child takes now, and moves *sent on.  0; -EPIPE: it takes no more. */
int child_write(struct child *c, const void *data, size_t size, size_t *sent);

void child_close_fd(int *fd);

/* --- stopping ---------------------------------------------------------------------------------------------------- */

/* Where a child stands between SIGTERM and SIGKILL. */
struct halt {
        uint64_t kill_after_ms; /* from one to the other */
        uint64_t term_ms;       /* when it got SIGTERM; 0: it did not */
        bool is_killed;
};

/* Sends what is due once the task has to stop.  Returns how long to wait, at most, before the next call. */
int halt_step(struct halt *h, const struct child *c, const struct qv_task *task);

/* CLOCK_BOOTTIME, as deadlines have it. */
uint64_t now_ms(void);

#endif
