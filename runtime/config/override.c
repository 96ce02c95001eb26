#include "config/override.h"

#include <errno.h>
#include <string.h>

#include "config/field.h"

#define DEPTH_MAX 8

static bool is_name(const char *name, size_t size)
{
        static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ*";
        static const char more[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ*0123456789_-";
        return size && strchr(letters, *name) && strspn(name, more) >= size;
}

/* The type of the setting with that dotted name; FIELD_TEXT for a plugin's own setting, and for an unknown one, which
 * the reader of the file refuses. */
static enum field_type type_of(const char *name, size_t size)
{
        const struct group *group = &config_table;
        const char *end = name + size;
        while (name < end) {
                char part[256];
                size_t part_size = strcspn(name, ".=");
                (void)snprintf(part, sizeof(part), "%.*s", (int)part_size, name);
                name += part_size + 1;
                const struct field *field = group_field(group, part);
                if (!field || field->type == FIELD_SETTINGS)
                        return FIELD_TEXT;
                if (name > end)
                        return field->type;
                if (field->type == FIELD_HANDLERS) {
                        name += strcspn(name, ".=") + 1;
                        group = &handler_table;
                } else if (field->type == FIELD_NAMED) {
                        name += strcspn(name, ".=") + 1;
                        group = field->group;
                } else if (field->type == FIELD_GROUP) {
                        group = field->group;
                } else {
                        return FIELD_TEXT;
                }
        }
        return FIELD_TEXT;
}

static void put_value(struct buffer *text, enum field_type type, const char *value)
{
        bool is_list = type == FIELD_STRINGS || type == FIELD_PATHS;
        if (type == FIELD_COUNT || type == FIELD_NUMBER || type == FIELD_FLAG || (*value && strchr("\"[({", *value))) {
                buffer_printf(text, "%s", value);
                return;
        }
        buffer_printf(text, "%s", is_list ? "[ " : "");
        field_format_text(value, text);
        buffer_printf(text, "%s", is_list ? " ]" : "");
}

int override_text(const char *given, struct buffer *text, struct error *error)
{
        size_t size = strcspn(given, "=");
        const char *name = given, *end = given + size;
        size_t depth = 0;
        if (!given[size])
                return error_set(error, -EINVAL, "write NAME=VALUE, such as http.listen=127.0.0.1:7071");
        for (; name < end; depth++) {
                size_t part = strcspn(name, ".=");
                if (!is_name(name, part) || depth == DEPTH_MAX || (name[part] == '.' && name + part + 1 == end))
                        return error_set(error, -EINVAL,
                                "\"%.*s\" is no name of a setting; quiver check --reference lists them", (int)size,
                                given);
                buffer_printf(text, "%s%.*s = ", depth ? "{ " : "", (int)part, name);
                name += part + 1;
        }
        if (!depth)
                return error_set(error, -EINVAL, "write NAME=VALUE, such as http.listen=127.0.0.1:7071");
        put_value(text, type_of(given, size), end + 1);
        for (; depth > 1; depth--)
                buffer_printf(text, "; }");
        buffer_printf(text, ";");
        return 0;
}
