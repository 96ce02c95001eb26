/* load.h: opens a plugin, and names what is wrong with it. */
#ifndef QUIVER_RUNNER_LOAD_H
#define QUIVER_RUNNER_LOAD_H

#include <stdint.h>

#include <quiver/plugin.h>

#include "base/error.h"

/* Checks that `path` is a complete shared object for this machine; dlopen() would report an unclear message or die of
 * SIGBUS.  Messages call the plugin `label`.  0, or -errno with the text set. */
int load_check_file(const char *path, const char *label, struct error *error);

/* Copies the part of the plugin's table that both sides know, sets the rest to zero, and checks every field that a
 * runner with `seats` seats needs.  0, or -EPROTO (another ABI), -EINVAL (a field is wrong) with the text set. */
int load_check_table(
        const struct qv_plugin *table, const char *label, uint32_t seats, struct qv_plugin *ret, struct error *error);

/* load_check_file(), dlopen(), load_check_table().  The plugin's constructors run here.  The object is never closed:
 * its code cannot be removed safely from a process that has run it.  0, or -errno with the text set. */
int load_plugin(const char *path, const char *label, uint32_t seats, struct qv_plugin *ret, struct error *error);

/* The runtime library of a sanitizer that the plugin was built with and that has to be loaded before everything else
 * ("libasan.so.8"); "" if there is none, or it is unknown. */
void load_find_sanitizer(const char *path, char *name, size_t size);

#endif
