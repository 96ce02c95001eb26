#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "config/field.h"

static void add(struct config_changes *changes, enum config_effect effect, char *name)
{
        changes->items = array_grow(changes->items, changes->count, sizeof(*changes->items));
        changes->items[changes->count++] = (struct config_change){ .name = name, .effect = effect };
        if (effect > changes->effect)
                changes->effect = effect;
}

/* field_format() writes values in full, so two values are equal exactly if their texts are. */
static bool is_equal(const struct field *f, const void *before, const void *after)
{
        struct buffer a = { 0 };
        struct buffer b = { 0 };
        bool is_set_before = field_format(f, before, &a);
        bool is_set_after = field_format(f, after, &b);
        bool equal = is_set_before == is_set_after && !strcmp(buffer_text(&a), buffer_text(&b));
        buffer_free(&a);
        buffer_free(&b);
        return equal;
}

static void compare_settings(const struct setting_list *before, const struct setting_list *after, const char *name,
        enum config_effect effect, struct config_changes *changes)
{
        for (size_t i = 0; i < before->count; i++) {
                const struct setting *s = &before->items[i];
                const char *value = setting_list_get(after, s->name);
                if (!value || strcmp(value, s->value) != 0)
                        add(changes, effect, text_printf("%s.%s", name, s->name));
        }
        for (size_t i = 0; i < after->count; i++)
                if (!setting_list_get(before, after->items[i].name))
                        add(changes, effect, text_printf("%s.%s", name, after->items[i].name));
}

static void compare_group(const struct group *group, const void *before, const void *after, const char *prefix,
        struct config_changes *changes);

/* Adds one change for each named group that was added, removed or changed. */
static void compare_named(
        const struct field *f, const void *before, const void *after, const char *name, struct config_changes *changes)
{
        for (size_t i = 0; i < named_count(f, before); i++) {
                const struct named_config *was = named_at(f, before, i);
                const struct named_config *is = named_find(f, after, was->name);
                struct config_changes inside = { 0 };
                if (is)
                        compare_group(f->group, was, is, "", &inside);
                if (!is || inside.count)
                        add(changes, f->effect, text_printf("%s.%s", name, was->name));
                config_changes_free(&inside);
        }
        for (size_t i = 0; i < named_count(f, after); i++)
                if (!named_find(f, before, named_at(f, after, i)->name))
                        add(changes, f->effect, text_printf("%s.%s", name, named_at(f, after, i)->name));
}

static void compare_group(const struct group *group, const void *before, const void *after, const char *prefix,
        struct config_changes *changes)
{
        for (size_t i = 0; i < group->count; i++) {
                const struct field *f = &group->fields[i];
                const void *a = (const char *)before + f->offset;
                const void *b = (const char *)after + f->offset;
                char *name = text_printf("%s%s%s", prefix, *prefix ? "." : "", f->name);
                if (f->type == FIELD_GROUP)
                        compare_group(f->group, a, b, name, changes);
                else if (f->type == FIELD_SETTINGS)
                        compare_settings(a, b, name, f->effect, changes);
                else if (f->type == FIELD_NAMED)
                        compare_named(f, before, after, name, changes);
                else if (f->type != FIELD_HANDLERS && !is_equal(f, before, after))
                        add(changes, f->effect, text_copy(name));
                free(name);
        }
}

void config_compare(const struct config *before, const struct config *after, struct config_changes *changes)
{
        compare_group(&config_table, before, after, "", changes);
}

void config_compare_handlers(
        const struct handler_config *before, const struct handler_config *after, struct config_changes *changes)
{
        compare_group(&handler_table, before, after, "", changes);
        /* A changed `plugins` folder makes the same name another file. */
        if (!strcmp(before->plugin, after->plugin) && strcmp(before->plugin_path, after->plugin_path) != 0)
                add(changes, EFFECT_GENERATION, text_copy("plugin"));
}

static void put_text(struct buffer *to, const char *name, const char *value)
{
        buffer_put_text(to, name);
        buffer_put_text(to, value);
}

static void put_group(const struct group *group, const void *base, struct buffer *to)
{
        for (size_t i = 0; i < group->count; i++) {
                const struct field *f = &group->fields[i];
                const void *member = (const char *)base + f->offset;
                struct buffer value = { 0 };
                if (f->type == FIELD_GROUP) {
                        put_group(f->group, member, to);
                } else if (f->effect == EFFECT_GENERATION && f->type == FIELD_SETTINGS) {
                        const struct setting_list *settings = member;
                        for (size_t j = 0; j < settings->count; j++)
                                put_text(to, settings->items[j].name, settings->items[j].value);
                } else if (f->effect == EFFECT_GENERATION && field_format(f, base, &value)) {
                        put_text(to, f->name, buffer_text(&value));
                }
                buffer_free(&value);
        }
}

uint64_t config_handler_hash(const struct handler_config *handler)
{
        struct buffer all = { 0 };
        put_group(&handler_table, handler, &all);
        put_text(&all, "path", handler->plugin_path);
        uint64_t hash = hash_bytes(HASH_START, all.data, all.size);
        buffer_free(&all);
        return hash;
}

void config_changes_free(struct config_changes *changes)
{
        for (size_t i = 0; i < changes->count; i++)
                free(changes->items[i].name);
        free(changes->items);
        *changes = (struct config_changes){ 0 };
}
