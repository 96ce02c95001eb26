#include "cli/doctor/findings.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/strings.h"
#include "view/json.h"
#include "view/text.h"

#define TEXT_MAX 2048

static const char *const level_names[FINDING_LEVELS] = { "ok", "note", "warning", "error" };
static const char *const level_colors[FINDING_LEVELS] = { "\033[32m", "\033[36m", "\033[33m", "\033[31m" };
static const char *const subject_names[SUBJECTS] = { "settings", "clock", "store", "coordination", "app", "hosts",
        "files", "machine" };

const char *finding_level_name(enum finding_level level)
{
        return level_names[level];
}

const char *finding_subject_name(enum finding_subject subject)
{
        return subject_names[subject];
}

/* One line, in which nothing acts on the terminal. */
static char *clean(const char *text)
{
        struct buffer to = { 0 };
        text_put_bytes(&to, span_of_text(text), TEXT_MAX);
        char *copy = text_copy(buffer_text(&to));
        buffer_free(&to);
        return copy;
}

void findings_add(struct findings *f, enum finding_level level, enum finding_subject subject, const char *check,
        const char *advice, const char *format, ...)
{
        char text[TEXT_MAX];
        va_list list;
        va_start(list, format);
        (void)vsnprintf(text, sizeof(text), format, list);
        va_end(list);
        f->items = array_grow(f->items, f->count, sizeof(*f->items));
        f->items[f->count++] = (struct finding){ .level = level,
                .subject = subject,
                .check = check,
                .text = clean(text),
                .advice = clean(advice ? advice : "") };
        f->counts[level]++;
}

void findings_free(struct findings *f)
{
        for (size_t i = 0; i < f->count; i++) {
                free(f->items[i].text);
                free(f->items[i].advice);
        }
        free(f->items);
        *f = (struct findings){ 0 };
}

static void put_finding(struct buffer *to, const struct finding *f, bool has_color)
{
        buffer_printf(to, "  %s%-7s%s  %s\n", has_color ? level_colors[f->level] : "", level_names[f->level],
                has_color ? "\033[0m" : "", f->text);
        if (*f->advice)
                buffer_printf(to, "           do: %s\n", f->advice);
}

/* Of one subject, the worst first. */
static void put_subject(struct buffer *to, const struct findings *f, unsigned subject, bool has_all, bool has_color)
{
        bool has_title = false;
        for (int level = FINDING_LEVELS - 1; level >= (has_all ? FINDING_OK : FINDING_NOTE); level--) {
                for (size_t i = 0; i < f->count; i++) {
                        if (f->items[i].subject != subject || (int)f->items[i].level != level)
                                continue;
                        if (!has_title)
                                buffer_printf(to, "%s\n", subject_names[subject]);
                        has_title = true;
                        put_finding(to, &f->items[i], has_color);
                }
        }
}

static void put_count(struct buffer *to, size_t count, const char *what)
{
        buffer_printf(to, "%zu %s%s", count, what, text_plural(count));
}

void findings_as_text(struct buffer *to, const struct findings *f, bool has_all, bool has_color)
{
        for (unsigned subject = 0; subject < SUBJECTS; subject++)
                put_subject(to, f, subject, has_all, has_color);
        put_count(to, f->counts[FINDING_ERROR], "error");
        buffer_printf(to, ", ");
        put_count(to, f->counts[FINDING_WARNING], "warning");
        buffer_printf(to, ", ");
        put_count(to, f->counts[FINDING_NOTE], "note");
        buffer_printf(to, "; %zu ok%s\n", f->counts[FINDING_OK],
                has_all || !f->counts[FINDING_OK] ? "" : " (--all shows them)");
}

json_t *findings_as_json(const struct findings *f)
{
        json_t *list = json_array();
        for (unsigned subject = 0; subject < SUBJECTS; subject++)
                for (size_t i = 0; i < f->count; i++) {
                        const struct finding *one = &f->items[i];
                        if (one->subject != subject)
                                continue;
                        (void)json_array_append_new(
                                list, json_pack("{s:s, s:s, s:s, s:o, s:o}", "level", level_names[one->level],
                                              "subject", subject_names[subject], "check", one->check, "text",
                                              view_json_text(one->text), "advice", view_json_text(one->advice)));
                }
        return list;
}
