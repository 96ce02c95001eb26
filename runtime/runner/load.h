/* load.h: opens a plugin, and says by name what is wrong with it. */
#ifndef QUIVER_RUNNER_LOAD_H
#define QUIVER_RUNNER_LOAD_H

#include <stdint.h>

#include <quiver/plugin.h>

#include "base/error.h"

/* Whether `path` is a whole shared object for this machine: what dlopen() would answer with a riddle or a SIGBUS.
 * `label` is what messages call it.  0, or -errno with the text set. */
int load_check_file(const char *path, const char *label, struct error *error);

/* Copies as much of the plugin's table as both sides know over zeroes, and checks every field that a runner with
 * `seats` seats needs.  0, or -EPROTO (speaks another ABI), -EINVAL (a field is wrong) with the text set. */
int load_check_table(
        const struct qv_plugin *table, const char *label, uint32_t seats, struct qv_plugin *ret, struct error *error);

/* Both, and dlopen() between them: the plugin's constructors run here.  The object is never closed: whoever has run a
 * plugin's code can only get rid of it by exiting.  0 or -errno with the text set. */
int load_plugin(const char *path, const char *label, uint32_t seats, struct qv_plugin *ret, struct error *error);

#endif
