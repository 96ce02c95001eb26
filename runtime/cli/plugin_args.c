#include "cli/plugin_args.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"

static int add(struct setting_list *settings, const char *name, const char *value, struct error *error)
{
        if (setting_list_get(settings, name))
                return 0;
        if (setting_list_add(settings, name, value) < 0)
                return error_set(error, -E2BIG, "the settings take more than %zu KiB", SETTINGS_BYTES_MAX / 1024);
        return 0;
}

int plugin_args_set(struct setting_list *settings, const char *text, struct error *error)
{
        const char *equals = strchr(text, '=');
        if (!equals || equals == text)
                return error_set(error, -EINVAL, "--set wants NAME=VALUE, not \"%s\"", text);
        char *name = text_copy_part(text, (size_t)(equals - text));
        int r = add(settings, name, equals + 1, error);
        free(name);
        return r;
}

int plugin_args_load(struct setting_list *settings, const char *file, const char *which, struct error *error)
{
        struct setting_list loaded = { 0 };
        int r = config_load_settings(file, which, &loaded, error);
        for (size_t i = 0; r == 0 && i < loaded.count; i++)
                r = add(settings, loaded.items[i].name, loaded.items[i].value, error);
        setting_list_free(&loaded);
        return r;
}

void plugin_args_handler(const char *plugin, char *name, size_t size)
{
        const char *slash = strrchr(plugin, '/');
        const char *base = slash ? slash + 1 : plugin;
        const char *dot = strrchr(base, '.');
        size_t length = dot && dot != base ? (size_t)(dot - base) : strlen(base);
        (void)snprintf(name, size, "%.*s", (int)(length < 64 ? length : 64), base);
}
