#include "config/read.h"

#include <string.h>

#include "config/field.h"
#include "config/names.h"

#define NAME_MAX_SHOWN 256

static const char *wanted(const struct field *f)
{
        switch (f->type) {
        case FIELD_COUNT:
                return "an integer";
        case FIELD_NUMBER:
                return "a number";
        case FIELD_DURATION:
                return "a duration in quotes, with its unit";
        case FIELD_SIZE:
                return "a size in quotes, with its unit";
        case FIELD_FLAG:
                return "true or false, without quotes";
        case FIELD_CHOICE:
        case FIELD_TEXT:
        case FIELD_PATH:
        case FIELD_URL:
                return "a text in double quotes";
        case FIELD_STRINGS:
        case FIELD_PATHS:
                return "a list of texts, such as [ \"a\", \"b\" ]";
        case FIELD_GROUP:
        case FIELD_SETTINGS:
        case FIELD_HANDLERS:
        case FIELD_NAMED:
                break;
        }
        return "a group: { … }";
}

static const char *found(const struct config_setting_t *s)
{
        switch (config_setting_type(s)) {
        case CONFIG_TYPE_INT:
        case CONFIG_TYPE_INT64:
                return "an integer";
        case CONFIG_TYPE_FLOAT:
                return "a float";
        case CONFIG_TYPE_BOOL:
                return "true or false";
        case CONFIG_TYPE_STRING:
                return "a text";
        case CONFIG_TYPE_GROUP:
                return "a group";
        default:
                return "a list";
        }
}

static bool has_wanted_type(const struct field *f, const struct config_setting_t *s)
{
        int type = config_setting_type(s);
        bool is_integer = type == CONFIG_TYPE_INT || type == CONFIG_TYPE_INT64;
        switch (f->type) {
        case FIELD_COUNT:
                return is_integer;
        case FIELD_NUMBER:
                return is_integer || type == CONFIG_TYPE_FLOAT;
        case FIELD_FLAG:
                return type == CONFIG_TYPE_BOOL;
        case FIELD_DURATION:
        case FIELD_SIZE:
        case FIELD_CHOICE:
        case FIELD_TEXT:
        case FIELD_PATH:
        case FIELD_URL:
                return type == CONFIG_TYPE_STRING;
        case FIELD_STRINGS:
        case FIELD_PATHS:
                return type == CONFIG_TYPE_ARRAY || type == CONFIG_TYPE_LIST;
        case FIELD_GROUP:
        case FIELD_SETTINGS:
        case FIELD_HANDLERS:
        case FIELD_NAMED:
                break;
        }
        return type == CONFIG_TYPE_GROUP;
}

static void wrong_type(struct config_tree *t, const struct field *f, const struct config_setting_t *s)
{
        char path[NAME_MAX_SHOWN];
        const char *unit = f->type == FIELD_DURATION ? "s" : f->type == FIELD_SIZE ? "KiB" : NULL;
        (void)tree_path(s, path, sizeof(path));
        if (unit && config_setting_type(s) == CONFIG_TYPE_INT && config_setting_get_int(s) >= 0)
                problems_error(t->problems, tree_place(t, s), "%s wants %s; did you mean \"%d%s\"?", path, wanted(f),
                        config_setting_get_int(s), config_setting_get_int(s) ? unit : "");
        else
                problems_error(t->problems, tree_place(t, s), "%s wants %s, not %s", path, wanted(f), found(s));
}

static void read_scalar(struct config_tree *t, const struct field *f, const struct config_setting_t *s, void *base)
{
        char path[NAME_MAX_SHOWN];
        struct buffer text = { 0 };
        struct error error;
        (void)tree_scalar(s, &text);
        if (field_parse(f, buffer_text(&text), tree_folder(t, s), base, &error) < 0)
                problems_error(t->problems, tree_place(t, s), "%s: %s", tree_path(s, path, sizeof(path)), error.text);
        buffer_free(&text);
}

static void read_list(struct config_tree *t, const struct field *f, const struct config_setting_t *list, void *base)
{
        char path[NAME_MAX_SHOWN];
        if (!config_setting_length(list))
                problems_error(t->problems, tree_place(t, list), "%s is empty; leave it out",
                        tree_path(list, path, sizeof(path)));
        for (int i = 0; i < config_setting_length(list); i++) {
                const struct config_setting_t *s = config_setting_get_elem(list, (unsigned int)i);
                if (config_setting_type(s) == CONFIG_TYPE_STRING)
                        read_scalar(t, f, s, base);
                else
                        problems_error(t->problems, tree_place(t, s), "%s wants a text in double quotes, not %s",
                                tree_path(s, path, sizeof(path)), found(s));
        }
}

static void read_group(struct config_tree *t, const struct group *group, const struct config_setting_t *s,
        const char *name, void *base);

static void read_settings(struct config_tree *t, const struct config_setting_t *s, struct setting_list *settings)
{
        char path[NAME_MAX_SHOWN];
        if (tree_flatten(s, settings) < 0)
                problems_error(t->problems, tree_place(t, s), "%s: more than 64 KiB of settings",
                        tree_path(s, path, sizeof(path)));
}

