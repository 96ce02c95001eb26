/* sandbox.h: what a runner gives up before it opens the plugin.
 *
 * In the order of this file.  Called while the runner has one thread. */
#ifndef QUIVER_RUNNER_SANDBOX_H
#define QUIVER_RUNNER_SANDBOX_H

#include <sys/types.h>

#include "base/buffer.h"
#include "base/error.h"
#include "ring/message.h"

/* Dies with the parent.  -ESRCH if `parent` is gone already: the signal is only sent for a death yet to come. */
int sandbox_tie_to_parent(pid_t parent);

/* A process group of its own, so that Ctrl-C in the host's terminal reaches the host alone; and no signal blocked. */
void sandbox_leave_terminal(void);

/* Closes whatever was inherited beyond the descriptors of message.h. */
void sandbox_close_strangers(void);

/* Moves a descriptor out of the way of a plugin that closes, or opens, low numbers, and keeps it from the plugin's
 * children.  The new number, or the old one if there is no room. */
int sandbox_hide_fd(int fd);

/* Takes out of the environment what is Quiver's own and nobody else's: QUIVER_*, and systemd's notification socket.
 * The bytes go too: /proc/self/environ would still show them. */
void sandbox_clean_environment(void);

/* File mode mask, core dumps (only with QUIVER_CORES=1), and the limits that `start` sets.  `notes` gets what has no
 * effect here.  0 or -errno with the text set. */
int sandbox_limit(const struct runner_start *start, struct buffer *notes, struct error *error);

/* Becomes start->user, with its groups and home, for good; nothing if that is "" or who we are already.  Undoes
 * sandbox_tie_to_parent().  0, -ENOENT (no such user), -EPERM (only root can) with the text set. */
int sandbox_become(const char *user, struct error *error);

/* No setuid program will raise our rights again.  0 or -errno with the text set. */
int sandbox_give_up_privileges(struct error *error);

/* Landlock: of the file system only the paths that `start` lists, the plugin itself, and what every program needs to
 * load its libraries.  A kernel without it is a line in `notes`.  Nothing if no path is listed.  0 or -errno with the
 * text set. */
int sandbox_confine(const struct runner_start *start, struct buffer *notes, struct error *error);

#endif
