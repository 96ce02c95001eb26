#include "cli/print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "view/text.h"

static void print(json_t *object, size_t flags)
{
        (void)json_dumpf(object, stdout, flags | JSON_PRESERVE_ORDER);
        (void)putchar('\n');
        (void)fflush(stdout);
        json_decref(object);
}

void cli_json_print(json_t *object)
{
        print(object, JSON_COMPACT);
}

void cli_json_print_wide(json_t *object)
{
        print(object, JSON_INDENT(2));
}

void cli_text_print(struct buffer *text)
{
        if (text->size)
                (void)fwrite(text->data, 1, text->size, stdout);
        buffer_free(text);
}

void cli_bytes_print(struct span bytes, size_t max)
{
        struct buffer text = { 0 };
        text_put_bytes(&text, bytes, max);
        cli_text_print(&text);
}

void cli_clear_screen(void)
{
        if (isatty(STDOUT_FILENO))
                (void)fputs("\033[H\033[J", stdout);
}

struct task_note cli_note(const struct qv_client_history *history, struct buffer *scratch)
{
        struct task_note note = { .attempts = history->attempts,
                .crashes = history->crashes,
                .interruptions = history->interruptions,
                .laters = history->laters };
        for (size_t i = 0; i < history->events_count; i++) {
                const struct qv_client_event *event = &history->events[i];
                note_add_event(&note, scratch, event->at_ms, event->kind, span_of_text(event->text));
        }
        return note;
}

bool cli_has_color(void)
{
        const char *no_color = getenv("NO_COLOR");
        const char *term = getenv("TERM");
        return isatty(STDOUT_FILENO) && !(no_color && *no_color) && !(term && !strcmp(term, "dumb"));
}
