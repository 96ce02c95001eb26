#include <stdlib.h>

#include "config/field.h"

static const char *type_name(const struct field *f)
{
        switch (f->type) {
        case FIELD_COUNT:
                return "integer";
        case FIELD_NUMBER:
                return "number";
        case FIELD_DURATION:
                return "duration";
        case FIELD_SIZE:
                return "size";
        case FIELD_FLAG:
                return "true or false";
        case FIELD_CHOICE:
        case FIELD_TEXT:
                return "text";
        case FIELD_PATH:
                return "path";
        case FIELD_STRINGS:
                return "list of texts";
        case FIELD_PATHS:
                return "list of paths";
        case FIELD_URL:
                return "URL";
        case FIELD_GROUP:
        case FIELD_SETTINGS:
        case FIELD_HANDLERS:
        case FIELD_NAMED:
                break;
        }
        return "group";
}

static bool has_range(const struct field *f)
{
        return f->max > 0;
}

static void put_range(const struct field *f, FILE *out)
{
        struct buffer b = { 0 };
        if (has_range(f)) {
                field_format_number(f, f->min, &b);
                buffer_printf(&b, " … ");
                field_format_number(f, f->max, &b);
        }
        for (size_t i = 0; f->choices && f->choices[i]; i++)
                buffer_printf(&b, "%s`%s`", i ? ", " : "", f->choices[i]);
        (void)fprintf(out, "%s", buffer_text(&b));
        buffer_free(&b);
}

static void put_default(const struct field *f, FILE *out)
{
        bool is_quoted = f->type != FIELD_COUNT && f->type != FIELD_NUMBER && f->type != FIELD_FLAG;
        if (f->fallback)
                (void)fprintf(out, is_quoted ? "`\"%s\"`" : "`%s`", f->fallback);
        else
                (void)fprintf(out, "%s", f->otherwise ? f->otherwise : "**has to be set**");
}

static const char *effect_name(const struct field *f)
{
        static const char *const names[] = {
                [EFFECT_LIVE] = "reload",
                [EFFECT_GENERATION] = "reload, new runners",
                [EFFECT_RESTART] = "restart",
                [EFFECT_FIXED] = "fixed",
        };
        return names[f->effect];
}

static void put_group(const struct group *group, const char *name, const char *help, FILE *out)
{
        (void)fprintf(out, "### %s\n\n%s\n\n", name, help);
        (void)fprintf(
                out, "| setting | type | default | range | meaning | a change takes |\n|---|---|---|---|---|---|\n");
        for (size_t i = 0; i < group->count; i++) {
                const struct field *f = &group->fields[i];
                if (f->group)
                        continue;
                (void)fprintf(out, "| `%s` | %s | ", f->name, type_name(f));
                put_default(f, out);
                (void)fprintf(out, " | ");
                put_range(f, out);
                (void)fprintf(out, " | %s | %s |\n", f->help, effect_name(f));
        }
        (void)fprintf(out, "\n");
        for (size_t i = 0; i < group->count; i++) {
                const struct field *f = &group->fields[i];
                if (!f->group)
                        continue;
                const char *suffix = f->type == FIELD_HANDLERS || f->type == FIELD_NAMED ? ".NAME" : "";
                bool is_top = group == &config_table;
                char *path = text_printf("%s%s%s%s", is_top ? "" : name, is_top ? "" : ".", f->name, suffix);
                put_group(f->group, path, f->help, out);
                free(path);
        }
}

void config_reference(FILE *out)
{
        put_group(&config_table, "The file", "Settings that stand in no group.", out);
}
