#include "config/tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *explain(const char *text)
{
        if (!strcmp(text, "mismatched element type in array"))
                return "the elements of [ … ] have to be of one type";
        if (!strcmp(text, "syntax error"))
                return "syntax error here or just before; a setting is NAME = VALUE;";
        return text;
}

int tree_open(struct config_tree *t, const char *path, const char *text, size_t size, struct problems *problems)
{
        *t = (struct config_tree){ .problems = problems };
        config_init(&t->parsed);
        int r = text ? source_read_text(&t->source, path, text, size, problems)
                     : source_read(&t->source, path, problems);
        if (r)
                return r;
        if (config_read_string(&t->parsed, buffer_text(&t->source.text)))
                return 0;
        problems_error(problems, source_place(&t->source, (unsigned int)config_error_line(&t->parsed)), "%s",
                explain(config_error_text(&t->parsed)));
        return -EINVAL;
}

void tree_close(struct config_tree *t)
{
        config_destroy(&t->parsed);
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

struct config_place tree_place(const struct config_tree *t, const struct config_setting_t *setting)
{
        if (config_setting_is_root(setting))
                return source_whole(&t->source);
        return source_place(&t->source, config_setting_source_line(setting));
}

const char *tree_folder(const struct config_tree *t, const struct config_setting_t *setting)
{
        return source_folder(&t->source, config_setting_source_line(setting));
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

/* `name` is the dotted name so far, and the same again afterwards. */
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
