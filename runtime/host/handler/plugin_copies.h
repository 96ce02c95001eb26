/* plugin_copies.h: the folder of a host's private plugin copies, STATE/staging-XXXXXX.
 *
 * A living host holds a lock on its folder, which the kernel releases however the host dies.  So a starting host can
 * tell which folders belong to dead hosts, and removes them. */
#ifndef QUIVER_HOST_HANDLER_PLUGIN_COPIES_H
#define QUIVER_HOST_HANDLER_PLUGIN_COPIES_H

#include <stddef.h>

#include "base/error.h"

#define PLUGIN_COPIES_PATH_MAX 4096

/* Refuses a state folder that somebody else could write to or replace (file_trust.h), with -EPERM.  Removes the folders
 * of dead hosts, and makes our own, which only our user can enter.  Returns the descriptor that holds its lock, or
 * -errno with the text set. */
int plugin_copies_open(const char *state, char ret_path[PLUGIN_COPIES_PATH_MAX], struct error *error);
/* Removes the folder, which must be empty, and releases its lock. */
void plugin_copies_close(const char *path, int fd);

#endif
