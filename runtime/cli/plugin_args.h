/* plugin_args.h: the common arguments of commands that run one plugin without a host. */
#ifndef QUIVER_CLI_PLUGIN_ARGS_H
#define QUIVER_CLI_PLUGIN_ARGS_H

#include "base/setting_list.h"
#include "cli/options.h"

/* All zero means that nothing was given. */
struct plugin_args {
        const char *plugin;  /* as it was named */
        const char *handler; /* --handler, or the plugin's file name without its ending: what a runtime.cfg would say */
        const char *config;  /* --config; NULL: none */
        struct strings sets; /* --set, as they were given */
        struct setting_list settings;
        char name[80]; /* of the plugin's file, without its ending */
};

/* Rows for a command's table; `a` is a struct plugin_args *. */
#define PLUGIN_OPTIONS(a)                                                                                              \
        OPT_TEXT("--config FILE", &(a)->config, "settings for the plugin: a runtime.cfg, or just the settings"),       \
                OPT_LIST("--set NAME=VALUE", &(a)->sets, "one setting; may be repeated, and overrides --config"),      \
                OPT_TEXT("--handler NAME", &(a)->handler, "the handler's name (default: the plugin's file name)")

/* Takes the plugin's name from the words, and the settings of --set.  EXIT_DONE, or EXIT_USAGE after it said why. */
int plugin_args_finish(struct plugin_args *a, const struct options *o);

/* Adds the settings that --config FILE has for the plugin (see config_load_settings()); what --set gave stays.  0, or
 * -errno with the text set. */
int plugin_args_load(struct plugin_args *a, struct error *error);

void plugin_args_free(struct plugin_args *a);

#endif
