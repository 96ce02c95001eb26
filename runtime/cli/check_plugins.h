/* check_plugins.h: does every configured plugin load, and does its init like its settings? */
#ifndef QUIVER_CLI_CHECK_PLUGINS_H
#define QUIVER_CLI_CHECK_PLUGINS_H

#include "cli/plugin_probe.h"
#include "config/config.h"

/* Whether the state folder, if there is one, is as a host wants it. */
void check_state(const struct config *config, struct problems *problems);

/* Starts a runner for each handler, one after the other, as a host would: with its settings and limits, so that init
 * runs; then ends it again.  What is wrong is added to `problems`, at the handler's place in the file.  Returns a
 * report per handler, for free(). */
struct plugin_report *check_plugins(const struct config *config, struct problems *problems);

#endif
