#include "config/tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/override.h"

/* Each setting is a source of its own, so that a later one overrides an earlier one. */
static int add_set(struct config_tree *t, const char *given)
{
        struct buffer text = { 0 };
        struct error error;
        char path[300];
        int r = override_text(given, &text, &error);
        (void)snprintf(path, sizeof(path), "--set %.*s", (int)strcspn(given, "="), given);
        if (r < 0) {
                problems_error(t->problems, (struct config_place){ "--set", 0 }, "%s", error.text);
        } else {
                source_add_command_line(&t->source, path, buffer_text(&text), text.size);
                r = config_parse_words(&t->source, config_root_setting(&t->parsed), &t->places);
        }
        buffer_free(&text);
        return r;
}

int tree_open(struct config_tree *t, const char *path, const char *text, size_t size, const struct strings *set,
        struct problems *problems)
{
        *t = (struct config_tree){ .problems = problems };
        config_init(&t->parsed);
        int r = source_open(&t->source, path, text, size, problems);
        if (r == 0)
                r = config_parse_words(&t->source, config_root_setting(&t->parsed), &t->places);
        for (size_t i = 0; r == 0 && set && i < set->count; i++)
                r = add_set(t, set->items[i]);
        return r ? r : t->source.failed;
}

void tree_close(struct config_tree *t)
{
        config_destroy(&t->parsed);
        arena_free(t->places);
        source_free(&t->source);
}

const struct config_setting_t *tree_root(const struct config_tree *t)
{
        return config_root_setting(&t->parsed);
}

const struct config_setting_t *tree_find(const struct config_tree *t, const char *path)
{
        return config_lookup(&t->parsed, path);
}

struct config_place tree_whole(const struct config_tree *t)
{
        return (struct config_place){ t->source.files->path, 0 };
}

const char *tree_main_folder(const struct config_tree *t)
{
        return t->source.files->folder;
}

struct config_place tree_place(const struct config_tree *t, const struct config_setting_t *setting)
{
        const struct setting_place *at = config_setting_get_hook(setting);
        return at ? (struct config_place){ at->file->path, at->line } : tree_whole(t);
}

struct config_place tree_place_of(const struct config_tree *t, const char *path)
{
        const struct config_setting_t *setting = tree_find(t, path);
        return setting ? tree_place(t, setting) : tree_whole(t);
}

const char *tree_folder(const struct config_tree *t, const struct config_setting_t *setting)
{
        const struct setting_place *at = config_setting_get_hook(setting);
        return at ? at->file->folder : tree_main_folder(t);
}

bool tree_is_bad(const struct config_setting_t *setting)
{
        const struct setting_place *at = config_setting_get_hook(setting);
        return at && at->is_bad;
}

const char *tree_path(const struct config_setting_t *setting, char *text, size_t size)
{
        const struct config_setting_t *parent = config_setting_parent(setting);
        if (!parent) {
                (void)snprintf(text, size, "the file");
                return text;
        }
        size_t used = 0;
        if (config_setting_parent(parent))
                used = strlen(tree_path(parent, text, size));
        const char *dot = used ? "." : "";
        if (config_setting_name(setting))
                (void)snprintf(text + used, size - used, "%s%s", dot, config_setting_name(setting));
        else
                (void)snprintf(text + used, size - used, "%s%d", dot, config_setting_index(setting));
        return text;
}

static void put_float(double value, struct buffer *b)
{
        char text[64];
        (void)snprintf(text, sizeof(text), "%.15g", value);
        if (strtod(text, NULL) != value)
                (void)snprintf(text, sizeof(text), "%.17g", value);
        buffer_printf(b, "%s", text);
}

bool tree_scalar(const struct config_setting_t *setting, struct buffer *b)
{
        switch (config_setting_type(setting)) {
        case CONFIG_TYPE_INT:
                buffer_printf(b, "%d", config_setting_get_int(setting));
                return true;
        case CONFIG_TYPE_INT64:
                buffer_printf(b, "%lld", config_setting_get_int64(setting));
                return true;
        case CONFIG_TYPE_FLOAT:
                put_float(config_setting_get_float(setting), b);
                return true;
        case CONFIG_TYPE_STRING:
                buffer_printf(b, "%s", config_setting_get_string(setting));
                return true;
        case CONFIG_TYPE_BOOL:
                buffer_printf(b, "%s", config_setting_get_bool(setting) ? "true" : "false");
                return true;
        default:
                return false;
        }
}

/* `name` holds the dotted name of `group`; it is restored before returning. */
static int flatten(const struct config_setting_t *group, struct buffer *name, struct setting_list *settings)
{
        size_t prefix = name->size;
        int r = 0;
        for (int i = 0; !r && i < config_setting_length(group); i++) {
                const struct config_setting_t *s = config_setting_get_elem(group, (unsigned int)i);
                struct buffer value = { 0 };
                const char *dot = prefix ? "." : "";
                if (config_setting_name(s))
                        buffer_printf(name, "%s%s", dot, config_setting_name(s));
                else
                        buffer_printf(name, "%s%d", dot, i);
                if (tree_scalar(s, &value))
                        r = setting_list_add(settings, buffer_text(name), buffer_text(&value));
                else if (config_setting_is_aggregate(s))
                        r = flatten(s, name, settings);
                buffer_free(&value);
                name->size = prefix;
        }
        return r;
}

int tree_flatten(const struct config_setting_t *group, struct setting_list *settings)
{
        struct buffer name = { 0 };
        int r = flatten(group, &name, settings);
        buffer_free(&name);
        return r;
}