static void read_handler(struct config_tree *t, const struct config_setting_t *s, struct config *config)
{
        struct config_place place = tree_place(t, s);
        struct error error;
        char path[NAME_MAX_SHOWN];
        (void)tree_path(s, path, sizeof(path));
        if (config_setting_type(s) != CONFIG_TYPE_GROUP) {
                problems_error(t->problems, place, "%s wants a group: { plugin = \"…\"; }, not %s", path, found(s));
                return;
        }
        if (name_check_handler(config_setting_name(s), &error) < 0)
                problems_error(t->problems, place, "a handler's name: %s", error.text);
        config->handlers = array_grow(config->handlers, config->handlers_count, sizeof(*config->handlers));
        struct handler_config *h = &config->handlers[config->handlers_count++];
        h->name = text_copy(config_setting_name(s));
        h->file = text_copy(place.file);
        h->line = place.line;
        read_group(t, &handler_table, s, path, h);
}

static void read_handlers(struct config_tree *t, const struct config_setting_t *s, struct config *config)
{
        problems_begin_handlers(t->problems);
        for (int i = 0; i < config_setting_length(s); i++)
                read_handler(t, config_setting_get_elem(s, (unsigned int)i), config);
        problems_end_handlers(t->problems);
}

static void read_named(
        struct config_tree *t, const struct field *f, const struct config_setting_t *all, const char *path, void *base)
{
        for (int i = 0; i < config_setting_length(all); i++) {
                const struct config_setting_t *s = config_setting_get_elem(all, (unsigned int)i);
                struct config_place place = tree_place(t, s);
                struct error error;
                char member_path[NAME_MAX_SHOWN];
                (void)tree_path(s, member_path, sizeof(member_path));
                if (config_setting_type(s) != CONFIG_TYPE_GROUP) {
                        problems_error(t->problems, place, "%s wants a group: { … }, not %s", member_path, found(s));
                        continue;
                }
                if (f->check(config_setting_name(s), &error) < 0)
                        problems_error(t->problems, place, "a name in %s: %s", path, error.text);
                struct named_config *named = named_add(f, base);
                named->name = text_copy(config_setting_name(s));
                named->file = text_copy(place.file);
                named->line = place.line;
                read_group(t, f->group, s, member_path, named);
        }
}

static void read_field(
        struct config_tree *t, const struct field *f, const struct config_setting_t *s, const char *path, void *base)
{
        if (!has_wanted_type(f, s)) {
                wrong_type(t, f, s);
                return;
        }
        void *at = (char *)base + f->offset;
        switch (f->type) {
        case FIELD_STRINGS:
        case FIELD_PATHS:
                read_list(t, f, s, base);
                break;
        case FIELD_GROUP:
                read_group(t, f->group, s, path, at);
                break;
        case FIELD_SETTINGS:
                read_settings(t, s, at);
                break;
        case FIELD_HANDLERS:
                read_handlers(t, s, base);
                break;
        case FIELD_NAMED:
                read_named(t, f, s, path, base);
                break;
        default:
                if (!tree_is_bad(s))
                        read_scalar(t, f, s, base);
        }
}

/* Runs before the file's value is read, so that a refused value leaves the default in place. */
static void set_default(struct config_tree *t, const struct field *f, void *base)
{
        struct error error;
        if (f->fallback && field_parse(f, f->fallback, tree_main_folder(t), base, &error) < 0)
                problems_error(t->problems, tree_whole(t), "the default of %s: %s", f->name, error.text);
}

static void unknown(struct config_tree *t, const struct group *group, const struct config_setting_t *s)
{
        char path[NAME_MAX_SHOWN];
        const char *name = config_setting_name(s);
        const char *nearest = group_nearest(group, name);
        (void)tree_path(config_setting_parent(s), path, sizeof(path));
        if (nearest)
                problems_error(t->problems, tree_place(t, s), "no setting \"%s\" in %s; did you mean \"%s\"?", name,
                        path, nearest);
        else
                problems_error(t->problems, tree_place(t, s), "no setting \"%s\" in %s", name, path);
}

/* `s` is NULL if the file does not have the group; `name` is the group's dotted name, "" for the file itself. */
static void read_group(struct config_tree *t, const struct group *group, const struct config_setting_t *s,
        const char *name, void *base)
{
        for (size_t i = 0; i < group->count; i++) {
                const struct field *f = &group->fields[i];
                const struct config_setting_t *member = s ? config_setting_get_member(s, f->name) : NULL;
                char path[NAME_MAX_SHOWN];
                (void)snprintf(path, sizeof(path), "%s%s%s", name, *name ? "." : "", f->name);
                set_default(t, f, base);
                if (member)
                        read_field(t, f, member, path, base);
                else if (f->type == FIELD_GROUP)
                        read_group(t, f->group, NULL, path, (char *)base + f->offset);
                else if (!f->fallback && !f->otherwise)
                        problems_error(
                                t->problems, s ? tree_place(t, s) : tree_whole(t), "%s is missing: %s", path, f->help);
        }
        for (int i = 0; s && i < config_setting_length(s); i++) {
                const struct config_setting_t *member = config_setting_get_elem(s, (unsigned int)i);
                if (!group_field(group, config_setting_name(member)))
                        unknown(t, group, member);
        }
}

void config_read_tree(struct config_tree *t, struct config *config)
{
        read_group(t, &config_table, tree_root(t), "", config);
}
