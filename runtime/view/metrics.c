#include "view/metrics.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void metrics_free(struct metrics *m)
{
        buffer_free(&m->text);
}

static void put_text(struct metrics *m, const char *text)
{
        buffer_put(&m->text, text, strlen(text));
}

/* OpenMetrics names a counter's family without the suffix of its samples. */
static size_t family_size(const struct metrics *m)
{
        static const char ending[] = "_total";
        size_t size = strlen(m->family->name);
        return m->is_open && m->family->type == METRIC_COUNTER ? size - (sizeof(ending) - 1) : size;
}

void metrics_begin(struct metrics *m, enum metric metric)
{
        const struct metric_family *family = &metric_families[metric];
        m->family = family;
        int size = (int)family_size(m);
        buffer_printf(&m->text, "# HELP %.*s %s\n# TYPE %.*s %s\n", size, family->name, family->help, size,
                family->name, metric_type_name(family->type));
}

/* Escapes a backslash, a quote and a line break, as both formats require.  A plugin's version may be any bytes:
 * non-ASCII ones are replaced, because invalid UTF-8 would make the whole answer unreadable. */
static void put_label(struct metrics *m, const char *value)
{
        for (const char *at = value; *at; at++) {
                unsigned char c = (unsigned char)*at;
                if (c == '\\' || c == '"')
                        buffer_printf(&m->text, "\\%c", c);
                else if (c == '\n')
                        put_text(m, "\\n");
                else
                        buffer_put(&m->text, c >= 0x20 && c < 0x7f ? at : "?", 1);
        }
}

/* Whole numbers up to 2^53, which a double counts exactly, are written without an exponent. */
static void put_value(struct metrics *m, double value)
{
        if (fabs(value) < 9007199254740992.0 && value == floor(value))
                buffer_printf(&m->text, " %.0f\n", value);
        else
                buffer_printf(&m->text, " %.15g\n", value);
}

static void put_name(struct metrics *m, const char *name, size_t size, const char *value, char *before)
{
        if (!value || !*value)
                return;
        buffer_printf(&m->text, "%c%.*s=\"", *before, (int)size, name);
        put_label(m, value);
        put_text(m, "\"");
        *before = ',';
}

void metrics_put(struct metrics *m, double value, ...)
{
        char before = '{';
        va_list values;
        va_start(values, value);
        put_text(m, m->family->name);
        for (const char *name = m->family->labels; *name;) {
                size_t size = strcspn(name, " ");
                put_name(m, name, size, va_arg(values, const char *), &before);
                name += size + (name[size] == ' ');
        }
        va_end(values);
        if (before == ',')
                put_text(m, "}");
        put_value(m, value);
}

void metrics_put_one(struct metrics *m, enum metric metric, double value)
{
        metrics_begin(m, metric);
        metrics_put(m, value);
}

static void put_part(struct metrics *m, const char *ending, const char *label, const char *le, double value)
{
        char before = '{';
        buffer_printf(&m->text, "%s%s", m->family->name, ending);
        put_name(m, m->family->labels, strlen(m->family->labels), label, &before);
        put_name(m, "le", 2, le, &before);
        if (before == ',')
                put_text(m, "}");
        put_value(m, value);
}

void metrics_put_histogram(struct metrics *m, const struct histogram *h, const char *label)
{
        uint64_t below = 0;
        for (uint32_t i = 0; i < HISTOGRAM_BOUNDS; i++) {
                char bound[32];
                double s = (double)histogram_bounds[i] / 1e9;
                below += h->counts[i];
                /* OpenMetrics requires a decimal point; both formats get the same label. */
                (void)snprintf(bound, sizeof(bound), s >= 1 && s == floor(s) ? "%.1f" : "%.9g", s);
                put_part(m, "_bucket", label, bound, (double)below);
        }
        below += h->counts[HISTOGRAM_BOUNDS];
        put_part(m, "_bucket", label, "+Inf", (double)below);
        put_part(m, "_sum", label, NULL, h->sum_s);
        put_part(m, "_count", label, NULL, (double)below);
}

void metrics_end(struct metrics *m)
{
        if (m->is_open)
                put_text(m, "# EOF\n");
}
