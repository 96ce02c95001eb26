#include "cli/plugin_args.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"
#include "config/config.h"

/* What is there already stays. */
static int add(struct setting_list *settings, const char *name, const char *value, struct error *error)
{
        if (setting_list_get(settings, name) || setting_list_add(settings, name, value) == 0)
                return 0;
        return error_set(error, -E2BIG, "the settings take more than %zu KiB", SETTINGS_BYTES_MAX / 1024);
}

int plugin_args_finish(struct plugin_args *a, const struct options *o)
{
        struct error error;
        if (o->words_count > 1)
                return options_wrong(o, "one plugin at a time: %s, %s", o->words[0], o->words[1]);
        if (!o->words_count)
                return options_wrong(o, "which plugin?  quiver %s PLUGIN.so", o->command);
        for (size_t i = 0; i < a->sets.count; i++) {
                const char *text = a->sets.items[i];
                size_t size = strcspn(text, "=");
                if (!size || !text[size])
                        return options_wrong(o, "--set wants NAME=VALUE, not \"%s\"", text);
                char *name = text_copy_part(text, size);
                int r = add(&a->settings, name, text + size + 1, &error);
                free(name);
                if (r < 0)
                        return options_wrong(o, "%s", error.text);
        }
        a->plugin = o->words[0];
        const char *slash = strrchr(a->plugin, '/');
        const char *base = slash ? slash + 1 : a->plugin;
        const char *dot = strrchr(base, '.');
        size_t length = dot && dot != base ? (size_t)(dot - base) : strlen(base);
        (void)snprintf(a->name, sizeof(a->name), "%.*s", (int)min_u64(length, 64), base);
        if (!a->handler)
                a->handler = a->name;
        return EXIT_DONE;
}

int plugin_args_load(struct plugin_args *a, struct error *error)
{
        struct setting_list loaded = { 0 };
        int r = 0;
        if (a->config)
                r = config_load_settings(a->config, a->handler == a->name ? a->plugin : a->handler, &loaded, error);
        for (size_t i = 0; r == 0 && i < loaded.count; i++)
                r = add(&a->settings, loaded.items[i].name, loaded.items[i].value, error);
        setting_list_free(&loaded);
        return r;
}

void plugin_args_free(struct plugin_args *a)
{
        strings_free(&a->sets);
        setting_list_free(&a->settings);
}
