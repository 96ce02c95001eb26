#include "config/field.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/units.h"

static void *member(const struct field *f, void *base)
{
        return (char *)base + f->offset;
}

/* --- from text --------------------------------------------------------------------------------------------------- */

static int check_range(const struct field *f, double value, const char *text, struct error *error)
{
        if (value >= f->min && value <= f->max)
                return 0;
        struct buffer b = { 0 };
        buffer_printf(&b, "%s is out of range: ", text);
        field_format_number(f, f->min, &b);
        buffer_printf(&b, " to ");
        field_format_number(f, f->max, &b);
        (void)error_set(error, 0, "%s", buffer_text(&b));
        buffer_free(&b);
        return -ERANGE;
}

static int parse_number(const struct field *f, const char *text, double *ret, struct error *error)
{
        uint64_t whole = 0;
        char *end = NULL;
        int r = 0;
        double value = 0;
        if (f->type == FIELD_DURATION) {
                r = units_duration_ms(text, &whole, error);
                value = (double)whole;
        } else if (f->type == FIELD_SIZE) {
                r = units_size_bytes(text, &whole, error);
                value = (double)whole;
        } else {
                value = strtod(text, &end);
                if (end == text || *end)
                        r = error_set(error, -EINVAL, "%s is not a number", text);
        }
        if (!r)
                r = check_range(f, value, text, error);
        if (!r)
                *ret = value;
        return r;
}

static int parse_choice(const struct field *f, const char *text, int *ret, struct error *error)
{
        struct buffer b = { 0 };
        size_t count = 0;
        for (; f->choices[count]; count++) {
                if (!strcmp(f->choices[count], text)) {
                        *ret = (int)count;
                        buffer_free(&b);
                        return 0;
                }
                buffer_printf(&b, "%s\"%s\"", count ? ", " : "", f->choices[count]);
        }
        const char *nearest = error_nearest(text, f->choices, count);
        (void)error_set(error, 0, "\"%.80s\" is not one of %s%s%s%s", text, buffer_text(&b),
                nearest ? "; did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?" : "");
        buffer_free(&b);
        return -EINVAL;
}

static int parse_text(const struct field *f, const char *text, const char *folder, char **ret, struct error *error)
{
        int r = f->check ? f->check(text, error) : 0;
        if (r)
                return r;
        bool is_path = f->type == FIELD_PATH || f->type == FIELD_PATHS;
        if (is_path && !*text)
                return error_set(error, -EINVAL, "the path is empty");
        *ret = is_path ? file_resolve(folder, text) : text_copy(text);
        return 0;
}

static int parse_element(
        const struct field *f, const char *text, const char *folder, struct strings *list, struct error *error)
{
        char *element = NULL;
        int r = parse_text(f, text, folder, &element, error);
        if (!r && strings_has(list, element))
                r = error_set(error, -EINVAL, "\"%.80s\" stands twice in the list", text);
        if (!r)
                strings_add(list, element);
        free(element);
        return r;
}

static int parse_flag(const char *text, bool *ret, struct error *error)
{
        bool is_true = !strcmp(text, "true");
        if (!is_true && strcmp(text, "false") != 0)
                return error_set(error, -EINVAL, "\"%.80s\" is neither true nor false", text);
        *ret = is_true;
        return 0;
}

int field_parse(const struct field *f, const char *text, const char *folder, void *base, struct error *error)
{
        void *at = member(f, base);
        double number = 0;
        char *copy = NULL;
        int r = 0;
        switch (f->type) {
        case FIELD_COUNT:
        case FIELD_NUMBER:
        case FIELD_DURATION:
        case FIELD_SIZE:
                r = parse_number(f, text, &number, error);
                if (r)
                        return r;
                if (f->type == FIELD_COUNT)
                        *(uint32_t *)at = (uint32_t)number;
                else if (f->type == FIELD_NUMBER)
                        *(double *)at = number;
                else
                        *(uint64_t *)at = (uint64_t)number;
                return 0;
        case FIELD_CHOICE:
                return parse_choice(f, text, at, error);
        case FIELD_FLAG:
                return parse_flag(text, at, error);
        case FIELD_TEXT:
        case FIELD_PATH:
                r = parse_text(f, text, folder, &copy, error);
                if (r)
                        return r;
                free(*(char **)at);
                *(char **)at = copy;
                return 0;
        case FIELD_STRINGS:
        case FIELD_PATHS:
                return parse_element(f, text, folder, at, error);
        case FIELD_URL:
                return url_parse(text, f->url_use, folder, at, error);
        case FIELD_GROUP:
        case FIELD_SETTINGS:
        case FIELD_HANDLERS:
        case FIELD_NAMED:
                break;
        }
        return error_set(error, -EINVAL, "%s is a group; name one of the settings in it", f->name);
}

/* --- to text ----------------------------------------------------------------------------------------------------- */

struct setting_unit {
        uint64_t factor;
        const char *name;
};

/* Writes the exact value, in the largest unit that divides it. */
static void format_in_units(uint64_t value, const struct setting_unit *units, struct buffer *b)
{
        if (!value) {
                buffer_printf(b, "0");
                return;
        }
        while (value % units->factor)
                units++;
        buffer_printf(b, "%llu%s", (unsigned long long)(value / units->factor), units->name);
}

