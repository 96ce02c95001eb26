/* load_settings.c: the settings of one plugin, for commands that run it without a host. */
#include <errno.h>
#include <string.h>

#include "config/config.h"
#include "config/tree.h"

static const char *file_name(const char *path)
{
        const char *slash = strrchr(path, '/');
        return slash ? slash + 1 : path;
}

static bool has_plugin(const struct config_setting_t *handler, const char *which)
{
        const char *plugin = NULL;
        return config_setting_is_group(handler) && config_setting_lookup_string(handler, "plugin", &plugin) &&
               !strcmp(file_name(plugin), file_name(which));
}

/* The handler named `which`, or the only one with that plugin. */
static int find_handler(const struct config_setting_t *handlers, const char *which,
        const struct config_setting_t **ret_handler, struct error *error)
{
        const struct config_setting_t *fit = NULL;
        const struct config_setting_t *second = NULL;
        for (int i = 0; i < config_setting_length(handlers); i++) {
                const struct config_setting_t *h = config_setting_get_elem(handlers, (unsigned int)i);
                /* libconfig's lookup would take "echo.so" for the member "so" of "echo". */
                if (!strcmp(config_setting_name(h), which)) {
                        *ret_handler = h;
                        return 0;
                }
                if (!has_plugin(h, which))
                        continue;
                if (fit)
                        second = h;
                else
                        fit = h;
        }
        if (!fit)
                return error_set(error, -ENOENT, "no handler is called \"%s\" or has that plugin", which);
        if (second)
                return error_set(error, -EEXIST, "handlers %s and %s both have the plugin %s; name one of them",
                        config_setting_name(fit), config_setting_name(second), file_name(which));
        *ret_handler = fit;
        return 0;
}

static int take_settings(struct config_tree *t, const char *which, struct setting_list *settings, struct error *error)
{
        const struct config_setting_t *group = tree_root(t);
        const struct config_setting_t *handlers = tree_find(t, "handlers");
        if (handlers && config_setting_is_group(handlers)) {
                int r = find_handler(handlers, which, &group, error);
                if (r)
                        return error_prefix(error, r, "%s", tree_place(t, handlers).file);
                group = config_setting_is_group(group) ? config_setting_get_member(group, "config") : NULL;
        }
        if (!group)
                return 0; /* a handler without settings */
        struct config_place place = tree_place(t, group);
        if (!config_setting_is_group(group))
                return error_set(error, -EINVAL, "%s:%u: config wants a group: { … }", place.file, place.line);
        if (tree_flatten(group, settings) < 0)
                return error_set(error, -E2BIG, "%s:%u: more than 64 KiB of settings", place.file, place.line);
        return 0;
}

int config_load_settings(const char *path, const char *which, struct setting_list *ret_settings, struct error *error)
{
        struct problems problems = { 0 };
        struct setting_list settings = { 0 };
        struct config_tree tree;
        int r = tree_open(&tree, path, NULL, 0, NULL, &problems);
        if (!r && problems.errors)
                r = -EINVAL;
        if (r) {
                char text[ERROR_TEXT_MAX];
                (void)error_set(error, r, "%s", problem_format(&problems.items[0], text, sizeof(text)));
        } else {
                r = take_settings(&tree, which, &settings, error);
        }
        tree_close(&tree);
        problems_free(&problems);
        if (r)
                setting_list_free(&settings);
        else
                *ret_settings = settings;
        return r;
}
