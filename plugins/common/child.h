/* child.h: a child process of a seat, in a process group of its own, with pipes on stdin, stdout and stderr.
 *
 * The whole group ends with it: its processes are killed when the child is reaped, and by the guard if the runner dies.
 * Only a process that has left the group (setsid) survives. */
#ifndef QUIVER_PLUGINS_CHILD_H
#define QUIVER_PLUGINS_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <quiver/plugin.h>

#include "command.h"
#include "guard.h"

struct child {
        pid_t pid;        /* also the number of its group; 0: no child */
        int pidfd;        /* readable once the child has ended */
        int in, out, err; /* our ends of the pipes, non-blocking; -1: closed */
};
#define CHILD_NONE                                                                                                     \
        {                                                                                                              \
                0, -1, -1, -1, -1                                                                                      \
        }

/* Starts the command under the seat's guard, which is opened if necessary.  0, or -errno, also of a failed execve(). */
int child_start(struct child *c, struct guard *g, const struct command *command);

/* Sends a signal to the whole group. */
void child_signal(const struct child *c, int signal);

/* Whether the child ends within wait_ms; -1: waits until it does. */
bool child_has_ended(const struct child *c, int wait_ms);

/* Kills the rest of the group, reaps the child and closes the pipes.  Returns the status of waitpid(). */
int child_end(struct child *c, const struct guard *g);

/* "exit status 3" or "killed by SIGSEGV". */
const char *child_status_text(int status, char *text, size_t size);

/* Writes as much as the pipe accepts now, and advances *sent.  0; -EPIPE: the child reads no more. */
int child_write(struct child *c, const void *data, size_t size, size_t *sent);

void child_close_fd(int *fd);

/* --- stopping ---------------------------------------------------------------------------------------------------- */

/* The progress of a child between SIGTERM and SIGKILL. */
struct halt {
        uint64_t kill_after_ms; /* time from SIGTERM to SIGKILL */
        uint64_t term_ms;       /* when SIGTERM was sent; 0: not sent */
        bool is_killed;
};

/* Once the task has to stop, sends the signal that is due.  Returns the longest time to wait before the next call. */
int halt_step(struct halt *h, const struct child *c, const struct qv_task *task);

/* CLOCK_BOOTTIME in milliseconds, the clock of deadlines. */
uint64_t now_ms(void);

#endif
