/* plugin_args.h: what the commands that run one plugin without a host have in common on their command line. */
#ifndef QUIVER_CLI_PLUGIN_ARGS_H
#define QUIVER_CLI_PLUGIN_ARGS_H

#include <stddef.h>

#include "base/error.h"
#include "base/setting_list.h"

/* Adds the setting of --set NAME=VALUE; one that is there already stays.  0, -EINVAL (no NAME=), -E2BIG with the text
 * set. */
int plugin_args_set(struct setting_list *settings, const char *text, struct error *error);

/* Adds the settings that --config FILE has for `which` (see config_load_settings()); what --set gave stays.  0, or
 * -errno with the text set. */
int plugin_args_load(struct setting_list *settings, const char *file, const char *which, struct error *error);

/* The plugin's file name without its ending: what a runtime.cfg would call its handler. */
void plugin_args_handler(const char *plugin, char *name, size_t size);

#endif
