/* plugin_copies.h: the folder of a host's private plugin copies, STATE/staging-XXXXXX.
 *
 * A living host holds a lock on its folder; one that died does not, whatever it died of.  So whoever starts can tell
 * which folders nobody needs, and removes them. */
#ifndef QUIVER_HOST_HANDLER_PLUGIN_COPIES_H
#define QUIVER_HOST_HANDLER_PLUGIN_COPIES_H

#include <stddef.h>

#include "base/error.h"

#define PLUGIN_COPIES_PATH_MAX 4096

/* Refuses a state folder that somebody else could write to or replace (file_trust.h), with -EPERM.  Otherwise removes
 * what dead hosts have left in it, and makes a folder of our own, which only we can enter.  Returns the descriptor that
 * holds its lock, or -errno with the text. */
int plugin_copies_open(const char *state, char ret_path[PLUGIN_COPIES_PATH_MAX], struct error *error);
/* Removes the folder, which has to be empty by now, and lets go of it. */
void plugin_copies_close(const char *path, int fd);

#endif
