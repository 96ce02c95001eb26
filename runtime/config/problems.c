#include "config/problems.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/strings.h"

__attribute__((format(printf, 4, 0))) static void add(
        struct problems *p, struct config_place place, bool is_warning, const char *format, va_list args)
{
        char text[ERROR_TEXT_MAX];
        is_warning = is_warning || (p->is_in_handlers && p->reader == READER_COMMAND);
        if (!is_warning)
                p->errors++;
        if (p->count == PROBLEMS_MAX) {
                p->left_off++;
                return;
        }
        (void)vsnprintf(text, sizeof(text), format, args);
        /* The text may quote the file and may be printed on a terminal, so it must not hold control characters. */
        for (char *c = text; *c; c++)
                if ((unsigned char)*c < ' ' || *c == 0x7f)
                        *c = '?';
        p->items = array_grow(p->items, p->count, sizeof(*p->items));
        p->items[p->count++] = (struct problem){
                .file = text_copy(place.file),
                .line = place.line,
                .is_warning = is_warning,
                .text = text_copy(text),
        };
}

void problems_error(struct problems *p, struct config_place place, const char *format, ...)
{
        va_list args;
        va_start(args, format);
        add(p, place, false, format, args);
        va_end(args);
}

void problems_warn(struct problems *p, struct config_place place, const char *format, ...)
{
        va_list args;
        va_start(args, format);
        add(p, place, true, format, args);
        va_end(args);
}

void problems_judge(struct problems *p, struct config_place place, const char *prefix, const struct file_trust *trust)
{
        if (!problems_is_host(p) || trust->verdict == FILE_TRUST_SOUND)
                return;
        /* The user who checks need not be the one who will run the host, so this is only a warning. */
        if (p->reader == READER_CHECK && trust->verdict == FILE_TRUST_STRANGER)
                problems_warn(p, place, "%s%s", prefix, trust->why.text);
        else
                problems_error(p, place, "%s%s", prefix, trust->why.text);
}

static bool is_before(const struct problem *a, const struct problem *b)
{
        int files = strcmp(a->file, b->file);
        return files < 0 || (files == 0 && a->line < b->line);
}

void problems_sort(struct problems *p)
{
        for (size_t i = 1; i < p->count; i++)
                for (size_t k = i; k > 0 && is_before(&p->items[k], &p->items[k - 1]); k--) {
                        struct problem swapped = p->items[k];
                        p->items[k] = p->items[k - 1];
                        p->items[k - 1] = swapped;
                }
}

const char *problem_format(const struct problem *problem, char *text, size_t size)
{
        const char *warning = problem->is_warning ? "warning: " : "";
        if (problem->line)
                (void)snprintf(text, size, "%s:%u: %s%s", problem->file, problem->line, warning, problem->text);
        else
                (void)snprintf(text, size, "%s: %s%s", problem->file, warning, problem->text);
        return text;
}

void problems_free(struct problems *p)
{
        for (size_t i = 0; i < p->count; i++) {
                free(p->items[i].file);
                free(p->items[i].text);
        }
        free(p->items);
        *p = (struct problems){ 0 };
}
