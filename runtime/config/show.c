/* show.c: a configuration as text and as JSON, with possible secrets replaced. */
#include <ctype.h>
#include <jansson.h>
#include <string.h>
#include <strings.h>

#include "config/field.h"

#define HIDDEN "***"

/* Only plugin settings can hold a secret; Quiver's own passwords are in files or the environment.  A secret is
 * recognised by the setting's name, by user:password@ in a URL or by password= in a connection string. */
static bool is_secret(const struct setting *s)
{
        static const char *const words[] = { "password", "passwd", "passphrase", "secret", "token", "credential",
                "api_key", "apikey", "private_key" };
        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
                if (strcasestr(s->name, words[i]))
                        return true;
        const char *authority = strstr(s->value, "://");
        return (authority && strchr(authority, '@')) || strcasestr(s->value, "password=");
}

static const char *shown(const struct setting *s)
{
        return is_secret(s) ? HIDDEN : s->value;
}

static void indent(FILE *out, int depth)
{
        (void)fprintf(out, "%*s", 2 * depth, "");
}

/* The length of the part of a dotted name that begins at `at`. */
static size_t part_size(const char *at)
{
        return strcspn(at, ".");
}

/* How many settings, from `from` on and before `to`, have the same part at offset `prefix`. */
static size_t same_part(const struct setting_list *s, size_t from, size_t to, size_t prefix)
{
        const char *name = s->items[from].name;
        size_t whole = prefix + part_size(name + prefix);
        size_t i = from + 1;
        while (i < to && !strncmp(s->items[i].name, name, whole) && s->items[i].name[whole] == '.')
                i++;
        return i - from;
}

/* Settings [from, to) share the first `prefix` bytes of their names: writes them as the members of a group or, if the
 * next part is a number, of a list. */
static void show_settings(const struct setting_list *s, size_t from, size_t to, size_t prefix, int depth, FILE *out)
{
        struct buffer text = { 0 };
        while (from < to) {
                const char *part = s->items[from].name + prefix;
                size_t size = part_size(part);
                size_t count = same_part(s, from, to, prefix);
                bool is_element = isdigit((unsigned char)*part);
                const char *end = !is_element ? ";" : from + count < to ? "," : "";
                indent(out, depth);
                if (!is_element)
                        (void)fprintf(out, "%.*s = ", (int)size, part);
                if (!part[size]) {
                        buffer_clear(&text);
                        field_format_text(shown(&s->items[from]), &text);
                        (void)fprintf(out, "%s%s\n", buffer_text(&text), end);
                } else {
                        bool is_list = isdigit((unsigned char)part[size + 1]);
                        (void)fprintf(out, "%c\n", is_list ? '(' : '{');
                        show_settings(s, from, from + count, prefix + size + 1, depth + 1, out);
                        indent(out, depth);
                        (void)fprintf(out, "%c%s\n", is_list ? ')' : '}', end);
                }
                from += count;
        }
        buffer_free(&text);
}

static void show_group(const struct group *group, const void *base, int depth, FILE *out);

static void show_handlers(const struct config *config, int depth, FILE *out)
{
        for (size_t i = 0; i < config->handlers_count; i++) {
                indent(out, depth);
                (void)fprintf(out, "%s = {\n", config->handlers[i].name);
                show_group(&handler_table, &config->handlers[i], depth + 1, out);
                indent(out, depth);
                (void)fprintf(out, "};\n");
        }
}

static void show_named(const struct field *f, const void *base, int depth, FILE *out)
{
        for (size_t i = 0; i < named_count(f, base); i++) {
                const struct named_config *named = named_at(f, base, i);
                indent(out, depth);
                (void)fprintf(out, "%s = {\n", named->name);
                show_group(f->group, named, depth + 1, out);
                indent(out, depth);
                (void)fprintf(out, "};\n");
        }
}

static void show_nested(const struct field *f, const void *base, int depth, FILE *out)
{
        const void *at = (const char *)base + f->offset;
        indent(out, depth);
        (void)fprintf(out, "%s = {\n", f->name);
        if (f->type == FIELD_HANDLERS)
                show_handlers(base, depth + 1, out);
        else if (f->type == FIELD_NAMED)
                show_named(f, base, depth + 1, out);
        else if (f->type == FIELD_SETTINGS)
                show_settings(at, 0, ((const struct setting_list *)at)->count, 0, depth + 1, out);
        else
                show_group(f->group, at, depth + 1, out);
        indent(out, depth);
        (void)fprintf(out, "};\n");
}