void field_format_number(const struct field *f, double value, struct buffer *b)
{
        static const struct setting_unit durations[] = { { 86400000, "d" }, { 3600000, "h" }, { 60000, "m" },
                { 1000, "s" }, { 1, "ms" } };
        static const struct setting_unit sizes[] = { { 1U << 30, "GiB" }, { 1U << 20, "MiB" }, { 1U << 10, "KiB" },
                { 1, "" } };
        if (f->type == FIELD_DURATION)
                format_in_units((uint64_t)value, durations, b);
        else if (f->type == FIELD_SIZE)
                format_in_units((uint64_t)value, sizes, b);
        else if (f->type == FIELD_COUNT)
                buffer_printf(b, "%.0f", value);
        else if (value == floor(value))
                buffer_printf(b, "%.1f", value); /* libconfig takes a number without a point for an integer */
        else
                buffer_printf(b, "%.15g", value);
}

void field_format_text(const char *text, struct buffer *b)
{
        buffer_put(b, "\"", 1);
        for (; *text; text++) {
                if (*text == '"' || *text == '\\')
                        buffer_printf(b, "\\%c", *text);
                else if ((unsigned char)*text < ' ' || *text == 0x7f)
                        buffer_printf(b, "\\x%02x", (unsigned char)*text);
                else
                        buffer_put(b, text, 1);
        }
        buffer_put(b, "\"", 1);
}

static bool format_list(const struct strings *list, struct buffer *b)
{
        if (!list->count)
                return false;
        for (size_t i = 0; i < list->count; i++) {
                buffer_printf(b, i ? ", " : "[ ");
                field_format_text(list->items[i], b);
        }
        buffer_printf(b, " ]");
        return true;
}

static bool format_optional(const char *text, struct buffer *b)
{
        if (text)
                field_format_text(text, b);
        return text != NULL;
}

bool field_format(const struct field *f, const void *base, struct buffer *b)
{
        const void *at = (const char *)base + f->offset;
        switch (f->type) {
        case FIELD_COUNT:
                field_format_number(f, *(const uint32_t *)at, b);
                return true;
        case FIELD_NUMBER:
                field_format_number(f, *(const double *)at, b);
                return true;
        case FIELD_DURATION:
        case FIELD_SIZE:
                buffer_put(b, "\"", 1);
                field_format_number(f, (double)*(const uint64_t *)at, b);
                buffer_put(b, "\"", 1);
                return true;
        case FIELD_CHOICE:
                field_format_text(f->choices[*(const int *)at], b);
                return true;
        case FIELD_FLAG:
                buffer_printf(b, *(const bool *)at ? "true" : "false");
                return true;
        case FIELD_TEXT:
        case FIELD_PATH:
                return format_optional(*(char *const *)at, b);
        case FIELD_STRINGS:
        case FIELD_PATHS:
                return format_list(at, b);
        case FIELD_URL:
                return format_optional(((const struct url *)at)->text, b);
        case FIELD_GROUP:
        case FIELD_SETTINGS:
        case FIELD_HANDLERS:
        case FIELD_NAMED:
                break;
        }
        return false;
}

/* --- freeing ----------------------------------------------------------------------------------------------------- */

static void handlers_free(struct config *config)
{
        for (size_t i = 0; i < config->handlers_count; i++) {
                struct handler_config *h = &config->handlers[i];
                group_free(&handler_table, h);
                free(h->name);
                free(h->file);
                free(h->plugin_path);
        }
        free(config->handlers);
        config->handlers = NULL;
        config->handlers_count = 0;
}

static void named_free(const struct field *f, void *base)
{
        for (size_t i = 0; i < named_count(f, base); i++) {
                struct named_config *named = named_at(f, base, i);
                group_free(f->group, named);
                free(named->name);
                free(named->file);
        }
        free(*(void **)member(f, base));
        *(void **)member(f, base) = NULL;
        *(size_t *)((char *)base + f->count_offset) = 0;
}

static void field_free(const struct field *f, void *base)
{
        void *at = member(f, base);
        switch (f->type) {
        case FIELD_TEXT:
        case FIELD_PATH:
                free(*(char **)at);
                *(char **)at = NULL;
                break;
        case FIELD_STRINGS:
        case FIELD_PATHS:
                strings_free(at);
                break;
        case FIELD_URL:
                url_free(at);
                break;
        case FIELD_GROUP:
                group_free(f->group, at);
                break;
        case FIELD_SETTINGS:
                setting_list_free(at);
                break;
        case FIELD_NAMED:
                named_free(f, base);
                break;
        case FIELD_HANDLERS:
                handlers_free(base);
                break;
        case FIELD_COUNT:
        case FIELD_NUMBER:
        case FIELD_DURATION:
        case FIELD_SIZE:
        case FIELD_CHOICE:
        case FIELD_FLAG:
                break;
        }
}

void group_free(const struct group *group, void *base)
{
        for (size_t i = 0; i < group->count; i++)
                field_free(&group->fields[i], base);
}
