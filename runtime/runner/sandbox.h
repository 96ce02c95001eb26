/* sandbox.h: the rights and descriptors that a runner gives up before it opens the plugin.
 *
 * The functions are called in the order of this file, while the runner has one thread. */
#ifndef QUIVER_RUNNER_SANDBOX_H
#define QUIVER_RUNNER_SANDBOX_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/error.h"
#include "ring/message.h"

/* Makes the kernel kill this process when its parent dies.  -ESRCH if `parent` is already gone: then no signal
 * comes. */
int sandbox_tie_to_parent(pid_t parent);

/* Moves to a process group of its own, so that Ctrl-C in the host's terminal reaches only the host; unblocks all
 * signals. */
void sandbox_leave_terminal(void);

/* Closes every inherited descriptor except those of message.h. */
void sandbox_close_strangers(void);

/* Moves a descriptor to a high number, out of the way of a plugin that closes or duplicates low numbers, and sets
 * close-on-exec.  Returns the new number, or the old one if there is no room. */
int sandbox_hide_fd(int fd);

/* Joins the control group of `start`, if there is one.  0, or -errno with the text set. */
int sandbox_join(const struct runner_start *start, struct error *error);

/* Removes QUIVER_* (except the mark of stray_mark.h) and systemd's notification socket from the environment, and
 * overwrites their bytes, which /proc/self/environ would still show. */
void sandbox_clean_environment(void);

/* Sets the file mode mask, core dumps (none, unless limits.core or QUIVER_CORES=1 allow them) and the limits of
 * `start`.  Appends to `notes` the limits that have no effect on this machine.  0, or -errno with the text set. */
int sandbox_limit(const struct runner_start *start, struct buffer *notes, struct error *error);

/* With limits.network = "none": moves to an empty network namespace.  If this machine does not allow that, sets
 * *ret_is_left, and sandbox_confine() must close the network.  0, or -errno with the text set. */
int sandbox_leave_network(const struct runner_start *start, bool *ret_is_left, struct error *error);

/* Whether sandbox_leave_network() would work here; a child tries it.  For reports about the setting. */
bool sandbox_can_leave_network(void);

/* Becomes `user`, with its groups and home, permanently; does nothing if `user` is "" or our own.  Undoes
 * sandbox_tie_to_parent().  0, -ENOENT (no such user), -EPERM (only root can) with the text set. */
int sandbox_become(const char *user, struct error *error);

/* The version of this kernel's Landlock; 0: none. */
unsigned sandbox_landlock_version(void);

/* Sets no_new_privs: no setuid program can raise our rights again.  0, or -errno with the text set. */
int sandbox_give_up_privileges(struct error *error);

/* Confines the file system with Landlock to the paths that `start` lists, the plugin itself, and what every program
 * needs to load its libraries; and signals and abstract sockets to this runner and its children.  On a kernel without
 * Landlock, or without that part, it only adds a line to `notes`.  Does nothing if no path is listed.  With
 * `has_network_left` it also closes TCP, and fails on a kernel that cannot.  0, or -errno with the text set. */
int sandbox_confine(const struct runner_start *start, bool has_network_left, struct buffer *notes, struct error *error);

#endif