static void show_group(const struct group *group, const void *base, int depth, FILE *out)
{
        struct buffer text = { 0 };
        for (size_t i = 0; i < group->count; i++) {
                const struct field *f = &group->fields[i];
                if (f->type == FIELD_GROUP || f->type == FIELD_SETTINGS || f->type == FIELD_HANDLERS ||
                        f->type == FIELD_NAMED) {
                        show_nested(f, base, depth, out);
                        continue;
                }
                buffer_clear(&text);
                bool is_set = field_format(f, base, &text);
                indent(out, depth);
                if (is_set)
                        (void)fprintf(out, "%s = %s;\n", f->name, buffer_text(&text));
                else
                        (void)fprintf(out, "// %s: %s\n", f->name, f->otherwise);
        }
        buffer_free(&text);
}

void config_show(const struct config *config, FILE *out)
{
        show_group(&config_table, config, 0, out);
}

/* --- JSON -------------------------------------------------------------------------------------------------------- */

static json_t *json_settings(const struct setting_list *s)
{
        json_t *object = json_object();
        for (size_t i = 0; i < s->count; i++)
                (void)json_object_set_new(object, s->items[i].name, json_string(shown(&s->items[i])));
        return object;
}

static json_t *json_texts(const struct strings *t)
{
        json_t *array = json_array();
        for (size_t i = 0; i < t->count; i++)
                (void)json_array_append_new(array, json_string(t->items[i]));
        return array;
}

static json_t *json_quantity(const struct field *f, uint64_t value)
{
        struct buffer text = { 0 };
        field_format_number(f, (double)value, &text);
        json_t *json = json_string(buffer_text(&text));
        buffer_free(&text);
        return json;
}

static json_t *json_optional(const char *text)
{
        return text ? json_string(text) : json_null();
}

static json_t *json_group(const struct group *group, const void *base);

static json_t *json_handlers(const struct config *config)
{
        json_t *object = json_object();
        for (size_t i = 0; i < config->handlers_count; i++)
                (void)json_object_set_new(
                        object, config->handlers[i].name, json_group(&handler_table, &config->handlers[i]));
        return object;
}

static json_t *json_named(const struct field *f, const void *base)
{
        json_t *object = json_object();
        for (size_t i = 0; i < named_count(f, base); i++)
                (void)json_object_set_new(
                        object, named_at(f, base, i)->name, json_group(f->group, named_at(f, base, i)));
        return object;
}

static json_t *json_field(const struct field *f, const void *base)
{
        const void *at = (const char *)base + f->offset;
        switch (f->type) {
        case FIELD_COUNT:
                return json_integer(*(const uint32_t *)at);
        case FIELD_NUMBER:
                return json_real(*(const double *)at);
        case FIELD_DURATION:
        case FIELD_SIZE:
                return json_quantity(f, *(const uint64_t *)at);
        case FIELD_CHOICE:
                return json_string(f->choices[*(const int *)at]);
        case FIELD_FLAG:
                return json_boolean(*(const bool *)at);
        case FIELD_TEXT:
        case FIELD_PATH:
                return json_optional(*(char *const *)at);
        case FIELD_STRINGS:
        case FIELD_PATHS:
                return json_texts(at);
        case FIELD_URL:
                return json_optional(((const struct url *)at)->text);
        case FIELD_GROUP:
                return json_group(f->group, at);
        case FIELD_SETTINGS:
                return json_settings(at);
        case FIELD_HANDLERS:
                return json_handlers(base);
        case FIELD_NAMED:
                return json_named(f, base);
        }
        return json_null();
}

static json_t *json_group(const struct group *group, const void *base)
{
        json_t *object = json_object();
        for (size_t i = 0; i < group->count; i++)
                (void)json_object_set_new(object, group->fields[i].name, json_field(&group->fields[i], base));
        return object;
}

struct json_t *config_show_json(const struct config *config)
{
        return json_group(&config_table, config);
}
